"""A pooling problem as integers: for each pooled axis, which source positions each window covers.

A plan holds no array data and knows no array library; NumPy serves here for integer tables alone. Every kind of window
(sliding, padded in any mode, intervals) is a way to fill one table an axis, and nothing after the plan knows which was
used. A plan stays small at any size: tables are made only where an engine asks for them, and by rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import arguments
from .padding import IGNORED, MODES

Ints = NDArray[np.int64]
# Far above any array, far below where a product of two steps would leave int64.
FAR = 2**62


class Run(NamedTuple):
    """Positions ``begin <= p < end`` of the padded axis that stand for ``source + step * (p - begin)``.

    A negative `source` is no coordinate but a cell: `IGNORED` or `FILL`, with a `step` of 0.
    """

    begin: int
    end: int
    source: int
    step: int


@dataclass(frozen=True)
class AxisWindows:
    """The windows along one axis: a row of cells for each output position.

    Window ``o`` covers the positions ``start + o * stride + c * dilation`` of the padded axis, ``c < kernel``, or, with
    `intervals`, the positions of its interval. A cell is the source coordinate of such a position, `IGNORED` or `FILL`.

    Attributes
    ----------
    axis, size : int
        The axis of the array, and its length.
    count, kernel : int
        The number of windows, and the number of cells of the longest.
    start, stride, dilation : int
        Of a regular axis, in elements.
    before, after : int
        The padding; negative padding crops.
    mode : str
        The canonical padding mode.
    intervals : tuple of (int, int) or None
        The windows of an irregular axis, as half-open intervals.
    """

    axis: int
    size: int
    count: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    mode: str = "ignore"
    intervals: tuple[tuple[int, int], ...] | None = None

    @property
    def start(self) -> int:
        """The padded position at which the first window starts."""
        return -self.before

    @cached_property
    def real(self) -> tuple[int, int]:
        """The half-open range of coordinates that cropping leaves."""
        return max(0, -self.before), self.size - max(0, -self.after)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The half-open range of positions of the padded axis; those past it take no part."""
        return -self.before, self.size + self.after

    @cached_property
    def reach(self) -> int:
        """The number of leading cells of a window that can lie inside the padded axis."""
        if self.intervals is not None:
            return self.kernel
        return max(min(self.kernel, (self.extent[1] - 1 - self.start) // self.dilation + 1), 0)

    def starts(self, begin: int = 0, end: int | None = None) -> Ints:
        """Return the padded position of the first cell of each window ``begin <= o < end``."""
        end = self.count if end is None else end
        if self.intervals is not None:
            return np.array([start for start, _ in self.intervals[begin:end]], dtype=np.int64)
        return self.start + np.arange(begin, end, dtype=np.int64) * min(self.stride, FAR)

    def lengths(self, begin: int = 0, end: int | None = None) -> Ints:
        """Return the number of cells of each window, without those past the padded axis in every window."""
        end = self.count if end is None else end
        if self.intervals is not None:
            return np.array([stop - start for start, stop in self.intervals[begin:end]], dtype=np.int64)
        return np.full(end - begin, self.reach, dtype=np.int64)

    def cells(self, positions: Ints) -> Ints:
        """Return what each position of the padded axis stands for: a coordinate, `IGNORED` or `FILL`."""
        (first, last), (low, high), mode = self.real, self.extent, MODES[self.mode]
        inside = (positions >= first) & (positions < last)
        if mode.fold is None or inside.all() or last <= first:
            padding: Any = mode.cell
        else:
            padding = first + mode.fold(positions - first, last - first)
        return np.where(inside, positions, np.where((positions >= low) & (positions < high), padding, IGNORED))

    def table(self, begin: int = 0, end: int | None = None) -> Ints:
        """Return the cells of the windows ``begin <= o < end``, shape ``(end - begin, kernel)``."""
        starts, lengths = self.starts(begin, end), self.lengths(begin, end)
        column = np.arange(self.kernel, dtype=np.int64)
        # Cells past a window's end get a position that no axis has: the dilation of an unreachable cell may be huge.
        offset = np.minimum(column, max(self.reach - 1, 0)) * min(self.dilation, FAR)
        cells = self.cells(starts[:, None] + offset)
        return np.where(column < lengths[:, None], cells, IGNORED)

    def runs(self, begin: int, end: int) -> Iterator[Run]:
        """Yield the positions ``begin <= p < end`` of the padded axis as the fewest affine pieces, in order."""
        (first, last), (low, high) = self.real, self.extent
        bounds = sorted({begin, end, *(b for b in (low, first, last, high) if begin < b < end)})
        for p0, p1 in itertools.pairwise(bounds):
            if first <= p0 and p1 <= last:
                yield Run(p0, p1, p0, 1)
                continue
            cells = self.cells(np.arange(p0, p1, dtype=np.int64))
            # A piece ends where the step to the next cell changes; cells that are no coordinates have step 0.
            steps = np.diff(cells)
            at = 0
            while at < len(cells):
                step = int(steps[at]) if at < len(steps) else 0
                if cells[at] < 0 or abs(step) > 1 or cells[at] + step < 0:
                    step = 0
                stop = at + 1
                while stop < len(cells) and cells[stop] - cells[stop - 1] == step:
                    stop += 1
                yield Run(p0 + at, p0 + stop, int(cells[at]), step)
                at = stop

    def _count(self, low: int, high: int) -> Ints:
        starts, lengths = self.starts(), self.lengths()
        first = np.clip(-((starts - low) // self.dilation), 0, lengths)
        return np.clip(-((starts - high) // self.dilation), 0, lengths) - first

    @cached_property
    def taking_part(self) -> Ints:
        """The number of cells of each window that are not `IGNORED`."""
        mode = MODES[self.mode]
        return self._count(*(self.real if mode.fold is None and mode.cell == IGNORED else self.extent))

    @cached_property
    def covered(self) -> Ints:
        """The number of cells of each window that are coordinates of the array."""
        return self._count(*(self.extent if MODES[self.mode].fold else self.real))

    def describe(self) -> str:
        """Return one line about this axis."""
        if self.intervals is not None:
            return f"axis {self.axis}: {self.size} -> {self.count}, intervals of up to {self.kernel}"
        line = f"axis {self.axis}: {self.size} -> {self.count}, kernel {self.kernel}, stride {self.stride}"
        if self.dilation != 1:
            line += f", dilation {self.dilation}"
        if self.before or self.after:
            line += f", padding ({self.before}, {self.after}) {self.mode}"
        return line


@dataclass(frozen=True, repr=False)
class WindowPlan:
    """What a pooling call does, as integers: frozen, hashable, printable, for any array of one shape.

    Make one with `sliding` or `intervals`; `ndpool.pool` applies it.

    Attributes
    ----------
    input_shape : tuple of int
        The shape of the arrays that this plan is for.
    windows : tuple of AxisWindows
        One for each pooled axis, in the order in which the axes were given.

    Examples
    --------
    >>> import ndpool as ndp
    >>> plan = ndp.WindowPlan.sliding((2, 9, 6), kernel_size=(3, 2), axes=(1, 2), padding=((1, 0), 0))
    >>> plan.output_shape
    (2, 3, 3)
    >>> plan.tables()[0]
    array([[-1,  0,  1],
           [ 2,  3,  4],
           [ 5,  6,  7]])
    """

    input_shape: tuple[int, ...]
    windows: tuple[AxisWindows, ...]

    @classmethod
    def sliding(
        cls,
        shape: Sequence[int],
        kernel_size: int | Sequence[int],
        *,
        axes: int | Sequence[int] | None = None,
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        padding_mode: str | Sequence[str] = "ignore",
    ) -> WindowPlan:
        """Make the plan of a sliding window.

        Parameters
        ----------
        shape : sequence of int
            The shape of the array.
        kernel_size : int or sequence of int
            The number of elements of a window, for every pooled axis or one entry an axis.
        axes : int, sequence of int or None
            The pooled axes, in any order, negative ones allowed; entries of the other arguments go with them in this
            order. `None`: the last ``len(kernel_size)`` axes, or every axis where `kernel_size` is an int.
        stride : int, sequence of int or None
            The distance between windows; `None` is `kernel_size`.
        padding : int, str or sequence
            An int, or an entry an axis, each an int, a ``(before, after)`` pair, ``"valid"``, ``"same"`` (the odd
            element after) or ``"same_lower"`` (before). Negative padding crops. A pair for one axis alone is written
            ``((before, after),)``.
        dilation : int or sequence of int
            The distance between the elements of a window.
        ceil_mode : bool
            Whether a last, incomplete window counts (PyTorch's rule).
        padding_mode : str or sequence of str
            What padding is, for all axes or one entry an axis: ``"ignore"``, ``"constant"``, ``"zeros"``, ``"edge"``,
            ``"reflect"``, ``"symmetric"``, ``"wrap"`` or an alias.

        Raises
        ------
        TypeError, ValueError
            Naming the argument, the axis, the value and what is allowed.
        """
        sizes = arguments.shape_of(shape)
        ceil = arguments.flag("ceil_mode", ceil_mode)
        records = arguments.sliding_arguments(sizes, kernel_size, axes, stride, padding, dilation, padding_mode)
        windows = []
        for args in records:
            count = arguments.output_length(sizes[args.axis], args, ceil)
            window = AxisWindows(
                args.axis,
                sizes[args.axis],
                count,
                args.kernel,
                args.stride,
                args.dilation,
                args.before,
                args.after,
                args.mode,
            )
            (first, last), (low, high) = window.real, window.extent
            if MODES[args.mode].fold and last <= first and low < high:
                raise arguments.nothing_to_fold(args)
            windows.append(window)
        return cls(sizes, tuple(windows))

    @classmethod
    def intervals(cls, shape: Sequence[int], intervals: Mapping[int, Sequence[tuple[int, int]]]) -> WindowPlan:
        """Make a plan of any windows: for each axis, its half-open intervals in the order of the output.

        Parameters
        ----------
        shape : sequence of int
            The shape of the array.
        intervals : mapping of int to sequence of (int, int)
            For each pooled axis the ``(start, stop)`` of every window, ``0 <= start <= stop <= shape[axis]``; windows
            may overlap, leave gaps, stand in any order and be empty.

        Raises
        ------
        TypeError, ValueError
            Naming the axis, the interval and what is allowed.

        Examples
        --------
        >>> import ndpool as ndp
        >>> plan = ndp.WindowPlan.intervals((4, 6), {1: [(0, 1), (1, 3), (3, 6)]})
        >>> plan.output_shape, plan.kernel_shape
        ((4, 3), (3,))
        """
        sizes = arguments.shape_of(shape)
        windows = tuple(
            AxisWindows(
                axis, sizes[axis], len(rows), max((stop - start for start, stop in rows), default=0), intervals=rows
            )
            for axis, rows in arguments.intervals_of(sizes, intervals).items()
        )
        return cls(sizes, windows)

    @property
    def axes(self) -> tuple[int, ...]:
        """The pooled axes, non-negative, in the order in which they were given."""
        return tuple(window.axis for window in self.windows)

    @cached_property
    def ascending(self) -> tuple[AxisWindows, ...]:
        """The windows in ascending axis order, which is the order of C."""
        return tuple(sorted(self.windows, key=lambda window: window.axis))

    @cached_property
    def kernel_shape(self) -> tuple[int, ...]:
        """The longest window of each pooled axis, in ascending axis order."""
        return tuple(window.kernel for window in self.ascending)

    @cached_property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        shape = list(self.input_shape)
        for window in self.windows:
            shape[window.axis] = window.count
        return tuple(shape)

    @cached_property
    def _hash(self) -> int:
        return hash((self.input_shape, self.windows))

    def __hash__(self) -> int:
        return self._hash  # a plan is the key of every cache, and its fields are nested tuples

    def tables(self) -> tuple[Ints, ...]:
        """Return, for each pooled axis in the order of `axes`, the cells of its windows.

        Returns
        -------
        tuple of array of int64, shape ``(output length, kernel)``
            A row for each output position: source coordinates in window order, -1 for a position that takes no part,
            -2 for an element of the value ``fill_value``.
        """
        return tuple(window.table() for window in self.windows)

    def describe(self) -> str:
        """Return what this plan does, in words and numbers."""
        pooled = "\n".join(f"  {window.describe()}" for window in self.windows) or "  no axis is pooled"
        elements = math.prod(self.kernel_shape)
        return (
            f"WindowPlan {self.input_shape} -> {self.output_shape}, "
            f"windows of up to {elements} element{'s' * (elements != 1)}\n{pooled}"
        )

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


@lru_cache(maxsize=1024, typed=True)
def _cached_sliding(shape: tuple[int, ...], *args: Any) -> WindowPlan:
    kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode = args
    return WindowPlan.sliding(
        shape,
        kernel_size,
        axes=axes,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        padding_mode=padding_mode,
    )


def sliding_plan(shape: tuple[int, ...], *args: Any) -> WindowPlan:
    """Return the plan of a sliding window, from a cache where the arguments can be a key."""
    try:
        return _cached_sliding(shape, *args)
    except TypeError:
        # An unhashable argument (a list), or a real type error, which is raised again here with its words.
        return _cached_sliding.__wrapped__(shape, *args)
