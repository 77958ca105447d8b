"""Time ndpool beside its peers, in turns in one process, and write the table and the chart of the documentation.

A row of `ROWS` is a case, an entry of `PEERS` a library. What a peer returns is compared with ndpool's result before
anything is timed: a peer that answers something else is left out of the row, and the script's exit status is 1.
"""

import argparse
import datetime as dt
import importlib.metadata
import importlib.util
import io
import math
import os
import platform
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import ndpool as ndp

BEGIN, END = "<!-- versus:begin -->", "<!-- versus:end -->"
PAGE = f"""# Speed

`make bench` times each case in turns (ndpool, each peer, a copy) in one process, and the table holds the medians in
milliseconds. A peer is timed only after its result was compared with ndpool's; an empty cell is a peer that is not
installed, cannot do the case, would take far too long, or has no thread count to set.

{BEGIN}
{END}
"""
LEGEND = """\
- *roof*: one `np.copyto`, by one thread, that moves as many bytes as the call has to read and write.
- *fresh*: what the pages of a new result cost. ndpool and most peers pay it in each call; OpenCV writes into an array
  given to it, and ONNX Runtime keeps its memory from call to call.
- *best peer / ours*: above 1 ndpool is the fastest. *share of the roof*: roof / ours.
- Peers get their input in their own layout, outside the timing, and oneDNN's output stays in its own. PyTorch has no
  4-D pooling: it is measured with a 3-D pool and then a 2-D one for the fourth axis. OpenCV pools plane by plane.
- A peer whose first call takes more than 10 s is timed over two rounds."""
# A library may leave its threads spinning for a moment after a call: they must not take the next turn's cores.
PAUSE = 0.01
# JAX reads these as it starts, and never again: one thread is all that it can be compared with. The flags alone leave a
# thread for each core; XLA takes its number of cores from NPROC.
ONE_JAX_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",
}


@dataclass(frozen=True)
class Row:
    """A case: one kernel, stride and padding for all the pooled axes, which stand side by side in the array."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    kernel: int
    stride: int
    padding: int = 0
    dtype: str = "float32"
    reduction: str = "max"
    mode: str = "ignore"
    indices: bool = False
    calls: int = 1  # in a sample: many where one is too short for the clock
    slow: tuple[str, ...] = ()  # the peers of which one call would take more than about 20 s

    @property
    def name(self) -> str:
        """What the table shows and `--rows` searches."""
        window = times((self.kernel,) * len(self.axes))
        text = f"{times(self.shape)} {self.dtype} {self.reduction} {window}/{self.stride}"
        text += f" pad {self.padding}" if self.padding else ""
        text += f" {self.mode}" if self.mode != "ignore" else ""
        text += "" if self.trailing else f" on {'axis' if len(self.axes) == 1 else 'axes'} {spelt(self.axes)}"
        return text + (" + indices" if self.indices else "")

    @property
    def trailing(self) -> bool:
        """Whether the pooled axes are the last ones."""
        return self.axes[-1] == len(self.shape) - 1

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        words: dict[str, Any] = {"axes": self.axes, "stride": self.stride, "padding": self.padding}
        return ndp.WindowPlan.sliding(self.shape, self.kernel, **words).output_shape

    @property
    def blocks(self) -> bool:
        """Whether the windows stand side by side and fill the array."""
        whole = all(self.shape[axis] % self.kernel == 0 for axis in self.axes)
        return whole and self.kernel == self.stride and not self.padding

    def spread(self, on_pooled: Any, elsewhere: Any) -> tuple[Any, ...]:
        """Return a tuple with an entry for every axis of the array."""
        return tuple(on_pooled if axis in self.axes else elsewhere for axis in range(len(self.shape)))


@dataclass(frozen=True)
class Job:
    """One library's way to do a row, ready to run."""

    run: Callable[[], Any]
    # The arrays of a result (values, or values and indices) as NumPy arrays in ndpool's layout; never timed.
    read: Callable[[Any], tuple[np.ndarray, ...]]
    part: tuple[slice, ...] = ()  # of ndpool's result, where a peer does only that


@dataclass
class Result:
    """The medians of a row, in milliseconds."""

    row: Row
    threads: int
    roof: float = 0.0
    fresh: float = 0.0
    ours: float = 0.0
    peers: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # the peers that differed or failed, with the reason

    @property
    def best(self) -> str | None:
        """The fastest peer."""
        return min(self.peers, key=self.peers.__getitem__, default=None)


