"""Which blocks of cells to combine, level by level, so that every window is reached in log2(k) steps: integers only.

A window of ``n`` cells is the disjoint union of blocks whose lengths are the powers of two in ``n``, the smallest
first. Blocks of ``2m`` cells are pairs of blocks of ``m``, and on each level only those that some window needs are
made. Positions that are evenly spaced stay a `range`, so that a long axis needs no table and an array no copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import array_api_compat

from ..padding import IGNORED
from ..plan import FAR, AxisWindows, Ints

Index = slice | Ints
Blocks = range | Ints


def _ints(positions: Blocks, like: Ints) -> Ints:
    if not isinstance(positions, range):
        return positions
    xp: Any = array_api_compat.array_namespace(like)
    ints: Ints = xp.arange(positions.start, positions.stop, positions.step, dtype=xp.int64)
    return ints


def _compact(positions: Ints) -> Blocks:
    """Return sorted positions as a range where they are one."""
    if len(positions) < 2:
        return range(int(positions[0]), int(positions[0]) + 1) if len(positions) else range(0)
    step = int(positions[1] - positions[0])
    regular = step > 0 and bool((positions[1:] - positions[:-1] == step).all())
    return range(int(positions[0]), int(positions[-1]) + 1, step) if regular else positions


def _union(one: Blocks, other: Blocks, shift: int, like: Ints) -> Blocks:
    """Return the sorted union of `one` and of `other` moved by `shift`."""
    if isinstance(one, range) and isinstance(other, range):
        if not other:
            return one
        begin, end = other.start + shift, other.stop + shift
        if not one:
            return range(begin, end, other.step)
        if one.step == other.step == 1 and begin <= one.stop and one.start <= end:
            return range(min(one.start, begin), max(one.stop, end))
    xp: Any = array_api_compat.array_namespace(like)
    merged = xp.sort(xp.concat([_ints(one, like), _ints(other, like) + shift]))
    # Sorted, so that equal ones are neighbours (a general `unique` hashes, which is slow on long runs of integers).
    return _compact(xp.concat([merged[:1], merged[1:][merged[1:] != merged[:-1]]]))


def _find(blocks: Blocks, positions: Blocks, shift: int, like: Ints) -> Index:
    """Return where `positions` moved by `shift` stand among `blocks`, as a slice where it is one."""
    if isinstance(blocks, range) and isinstance(positions, range):
        first = (positions.start + shift - blocks.start) // blocks.step
        step = positions.step // blocks.step if len(positions) > 1 else 1
        return slice(first, first + (len(positions) - 1) * step + 1, step)
    wanted = _ints(positions, like) + shift
    if isinstance(blocks, range):
        return (wanted - blocks.start) // blocks.step
    xp: Any = array_api_compat.array_namespace(like)
    found: Ints = xp.searchsorted(blocks, wanted)
    return found


def _level(window: AxisWindows, level: int) -> tuple[Any, Blocks]:
    """Return whether each window has a block of ``2**level`` cells (one bool for all, or one each), and its start."""
    size, step = 1 << level, min(window.dilation, FAR)
    if window.intervals is None:
        first, stride = window.start + (window.reach & (size - 1)) * step, min(window.stride, FAR)
        return bool(window.reach & size), range(first, first + (window.count - 1) * stride + 1, stride)
    starts, lengths = window.starts(), window.lengths()
    return (lengths & size) != 0, starts + (lengths & (size - 1)) * step


def blocks(window: AxisWindows) -> Iterator[tuple[Index, Index | None, Index | None]]:
    """Yield, for each level ``m = 1, 2, 4, ...``, which pairs of blocks to combine and which each window takes.

    Yields
    ------
    left, right, takes : slice or array of int64
        The blocks of a level are the combinations of the blocks `left` and `right` of the level before; on the first
        level `left` holds the cells themselves, and `right` is `None`. Window ``o`` takes block ``takes[o]``, none
        where it is -1; `None` where no window takes any.
    """
    like, step = window.starts(0, min(window.count, 1)), min(window.dilation, FAR)
    longest = window.reach if window.intervals is None else window.kernel
    levels = max(longest.bit_length(), 1)
    needed: list[Blocks] = [range(0)] * (levels + 1)
    for level in reversed(range(levels)):
        has, first = _level(window, level)
        above = needed[level + 1]
        own = (first if has else range(0)) if isinstance(first, range) else first[has]
        needed[level] = _union(_union(own, above, 0, like), above, step << level, like)
    for level in range(levels):
        has, first = _level(window, level)
        own, below = needed[level], needed[level - 1]
        left = _find(below, own, 0, like) if level else window.cells(_ints(own, like))
        right = _find(below, own, step << level >> 1, like) if level else None
        takes: Index | None = None
        if isinstance(first, range):
            takes = _find(own, first, 0, like) if has else None
        elif has.any():
            xp: Any = array_api_compat.array_namespace(like)
            takes = xp.where(has, _find(own, first, 0, like), IGNORED)
        yield left, right, takes
