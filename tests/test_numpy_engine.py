"""What is special to the engine "numpy": tiles, the ways to reduce an axis, signed zeros, layouts, memory."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ndpool.padding import FILL, IGNORED
from ndpool.plan import WindowPlan
from ndpool.reductions import check_fill, reduction_of
from ndpool.testing import oracle
from ndpool.testing.windows import interval_windows
from ndpool_numpy import backend, boxes, costs, passes, ufuncs
from ndpool_numpy.spans import Borders
from ndpool_numpy.tiles import layout

from .compare import assert_indices, assert_rounded, assert_same
from .strategies import palette

REDUCTIONS = ("max", "min", "sum", "mean", "lp")
WAYS = ("columns", "dense columns", "doubling", "tree")

# One problem for each thing that a border, a tile or a chunk can do; every one is small enough for plain loops.
PROBLEMS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "rows": ((3, 10, 12), {"kernel_size": 2, "axes": (1, 2)}),
    "overlap": ((2, 9, 11), {"kernel_size": 3, "stride": 1, "padding": 1, "axes": (1, 2)}),
    "ceil": ((9, 8), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "padding_mode": "constant"}),
    "dilated": ((20, 4), {"kernel_size": (4,), "axes": 0, "dilation": 3, "stride": 2, "padding": 5}),
    "apart": ((40,), {"kernel_size": 3, "dilation": 4, "stride": 6, "padding": 9, "padding_mode": "wrap"}),
    "gaps": ((50,), {"kernel_size": 2, "stride": 7, "padding": ((3, 6),), "padding_mode": "edge"}),
    "far": ((5, 6), {"kernel_size": 4, "stride": 1, "padding": 13, "padding_mode": ("reflect", "symmetric")}),
    "crop": ((9, 9), {"kernel_size": 2, "padding": ((-2, 3), (4, -3)), "padding_mode": ("wrap", "ignore")}),
    "mixed": ((6, 5, 4), {"kernel_size": 3, "stride": 2, "padding": 2, "padding_mode": ("wrap", "constant", "ignore")}),
    "long": ((70,), {"kernel_size": 37, "stride": 1, "padding": 20}),
    "whole": ((6, 7, 5), {"kernel_size": (6, 7, 5)}),
    "nothing": ((4, 4), {"kernel_size": 2, "stride": 1, "padding": 5}),
    "last": ((3, 50), {"kernel_size": (5,), "axes": 1, "stride": 3, "padding": 2}),
    "single": ((4, 6), {"kernel_size": 1, "stride": 2}),
}


def array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Few values, so that ties, NaNs and zeros of both signs are in most windows."""
    rng = np.random.default_rng(seed)
    few = [v for v in palette(dtype) if rng.random() < 0.7] or [1]
    return np.array(few, dtype)[rng.integers(0, len(few), shape)]


def verify(x: np.ndarray, plan: WindowPlan, answer: oracle.Answer, reduction: Any, words: str) -> None:
    """Values alone, then with both encodings."""
    values, nowhere = ufuncs.reduce(x, plan, reduction, None)
    assert nowhere is None
    if reduction.name not in ("max", "min"):
        assert_rounded(values, answer, words)
        return
    assert_same(values, answer.values, words)
    for encoding in ("flat", "plane"):
        values, at = ufuncs.reduce(x, plan, reduction, encoding)
        assert_same(values, answer.values, f"{words}: values beside {encoding}")
        assert_indices(at, answer, encoding, words)


def agree(x: np.ndarray, name: str, arguments: dict[str, Any], **options: Any) -> None:
    plan = WindowPlan.sliding(x.shape, **arguments)
    if name == "lp":
        options["p"] = 3
    fill = {"fill_value": 2} if "constant" in str(arguments.get("padding_mode")) and x.dtype != bool else {}
    reduction = check_fill(np, x.dtype, reduction_of(name, **options, **fill), (w.mode for w in plan.windows))
    answer = oracle.sliding(x.astype(x.dtype.newbyteorder("=")), reduction=name, **arguments, **options, **fill)
    verify(x, plan, answer, reduction, f"{name} {x.dtype} {arguments} {options}")


