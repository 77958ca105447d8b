"""The engine "numba": compiled loops over tiles that stay in the cache, on several threads that hold no lock."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import array_api_compat.numpy as xp
import numpy as np
from numpy.typing import NDArray

from ndpool import threads
from ndpool.indices import linear
from ndpool.plan import WindowPlan
from ndpool.reductions import Reduction, dtypes, identity

from . import kernels, machine, ufuncs
from .program import BATCH, Program, Way, program
from .spans import Borders
from .ufuncs import memory_order

Array = NDArray[Any]

# Bytes of scratch memory that are too many.
TOO_MUCH = 8 << 20
# Bytes of an array and its results that one thread has done before another has begun.
SMALL = 1 << 19
# Bytes of scratch memory that a thread keeps for the next call.
KEPT = 1 << 18
# Stands in for positions where none are wanted.
NOWHERE = np.empty(1, dtype=np.int64)
_kept = threading.local()


class _Memory:
    """Memory under an array, for the compiled loops: one type for writable and read-only arrays; it is not written."""

    def __init__(self, address: int, size: int, dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": (size,), "typestr": dtype.str}


def _line(x: Array, steps: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return all memory under an array as one line, which `x` must outlive; `steps` are its strides in elements."""
    if x.flags.c_contiguous and x.flags.writeable:
        line = x.reshape(-1)
        return line if dtype == x.dtype else line.view(dtype)
    low = sum((n - 1) * step for n, step in zip(x.shape, steps, strict=True) if step < 0)
    size = sum((n - 1) * abs(step) for n, step in zip(x.shape, steps, strict=True)) + 1
    return np.asarray(_Memory(x.__array_interface__["data"][0] + low * x.itemsize, size, dtype))


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which the compiled loops see one that Numba lacks."""
    return np.dtype({"float16": np.uint16, "bool": np.uint8}.get(dtype.name, dtype))


def _accumulates(dtype: np.dtype[Any], reduction: Reduction) -> tuple[int, int, Any, Any, float, float]:
    """Return the operation, how elements are read, the dtypes to accumulate in and of the result, power and root."""
    name, p = reduction.name, reduction.p
    how = machine.HALF if dtype == np.float16 else machine.PLAIN
    if name in ("max", "min"):
        kind = kernels.MAX if name == "max" else kernels.MIN
        return kind, how, (np.dtype(np.float32) if how else dtype), dtype, 0.0, 0.0
    accumulator, result = map(np.dtype, dtypes(xp, dtype, reduction.rule.result))
    if name != "lp":
        return kernels.ADD, how, accumulator, result, 0.0, 0.0
    if p in (1, math.inf):
        return (kernels.ADD if p == 1 else kernels.MAX), how | machine.MAGNITUDE, accumulator, result, 0.0, 0.0
    if p is not None and result.itemsize < 8 and 1 <= p <= 6:
        # Neither the power of the largest element nor that of the smallest leaves the range of a double, nor the root's
        # rounding that of the result.
        return kernels.ADD, how | machine.POWER, np.dtype(np.float64), result, float(p), 1 / p
    power = float(p or 1)
    return kernels.NORM, how | machine.MAGNITUDE, accumulator, result, power, 1 / power


class Recipe(NamedTuple):
    """All that a call needs beside the array."""

    program: Program
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    back: tuple[int, ...] | None
    bits: np.dtype[Any]
    accumulator: np.dtype[Any]
    result: np.dtype[Any]
    result_bits: np.dtype[Any]
    companion: np.dtype[Any] | None
    direct: bool
    op: tuple[int, ...]
    how: tuple[int, ...]
    counts: Array
    numbers: Array
    options: tuple[float, float, float]


@lru_cache(maxsize=256)
def _recipe(
    plan: WindowPlan,
    strides: tuple[int, ...],
    reduction: Reduction,
    fill: str,  # noqa: ARG001 - part of the key: -0.0 and 0.0 are one number
    dtype: np.dtype[Any],
    encoding: str | None,
) -> Recipe | None:
    """Decide all that needs no array; `None` where the other engine is for it."""
    if any(stride % dtype.itemsize for stride in strides):
        return None
    order, steps = memory_order(strides), tuple(stride // dtype.itemsize for stride in strides)
    shape, name = tuple(plan.output_shape[axis] for axis in order), reduction.name
    floating = dtype.kind in "fc"
    omit = reduction.omits_nan and floating
    if not math.prod(shape) or not plan.windows or (omit and (name == "lp" or dtype.kind == "c")):
        return None
    kind, read, accumulates, result, power, root = _accumulates(dtype, reduction)
    extremum = name in ("max", "min")
    largest = kind in (kernels.MAX, kernels.MIN)
    if extremum:
        among = (kernels.MAX, kernels.OMIT_MAX, kernels.PLACED_MAX, kernels.PLACED_OMIT_MAX)
        kind += among[2 * bool(encoding) + omit]
    elif omit:
        kind = kernels.COUNTED_ADD
    placed, carried = kernels.PLACED_MAX <= kind < kernels.COUNTED_ADD, kind >= kernels.PLACED
    borders = Borders(not extremum or reduction.fill_takes_part(floating), extremum)
    accumulator, bits = _bits(accumulates), _bits(dtype)
    direct = not carried and read == machine.PLAIN and bits == accumulator
    companion = None
    if carried:
        many = math.prod(plan.input_shape) >= 2**31
        companion = accumulator if kind == kernels.NORM else np.dtype(np.int64 if many else np.int32)
    finish = carried or bool(read & machine.HALF) or name == "mean" or root > 0 or _bits(result) != accumulator
    itemsize = accumulator.itemsize + (companion.itemsize if companion else 0)
    places = linear(plan, encoding or "plane") if placed else (0,) * len(order)
    # Of zeros of both signs the first in C order is wanted as well.
    ordered = placed or (extremum and floating)
    way = Way(borders, not ordered, itemsize, direct, finish, not largest, name == "mean")
    made = program(plan, order, steps, places, way)
    if 4 * made.room * itemsize > TOO_MUCH:
        return None
    neutral: Any = 0
    if extremum:
        neutral = identity(xp, accumulates, name) if floating else int(identity(xp, accumulator, name))
    fill_value: Any = reduction.fill_value if borders.fill else neutral
    fill_value = abs(fill_value) if name == "lp" else fill_value
    fill_value = fill_value**power if read >= machine.POWER else fill_value
    numbers = np.array([neutral, fill_value, math.nan if name == "mean" else neutral], dtype=accumulator)
    scale = 1.0 if name != "mean" else 0.0 if reduction.divisor is None else float(reduction.divisor)
    counts = made.tables.astype(numbers.real.dtype if accumulator.kind in "fc" else np.float64)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return Recipe(
        made, steps, shape, back if list(back) != sorted(back) else None, bits, accumulator, result, _bits(result),
        companion, direct, (0,) * kind, (0,) * read, counts, numbers, (scale, power, root),
    )  # fmt: skip


def _room(count: int, dtype: np.dtype[Any]) -> Array:
    """Return scratch memory: where it is little, what this thread had the last time."""
    if count * dtype.itemsize > KEPT:
        return np.empty(count, dtype=dtype)
    kept: dict[Any, Array] = _kept.__dict__
    room = kept.get(dtype.char)
    if room is None or len(room) < count:
        room = kept[dtype.char] = np.empty(count, dtype=dtype)
    return room


def _tiles(recipe: Recipe, line: Array, out: Array, at: Array, share: int, blocks: Iterable[int]) -> None:
    """Reduce the tiles of some blocks of `share`."""
    work = recipe.program
    scratch = _room(4 * work.room, recipe.accumulator)
    # Without companions the values stand in for them.
    pair = scratch, scratch if recipe.companion is None else np.empty(4 * work.room, dtype=recipe.companion)
    near = (line, line) if recipe.direct else pair
    finished = (out, out) if recipe.result_bits == recipe.accumulator and recipe.companion is None else pair
    arrays = line, pair, near, out, finished, at
    for block in blocks:
        tiles = work.tiles(block, share)
        machine.run(recipe.op, recipe.how, arrays, tiles, work.code, recipe.counts, recipe.numbers, recipe.options)


def reduce(
    x: Array, plan: WindowPlan, reduction: Reduction, want_positions: str | None, where: None = None
) -> tuple[Array, Array | None]:
    """Reduce every window of `x`; the primitive of `ndpool.backend.Reduce`."""
    if where is not None:
        raise TypeError("the engine 'numba' takes no `where`")
    recipe = None
    if x.flags.aligned:
        recipe = _recipe(plan, x.strides, reduction, repr(reduction.fill_value), x.dtype, want_positions)
    if recipe is None:
        return ufuncs.reduce(x, plan, reduction, want_positions)
    line, size = _line(x, recipe.steps, recipe.bits), math.prod(recipe.shape)
    results = np.empty(size, dtype=recipe.result)
    out = results if recipe.result == recipe.result_bits else results.view(recipe.result_bits)
    at = np.empty(size, dtype=np.int64) if want_positions else NOWHERE
    count = recipe.program.count
    if x.nbytes + results.nbytes <= SMALL:
        _tiles(recipe, line, out, at, count, (0,))
    else:
        # Several blocks a thread: none waits long for the last.
        share = min(-(-count // (8 * threads.get_num_threads())), BATCH)
        threads.share(-(-count // share), partial(_tiles, recipe, line, out, at, share))
    values, positions = results.reshape(recipe.shape), at.reshape(recipe.shape) if want_positions else None
    if recipe.back is None:
        return values, positions
    return values.transpose(recipe.back), None if positions is None else positions.transpose(recipe.back)
