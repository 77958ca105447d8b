"""The four ways to write the position of a winner, and the arithmetic between them.

Every encoding is a function of the coordinate in the array and of the output position; -1 (no element of the array won)
is -1 in all of them. The arithmetic uses operators and a few functions of the array's own namespace.
"""

from __future__ import annotations

import math
from typing import Any, Final

import array_api_compat

from . import arguments
from .padding import MODES
from .plan import FAR, AxisWindows, WindowPlan

ENCODINGS: Final = ("flat", "plane", "coords", "window")


def encoding_of(return_indices: Any) -> str | None:
    """Return the encoding that ``return_indices`` asks for, `None` for none."""
    if return_indices is True or return_indices is False:
        return "flat" if return_indices else None
    return arguments.one_of("return_indices", return_indices, ENCODINGS)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of C order, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def linear(plan: WindowPlan, encoding: str) -> tuple[int, ...]:
    """Return, for each axis of the array, how far one step on it moves a ``"flat"`` or ``"plane"`` index."""
    if encoding == "flat":
        return strides_of(plan.input_shape)
    pooled = strides_of(tuple(window.size for window in plan.ascending))
    steps = [0] * len(plan.input_shape)
    for window, step in zip(plan.ascending, pooled, strict=True):
        steps[window.axis] = step
    return tuple(steps)


def along(xp: Any, values: Any, axis: int, like: Any, device: Any) -> Any:
    """Return a table of one axis as an int64 array that broadcasts against `like`."""
    shape = tuple(-1 if a == axis else 1 for a in range(like.ndim))
    return xp.reshape(xp.asarray(values, dtype=xp.int64, device=device), shape)


def _cell(xp: Any, window: AxisWindows, column: Any, starts: Any) -> Any:
    """Return the coordinate under a `column` of each window, for columns that hold one."""
    position = starts + column * min(window.dilation, FAR)
    fold, (first, last) = MODES[window.mode].fold, window.real
    if fold is None or first >= last:
        return position
    inside = (position >= first) & (position < last)
    return xp.where(inside, position, first + fold(position - first, last - first))


