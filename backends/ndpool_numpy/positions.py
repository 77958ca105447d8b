"""From the code of a winner, its place inside a window, to its position in the array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool.indices import linear
from ndpool.padding import FILL, MODES
from ndpool.plan import Ints, WindowPlan

from .boxes import Call
from .scratch import Scratch
from .tiles import Borders, Piece, Tile

Array = NDArray[Any]
_FAR = 2**62
_LARGE = 1 << 18


def weights(plan: WindowPlan) -> dict[int, int]:
    """Return, for each pooled axis, how far one cell on it moves a code."""
    result, weight = {}, 1
    for window in reversed(plan.ascending):
        result[window.axis] = weight
        weight *= window.kernel
    return result


def _along(values: Ints, axis: int, ndim: int) -> Ints:
    return values.reshape(tuple(-1 if a == axis else 1 for a in range(ndim)))


class Decoder:
    """Turns codes into positions, tile by tile.

    Parameters
    ----------
    plan : WindowPlan
        The windows.
    order : tuple of int
        The axes of the user's array in memory order.
    borders : Borders
        How positions outside the array were read.
    encoding : str
        ``"flat"`` or ``"plane"``.
    """

    def __init__(self, plan: WindowPlan, order: tuple[int, ...], borders: Borders, encoding: str) -> None:
        self.borders = borders
        self.steps = [linear(plan, encoding)[axis] for axis in order]
        place = weights(plan)
        # The axes that have a choice, in C order, so that what is left of a code gets smaller and smaller.
        chosen = [window for window in plan.ascending if window.reach > 1]
        self.axes = [(order.index(window.axis), place[window.axis], min(window.dilation, _FAR)) for window in chosen]
        far = sum((w.reach - 1) * a[2] * self.steps[a[0]] for w, a in zip(chosen, self.axes, strict=True))
        self.dtype = np.min_scalar_type(far)
        # Positions that are read elsewhere, or are fill elements, are no affine function of the cell.
        self.folded = [
            axis
            for axis, window in ((order.index(window.axis), window) for window in plan.windows)
            if MODES[window.mode].fold or (MODES[window.mode].cell == FILL and borders.fill)
        ]

    def __call__(self, call: Call, code: Array | None, tile: Tile, out: Ints) -> None:
        """Write the positions of a tile; `code` is `None` where all codes are 0."""
        call.scratch.reset("digits")
        digits = {} if code is None else self._digits(call.scratch, code, tile.pieces)
        self._plain(call, digits, tile.pieces, out)
        for axis in self.folded:
            for part in _strips(tile.pieces[axis]):
                self._general(digits, tile.pieces, axis, part, out)

    def _digits(self, scratch: Scratch, code: Array, pieces: tuple[Piece, ...]) -> dict[int, Array]:
        """Return which cell won on each axis: one that takes part, where others stood for it."""

        def new() -> Array:
            return scratch.take("digits", code.shape, code.dtype)

        digits, rest = {}, code
        for axis, weight, _ in self.axes:
            digit = rest
            if weight > 1:
                digit = np.floor_divide(rest, weight, out=new())
                rest = np.subtract(rest, np.multiply(digit, weight, out=new()), out=new())
            piece = pieces[axis]
            (low, high), (first, last) = piece.limits, piece.whole
            if not first:
                low = low.clip(0, piece.window.reach - 1)
                digit = np.maximum(digit, _along(low, axis, digit.ndim).astype(digit.dtype), out=new())
            if not last:
                digit = np.minimum(digit, _along((high - 1).clip(0), axis, digit.ndim).astype(digit.dtype), out=new())
            digits[axis] = digit
        return digits

    def _grid(self, pieces: tuple[Piece | None, ...]) -> Ints:
        grid: Any = np.zeros((1,) * len(pieces), dtype=np.int64)
        for axis, (piece, step) in enumerate(zip(pieces, self.steps, strict=True)):
            if piece is not None and step:
                grid = grid + _along(piece.starts * step, axis, len(pieces))
        return np.asarray(grid)

    def _plain(self, call: Call, digits: dict[int, Array], pieces: tuple[Piece, ...], out: Ints) -> None:
        """Windows that lie inside the array, or that others stand for."""
        several = tuple(piece if piece.end - piece.begin > 1 else None for piece in pieces)
        # The tiles of one call are alike but for batch axes; a very large one has no second of its kind.
        grid = self._grid(several) if out.size > _LARGE else call.once(several, lambda: self._grid(several))
        single = ((piece, step) for piece, step in zip(pieces, self.steps, strict=True) if piece not in several)
        alone = sum(piece.chunks[0].first * step for piece, step in single)
        offset: Any = None
        for axis, _, dilation in self.axes:
            if axis in digits and self.steps[axis]:
                moved = call.scratch.take("digits", out.shape, self.dtype)
                np.multiply(digits[axis], dilation * self.steps[axis], out=moved, dtype=self.dtype)
                offset = moved if offset is None else np.add(offset, moved, out=moved)
        if offset is None:
            np.copyto(out, grid)
        else:
            np.add(grid, offset, out=out, casting="unsafe")
        if alone:
            np.add(out, alone, out=out)

    def _general(self, digits: dict[int, Array], pieces: tuple[Piece, ...], along: int, part: slice, out: Ints) -> None:
        """Windows anywhere: the outputs `part` of one axis."""
        index = (slice(None),) * along + (part,)
        dilations = {axis: dilation for axis, _, dilation in self.axes}
        total: Any = np.int64(0)
        outside: Any = False
        for axis, (piece, step) in enumerate(zip(pieces, self.steps, strict=True)):
            cells = _along(piece.starts[part] if axis == along else piece.starts, axis, out.ndim)
            if axis in digits:
                cells = cells + np.multiply(digits[axis][index], dilations[axis], dtype=np.int64)
            cells = self.borders.cells(piece.window, cells)
            outside = outside | (cells < 0)
            total = total + cells * step
        out[index] = np.where(outside, -1, total)


def _strips(piece: Piece) -> list[slice]:
    """Return the outputs of a piece whose windows leave the array."""
    window = piece.window
    low, high = piece.inside(window.real)
    there = np.flatnonzero((low == 0) & (high == window.reach))
    first, last = (int(there[0]), int(there[-1]) + 1) if len(there) else (piece.end - piece.begin,) * 2
    strips = slice(0, first), slice(last, piece.end - piece.begin)
    return [strip for strip in strips if strip.start < strip.stop]
