"""The two adjoints on every engine: against plain loops, and the same bits with any number of threads."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndpool as ndp
from ndpool import dispatch
from ndpool.plan import WindowPlan
from ndpool.segments import gathers, pairs
from ndpool.testing.windows import sliding_windows

from .compare import assert_same
from .libraries import Library, parametrize
from .strategies import arrange, interval_problems, shapes, sliding_arguments
from .test_random_plans import plans

ENGINES = (
    Library.NUMPY,
    Library.NUMBA,
    Library.NUMPY_GENERIC,
    Library.STRICTEST,
    Library.TORCH,
)


def scatter(library: Library, values: np.ndarray, plan: WindowPlan, positions: Any = None, **options: Any) -> Any:
    """The primitive of an engine, on arrays of NumPy where that is the library."""
    convert = library.array if library.value.module != "numpy" else lambda x: x
    at = None if positions is None else convert(positions)
    target = dispatch.resolve(convert(values), library.engine)
    return library.numpy(dispatch.scatter(target, plan, at, **options))


def spread(values: np.ndarray, windows: dict[int, list[list[int]]], shape: tuple[int, ...]) -> np.ndarray:
    """By definition: each value to each element of its window."""
    result, axes = np.zeros(shape, values.dtype), sorted(windows)
    for out in np.ndindex(*values.shape):
        for cells in itertools.product(*(windows[a][out[a]] for a in axes)):
            if min(cells, default=0) >= 0:
                source = list(out)
                for axis, cell in zip(axes, cells, strict=True):
                    source[axis] = cell
                result[tuple(source)] += values[out]
    return result


def place(values: np.ndarray, positions: np.ndarray, size: int, overlap: str) -> np.ndarray:
    """By definition: each value to its position."""
    result, there = np.zeros(size, values.dtype), np.zeros(size, bool)
    for value, p in zip(values.tolist(), positions.tolist(), strict=True):
        if p < 0:
            continue
        if there[p]:
            if overlap == "error":
                raise ValueError(p)
            old = result[p].item()
            value = old + value if overlap == "sum" else value  # noqa: PLW2901
            value = max(old, value) if overlap == "max" else value  # noqa: PLW2901
        result[p], there[p] = value, True
    return result


@st.composite
def spreads(draw: Any) -> tuple[np.ndarray, WindowPlan, dict[int, list[list[int]]]]:
    """Values (small integers in any dtype: no sum is rounded) and a plan; the windows by definition."""
    if draw(st.booleans()):
        x, intervals, _ = draw(interval_problems())
        plan = WindowPlan.intervals(x.shape, intervals)
        windows = {axis: [list(range(*row)) for row in rows] for axis, rows in intervals.items()}
    else:
        shape = draw(shapes())
        arguments = draw(sliding_arguments(shape))
        try:
            plan = WindowPlan.sliding(shape, **arguments)
        except ValueError:
            arguments = {"kernel_size": (), "axes": ()}
            plan = WindowPlan.sliding(shape, **arguments)
        windows = sliding_windows(shape, **arguments)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["float16", "float32", "float64", "int64", "complex64"]))
    values, _ = arrange(draw, rng.integers(-9, 9, plan.output_shape).astype(dtype))
    return values, plan, windows


@parametrize(*ENGINES)
def test_by_windows(library: Library) -> None:
    @plans()
    @given(spreads())
    def every(problem: Any) -> None:
        values, plan, windows = problem
        if not library.has(values.dtype):
            values = values.astype("float32")
        before = values.copy()
        with library.context():
            got = scatter(library, values, plan)
        assert_same(got, spread(values, windows, plan.input_shape), repr(plan))
        assert_same(values, before)

    every()


@parametrize(*ENGINES)
@pytest.mark.parametrize("overlap", ["sum", "last", "max", "error"])
def test_by_positions(library: Library, overlap: str) -> None:
    @plans(0.3)
    @given(st.data())
    def every(data: Any) -> None:
        shape = data.draw(shapes())
        size, count = math.prod(shape), data.draw(st.integers(0, 40))
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        dtypes = ["float16", "float32", "float64", "int16", "int64", *(["bool", "uint8"] if overlap != "sum" else [])]
        dtype = data.draw(st.sampled_from([d for d in dtypes if library.has(d)]))
        values = rng.integers(0 if dtype in ("bool", "uint8") else -9, 9, count).astype(dtype)
        positions = rng.integers(-1, size, count) if size else np.full(count, -1)
        plan = WindowPlan(shape, ())
        with library.context():
            try:
                want = place(values, positions, size, overlap).reshape(shape)
            except ValueError:
                with pytest.raises(ValueError, match="`indices` names position"):
                    scatter(library, values, plan, positions, overlap=overlap)
                return
            assert_same(scatter(library, values, plan, positions, overlap=overlap), want)

    every()


@parametrize(*ENGINES)
def test_a_nan_is_the_largest(library: Library) -> None:
    values = np.array([1, np.nan, 2, -np.inf], "float32")
    with library.context():
        got = scatter(library, values, WindowPlan((3,), ()), np.array([0, 0, 0, 2]), overlap="max")
    assert_same(got, np.array([np.nan, 0, -np.inf], "float32"))


@parametrize(Library.NUMPY, Library.NUMBA, Library.NUMPY_GENERIC)
def test_the_last_wins_in_c_order_whatever_the_memory_order(library: Library) -> None:
    values = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    positions = np.asfortranarray(np.array([[0, 1, 1], [1, 0, -1]]))
    got = scatter(library, values, WindowPlan((2,), ()), positions, overlap="last")
    assert got.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("overlap", ["sum", "last", "max", "error", None])
def test_the_same_bits_with_any_number_of_threads(overlap: str | None) -> None:
    pytest.importorskip("numba")
    from ndpool_numpy import compiled_scatter

    rng, count = np.random.default_rng(5), 300_000
    values = rng.standard_normal(count).astype("float32")
    positions = rng.integers(-1, 200_000, count)
    plan = WindowPlan((200_000,), ())
    if overlap is None:
        plan = WindowPlan.sliding((50, 6000), 3, stride=1, padding=1, padding_mode="wrap")
        values, positions = values.reshape(50, 6000), None
    elif overlap == "error":
        positions = np.append(rng.permutation(200_000), positions[:100_000])
    results, before = [], ndp.get_num_threads()
    try:
        for threads in (1, 2, 8):
            ndp.set_num_threads(threads)
            for _ in range(3):
                try:
                    results.append(compiled_scatter.scatter(values, plan, positions, overlap or "sum").tobytes())
                except ValueError as error:
                    results.append(str(error))
    finally:
        ndp.set_num_threads(before)
    assert len(set(results)) == 1
    assert (overlap == "error") == isinstance(results[0], str)


@given(spreads())
def test_the_tables_are_small_and_whole(problem: Any) -> None:
    _, plan, windows = problem
    for window in plan.windows:
        own = [(cell, o) for o, row in enumerate(windows[window.axis]) for cell in row if cell >= 0]
        order, elements = pairs(window)
        assert sorted(zip(elements.tolist(), order.tolist(), strict=True)) == sorted(own)
        steps, places = gathers(window)
        assert sum(len(which) for which, _ in steps) == len(own)
        assert (places >= 0).sum() == len({cell for cell, _ in own})


def test_a_long_axis_makes_few_segments() -> None:
    from ndpool.segments import segments

    whole = WindowPlan.sliding((10**9,), 10**9).windows[0]
    dense = WindowPlan.sliding((10**9,), 3, stride=1, padding=1).windows[0]
    assert len(segments(whole)) == 1
    assert len(segments(dense)) == 3
