"""What the user wrote, turned into tuples of ints with one entry for each pooled axis.

This is the one place that words errors about arguments: each names the argument, the axis, the value and what is
allowed. Nothing here sees an array.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .padding import ALIASES, MODES, NAMES

Pads = tuple[int, int]
SAME = ("same", "same_lower")


class AxisArguments(NamedTuple):
    """The arguments of one pooled axis, resolved to ints."""

    axis: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    mode: str


def integer(name: str, value: Any, *, axis: int | None = None, minimum: int | None = None) -> int:
    """Return `value` as an int, or raise an error that names the argument and the axis."""
    where = "" if axis is None else f" on axis {axis}"
    # A bool is an int to Python; as a size it is always a mistake.
    if not isinstance(value, bool):
        try:
            result = operator.index(value)
        except TypeError:
            pass
        else:
            if minimum is not None and result < minimum:
                raise ValueError(f"`{name}`{where} must be at least {minimum}, got {result}")
            return result
    raise TypeError(f"`{name}`{where} must be an int, got {value!r} of type {type(value).__name__}")


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; anything but a bool (of Python or an array library) is an error."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False, got {value!r} of type {type(value).__name__}")


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the words `allowed`."""
    words = tuple(allowed)
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be one of {', '.join(map(repr, words))}, got {value!r}")
    if value not in words:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, words))}, got {value!r}")
    return value


def is_sequence(value: Any) -> bool:
    """Return whether `value` holds one entry for each axis, rather than one for all."""
    if isinstance(value, (str, bytes)) or hasattr(value, "keys") or getattr(value, "ndim", 1) == 0:
        return False  # a word, a mapping, an array of one number
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def per_axis(name: str, value: Any, axes: Sequence[int]) -> tuple[Any, ...]:
    """Return one entry for each axis: a sequence of the right length as it is, anything else repeated."""
    if not is_sequence(value):
        return (value,) * len(axes)
    if len(value) != len(axes):
        hint = " (a pair for one axis alone is written ((before, after),))" if name == "padding" else ""
        raise ValueError(
            f"`{name}` has {len(value)} entries for {len(axes)} pooled axes {tuple(axes)}: expected {len(axes)} "
            f"entries, got {len(value)}, in {value!r}{hint}"
        )
    return tuple(value)