def _column(xp: Any, window: AxisWindows, coord: Any, starts: Any, lengths: Any, nowhere: int) -> Any:
    """Return the first column of each window that holds `coord`, `nowhere` where none does."""
    step = min(window.dilation, FAR)
    column = xp.full_like(coord, nowhere)
    if window.count == 0 or window.reach == 0:
        return column
    first, last = int(window.starts().min()), int((window.starts() + (window.lengths() - 1) * step).max())
    for run in window.runs(first, last + 1):
        if run.source < 0:
            continue
        if run.step:
            position = run.begin + (coord - run.source) * run.step
        else:
            # One element repeated: the first position of the run that this window visits.
            steps = -((starts - run.begin) // step)
            position = starts + xp.where(steps > 0, steps, xp.zeros_like(steps)) * step
            position = xp.where(coord == run.source, position, xp.full_like(position, run.end))
        offset = position - starts
        here = (position >= run.begin) & (position < run.end) & (offset >= 0) & (offset % step == 0)
        here = here & (offset // step < lengths) & (column == nowhere)
        column = xp.where(here, offset // step, column)
    return column


def _coords(xp: Any, indices: Any, plan: WindowPlan, source: str, device: Any) -> dict[int, Any]:
    """Return the coordinate on each pooled axis."""
    if source == "coords":
        return dict(zip(plan.axes, indices, strict=True))
    if source == "window":
        sizes = plan.kernel_shape
    elif source == "plane":
        sizes = tuple(window.size for window in plan.ascending)
    else:
        sizes = plan.input_shape
    axes = range(len(sizes)) if source == "flat" else sorted(plan.axes)
    missing = xp.full_like(indices, -1)
    coords = {}
    for axis, size, step in zip(axes, sizes, strides_of(sizes), strict=True):
        if axis in plan.axes:
            coords[axis] = (indices // max(step, 1)) % max(size, 1)
    if source == "window":
        for window in plan.ascending:
            starts = along(xp, window.starts(), window.axis, indices, device)
            coords[window.axis] = _cell(xp, window, coords[window.axis], starts)
    return {axis: xp.where(indices < 0, missing, coord) for axis, coord in coords.items()}


def convert(xp: Any, indices: Any, plan: WindowPlan, source: str, target: str, device: Any) -> Any:
    """Write the positions `indices` of the encoding `source` in the encoding `target`; arguments are trusted."""
    if source == target:
        return indices
    coords = _coords(xp, indices, plan, source, device)
    if target == "coords":
        return tuple(coords[axis] for axis in plan.axes)
    like = indices[0] if source == "coords" else indices
    missing, result = like < 0, xp.zeros_like(like)
    if target == "window":
        for window, step in zip(plan.ascending, strides_of(plan.kernel_shape), strict=True):
            starts = along(xp, window.starts(), window.axis, like, device)
            lengths = along(xp, window.lengths(), window.axis, like, device)
            column = _column(xp, window, coords[window.axis], starts, lengths, -1)
            if bool(xp.any((column < 0) & ~missing)):
                raise ValueError(
                    f"`indices` holds a coordinate on axis {window.axis} that is not in the window of its output "
                    f"position: {plan.describe()}"
                )
            result = result + column * step
    else:
        steps = linear(plan, target)
        for axis in range(len(plan.input_shape)):
            if axis in coords:
                result = result + coords[axis] * steps[axis]
            elif steps[axis]:
                own = range(plan.input_shape[axis])
                result = result + along(xp, list(own), axis, like, device) * steps[axis]
    return xp.where(missing, xp.full_like(result, -1), result)


def _counts(plan: WindowPlan, encoding: str) -> tuple[int, ...]:
    """Return how many positions there are, for each array that holds some."""
    sizes = {window.axis: window.size for window in plan.windows}
    if encoding == "coords":
        return tuple(sizes[axis] for axis in plan.axes)
    shapes = {"flat": plan.input_shape, "plane": tuple(sizes.values()), "window": plan.kernel_shape}
    return (math.prod(shapes[encoding]),)


def convert_indices(indices: Any, plan: WindowPlan, source: str, target: str) -> Any:
    """Write positions of one encoding in another.

    Parameters
    ----------
    indices : array of int, or tuple of arrays
        Positions of shape ``plan.output_shape`` in the encoding `source`, -1 for none; for ``"coords"`` a tuple with
        one array for each pooled axis, in the order of ``plan.axes``.
    plan : WindowPlan
        The plan that they belong to.
    source, target : {"flat", "plane", "coords", "window"}
        The encodings.

    Returns
    -------
    array of int64, or tuple of arrays
        The same positions in the encoding `target`.

    Raises
    ------
    TypeError, ValueError
        For an unknown encoding, a wrong shape or dtype, a position that the array (or the window) has not and, where
        `target` is ``"window"``, for one that is not in the window of its output position.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> plan = ndp.WindowPlan.sliding((2, 6), 3, axes=1)
    >>> ndp.convert_indices(np.array([[2, 3], [0, 5]]), plan, "plane", "flat")
    array([[ 2,  3],
           [ 6, 11]])
    >>> ndp.convert_indices(np.array([[2, 3], [0, 5]]), plan, "plane", "window")
    array([[2, 0],
           [0, 2]])
    """
    source = arguments.one_of("source", source, ENCODINGS)
    target = arguments.one_of("target", target, ENCODINGS)
    if not isinstance(plan, WindowPlan):
        raise TypeError(f"`plan` must be a WindowPlan, got {plan!r} of type {type(plan).__name__}")
    parts = indices if source == "coords" else (indices,)
    if not isinstance(parts, tuple) or (source == "coords" and len(parts) != len(plan.axes)):
        raise TypeError(
            f"`indices` must be a tuple of {len(plan.axes)} arrays for 'coords', got {type(indices).__name__}"
        )
    if not all(array_api_compat.is_array_api_obj(part) for part in parts):
        got = ", ".join(type(part).__name__ for part in parts)
        raise TypeError(
            f"`indices` must be an array, or for 'coords' a tuple of arrays, got {got} (not a whole Pooled)"
        )
    if not parts:
        raise ValueError("`indices` holds no array: a plan without pooled axes has no coordinates to start from")
    xp = array_api_compat.array_namespace(*parts)
    for part in parts:
        arguments.check_shape(tuple(part.shape), plan.output_shape, "indices", "the plan's output shape")
        if not xp.isdtype(part.dtype, "integral"):
            raise TypeError(f"`indices` must be integers, got dtype {part.dtype}")
    wide = tuple(xp.astype(part, xp.int64) for part in parts)
    for part, count in zip(wide, _counts(plan, source), strict=True):
        if bool(xp.any((part < -1) | (part >= count))):
            least, most = int(xp.min(part)), int(xp.max(part))
            raise ValueError(
                f"`indices` must be -1 or positions 0 to {count - 1} for {source!r}, got {least} to {most}"
            )
    given = wide if source == "coords" else wide[0]
    return convert(xp, given, plan, source, target, array_api_compat.device(wide[0]))