def times(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))


def spelt(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


IMAGES, VOLUMES, SERIES = (8, 32, 256, 256), (2, 8, 64, 128, 128), (1, 4, 16, 32, 64, 64)
LARGE = (4096, 4096)
WITH_AND_WITHOUT_INDICES = (
    Row(IMAGES, (2, 3), 2, 2),
    Row(IMAGES, (2, 3), 3, 2, 1),
    Row(IMAGES, (2, 3), 3, 1, 1),
    Row(IMAGES, (2, 3), 7, 1, 3),
    Row(LARGE, (0, 1), 31, 1, 15, slow=("torch compiled", "JAX")),
    Row(VOLUMES, (2, 3, 4), 2, 2),
    Row(VOLUMES, (2, 3, 4), 3, 1, 1),
    Row(VOLUMES, (2, 3, 4), 7, 1, 3),
    Row(SERIES, (2, 3, 4, 5), 2, 2),
    Row(SERIES, (2, 3, 4, 5), 3, 1, 1),
)
ROWS = (
    *(row for base in WITH_AND_WITHOUT_INDICES for row in (base, replace(base, indices=True))),
    Row((8, 256, 256, 32), (1, 2), 3, 1, 1),
    Row((64, 512, 512), (0,), 3, 1, 1),
    Row(IMAGES, (1,), 2, 2),
    Row(IMAGES, (2, 3), 3, 1, 1, mode="wrap"),
    Row((128, 512, 512), (0, 1, 2), 3, 1, 1, dtype="int16"),
    Row(LARGE, (0, 1), 3, 1, 1, dtype="uint8"),
    Row((8, 16, 256, 256), (2, 3), 3, 1, 1, dtype="float64"),
    Row(IMAGES, (2, 3), 3, 1, 1, reduction="mean"),
    Row(LARGE, (0, 1), 31, 1, reduction="mean", slow=("torch compiled", "JAX")),
    Row((8, 8), (0, 1), 3, 1, 1, calls=2000),
)


def make_input(row: Row) -> np.ndarray:
    """Return the array of a row, always the same."""
    rng = np.random.default_rng(0)
    if row.dtype == "uint8":
        return rng.integers(0, 256, row.shape, dtype="uint8")
    if row.dtype == "int16":
        return rng.integers(-1024, 3072, row.shape, dtype="int16")
    return rng.standard_normal(row.shape, dtype=row.dtype)


def lowest(dtype: np.dtype) -> Any:
    """Return what takes no part in a maximum."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def counts(row: Row) -> np.ndarray:
    """Return how many elements each window of a mean has, with the padding left out: it broadcasts to the result."""
    found = np.ones((), "int64")
    for axis, size in enumerate(row.shape):
        starts = np.zeros(1, "int64")
        here = np.ones_like(starts)
        if axis in row.axes:
            starts = np.arange(-row.padding, size + row.padding - row.kernel + 1, row.stride)
            here = np.minimum(starts + row.kernel, size) - np.maximum(starts, 0)
        found = found[..., np.newaxis] * here
    return found.astype(row.dtype)


def ours(row: Row, x: np.ndarray) -> Job:
    words: dict[str, Any] = {"axes": row.axes, "stride": row.stride, "padding": row.padding, "padding_mode": row.mode}
    if row.reduction == "mean":
        return Job(lambda: ndp.avg_pool(x, row.kernel, **words), lambda result: (result,))
    if row.indices:
        return Job(lambda: ndp.max_pool(x, row.kernel, return_indices="plane", **words), tuple)
    return Job(lambda: ndp.max_pool(x, row.kernel, **words), lambda result: (result,))


@dataclass(frozen=True)
class Folded:
    """A row as the deep-learning libraries take it: two batch axes, then the pooled ones."""

    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


def fold(row: Row) -> Folded | None:
    """Fold batch axes together, without a move in memory; one axis with others behind it is pooled as one of two."""
    before, after = row.shape[: row.axes[0]], row.shape[row.axes[-1] + 1 :]
    if not after and len(before) <= 2:
        count = len(row.axes)
        shape = (1,) * (2 - len(before)) + row.shape
        return Folded(shape, (row.kernel,) * count, (row.stride,) * count, (row.padding,) * count)
    if len(row.axes) == 1 and not row.indices:
        shape = (1, math.prod(before), row.shape[row.axes[0]], math.prod(after))
        return Folded(shape, (row.kernel, 1), (row.stride, 1), (row.padding, 0))
    return None


def read_torch(row: Row, result: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays of what a pool of a folded or permuted tensor gave."""
    tensors = result if isinstance(result, tuple) else (result,)
    if channels_last(row):
        tensors = tuple(tensor.permute(0, 2, 3, 1) for tensor in tensors)
    return tuple(tensor.numpy().reshape(row.output_shape) for tensor in tensors)


def channels_last(row: Row) -> bool:
    return len(row.shape) == 4 and row.axes == (1, 2)


def torch_call(row: Row, x: np.ndarray) -> tuple[Callable[[Any], Any], Any] | None:
    """Return a function of a tensor, and the tensor."""
    import torch
    from torch.nn import functional

    tensor = torch.from_numpy(x)
    folded = fold(row)
    if channels_last(row):
        tensor = tensor.permute(0, 3, 1, 2)
        folded = Folded(tuple(tensor.shape), (row.kernel,) * 2, (row.stride,) * 2, (row.padding,) * 2)
    if folded is None:
        return None
    if len(folded.kernel) == 4:
        if row.indices or row.reduction != "max" or row.mode != "ignore":
            return None
        tensor = tensor.reshape(1, -1, *folded.shape[3:])

        def in_two(tensor: Any) -> Any:
            three = functional.max_pool3d(tensor, row.kernel, row.stride, row.padding)
            three = three.reshape(1, -1, folded.shape[2], three[0, 0].numel())
            return functional.max_pool2d(three, (row.kernel, 1), (row.stride, 1), (row.padding, 0))

        return in_two, tensor
    tensor = tensor.reshape(folded.shape)
    name = f"{'max' if row.reduction == 'max' else 'avg'}_pool{len(folded.kernel)}d"
    pool: Any = getattr(functional, name)
    words = {"return_indices": row.indices} if row.reduction == "max" else {"count_include_pad": False}
    if row.mode == "wrap":
        sides = tuple(side for pad in reversed(folded.padding) for side in (pad, pad))
        return lambda tensor: pool(
            functional.pad(tensor, sides, mode="circular"), folded.kernel, folded.stride, **words
        ), tensor
    return lambda tensor: pool(tensor, folded.kernel, folded.stride, folded.padding, **words), tensor


def torch_eager(row: Row, x: np.ndarray, threads: int) -> Job | None:
    import torch

    torch.set_num_threads(threads)
    made = torch_call(row, x)
    if made is None:
        return None
    call, tensor = made
    return Job(lambda: call(tensor), lambda result: read_torch(row, result))


def torch_compiled(row: Row, x: np.ndarray, threads: int) -> Job | None:
    import torch

    compiler = os.environ.get("CXX", "g++")
    if row.indices or len(row.axes) > 3 or not shutil.which(compiler):
        return None
    torch.set_num_threads(threads)
    made = torch_call(row, x)
    if made is None:
        return None
    torch.compiler.reset()
    call = torch.compile(made[0], options={"cpp.threads": threads})
    tensor = made[1]
    call(tensor)  # compiles
    return Job(lambda: call(tensor), lambda result: read_torch(row, result))


def onednn(row: Row, x: np.ndarray, threads: int) -> Job | None:
    import torch

    folded = fold(row)
    if folded is None or len(folded.kernel) not in {2, 3} or row.indices or row.mode != "ignore":
        return None
    if row.dtype != "float32" or not torch.backends.mkldnn.is_available():
        return None
    torch.set_num_threads(threads)
    made = torch_call(row, x)
    if made is None:
        return None
    call, tensor = made[0], made[1].to_mkldnn()
    return Job(lambda: call(tensor), lambda result: read_torch(row, result.to_dense()))


def onnx_runtime(row: Row, x: np.ndarray, threads: int) -> Job | None:
    import onnxruntime
    from onnx import TensorProto, helper

    folded = fold(row)
    dtypes = {"float32"} if row.reduction == "mean" else {"float32", "float64", "uint8", "int8"}
    if folded is None or len(folded.kernel) > 3 or row.mode != "ignore" or row.dtype not in dtypes:
        return None
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    outputs = [helper.make_tensor_value_info("values", kind, None)]
    if row.indices:
        outputs.append(helper.make_tensor_value_info("indices", TensorProto.INT64, None))
    names = [output.name for output in outputs]
    operator = "MaxPool" if row.reduction == "max" else "AveragePool"
    words = {"kernel_shape": folded.kernel, "strides": folded.stride, "pads": folded.padding * 2}
    node = helper.make_node(operator, ["x"], names, **words)
    inputs = [helper.make_tensor_value_info("x", kind, folded.shape)]
    graph = helper.make_graph([node], "pool", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", x.reshape(folded.shape))
    for name in names:
        binding.bind_output(name)
    plane = math.prod(folded.shape[2:])

    def read(_: None) -> tuple[np.ndarray, ...]:
        values, *indices = binding.copy_outputs_to_cpu()
        # Its indices count through the batch axes as well.
        found = (values, *(index % plane for index in indices))
        return tuple(array.reshape(row.output_shape) for array in found)

    return Job(lambda: session.run_with_iobinding(binding), read)


def jax_jitted(row: Row, x: np.ndarray, _threads: int) -> Job | None:
    os.environ.update(ONE_JAX_THREAD)
    import jax

    if row.indices:
        return None
    if row.dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    window, stride = row.spread(row.kernel, 1), row.spread(row.stride, 1)
    sides = row.spread((row.padding, row.padding), (0, 0))
    within = row.spread((0, 0), (0, 0)) if row.mode == "wrap" else sides
    divisor = jax.numpy.asarray(counts(row))

    def pool(array: Any, divisor: Any) -> Any:
        if row.mode == "wrap":
            array = jax.numpy.pad(array, sides, mode="wrap")
        if row.reduction == "mean":
            return jax.lax.reduce_window(array, x.dtype.type(0), jax.lax.add, window, stride, within) / divisor
        return jax.lax.reduce_window(array, x.dtype.type(lowest(x.dtype)), jax.lax.max, window, stride, within)

    compiled, array = jax.jit(pool), jax.numpy.asarray(x)
    compiled(array, divisor).block_until_ready()
    return Job(lambda: compiled(array, divisor).block_until_ready(), lambda result: (np.asarray(result),))


def opencv(row: Row, x: np.ndarray, threads: int) -> Job | None:
    import cv2

    planes = len(row.axes) == 2 and (row.trailing or channels_last(row))
    same = 2 * row.padding + 1 == row.kernel
    if not planes or row.stride != 1 or row.indices or row.mode != "ignore":
        return None
    if row.reduction == "max" and same:
        shape = np.ones((row.kernel, row.kernel), "uint8")

        # The border that cv2.dilate has by itself takes no part.
        def one(plane: np.ndarray, out: np.ndarray) -> None:
            cv2.dilate(plane, shape, dst=out)
    elif row.reduction == "mean" and not row.padding:

        def one(plane: np.ndarray, out: np.ndarray) -> None:
            cv2.blur(plane, (row.kernel, row.kernel), dst=out)
    else:
        return None
    cv2.setNumThreads(threads)
    images = x if channels_last(row) else x.reshape(-1, *row.shape[-2:])
    results = np.zeros_like(images)

    def run() -> np.ndarray:
        for image, result in zip(images, results, strict=True):
            one(image, result)
        return results

    return Job(run, lambda result: (result.reshape(row.shape)[interior(row)],))


def interior(row: Row) -> tuple[slice, ...]:
    """Return where in a result as large as the input the windows lie that a row has."""
    cut = row.kernel // 2 - row.padding
    return row.spread(slice(cut, -cut or None), slice(None))


def scipy_filter(row: Row, x: np.ndarray, _threads: int) -> Job | None:
    from scipy import ndimage

    if row.indices or row.stride != 1 or row.kernel % 2 == 0 or row.padding not in {0, row.kernel // 2}:
        return None
    size, inside = row.spread(row.kernel, 1), interior(row)
    if row.reduction == "max":
        mode = {"ignore": "constant", "wrap": "wrap"}[row.mode]
        words = {"size": size, "mode": mode, "cval": lowest(x.dtype)}
        return Job(lambda: ndimage.maximum_filter(x, **words)[inside], lambda result: (result,))
    if not row.padding:
        return Job(lambda: ndimage.uniform_filter(x, size=size)[inside], lambda result: (result,))
    # It counts the padding, as zeros.
    correction = row.kernel ** len(row.axes) / counts(row)
    run = lambda: ndimage.uniform_filter(x, size=size, mode="constant") * correction  # noqa: E731
    return Job(run, lambda result: (result,))


def skimage_blocks(row: Row, x: np.ndarray, _threads: int) -> Job | None:
    from skimage.measure import block_reduce

    if row.indices or not row.blocks:
        return None
    size, reduce = row.spread(row.kernel, 1), np.max if row.reduction == "max" else np.mean
    return Job(lambda: block_reduce(x, size, reduce), lambda result: (result,))


def bottleneck_moving(row: Row, x: np.ndarray, _threads: int) -> Job | None:
    import bottleneck

    if len(row.axes) != 1 or row.stride != 1 or row.indices or row.reduction != "max" or x.dtype.kind != "f":
        return None
    # Its windows end where they stand, and it has no padding: ours that hang over an edge are not compared.
    whole = row.spread(slice(row.kernel - 1, None), slice(None))
    part = row.spread(slice(row.padding, -row.padding or None), slice(None))
    return Job(lambda: bottleneck.move_max(x, row.kernel, axis=row.axes[0]), lambda result: (result[whole],), part)


def numpy_views(row: Row, x: np.ndarray, _threads: int) -> Job | None:
    if row.indices or row.reduction != "max":
        return None
    if row.blocks:
        shape: list[int] = []
        within: list[int] = []
        for axis, size in enumerate(row.shape):
            shape.append(size)
            if axis in row.axes:
                shape[-1:] = [size // row.kernel, row.kernel]
                within.append(len(shape) - 1)
        return Job(lambda: x.reshape(shape).max(axis=tuple(within)), lambda result: (result,))
    if row.kernel > 3:
        return None
    sides = row.spread((row.padding, row.padding), (0, 0))
    words = {"mode": "wrap"} if row.mode == "wrap" else {"constant_values": lowest(x.dtype)}
    last = tuple(range(-len(row.axes), 0))
    steps = row.spread(slice(None, None, row.stride), slice(None))

    def run() -> np.ndarray:
        padded = np.pad(x, sides, **words)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (row.kernel,) * len(row.axes), row.axes)
        return windows[steps].max(axis=last)

    return Job(run, lambda result: (result,))


@dataclass(frozen=True)
class Peer:
    """A library, and how it does a row: `make` gives None where it cannot."""

    make: Callable[[Row, np.ndarray, int], Job | None]
    modules: tuple[str, ...]
    threaded: bool = False  # whether its number of threads can be set while it runs


PEERS = {
    "torch": Peer(torch_eager, ("torch",), threaded=True),
    "torch compiled": Peer(torch_compiled, ("torch",), threaded=True),
    "oneDNN": Peer(onednn, ("torch",), threaded=True),
    "ONNX Runtime": Peer(onnx_runtime, ("onnx", "onnxruntime"), threaded=True),
    "JAX": Peer(jax_jitted, ("jax",)),
    "OpenCV": Peer(opencv, ("cv2",), threaded=True),
    "SciPy": Peer(scipy_filter, ("scipy",)),
    "scikit-image": Peer(skimage_blocks, ("skimage",)),
    "bottleneck": Peer(bottleneck_moving, ("bottleneck",)),
    "NumPy": Peer(numpy_views, ()),
}
DISTRIBUTIONS = (
    *("ndpool", "numpy", "numba", "torch", "onnxruntime", "jax", "opencv-python-headless", "scipy", "scikit-image"),
    "bottleneck",
)


def is_installed(peer: Peer) -> bool:
    return all(importlib.util.find_spec(module) for module in peer.modules)


def clock(run: Callable[[], Any], calls: int = 1) -> float:
    """Return the milliseconds of a call; a single result is freed after the clock has stopped."""
    started = time.perf_counter()
    for _ in range(calls):
        result = run()
    passed = time.perf_counter() - started
    del result
    return passed / calls * 1e3


def difference(row: Row, expected: tuple[np.ndarray, ...], job: Job, result: Any) -> str | None:
    """Return in what a peer's result differs from ndpool's."""
    answers = job.read(result)
    if len(answers) != len(expected):
        return f"{len(answers)} arrays, not {len(expected)}"
    for mine, answer in zip(expected, answers, strict=True):
        try:
            if row.reduction == "max":
                np.testing.assert_array_equal(answer, mine[job.part])
            else:
                np.testing.assert_allclose(answer, mine[job.part], rtol=1e-5, atol=1e-5)
        except AssertionError as error:
            return " ".join(str(error).split())[:300]
    return None


def measure(row: Row, threads: int, rounds: int, peers: dict[str, Peer], *, quick: bool = False) -> Result:
    """Compare the peers' results with ndpool's, then time all of them in turns."""
    ndp.set_num_threads(threads)
    x, found = make_input(row), Result(row, threads)
    mine = ours(row, x)
    expected = mine.read(mine.run())
    turns = {"": mine.run}
    # The peers that are too slow for all the rounds, with those that they get.
    limited: dict[str, int] = {}
    samples: dict[str, list[float]] = {}
    for name, peer in peers.items():
        if name in row.slow or (threads > 1 and not peer.threaded) or not is_installed(peer):
            continue
        # A peer may raise anything, and the rows after this one are still to be measured.
        try:
            job = peer.make(row, x, threads)
            if job is None:
                continue
            started = time.perf_counter()
            result = job.run()
            first = time.perf_counter() - started
            reason = difference(row, expected, job, result)
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        if reason:
            found.refused[name] = reason
            continue
        del result
        turns[name], samples[name] = job.run, []
        if quick and first > 1:
            limited[name], samples[name] = 0, [first * 1e3]
        elif first > 10:
            limited[name] = 2

    moved = x.nbytes + sum(array.nbytes for array in expected)
    source, target = np.ones(moved // 2, "uint8"), np.ones(moved // 2, "uint8")
    touched = [np.ones_like(array) for array in expected]
    turns["roof"] = lambda: np.copyto(target, source)
    turns["new"] = lambda: [np.empty(array.shape, array.dtype).fill(1) for array in touched]
    turns["touched"] = lambda: [array.fill(1) for array in touched]
    for number in range(rounds):
        for name, run in turns.items():
            if number < limited.get(name, rounds):
                time.sleep(PAUSE)
                samples.setdefault(name, []).append(clock(run, row.calls))
    medians = {name: statistics.median(values) for name, values in samples.items()}
    found.ours, found.roof = medians.pop(""), medians.pop("roof")
    found.fresh = max(0.0, medians.pop("new") - medians.pop("touched"))
    found.peers = medians
    return found


def header(peers: Iterable[str]) -> list[str]:
    """Return the two lines that a Markdown table begins with."""
    cells = ["case", "threads", "roof", "fresh", "ours", *peers, "best peer / ours", "share of the roof"]
    return [f"| {' | '.join(cells)} |", f"| --- |{' ---: |' * (len(cells) - 1)}"]


def line(result: Result, peers: Iterable[str]) -> str:
    """Return a row of the table."""
    cells = [result.row.name, str(result.threads)]
    cells += [milliseconds(value) for value in (result.roof, result.fresh, result.ours)]
    cells += [milliseconds(result.peers[name]) if name in result.peers else "" for name in peers]
    cells += [f"{result.peers[result.best] / result.ours:.2f}" if result.best else ""]
    cells += [f"{result.roof / result.ours:.2f}"]
    return f"| {' | '.join(cells)} |"


def milliseconds(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def compare(
    rows: Sequence[Row], threads: Iterable[int], rounds: int, peers: dict[str, Peer], *, quick: bool = False
) -> list[Result]:
    """Measure rows and print the table as it grows."""
    print(*header(peers), sep="\n", flush=True)
    results = []
    for count in threads:
        for row in rows:
            results.append(measure(row, count, rounds, peers, quick=quick))
            print(line(results[-1], peers), flush=True)
            for name, reason in results[-1].refused.items():
                print(f"{row.name}: {name} is left out: {reason}", file=sys.stderr, flush=True)
    return results


def machine() -> str:
    """Return the name of the processor, and how many cores there are."""
    name, information = platform.processor(), Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(encoding="utf-8"), re.MULTILINE)
        name = found[1] if found else name
    return f"{name or platform.machine()}, {os.cpu_count()} cores"


def versions() -> str:
    """Return the version of every library that is installed."""
    found = [f"Python {platform.python_version()}"]
    for name in DISTRIBUTIONS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def report(results: Sequence[Result], peers: Iterable[str], rounds: int) -> str:
    """Return what stands between the two markers."""
    names = list(peers)
    table = [*header(names), *(line(result, names) for result in results)]
    left_out = [
        f"- {result.row.name}, {result.threads} threads: {name} is left out: {reason}"
        for result in results
        for name, reason in result.refused.items()
    ]
    date = dt.datetime.now(dt.UTC).date().isoformat()
    where = f"{date}, {machine()}; medians of {rounds} rounds, in milliseconds.\n\n{versions()}."
    return "\n\n".join([where, "\n".join(table), LEGEND, *(["\n".join(left_out)] if left_out else [])])


def page(old: str | None, text: str) -> str:
    """Return the page with the part between the markers replaced."""
    before, _, rest = (PAGE if old is None else old).partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise ValueError(f"the page has no {BEGIN} with an {END} after it")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: stopped at any moment, it leaves the old one."""
    beside = path.with_name(f"{path.name}.part")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)  # noqa: PTH105
    finally:
        beside.unlink(missing_ok=True)


def chart(results: Sequence[Result]) -> bytes:
    """Return a picture of ndpool and the best peer of every row, as multiples of the copy."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(result.row.name for result in results))
    counts_of_threads = sorted({result.threads for result in results})
    figure = Figure(figsize=(5 + 5 * len(counts_of_threads), 1.5 + 0.4 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(counts_of_threads), sharey=True, squeeze=False)[0]
    for panel, count in zip(panels, counts_of_threads, strict=True):
        these = [result for result in results if result.threads == count]
        panel.set_xscale("log")
        places = [names.index(result.row.name) for result in these]
        panel.barh([y - 0.2 for y in places], [r.ours / r.roof for r in these], 0.4, label="ndpool")
        others = [(y + 0.2, r, r.best) for y, r in zip(places, these, strict=True) if r.best]
        bars = panel.barh(
            [y for y, _, _ in others], [r.peers[b] / r.roof for _, r, b in others], 0.4, label="best peer"
        )
        panel.bar_label(bars, [best for _, _, best in others], padding=2, fontsize=7)
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_yticks(range(len(names)), names, fontsize=7)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_title(f"{count} {'thread' if count == 1 else 'threads'}")
        panel.set_xlabel("time, in copies of the input and the output")
    panels[0].legend(loc="lower right", fontsize=7)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def thread_counts(text: str) -> list[int]:
    counted = [int(part) for part in text.split(",")]
    if min(counted) < 1:
        raise argparse.ArgumentTypeError("at least 1 thread")
    return counted


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", metavar="PATTERN", help="a regular expression, searched in the cases")
    parser.add_argument("--threads", type=thread_counts, default=[1, 2], help="numbers of threads, as 1,2")
    parser.add_argument("--rounds", type=int, default=7, help="how often each takes its turn")
    parser.add_argument("--out", type=Path, default=Path("docs/speed.md"), help="the page with the table")
    parser.add_argument("--chart", type=Path, default=Path("docs/speed.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="without torch.compile, and a slow peer is run once")
    chosen = parser.parse_args(arguments)

    rows = [row for row in ROWS if re.search(chosen.rows, row.name)]
    # What would make the writing fail is said before the long measurement.
    if not rows:
        parser.error("no case has such a name: " + "; ".join(row.name for row in ROWS))
    if chosen.rounds < 1:
        parser.error("--rounds is at least 1")
    for path in (chosen.out, chosen.chart):
        if not path.absolute().parent.is_dir():
            parser.error(f"there is no folder {path.parent}")
    old = chosen.out.read_text(encoding="utf-8") if chosen.out.exists() else None
    try:
        page(old, "")
    except ValueError as error:
        parser.error(f"{chosen.out}: {error}")

    peers = {name: peer for name, peer in PEERS.items() if not (chosen.quick and name == "torch compiled")}
    results = compare(rows, chosen.threads, chosen.rounds, peers, quick=chosen.quick)
    picture = Path(os.path.relpath(chosen.chart, chosen.out.absolute().parent)).as_posix()
    text = f"{report(results, peers, chosen.rounds)}\n\n![ndpool and the best peer, in copies]({picture})"
    write_whole(chosen.out, page(old, text).encode())
    write_whole(chosen.chart, chart(results))
    return int(any(result.refused for result in results))


if __name__ == "__main__":
    sys.exit(main())
