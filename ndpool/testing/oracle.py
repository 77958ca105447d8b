"""What every engine must answer, in plain loops: each window is written out, then each element is looked at.

Slow and obvious on purpose. This file follows the definitions, never an engine, and imports nothing of ndpool but the
windows beside it, which follow the definitions as well.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ndpool.testing.windows import FILL, IGNORED, Windows, per_axis, sliding_windows

REDUCTIONS = ("max", "min", "sum", "mean", "lp")
ENCODINGS = ("flat", "plane", "coords", "window")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """The right values, and what a test needs to judge others by them."""

    values: Array
    winners: dict[str, Any] | None  # max and min: one entry an encoding
    exact: Array | None = None  # inexact sums, means and norms: before they were rounded to the result's dtype
    scale: Array | None = None  # … what their rounding error is relative to: the sum of (finite) magnitudes
    terms: Array | None = None  # … and how many elements took part


class Element(NamedTuple):
    """What takes part in a window."""

    value: Any
    source: tuple[int, ...] | None  # None: a fill element
    position: tuple[int, ...]  # inside the window, ascending axes


# ---- one window ----------------------------------------------------------------------------------------------------


def _is_nan(value: Any) -> bool:
    return bool(value != value)  # one rule for real and complex, integers never


def _identity(reduction: str, dtype: np.dtype[Any]) -> Any:
    """What a window with nothing in it gives."""
    if reduction in ("sum", "lp"):
        return 0
    if reduction == "mean":
        return math.nan
    largest = reduction == "min"
    if dtype.kind == "b":
        return largest
    if dtype.kind == "f":
        return math.inf if largest else -math.inf
    return np.iinfo(dtype).max if largest else np.iinfo(dtype).min


def _first_best(elements: list[Element], reduction: str) -> Element:
    """The first NaN, else the first of the largest (smallest) elements."""
    best = elements[0]
    for element in elements:
        if _is_nan(element.value):
            return element
        if element.value > best.value if reduction == "max" else element.value < best.value:
            best = element
    return best


def _float_sum(values: list[float]) -> float:
    """Correctly rounded, whatever overflows on the way."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    try:
        return math.fsum(values)
    except OverflowError:
        total = sum(map(Fraction, values))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _total(values: list[Any], kind: str) -> Any:
    if kind in "biu":
        return sum(int(v) for v in values)
    if kind == "c":
        return complex(_float_sum([float(v.real) for v in values]), _float_sum([float(v.imag) for v in values]))
    return _float_sum([float(v) for v in values])


def _magnitude(value: Any, kind: str) -> float:
    """`abs(value)`, of a complex number that of both parts; what is not finite has no rounding error."""
    if kind in "biu":
        return float(abs(int(value)))
    return sum(abs(float(part)) for part in (value.real, value.imag) if math.isfinite(part))


def _norm(values: list[Any], p: float) -> float:
    """`(sum(abs(x)**p))**(1/p)`, relative to the largest magnitude so that nothing overflows on the way."""
    sizes = [np.longdouble(abs(int(v)) if isinstance(v, (np.integer, np.bool_)) else abs(v)) for v in values]
    if any(map(_is_nan, sizes)):
        return math.nan
    largest = max(sizes)
    if p == math.inf or largest in (0, math.inf):
        return float(largest)
    power, total = np.longdouble(p), np.longdouble(0)
    for size in sizes:
        total += (size / largest) ** power
    return float(largest * total ** (1 / power))


# ---- all windows ---------------------------------------------------------------------------------------------------


def result_dtype(dtype: np.dtype[Any], reduction: str) -> np.dtype[Any]:
    """The dtype of the values, as NumPy has it."""
    if reduction in ("max", "min") or dtype.kind in "fc":
        return dtype
    if reduction == "sum":
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return np.dtype(np.float64)


