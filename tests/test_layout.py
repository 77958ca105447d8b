"""The shape that DESIGN keeps: who may import whom, how long a file may be, and where a library may be named."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ndpool"

# A file imports only from files above it. A new file gets its place here.
ORDER = (
    "padding",
    "arguments",
    "threads",
    "plan",
    "segments",
    "reductions",
    "indices",
    "backend",
    "generic.blocks",
    "generic.reduce",
    "generic.scatter",
    "generic.correlate",
    "generic",
    "dispatch",
    "pooling",
    "adaptive",
    "unpooling",
    "convolution",
    "vjp",
    "explain",
    "trace",
    "",  # ndpool/__init__.py
    "testing.windows",
    "testing.oracle",
    "testing.cases",
    "testing.conformance",
    "testing",
    "demo",
    "__main__",
)
LONGEST = 400
# The hard dependency that tells one array library from another without importing any.
AGNOSTIC = {"array_api_compat"}
# What else a file may import: NumPy for integer tables, and for the definitions in testing/.
MAY_IMPORT = {
    "plan": {"numpy"},
    "segments": {"numpy"},
    **{name: {"numpy"} for name in ORDER if name.startswith("testing")},
}
# What the command line may import inside its functions; ruff's TID253 bans it at module level, in `try` and `if` too.
MAY_IMPORT_INSIDE = {"__main__": {"nibabel", "matplotlib"}, "demo": {"nibabel", "matplotlib"}}
BACKEND_NAMES = {"numpy", "numba", "cupy", "torch", "dask", "jax", "jaxlib"}
# The definitions, which must never be read off an engine.
DEFINITIONS = ("testing.windows", "testing.oracle")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = {name for name, path in FILES.items() if path.name == "__init__.py"}


def imports(name: str, tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the absolute name of everything that a file imports, anywhere in it."""
    package = name if name in PACKAGES else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ["ndpool", *package.split(".")] if node.level and package else ["ndpool"] if node.level else []
            base = base[: len(base) - max(node.level - 1, 0)]
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from . import plan` imports a file, `from .plan import WindowPlan` a name in one.
                inner = f"{source}.{alias.name}"
                yield inner if inner.removeprefix("ndpool.") in FILES else source, node


def import_offences(name: str, tree: ast.Module) -> list[str]:
    offences = []
    for target, node in imports(name, tree):
        root = target.partition(".")[0]
        if root == "ndpool":
            own = target.removeprefix("ndpool").removeprefix(".")
            if own not in ORDER or ORDER.index(own) >= ORDER.index(name):
                offences.append(f"line {node.lineno}: {target} is not above this file")
        elif root in sys.stdlib_module_names or target in AGNOSTIC or root in MAY_IMPORT.get(name, ()):
            continue
        elif node in tree.body or root not in MAY_IMPORT_INSIDE.get(name, ()):
            offences.append(f"line {node.lineno}: {target} may not be imported here")
    return offences


def words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in text.lower()).split())


def name_offences(tree: ast.Module) -> list[str]:
    """Find backend names in identifiers and strings; docstrings, which are no code, and comments may name them."""
    prose = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    offences = []
    for node in ast.walk(tree):
        found: set[str] = set()
        for _, value in ast.iter_fields(node):
            if isinstance(value, str) and id(node) not in prose:
                found |= words(value) & BACKEND_NAMES
        if found:
            offences.append(f"line {getattr(node, 'lineno', '?')}: {', '.join(sorted(found))}")
    return offences


def test_files_are_found_and_have_a_place():
    assert {"", "plan", "padding", "generic.reduce"} <= FILES.keys()
    assert [name for name in FILES if name not in ORDER] == []


@pytest.mark.parametrize("name", FILES)
def test_imports_only_from_above(name):
    assert import_offences(name, ast.parse(FILES[name].read_text())) == []


@pytest.mark.parametrize("name", FILES)
def test_is_not_too_long(name):
    lines = len(FILES[name].read_text().splitlines())
    assert lines <= LONGEST


@pytest.mark.parametrize("name", [n for n in FILES if n not in ("plan", "segments") and not n.startswith("testing")])
def test_names_no_backend(name):
    assert name_offences(ast.parse(FILES[name].read_text())) == []


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definitions_import_no_engine(name):
    used = {target for target, _ in imports(name, ast.parse(FILES[name].read_text())) if target.startswith("ndpool")}
    assert {target for target in used if not target.startswith("ndpool.testing")} == set()


# The checks above pass on anything if they find nothing, so they are shown what they must find.


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("dispatch", "import torch"),
        ("dispatch", "def f():\n    import numpy.linalg"),
        ("plan", "import scipy"),
        ("padding", "from . import plan"),
        ("padding", "from .plan import WindowPlan"),
        ("generic.reduce", "from ..dispatch import resolve"),
        ("generic.reduce", "from . import scatter"),
        ("plan", "from ndpool import WindowPlan"),
        ("plan", "import ndpool"),
        ("demo", "import nibabel"),
        ("pooling", "import array_api_compat.torch"),
    ],
)
def test_finds_an_import_that_is_not_allowed(name, code):
    # scatter.py counts as a file only once it is there; the name alone is then looked up in the package.
    assert import_offences(name, ast.parse(code))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("plan", "import math\nimport numpy as np\nfrom . import arguments"),
        ("generic.reduce", "from ..plan import WindowPlan\nimport array_api_compat"),
        ("demo", "def f():\n    import nibabel"),
        ("testing.oracle", "import numpy as np"),
        ("__main__", "import ndpool as ndp"),
    ],
)
def test_lets_pass_an_import_that_is_allowed(name, code):
    assert import_offences(name, ast.parse(code)) == []


@pytest.mark.parametrize(
    "code",
    [
        "x = 'torch'",
        "is_torch_array(x)",
        "x.numpy()",
        "f(torch=1)",
        "raise ValueError(f'{x} has no cupy')",
        "import jax",
    ],
)
def test_finds_a_backend_name(code):
    assert name_offences(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["'as torch has it'", "def f():\n    '''Like torch.'''", "x = 1  # torch", "x = 'torchlike'"]
)
def test_lets_pass_prose(code):
    assert name_offences(ast.parse(code)) == []
