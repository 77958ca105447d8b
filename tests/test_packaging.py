"""What is shipped: the names in the wheel, its entry points, and that the sdist builds the same wheel."""

import configparser
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import ndpool

ROOT = Path(__file__).parent.parent


def build(out, *args):
    # Without isolation nothing is downloaded: the build tools are a group of the tests.
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(out), *args, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel built from the tree."""
    with build(tmp_path_factory.mktemp("wheel"), "--wheel") as archive:
        yield archive


@pytest.fixture(scope="session")
def wheel_of_sdist(tmp_path_factory):
    """The wheel built from the sdist, which is what `build` does when told nothing."""
    with build(tmp_path_factory.mktemp("sdist")) as archive:
        yield archive


def metadata_of(wheel, name):
    (path,) = [path for path in wheel.namelist() if path.endswith(f".dist-info/{name}")]
    return wheel.read(path).decode()


def test_every_top_level_name_is_ours(wheel):
    names = {name.split("/")[0] for name in wheel.namelist()}
    assert {"ndpool", "ndpool_numpy"} <= names
    assert [name for name in names if not name.startswith("ndpool")] == []


def test_every_file_of_the_packages_is_shipped(wheel):
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ndpool").rglob("*.*") if path.suffix != ".pyc"}
    backends = ROOT / "backends"
    here |= {p.relative_to(backends).as_posix() for p in backends.glob("*/**/*.*") if p.suffix != ".pyc"}
    assert {"ndpool/plan.py", "ndpool_numpy/__init__.py"} <= here
    assert sorted(here - set(wheel.namelist())) == []


def test_type_information_is_shipped(wheel):
    packages = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}
    assert sorted(p for p in packages if f"{p}/py.typed" not in wheel.namelist()) == []


def test_entry_points(wheel):
    entries = configparser.ConfigParser()
    entries.read_string(metadata_of(wheel, "entry_points.txt"))
    assert dict(entries["console_scripts"]) == {"ndpool": "ndpool.__main__:main"}
    backends = dict(entries["ndpool.backends"])
    assert backends["numpy"] == "ndpool_numpy:backend"
    for target in backends.values():
        assert f"{target.partition(':')[0]}/__init__.py" in wheel.namelist()


def test_hard_dependencies_are_two(wheel):
    lines = metadata_of(wheel, "METADATA").splitlines()
    required = [line.split(": ")[1] for line in lines if line.startswith("Requires-Dist: ") and "extra ==" not in line]
    assert required == ["array-api-compat>=1.9", "numpy>=1.26"]
    assert f"Version: {ndpool.__version__}" in lines


def test_the_sdist_builds_the_same_wheel(wheel, wheel_of_sdist):
    direct, packed = ({info.filename: info.CRC for info in w.infolist()} for w in (wheel, wheel_of_sdist))
    assert direct == packed


def test_the_installed_version_is_the_one_in_the_source():
    assert metadata.version("ndpool") == ndpool.__version__


@pytest.mark.skipif("NDPOOL_TEST_WHEEL" not in os.environ, reason="only `make test` promises the installed wheel")
def test_the_wheel_is_what_is_tested():
    installed = Path(sysconfig.get_path("purelib"))
    assert Path(ndpool.__file__).is_relative_to(installed)
    # Nor may a child process that a test starts in the tree import it.
    code = "import ndpool; print(ndpool.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert Path(done.stdout.strip()).is_relative_to(installed)
