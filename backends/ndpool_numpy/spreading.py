"""The adjoint by windows: each value is added to every element of its window, tile by tile of the result.

Each element belongs to one tile, and in a tile the axes are spread one after another, from the last to the first: what
is added to an element, and in which order, depends on the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndpool.plan import AxisWindows, Ints, WindowPlan
from ndpool.segments import LENGTH, SOURCE, SOURCE_STEP, WINDOW, WINDOW_STEP, segments

Array = NDArray[Any]
# Adds, on the second axis of its arrays, the pairs of some segments to a target that it sets to zero before.
Expand = Callable[[Array, Array, Ints], None]

# Elements of the result that a tile has: its buffers are to fit into a cache of the second level.
BUDGET = 1 << 16


class Block(NamedTuple):
    """A part of an axis: its elements, the windows that reach into it, and their pairs, counted from both."""

    begin: int
    end: int
    first: int
    last: int
    pairs: Ints | None


def blocks_of(window: AxisWindows | None, size: int, share: int) -> list[Block]:
    """Cut an axis into blocks of at most `share` elements."""
    count = -(-size // share)
    bounds = [(size * i // count, size * (i + 1) // count) for i in range(count)]
    if window is None:
        return [Block(begin, end, begin, end, None) for begin, end in bounds]
    table, result = segments(window), []
    step = np.maximum(table[:, SOURCE_STEP], 1)
    for begin, end in bounds:
        low, high = (np.clip(-((table[:, SOURCE] - b) // step), 0, table[:, LENGTH]) for b in (begin, end))
        own = table.copy()
        own[:, WINDOW] += low * table[:, WINDOW_STEP]
        own[:, SOURCE] += low * table[:, SOURCE_STEP] - begin
        own[:, LENGTH] = high - low
        own = own[own[:, LENGTH] > 0]
        ends = own[:, WINDOW] + (own[:, LENGTH] - 1) * own[:, WINDOW_STEP] + 1
        first, last = (int(own[:, WINDOW].min()), int(ends.max())) if len(own) else (0, 0)
        own[:, WINDOW] -= first
        result.append(Block(begin, end, first, last, own))
    return result


@dataclass(frozen=True, eq=False)
class Layout:
    """The tiles of a result: a block of each axis, in memory order."""

    shape: tuple[int, ...]
    blocks: list[list[Block]]
    pooled: list[int]

    @property
    def count(self) -> int:
        """The number of tiles."""
        return math.prod(map(len, self.blocks))

    def tile(self, number: int) -> list[Block]:
        """Return the blocks of a tile."""
        own = []
        for blocks in reversed(self.blocks):
            number, at = divmod(number, len(blocks))
            own.append(blocks[at])
        return own[::-1]


@lru_cache(maxsize=64)
def layout(plan: WindowPlan, order: tuple[int, ...]) -> Layout:
    """Cut the result of a plan into tiles that are whole on the inner axes."""
    own = {window.axis: window for window in plan.windows}
    room, blocks = BUDGET, []
    for axis in reversed(order):
        size = plan.input_shape[axis]
        share = max(min(size, room), 1)
        blocks.append(blocks_of(own.get(axis), size, share))
        room //= share
    pooled = [j for j, axis in enumerate(order) if axis in own]
    return Layout(tuple(plan.input_shape[axis] for axis in order), blocks[::-1], pooled[::-1])


def spread_tile(values: Array, out: Array, tile: list[Block], pooled: list[int], expand: Expand) -> None:
    """Fill a tile of `out`; the arrays are in memory order."""
    source = values[tuple(slice(block.first, block.last) for block in tile)]
    target = out[tuple(slice(block.begin, block.end) for block in tile)]
    extent, part = list(source.shape), np.ascontiguousarray(source)
    for j in pooled:
        outer, there, inner = math.prod(extent[:j]), extent[j], math.prod(extent[j + 1 :])
        extent[j], pairs = tile[j].end - tile[j].begin, tile[j].pairs
        own = j == pooled[-1] and target.flags.c_contiguous
        to = target if own else np.empty(extent, dtype=out.dtype)
        expand(part.reshape(outer, there, inner), to.reshape(outer, extent[j], inner), pairs)
        part = to
    if part is not target:
        target[...] = part


def spread(values: Array, out: Array, work: Layout, expand: Expand, numbers: Iterable[int]) -> None:
    """Fill some tiles of `out`."""
    for number in numbers:
        spread_tile(values, out, work.tile(number), work.pooled, expand)


def expand(source: Array, target: Array, pairs: Ints) -> None:
    """Spread one axis by ufuncs on strided views."""
    target[...] = 0
    for first, step, length, begin, apart in pairs.tolist():
        windows = slice(first, first + 1) if step == 0 else slice(first, first + (length - 1) * step + 1, step)
        elements = target[:, begin : begin + max((length - 1) * apart, 0) + 1 : max(apart, 1)]
        np.add(elements, source[:, windows], out=elements)
