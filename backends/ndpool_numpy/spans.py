"""One axis of a tile: what it reads there, and the windows over it.

Pure integers. *Positions* ``0 <= i < length`` are local: each is a padded position of the plan, and so a coordinate of
the array or no element at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ndpool.padding import FILL, IGNORED, MODES
from ndpool.plan import AxisWindows, Ints, Run

_FAR = 2**62


def _slice(start: int, step: int, count: int) -> slice:
    """Return the slice of an affine run; one element, to be repeated, where `step` is 0."""
    if step == 0:
        return slice(start, start + 1)
    stop = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)


@dataclass(frozen=True, eq=False)
class Span:
    """What a tile reads on one axis, and the windows over it.

    Attributes
    ----------
    first, step, length : int
        Local position ``i < length`` is the padded position ``first + i * step``.
    count, kernel, stride, dilation : int
        Window ``o < count`` covers the local positions ``o * stride + c * dilation``, ``c < kernel``.
    cell : int
        Which cell of the plan's windows is cell 0 here.
    runs : tuple of Run
        What the local positions stand for: affine pieces, in order, that leave no gap.
    starts, lengths : array of int64 or None
        Of irregular windows: window ``o`` covers ``starts[o] <= i < starts[o] + lengths[o]``.
    """

    first: int
    step: int
    length: int
    count: int
    kernel: int
    stride: int
    dilation: int
    cell: int
    runs: tuple[Run, ...]
    starts: Ints | None = None
    lengths: Ints | None = None

    @cached_property
    def direct(self) -> bool:
        """Whether the positions are a slice of the array."""
        return len(self.runs) == 1 and self.runs[0].source >= 0 and self.runs[0].step > 0

    @cached_property
    def affine(self) -> bool:
        """Whether the positions are evenly spaced coordinates of the array, in either direction or all one."""
        return len(self.runs) == 1 and self.runs[0].source >= 0

    @cached_property
    def reads(self) -> list[tuple[slice, slice]]:
        """Coordinates of the array, and the local positions where they belong; the longest run first."""
        runs = sorted((run for run in self.runs if run.source >= 0), key=lambda run: run.begin - run.end)
        return [(_slice(run.source, run.step, run.end - run.begin), slice(run.begin, run.end)) for run in runs]

    @cached_property
    def fills(self) -> list[tuple[int, slice]]:
        """Cells that are no coordinates, and the local positions where they belong."""
        return [(run.source, slice(run.begin, run.end)) for run in self.runs if run.source < 0]

    @cached_property
    def copies(self) -> list[tuple[slice, slice]] | None:
        """Local positions, and where they are needed once more: all reads but the first. `None` where that won't do."""
        runs = sorted((run for run in self.runs if run.source >= 0), key=lambda run: run.begin - run.end)
        if not runs or (runs[0].step < 1 and len(runs) > 1):
            return None
        main, *others = runs
        result = []
        for run in others:
            ends = run.source, run.source + run.step * (run.end - run.begin - 1)
            inside = all(main.source <= end < main.source + main.step * (main.end - main.begin) for end in ends)
            if not inside or (run.source - main.source) % main.step or run.step % main.step:
                return None
            at = main.begin + (run.source - main.source) // main.step
            result.append((_slice(at, run.step // main.step, run.end - run.begin), slice(run.begin, run.end)))
        return result


def _difference(low: Ints, high: Ints) -> int | Ints:
    if not any(low.strides) and not any(high.strides):
        return max(int(high[0] - low[0]), 0)
    counts = np.maximum(high - low, 0)
    return int(counts[0]) if (counts == counts[0]).all() else counts


@dataclass(frozen=True, eq=False)
class Piece:
    """The outputs ``begin <= o < end`` of one axis.

    Attributes
    ----------
    bounds : tuple of int
        The range of padded positions that take part.
    chunks : tuple of Span
        The parts of the windows, nearly always one.
    """

    window: AxisWindows
    begin: int
    end: int
    bounds: tuple[int, int]
    chunks: tuple[Span, ...]

    @cached_property
    def taking(self) -> int | Ints:
        """How many cells of each window take part; an int where all are equal."""
        return _difference(*self.limits)

    @cached_property
    def covered(self) -> int | Ints:
        """How many cells of each window are elements of the array; an int where all are equal."""
        fold = MODES[self.window.mode].fold
        return _difference(*self.inside(self.window.extent if fold else self.window.real))

    @cached_property
    def limits(self) -> tuple[Ints, Ints]:
        """For each window the first cell that takes part, and the end of those that do."""
        return self.inside(self.bounds)

    @cached_property
    def whole(self) -> tuple[bool, bool]:
        """Whether the first cell of every window takes part, and whether the last one does."""
        low, high = self.limits
        lengths: int | Ints = self.window.reach
        if self.window.intervals is not None:
            lengths = self.window.lengths(self.begin, self.end)
        return not low.any(), bool(np.all(high == lengths))

    @cached_property
    def empty(self) -> Ints | None:
        """The windows in which nothing takes part."""
        if isinstance(self.taking, int) and self.taking:
            return None
        empty = np.flatnonzero(np.broadcast_to(self.taking == 0, self.end - self.begin))
        return empty if len(empty) else None

    @property
    def starts(self) -> Ints:
        """The padded position of the first cell of each window."""
        return self.window.starts(self.begin, self.end)

    def inside(self, bounds: tuple[int, int]) -> tuple[Ints, Ints]:
        """Return for each window how many of its cells come before `bounds`, and how many before their end."""
        window, step, count = self.window, min(self.window.dilation, _FAR), self.end - self.begin
        if window.intervals is None:
            first = window.start + self.begin * window.stride
            last = first + (count - 1) * window.stride + (window.reach - 1) * step
            if bounds[0] <= first and last < bounds[1]:  # nearly every piece: no table of its own
                return np.broadcast_to(np.int64(0), count), np.broadcast_to(np.int64(window.reach), count)
        lengths = window.lengths(self.begin, self.end)
        low, high = (np.clip(-((self.starts - bound) // step), 0, lengths) for bound in bounds)
        return low, high


@dataclass(frozen=True)
class Borders:
    """How positions that are no elements of the array are to be read.

    Attributes
    ----------
    fill : bool
        Whether fill elements take part.
    nearest : bool
        Whether a position that takes no part stands for the nearest one that does and that every window which covers
        the first covers as well. The largest element of a window is not changed by that, nor where it first is.
    """

    fill: bool
    nearest: bool

    def bounds(self, window: AxisWindows) -> tuple[int, int]:
        """Return the range of padded positions that take part."""
        mode = MODES[window.mode]
        return window.extent if mode.fold or (mode.cell == FILL and self.fill) else window.real

    def cells(self, window: AxisWindows, positions: Ints) -> Ints:
        """Return what padded positions stand for."""
        (low, high), step = self.bounds(window), min(window.dilation, _FAR)
        if self.nearest and low < high:
            positions = np.where(positions < low, low + (positions - low) % step, positions)
            positions = np.where(positions < high, positions, high - 1 - (high - 1 - positions) % step)
        cells = window.cells(positions)
        return np.where((cells == FILL) & (not self.fill), IGNORED, cells)


# ---- making them -----------------------------------------------------------------------------------------------------


def _affine(cells: Ints, begin: int) -> Iterator[Run]:
    """Yield the affine pieces of `cells`, which stand at the positions from `begin` on."""
    steps, odd = np.diff(cells), _FAR
    apart = (cells[1:] < 0) | (cells[:-1] < 0)
    steps[apart & (steps != 0)] = odd
    turns = np.append(np.flatnonzero(np.diff(steps)) + 1, len(steps))
    at = 0
    while at < len(cells):
        last = int(turns[np.searchsorted(turns, at, "right")]) if at < len(steps) else at
        step = int(steps[at]) if at < len(steps) else 0
        if step == odd:
            last, step = at, 0
        yield Run(begin + at, begin + last + 1, int(cells[at]), step)
        at = last + 1


def _runs(window: AxisWindows, borders: Borders, first: int, step: int, length: int) -> tuple[Run, ...]:
    begin, end = (min(max(-((first - bound) // step), 0), length) for bound in window.real)
    end = max(begin, end)
    before, after = (first + step * np.arange(*pair, dtype=np.int64) for pair in ((0, begin), (end, length)))
    inside = [Run(begin, end, first + begin * step, step)] if begin < end else []
    parts = (_affine(borders.cells(window, before), 0), inside, _affine(borders.cells(window, after), end))
    return tuple(itertools.chain(*parts))


def _span(window: AxisWindows, borders: Borders, begin: int, end: int, cells: tuple[int, int]) -> Span:
    """Describe the `cells` of the windows ``begin <= o < end``."""
    count, kernel = end - begin, cells[1] - cells[0]
    stride, dilation = min(window.stride, _FAR), min(window.dilation, _FAR)
    first = window.start + begin * stride
    if window.intervals is not None:
        starts, lengths = window.starts(begin, end), window.lengths(begin, end)
        stride, first = int(starts[1] - starts[0]) if count > 1 else 1, int(starts[0])
        if stride < 1 or (lengths != lengths[0]).any() or (np.diff(starts) != stride).any() or not lengths[0]:
            first = int(starts.min())
            length = max(int((starts + lengths).max()) - first, 1)
            runs = _runs(window, borders, first, 1, length)
            return Span(first, 1, length, count, int(lengths.max()), 1, 1, 0, runs, starts - first, lengths)
    first += cells[0] * dilation
    # Only every `step`-th position is read: windows and cells that are there but once have no distance.
    step = math.gcd(stride if count > 1 else 0, dilation if kernel > 1 else 0) or 1
    stride, dilation = (stride // step if count > 1 else 1), (dilation // step if kernel > 1 else 1)
    length = (count - 1) * stride + (kernel - 1) * dilation + 1
    runs = _runs(window, borders, first, step, length)
    return Span(first, step, length, count, kernel, stride, dilation, cells[0], runs)


def parts_of(total: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut a range into nearly equal parts."""
    parts = -(-total // most)
    return itertools.pairwise(total * i // parts for i in range(parts + 1))


def piece_of(window: AxisWindows, borders: Borders, begin: int, end: int, part: int) -> Piece:
    """Describe the windows ``begin <= o < end``, read `part` cells at a time."""
    cells = window.reach if window.intervals is None else int(window.lengths(begin, end).max())
    chunks = tuple(_span(window, borders, begin, end, pair) for pair in parts_of(max(cells, 1), part))
    return Piece(window, begin, end, borders.bounds(window), chunks)
