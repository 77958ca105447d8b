"""`import ndpool` is cheap: no optional library, no backend, no entry point is touched."""

import json
import re
import subprocess
import sys

FORBIDDEN = [
    "torch", "numba", "llvmlite", "cupy", "dask", "jax", "jaxlib", "scipy", "xarray", "nibabel", "matplotlib",
    "array_api_compat.torch", "array_api_compat.cupy", "array_api_compat.dask", "ndpool_numpy", "ndpool_torch",
    "ndpool_cupy", "ndpool_dask", "ndpool.testing", "ndpool.__main__",
]  # fmt: skip

# The scan for backends is lazy: in this process it is an error.
SCRIPT = """
import importlib.metadata, json, sys
def entry_points(*args, **kwargs):
    raise AssertionError("the entry points were read")
importlib.metadata.entry_points = entry_points
importlib.metadata.distributions = entry_points
{code}
print(json.dumps(sorted(sys.modules)))
"""


def run(*args):
    # -P: the folder that the tests run in may be the tree, which must not be imported in place of the wheel.
    return subprocess.run([sys.executable, "-P", *args], capture_output=True, text=True, check=False)


def modules_after(code):
    done = run("-c", SCRIPT.format(code=code))
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_import_pulls_in_nothing_optional():
    modules = modules_after("import ndpool")
    assert "ndpool" in modules
    assert sorted(modules.intersection(FORBIDDEN)) == []


def test_the_check_sees_what_is_imported():
    assert "numba" in modules_after("import numba")
    done = run("-c", SCRIPT.format(code="importlib.metadata.entry_points(group='ndpool.backends')"))
    assert "the entry points were read" in done.stderr


def test_import_time_is_shown():
    # Shown with -s, not asserted: the time is the machine's, the modules above are ours.
    done = run("-X", "importtime", "-c", "import numpy, ndpool")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^import time: +\d+ \| +(\d+) \| +(\S+)$", done.stderr, re.MULTILINE)
    micros = {name: int(total) for total, name in rows}
    print(f"import ndpool: {micros['ndpool'] / 1000:.1f} ms over import numpy ({micros['numpy'] / 1000:.1f} ms)")