def pool(
    x: Array,
    windows: Windows,
    reduction: str,
    *,
    fill_value: Any = 0,
    p: float | None = None,
    divisor: float | None = None,
    nan_policy: str = "propagate",
    where: Any = None,
) -> Answer:
    """Reduce every window.

    `windows` holds one list of cells for each output of each pooled axis; `coords` follows the order of its keys.
    """
    dtype, kind = x.dtype, x.dtype.kind
    if reduction not in REDUCTIONS or nan_policy not in ("propagate", "omit"):
        raise ValueError(f"unknown reduction {reduction!r} or nan_policy {nan_policy!r}")
    if kind == "c" and reduction not in ("sum", "mean"):
        raise TypeError(f"{reduction} of complex numbers has no meaning")
    power = math.nan if p is None else p
    if reduction == "lp" and not power > 0:
        raise ValueError(f"p must be above 0, got {p}")
    fill = dtype.type(fill_value)
    mask = None if where is None else np.broadcast_to(np.asarray(where), x.shape)
    picks, is_float = reduction in ("max", "min"), kind == "f"
    identity = _identity(reduction, dtype)

    shape = tuple(len(windows[a]) if a in windows else n for a, n in enumerate(x.shape))
    ascending = sorted(windows)
    values = np.empty(shape, result_dtype(dtype, reduction))
    exact = np.zeros(shape, np.complex128 if kind == "c" else np.float64)
    scale, terms = np.zeros(shape), np.zeros(shape, np.int64)
    sources: dict[tuple[int, ...], Element] = {}

    for out in np.ndindex(*shape):
        elements = []
        rows = [windows[a][out[a]] for a in ascending]
        for position in itertools.product(*(range(len(row)) for row in rows)):
            cells = [row[j] for row, j in zip(rows, position, strict=True)]
            if IGNORED in cells:
                continue
            if FILL in cells:
                # A fill that can never win a window takes no part, lest it win an index from a real element.
                if not (picks and is_float and fill == identity):
                    elements.append(Element(fill, None, position))
                continue
            source = list(out)
            for a, c in zip(ascending, cells, strict=True):
                source[a] = c
            if mask is None or mask[tuple(source)]:
                elements.append(Element(x[tuple(source)], tuple(source), position))

        if nan_policy == "omit":  # a window of nothing but NaN keeps them, and so gives NaN
            elements = [e for e in elements if not _is_nan(e.value)] or elements
        numbers = [e.value for e in elements]
        terms[out] = len(numbers)
        if not elements:
            exact[out] = math.nan if reduction == "mean" else 0
            values[out] = identity
        elif picks:
            sources[out] = _first_best(elements, reduction)
            values[out] = sources[out].value
        elif reduction == "lp":
            exact[out] = _norm(numbers, power)
            # The outer root magnifies what the sum lost.
            scale[out] = exact[out] * max(1.0, 1 / power) if math.isfinite(exact[out]) else 0
        else:
            total = _total(numbers, kind)
            scale[out] = _float_sum([_magnitude(v, kind) for v in numbers])
            if reduction == "mean":
                share = len(numbers) if divisor is None else divisor
                scale[out] /= abs(share)
                total = complex(total.real / share, total.imag / share) if kind == "c" else total / share
            elif kind in "biu":  # integers are exact, and wrap as the result's dtype does
                bits = total % 2**64
                values[out] = bits if kind == "u" or bits < 2**63 else bits - 2**64
            exact[out] = total
    if picks:
        return Answer(values, _winners(x, windows, shape, sources))
    if values.dtype.kind in "iu":
        return Answer(values, None)
    with np.errstate(all="ignore"):
        return Answer(exact.astype(values.dtype), None, exact, scale, terms)


def _winners(x: Array, windows: Windows, shape: tuple[int, ...], won: dict[tuple[int, ...], Element]) -> dict[str, Any]:
    """Where each winner is, in every encoding; -1 where a fill element won, or nothing did."""
    flat, plane, window = (np.full(shape, -1, np.int64) for _ in range(3))
    coords = tuple(np.full(shape, -1, np.int64) for _ in windows)
    ascending = sorted(windows)
    longest = [max(map(len, windows[a]), default=0) for a in ascending]
    for out, element in won.items():
        if element.source is None:
            continue
        flat[out] = _linear(element.source, x.shape)
        plane[out] = _linear([element.source[a] for a in ascending], [x.shape[a] for a in ascending])
        window[out] = _linear(element.position, longest)
        for array, axis in zip(coords, windows, strict=True):
            array[out] = element.source[axis]
    return {"flat": flat, "plane": plane, "coords": coords, "window": window}


def _linear(index: Sequence[int], shape: Sequence[int]) -> int:
    result = 0
    for i, n in zip(index, shape, strict=True):
        result = result * n + i
    return result


def sliding(
    x: Array,
    kernel_size: Any,
    *,
    reduction: str,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    **options: Any,
) -> Answer:
    """`ndpool.max_pool` and the others, by definition."""
    windows = sliding_windows(
        x.shape,
        kernel_size,
        axes=axes,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        padding_mode=padding_mode,
    )
    modes = per_axis(padding_mode, len(windows), "padding_mode")
    if "zeros" in modes:
        if "constant" in modes and fill_value != 0:
            raise ValueError(f"one fill value for all axes: 'zeros' beside 'constant' with {fill_value}")
        fill_value = 0
    return pool(x, windows, reduction, fill_value=fill_value, **options)
