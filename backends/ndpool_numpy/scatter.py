"""The adjoints of the engine "numpy": by positions through NumPy's own indexing, by windows through ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool import arguments
from ndpool.plan import Ints, WindowPlan

from . import spreading
from .ufuncs import memory_order

Array = NDArray[Any]


def wide(dtype: np.dtype[Any], overlap: str) -> np.dtype[Any]:
    """Return the dtype in which values of `dtype` are combined."""
    return np.dtype(np.float32) if dtype == np.float16 and overlap in ("sum", "max") else dtype


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return what every element of a dtype is at least."""
    return False if dtype.kind == "b" else -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _by_positions(values: Array, positions: Ints, size: int, overlap: str) -> Array:
    there = positions >= 0
    if not there.all():
        values, positions = values[there], positions[there]
    out = np.zeros(size, dtype=values.dtype)
    if overlap == "sum":
        np.add.at(out, positions, values)
    elif overlap == "max":
        out[positions] = lowest(values.dtype)
        np.maximum.at(out, positions, values)
    else:
        # Of equal positions the last is written last.
        out[positions] = values
        if overlap == "error":
            counts = np.zeros(size, dtype=np.bool_)
            counts[positions] = True
            if np.count_nonzero(counts) < len(positions):
                _, first = np.unique(positions, return_index=True)
                again = np.ones(len(positions), dtype=np.bool_)
                again[first] = False
                raise arguments.repeated(int(positions[again][0]))
    return out


def by_windows(values: Array, plan: WindowPlan) -> tuple[Array, Array, spreading.Layout, tuple[int, ...]]:
    """Return the values and the result in memory order, the tiles, and the way back to the axes' own order."""
    order = memory_order(values.strides)
    work = spreading.layout(plan, order)
    out = np.empty(work.shape, dtype=values.dtype)
    return values.transpose(order), out, work, tuple(sorted(range(len(order)), key=order.__getitem__))


def scatter(values: Array, plan: WindowPlan, positions: Ints | None = None, overlap: str = "sum") -> Array:
    """Write values back; the primitive of `ndpool.backend.Scatter`."""
    own, dtype = values.dtype, wide(values.dtype, overlap)
    if dtype != own:
        return scatter(values.astype(dtype), plan, positions, overlap).astype(own)
    with np.errstate(all="ignore"):
        if positions is None:
            source, out, work, back = by_windows(values, plan)
            spreading.spread(source, out, work, spreading.expand, range(work.count))
            return out.transpose(back)
        size = math.prod(plan.input_shape)
        return _by_positions(values.reshape(-1), positions.reshape(-1), size, overlap).reshape(plan.input_shape)
