"""The engine "numpy": NumPy's ufuncs on strided views, tile by tile, with no padded copy of the array.

Each tile is read once: as a view where its windows lie inside the array, else into a buffer of the tile's own size.
Then one axis after another is reduced in scratch memory that stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool.plan import WindowPlan
from ndpool.reductions import Reduction

from .boxes import Call
from .extremum import Extremum
from .sums import Totals
from .tiles import Tile, layout

Array = NDArray[Any]

# The bytes that a tile reads: its buffers are about three times that, and are to fit into a cache of the second level.
BUDGET = 1 << 19

_KINDS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")


def takes_dtype(dtype: Any) -> bool:
    """Return whether the engine takes a dtype: NumPy's own numbers, but for those of more than double precision."""
    return isinstance(dtype, np.dtype) and dtype.type in _KINDS


def memory_order(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes of an array, the outermost in memory first."""
    # An axis that stays in one place is read again and again: it belongs outside.
    far = max(map(abs, strides), default=0) + 1
    return tuple(sorted(range(len(strides)), key=lambda axis: -(abs(strides[axis]) or far)))


@lru_cache(maxsize=256)
def _recipe(
    plan: WindowPlan,
    order: tuple[int, ...],
    reduction: Reduction,
    fill: str,  # noqa: ARG001 - part of the key: -0.0 and 0.0 are one number
    dtype: np.dtype[Any],
    encoding: str | None,
    budget: int,
) -> tuple[Extremum | Totals, Iterable[Tile], tuple[int, ...], tuple[int, ...]]:
    """Decide all that needs no array."""
    engine: Extremum | Totals
    if reduction.rule.positions or reduction.p == math.inf:
        engine = Extremum(plan, order, reduction, dtype, encoding)
    else:
        engine = Totals(plan, order, reduction, dtype)
    shape = tuple(plan.output_shape[axis] for axis in order)
    tiles: Iterable[Tile] = ()
    if math.prod(shape):
        tiles = layout(plan, order, max(budget // engine.dtype.itemsize, 1), engine.borders)
    return engine, tiles, shape, tuple(sorted(range(len(order)), key=order.__getitem__))


def reduce(
    x: Array, plan: WindowPlan, reduction: Reduction, want_positions: str | None, where: None = None
) -> tuple[Array, Array | None]:
    """Reduce every window of `x`; the primitive of `ndpool.backend.Reduce`."""
    if where is not None:
        raise TypeError("the engine 'numpy' takes no `where`")
    order = memory_order(x.strides)
    with np.errstate(all="ignore"):
        engine, tiles, shape, back = _recipe(
            plan, order, reduction, repr(reduction.fill_value), x.dtype, want_positions, BUDGET
        )
        call = Call((x.view(np.uint8) if x.dtype == bool else x).transpose(order))
        values = np.empty(shape, dtype=engine.result)
        at: Any = np.empty(shape, dtype=np.int64) if want_positions else None
        out: Any = values.view(engine.dtype) if values.dtype == bool and isinstance(engine, Extremum) else values
        for tile in tiles:
            index = (..., *tile.output)
            engine.write(call, tile, out[index], None if at is None else at[index])
    return values.transpose(back), None if at is None else at.transpose(back)
