"""The compiled loop over tiles: their instructions, carried out on an array's elements."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import int64, njit, types, uint64
from numba.extending import overload

from . import instructions, kernels
from .instructions import (
    CELLS,
    FOLD,
    INNER,
    KIND,
    LOAD,
    NEUTRAL,
    ONTO,
    OUTER,
    PITCH,
    PLACE,
    PLACE_INNER,
    PLACE_OUTER,
    READS,
    SOURCE,
    SOURCE_INNER,
    SOURCE_OUTER,
    STORE,
    TARGET,
    TARGET_INNER,
    TARGET_OUTER,
    TOOK,
    TOOK_INNER,
    TOOK_OUTER,
    WRITES,
)  # fmt: skip
from .kernels import ADD, AHEAD, COUNTED_ADD, NORM, PLACED, apart, ask, fold, inner

# What the compiled loop depends on outside this file: Numba keeps it on disk until this file changes.
SOURCES = zlib.crc32(b"".join(Path(module.__file__).read_bytes() for module in (kernels, instructions)))


def cached(make: Callable[[int], Any]) -> Any:
    """Compile the function that `make` returns, and keep it on disk where that can be, for these sources alone."""
    function = make(SOURCES)
    try:
        return njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # there is no folder for it
        return njit(nogil=True, error_model="numpy")(function)


# Lengths of the tuple that says how an element is read: as it is, from half-precision bits, its magnitude, a power.
PLAIN, HALF, MAGNITUDE, POWER = 0, 1, 2, 4


@njit(inline="always")
def single(bits):
    """Return half-precision bits as a single: the exponent is moved, and put right by one exact product."""
    word = np.int32(bits)
    rest = np.int32((word & 0x7FFF) << 13)
    moved = np.float32(np.int32(rest).view(np.float32) * np.float32(2.0**112))
    special = np.int32(0x7F800000 if rest >= 0x0F800000 else 0)
    sign = np.int32(-(word >> 15) << 31)
    joined = np.int32(np.float32(moved).view(np.int32) | special | sign)
    return np.int32(joined).view(np.float32)


@njit(inline="always")
def half(value):
    """Return the bits of a single in half precision, rounded to nearest, ties to even."""
    word = np.int32(np.float32(value).view(np.int32))
    sign, rest = (word >> 16) & 0x8000, np.int32(word & 0x7FFFFFFF)
    if rest > 0x7F800000:
        return np.uint16(sign | 0x7E00)
    if rest >= 0x477FF000:
        return np.uint16(sign | 0x7C00)
    if rest < 0x38800000:
        # Subnormal: adding one half puts the wanted bits last, rounded by the addition itself.
        moved = np.float32(np.int32(rest).view(np.float32) + np.float32(0.5))
        return np.uint16(sign | (np.float32(moved).view(np.int32) - 0x3F000000))
    return np.uint16(sign | ((rest - 0x38000000 + 0xFFF + ((rest >> 13) & 1)) >> 13))


def lift(how: Any, power: Any, bits: Any, like: Any) -> Any:
    """Return an element as it is accumulated, in the type of `like`."""
    raise NotImplementedError("compiled code only")


@overload(lift)
def _lift(how, power, bits, like):
    halved = bool(len(how) & HALF)
    if len(how) < MAGNITUDE:
        return (lambda how, power, bits, like: single(bits)) if halved else (lambda how, power, bits, like: bits)
    if len(how) < POWER:
        if halved:
            return lambda how, power, bits, like: abs(single(bits))
        return lambda how, power, bits, like: abs(like + bits)

    def body(how, power, bits, like):
        size = abs(like + (single(bits) if halved else bits))
        return size * size if power == 2 else size**power

    return body


def enter(op: Any, out: Any, d: Any, value: Any, place: Any, takes_part: Any) -> None:
    """Write an element into scratch memory, and its companion."""
    raise NotImplementedError("compiled code only")


@overload(enter)
def _enter(op, out, d, value, place, takes_part):
    if len(op) < PLACED:

        def body(op, out, d, value, place, takes_part):
            out[0][d] = value

    elif len(op) == COUNTED_ADD:

        def body(op, out, d, value, place, takes_part):
            counts = (value == value) & takes_part
            out[0][d] = value if counts else out[0].dtype.type(0)
            out[1][d] = 1 if counts else 0

    elif len(op) == NORM:

        def body(op, out, d, value, place, takes_part):
            out[0][d] = value
            out[1][d] = 1 if value != 0 else 0

    else:

        def body(op, out, d, value, place, takes_part):
            out[0][d] = value
            out[1][d] = place

    return body


@apart
def load(how, op, power, x, a, down, far, neutral, dst, d, right, step, place, place_down, place_far, rows, size):
    """Copy rows of the array into scratch memory, as they are accumulated."""
    for r in range(rows):
        p = place + r * place_down
        if far == 1 and step == 1:
            ask(x, a + uint64(AHEAD) * down, uint64(0), int64(0), int64(1), size)
            for i in range(size):
                enter(op, dst, d + i, lift(how, power, x[a + i], neutral), p + int64(i) * place_far, True)
        else:
            for i in range(size):
                value = lift(how, power, x[a + i * far], neutral)
                enter(op, dst, d + i * step, value, p + int64(i) * place_far, True)
        a += down
        d += right


@inner
def fill(op, value, takes_part, dst, d, right, step, rows, size):
    """Fill rows of scratch memory."""
    for r in range(rows):
        for i in range(size):
            enter(op, dst, uint64(d + r * right + i * step), value, int64(-1), takes_part)


def leave(
    how: Any, op: Any, src: Any, s: Any, out: Any, where: Any, t: Any, took: Any, options: Any, empty: Any
) -> None:
    """Write a result: divided by how many took part, or a root taken."""
    raise NotImplementedError("compiled code only")


def written(how: Any, value: Any) -> Any:
    """Return a result as its bits."""
    raise NotImplementedError("compiled code only")


@overload(written)
def _written(how, value):
    return (lambda how, value: half(value)) if len(how) & HALF else (lambda how, value: value)


@overload(leave)
def _leave(how, op, src, s, out, where, t, took, options, empty):
    if len(op) == NORM:

        def body(how, op, src, s, out, where, t, took, options, empty):
            out[t] = written(how, src[0][s] * src[1][s] ** options[2] if took > 0 else empty)

    elif len(op) == COUNTED_ADD:

        def body(how, op, src, s, out, where, t, took, options, empty):
            n, scale = src[1][s], options[0]
            by = scale if scale != 0 else n if n > 0 else 1
            value = math.nan if (n == 0) & (took > 0) else src[0][s] / by
            out[t] = written(how, empty if took == 0 else value)

    elif len(op) >= PLACED:

        def body(how, op, src, s, out, where, t, took, options, empty):
            out[t] = written(how, src[0][s] if took > 0 else empty)
            where[t] = src[1][s] if took > 0 else -1

    elif len(op) == ADD and not isinstance(empty, types.Integer):

        def body(how, op, src, s, out, where, t, took, options, empty):
            scale, root = options[0], options[2]
            by = scale if scale != 0 else took if took > 0 else 1
            value = src[0][s] ** root if root > 0 else src[0][s] / by
            out[t] = written(how, value if took > 0 else empty)

    else:

        def body(how, op, src, s, out, where, t, took, options, empty):
            out[t] = written(how, src[0][s] if took > 0 else empty)

    return body


@apart
def store(
    how, op, src, a, down, far, out, where, d, right, step, took, counts, at_down, at, options, empty, rows, size
):
    """Write rows of results."""
    for r in range(rows):
        mine = took * counts[at_down + r] if at_down >= 0 else took
        if far == 1 and step == 1:
            if at >= 0:
                for i in range(size):
                    leave(how, op, src, a + i, out, where, d + i, mine * counts[uint64(at) + i], options, empty)
            else:
                for i in range(size):
                    leave(how, op, src, a + i, out, where, d + i, mine, options, empty)
        else:
            for i in range(size):
                n = mine * counts[at + int64(i)] if at >= 0 else mine
                leave(how, op, src, a + i * far, out, where, d + i * step, n, options, empty)
        a += down
        d += right


@cached
def run(sources):
    """Return the loop over tiles; `sources` is in its closure and so in the key under which it is kept."""

    def run(op, how, arrays, tiles, code, tables, numbers, options):
        """Reduce tiles.

        Parameters
        ----------
        op, how : tuple
            What to do, and how an element is read.
        arrays : tuple
            All memory of the array; scratch memory with its companion; the same pair, or the array as if it were one;
            all memory of the results; the scratch pair, or the results as if they were one; and of the positions.
        tiles : array of int64
            See `program.Program.tiles`.
        code : array of int64
            The instructions.
        tables : array of floating dtype
            Counts that they refer to.
        numbers : array of the accumulating dtype
            What stands where nothing takes part, a fill element, and the result of an empty window.
        options : tuple of float
            What results are divided by (0: by what took part), and the exponents of a power and a root (0: none).
        """
        if sources < 0:
            return  # never
        x, scratch, near, out, result, where = arrays
        power = options[1]
        for t in range(len(tiles)):
            for k in range(tiles[t, 0], tiles[t, 1]):
                kind, reads, writes, rows, size = (
                    code[k, KIND],
                    code[k, READS],
                    code[k, WRITES],
                    code[k, OUTER],
                    code[k, INNER],
                )
                a = code[k, SOURCE] + (tiles[t, 2] if reads else 0)
                d = code[k, TARGET] + (tiles[t, 3] if writes else 0)
                far, step, down, right = (
                    code[k, SOURCE_INNER],
                    code[k, TARGET_INNER],
                    code[k, SOURCE_OUTER],
                    code[k, TARGET_OUTER],
                )
                if kind in (FOLD, ONTO):
                    src, dst, cells, pitch = (
                        (near if reads else scratch),
                        (result if writes else scratch),
                        code[k, CELLS],
                        code[k, PITCH],
                    )
                    fresh = max(cells - down // pitch, 0) if pitch > 0 else cells - 1
                    fresh = fresh if reads else cells
                    fold(
                        op, power, src, a, down, pitch, far, fresh, dst, d, right, step, cells, rows, size, kind == ONTO
                    )
                elif kind == LOAD:
                    load(
                        how, op, power, x, uint64(a), uint64(down), uint64(far), numbers[0], scratch, uint64(d),
                        uint64(right), uint64(step), tiles[t, 4] + code[k, PLACE], code[k, PLACE_OUTER],
                        code[k, PLACE_INNER], rows, uint64(size),
                    )  # fmt: skip
                elif kind == STORE:
                    store(
                        how, op, scratch, uint64(a), uint64(down), uint64(far), out, where, uint64(d), uint64(right),
                        uint64(step), tables.dtype.type(code[k, TOOK]), tables, code[k, TOOK_OUTER],
                        code[k, TOOK_INNER], options, numbers[2], rows, uint64(size),
                    )  # fmt: skip
                else:
                    value = numbers[0] if kind == NEUTRAL else numbers[1]
                    fill(op, value, kind != NEUTRAL, scratch, d, right, step, rows, size)

    return run
