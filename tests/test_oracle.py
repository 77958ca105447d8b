"""The oracle against answers worked out by hand, against the shared cases, and against peers where they agree."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from ndpool.testing import cases, oracle
from ndpool.testing.windows import (
    FILL,
    IGNORED,
    adaptive_windows,
    axis_window,
    axis_windows,
    interval_windows,
    resolve_padding,
    sliding_windows,
)

X, F = IGNORED, FILL


@pytest.mark.parametrize(
    ("mode", "row"),  # an axis of 3, padded by 4 on each side, seen as one window
    [
        ("ignore", [X, X, X, X, 0, 1, 2, X, X, X, X]),
        ("constant", [F, F, F, F, 0, 1, 2, F, F, F, F]),
        ("zeros", [F, F, F, F, 0, 1, 2, F, F, F, F]),
        ("edge", [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("replicate", [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("nearest", [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("reflect", [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]),
        ("mirror", [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]),
        ("symmetric", [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0]),
        ("wrap", [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        ("circular", [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
    ],
)
def test_modes(mode: str, row: list[int]) -> None:
    assert axis_windows(3, 11, 1, 4, 4, mode=mode) == [row]


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_modes_as_numpy_pads(mode: str) -> None:
    for n in range(1, 6):
        for before, after in [(0, 0), (1, 2), (7, 0), (0, 9), (13, 11)]:
            want = np.pad(np.arange(n), (before, after), mode=mode).tolist()
            assert axis_windows(n, len(want), 1, before, after, mode=mode) == [want]


@pytest.mark.parametrize(
    ("arguments", "rows"),  # n, kernel, stride, before, after, dilation, ceil_mode, mode
    [
        ((5, 2, 2, 0, 0, 1, False, "ignore"), [[0, 1], [2, 3]]),
        ((5, 2, 2, 0, 0, 1, True, "ignore"), [[0, 1], [2, 3], [4, X]]),
        ((5, 4, 3, 1, 0, 1, True, "reflect"), [[1, 0, 1, 2], [2, 3, 4, X]]),  # the overhang is no padding
        ((5, 2, 1, 0, 0, 3, False, "ignore"), [[0, 3], [1, 4]]),
        ((4, 1, 1, 0, 0, 2**62, False, "ignore"), [[0], [1], [2], [3]]),
        ((6, 3, 2, -1, -1, 1, False, "edge"), [[1, 2, 3]]),  # cropped elements are in no window
        ((5, 3, 1, -2, 1, 1, False, "symmetric"), [[2, 3, 4], [3, 4, 4]]),
        ((5, 3, 2, -2, 2, 1, False, "wrap"), [[2, 3, 4], [4, 2, 3]]),  # cropped first, then padded
        ((4, 2, 1, 2, -2, 1, False, "reflect"), [[0, 1], [1, 0], [0, 1]]),
        ((3, 2, 2, -5, 5, 1, False, "constant"), [[F, F]]),
        ((0, 2, 1, 1, 1, 1, False, "ignore"), [[X, X]]),
        ((2, 3, 2, 0, 0, 1, True, "ignore"), [[0, 1, X]]),  # one window while the lack is below the stride
        ((7, 4, 3, 1, 1, 1, True, "constant"), [[F, 0, 1, 2], [2, 3, 4, 5], [5, 6, F, X]]),
        ((4, 1, 3, 0, 2, 1, True, "ignore"), [[0], [3]]),  # a third would start past the input
    ],
)
def test_windows(arguments: tuple, rows: list[list[int]]) -> None:
    *positional, dilation, ceil_mode, mode = arguments
    assert axis_windows(*positional, dilation=dilation, ceil_mode=ceil_mode, mode=mode) == rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5, 4, 4, 0, 0, 2, False, "ignore"), r"window 4 \(dilation 2\) is longer than the axis: 0 \+ 5 \+ 0"),
        ((2, 6, 2, 0, 0, 1, True, "ignore"), "longer than the axis"),
        ((0, 1, 1, 0, 0, 1, False, "ignore"), "longer than the axis"),
        ((3, 2, 1, -5, 5, 1, False, "edge"), "'edge' needs at least one element"),
        ((4, 0, 1, 0, 0, 1, False, "ignore"), "kernel 0"),
        ((4, 1, -1, 0, 0, 1, False, "ignore"), "stride -1"),
        ((4, 1, 1, 0, 0, 0, False, "ignore"), "dilation 0"),
    ],
)
def test_windows_that_cannot_be(arguments: tuple, words: str) -> None:
    *positional, dilation, ceil_mode, mode = arguments
    with pytest.raises(ValueError, match=words):
        axis_windows(*positional, dilation=dilation, ceil_mode=ceil_mode, mode=mode)


def test_same_padding_gives_one_output_a_stride() -> None:
    assert resolve_padding("same", 5, 4, 1, 1) == (1, 2)  # the odd element after
    assert resolve_padding("same_lower", 5, 4, 1, 1) == (2, 1)
    assert resolve_padding("valid", 5, 4, 1, 1) == (0, 0)
    with pytest.raises(ValueError, match="padding 'full' is not known"):
        resolve_padding("full", 5, 4, 1, 1)
    for n, k, s, d in itertools.product(range(1, 10), range(1, 6), range(1, 5), range(1, 4)):
        for word in ("same", "same_lower"):
            windows = axis_windows(n, k, s, *resolve_padding(word, n, k, s, d), dilation=d, mode="edge")
            assert len(windows) == -(-n // s)


def test_interval_and_adaptive_windows() -> None:
    assert interval_windows(5, [(0, 2), (4, 5), (1, 1), (0, 5)]) == [[0, 1], [4], [], [0, 1, 2, 3, 4]]
    with pytest.raises(ValueError, match=r"interval \(3, 6\) leaves the axis of length 5"):
        interval_windows(5, [(3, 6)])
    assert adaptive_windows(5, 3) == [[0, 1], [1, 2, 3], [3, 4]]
    assert adaptive_windows(2, 5) == [[0], [0], [0, 1], [1], [1]]
    assert adaptive_windows(4, 0) == []
    with pytest.raises(ValueError, match="-2 is negative"):
        adaptive_windows(4, -2)


# ---- windows by hand -----------------------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("reduction", "values", "options", "value", "index"),  # one window over all of it
    [
        ("max", [1, 3, 3], {}, 3, 1),
        ("min", [2, 1, 1], {}, 1, 1),
        ("max", [-0.0, 0.0], {}, -0.0, 0),
        ("min", [0.0, -0.0], {}, 0.0, 0),
        ("max", [5, NAN, NAN], {}, NAN, 1),
        ("min", [5, NAN, NAN], {}, NAN, 1),
        ("max", [NAN, 5], {"nan_policy": "omit"}, 5, 1),
        ("max", [NAN, NAN], {"nan_policy": "omit"}, NAN, 0),
        ("max", [-INF, -INF], {}, -INF, 0),
        ("max", [4, 9, 6], {"where": [True, False, True]}, 6, 2),
        ("max", [4, 9, 6], {"where": False}, -INF, -1),
        ("min", [4, 9, 6], {"where": False}, INF, -1),
        ("sum", [NAN, 2, 3], {"nan_policy": "omit"}, 5, None),
        ("sum", [NAN, NAN], {"nan_policy": "omit"}, NAN, None),
        ("sum", [4, 9], {"where": False}, 0, None),
        ("sum", [1e16, 1, -1e16], {}, 1, None),
        ("sum", [INF, -INF], {}, NAN, None),
        ("sum", [1e308, 1e308, -1e308], {}, 1e308, None),
        ("sum", [1e308, 1e308], {}, INF, None),
        ("mean", [4, 9], {"where": False}, NAN, None),
        ("mean", [4, 9], {"where": False, "divisor": 2}, NAN, None),
        ("mean", [4, NAN, 8], {"nan_policy": "omit"}, 6, None),
        ("mean", [4, 9, 6], {"where": [True, False, True]}, 5, None),
        ("mean", [4, 9, 6], {"divisor": 2}, 9.5, None),
        ("lp", [3, -4], {"p": 2}, 5, None),
        ("lp", [3e200, -4e200], {"p": 2}, 5e200, None),
        ("lp", [3, -4], {"p": INF}, 4, None),
        ("lp", [1, 4], {"p": 0.5}, 9, None),
        ("lp", [0, 0], {"p": 2}, 0, None),
        ("lp", [4, 9], {"p": 2, "where": False}, 0, None),
        ("lp", [NAN, INF], {"p": 2}, NAN, None),
    ],
)
def test_one_window(reduction: str, values: list, options: dict, value: float, index: int | None) -> None:
    answer = oracle.sliding(np.array(values, float), len(values), reduction=reduction, **options)
    np.testing.assert_allclose(answer.values, [value], rtol=2.3e-16 if reduction == "lp" else 0)
    assert np.signbit(answer.values[0]) == (math.copysign(1, value) < 0) or math.isnan(value)
    if index is not None:
        assert [answer.winners[e].tolist() for e in ("flat", "plane", "window")] == [[index]] * 3
        assert [c.tolist() for c in answer.winners["coords"]] == [[index]]


@pytest.mark.parametrize(
    ("dtype", "fill", "reduction", "value", "places"),  # a fill element, then two ones
    [
        ("float64", 1, "max", 1, (-1, -1)),  # a tie goes to the first, here the fill
        ("float64", 0, "max", 1, (0, 1)),
        ("float64", 2, "min", 1, (0, 1)),
        ("int8", -128, "max", 1, (0, 1)),
        ("float64", NAN, "max", NAN, (-1, -1)),
    ],
)
def test_fill(dtype: str, fill: float, reduction: str, value: float, places: tuple) -> None:
    answer = oracle.sliding(
        np.ones(2, dtype), 3, reduction=reduction, padding=((1, 0),), padding_mode="constant", fill_value=fill
    )
    np.testing.assert_array_equal(answer.values, [value])
    assert (answer.winners["flat"].item(), answer.winners["window"].item()) == places
    assert answer.winners["coords"][0].item() == places[0]


def test_an_infinite_fill_takes_no_index_from_an_infinite_element() -> None:
    x = np.array([-INF, -INF])
    answer = oracle.sliding(x, 2, reduction="max", padding=1, padding_mode="constant", fill_value=-INF)
    assert answer.values.tolist() == [-INF, -INF]
    assert answer.winners["flat"].tolist() == [0, 1]
    tie = oracle.sliding(np.array([-128], np.int8), 2, reduction="max", padding=1, padding_mode="constant",
                         fill_value=-128)  # fmt: skip
    assert tie.winners["flat"].tolist() == [-1]  # integers have no infinity: the fill competes


def test_ignored_on_one_axis_beats_fill_on_another() -> None:
    answer = oracle.sliding(np.ones((1, 1)), 3, reduction="sum", padding=1, padding_mode=("constant", "ignore"),
                            fill_value=10)  # fmt: skip
    assert answer.values.tolist() == [[21]]


def test_one_fill_value_for_all_axes() -> None:
    arguments = {"reduction": "sum", "padding": 1, "padding_mode": ("zeros", "constant")}
    assert oracle.sliding(np.ones((1, 1)), 3, **arguments).values.tolist() == [[1]]
    with pytest.raises(ValueError, match="'zeros' beside 'constant' with 10"):
        oracle.sliding(np.ones((1, 1)), 3, fill_value=10, **arguments)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int8", -128, 127), ("uint16", 0, 65535), ("int64", -(2**63), 2**63 - 1), ("bool", False, True)],
)
def test_windows_with_nothing_in_them(dtype: str, low: int, high: int) -> None:
    x = np.ones(1, dtype)
    for reduction, identity in [("max", low), ("min", high), ("sum", 0), ("mean", NAN)]:
        answer = oracle.sliding(x, 1, reduction=reduction, stride=1, padding=1)
        np.testing.assert_array_equal(answer.values, [identity, 1, identity])
    assert answer.values.dtype == np.float64


def test_encodings_follow_their_own_orders() -> None:
    x = np.zeros((2, 3, 4))
    x[1, 2, 3] = 1
    answer = oracle.sliding(x, (4, 2), axes=(2, 0), reduction="max")
    assert answer.values.shape == (1, 3, 1)
    assert answer.winners["flat"][0, 2, 0] == 1 * 12 + 2 * 4 + 3
    assert answer.winners["plane"][0, 2, 0] == 1 * 4 + 3
    assert [c[0, 2, 0] for c in answer.winners["coords"]] == [3, 1]
    assert answer.winners["window"][0, 2, 0] == 1 * 4 + 3


def test_the_window_encoding_counts_padding_and_the_longest_window() -> None:
    assert oracle.sliding(np.array([1, 2]), 3, reduction="max", padding=((2, 0),), stride=1).winners["window"].tolist(
    ) == [2, 2]  # fmt: skip
    answer = oracle.pool(np.arange(5), {0: interval_windows(5, [(0, 3), (3, 5), (1, 1)])}, "max")
    assert answer.winners["window"].tolist() == [2, 1, -1]


def test_integers_are_exact_and_wrap_as_the_dtype_does() -> None:
    big = np.array([2**63 - 1, 1, 2**53 + 1, 0])
    assert oracle.sliding(big, 2, reduction="sum").values.tolist() == [-(2**63), 2**53 + 1]
    assert oracle.sliding(np.array([2**64 - 1, 2], np.uint64), 2, reduction="sum").values.tolist() == [1]
    for reduction, dtype in [("sum", "int64"), ("mean", "float64"), ("max", "bool")]:
        assert oracle.sliding(np.array([True, True]), 2, reduction=reduction).values.dtype == dtype


def test_complex_numbers_have_sums_alone() -> None:
    x = np.array([1 + 2j, 3 - 1j])
    assert oracle.sliding(x, 2, reduction="mean").values.tolist() == [2 + 0.5j]
    with pytest.raises(TypeError, match="complex"):
        oracle.sliding(x, 2, reduction="max")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"axes": (0, -2)}, "repeats one"), ({"axes": (2,)}, "outside 2 dimensions"), ({"stride": (1,)}, "`stride`"),
        ({"padding": (1, 1, 1)}, "`padding`"), ({"nan_policy": "skip"}, "'skip'"), ({"reduction": "median"}, "median"),
        ({"reduction": "lp", "p": 0}, "above 0"), ({"reduction": "lp"}, "above 0"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        oracle.sliding(np.ones((3, 3)), 2, **{"reduction": "max", **arguments})


# ---- the shared cases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases.built(), ids=lambda case: case.id)
def test_shared_cases(case: cases.Case) -> None:
    arguments = case.arguments()
    encoding, x = arguments.pop("return_indices", False), case.array()
    if "samples" in case.expect:  # too long for loops: only the windows that are asked for
        (n, k), (before, _) = (len(x), arguments["kernel_size"][0]), arguments["padding"][0]
        for sample in case.expect["samples"]:
            row = axis_window(sample["at"][0], n, k, 1, before, after=0)
            answer = oracle.pool(x, {0: [row]}, "max")
            assert answer.values.tolist() == [sample["value"]]
            assert answer.winners["plane"].tolist() == [sample["index"]]
        return
    if case.raises:
        with pytest.raises(ValueError, match=r"longer|entries|at least|above"):
            oracle.sliding(x, arguments.pop("kernel_size"), reduction=cases.BUILT[case.op], **arguments)
        return
    answer = oracle.sliding(x, arguments.pop("kernel_size"), reduction=cases.BUILT[case.op], **arguments)
    indexed = SimpleNamespace(values=answer.values, indices=answer.winners and answer.winners.get(encoding))
    cases.check(case, indexed if encoding else answer.values)


# ---- peers, where they agree ---------------------------------------------------------------------------------------


def test_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    rng = np.random.default_rng(0)
    for k, s, d, ceil in itertools.product((1, 2, 3), (1, 2, 3), (1, 2), (False, True)):
        pad = k // 2
        x = rng.integers(-3, 4, (2, 7, 6)).astype(np.float64)
        arguments = {"axes": (1, 2), "stride": s, "padding": pad, "ceil_mode": ceil}
        values, indices = functional.max_pool2d(torch.from_numpy(x), k, s, pad, d, ceil_mode=ceil, return_indices=True)
        answer = oracle.sliding(x, (k, k), reduction="max", dilation=d, **arguments)
        np.testing.assert_array_equal(answer.values, values)
        np.testing.assert_array_equal(answer.winners["plane"], indices)
        for count_pad, mode in [(True, "constant"), (False, "ignore")]:
            mean = functional.avg_pool2d(torch.from_numpy(x), k, s, pad, ceil, count_pad)
            answer = oracle.sliding(x, (k, k), reduction="mean", padding_mode=mode, **arguments)
            np.testing.assert_allclose(answer.values, mean, rtol=1e-14)


@pytest.mark.parametrize(
    ("theirs", "mode"),
    [("reflect", "symmetric"), ("mirror", "reflect"), ("nearest", "edge"), ("wrap", "wrap"), ("constant", "constant")],
)
def test_as_scipy_does(theirs: str, mode: str) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = np.random.default_rng(1).integers(-9, 9, (6, 5)).astype(np.float64)
    for size in itertools.product((1, 2, 3, 4), repeat=2):
        padding = tuple((k // 2, k - 1 - k // 2) for k in size)
        filters = {"max": ndimage.maximum_filter, "min": ndimage.minimum_filter, "mean": ndimage.uniform_filter}
        for reduction, theirs_filter in filters.items():
            answer = oracle.sliding(x, size, stride=1, padding=padding, padding_mode=mode, reduction=reduction)
            np.testing.assert_allclose(answer.values, theirs_filter(x, size, mode=theirs), atol=1e-14)


def test_windows_of_the_public_arguments() -> None:
    assert sliding_windows((4, 6), (3,), padding="same") == {1: [[0, 1, 2], [3, 4, 5]]}
    assert sliding_windows((2, 2), 2) == {0: [[0, 1]], 1: [[0, 1]]}
    assert list(sliding_windows((2, 3, 4), 2, axes=(-1, 0))) == [2, 0]