def shape_of(shape: Any) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative ints."""
    if not is_sequence(shape):
        raise TypeError(f"`shape` must be a tuple of ints, got {shape!r} of type {type(shape).__name__}")
    return tuple(integer("shape", size, axis=axis, minimum=0) for axis, size in enumerate(shape))


def resolve_axes(axes: Any, ndim: int, entries: int | None) -> tuple[int, ...]:
    """Return the pooled axes as distinct non-negative ints, in the order given.

    Parameters
    ----------
    axes : int, sequence of int or None
        `None` is the last `entries` axes, or every axis where `entries` is `None`.
    ndim : int
        The rank of the array.
    entries : int or None
        The number of entries of ``kernel_size`` (or ``output_size``), `None` for a single int.
    """
    if axes is None:
        if entries is None:
            return tuple(range(ndim))
        if entries > ndim:
            raise ValueError(f"`kernel_size` has {entries} entries, but the array has {ndim} axes")
        return tuple(range(ndim - entries, ndim))
    given = tuple(axes) if is_sequence(axes) else (axes,)
    resolved: list[int] = []
    for entry in given:
        axis = integer("axes", entry)
        if not -ndim <= axis < ndim:
            raise ValueError(f"`axes` has {axis}, but the array has {ndim} axes: allowed are {-ndim} to {ndim - 1}")
        if axis % ndim in resolved:
            raise ValueError(f"`axes` names axis {axis % ndim} twice, in {given!r}: each axis may stand once")
        resolved.append(axis % ndim)
    return tuple(resolved)


def entries_of(value: Any) -> int | None:
    """Return the number of entries that a per-axis argument has, `None` for one value that stands for all."""
    return len(value) if is_sequence(value) else None


def _pads(entry: Any, axis: int, size: int, kernel: int, stride: int, dilation: int) -> Pads:
    if isinstance(entry, str):
        word = one_of("padding", entry, ("valid", *SAME))
        if word == "valid":
            return 0, 0
        total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
        half, odd = divmod(total, 2)
        return (half, half + odd) if word == "same" else (half + odd, half)
    if not is_sequence(entry):
        pad = integer("padding", entry, axis=axis)
        return pad, pad
    if len(entry) != 2:
        raise ValueError(f"`padding` on axis {axis} must be an int, a word or a (before, after) pair, got {entry!r}")
    return integer("padding", entry[0], axis=axis), integer("padding", entry[1], axis=axis)


def _mode(entry: Any, axis: int) -> str:
    if not isinstance(entry, str):
        raise TypeError(f"`padding_mode` on axis {axis} must be a word, got {entry!r}: one of {', '.join(NAMES)}")
    name = ALIASES.get(entry, entry)
    if name not in MODES:
        raise ValueError(f"`padding_mode` on axis {axis} is {entry!r}: allowed are {', '.join(map(repr, NAMES))}")
    return name


def sliding_arguments(
    shape: tuple[int, ...],
    kernel_size: Any,
    axes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    padding_mode: Any,
) -> tuple[AxisArguments, ...]:
    """Resolve the arguments of a sliding window, one record for each pooled axis in the order of `axes`."""
    order = resolve_axes(axes, len(shape), entries_of(kernel_size))
    kernels = per_axis("kernel_size", kernel_size, order)
    strides = per_axis("stride", kernel_size if stride is None else stride, order)
    dilations = per_axis("dilation", dilation, order)
    pads = per_axis("padding", padding, order)
    modes = per_axis("padding_mode", padding_mode, order)
    records = []
    for axis, kernel, step, gap, pad, mode in zip(order, kernels, strides, dilations, pads, modes, strict=True):
        k = integer("kernel_size", kernel, axis=axis, minimum=1)
        s = integer("stride", step, axis=axis, minimum=1)
        d = integer("dilation", gap, axis=axis, minimum=1)
        if k == 1:
            d = 1  # nothing lies between the elements of a window of one element
        before, after = _pads(pad, axis, shape[axis], k, s, d)
        records.append(AxisArguments(axis, k, s, d, before, after, _mode(mode, axis)))
    return tuple(records)


def output_length(size: int, args: AxisArguments, ceil_mode: bool) -> int:
    """Return the number of windows along an axis of `size` elements (PyTorch's rule; DESIGN section 5)."""
    padded = size + args.before + args.after
    span = args.dilation * (args.kernel - 1) + 1
    room = padded - span
    length = (-(-room // args.stride) if ceil_mode else room // args.stride) + 1
    # A window that ceil_mode adds must start inside the input or its leading padding.
    if ceil_mode and (length - 1) * args.stride >= size + args.before:
        length -= 1
    if length < 1:
        raise ValueError(
            f"`kernel_size` on axis {args.axis}: the window is larger than the padded axis. A kernel of {args.kernel} "
            f"with dilation {args.dilation} covers {span} elements; axis {args.axis} has {size} + {args.before} + "
            f"{args.after} = {padded} with its padding (stride {args.stride}, ceil_mode={ceil_mode})"
        )
    return length


def nothing_to_fold(args: AxisArguments) -> ValueError:
    """Return the error of a mode that repeats elements of an axis that has none."""
    return ValueError(
        f"`padding_mode` on axis {args.axis} is {args.mode!r}, which repeats elements of the axis, but none is left: "
        f"allowed there are 'ignore', 'constant' and 'zeros'"
    )


def intervals_of(shape: tuple[int, ...], intervals: Any) -> dict[int, tuple[Pads, ...]]:
    """Resolve ``{axis: [(start, stop), ...]}``: every interval inside its axis, in the order given."""
    if not hasattr(intervals, "items"):
        raise TypeError(f"`intervals` must be a mapping of an axis to its (start, stop) pairs, got {intervals!r}")
    order = resolve_axes(tuple(intervals), len(shape), None)
    resolved: dict[int, tuple[Pads, ...]] = {}
    for axis, pairs in zip(order, intervals.values(), strict=True):
        rows: list[Pads] = []
        for pair in pairs:
            if not is_sequence(pair) or len(pair) != 2:
                raise ValueError(f"`intervals` on axis {axis} must hold (start, stop) pairs, got {pair!r}")
            start, stop = (integer("intervals", bound, axis=axis) for bound in pair)
            if not 0 <= start <= stop <= shape[axis]:
                raise ValueError(
                    f"`intervals` on axis {axis} has ({start}, {stop}): allowed is 0 <= start <= stop <= {shape[axis]}"
                )
            rows.append((start, stop))
        resolved[axis] = tuple(rows)
    return resolved


def check_shape(shape: tuple[int, ...], expected: tuple[int, ...], name: str, what: str) -> None:
    """Raise unless an array has the shape that a plan was made for."""
    if tuple(shape) != expected:
        raise ValueError(f"`{name}` has shape {tuple(shape)}, but {what} is {expected}")


def repeated(position: int) -> ValueError:
    """Return the error of a position that stands twice where it may stand once."""
    return ValueError(
        f"`indices` names position {position} more than once, which `overlap` 'error' refuses: allowed are 'last', "
        f"'sum' and 'max'"
    )


def check_mask(shape: tuple[int, ...], onto: tuple[int, ...], dtype: Any, boolean: bool) -> None:
    """Raise unless `where` is boolean and broadcasts to the shape `onto`."""
    if not boolean:
        raise TypeError(f"`where` must be an array of bool, got dtype {dtype}")
    fits = len(shape) <= len(onto) and all(
        own in (1, size) for own, size in zip(reversed(shape), reversed(onto), strict=False)
    )
    if not fits:
        raise ValueError(f"`where` of shape {shape} does not broadcast to the shape {onto} of `x`")
