"""Cuts a plan into tiles: boxes of the output whose windows read few enough elements to stay in the cache.

Pure integers. On each axis of the array, in memory order, the outputs are cut into pieces; a tile is one piece of every
axis. Where a single window is too long, its cells are cut as well, and the engine puts the parts together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ndpool.plan import AxisWindows, WindowPlan

from .spans import Borders, Piece, Span, parts_of, piece_of

__all__ = ["Borders", "Layout", "Piece", "Span", "Tile", "layout"]

# A tile may be this many times larger than wanted before windows that overlap are cut.
_STRETCH = 8
# Outputs to share what two neighbouring tiles both read: this many times the overlap.
_WORTH = 3
# What a tile costs beside the positions that it reads, in positions.
_TILE = 1000


@dataclass(frozen=True, eq=False)
class Tile:
    """One piece of every axis, in memory order."""

    pieces: tuple[Piece, ...]

    @property
    def output(self) -> tuple[slice, ...]:
        """Where the tile's results belong."""
        return tuple(slice(piece.begin, piece.end) for piece in self.pieces)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile's results."""
        return tuple(piece.end - piece.begin for piece in self.pieces)

    def chunks(self) -> Iterator[tuple[Span, ...]]:
        """Yield what to read at a time; the results of several are to be put together."""
        return itertools.product(*(piece.chunks for piece in self.pieces))


@dataclass(frozen=True, eq=False)
class Layout:
    """A plan cut into tiles."""

    pieces: tuple[tuple[Piece, ...], ...]

    def __iter__(self) -> Iterator[Tile]:
        return map(Tile, itertools.product(*self.pieces))


@dataclass(frozen=True)
class _Need:
    """How many positions an axis has for all windows, for as few as are worth a tile, and for one."""

    full: int
    good: int
    one: int = 1
    stride: int = 1
    dilation: int = 1
    overlap: bool = False


def _need(window: AxisWindows) -> _Need:
    if window.intervals is not None:
        one = max(window.kernel, 1)
        overlap = int(window.lengths().sum()) > window.size
        return _Need(max(window.size, 1), one, one, overlap=overlap)
    kernel, stride, dilation = max(window.reach, 1), window.stride, window.dilation
    step = math.gcd(stride if window.count > 1 else 0, dilation if kernel > 1 else 0) or 1
    stride, dilation = (stride // step if window.count > 1 else 1), (dilation // step if kernel > 1 else 1)
    one = (kernel - 1) * dilation + 1
    full = (window.count - 1) * stride + one
    return _Need(full, min(full, one + _WORTH * max(one - stride, 0)), one, stride, dilation, one > stride)


def _shares(needs: list[_Need], limit: int) -> list[int]:
    """Return how many positions of each axis a tile may read."""
    shares = [need.good for need in needs]
    if any(need.overlap for need in needs):
        limit = max(limit, min(math.prod(shares), limit * _STRETCH))
    for axis, share in enumerate(shares):
        # Too many: outer axes give way first, and rows stay long.
        shares[axis] = max(1, min(share, limit // math.prod(shares[:axis] + shares[axis + 1 :])))
    for axis in reversed(range(len(shares))):
        room = limit // math.prod(shares[:axis] + shares[axis + 1 :])
        shares[axis] = max(shares[axis], min(needs[axis].full, room))
    return shares


def _cut(window: AxisWindows, need: _Need, share: int) -> tuple[int, int]:
    """Return how many windows and how many of their cells go into a share of the axis."""
    kernel = max(window.reach, 1)
    whole = min((share - need.one) // need.stride + 1 if share >= need.one else 0, window.count)
    if whole and (whole == window.count or not need.overlap):
        return whole, kernel
    # A single cell has no halo at all; half of each is the best of the rest.
    options = [(whole, kernel)] if whole else []
    half = max(min(kernel, share // 2 // need.dilation + 1), 1)
    if half > 1:
        room = max((share - (half - 1) * need.dilation - 1) // need.stride + 1, 1)
        options.append((min(room, window.count), half))
    options += [(min(share, window.count), 1), (1, min(kernel, share))]

    def work(option: tuple[int, int]) -> float:
        """Return how many positions are read for each window; a tile costs something by itself."""
        windows, cells = option
        read = windows if cells == 1 else cells if windows == 1 else share
        return (read + _TILE) * -(-kernel // cells) / windows

    return min(options, key=work)


def _pieces(window: AxisWindows, borders: Borders, need: _Need, share: int) -> tuple[Piece, ...]:
    if window.intervals is None:
        windows, cells = _cut(window, need, share)
        return tuple(piece_of(window, borders, *pair, cells) for pair in parts_of(window.count, windows))
    pieces, begin = [], 0
    low = high = 0
    for o, (start, stop) in enumerate((*window.intervals, (0, 0))):
        low, high = (start, stop) if o == begin else (min(low, start), max(high, stop))
        if o > begin and (o == window.count or max(high - low, o - begin) > share):
            pieces.append(piece_of(window, borders, begin, o, share))
            begin, low, high = o, start, stop
    return tuple(pieces)


@lru_cache(maxsize=128)
def layout(plan: WindowPlan, order: tuple[int, ...], limit: int, borders: Borders) -> Layout:
    """Cut a plan into tiles that read about `limit` elements.

    Parameters
    ----------
    plan : WindowPlan
        With an output that is not empty.
    order : tuple of int
        The axes of the array, the outermost in memory first.
    limit : int
        Up to eight times as many are read where windows overlap so much that it pays.
    borders : Borders
        How positions outside the array are read.
    """
    pooled = {window.axis: window for window in plan.windows}
    sizes = plan.input_shape
    windows = [pooled.get(axis, AxisWindows(axis, sizes[axis], sizes[axis], 1)) for axis in order]
    needs = [_need(window) for window in windows]
    shares = _shares(needs, limit)
    return Layout(
        tuple(_pieces(w, borders, need, share) for w, need, share in zip(windows, needs, shares, strict=True))
    )
