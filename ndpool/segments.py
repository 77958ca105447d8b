"""An axis's windows turned round: which windows cover each element, as segments.

A segment is a row of evenly spaced pairs of a window and an element in it. The adjoint of a sum over windows adds, for
each pair, the window's value to the element: reading a plan in that direction needs no kind of window to be known.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .padding import MODES
from .plan import FAR, AxisWindows, Ints

# Columns: the first window and the step to the next, how many pairs, the first element and the step to the next.
WINDOW, WINDOW_STEP, LENGTH, SOURCE, SOURCE_STEP = range(5)


def _rows(*columns: Ints | int) -> Ints:
    return np.stack(np.broadcast_arrays(*(np.asarray(column, dtype=np.int64) for column in columns)), axis=-1)


def _singles(window: AxisWindows, outer: Ints, low: Ints, high: Ints, far: int, near: int, by_cell: bool) -> Ints:
    """Return the pairs ``low[u] <= v < high[u]`` in the padding, each a segment of its own."""
    counts = np.maximum(high - low, 0)
    u = np.repeat(np.arange(len(outer), dtype=np.int64), counts)
    v = np.arange(len(u), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts) + low[u]
    source = window.cells(window.start + outer[u] * far + v * near)
    return _rows(v if by_cell else outer[u], 0, 1, source, 0)[source >= 0]


@lru_cache(maxsize=256)
def segments(window: AxisWindows) -> Ints:
    """Return every pair of a window and an element that it covers.

    Parameters
    ----------
    window : AxisWindows
        The windows.

    Returns
    -------
    array of int64, shape ``(n, 5)``
        Pair ``t`` of a segment is the window ``WINDOW + t * WINDOW_STEP`` and the element ``SOURCE + t * SOURCE_STEP``.
        An element that a window covers more than once, by its padding, is in as many pairs.
    """
    if window.intervals is not None:
        starts, lengths = window.starts(), window.lengths()
        table = _rows(np.arange(window.count), 0, lengths, starts, 1)
        return table[table[:, LENGTH] > 0]
    # Along the windows for each cell, or along the cells for each window: whichever makes fewer segments.
    stride, dilation = min(window.stride, FAR), min(window.dilation, FAR)
    by_cell = window.reach <= window.count
    outer, inner, far, near = window.count, window.reach, stride, dilation
    if by_cell:
        outer, inner, far, near = inner, outer, dilation, stride
    u = np.arange(outer, dtype=np.int64)
    first = window.start + u * far
    low, high = (np.clip(-((first - bound) // near), 0, inner) for bound in window.real)
    high = np.maximum(low, high)
    begin = low if by_cell else u
    parts = [_rows(begin, int(by_cell), high - low, first + low * near, near)]
    if MODES[window.mode].fold is not None:
        left, right = (np.clip(-((first - bound) // near), 0, inner) for bound in window.extent)
        parts.append(_singles(window, u, left, np.minimum(low, right), far, near, by_cell))
        parts.append(_singles(window, u, np.maximum(high, left), right, far, near, by_cell))
    table = np.concatenate(parts)
    return table[table[:, LENGTH] > 0]


def pairs(window: AxisWindows) -> tuple[Ints, Ints]:
    """Return all pairs of a window and an element in it, in the order of the elements.

    Returns
    -------
    windows, elements : array of int64
        One entry for each pair; those of one element stand in the order of `segments`.
    """
    table = segments(window)
    which = np.repeat(np.arange(len(table)), table[:, LENGTH])
    t = np.arange(len(which)) - np.repeat(np.cumsum(table[:, LENGTH]) - table[:, LENGTH], table[:, LENGTH])
    elements = table[which, SOURCE] + t * table[which, SOURCE_STEP]
    order = np.argsort(elements, kind="stable")
    return (table[which, WINDOW] + t * table[which, WINDOW_STEP])[order], elements[order]


def gathers(window: AxisWindows) -> tuple[list[tuple[Ints, Ints]], Ints]:
    """Return how each element adds up the windows that cover it, by steps that take from what is there.

    Returns
    -------
    steps : list of (array of int64, array of int64)
        Each step has a sum for each element that is covered often enough, the most often covered ones first: the window
        to take for it and, of the sums of the step before, its own, -1 where it has none yet.
    places : array of int64, shape ``(size,)``
        Which sum of the last step is an element's own, -1 where no window covers it.
    """
    windows, elements = pairs(window)
    turn = np.arange(len(elements)) - np.searchsorted(elements, elements)
    places, steps = np.full(window.size, -1, dtype=np.int64), []
    by_turn = np.argsort(turn, kind="stable")
    counts = np.bincount(turn) if len(turn) else turn
    for mine in np.split(by_turn, np.cumsum(counts)[:-1])[::-1] if len(turn) else ():
        own = elements[mine]
        steps.append((windows[mine], places[own]))
        places[own] = np.arange(len(own))
    return steps, places
