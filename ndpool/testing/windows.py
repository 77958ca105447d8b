"""Windows by definition: for every output of an axis the list of what it covers, from the user's own arguments.

Part of the oracle, so it imports nothing of ndpool: a table that is wrong there must not be wrong here in the same way.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

IGNORED = -1  # takes no part
FILL = -2  # is the fill value

MODES = {
    "ignore": "ignore", "constant": "constant", "zeros": "constant", "edge": "edge", "replicate": "edge",
    "nearest": "edge", "reflect": "reflect", "mirror": "reflect", "symmetric": "symmetric", "wrap": "wrap",
    "circular": "wrap",
}  # fmt: skip

Cells = list[int]
Windows = dict[int, list[Cells]]


# ---- windows of one axis -------------------------------------------------------------------------------------------


def output_length(
    n: int, kernel: int, stride: int, before: int, after: int, *, dilation: int = 1, ceil_mode: bool = False
) -> int:
    """How many windows there are; below one is an error."""
    if min(kernel, stride, dilation) < 1:
        raise ValueError(f"kernel {kernel}, stride {stride} and dilation {dilation} must be at least 1")
    room = n + before + after - dilation * (kernel - 1) - 1
    if ceil_mode:
        length = -(-room // stride) + 1
        if (length - 1) * stride >= n + before:  # it would start past the input and its leading padding
            length -= 1
    else:
        length = room // stride + 1
    if length < 1:
        raise ValueError(f"window {kernel} (dilation {dilation}) is longer than the axis: {before} + {n} + {after}")
    return length


def cell(position: int, n: int, before: int, after: int, mode: str) -> int:
    """What lies at a position of the padded axis, where 0 is the first element of the axis itself."""
    mode = MODES[mode]
    start, stop = max(0, -before), n - max(0, -after)  # negative padding crops first
    if position >= n + after:  # past the padded extent: only `ceil_mode` comes here
        return IGNORED
    if start <= position < stop:
        return position
    if mode == "ignore":
        return IGNORED
    if mode == "constant":
        return FILL
    length, position = stop - start, position - start
    if length < 1:
        raise ValueError(f"padding mode {mode!r} needs at least one element, the axis has {length}")
    if mode == "edge":
        return start + min(max(position, 0), length - 1)
    if mode == "wrap":
        return start + position % length
    # There and back over the axis, for ever: reflect turns on the edge element, symmetric behind it.
    period = max(1, 2 * length - 2) if mode == "reflect" else 2 * length
    position %= period
    if position >= length:
        position = 2 * length - 2 - position if mode == "reflect" else 2 * length - 1 - position
    return start + position


def axis_window(
    i: int, n: int, kernel: int, stride: int, before: int, *, after: int, dilation: int = 1, mode: str = "ignore"
) -> Cells:
    """The cells of output `i` alone."""
    first = i * stride - before
    return [cell(first + j * dilation, n, before, after, mode) for j in range(kernel)]


def axis_windows(
    n: int,
    kernel: int,
    stride: int,
    before: int,
    after: int,
    *,
    dilation: int = 1,
    ceil_mode: bool = False,
    mode: str = "ignore",
) -> list[Cells]:
    """One list of cells an output: a source index, `IGNORED` or `FILL`."""
    length = output_length(n, kernel, stride, before, after, dilation=dilation, ceil_mode=ceil_mode)
    return [axis_window(i, n, kernel, stride, before, after=after, dilation=dilation, mode=mode) for i in range(length)]


def resolve_padding(padding: Any, n: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """One axis's padding as `(before, after)`: an int, a pair, "valid", "same" or "same_lower"."""
    if padding in ("same", "same_lower"):
        outputs = math.ceil(Fraction(n, stride)) if stride > 0 else 0
        total = max(0, (outputs - 1) * stride + dilation * (kernel - 1) + 1 - n)
        less, more = total // 2, total - total // 2
        return (less, more) if padding == "same" else (more, less)
    if padding == "valid":
        return 0, 0
    if isinstance(padding, str):
        raise ValueError(f"padding {padding!r} is not known")
    before, after = (padding, padding) if isinstance(padding, int) else padding
    return before, after


def interval_windows(n: int, intervals: Sequence[tuple[int, int]]) -> list[Cells]:
    """Windows `[start, stop)` given one by one."""
    for start, stop in intervals:
        if not 0 <= start <= stop <= n:
            raise ValueError(f"interval ({start}, {stop}) leaves the axis of length {n}")
    return [list(range(start, stop)) for start, stop in intervals]


def adaptive_windows(n: int, outputs: int) -> list[Cells]:
    """Window `i` of `o` is `[floor(i*n/o), ceil((i+1)*n/o))`."""
    if outputs < 0:
        raise ValueError(f"output size {outputs} is negative")
    return [
        list(range(math.floor(Fraction(i * n, outputs)), math.ceil(Fraction((i + 1) * n, outputs))))
        for i in range(outputs)
    ]


# ---- the arguments of the public functions -------------------------------------------------------------------------


def per_axis(value: Any, count: int, name: str) -> list[Any]:
    """One entry an axis, from one value for all or a sequence."""
    if isinstance(value, (int, str)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"`{name}` has {len(value)} entries for {count} axes")
    return list(value)


def sliding_arguments(
    shape: Sequence[int],
    kernel_size: Any,
    *,
    axes: Any = None,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    padding_mode: Any = "ignore",
) -> dict[int, dict[str, Any]]:
    """What `axis_windows` takes for each pooled axis, in the order given."""
    ndim = len(shape)
    if axes is None:
        axes = range(ndim) if isinstance(kernel_size, int) else range(ndim - len(kernel_size), ndim)
    axes = [axes] if isinstance(axes, int) else list(axes)
    if any(not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) < len(axes):
        raise ValueError(f"`axes` {axes} repeats one, or is outside {ndim} dimensions")
    count = len(axes)
    kernels = per_axis(kernel_size, count, "kernel_size")
    strides = kernels if stride is None else per_axis(stride, count, "stride")
    dilations = per_axis(dilation, count, "dilation")
    paddings = per_axis(padding, count, "padding")
    modes = per_axis(padding_mode, count, "padding_mode")
    result = {}
    for a, k, s, d, pad, mode in zip(axes, kernels, strides, dilations, paddings, modes, strict=True):
        n = shape[a]
        before, after = resolve_padding(pad, n, k, s, d)
        words = {"n": n, "kernel": k, "stride": s, "before": before, "after": after, "dilation": d, "mode": mode}
        result[a % ndim] = words
    return result


def sliding_windows(shape: Sequence[int], kernel_size: Any, *, ceil_mode: bool = False, **arguments: Any) -> Windows:
    """The windows of every pooled axis, from the arguments of `WindowPlan.sliding`."""
    axes = sliding_arguments(shape, kernel_size, **arguments)
    return {axis: axis_windows(**words, ceil_mode=ceil_mode) for axis, words in axes.items()}
