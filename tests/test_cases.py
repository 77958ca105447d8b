"""The shared table of public bug reports: every built case on every array library, and a list of what is not built."""

import gc
import tracemalloc

import numpy as np
import pytest

import ndpool as ndp
from ndpool.testing import cases

from .libraries import Library, parametrize

CASES = {case.id: case for case in cases.load()}


@pytest.mark.parametrize("case", cases.built(), ids=lambda case: case.id)
def test_case(case: cases.Case, library: Library) -> None:
    x = case.array()
    if not library.has(x.dtype):
        pytest.skip(f"{library.name} lacks {x.dtype}")
    array = library.array(x)
    cases.verify(case, ndp, array, library.numpy, defaults=library.defaults, backend=library.engine)
    np.testing.assert_array_equal(library.numpy(array), case.array())  # the input is never written


def test_every_row_takes_part() -> None:
    """A test over an empty table passes."""
    assert len(CASES) == len(cases.load()) == 88
    assert len(cases.built()) == 64
    assert {row.engine for row in Library} == {None, "numpy", "numba", "generic"}
    assert {row.value.module for row in Library} == {"numpy", "array_api_strict", "torch"}


@pytest.mark.parametrize("case", [c for c in cases.built() if c.or_raises], ids=lambda case: case.id)
@parametrize(Library.NUMPY, Library.STRICT)
def test_answers_where_a_refusal_is_allowed(case: cases.Case, library: Library) -> None:
    cases.check(case, cases.run(case, ndp, library.array(case.array()), backend=library.engine), library.numpy)


@pytest.mark.parametrize("case", [c for c in cases.load() if "peak_extra_bytes_max" in c.expect], ids=lambda c: c.id)
@parametrize(Library.NUMPY, Library.NUMPY_GENERIC)
def test_working_memory(case: cases.Case, library: Library) -> None:
    x = case.array()
    gc.collect()
    tracemalloc.start()
    try:
        result = cases.run(case, ndp, x, backend=library.engine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak >= result.values.nbytes  # the allocations were seen at all
    assert peak <= case.expect["peak_extra_bytes_max"]


# ---- what is not built yet -----------------------------------------------------------------------------------------


def test_the_list_of_what_is_not_built_is_true() -> None:
    ops = {case.op for case in cases.load()}
    assert cases.BUILT.keys().isdisjoint(cases.NOT_BUILT)
    assert ops == cases.BUILT.keys() | cases.NOT_BUILT.keys()
    there = {op: row.function for op, row in cases.NOT_BUILT.items() if hasattr(ndp, row.function)}
    assert not there, f"{there} exist now: run their cases, and take their rows from `cases.NOT_BUILT`"


@pytest.mark.parametrize("case", [c for c in cases.load() if c.op in cases.NOT_BUILT], ids=lambda case: case.id)
def test_a_case_that_is_not_built_says_why(case: cases.Case) -> None:
    assert cases.build(case.input).shape == tuple(case.input["shape"])
    with pytest.raises(NotImplementedError, match=cases.NOT_BUILT[case.op].reason):
        cases.run(case, ndp, case.array())


# ---- the checker itself --------------------------------------------------------------------------------------------


def _right(case: cases.Case) -> ndp.Pooled:
    indices = np.array(case.expect["indices"], np.int64)
    return ndp.Pooled(cases.build({**case.expect, "dtype": case.expect["dtype"]}), indices)


@pytest.mark.parametrize(
    ("case", "wrong", "words"),
    [
        ("nan-09-signed-zero-tie", lambda v, i: (np.abs(v), i), "values"),
        ("nan-09-signed-zero-tie", lambda v, i: (v, i + 1), "indices"),
        ("nan-03-omit", lambda v, i: (np.nan_to_num(v), i), "values"),
        ("nan-03-omit", lambda v, i: (np.full_like(v, np.nan), i), "values"),
        ("avg-12-int64-above-2pow24", lambda v, i: (v.astype(np.float64).astype(np.int64), i), "values"),
        ("avg-12-int64-above-2pow24", lambda v, i: (v.astype(np.float64), i), "dtype"),
        ("avg-12-int64-above-2pow24", lambda v, i: (v, i.astype(np.int32)), "index dtype"),
        ("idx-01-flat-pooled", lambda v, i: (v[:1], i), "shape"),
        ("idx-01-flat-pooled", lambda v, i: (np.nextafter(v, np.float32(np.inf)), i), "values"),
        ("pad-10-window-only-padding", lambda v, i: (np.maximum(v, np.finfo("f4").min), i), "must not give finfo.min"),
    ],
)
def test_the_checker_refuses_wrong_results(case: str, wrong, words: str) -> None:
    right = _right(CASES[case])
    cases.check(CASES[case], right)
    with pytest.raises(AssertionError, match=words):
        cases.check(CASES[case], ndp.Pooled(*wrong(*right)))


class _Silent:
    """A module whose functions never raise."""

    def __getattr__(self, name: str):
        return lambda *_, **__: np.zeros(0)


@pytest.mark.parametrize("case", [c for c in cases.built() if c.raises], ids=lambda case: case.id)
def test_the_checker_wants_the_error(case: cases.Case) -> None:
    with pytest.raises(AssertionError, match="was raised"):
        cases.verify(case, _Silent(), case.array())


def test_the_fill_rules() -> None:
    """Pinned by hand: the answers of the table rest on them."""

    def fill(shape: list[int], dtype: str, **rule):
        return cases.build({"shape": shape, "dtype": dtype, "fill": rule})

    assert fill([2, 3], "int64", rule="affine_mod", a=5, b=2, m=7, c=3).tolist() == [[-1, -3, 2], [0, -2, 3]]
    assert fill([3], "float32", rule="ramp", a=2, b=1).tolist() == [1.0, 3.0, 5.0]
    assert fill([3], "float32", rule="ramp", a=2, b=1).dtype == np.float32
    assert fill([2], "int8", rule="const", value=4).tolist() == [4, 4]
    with pytest.raises(ValueError, match="unknown fill rule 'cubic'"):
        fill([1], "int8", rule="cubic", a=1, b=1)
    zeros = cases.build({"shape": [3], "dtype": "float64", "values": ["-0.0", "inf", 0]})
    assert np.signbit(zeros).tolist() == [True, False, False]
    assert zeros[1] == np.inf
