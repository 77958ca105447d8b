"""The two adjoints on the Array API alone: values to the positions that they came from, or to all of their windows.

The standard writes to no array by an index array, so nothing is scattered here: each element of the result gathers what
belongs to it, in an order that the integers alone decide.
"""

from __future__ import annotations

import math
from typing import Any

import array_api_compat

from .. import arguments
from ..plan import AxisWindows, Ints, WindowPlan
from ..reductions import kind_of
from ..segments import gathers


def _take(xp: Any, values: Any, places: Ints, axis: int) -> Any:
    """Take along an axis; zero where a place is -1."""
    device = array_api_compat.device(values)
    if not (places >= 0).any():
        shape = (*values.shape[:axis], len(places), *values.shape[axis + 1 :])
        return xp.zeros(shape, dtype=values.dtype, device=device)
    taken = xp.take(values, xp.asarray(places.clip(0), dtype=xp.int64, device=device), axis=axis)
    if (places >= 0).all():
        return taken
    shape = tuple(-1 if a == axis else 1 for a in range(taken.ndim))
    return xp.where(xp.reshape(xp.asarray(places >= 0, device=device), shape), taken, xp.zeros_like(taken))


def spread_axis(xp: Any, values: Any, window: AxisWindows) -> Any:
    """Give each element of an axis the sum over the windows that cover it."""
    steps, places = gathers(window)
    total = values
    for step, (which, before) in enumerate(steps):
        own = _take(xp, values, which, window.axis)
        total = own + _take(xp, total, before, window.axis) if step else own
    return _take(xp, total, places, window.axis)


def _by_windows(xp: Any, values: Any, plan: WindowPlan) -> Any:
    if not plan.windows:
        return xp.asarray(values, copy=True)
    for window in plan.ascending:
        values = spread_axis(xp, values, window)
    return values


def _combined(xp: Any, overlap: str, a: Any, b: Any) -> Any:
    """Return the sum, or the larger; a NaN is the largest."""
    if overlap == "sum":
        return a + b
    return xp.where((b > a) | (b != b), b, a)


def _by_positions(xp: Any, values: Any, positions: Any, size: int, overlap: str) -> Any:
    device = array_api_compat.device(values)
    # What belongs to one element stands together, in the order in which it was given.
    order = xp.argsort(positions, stable=True)
    values, positions = xp.take(values, order), xp.take(positions, order)
    count = positions.shape[0]
    if overlap == "error" and count > 1:
        twice = (positions[1:] == positions[:-1]) & (positions[1:] >= 0)
        if bool(xp.any(twice)):
            raise arguments.repeated(int(positions[1:][int(xp.argmax(xp.astype(twice, xp.int8)))]))
    elif overlap != "last":
        # The last of each group has, after steps of 1, 2, 4, …, what all of them give together.
        step = 1
        while step < count:
            same = positions[step:] == positions[:-step]
            if not bool(xp.any(same)):
                break
            both = _combined(xp, overlap, values[:-step], values[step:])
            values = xp.concat([values[:step], xp.where(same, both, values[step:])])
            step *= 2
    if not count:
        return xp.zeros((size,), dtype=values.dtype, device=device)
    wanted = xp.arange(size, dtype=xp.int64, device=device)
    last = xp.searchsorted(positions, wanted, side="right") - 1
    place = xp.where(last < 0, xp.zeros_like(last), last)
    there = (last >= 0) & (xp.take(positions, place) == wanted)
    taken = xp.take(values, place)
    return xp.where(there, taken, xp.zeros_like(taken))


def scatter(values: Any, plan: WindowPlan, positions: Any = None, overlap: str = "sum") -> Any:
    """Write values back; the primitive of `ndpool.backend.Scatter`, for any Array API array."""
    xp, dtype = array_api_compat.array_namespace(values), values.dtype
    kind = kind_of(xp, dtype)
    if kind == "real floating" and overlap == "sum" and xp.finfo(dtype).bits < 32:
        return xp.astype(scatter(xp.astype(values, xp.float32), plan, positions, overlap), dtype)
    if positions is None:
        return _by_windows(xp, values, plan)
    if kind == "bool":
        return xp.astype(scatter(xp.astype(values, xp.uint8), plan, positions, overlap), xp.bool)
    size = math.prod(plan.input_shape)
    flat = xp.reshape(values, (-1,)), xp.reshape(positions, (-1,))
    return xp.reshape(_by_positions(xp, *flat, size, overlap), plan.input_shape)
