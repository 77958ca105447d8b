"""Every engine against the oracle on random plans, bit for bit where nothing may be rounded.

`NDPOOL_PLANS` is the number of problems for each engine: a few hundred by default, thousands before a release.
"""

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import ndpool as ndp
from ndpool.testing import oracle
from ndpool.testing.windows import IGNORED, interval_windows, sliding_windows

from .compare import assert_indices, assert_rounded, assert_same, in_namespace
from .libraries import Library, parametrize
from .strategies import Problem, interval_problems, problems, shapes, sliding_arguments, values

PLANS = int(os.environ.get("NDPOOL_PLANS", "300"))
ENGINES = (
    Library.NUMPY,
    Library.NUMBA,
    Library.NUMPY_GENERIC,
    Library.STRICTEST,
    Library.TORCH,
)  # a new engine is one more
ERROR = r"`\w+`"  # every error about an argument names it


def plans(share: float = 1) -> settings:
    # One test body serves all engines, so that hypothesis sees parameters beside its own arguments.
    return settings(max_examples=max(10, int(PLANS * share)), suppress_health_check=list(HealthCheck))


def memory(x: np.ndarray) -> tuple[bytes, bool]:
    """All that a call must leave as it was: the bytes under the array (gaps among them), and whether it is writable."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base.tobytes(), x.flags.writeable


def agree(problem: Problem, library: Library) -> None:
    """The values, and every encoding of the indices, are those of the oracle; so is a refusal."""
    options: dict[str, Any] = {"backend": library.engine}
    convert = library.array if library.value.module != "numpy" else lambda x: x
    picks = problem.reduction in ("max", "min")
    before = memory(problem.x)
    try:
        answer = problem.answer()
    except ValueError as error:
        note(f"the oracle refuses it: {error}")
        for more in ({}, {"return_indices": True}) if picks else ({},):
            with pytest.raises(ValueError, match=ERROR):
                problem.call(ndp, convert, **options, **more)
        return
    got = library.numpy(problem.call(ndp, convert, **options))
    assert not np.may_share_memory(got, problem.x)
    if not picks:
        assert_rounded(got, in_namespace(answer, problem, library.defaults), problem.reduction)
    else:
        assert_same(got, answer.values, "values")
        for encoding in oracle.ENCODINGS:
            result = problem.call(ndp, convert, **options, return_indices=encoding)
            assert isinstance(result, ndp.Pooled)
            assert_same(library.numpy(result.values), answer.values, f"values beside {encoding}")
            indices = result.indices
            indices = tuple(map(library.numpy, indices)) if encoding == "coords" else library.numpy(indices)
            assert_indices(indices, answer, encoding)
    assert memory(problem.x) == before


@parametrize(*ENGINES)
def test_plans(library: Library) -> None:
    @plans()
    @given(problems(without=library.value.lacks))
    def every(problem: Problem) -> None:
        with library.context():
            agree(problem, library)

    every()


def test_the_plans_are_varied() -> None:
    """A strategy that only makes easy or only invalid problems would pass all the above."""
    seen: dict[str, int] = {}

    @settings(max_examples=500, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(problems())
    def collect(problem: Problem) -> None:
        try:
            answer = problem.answer()
        except ValueError:
            seen["refused"] = seen.get("refused", 0) + 1
            return
        facts = {
            problem.reduction: True,
            problem.layout: True,
            f"ndim {problem.x.ndim}": True,
            "empty": answer.values.size == 0,
            "nothing in it": bool(answer.winners and (answer.winners["flat"] == -1).any()),
            "many windows": answer.values.size > 20,
            "where": "where" in problem.options,
            "omit": problem.options.get("nan_policy") == "omit",
            "NaN": bool(problem.x.dtype.kind in "fc" and np.isnan(problem.x).any()),
            "ceil": problem.sliding["ceil_mode"],
            "some axes": answer.winners is not None and 0 < len(answer.winners["coords"]) < problem.x.ndim,
        }
        for fact, true in facts.items():
            seen[fact] = seen.get(fact, 0) + bool(true)

    collect()
    assert seen["refused"] < 60
    assert all(seen.get(f"ndim {n}", 0) >= 5 for n in range(1, 6)), seen
    assert all(seen.get(reduction, 0) >= 10 for reduction in oracle.REDUCTIONS), seen
    rare = ("empty", "nothing in it", "many windows", "where", "omit", "NaN", "ceil", "some axes", "negative", "gaps",
            "F", "transposed", "zero strides", "read-only", "refused")  # fmt: skip
    assert all(seen.get(fact, 0) >= 1 for fact in rare), seen


@plans()
@given(st.data())
def test_tables(data: st.DataObject) -> None:
    """The plan's integers, with no array in sight."""
    shape = data.draw(shapes())
    arguments = data.draw(sliding_arguments(shape))
    try:
        windows = sliding_windows(shape, **arguments)
    except ValueError:
        with pytest.raises(ValueError, match=ERROR):
            ndp.WindowPlan.sliding(shape, **arguments)
        return
    plan = ndp.WindowPlan.sliding(shape, **arguments)
    assert plan.input_shape == shape
    assert plan.axes == tuple(windows)
    assert plan.kernel_shape == tuple(len(windows[axis][0]) for axis in sorted(windows))
    assert plan.output_shape == tuple(len(windows[a]) if a in windows else n for a, n in enumerate(shape))
    for table, rows in zip(plan.tables(), windows.values(), strict=True):
        assert_same(table, np.array(rows, np.int64))
    again = ndp.WindowPlan.sliding(shape, **arguments)
    assert plan == again
    assert hash(plan) == hash(again)
    assert plan.describe() == again.describe() != ""


