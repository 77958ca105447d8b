"""The asv suite. Each benchmark warms up in `setup`, waits for its device, and skips what is not installed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ndpool as ndp

# Each engine and the library of the arrays it is given.
LIBRARIES = {"numpy": "numpy", "numba": "numpy", "generic": "numpy", "torch": "torch"}
ENGINES = list(LIBRARIES)


class Case(NamedTuple):
    """An array, and a call that returns once the device is done with it."""

    x: Any
    wait: Callable[[], object]


def make(engine: str, shape: tuple[int, ...], dtype: str = "float32") -> Case:
    """Return the array that an engine works on; one that is not installed makes asv skip the benchmark."""
    library, found = LIBRARIES[engine], ndp.backends()
    if engine not in {**found.get(library, {}), **found["*"]}:
        raise NotImplementedError(f"the engine {engine!r} is not installed")
    x = np.random.default_rng(0).random(shape).astype(dtype)
    if library == "numpy":
        return Case(x, _nothing)
    import torch

    if torch.cuda.is_available():
        return Case(torch.asarray(x, device="cuda"), torch.cuda.synchronize)
    return Case(torch.asarray(x), _nothing)


def _nothing() -> None:
    """Stand for the wait where a call returns only when it is done."""
