"""The backend for NumPy arrays, and for whatever NumPy makes an array of."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ndpool.backend import Backend, Capabilities, Engine

from . import scatter, ufuncs


def unpack(x: Any) -> tuple[Any, Any]:
    """Return `x` as a plain array, and the mask of the elements that take part where `x` is a masked array."""
    if isinstance(x, np.ma.MaskedArray):
        return np.asarray(x.data), None if x.mask is np.ma.nomask else ~np.ma.getmaskarray(x)
    try:
        return np.asarray(x), None
    except ValueError as error:
        raise ValueError(f"`x` is no array, and none can be made of it: {error}") from error


NUMPY = Engine(
    "numpy",
    Capabilities(
        "ufuncs on strided views, in tiles that stay in the cache",
        positions=("flat", "plane"),
        where=False,
        omit=True,
        takes_dtype=ufuncs.takes_dtype,
    ),
    ufuncs.reduce,
    scatter.scatter,
)


@cache
def _engine() -> Any:
    """Import Numba where it is used: that takes longer than most calls."""
    from . import compiled

    return compiled


def _compiled(*args: Any) -> Any:
    return _engine().reduce(*args)


def _compiled_scatter(*args: Any) -> Any:
    from . import compiled_scatter

    return compiled_scatter.scatter(*args)


NUMBA = Engine(
    "numba",
    Capabilities(
        "compiled loops over tiles that stay in the cache, on several threads",
        positions=("flat", "plane"),
        where=False,
        omit=True,
        takes_dtype=ufuncs.takes_dtype,
    ),
    _compiled,
    _compiled_scatter,
)

backend = Backend("numpy", engines=(NUMBA, NUMPY) if find_spec("numba") else (NUMPY,), unpack=unpack)
