"""Arrays too large for plain loops, so that engines work in blocks: a few windows of each against the oracle."""

from typing import Any

import numpy as np
import pytest

import ndpool as ndp
from ndpool.testing import oracle
from ndpool.testing.windows import axis_window, output_length, sliding_arguments

from .compare import assert_indices, assert_rounded, assert_same, in_namespace
from .libraries import Library, parametrize
from .strategies import Problem
from .test_random_plans import ENGINES, PLANS


def large_problem(rng: np.random.Generator, ndim: int, dtype: str) -> Problem:
    """About half a million elements, so that engines work in blocks; ties and, in some, a few NaN."""
    shape = tuple(int(n * rng.uniform(0.7, 1.3)) for n in [round(500_000 ** (1 / ndim))] * ndim)
    x = rng.integers(0, 100, shape).astype(dtype)
    if x.dtype.kind == "f" and rng.integers(2):
        x[rng.random(shape) < 0.001] = np.nan
    order = rng.permutation(ndim)
    x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    axes = tuple(int(a) for a in rng.permutation(ndim)[: rng.integers(1, ndim + 1)])
    longest = {1: 900, 2: 40, 3: 12, 4: 7}[len(axes)]
    kernels = tuple(int(min(rng.integers(1, longest), shape[a])) for a in axes)
    arguments = {
        "kernel_size": kernels,
        "axes": axes,
        "stride": tuple(int(rng.choice([1, 1, 2, k])) for k in kernels),
        "padding": tuple((int(rng.integers(0, k + 1)), int(rng.integers(0, k + 1))) for k in kernels),
        "padding_mode": tuple(str(m) for m in rng.choice(["ignore", "constant", "reflect", "wrap", "edge"], len(axes))),
        "ceil_mode": bool(rng.integers(2)),
    }
    reduction = str(rng.choice(oracle.REDUCTIONS))
    options: dict[str, Any] = {"fill_value": 50} | ({"p": 3} if reduction == "lp" else {})
    if rng.integers(2):
        options["nan_policy"] = "omit"
    return Problem(x, reduction, arguments, options)


@parametrize(*ENGINES)
@pytest.mark.parametrize("seed", range(max(16, PLANS // 10)))
def test_large_arrays(library: Library, seed: int) -> None:
    """Windows here and there, the first and the last among them."""
    rng = np.random.default_rng(seed)
    dtypes = [d for d in ("float32", "float64", "float16", "uint8", "int16", "int64") if library.has(d)]
    problem = large_problem(rng, 1 + seed % 4, str(rng.choice(dtypes)))
    x, picks = problem.x, problem.reduction in ("max", "min")
    sliding = {name: value for name, value in problem.sliding.items() if name != "ceil_mode"}
    # A batch axis is pooled by windows of one element: the same values, and the same flat indices.
    spots: dict[int, list[int]] = {}
    windows: dict[int, list[list[int]]] = {}
    arguments = sliding_arguments(x.shape, **sliding)
    for axis, n in enumerate(x.shape):
        words = arguments.get(axis, {"n": n, "kernel": 1, "stride": 1, "before": 0, "after": 0})
        counted = {name: value for name, value in words.items() if name != "mode"}
        length = output_length(**counted, ceil_mode=problem.sliding["ceil_mode"])
        spots[axis] = sorted({0, length - 1, *(int(i) for i in rng.integers(0, length, 8 // x.ndim))})
        windows[axis] = [axis_window(i, **words) for i in spots[axis]]
    answer = oracle.pool(x, windows, problem.reduction, **problem.options)
    chosen = np.ix_(*spots.values())
    with library.context():
        convert = library.array if library.value.module != "numpy" else lambda x: x
        got = library.numpy(problem.call(ndp, convert, backend=library.engine))[chosen]
        if not picks:
            assert_rounded(got, in_namespace(answer, problem, library.defaults), repr(problem.sliding))
            return
        assert_same(got, answer.values, repr(problem.sliding))
        both = problem.call(ndp, convert, backend=library.engine, return_indices="flat")
        assert_same(library.numpy(both.values)[chosen], answer.values, repr(problem.sliding))
        assert_indices(library.numpy(both.indices)[chosen], answer, "flat", repr(problem.sliding))
