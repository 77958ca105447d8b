"""What each way to reduce an axis costs, and which is the cheapest."""

from __future__ import annotations

from functools import lru_cache

from .algebra import Algebra
from .spans import Span

# Nanoseconds, measured once and roughly: only their ratios matter.
CALL, ROW, STRIDED, BYTE = 800.0, 15.0, 0.8, 0.035


@lru_cache(maxsize=4096)
def cheapest(
    span: tuple[int, int, int, int, int], rest: int, inner: bool, itemsize: int, traits: tuple[bool, bool, int, int]
) -> tuple[str, float]:
    """Choose how to reduce regular windows.

    Parameters
    ----------
    span : tuple of int
        Length, count, kernel, stride, dilation.
    rest : int
        The number of elements of a slice across the axis.
    inner : bool
        Whether the axis is the innermost one in memory.
    itemsize : int
        Bytes of an element.
    traits : tuple
        Of the algebra: idempotent, ordered, chain, calls.

    Returns
    -------
    name, cost
        The cost in about nanoseconds.
    """
    length, count, kernel, stride, dilation = span
    idempotent, ordered, chain, calls = traits
    dense, call = rest * itemsize * BYTE * (2 if ordered else 1), CALL * calls
    apart = rest * STRIDED if inner and stride > 1 else dense
    between = (count - 1) * stride + 1
    options = {}
    if kernel <= chain:
        options["columns"] = (kernel - 1) * (count * apart + call)
        if inner and stride > 1:
            options["dense columns"] = (kernel - 1) * (between * dense + call) + count * apart + call
    levels = kernel.bit_length() - 1
    parts = 1 if idempotent else max(kernel.bit_count() - 1, 1)
    options["doubling"] = levels * (length * dense + call) + parts * (count * apart + call)
    # A tree over a view of windows: pairs of neighbours are strided where the axis is the innermost one.
    rows = count * rest * levels * ROW if inner else 0
    pairs = rest * STRIDED if inner and (ordered or dilation > 1) else dense
    options["tree"] = count * (kernel - 1) * pairs + rows + (levels + 1) * call
    name = min(options, key=lambda option: options[option])
    return name, options[name]


def traits(algebra: Algebra) -> tuple[bool, bool, int, int]:
    """Return what `cheapest` asks of an algebra."""
    return algebra.idempotent, algebra.ordered, algebra.chain, algebra.calls


def cost(algebra: Algebra, span: Span, rest: int, inner: bool, itemsize: int) -> float:
    """Return about how many nanoseconds a pass takes."""
    if span.starts is not None or span.kernel > 1:
        shape = (span.length, span.count, span.kernel, span.stride, span.dilation)
        return cheapest(shape, rest, inner, itemsize, traits(algebra))[1]
    return 0.0
