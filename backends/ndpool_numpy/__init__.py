"""The backend for NumPy arrays, and for whatever NumPy makes an array of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndpool.backend import Backend, Capabilities, Engine

from . import ufuncs


def unpack(x: Any) -> tuple[Any, Any]:
    """Return `x` as a plain array, and the mask of the elements that take part where `x` is a masked array."""
    if isinstance(x, np.ma.MaskedArray):
        return np.asarray(x.data), None if x.mask is np.ma.nomask else ~np.ma.getmaskarray(x)
    return np.asarray(x), None


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
)

backend = Backend("numpy", engines=(NUMPY,), unpack=unpack)
