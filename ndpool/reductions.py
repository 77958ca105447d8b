"""The reductions: one table of what each is, and the frozen record of one that a call asks for.

A row says which dtypes a reduction takes, what its result is and what an empty window gives; how a backend computes it
is the backend's matter. Dtypes are asked of the array's own namespace, never named here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

from . import arguments
from .padding import FILL, MODES

Result = Literal["input", "sum", "float"]


@dataclass(frozen=True)
class Rule:
    """A row of the table of reductions.

    Attributes
    ----------
    result : str
        The dtype of the result: that of the ``"input"``, that of the namespace's own ``"sum"``, or ``"float"`` (the
        input's where it is floating, the namespace's default one else).
    kinds : tuple of str
        The kinds of dtype it takes, in the words of the Array API standard.
    positions : bool
        Whether an element of the window wins, so that its position can be told.
    """

    result: Result
    kinds: tuple[str, ...] = ("bool", "integral", "real floating")
    positions: bool = False


RULES: Final = {
    "max": Rule("input", positions=True),
    "min": Rule("input", positions=True),
    "sum": Rule("sum", ("bool", "integral", "real floating", "complex floating")),
    "mean": Rule("float", ("bool", "integral", "real floating", "complex floating")),
    "lp": Rule("float"),
}

NAN_POLICIES: Final = ("propagate", "omit")


def _number(name: str, value: Any) -> float:
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number, got {value!r} of type {type(value).__name__}") from None
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"`{name}` must be a number, got {value!r} of type {type(value).__name__}")
    return result


@dataclass(frozen=True)
class Reduction:
    """A reduction and its parameters, as a backend gets them: checked, and free of array data.

    Attributes
    ----------
    name : str
        ``"max"``, ``"min"``, ``"sum"``, ``"mean"`` or ``"lp"``.
    fill_value : number
        The value of padding in the modes ``"constant"`` and ``"zeros"``.
    nan_policy : str
        ``"propagate"``, or ``"omit"`` where NaNs take no part.
    p : float or None
        The exponent of ``"lp"``, positive, possibly infinite.
    divisor : float or None
        What ``"mean"`` divides by instead of the number of elements that took part.
    """

    name: str
    fill_value: Any = 0
    nan_policy: str = "propagate"
    p: float | None = None
    divisor: float | None = None

    @property
    def rule(self) -> Rule:
        """The row of this reduction."""
        return RULES[self.name]

    @property
    def omits_nan(self) -> bool:
        """Whether NaNs take no part."""
        return self.nan_policy == "omit"

    def fill_takes_part(self, floating: bool) -> bool:
        """Return whether an element of `fill_value` can win or count.

        The infinity that every number beats is no element: a window of nothing but -inf reports a real element of it.
        """
        losing = {"max": -math.inf, "min": math.inf}.get(self.name)
        return losing is None or not floating or self.fill_value != losing


def reduction_of(
    name: Any, *, fill_value: Any = 0, p: Any = None, divisor: Any = None, nan_policy: Any = "propagate"
) -> Reduction:
    """Check the parameters of a reduction and return its record."""
    word = arguments.one_of("reduction", name, RULES)
    policy = arguments.one_of("nan_policy", nan_policy, NAN_POLICIES)
    if word == "lp":
        if p is None:
            raise ValueError("`p` is missing: the reduction 'lp' needs an exponent above 0")
        p = _number("p", p)
        if not p > 0:
            raise ValueError(f"`p` must be > 0 (inf is the largest magnitude), got {p!r}")
    elif p is not None:
        raise ValueError(f"`p` is for the reduction 'lp' alone, got {p!r} with {word!r}")
    if divisor is not None:
        if word != "mean":
            raise ValueError(f"`divisor` is for the reduction 'mean' alone, got {divisor!r} with {word!r}")
        divisor = _number("divisor", divisor)
        if divisor == 0 or not math.isfinite(divisor):
            raise ValueError(f"`divisor` must be a finite number other than 0, got {divisor!r}")
    return Reduction(word, fill_value, policy, p, divisor)


@lru_cache(maxsize=512)
def kind_of(xp: Any, dtype: Any) -> str:
    """Return the kind of `dtype` in the standard's words, or ``"other"`` for what no reduction takes."""
    for kind in ("bool", "integral", "real floating", "complex floating"):
        try:
            if xp.isdtype(dtype, kind):
                return kind
        except TypeError:  # NumPy's for dtypes of other packages and of objects
            break
    return "other"


