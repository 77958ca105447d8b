"""A plan cut into tiles, as the integers that the compiled loops read.

The axes are those of memory, outermost first, where such as nothing slides over and that lie within one another are
one. Of each axis there is a list of parts; a tile is a part of each. A program depends on the plan, on strides, and on
how borders are read, never on data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from ndpool.plan import AxisWindows, Ints, WindowPlan

from .instructions import COLUMNS, MOST, Axis, Part, tile_code
from .spans import Borders, piece_of

# Bytes of scratch memory, on either side of a pass, that stay in the first and in the second cache.
NEAR, FAR = 20 << 10, 224 << 10
# What a row, and what a tile, costs beside its elements, in elements.
ROW, TILE = 30, 1000


class Way(NamedTuple):
    """What a program depends on beside the plan and the array's strides.

    Attributes
    ----------
    borders : Borders
        How positions that are no elements are read.
    rows_first : bool
        Whether rows are combined before they are shortened: the faster way, but then the winner that is the first in C
        order, or of zeros the first, is lost.
    itemsize : int
        Bytes of an element in scratch memory, and of its companion.
    direct : bool
        Whether the first pass may read the array itself.
    finish : bool
        Whether results need a pass of their own; they do where a window has nothing in it.
    additive : bool
        Whether an element that counts twice would show.
    counts : bool
        Whether it matters how many elements take part in a window, and not only whether one does.
    """

    borders: Borders
    rows_first: bool
    itemsize: int
    direct: bool
    finish: bool
    additive: bool
    counts: bool


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of an axis: one row stands for all in a line that differ by a shift alone.

    Attributes
    ----------
    kinds : list of Part
        The parts.
    first, kind, source, source_step, target, target_step : array of int64
        For each row the number of its first part, which of `kinds` it is, and by how much it is shifted in the array
        and in the results: the first, and each from the one before.
    count : int
        The number of parts.
    """

    kinds: list[Part]
    first: Ints
    kind: Ints
    source: Ints
    source_step: Ints
    target: Ints
    target_step: Ints
    count: int


@dataclass(frozen=True, eq=False)
class Program:
    """What to do, in integers.

    Attributes
    ----------
    axes, parts, turns : list
        The axes in memory order, their parts, and the axes in the order in which tiles go through their parts, the
        fastest first.
    code, ends, tables : array of int64
        The instructions of each kind of tile, one after another, where each ends, and counts that they refer to.
    base : int
        Where in memory the array's first element is.
    count : int
        The number of tiles.
    room : int
        Elements of scratch memory that a pass may fill; there are four such rooms.
    """

    axes: list[Axis]
    parts: list[Parts]
    turns: list[int]
    code: Ints
    ends: Ints
    tables: Ints
    base: int
    count: int
    room: int

    @cached_property
    def _all(self) -> Ints:
        return self._tiles(0, self.count)

    def tiles(self, block: int, size: int) -> Ints:
        """Return what the tiles of a block of `size` are, from ``block * size`` on.

        Returns
        -------
        array of int64
            Five columns: where a tile's instructions begin and end, and the shifts in array, results and positions.
        """
        begin, end = block * size, min(block * size + size, self.count)
        return self._all[begin:end] if self.count <= BATCH else self._tiles(begin, end)

    def _tiles(self, begin: int, end: int) -> Ints:
        rest, kinds = np.arange(begin, end), {}
        result = np.zeros((5, end - begin), dtype=np.int64)
        result[2] = self.base
        for j in self.turns:
            parts, axis = self.parts[j], self.axes[j]
            rest, number = np.divmod(rest, parts.count)
            row = np.searchsorted(parts.first, number, "right") - 1
            number -= parts.first[row]
            source = parts.source[row] + number * parts.source_step[row]
            result[2] += source * axis.array
            result[3] += (parts.target[row] + number * parts.target_step[row]) * axis.result
            result[4] += source * axis.place
            kinds[j] = parts.kind[row]
        kind = np.zeros(end - begin, dtype=np.int64)
        for j, parts in enumerate(self.parts):
            kind = kind * len(parts.kinds) + kinds[j]
        result[0], result[1] = self.ends[kind], self.ends[kind + 1]
        return np.ascontiguousarray(result.T)


