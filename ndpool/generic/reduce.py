"""The primitive ``reduce`` on the Array API standard: one axis after another, in a number of steps that is log2(k).

Cells are combined by a balanced tree (sums stay accurate, nothing is ever subtracted), and the work is at most
``log2(k)`` times the axis, at most the table where windows are few. Which blocks is host work (`blocks`); arrays see
`take`, slices, `where` and one `combine`, so a traced array (``jax.jit``) works as well.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import array_api_compat

from ..indices import along, linear
from ..padding import FILL, IGNORED
from ..plan import AxisWindows, WindowPlan
from ..reductions import Reduction, dtypes, identity, kind_of
from .blocks import Index, blocks

State = tuple[Any, ...]
# Relative positions on the way: nothing took part, or a fill element won. Final ones are -1 for both.
_NOTHING, _FILLED = -2, -1


class Algebra(Protocol):
    """What is carried for each block of cells, and how two neighbouring blocks become one."""

    neutral: tuple[Any, ...]
    filled: tuple[Any, ...]

    def combine(self, left: State, right: State) -> State:
        """Return the state of the block `left` followed by the block `right`."""


class Extremum:
    """The value that wins, and with it where it stands; the left one wins a tie."""

    def __init__(self, xp: Any, name: str, floating: bool, omit: bool, neutral: Any, fill: Any) -> None:
        self.xp, self.greater, self.floating, self.omit = xp, name == "max", floating, omit
        self.neutral, self.filled = (neutral, _NOTHING), (fill, _FILLED)

    def combine(self, left: State, right: State) -> State:
        """Keep `left` unless `right` is strictly better: NaN beats all, or, omitted, loses to all."""
        xp, (a, *at), (b, *bt) = self.xp, left, right
        wins = b > a if self.greater else b < a
        if self.floating:
            a_nan, b_nan = xp.isnan(a), xp.isnan(b)
            wins = wins | (a_nan & ~b_nan) if self.omit else (wins | b_nan) & ~a_nan
        if at:
            wins = (wins | (at[0] == _NOTHING)) & (bt[0] != _NOTHING)
        return tuple(xp.where(wins, new, old) for new, old in zip(right, left, strict=True))


class Sum:
    """Sums of everything carried: elements, and where it depends on data how many took part and how many are NaN."""

    neutral: tuple[Any, ...] = (0, 0, 0)
    filled: tuple[Any, ...] = (0, 0, 0)  # fill elements are counted, not added one by one

    def combine(self, left: State, right: State) -> State:
        """Add."""
        return tuple(a + b for a, b in zip(left, right, strict=True))


class Norm(Sum):
    """A magnitude ``s`` and ``q = sum((|x| / s)**p)``, then counts: no power leaves the range of the dtype."""

    def __init__(self, xp: Any, p: float) -> None:
        self.xp, self.p = xp, p
        self.neutral = self.filled = (0, 0, 0, 0)

    def combine(self, left: State, right: State) -> State:
        """Rescale the smaller to the larger, and add."""
        xp, one = self.xp, xp_ones(self.xp, left[0])
        scale = xp.where(xp.isnan(left[0]), left[0], xp.maximum(left[0], right[0]))
        total = None
        for s, q in (left[:2], right[:2]):
            same = s == scale  # also inf and inf, 0 and 0, which no quotient can tell
            part = q * (xp.where(same, one, s) / xp.where(same, one, scale)) ** self.p
            total = part if total is None else total + part
        return (scale, total, *super().combine(left[2:], right[2:]))


def xp_ones(xp: Any, like: Any) -> Any:
    """Return a 1 of the dtype and device of `like`, to broadcast."""
    return xp.ones((), dtype=like.dtype, device=array_api_compat.device(like))


def pick(xp: Any, algebra: Algebra, state: State, index: Index, axis: int) -> State:
    """Take slices of every part of a state; a negative index is a neutral or a filled slice."""
    if isinstance(index, slice):
        return tuple(part[(slice(None),) * axis + (index, ...)] for part in state)
    device = array_api_compat.device(state[0])
    any_real = bool((index >= 0).any())
    take = xp.asarray(index.clip(0), dtype=xp.int64, device=device)
    parts = []
    for part, neutral, filled in zip(state, algebra.neutral, algebra.filled, strict=False):
        if any_real:
            taken = xp.take(part, take, axis=axis)
        else:
            shape = (*part.shape[:axis], len(index), *part.shape[axis + 1 :])
            taken = xp.zeros(shape, dtype=part.dtype, device=device)
        for cell, value in ((IGNORED, neutral), (FILL, filled)):
            if (index == cell).any():
                chosen = xp.reshape(
                    xp.asarray(index == cell, device=device),
                    tuple(-1 if a == axis else 1 for a in range(taken.ndim)),
                )
                taken = xp.where(chosen, xp.asarray(value, dtype=part.dtype, device=device), taken)
        parts.append(taken)
    return tuple(parts)


def reduce_axis(xp: Any, algebra: Algebra, state: State, window: AxisWindows, step: int | None) -> State:
    """Reduce one axis of a state; `step` is how far its coordinate moves a position, `None` where none is carried."""
    axis, result, level = window.axis, None, state
    for left, right, takes in blocks(window):
        block = pick(xp, algebra, level, left, axis)
        if right is not None:
            block = algebra.combine(block, pick(xp, algebra, level, right, axis))
        elif step is not None and not isinstance(left, slice):
            value, at = block
            own = along(xp, left * step, axis, at, array_api_compat.device(at))
            block = (value, xp.where(at >= 0, at + own, at))
        level = block
        if takes is not None:
            part = pick(xp, algebra, level, takes, axis)
            result = part if result is None else algebra.combine(result, part)
    return pick(xp, algebra, state, window.starts() * 0 + IGNORED, axis) if result is None else result


def _per_axis(xp: Any, plan: WindowPlan, attribute: str, like: Any, dtype: Any) -> Any:
    """Return the product over the axes of an integer that each window has on each axis."""
    device = array_api_compat.device(like)
    product = xp.ones((1,) * like.ndim, dtype=dtype, device=device)
    for window in plan.windows:
        product = product * xp.astype(along(xp, getattr(window, attribute), window.axis, like, device), dtype)
    return product


def _extremum(x: Any, plan: WindowPlan, reduction: Reduction, encoding: str | None, where: Any) -> tuple[Any, Any]:
    xp, device = array_api_compat.array_namespace(x), array_api_compat.device(x)
    kind = kind_of(xp, x.dtype)
    floating = kind == "real floating"
    neutral = identity(xp, x.dtype, reduction.name)
    fill = reduction.fill_value if reduction.fill_takes_part(floating) else None
    value = xp.astype(x, xp.uint8) if kind == "bool" else x
    neutral = int(neutral) if kind == "bool" else neutral
    algebra = Extremum(xp, reduction.name, floating, reduction.omits_nan, neutral, fill)
    if fill is None:
        algebra.filled = algebra.neutral
    state: State = (value,)
    if encoding is not None or where is not None or (floating and reduction.omits_nan):
        at = xp.broadcast_to(xp.zeros((), dtype=xp.int64, device=device), x.shape)
        state = (value, at if where is None else xp.where(where, at, xp.full_like(at, _NOTHING)))
    steps = linear(plan, encoding or "plane")
    for window in reversed(plan.ascending):
        state = reduce_axis(xp, algebra, state, window, steps[window.axis] if len(state) > 1 else None)
    value, *at = state if plan.windows else (xp.asarray(value, copy=True), *state[1:])
    # A fill element of one axis stood in windows that have nothing on another: those are empty all the same.
    empty = [w for w in plan.windows if (w.taking_part == 0).any()]
    missing = _per_axis(xp, plan, "taking_part", value, xp.int64) == 0 if empty else None
    if at:
        nothing = at[0] == _NOTHING
        missing = nothing if missing is None else nothing | missing
    if missing is not None:
        value = xp.where(missing, xp.asarray(algebra.neutral[0], dtype=value.dtype, device=device), value)
    value = xp.astype(value, xp.bool) if kind == "bool" else value
    if encoding is None:
        return value, None
    won = at[0] >= 0 if missing is None else (at[0] >= 0) & ~missing
    index = at[0]
    for axis in sorted(set(range(x.ndim)) - set(plan.axes)):
        if steps[axis]:
            index = index + along(xp, list(range(x.shape[axis])), axis, index, device) * steps[axis]
    return value, xp.where(won, index, xp.full_like(index, -1))


def _total(x: Any, plan: WindowPlan, reduction: Reduction, where: Any) -> Any:
    """Sum, mean and Lp: the elements are added, the fill elements counted."""
    xp, device = array_api_compat.array_namespace(x), array_api_compat.device(x)
    accumulator, result = dtypes(xp, x.dtype, reduction.rule.result)
    name, fill, p = reduction.name, reduction.fill_value, reduction.p
    norm = p if name == "lp" and p not in (1, math.inf) else None
    value = xp.astype(x, accumulator)
    nan = xp.isnan(x) if kind_of(xp, x.dtype).endswith("floating") and reduction.omits_nan else None
    part = where
    if nan is not None:
        nan = nan if where is None else nan & where
        part = ~nan if where is None else where & ~nan
    if part is not None:
        value = xp.where(part, value, xp.zeros_like(value))
    if name == "lp":
        value = xp.abs(value)
        fill = abs(fill)
    algebra = Sum() if norm is None else Norm(xp, norm)
    state: State = (value,) if norm is None else (value, xp.astype(value != 0, accumulator))
    if part is not None:
        counted = part if where is None or where.shape == x.shape else xp.broadcast_to(part, x.shape)
        state = (*state, xp.astype(counted, xp.int64), xp.astype(nan if nan is not None else counted, xp.int64))
    for window in reversed(plan.ascending):
        state = reduce_axis(xp, algebra, state, window, None)
    sums, counts = state[: 1 + (norm is not None)], state[1 + (norm is not None) :]

    covered = _per_axis(xp, plan, "covered", x, xp.int64)
    filled = _per_axis(xp, plan, "taking_part", x, xp.int64) - covered
    nan_fill = nan is not None and fill != fill
    if not nan_fill and any((w.taking_part != w.covered).any() for w in plan.windows):
        amount = xp.astype(filled, accumulator)
        value = xp.asarray(fill, dtype=accumulator, device=device)
        value = xp.where(filled > 0, value, xp.zeros_like(value))  # not 0 * inf
        if norm is None:
            sums = (sums[0] + value * amount,)
        else:
            sums = algebra.combine(sums, (value, xp.where(value == 0, xp.zeros_like(amount), amount)))
    taking = (0 if nan_fill else filled) + (counts[0] if counts else covered)

    total = sums[0] if norm is None else sums[0] * sums[1] ** (1 / norm)
    if name == "mean":
        nothing = taking == 0
        divisor = xp.astype(xp.where(nothing, xp.ones_like(taking), taking), accumulator)
        total = total / (divisor if reduction.divisor is None else reduction.divisor)
        total = xp.where(nothing, xp.asarray(math.nan, dtype=accumulator, device=device), total)
    if nan is not None:
        only_nan = (taking == 0) & (counts[1] + (filled if nan_fill else 0) > 0)
        total = xp.where(only_nan, xp.asarray(math.nan, dtype=accumulator, device=device), total)
    return xp.astype(total, result)


def reduce(
    x: Any, plan: WindowPlan, reduction: Reduction, want_positions: str | None, where: Any = None
) -> tuple[Any, Any]:
    """Reduce every window of `x`; the primitive of `ndpool.backend.Reduce`, for any Array API array."""
    if reduction.rule.positions:
        return _extremum(x, plan, reduction, want_positions, where)
    if reduction.name == "lp" and reduction.p == math.inf:
        magnitude = Reduction("max", abs(reduction.fill_value), reduction.nan_policy)
        return _largest(x, plan, magnitude, where), None
    return _total(x, plan, reduction, where), None


def _largest(x: Any, plan: WindowPlan, magnitude: Reduction, where: Any) -> Any:
    """Lp of p = inf: the largest magnitude, 0 where nothing took part."""
    xp = array_api_compat.array_namespace(x)
    accumulator, result = dtypes(xp, x.dtype, "float")
    value, _ = _extremum(xp.abs(xp.astype(x, accumulator)), plan, magnitude, None, where)
    return xp.astype(xp.where(value < 0, xp.zeros_like(value), value), result)