@parametrize(*ENGINES)
def test_conversions(library: Library) -> None:
    """Each encoding from each other one."""

    @plans(0.25)
    @given(problems(("max", "min"), without=library.value.lacks))
    def every(problem: Problem) -> None:
        try:
            answer = problem.answer()
        except ValueError:
            return
        assert answer.winners is not None
        with library.context():
            plan = ndp.WindowPlan.sliding(problem.x.shape, **problem.sliding)
            for source in oracle.ENCODINGS:
                if source == "coords" and not plan.axes:
                    continue  # no arrays: nothing to start from
                indices = answer.winners[source]
                given_ = tuple(map(library.array, indices)) if source == "coords" else library.array(indices)
                for target in oracle.ENCODINGS:
                    got = ndp.convert_indices(given_, plan, source, target)
                    got = tuple(map(library.numpy, got)) if target == "coords" else library.numpy(got)
                    assert_indices(got, answer, target, f"{source} to {target}")

    every()


@parametrize(*ENGINES)
def test_intervals(library: Library) -> None:
    """Windows of any length, in any order."""

    @plans(0.5)
    @given(interval_problems())
    def every(drawn: tuple[np.ndarray, dict[int, list[tuple[int, int]]], str]) -> None:
        x, intervals, reduction = drawn
        problem = Problem(x, reduction, {}, {})
        windows = {axis: interval_windows(x.shape[axis], rows) for axis, rows in intervals.items()}
        plan = ndp.WindowPlan.intervals(x.shape, intervals)
        for table, rows in zip(plan.tables(), windows.values(), strict=True):
            longest = max(map(len, rows), default=0)
            padded = [row + [IGNORED] * (longest - len(row)) for row in rows]
            assert_same(table, np.array(padded, np.int64).reshape(len(rows), longest))
        p = 2.0 if reduction == "lp" else None
        answer = oracle.pool(x, windows, reduction, p=p)
        with library.context():
            array = library.array(x)
            got = library.numpy(ndp.pool(array, plan, reduction, p=p, backend=library.engine))
            assert_rounded(got, in_namespace(answer, problem, library.defaults), reduction)
            for encoding in oracle.ENCODINGS if reduction in ("max", "min") else ():
                result = ndp.pool(array, plan, reduction, return_indices=encoding, backend=library.engine)
                indices = result.indices
                indices = tuple(map(library.numpy, indices)) if encoding == "coords" else library.numpy(indices)
                assert_same(library.numpy(result.values), answer.values)
                assert_indices(indices, answer, encoding)

    every()


@parametrize(*ENGINES)
def test_long_windows(library: Library) -> None:
    """Windows long enough for doubling and blocks, where a plain running sum loses digits."""

    @plans(0.1)
    @given(st.data())
    def every(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from([d for d in ("float16", "float32", "float64", "int64") if library.has(d)]))
        n, k = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 200))
        d, before = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 220))
        arguments = {
            "kernel_size": (k,),
            "axes": data.draw(st.sampled_from([0, 1])),
            "dilation": d,
            "stride": data.draw(st.integers(4, 60)),
            "padding": ((before, max(0, d * (k - 1) + 1 - n - before) + data.draw(st.integers(0, 40))),),
            "padding_mode": data.draw(st.sampled_from(["ignore", "edge", "reflect", "wrap", "constant"])),
        }
        x = values(data.draw, (n, 2) if arguments["axes"] == 0 else (2, n), dtype)
        for reduction in oracle.REDUCTIONS:
            options = {"p": data.draw(st.sampled_from([0.5, 2, 3]))} if reduction == "lp" else {}
            problem = Problem(x, reduction, arguments | {"ceil_mode": False}, options)
            note(repr(problem))
            with library.context():
                agree(problem, library)

    every()
