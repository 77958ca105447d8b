"""The adjoints of the engine "numba": compiled loops, on several threads that each own a part of the result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from ndpool import arguments, threads
from ndpool.plan import Ints, WindowPlan

from . import scatter as plain
from . import spreading
from .compiled import SMALL

Array = NDArray[Any]

SUM, LAST, MAX, ERROR = range(4)
_KINDS = {"sum": SUM, "last": LAST, "max": MAX, "error": ERROR}
# Positions whose range is kept: most of these chunks go to one part of the result.
CHUNK = 1 << 15
# Values that are added in turns from as many places of a chunk. Neighbours often have one position, and each would wait
# for what the one before it has written.
STREAMS = 4


def compiled(function: Any) -> Any:
    """Compile a function, and keep it on disk where that can be."""
    try:
        return njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no folder for it
        return njit(nogil=True, error_model="numpy")(function)


@compiled
def add(values, positions, out, begin, end, low, high):
    """Add a chunk of values; see `place`."""
    n, last, width = uint64((end - begin) // STREAMS), uint64(begin), uint64(high - low)
    for i in range(begin, begin + n):
        a = uint64(i)
        b, c, d = a + n, a + n + n, a + n + n + n
        p, q, r, s = uint64(positions[a]), uint64(positions[b]), uint64(positions[c]), uint64(positions[d])
        t, u, v, w = values[a], values[b], values[c], values[d]
        # Positions outside, -1 among them, are large numbers.
        if p - uint64(low) < width:
            out[p] += t
        if q - uint64(low) < width:
            out[q] += u
        if r - uint64(low) < width:
            out[r] += v
        if s - uint64(low) < width:
            out[s] += w
        last = d + uint64(1)
    for i in range(last, end):
        p = uint64(positions[uint64(i)])
        if p - uint64(low) < width:
            out[p] += values[uint64(i)]


@compiled
def place(values, positions, out, begin, end, low, high, kind, seen):
    """Write the values ``begin <= i < end`` whose positions lie in ``low <= p < high``.

    Returns
    -------
    int
        With `ERROR`, the first of them whose position was `seen` before; -1 for none.
    """
    if kind == SUM:
        for chunk in range(begin, end, CHUNK):
            add(values, positions, out, chunk, min(chunk + CHUNK, end), low, high)
    elif kind == LAST:
        for i in range(begin, end):
            p = positions[i]
            if low <= p < high:
                out[uint64(p)] = values[i]
    elif kind == MAX:
        for i in range(begin, end):
            p, v = positions[i], values[i]
            if low <= p < high and (v > out[uint64(p)] or v != v):  # NaN wins
                out[uint64(p)] = v
    else:
        for i in range(begin, end):
            p = positions[i]
            if low <= p < high:
                if seen[uint64(p)]:
                    return i
                seen[uint64(p)] = True
                out[uint64(p)] = values[i]
    return -1


@compiled
def lower(positions, out, begin, end, low, high, value):
    """Write `value` to the positions ``low <= p < high`` of ``begin <= i < end``."""
    for i in range(begin, end):
        p = positions[i]
        if low <= p < high:
            out[uint64(p)] = value


@compiled
def bounds(positions, begin, end):
    """Return the least position that is none of -1, and the largest, of ``begin <= i < end``."""
    least, most = np.int64(2**62), np.int64(-1)
    for i in range(begin, end):
        p = positions[i]
        most = max(most, p)
        least = min(least, p if p >= 0 else np.int64(2**62))
    return least, most


@compiled
def expand(source, target, pairs):
    """Spread one axis; see `spreading.Expand`."""
    outer, here, inner = target.shape
    there = source.shape[1]
    target, source = target.reshape(-1), source.reshape(-1)
    for i in range(len(target)):
        target[i] = 0
    for a in range(outer):
        for k in range(len(pairs)):
            o, p = uint64(a * there + pairs[k, 0]), uint64(a * here + pairs[k, 3])
            far, step, length = uint64(pairs[k, 1]), uint64(pairs[k, 4]), uint64(pairs[k, 2])
            if inner == 1:
                if far == 1 and step == 1:
                    for t in range(length):
                        target[p + t] += source[o + t]
                else:
                    for t in range(length):
                        target[p + t * step] += source[o + t * far]
            else:
                size = uint64(inner)
                for t in range(length):
                    d, s = (p + t * step) * size, (o + t * far) * size
                    for i in range(size):
                        target[d + i] += source[s + i]


def _ranges(positions: Ints, ranges: Ints, chunks: Iterable[int]) -> None:
    for c in chunks:
        ranges[c] = bounds(positions, c * CHUNK, min(c * CHUNK + CHUNK, len(positions)))


def _parts(
    values: Array, positions: Ints, out: Array, kind: int, seen: Array, ranges: Ints | None, count: int,
    found: list[int], parts: Iterable[int],
) -> None:  # fmt: skip
    """Fill some of `count` parts of the result."""
    size, n = len(out), len(values)
    for part in parts:
        low, high = size * part // count, size * (part + 1) // count
        spans = [(0, n)]
        if ranges is not None:
            own = np.flatnonzero((ranges[:, 0] < high) & (ranges[:, 1] >= low)).tolist()
            spans = [(c * CHUNK, min(c * CHUNK + CHUNK, n)) for c in own]
        if kind == MAX:
            for begin, end in spans:
                lower(positions, out, begin, end, low, high, out.dtype.type(plain.lowest(out.dtype)))
        for begin, end in spans:
            again = place(values, positions, out, begin, end, low, high, kind, seen)
            if again >= 0:
                found.append(again)
                break


def _by_positions(values: Array, positions: Ints, size: int, overlap: str) -> Array:
    kind = _KINDS[overlap]
    out = np.zeros(size, dtype=values.dtype)
    seen = np.zeros(size if kind == ERROR else 0, dtype=np.bool_)
    found: list[int] = []
    count = threads.get_num_threads() if values.nbytes + out.nbytes > SMALL else 1
    if count == 1:
        _parts(values, positions, out, kind, seen, None, 1, found, (0,))
    else:
        # A value belongs to the thread that owns its place: no two write one element, and the order stays.
        chunks, count = -(-len(positions) // CHUNK), 4 * count
        ranges = np.empty((chunks, 2), dtype=np.int64)
        threads.share(chunks, partial(_ranges, positions, ranges))
        threads.share(count, partial(_parts, values, positions, out, kind, seen, ranges, count, found))
    if found:
        raise arguments.repeated(int(positions[min(found)]))
    return out


def scatter(values: Array, plan: WindowPlan, positions: Ints | None = None, overlap: str = "sum") -> Array:
    """Write values back; the primitive of `ndpool.backend.Scatter`."""
    own, dtype = values.dtype, plain.wide(values.dtype, overlap)
    if dtype != own:
        return scatter(values.astype(dtype), plan, positions, overlap).astype(own)
    if positions is None:
        source, out, work, back = plain.by_windows(values, plan)
        tiles = partial(spreading.spread, source, out, work, expand)
        if source.nbytes + out.nbytes <= SMALL:
            tiles(range(work.count))
        else:
            threads.share(work.count, tiles)
        return out.transpose(back)
    size = math.prod(plan.input_shape)
    flat, at = np.ascontiguousarray(values).reshape(-1), np.ascontiguousarray(positions).reshape(-1)
    bits = flat.view(np.uint16) if flat.dtype == np.float16 else flat
    return _by_positions(bits, at, size, overlap).view(own).reshape(plan.input_shape)
