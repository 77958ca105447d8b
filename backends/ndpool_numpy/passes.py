"""Reduces one axis of a tile: cell by cell, by doubling, or by a tree, whichever is the least work.

A pass sees states (see `algebra`) whose axis holds the local positions of a `Span`, and gives states with one entry for
each window there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ndpool.plan import Ints

from .algebra import Algebra, State
from .costs import BYTE, CALL, STRIDED, cheapest, traits
from .tiles import Span


def cut(state: State, axis: int, part: slice) -> State:
    """Return a slice of every part of a state."""
    index = (slice(None),) * axis + (part,)
    return tuple(None if a is None else a[index] for a in state)


def reduce_axis(
    algebra: Algebra, state: State, axis: int, span: Span, weight: int, region: str, out: State | None = None
) -> State:
    """Reduce one axis.

    Parameters
    ----------
    algebra : Algebra
        What to do.
    state : State
        Of ``span.length`` entries along `axis`; not changed.
    axis : int
        The axis, in memory order.
    span : Span
        The windows.
    weight : int
        How far one cell on this axis moves a code.
    region : str
        Where in the scratch the result may be.
    out : State or None
        Where the result must be, if not there.

    Returns
    -------
    State
        `out`, or a state in the scratch; the input itself where there is nothing to do.
    """
    if span.kernel == 1 and span.starts is None and out is None:
        return state
    if out is None:
        algebra.scratch.reset(region)
        out = algebra.empty(region, _resized(state, axis, span.count))
    if span.starts is not None and span.lengths is not None:
        _irregular(algebra, state, axis, span.starts, span.lengths, weight, out)
    elif span.kernel == 1:
        algebra.copy(out, state)
    else:
        _regular(algebra, state, axis, span, weight, out)
    return out


def _resized(state: State, axis: int, count: int) -> tuple[int, ...]:
    shape = state[0].shape
    return (*shape[:axis], count, *shape[axis + 1 :])


def _regular(algebra: Algebra, state: State, axis: int, span: Span, weight: int, out: State) -> None:
    value = state[0]
    shape = (span.length, span.count, span.kernel, span.stride, span.dilation)
    rest = max(value.size // max(span.length, 1), 1)
    name, _ = cheapest(shape, rest, axis == value.ndim - 1, value.itemsize, traits(algebra))
    if name == "tree":
        _tree(algebra, state, axis, span, weight, out)
    elif name == "doubling":
        _doubling(algebra, state, axis, span, weight, out)
    elif name == "columns":
        _columns(algebra, state, axis, span, weight, out, span.stride)
    else:
        algebra.scratch.reset("left")
        every = algebra.empty("left", _resized(state, axis, (span.count - 1) * span.stride + 1))
        _columns(algebra, state, axis, span, weight, every, 1)
        algebra.copy(out, cut(every, axis, slice(None, None, span.stride)))


def _columns(algebra: Algebra, state: State, axis: int, span: Span, weight: int, out: State, stride: int) -> None:
    """Combine cell 0 of all windows with cell 1, and so on."""
    reach = (out[0].shape[axis] - 1) * stride + 1

    def cell(c: int) -> State:
        return cut(state, axis, slice(c * span.dilation, c * span.dilation + reach, stride))

    algebra.combine(out, cell(0), cell(1), weight)
    for c in range(2, span.kernel):
        algebra.combine(out, out, cell(c), c * weight)


def _widened(algebra: Algebra, state: State, axis: int, m: int, dilation: int, weight: int) -> State:
    """Make blocks of ``2 * m`` cells out of blocks of `m` at all positions."""
    region = "left" if m.bit_length() % 2 else "right"
    blocks = state[0].shape[axis] - m * dilation
    algebra.scratch.reset(region)
    wider = algebra.empty(region, _resized(state, axis, blocks))
    low, high = cut(state, axis, slice(blocks)), cut(state, axis, slice(m * dilation, None))
    algebra.combine(wider, low, high, m * weight)
    return wider


def _doubling(algebra: Algebra, state: State, axis: int, span: Span, weight: int, out: State) -> None:
    """Make blocks of 2, 4, 8, … cells at every position, and each window of the blocks that its length asks for."""
    kernel, reach = span.kernel, (span.count - 1) * span.stride + 1
    parts = [(1 << bit, kernel & ((1 << bit) - 1)) for bit in range(kernel.bit_length()) if kernel >> bit & 1]
    if algebra.idempotent or len(parts) == 1:
        half = 1 << ((kernel - 1).bit_length() - 1)  # two blocks, which may overlap
        parts = [(half, 0), (half, kernel - half)]
    held, m = None, 1
    while True:
        for offset in (offset for size, offset in parts if size == m):
            part = cut(state, axis, slice(offset * span.dilation, offset * span.dilation + reach, span.stride))
            if held is not None:
                algebra.combine(out, held, part, offset * weight)
            held = part if held is None else out
        if m == parts[-1][0]:
            return
        if held is not None and held is not out and m > 1:
            algebra.copy(out, held)  # before the blocks that it is a view of are overwritten
            held = out
        state, m = _widened(algebra, state, axis, m, span.dilation, weight), 2 * m


def _windows(state: State, axis: int, span: Span) -> State:
    """Return views with the windows on `axis` and their cells on the next."""

    def view(a: Any) -> Any:
        if a is None:
            return None
        step = a.strides[axis]
        shape = (*a.shape[:axis], span.count, span.kernel, *a.shape[axis + 1 :])
        strides = (*a.strides[:axis], span.stride * step, span.dilation * step, *a.strides[axis + 1 :])
        return as_strided(a, shape, strides, writeable=False)

    return tuple(map(view, state))


def _tree(algebra: Algebra, state: State, axis: int, span: Span, weight: int, out: State) -> None:
    """Halve each window again and again."""
    state, axis, width, level = _windows(state, axis, span), axis + 1, 1, 0
    while (cells := state[0].shape[axis]) > 2:
        half, region = (cells + 1) // 2, ("left", "right")[level % 2]
        algebra.scratch.reset(region)
        fewer = algebra.empty(region, _resized(state, axis, half))
        if algebra.ordered:  # neighbours, and the odd one at the end
            low, high = cut(state, axis, slice(0, cells - 1, 2)), cut(state, axis, slice(1, cells, 2))
        else:  # the first and the second half, and the odd one in the middle
            low, high = cut(state, axis, slice(cells - half)), cut(state, axis, slice(half, cells))
        algebra.combine(cut(fewer, axis, slice(cells - half)), low, high, width * weight)
        if cells % 2:
            odd = cells - 1 if algebra.ordered else half - 1
            algebra.copy(cut(fewer, axis, slice(half - 1, half)), cut(state, axis, slice(odd, odd + 1)))
        state, width, level = fewer, 2 * width, level + 1
    first, last = (tuple(None if a is None else a[(slice(None),) * axis + (i,)] for a in state) for i in (0, 1))
    algebra.combine(out, first, last, width * weight)


def _irregular(algebra: Algebra, state: State, axis: int, starts: Ints, lengths: Ints, weight: int, out: State) -> None:
    """Windows of any starts and lengths: one after another where they are long, else by blocks for all of them."""
    length, longest = state[0].shape[axis], int(lengths.max())
    rest = max(state[0].size // length, 1)
    dense, call, levels = rest * state[0].itemsize * BYTE, CALL * algebra.calls, longest.bit_length()
    singly = int(lengths.sum()) * dense + len(starts) * levels * call
    if singly > levels * (length * dense + 5 * call + len(starts) * rest * STRIDED):
        _blocks(algebra, state, axis, starts, lengths, weight, out)
        return
    for o, (start, kernel) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        here = cut(out, axis, slice(o, o + 1))
        if kernel == 0:
            _clear(here)
        else:
            window = Span(0, 1, kernel, 1, kernel, 1, 1, 0, ())
            reduce_axis(algebra, cut(state, axis, slice(start, start + kernel)), axis, window, weight, "", here)


def _clear(state: State) -> None:
    for a in state:
        a[...] = 0


def _blocks(algebra: Algebra, state: State, axis: int, starts: Ints, lengths: Ints, weight: int, out: State) -> None:
    """Make blocks as `_doubling` does; each window takes those in its length, from left to right."""
    _clear(out)
    begun = np.zeros(len(starts), dtype=bool)
    along = tuple(-1 if a == axis else 1 for a in range(state[0].ndim))
    m = 1
    while True:
        offset, takes = lengths & (m - 1), lengths & m != 0
        for rows in (np.flatnonzero(takes & ~begun), np.flatnonzero(takes & begun)):
            if not len(rows):
                continue
            part = tuple(None if a is None else a.take(starts[rows] + offset[rows], axis) for a in state)
            index = (slice(None),) * axis + (rows,)
            if begun[rows[0]]:
                before = tuple(a[index] for a in out)
                algebra.combine(before, before, part, (offset[rows] * weight).reshape(along))
                part = before
            for a, new in zip(out, part, strict=True):
                a[index] = 0 if new is None else new
        begun |= takes
        if m * 2 > lengths.max():
            return
        state, m = _widened(algebra, state, axis, m, 1, weight), 2 * m
