"""Random problems for the oracle and the engines: mostly valid by construction, with a few that must be refused."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ndpool.testing import oracle
from ndpool.testing.windows import MODES, output_length, resolve_padding

FUNCTIONS = {"max": "max_pool", "min": "min_pool", "sum": "sum_pool", "mean": "avg_pool", "lp": "lp_pool"}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
POWERS = (0.5, 1, 1.5, 2, 3, 10, math.inf)
EXTENT = {1: 12, 2: 8, 3: 6, 4: 4, 5: 4}  # the longest axis for a rank: the oracle is slow
WINDOW, CELLS = 64, 8000  # elements of a window, and of all windows together


@dataclass(frozen=True)
class Problem:
    """One call of a public pooling function."""

    x: np.ndarray
    reduction: str
    sliding: dict[str, Any]  # what `WindowPlan.sliding` takes beside the shape
    options: dict[str, Any]
    layout: str = "C"

    def __repr__(self) -> str:
        function = FUNCTIONS[self.reduction]
        arguments = ", ".join(f"{k}={v!r}" for k, v in {**self.sliding, **self.options}.items())
        return f"{function}(np.{self.x!r}, {arguments})  # {self.x.dtype}, {self.x.shape}, {self.layout}"

    def answer(self) -> oracle.Answer:
        return oracle.sliding(self.x, reduction=self.reduction, **self.sliding, **self.options)

    def call(self, ndp: Any, convert: Callable[[np.ndarray], Any], **options: Any) -> Any:
        """The public call, on arrays of any library."""
        keywords = {**self.sliding, **self.options, **options}
        if "where" in keywords:
            keywords["where"] = convert(keywords["where"])
        first = (keywords.pop("p"),) if self.reduction == "lp" else ()
        x = convert(self.x)
        return getattr(ndp, FUNCTIONS[self.reduction])(x, *first, keywords.pop("kernel_size"), **keywords)


def rarely(draw: Any, one_in: int = 12) -> bool:
    """True now and then; hypothesis shrinks it to False."""
    return bool(draw(st.integers(0, one_in - 1)) == one_in - 1)


# ---- arrays --------------------------------------------------------------------------------------------------------


def palette(dtype: Any) -> list[Any]:
    """Values that go wrong somewhere: few and small for ties, then extremes."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        wide = [2**53, 2**53 + 1] if dtype.itemsize == 8 else []
        return [0, 1, 2, 3, int(ends.min), int(ends.max), int(ends.max) - 1, *wide]
    if dtype.kind == "c":
        return [0j, 1 + 1j, 1 - 2j, complex(math.nan, 1)]  # (inf + 1j) * 1 has no agreed answer
    large = {2: 60000.0, 4: 1e8, 8: 1e16}[dtype.itemsize]
    return [0.0, -0.0, 1.0, -1.0, 2.0, 0.1, math.nan, math.inf, -math.inf, large, float(np.finfo(dtype).tiny)]


def arrange(draw: Any, x: np.ndarray) -> tuple[np.ndarray, str]:
    """The same values in another memory order."""
    layout = draw(st.sampled_from(["C", "F", "transposed", "negative", "gaps", "zero strides", "read-only"]))
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "transposed":
        order = draw(st.permutations(range(x.ndim)))
        x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    elif layout == "negative":
        back = tuple(slice(None, None, draw(st.sampled_from([-1, 1]))) for _ in range(x.ndim))
        x = np.ascontiguousarray(x[back])[back]
    elif layout == "gaps":
        wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
        wide[(slice(1, None, 2),) * x.ndim] = x
        x = wide[(slice(1, None, 2),) * x.ndim]
    elif layout == "zero strides":  # other values, all the same along one axis
        axis = draw(st.integers(0, x.ndim - 1))
        x = np.broadcast_to(x[(slice(None),) * axis + (slice(0, 1),)], x.shape) if x.shape[axis] else x
    elif layout == "read-only":
        x.flags.writeable = False
    return x, layout


