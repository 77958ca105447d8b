"""The examples of the docstrings run, and say what comes out."""

import doctest
import importlib
import pkgutil

import ndpool


def test_examples() -> None:
    names = [
        module.name for module in pkgutil.walk_packages(ndpool.__path__, "ndpool.") if "__main__" not in module.name
    ]
    results = [doctest.testmod(importlib.import_module(name)) for name in names]
    assert sum(result.attempted for result in results) >= 20
    assert not sum(result.failed for result in results)