def axes_of(
    plan: WindowPlan, order: tuple[int, ...], strides: tuple[int, ...], places: tuple[int, ...]
) -> tuple[list[Axis], list[AxisWindows], list[bool]]:
    """Return the axes in memory order; neighbours that nothing slides over are one where they lie within one another.

    Returns
    -------
    axes, windows, pooled : list
        The axes, their windows, and whether they are pooled.
    """
    own = {window.axis: window for window in plan.windows}
    axes: list[Axis] = []
    windows: list[AxisWindows] = []
    pooled: list[bool] = []
    step = 1
    for number in reversed(order):
        size = plan.input_shape[number]
        axis, window = Axis(strides[number], step, places[number]), own.get(number, AxisWindows(number, size, size, 1))
        step *= window.count
        if axes and number not in own and not pooled[-1]:
            last, n = axes[-1], windows[-1].size
            if axis.array == last.array * n and axis.place == last.place * n:
                windows[-1] = AxisWindows(number, size * n, size * n, 1)
                continue
        axes.append(axis)
        windows.append(window)
        pooled.append(number in own)
    return axes[::-1], windows[::-1], pooled[::-1]


def _positions(window: AxisWindows, count: int) -> int:
    """Return how many positions `count` windows read, roughly where they are irregular."""
    if window.intervals is not None:
        return max(window.kernel, -(-window.size * count // max(window.count, 1)))
    return (count - 1) * window.stride + (max(window.reach, 1) - 1) * window.dilation + 1


def shares(windows: list[AxisWindows], passes: tuple[int, ...], itemsize: int, staged: bool) -> list[int]:
    """Return how many windows of each axis a tile has, so that the work for one is least.

    Parameters
    ----------
    windows : list of AxisWindows
        Of all axes in memory order.
    passes : tuple of int
        The pooled places, in the order of their passes.
    itemsize : int
        Bytes of an element in scratch memory.
    staged : bool
        Whether the first pass reads a copy rather than the array.
    """
    last = len(windows) - 1

    def work(counts: list[int]) -> float:
        extent = [_positions(w, n) for w, n in zip(windows, counts, strict=True)]
        room, total, whole = 0, float(TILE), math.prod(extent)
        if staged:
            room = math.prod(extent)
            total += room + ROW * room / extent[last]
        for k, j in enumerate(passes):
            cells, positions = max(windows[j].reach, 1), math.prod(extent)
            extent[j] = counts[j]
            out = math.prod(extent)
            room = max(room, out) if k < len(passes) - 1 else room
            row = extent[last] if j == last or (k == 0 and not staged) else math.prod(extent[j + 1 :])
            # Long windows that overlap share what they have in common, where there is more than one.
            shared = cells > MOST and cells * windows[j].dilation > windows[j].stride and counts[j] > 1
            steps = 1.0 * cells.bit_length() * positions if shared else (1 + cells / 2) * out
            room = max(room, positions) if shared else room
            total += steps + ROW * steps / row / 2
        size = room * itemsize
        # Tiles at the borders are staged whatever the others are.
        size = max(size, whole * itemsize // 8)
        return total / math.prod(counts) * (1 if size <= NEAR else 1.25 if size <= FAR else 4.0 * size / FAR)

    best = [1] * len(windows)
    options = [sorted({min(1 << e, w.count) for e in range(max(w.count, 1).bit_length() + 1)}) for w in windows]
    for _ in range(3):
        before = list(best)
        for j in reversed(range(len(windows))):
            best[j] = min(options[j], key=lambda n, j=j: work([*best[:j], n, *best[j + 1 :]]))  # type: ignore[misc]
        if best == before:
            break
    return best


def parts_of(window: AxisWindows, share: int) -> Iterator[tuple[int, int, int]]:
    """Cut the windows of an axis into parts of at most `share`: where each begins, ends, and how often it repeats."""
    share = -(-window.count // -(-window.count // share))
    low = high = 0
    if window.intervals is None and window.reach:
        # Windows that lie inside the array are alike.
        (first, last), reach = window.real, (window.reach - 1) * window.dilation
        low = min(max(-((window.start - first) // window.stride), 0), window.count)
        high = max(min((last - 1 - reach - window.start) // window.stride + 1, window.count), 0)
    begin = min(-(-low // share) * share, window.count)
    alike = max(high - begin, 0) // share
    for at in range(0, begin, share):
        yield at, min(at + share, begin), 1
    if alike:
        yield begin, begin + share, alike
    for at in range(begin + alike * share, window.count, share):
        yield at, min(at + share, window.count), 1


# Tiles that are described at a time.
BATCH = 4096
# Kinds of tiles that instructions are written for; of more, tiles are larger.
KINDS = 1024


def _cut(window: AxisWindows, way: Way, share: int) -> Parts:
    kinds: list[Part] = []
    rows: list[tuple[int, ...]] = []
    seen: dict[object, int] = {}
    number = 0
    for begin, end, repeats in parts_of(window, share):
        piece = piece_of(window, way.borders, begin, end, max(window.reach, window.kernel, 1))
        span, key, at = piece.chunks[0], None, 0
        taking = piece.taking if way.counts or not np.all(piece.taking) else 1
        if span.affine:
            # The same but for where it is: what is read counts from the first position.
            run = span.runs[0]
            at, span = run.source, replace(span, first=0, runs=(run._replace(source=0),))
            irregular = (
                None if span.starts is None or span.lengths is None else (span.starts.tobytes(), span.lengths.tobytes())
            )
            key = (span.length, span.count, span.kernel, span.stride, span.dilation, run.step, irregular)
            key = key if isinstance(taking, int) else None
        kind = seen.setdefault(key, len(kinds)) if key else len(kinds)
        if kind == len(kinds):
            kinds.append(Part(span, taking))
        rows.append((number, kind, at, span.count * min(window.stride, 1 << 62), begin, span.count))
        number += repeats
    return Parts(kinds, *np.array(rows, dtype=np.int64).T, count=number)


def program(
    plan: WindowPlan, order: tuple[int, ...], strides: tuple[int, ...], places: tuple[int, ...], way: Way
) -> Program:
    """Cut a plan into tiles.

    Parameters
    ----------
    plan : WindowPlan
        The plan.
    order : tuple of int
        The axes, the outermost in memory first.
    strides, places : tuple of int
        For each axis the distances of elements in memory and between positions, in elements.
    way : Way
        How to go about it.
    """
    axes, windows, pooled = axes_of(plan, order, strides, places)
    passes = [j for j, own in enumerate(pooled) if own]
    if not way.rows_first:
        passes.sort(key=lambda j: -windows[j].axis)
    share = shares(windows, tuple(passes), way.itemsize, not way.direct)
    parts = [_cut(*three) for three in zip(windows, [way] * len(axes), share, strict=True)]
    while math.prod(len(own.kinds) for own in parts) > KINDS:
        j = max(range(len(axes)), key=lambda j: len(parts[j].kinds))
        share[j] *= 2
        parts[j] = _cut(windows[j], way, share[j])
    # Windows slide over the axis of the first pass fastest: what neighbouring tiles share is still in the cache.
    turns = [*passes, *(j for j in reversed(range(len(axes))) if j not in passes)]
    extent = [max(kind.span.length for kind in own.kinds) for own in parts]
    room = math.prod(extent)
    for j in passes:
        count = max(kind.span.count for kind in parts[j].kinds)
        room = max(room, math.prod([*extent[:j], max(extent[j], count), *extent[j + 1 :]]))
        extent[j] = count
    finish = way.finish or any(not np.all(kind.taking) for own in parts for kind in own.kinds)
    tables: list[Ints] = [np.zeros(0, dtype=np.int64)]
    code: list[list[int]] = []
    ends = [0]
    for kinds in product(*(own.kinds for own in parts)):
        code += tile_code(kinds, axes, passes, room, tables, direct=way.direct, finish=finish, additive=way.additive)
        ends.append(len(code))
    return Program(
        axes,
        parts,
        turns,
        np.array(code, dtype=np.int64).reshape(-1, COLUMNS),
        np.array(ends, dtype=np.int64),
        np.concatenate(tables),
        # Memory is counted from its lowest element, which is not the first where an axis runs backwards.
        -sum((n - 1) * step for n, step in zip(plan.input_shape, strides, strict=True) if step < 0),
        math.prod(own.count for own in parts),
        room,
    )