def check_dtype(xp: Any, dtype: Any, reduction: Reduction) -> None:
    """Raise a `TypeError` for a dtype that a reduction doesn't take."""
    kind = kind_of(xp, dtype)
    if kind not in reduction.rule.kinds:
        raise TypeError(
            f"`x` has dtype {dtype}, which the reduction {reduction.name!r} doesn't take: allowed are "
            f"{', '.join(reduction.rule.kinds)}"
        )


def check_fill(xp: Any, dtype: Any, reduction: Reduction, modes: Iterable[str]) -> Reduction:
    """Return the reduction with the fill value that the padding modes in use ask for, as `dtype` holds it."""
    used = {mode for mode in modes if MODES[mode].cell == FILL}
    if not used:
        return reduction if reduction.fill_value == 0 else replace(reduction, fill_value=0)
    value = _representable(xp, dtype, reduction.fill_value) if used != {"zeros"} else 0
    if len(used) > 1 and value != 0:
        raise ValueError(f"`fill_value` must be 0 where `padding_mode` is 'zeros' on another axis, got {value!r}")
    return replace(reduction, fill_value=value)


def _representable(xp: Any, dtype: Any, value: Any) -> Any:
    kind = kind_of(xp, dtype)
    described = f"`fill_value` must be representable in the array's dtype {dtype}, got {value!r}"
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{described} of type {type(value).__name__}")
    try:
        number = complex(value) if kind == "complex floating" else float(value)
    except OverflowError:
        raise ValueError(f"{described}, which no float holds") from None
    except (TypeError, ValueError):
        raise TypeError(f"{described} of type {type(value).__name__}") from None
    if kind in ("real floating", "complex floating"):
        # A fill element is an element of the array: rounded to its dtype, and not out of its range.
        if float(xp.finfo(dtype).max) < abs(number) < math.inf:
            raise ValueError(f"{described}: the largest is {float(xp.finfo(dtype).max)}")
        rounded = xp.asarray(number, dtype=dtype)
        return complex(rounded) if kind == "complex floating" else float(rounded)
    if number != number or number in (math.inf, -math.inf) or number != math.floor(number):  # type: ignore[arg-type]
        raise ValueError(described)
    exact = operator.index(value) if hasattr(value, "__index__") else int(value)
    low, high = (0, 1) if kind == "bool" else (int(xp.iinfo(dtype).min), int(xp.iinfo(dtype).max))
    if not low <= exact <= high:
        raise ValueError(f"{described}: allowed is {low} to {high}")
    return exact


@lru_cache(maxsize=256)
def dtypes(xp: Any, dtype: Any, result: Result) -> tuple[Any, Any]:
    """Return the dtypes in which a reduction accumulates and returns, asked of the namespace `xp`."""
    kind = kind_of(xp, dtype)
    if result == "input":
        return dtype, dtype
    if kind in ("real floating", "complex floating"):
        narrow = kind == "real floating" and xp.finfo(dtype).bits < 32
        return (xp.float32 if narrow else dtype), dtype
    if result == "float":
        default = xp.__array_namespace_info__().default_dtypes()["real floating"]
    elif kind == "bool":
        default = xp.__array_namespace_info__().default_dtypes()["integral"]
    else:
        default = xp.sum(xp.zeros((1,), dtype=dtype)).dtype
    return default, default


def identity(xp: Any, dtype: Any, name: str) -> Any:
    """Return, as a Python number, the result of a window with nothing in it."""
    if name == "mean":
        return math.nan
    if name not in ("max", "min"):
        return 0
    kind = kind_of(xp, dtype)
    if kind == "bool":
        return name == "min"
    if kind == "integral":
        return int(xp.iinfo(dtype).min if name == "max" else xp.iinfo(dtype).max)
    return -math.inf if name == "max" else math.inf