def values(draw: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array from a few values (so ties are common), or of random numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if np.dtype(dtype).kind in "fc" and draw(st.booleans()):
        x = rng.standard_normal(shape)
        return np.asarray(x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)
    few = draw(st.lists(st.sampled_from(palette(dtype)), min_size=1, max_size=5))
    return np.array(few, dtype)[rng.integers(0, len(few), shape)]


@st.composite
def shapes(draw: Any) -> tuple[int, ...]:
    ndim = draw(st.integers(1, 5))
    shape = [draw(st.integers(1, EXTENT[ndim])) for _ in range(ndim)]
    if rarely(draw, 6):
        shape[draw(st.integers(0, ndim - 1))] = 0
    return tuple(shape)


# ---- arguments -----------------------------------------------------------------------------------------------------


def _padding(draw: Any, n: int, span: int) -> Any:
    kind = draw(st.sampled_from(["none", "int", "pair", "long", "crop", "valid", "same", "same_lower"]))
    if kind == "none":
        return 0
    if kind == "int":
        return draw(st.integers(-1, 3))
    if kind in ("pair", "crop", "long"):
        low, high = {"pair": (0, 3), "crop": (-3, 2), "long": (0, 2 * n + span)}[kind]
        return (draw(st.integers(low, high)), draw(st.integers(low, high)))
    return kind


def _made_valid(n: int, k: int, s: int, d: int, *, padding: Any, ceil_mode: bool) -> Any:
    """`padding`, or a longer one with which there is a window."""
    for _ in range(4):
        before, after = resolve_padding(padding, n, k, s, d)
        try:
            output_length(n, k, s, before, after, dilation=d, ceil_mode=ceil_mode)
        except ValueError:
            padding = (before + max(1, d * (k - 1) + 1 - n - before - after), after)
        else:
            break
    return padding


def _merged(draw: Any, entries: list[Any]) -> Any:
    """One value for all axes where they are equal and the draw says so, else an entry an axis."""
    if entries and all(e == entries[0] for e in entries) and not isinstance(entries[0], tuple) and draw(st.booleans()):
        return entries[0]
    return tuple(entries)


@st.composite
def sliding_arguments(draw: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """What `WindowPlan.sliding` takes beside the shape; in one of about thirty it must raise a ValueError."""
    ndim, invalid, ceil_mode = len(shape), rarely(draw, 30), draw(st.booleans())
    axes = draw(st.permutations(range(ndim)))[: draw(st.integers(0 if rarely(draw) else 1, ndim))]
    kernels, strides, dilations, paddings, modes, sizes = [], [], [], [], [], []
    budget = WINDOW
    for axis in axes:
        n = shape[axis]
        k = draw(st.integers(1, min(5, budget)))
        budget //= k
        s, d = draw(st.sampled_from([1, 2, 1, 3, 4])), draw(st.integers(1, 3))
        padding, mode = _padding(draw, n, d * (k - 1) + 1), draw(st.sampled_from(sorted(MODES)))
        if not invalid:
            padding = _made_valid(n, k, s, d, padding=padding, ceil_mode=ceil_mode)
            before, after = resolve_padding(padding, n, k, s, d)
            if n - max(0, -before) - max(0, -after) < 1 and MODES[mode] not in ("ignore", "constant"):
                mode = "ignore"
        kernels.append(k)
        strides.append(s)
        dilations.append(d)
        paddings.append(padding)
        modes.append(mode)
        before, after = resolve_padding(padding, n, k, s, d)
        sizes.append(max(1, (n + before + after) // s) * k)
    # Too much for plain loops: the longest axes go in longer steps, then without their padding.
    batch = math.prod(n for a, n in enumerate(shape) if a not in axes)
    while math.prod(sizes) * batch > CELLS:
        i = sizes.index(max(sizes))
        n, k, d = shape[axes[i]], kernels[i], dilations[i]
        if strides[i] < 4:
            strides[i] += 1
        elif paddings[i] != 0 and n >= d * (k - 1) + 1:
            paddings[i] = 0
        else:
            break
        if not invalid:
            paddings[i] = _made_valid(n, k, strides[i], d, padding=paddings[i], ceil_mode=ceil_mode)
        before, after = resolve_padding(paddings[i], n, k, strides[i], d)
        sizes[i] = max(1, (n + before + after) // strides[i]) * k

    arguments = {
        "kernel_size": _merged(draw, kernels),
        "axes": tuple(a - ndim if draw(st.booleans()) else a for a in axes),
        "stride": _merged(draw, strides),
        "padding": _merged(draw, paddings),
        "dilation": _merged(draw, dilations),
        "padding_mode": _merged(draw, modes),
        "ceil_mode": ceil_mode,
    }
    every = list(range(ndim))
    if axes == (every if isinstance(arguments["kernel_size"], int) else every[ndim - len(axes) :]) and axes:
        arguments["axes"] = None
    elif len(axes) == 1 and draw(st.booleans()):
        arguments["axes"] = axes[0]
    if kernels == strides and draw(st.booleans()):
        arguments["stride"] = None
    return arguments


@st.composite
def problems(
    draw: Any, reductions: tuple[str, ...] = oracle.REDUCTIONS, without: frozenset[str] = frozenset()
) -> Problem:
    """Any call of a public pooling function, on any dtype but those in `without`."""
    reduction = draw(st.sampled_from(reductions))
    dtypes = ("bool", *INTEGERS, *FLOATS, *FLOATS, *(COMPLEX if reduction in ("sum", "mean") else ()))
    dtype = np.dtype(draw(st.sampled_from([d for d in dtypes if d not in without])))
    shape = draw(shapes())
    arguments = draw(sliding_arguments(shape))
    x, layout = arrange(draw, values(draw, shape, dtype))

    options: dict[str, Any] = {}
    modes = [arguments["padding_mode"]] if isinstance(arguments["padding_mode"], str) else arguments["padding_mode"]
    if "constant" in modes and ("zeros" not in modes or rarely(draw)):
        fill = draw(st.sampled_from(palette(dtype)))
        options["fill_value"] = (fill or 0) if "zeros" in modes else fill  # -0.0 beside "zeros" has no agreed sign
    if draw(st.booleans()):
        options["nan_policy"] = draw(st.sampled_from(["omit", "propagate"]))
    if rarely(draw, 4):
        options["where"] = mask(draw, shape)
    if reduction == "lp":
        options["p"] = draw(st.sampled_from(POWERS))
    if reduction == "mean" and rarely(draw, 4):
        options["divisor"] = draw(st.sampled_from([1, 2, 3, 7, 0.5]))
    return Problem(x, reduction, arguments, options, layout)


def mask(draw: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Booleans that broadcast to `shape`, sometimes from fewer axes."""
    small = tuple(1 if rarely(draw, 4) else n for n in shape)[draw(st.integers(0, len(shape))) :]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return np.asarray(rng.random(small) < draw(st.sampled_from([0.7, 0.3, 1.0, 0.0])))


@st.composite
def interval_problems(draw: Any) -> tuple[np.ndarray, dict[int, list[tuple[int, int]]], str]:
    """An array, windows as intervals in any order and overlap (empty ones among them), and a reduction."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(ndim))
    axes = draw(st.permutations(range(ndim)))[: draw(st.integers(1, ndim))]
    intervals = {}
    for axis in axes:
        pair = st.tuples(st.integers(0, shape[axis]), st.integers(0, shape[axis])).map(sorted).map(tuple)
        intervals[axis] = draw(st.lists(pair, min_size=0 if rarely(draw) else 1, max_size=5))
    x = values(draw, shape, draw(st.sampled_from(["float64", "int32", "float32", "bool"])))
    return x, intervals, draw(st.sampled_from(oracle.REDUCTIONS))
