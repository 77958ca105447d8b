"""The compiled loops over rows: how elements are combined.

A row is a pair of arrays, values and companions (where each element stands, or how many took part), and the place in
them where it starts, an unsigned integer: that leaves no index that could be negative and no view that must be counted,
so that the compiler vectorises every inner loop. The operation is a tuple whose *length* says which it is: a type, for
which the compiler takes the one body that it needs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int64, njit, types, uint64
from numba.core import cgutils
from numba.core.compiler import Compiler
from numba.extending import intrinsic, overload

# Lengths of the operation tuple; from PLACED on the companion is carried.
MAX, MIN, ADD, OMIT_MAX, OMIT_MIN, PLACED_MAX, PLACED_MIN, PLACED_OMIT_MAX, PLACED_OMIT_MIN, COUNTED_ADD, NORM = range(
    11
)
PLACED = PLACED_MAX
# Elements of rows that stay in the first cache while several are combined.
CHUNK = 2048
# How many rows are asked for before they are read, and the bytes that come at a time.
AHEAD, LINE = 2, 64

# Called by compiled code alone: without what Python needs to call it, it compiles in less time.
# No references are counted: no array is made, and the caller holds all of them.
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


class _Apart(Compiler):
    """The compiler, told that no array is written that has memory in common with another."""

    def define_pipelines(self) -> Any:
        """Return the passes, which are the usual ones."""
        self.state.flags.noalias = True
        return super().define_pipelines()


# A loop over four arrays or more is not vectorised where it must check that first.
apart = njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, pipeline_class=_Apart
)


# ---- elements --------------------------------------------------------------------------------------------------------


@intrinsic
def select(typing_context, condition, a, b):
    """Return `a` where the condition holds, else `b`, without a branch, which a vector loop cannot have."""

    def code(context, builder, signature, arguments):
        return builder.select(builder.trunc(arguments[0], ir.IntType(1)), arguments[1], arguments[2])

    return (a(types.boolean, a, a), code) if a == b and isinstance(condition, types.Boolean) else None


def joined(op: Any, a: Any, b: Any) -> Any:
    """Return what is left of `a` and a later `b`: of equals the first; a NaN wins or, omitted, loses to all else."""
    raise NotImplementedError("compiled code only")


@overload(joined)
def _joined(op, a, b):
    # In this order, for it is a maximum of the processor and one choice; a choice between `b` and what is written over
    # would become a masked store, which is slow.
    return {
        MAX: lambda op, a, b: select(b != b, b, select(b > a, b, a)),
        MIN: lambda op, a, b: select(b != b, b, select(b < a, b, a)),
        ADD: lambda op, a, b: a + b,
        OMIT_MAX: lambda op, a, b: select((b > a) | (a != a), b, a),
        OMIT_MIN: lambda op, a, b: select((b < a) | (a != a), b, a),
    }[len(op)]


def wins(op: Any, a: Any, b: Any) -> bool:
    """Return whether a later `b` takes the place of `a`; an omitted NaN loses to every number."""
    raise NotImplementedError("compiled code only")


@overload(wins)
def _wins(op, a, b):
    return {
        PLACED_MAX: lambda op, a, b: (not (b <= a)) & (a == a),
        PLACED_MIN: lambda op, a, b: (not (b >= a)) & (a == a),
        PLACED_OMIT_MAX: lambda op, a, b: (b > a) | ((a != a) & (b == b)),
        PLACED_OMIT_MIN: lambda op, a, b: (b < a) | ((a != a) & (b == b)),
    }[len(op)]


def merged(op: Any, power: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    """Return what is left of `a` with its companion `i` and of a later `b` with `j`."""
    raise NotImplementedError("compiled code only")


@overload(merged)
def _merged(op, power, a, i, b, j):
    if len(op) == COUNTED_ADD:
        return lambda op, power, a, i, b, j: (a + b, i + j)
    if len(op) < COUNTED_ADD:

        def body(op, power, a, i, b, j):
            won = wins(op, a, b)
            return select(won, b, a), select(won, j, i)

    else:
        # Norms as magnitudes, and sums of powers relative to them, of which none can leave the range.
        def body(op, power, a, i, b, j):
            if a != a or b != b:
                return a + b, i + j
            if b > a:
                a, b, i, j = b, a, j, i
            if j == 0:
                return a, i
            return a, i + (j if a == b else j * (b / a) ** power)

    return body


def put(op: Any, power: Any, dst: Any, d: Any, first: Any, a: Any, later: Any, b: Any) -> None:
    """Write to place `d` of `dst` what is left of place `a` of `first` and of place `b` of `later`."""
    raise NotImplementedError("compiled code only")


@overload(put)
def _put(op, power, dst, d, first, a, later, b):
    if len(op) < PLACED:

        def body(op, power, dst, d, first, a, later, b):
            dst[0][d] = joined(op, first[0][a], later[0][b])

    else:

        def body(op, power, dst, d, first, a, later, b):
            dst[0][d], dst[1][d] = merged(op, power, first[0][a], first[1][a], later[0][b], later[1][b])

    return body


def put3(op: Any, power: Any, dst: Any, d: Any, first: Any, a: Any, later: Any, b: Any, c: Any) -> None:
    """Write to place `d` of `dst` what is left of place `a` of `first` and of the places `b` and `c` of `later`."""
    raise NotImplementedError("compiled code only")


@overload(put3)
def _put3(op, power, dst, d, first, a, later, b, c):
    if len(op) < PLACED:

        def body(op, power, dst, d, first, a, later, b, c):
            dst[0][d] = joined(op, joined(op, first[0][a], later[0][b]), later[0][c])

    else:

        def body(op, power, dst, d, first, a, later, b, c):
            x, i = merged(op, power, first[0][a], first[1][a], later[0][b], later[1][b])
            dst[0][d], dst[1][d] = merged(op, power, x, i, later[0][c], later[1][c])

    return body


def move(op: Any, dst: Any, d: Any, src: Any, a: Any) -> None:
    """Copy an element, with its companion where there is one."""
    raise NotImplementedError("compiled code only")


@overload(move)
def _move(op, dst, d, src, a):
    if len(op) < PLACED:

        def body(op, dst, d, src, a):
            dst[0][d] = src[0][a]

    else:

        def body(op, dst, d, src, a):
            dst[0][d] = src[0][a]
            dst[1][d] = src[1][a]

    return body


# ---- rows ------------------------------------------------------------------------------------------------------------


@intrinsic
def prefetch(typing_context, array, place):
    """Ask for the memory at a place of an array, which need not be inside."""

    def code(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        at = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [at, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, place), code


@inner
def ask(array, a, pitch, fresh, cells, size):
    """Ask for rows that are read soon: without that, memory waits while what has come is worked on."""
    every = uint64(LINE // array.itemsize)
    lines = uint64(size) // every
    for c in range(fresh, cells):
        at = a + uint64(c) * pitch
        for i in range(lines):
            prefetch(array, at + i * every)


@apart
def copy(op, src, a, down, far, dst, d, right, step, rows, size):
    """Copy elements `far` apart to places `step` apart."""
    for _ in range(rows):
        if far == 1 and step == 1:
            for i in range(size):
                move(op, dst, d + i, src, a + i)
        else:
            for i in range(size):
                move(op, dst, d + i * step, src, a + i * far)
        a += down
        d += right


@apart
def two(op, power, src, a, down, pitch, far, fresh, dst, d, right, rows, size):
    """Combine two rows, or neighbours. Distances that the compiler knows make vector loops."""
    for _ in range(rows):
        ask(src[0], a + uint64(AHEAD) * down, pitch, fresh, int64(2), size * far)
        if far == 1:
            for i in range(size):
                put(op, power, dst, d + i, src, a + i, src, a + pitch + i)
        else:
            for i in range(size):
                k = a + uint64(2) * i
                put(op, power, dst, d + i, src, k, src, k + uint64(1))
        a += down
        d += right


@apart
def three(op, power, src, a, down, pitch, far, fresh, dst, d, right, rows, size):
    """Combine three rows, or neighbours."""
    for _ in range(rows):
        ask(src[0], a + uint64(AHEAD) * down, pitch, fresh, int64(3), size * far)
        if far == 1:
            for i in range(size):
                put3(op, power, dst, d + i, src, a + i, src, a + pitch + i, a + pitch + pitch + i)
        else:
            for i in range(size):
                k = a + uint64(2) * i
                put3(op, power, dst, d + i, src, k, src, k + uint64(1), k + uint64(2))
        a += down
        d += right


@apart
def onto_two(op, power, src, b, down, pitch, far, dst, d, right, rows, size):
    """Combine rows with two more, or neighbours."""
    for _ in range(rows):
        if far == 1:
            for i in range(size):
                put3(op, power, dst, d + i, dst, d + i, src, b + i, b + pitch + i)
        else:
            for i in range(size):
                k = b + uint64(2) * i
                put3(op, power, dst, d + i, dst, d + i, src, k, k + uint64(1))
        b += down
        d += right


@apart
def onto(op, power, src, b, down, far, dst, d, right, step, rows, size):
    """Combine rows, whose elements are `step` apart, with elements `far` apart."""
    for _ in range(rows):
        for i in range(size):
            k = d + i * step
            put(op, power, dst, k, dst, k, src, b + i * far)
        b += down
        d += right


@inner
def fold(op, power, src, a, down, pitch, far, fresh, dst, d, right, step, cells, rows, size, onward):
    """Combine `cells` elements `pitch` apart for each element of a block; where it goes `onward`, with what is there.

    Of the cells of a row, those from `fresh` on are not in the row before it.
    """
    gap, by, to, over, aside = uint64(pitch), uint64(far), uint64(step), uint64(down), uint64(right)
    group, near = max(CHUNK // size, 1), step == 1 and (far == 1 or (far == 2 and pitch == 1))
    for top in range(0, rows, group):
        m = min(rows - top, group)
        for low in range(0, size, CHUNK):
            n, k = uint64(min(size - low, CHUNK)), int64(0)
            s, t = uint64(a + top * down + low * far), uint64(d + top * right + low * step)
            # Two at a time, so that a row is written half as often: first two, or three, as that comes out.
            if near and not onward and cells > 1:
                if cells % 2:
                    three(op, power, src, s, over, gap, by, fresh, dst, t, aside, m, n)
                    k = 3
                else:
                    two(op, power, src, s, over, gap, by, fresh, dst, t, aside, m, n)
                    k = 2
            elif not onward:
                copy(op, src, s, over, by, dst, t, aside, to, m, n)
                k = 1
            while near and k + 1 < cells:
                onto_two(op, power, src, s + uint64(k) * gap, over, gap, by, dst, t, aside, m, n)
                k += 2
            while k < cells:
                onto(op, power, src, s + uint64(k) * gap, over, by, dst, t, aside, to, m, n)
                k += 1
