"""The public pooling functions: each turns what the user wrote into a plan and a reduction, and ends in `pool`."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import arguments, dispatch, indices
from .plan import WindowPlan, sliding_plan
from .reductions import check_dtype, check_fill, reduction_of


class Pooled(NamedTuple):
    """The values of the windows, and the positions of their winners.

    Attributes
    ----------
    values : array
        Of the plan's output shape.
    indices : array of int64, or tuple of arrays
        In the encoding asked for; a tuple with one array for each pooled axis for ``"coords"``.
    """

    values: Any
    indices: Any


def pool(
    x: Any,
    plan: WindowPlan,
    reduction: str = "max",
    *,
    fill_value: Any = 0,
    p: float | None = None,
    divisor: float | None = None,
    nan_policy: str = "propagate",
    where: Any = None,
    return_indices: bool | str = False,
    backend: str | None = None,
) -> Any:
    """Reduce every window of a plan.

    Parameters
    ----------
    x : array
        Any array whose shape is ``plan.input_shape``; a list or another array-like is taken as NumPy takes it.
    plan : WindowPlan
        The windows.
    reduction : {"max", "min", "sum", "mean", "lp"}
        What to do with the elements of a window.
    fill_value : number
        The value of padding in the mode ``"constant"``.
    p : float
        The exponent of ``"lp"``, ``p > 0``; ``inf`` is the largest magnitude.
    divisor : float or None
        For ``"mean"``: what to divide by, instead of the number of elements that took part.
    nan_policy : {"propagate", "omit"}
        Whether a NaN decides its windows, or takes no part; a window of nothing but NaNs is NaN.
    where : array of bool or None
        Broadcastable to `x`; elements where it is False take no part.
    return_indices : bool or {"flat", "plane", "coords", "window"}
        Whether, and in which encoding, to return the position of each winner (``True`` is ``"flat"``); for ``"max"``
        and ``"min"``. -1 where no element of `x` won.
    backend : str or None
        The name of an engine; `None` lets the array decide.

    Returns
    -------
    array or Pooled
        Of the library and device of `x`, shape ``plan.output_shape``: in the dtype of `x` for max and min, and for sum,
        mean and Lp of floats; sums of integers are in the namespace's default integer, means in its default float.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, the axis, the value and what is allowed, before any work is done.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> plan = ndp.WindowPlan.intervals((5,), {0: [(0, 2), (1, 5)]})
    >>> ndp.pool(np.array([3, 1, 4, 1, 5]), plan, "sum")
    array([ 4, 11])
    """
    if not isinstance(plan, WindowPlan):
        raise TypeError(f"`plan` must be a WindowPlan, got {plan!r} of type {type(plan).__name__}")
    record = reduction_of(reduction, fill_value=fill_value, p=p, divisor=divisor, nan_policy=nan_policy)
    encoding = indices.encoding_of(return_indices)
    if encoding is not None and not record.rule.positions:
        raise ValueError(f"`return_indices` is for 'max' and 'min', got {return_indices!r} with {record.name!r}")
    target = dispatch.resolve(x, backend)
    xp = dispatch.namespace(target.x)
    arguments.check_shape(target.x.shape, plan.input_shape, "x", "the plan's input shape")
    check_dtype(xp, target.x.dtype, record)
    record = check_fill(xp, target.x.dtype, record, (window.mode for window in plan.windows))
    mask = dispatch.mask_of(target, where)
    values, positions, told = dispatch.reduce(target, plan, record, encoding, mask)
    if encoding is None or told is None:
        return values
    return Pooled(values, indices.convert(xp, positions, plan, told, encoding, dispatch.device(positions)))


def _sliding(x: Any, reduction: str, window: tuple[Any, ...], **options: Any) -> Any:
    """Pool the windows of the sliding arguments `window`."""
    x = x if hasattr(x, "shape") else dispatch.resolve(x, None).x
    return pool(x, sliding_plan(tuple(x.shape), *window), reduction, **options)


def max_pool(
    x: Any,
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    nan_policy: str = "propagate",
    where: Any = None,
    return_indices: bool | str = False,
    backend: str | None = None,
) -> Any:
    """Return the largest element of every window.

    Parameters
    ----------
    x : array
        Any array, or what NumPy makes an array of.
    kernel_size : int or sequence of int
        The number of elements of a window, for every pooled axis or one entry an axis.
    axes, stride, padding, dilation, ceil_mode, padding_mode
        The windows: see `WindowPlan.sliding`.
    fill_value, nan_policy, where, return_indices, backend
        See `pool`.

    Returns
    -------
    array or Pooled
        As for `pool`: with `return_indices` the values and the positions of the winners.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, the axis, the value and what is allowed, before any work is done.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> x = np.array([[9, 1, 2], [3, 8, 4]])
    >>> ndp.max_pool(x, 2, axes=1, stride=1, padding=((0, 1),), padding_mode="wrap", return_indices="coords")
    Pooled(values=array([[9, 2, 9],
           [8, 8, 4]]), indices=(array([[0, 2, 0],
           [1, 1, 2]]),))
    """
    window = (kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode)
    options = {"fill_value": fill_value, "nan_policy": nan_policy, "where": where, "backend": backend}
    return _sliding(x, "max", window, return_indices=return_indices, **options)


def min_pool(
    x: Any,
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    nan_policy: str = "propagate",
    where: Any = None,
    return_indices: bool | str = False,
    backend: str | None = None,
) -> Any:
    """Return the smallest element of every window.

    Parameters
    ----------
    x : array
        Any array, or what NumPy makes an array of.
    kernel_size : int or sequence of int
        The number of elements of a window, for every pooled axis or one entry an axis.
    axes, stride, padding, dilation, ceil_mode, padding_mode
        The windows: see `WindowPlan.sliding`.
    fill_value, nan_policy, where, return_indices, backend
        See `pool`.

    Returns
    -------
    array or Pooled
        As for `pool`: with `return_indices` the values and the positions of the winners.

    Raises
    ------
    TypeError, ValueError
        As `pool` raises them.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> ndp.min_pool(np.array([4, 2, 7, 1, 6, 3]), 3)
    array([2, 1])
    """
    window = (kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode)
    options = {"fill_value": fill_value, "nan_policy": nan_policy, "where": where, "backend": backend}
    return _sliding(x, "min", window, return_indices=return_indices, **options)


def avg_pool(
    x: Any,
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    nan_policy: str = "propagate",
    where: Any = None,
    divisor: float | None = None,
    backend: str | None = None,
) -> Any:
    """Return the mean of every window.

    Parameters
    ----------
    x : array
        Any array, or what NumPy makes an array of.
    kernel_size : int or sequence of int
        The number of elements of a window, for every pooled axis or one entry an axis.
    axes, stride, padding, dilation, ceil_mode, padding_mode
        The windows: see `WindowPlan.sliding`.
    fill_value, nan_policy, where, divisor, backend
        See `pool`.

    Returns
    -------
    array
        As for `pool`.

    Raises
    ------
    TypeError, ValueError
        As `pool` raises them.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> ndp.avg_pool(np.array([1.0, 2.0, 6.0]), 2, stride=1, padding=((1, 0),))
    array([1. , 1.5, 4. ])
    """
    window = (kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode)
    options = {"fill_value": fill_value, "nan_policy": nan_policy, "where": where, "backend": backend}
    return _sliding(x, "mean", window, divisor=divisor, **options)


def sum_pool(
    x: Any,
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    nan_policy: str = "propagate",
    where: Any = None,
    backend: str | None = None,
) -> Any:
    """Return the sum of every window.

    Parameters
    ----------
    x : array
        Any array, or what NumPy makes an array of.
    kernel_size : int or sequence of int
        The number of elements of a window, for every pooled axis or one entry an axis.
    axes, stride, padding, dilation, ceil_mode, padding_mode
        The windows: see `WindowPlan.sliding`.
    fill_value, nan_policy, where, backend
        See `pool`.

    Returns
    -------
    array
        As for `pool`.

    Raises
    ------
    TypeError, ValueError
        As `pool` raises them.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> ndp.sum_pool(np.array([200, 100, 50], dtype=np.uint8), 3)
    array([350], dtype=uint64)
    """
    window = (kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode)
    options = {"fill_value": fill_value, "nan_policy": nan_policy, "where": where, "backend": backend}
    return _sliding(x, "sum", window, **options)


def lp_pool(
    x: Any,
    p: float,
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    padding_mode: Any = "ignore",
    fill_value: Any = 0,
    nan_policy: str = "propagate",
    where: Any = None,
    backend: str | None = None,
) -> Any:
    """Return the Lp norm ``(sum abs(x)**p)**(1/p)`` of every window.

    Parameters
    ----------
    x : array
        Any array, or what NumPy makes an array of.
    p : float
        The exponent, ``p > 0``; ``inf`` is the largest magnitude.
    kernel_size : int or sequence of int
        The number of elements of a window, for every pooled axis or one entry an axis.
    axes, stride, padding, dilation, ceil_mode, padding_mode
        The windows: see `WindowPlan.sliding`.
    fill_value, nan_policy, where, backend
        See `pool`.

    Returns
    -------
    array
        As for `pool`.

    Raises
    ------
    TypeError, ValueError
        As `pool` raises them.

    Examples
    --------
    >>> import numpy as np
    >>> import ndpool as ndp
    >>> ndp.lp_pool(np.array([3e200, -4e200]), 2, 2)
    array([5.e+200])
    """
    window = (kernel_size, axes, stride, padding, dilation, ceil_mode, padding_mode)
    options = {"fill_value": fill_value, "nan_policy": nan_policy, "where": where, "backend": backend}
    return _sliding(x, "lp", window, p=p, **options)