# ---- tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [8, 48, 200, 1000])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_tiles_of_any_size(problem: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "BUDGET", budget)
    shape, arguments = PROBLEMS[problem]
    for seed, name in enumerate(REDUCTIONS):
        for dtype in ("float32", "float64", "uint8", "int64", "float16", "bool"):
            agree(array(shape, dtype, seed), name, arguments)
            agree(array(shape, dtype, seed), name, arguments, nan_policy="omit")


def cells_of(plan: WindowPlan, borders: Borders, limit: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For each axis: the cells that the tiles read for each window, and those that the plan says."""
    tiles = layout(plan, tuple(range(len(plan.input_shape))), limit, borders)
    for window in plan.windows:
        pieces = tiles.pieces[window.axis]
        assert [piece.begin for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert pieces[0].begin == 0
        assert pieces[-1].end == window.count
        for piece in pieces:
            got: list[list[int]] = [[] for _ in range(piece.end - piece.begin)]
            for span in piece.chunks:
                positions = np.full(span.length, -9)
                for run in span.runs:
                    positions[run.begin : run.end] = run.source + run.step * np.arange(run.end - run.begin)
                for o, row in enumerate(got):
                    if span.starts is not None and span.lengths is not None:
                        row.extend(positions[span.starts[o] : span.starts[o] + span.lengths[o]].tolist())
                    else:
                        begin = o * span.stride
                        row.extend(positions[begin : begin + span.kernel * span.dilation : span.dilation].tolist())
            table = plan.windows[plan.axes.index(window.axis)].table(piece.begin, piece.end)
            counts = np.broadcast_to(piece.taking, len(got))
            for row, want, taking in zip(got, table, counts, strict=True):
                yield taking, np.array(row), want


@pytest.mark.parametrize("limit", [1, 5, 40, 10**6])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_pieces_read_what_the_plan_says(problem: str, limit: int) -> None:
    shape, arguments = PROBLEMS[problem]
    plan = WindowPlan.sliding(shape, **arguments)
    for taking, got, want in cells_of(plan, Borders(fill=True, nearest=False), limit):
        assert got.tolist() == want[: len(got)].tolist()
        assert (want[len(got) :] == IGNORED).all()
        assert taking == (want != IGNORED).sum()
    for taking, got, want in cells_of(plan, Borders(fill=False, nearest=True), limit):
        real = want[want >= 0]
        assert taking == len(real)
        if len(real):  # what takes no part stands for an element that does, and that comes first as it was
            assert set(got.tolist()) == set(real.tolist())
            assert got[0] == real[0]


def test_intervals_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    for budget in (16, 100, 1 << 19):
        monkeypatch.setattr(ufuncs, "BUDGET", budget)
        for call in (0.0, 800.0):  # by blocks for all windows, and one after another
            monkeypatch.setattr(passes, "CALL", call)
            for seed, name in enumerate(REDUCTIONS * 2):
                rows = [tuple(sorted(map(int, rng.integers(0, 31, 2)))) for _ in range(20)]
                adaptive = [(i * 5 // 7, -(-(i + 1) * 5 // 7)) for i in range(7)]
                x, intervals = array((30, 5), "float64", seed), {0: rows, 1: adaptive}
                plan = WindowPlan.intervals(x.shape, intervals)
                windows = {axis: interval_windows(x.shape[axis], pairs) for axis, pairs in intervals.items()}
                options = {"p": 2.0} if name == "lp" else {}
                answer = oracle.pool(x, windows, name, **options)
                verify(x, plan, answer, reduction_of(name, **options), f"{name} {intervals} {budget}")


# ---- the ways to reduce an axis --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", [2, 3, 4, 5, 7, 8, 11, 16, 23])
def test_every_way_gives_the_same(way: str, kernel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "cheapest", lambda *_: (way, 1.0))
    for axis, stride, dilation in ((0, 1, 1), (1, 1, 1), (1, 2, 1), (1, 5, 3), (0, 4, 2)):
        shape = (5, 2 * dilation * kernel)[:: 1 if axis else -1]
        arguments = {"kernel_size": (kernel,), "axes": axis, "stride": stride, "dilation": dilation}
        for seed, name in enumerate(REDUCTIONS):
            agree(array(shape, "float32", seed), name, arguments)
            agree(array(shape, "float64", seed), name, arguments, nan_policy="omit")
        agree(array(shape, "uint8"), "max", arguments)


def test_every_way_is_the_cheapest_somewhere() -> None:
    traits = (True, False, 2**62, 1)
    spans = [(130, 128, 3, 1, 1), (256, 64, 4, 4, 1), (1054, 1024, 31, 1, 1), (4096, 1, 4096, 1, 1), (120, 40, 3, 3, 1)]
    chosen = {
        costs.cheapest(s, rest, inner, 4, traits)[0] for s in spans for rest in (1, 4096) for inner in (True, False)
    }
    assert set(WAYS) - chosen <= {"dense columns"}


def test_small_integers_add_in_few_bytes_and_never_overflow() -> None:
    for dtype, kernel in (("uint8", 600), ("int8", 600), ("int16", 70000), ("uint16", 40000), ("bool", 300)):
        x = np.full(kernel, 1 if dtype == "bool" else np.iinfo(dtype).max, dtype)
        plan = WindowPlan.sliding(x.shape, kernel)
        total, mean = (ufuncs.reduce(x, plan, reduction_of(name), None)[0] for name in ("sum", "mean"))
        assert total.tolist() == [kernel * int(x[0])]
        assert total.dtype == (np.uint64 if dtype[0] == "u" else np.int64)
        assert mean.tolist() == [float(x[0])]


# ---- zeros, NaN ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_first_zero_wins_whatever_its_sign(name: str, dtype: str) -> None:
    # Longer than the registers of any machine: NumPy's maximum takes another zero there than in the rest of a row.
    rng = np.random.default_rng(0)
    worse = -1.0 if name == "max" else 1.0
    x = np.array([0.0, -0.0, worse], dtype)[rng.integers(0, 3, (7, 150))]
    for kernel, stride in ((2, 1), (3, 3), (5, 2), ((3, 40), 1)):
        agree(x, name, {"kernel_size": kernel, "stride": stride})


def test_a_nan_stays_in_its_windows_also_across_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "BUDGET", 256)
    x = np.random.default_rng(1).standard_normal((20, 30))
    x[3, 4], x[17, 29], x[8] = np.nan, np.nan, -np.inf
    for name in REDUCTIONS:
        for policy in ("propagate", "omit"):
            agree(x, name, {"kernel_size": 3, "stride": 1, "padding": 1}, nan_policy=policy)


def test_a_fill_keeps_the_sign_of_its_zero() -> None:
    x = np.array([-1.0, -1.0])
    for fill in (0.0, -0.0, 0):
        plan = WindowPlan.sliding((2,), 2, padding=1, padding_mode="constant")
        (values, _) = ufuncs.reduce(x, plan, reduction_of("max", fill_value=fill), None)
        assert np.signbit(values).tolist() == [bool(np.signbit(fill))] * 2


def test_powers_outside_the_range_of_the_dtype() -> None:
    for dtype, scales in (("float64", (1e200, 1e-200, 1.0)), ("float32", (1e30, 1e-30)), ("float16", (1e4, 1e-6))):
        for scale in scales:
            for p in (2, 3, 10, 0.5, 1.5):
                x = (np.array([3.0, -4.0, 0.0, 1.0] * 5) * scale).astype(dtype)
                plan, words = WindowPlan.sliding(x.shape, 2), f"{dtype} {scale} {p}"
                answer = oracle.sliding(x, 2, reduction="lp", p=p)
                assert_rounded(ufuncs.reduce(x, plan, reduction_of("lp", p=p), None)[0], answer, words)


# ---- layouts ---------------------------------------------------------------------------------------------------------


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    result = memory[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


LAYOUTS = {
    "fortran": np.asfortranarray,
    "channels last": lambda x: np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1),
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1, ::-1])[::-1, ::-1, ::-1],
    "gaps": lambda x: np.repeat(x, 2, axis=2)[..., ::2],
    "stretched": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "stretched rows": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "unaligned": unaligned,
    "swapped": lambda x: x.astype(x.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("budget", [300, 1 << 19])
def test_layouts(kind: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "BUDGET", budget)
    for seed, name in enumerate(REDUCTIONS):
        for axes in ((1, 2), (2, 0)):
            x = LAYOUTS[kind](array((4, 9, 10), "float32", seed))
            x.flags.writeable = False
            before = x.tobytes()
            agree(x, name, {"kernel_size": 3, "stride": 2, "padding": 1, "axes": axes, "padding_mode": "reflect"})
            agree(x, name, {"kernel_size": 2, "axes": axes})
            assert x.tobytes() == before


def test_the_result_is_a_new_native_array_in_the_order_of_the_input() -> None:
    x = np.asfortranarray(np.arange(24.0).reshape(4, 6)).astype(">f8")
    for kernel in (1, 2):
        values, _ = ufuncs.reduce(x, WindowPlan.sliding(x.shape, kernel), reduction_of("max"), None)
        assert values.dtype == np.float64
        assert values.dtype.isnative
        assert values.flags.f_contiguous
        assert not np.may_share_memory(values, x)


def test_nothing_to_do() -> None:
    for shape, axes, kernel in (((0, 4), (1,), 2), ((4, 0), (0,), 2), ((3, 2), (), ()), ((), (), ())):
        x = np.ones(shape, np.float32)
        plan = WindowPlan.sliding(shape, kernel, axes=axes)
        for name in REDUCTIONS:
            values, _ = ufuncs.reduce(x, plan, reduction_of(name, p=2 if name == "lp" else None), None)
            assert values.shape == plan.output_shape
            assert (values == 1).all()
        assert ufuncs.reduce(x, plan, reduction_of("min"), "flat")[1].ravel().tolist() == list(range(values.size))
    empty = WindowPlan.sliding((0,), 3, padding=2)
    assert ufuncs.reduce(np.ones(0), empty, reduction_of("max"), "plane")[0].tolist() == [-np.inf]


# ---- long windows, memory --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1 << 21,), (3, 1 << 19), (1024, 1500), (1 << 19, 3)])
def test_one_window_of_everything(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    plan = WindowPlan.sliding(shape, shape)
    for name, expected in (("max", x.argmax()), ("min", x.argmin())):
        for order in (x, np.asfortranarray(x)):
            values, at = ufuncs.reduce(order, plan, reduction_of(name), "flat")
            assert values.ravel()[0] == x.ravel()[expected]
            assert at.ravel().tolist() == [expected]
    total, size = (
        ufuncs.reduce(x, plan, reduction_of("sum"), None)[0].ravel()[0],
        float(np.abs(x).sum(dtype=np.float64)),
    )
    assert abs(float(total) - x.sum(dtype=np.float64)) <= 4 * np.finfo(np.float32).eps * np.log2(x.size) * size


def test_positions_behind_the_range_of_32_bits() -> None:
    x = np.broadcast_to(np.uint8(7), (2**31 + 9,))
    plan = WindowPlan.intervals(x.shape, {0: [(2**31 + 1, 2**31 + 9), (0, 3), (2**31 - 2, 2**31 + 2)]})
    for encoding in ("flat", "plane"):
        values, at = ufuncs.reduce(x, plan, reduction_of("max"), encoding)
        assert values.tolist() == [7, 7, 7]
        assert at.tolist() == [2**31 + 1, 0, 2**31 - 2]


def test_windows_apart_are_not_read_in_between() -> None:
    x = np.broadcast_to(np.float32(1), (2**40,))
    plan = WindowPlan.sliding(x.shape, 3, stride=2**39, dilation=2**37)
    assert ufuncs.reduce(x, plan, reduction_of("sum"), None)[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("max", {"kernel_size": 3, "stride": 1, "padding": 1, "padding_mode": "wrap", "axes": (1, 2)}, 12),
        ("sum", {"kernel_size": 3, "stride": 1, "padding": 1, "padding_mode": "wrap"}, 12),
        ("max", {"kernel_size": 101, "stride": 1, "padding": 50, "padding_mode": "reflect", "axes": (1, 2)}, 16),
        ("mean", {"kernel_size": (12, 1000, 1000)}, 16),
    ],
)
@pytest.mark.parametrize("positions", [None, "flat"])
def test_memory_beside_the_result_is_small(
    name: str, arguments: dict[str, Any], limit: int, positions: str | None
) -> None:
    x = np.random.default_rng(0).standard_normal((12, 1000, 1000), dtype=np.float32)
    plan, positions = WindowPlan.sliding(x.shape, **arguments), positions if name == "max" else None
    tracemalloc.start()
    values, at = ufuncs.reduce(x, plan, reduction_of(name), positions)
    used = tracemalloc.get_traced_memory()[1] - values.nbytes - (0 if at is None else at.nbytes)
    tracemalloc.stop()
    assert used < limit * 2**20


def test_long_axes_keep_no_table() -> None:
    x = np.zeros(6_000_000, np.uint8)
    plan = WindowPlan.sliding(x.shape, 3, stride=1, padding=1, padding_mode="symmetric")
    tracemalloc.start()
    values, _ = ufuncs.reduce(x, plan, reduction_of("max"), None)
    used = tracemalloc.get_traced_memory()[1] - values.nbytes
    tracemalloc.stop()
    assert used < 16 * 2**20


# ---- what the backend takes ------------------------------------------------------------------------------------------


def test_unpack() -> None:
    x, mask = backend.unpack([[1, 2], [3, 4]])
    assert type(x) is np.ndarray
    assert mask is None
    x, mask = backend.unpack(np.ma.array([1, 2], mask=[True, False]))
    assert type(x) is np.ndarray
    assert mask.tolist() == [False, True]
    assert backend.unpack(np.ma.array([1, 2]))[1] is None
    with pytest.warns(PendingDeprecationWarning, match="matrix"):
        matrix = np.matrix([[1, 2]])
    assert type(backend.unpack(matrix)[0]) is np.ndarray


def test_dtypes() -> None:
    for code in "?bhilqBHILQefdFD":
        assert ufuncs.takes_dtype(np.dtype(code))
    for code in ("O", "U3", "M8[s]", "V4", "g", "G"):
        assert ufuncs.takes_dtype(np.dtype(code)) == (np.dtype(code).type in (np.float64, np.complex128))


def test_a_mask_is_refused() -> None:
    plan = WindowPlan.sliding((2,), 2)
    with pytest.raises(TypeError, match="where"):
        ufuncs.reduce(np.ones(2), plan, reduction_of("sum"), None, np.ones(2, bool))


def test_fill_and_ignored_cells_are_told_apart() -> None:
    assert FILL != IGNORED
    plan = WindowPlan.sliding((2, 2), 2, padding=2, padding_mode=("constant", "ignore"))
    values, at = ufuncs.reduce(np.zeros((2, 2)), plan, reduction_of("max", fill_value=5.0), "flat")
    assert values.tolist() == [[-np.inf, 5, -np.inf], [-np.inf, 0, -np.inf], [-np.inf, 5, -np.inf]]
    assert at.tolist() == [[-1, -1, -1], [-1, 0, -1], [-1, -1, -1]]


def test_tables_are_kept_for_few_tiles() -> None:
    call = boxes.Call(np.zeros(1))
    made: list[int] = []
    for key in (0, 0, 1, 2, 3, 4, 0):
        call.once(key, lambda key=key: made.append(key))
    assert made == [0, 1, 2, 3, 4, 0]
    assert len(call.kept) <= 4
