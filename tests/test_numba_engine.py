"""What is special to the engine "numba": instructions inside their memory, tiles, threads, memory."""

import multiprocessing
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import ndpool as ndp
from ndpool.plan import WindowPlan
from ndpool.reductions import check_fill, reduction_of
from ndpool.testing import oracle

from .compare import assert_indices, assert_rounded, assert_same
from .strategies import Problem, problems
from .test_numpy_engine import PROBLEMS, array

pytest.importorskip("numba")  # an extra
from ndpool_numpy import compiled, machine
from ndpool_numpy import instructions as at
from ndpool_numpy import program as programs


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Each test sets the number of threads that it wants, and leaves the one that was."""
    before = ndp.get_num_threads()
    yield
    ndp.set_num_threads(before)


def _fresh(*caches: Any) -> None:
    for cache in caches:
        cache.cache_clear()


# ---- instructions ----------------------------------------------------------------------------------------------------


def _range(row: list[int], start: int, outer: int, inner: int, cells: tuple[int, int]) -> tuple[int, int]:
    ends = [(row[at.OUTER] - 1) * outer, (row[at.INNER] - 1) * inner, (cells[0] - 1) * cells[1]]
    return start + sum(min(0, end) for end in ends), start + sum(max(0, end) for end in ends)


def inside(_op: Any, _how: Any, arrays: Any, tiles: Any, code: Any, counts: Any, *_: Any) -> None:
    """Check, in place of the compiled loop, that no instruction leaves its memory and all results are written once."""
    line, scratch, _, out, _, where = arrays
    written = np.zeros(len(out), int)
    assert len(where) == 1 or len(where) == len(out)
    for begin, end, in_array, in_result, _ in tiles.tolist():
        filled = 0
        for row in code[begin:end].tolist():
            reads, writes = row[at.READS], row[at.WRITES]
            if row[at.KIND] not in (at.NEUTRAL, at.FILLED):
                start, cells = row[at.SOURCE] + reads * in_array, (row[at.CELLS], row[at.PITCH])
                low, high = _range(row, start, row[at.SOURCE_OUTER], row[at.SOURCE_INNER], cells)
                assert 0 <= low <= high < (len(line) if reads else len(scratch[0])), row
            start = row[at.TARGET] + writes * in_result
            low, high = _range(row, start, row[at.TARGET_OUTER], row[at.TARGET_INNER], (1, 0))
            assert 0 <= low <= high < (len(out) if writes else len(scratch[0])), row
            for table, extent in ((at.TOOK_OUTER, at.OUTER), (at.TOOK_INNER, at.INNER)):
                assert row[table] < 0 or row[table] + row[extent] <= len(counts)
            if writes and row[at.KIND] != at.ONTO:
                rows, columns = np.arange(row[at.OUTER])[:, None], np.arange(row[at.INNER])
                np.add.at(written, start + rows * row[at.TARGET_OUTER] + columns * row[at.TARGET_INNER], 1)
                filled += row[at.OUTER] * row[at.INNER]
        assert filled
    SEEN.append(written)


SEEN: list[np.ndarray] = []


@pytest.mark.parametrize("near", [64, 20 << 10])
def test_instructions_stay_inside(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where tiles are far smaller than any cache: then there are many, with every kind of border."""
    monkeypatch.setattr(machine, "run", inside)
    monkeypatch.setattr(programs, "NEAR", near)
    monkeypatch.setattr(programs, "FAR", 10 * near)
    _fresh(compiled._recipe)

    @settings(max_examples=400, suppress_health_check=list(HealthCheck))
    @given(problems())
    def every(problem: Problem) -> None:
        picks = problem.reduction in ("max", "min")
        for more in ({}, {"return_indices": True}) if picks else ({},):
            SEEN.clear()
            try:
                problem.call(ndp, lambda x: x, backend="numba", **more)
            except ValueError:
                continue  # refused
            if SEEN and not np.isin(0, SEEN[0]):
                assert (sum(SEEN) == 1).all()

    every()
    _fresh(compiled._recipe)


# ---- answers ---------------------------------------------------------------------------------------------------------


def agree(x: np.ndarray, name: str, arguments: dict[str, Any], **options: Any) -> None:
    """The engine's own answer, without those that stand in for it."""
    plan = WindowPlan.sliding(x.shape, **arguments)
    options |= {"p": 3} if name == "lp" else {}
    fill = {"fill_value": 2} if "constant" in str(arguments.get("padding_mode")) else {}
    reduction = check_fill(np, x.dtype, reduction_of(name, **options, **fill), (w.mode for w in plan.windows))
    answer = oracle.sliding(x, reduction=name, **arguments, **options, **fill)
    words = f"{name} {x.dtype} {arguments} {options}"
    if name not in ("max", "min"):
        assert_rounded(compiled.reduce(x, plan, reduction, None)[0], answer, words)
        return
    assert_same(compiled.reduce(x, plan, reduction, None)[0], answer.values, words)
    for encoding in ("flat", "plane"):
        values, positions = compiled.reduce(x, plan, reduction, encoding)
        assert_same(values, answer.values, f"{words}: values beside {encoding}")
        assert_indices(positions, answer, encoding, words)


@pytest.mark.parametrize(("near", "count"), [(16, 8), (100, 2), (1000, 1)])
def test_tiles_of_any_size(near: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And on several threads, which arrays as small as these would not get."""
    ndp.set_num_threads(count)
    monkeypatch.setattr(compiled, "SMALL", -1)
    monkeypatch.setattr(programs, "NEAR", near)
    monkeypatch.setattr(programs, "FAR", near)
    monkeypatch.setattr(programs, "TILE", 0)
    _fresh(compiled._recipe)
    for shape, arguments in PROBLEMS.values():
        for name in ("max", "min", "sum", "mean", "lp"):
            agree(array(shape, "float32"), name, arguments)
        agree(array(shape, "float32", 1), "max", arguments, nan_policy="omit")
        agree(array(shape, "float32", 2), "mean", arguments, nan_policy="omit")
    _fresh(compiled._recipe)


def test_positions_behind_the_range_of_32_bits() -> None:
    x = np.broadcast_to(np.uint8(7), (2**31 + 9,))
    plan = WindowPlan.intervals(x.shape, {0: [(2**31 + 1, 2**31 + 9), (0, 3), (2**31 - 2, 2**31 + 2)]})
    for encoding in ("flat", "plane"):
        values, positions = compiled.reduce(x, plan, reduction_of("max"), encoding)
        assert values.tolist() == [7, 7, 7]
        assert positions is not None
        assert positions.tolist() == [2**31 + 1, 0, 2**31 - 2]


# ---- threads and processes -------------------------------------------------------------------------------------------

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("max_pool", {"kernel_size": 3, "stride": 1, "padding": 1, "axes": (1, 2), "return_indices": True}),
    ("max_pool", {"kernel_size": 41, "stride": 1, "padding": 20, "axes": (1, 2), "padding_mode": "wrap"}),
    ("avg_pool", {"kernel_size": 3, "stride": 1, "padding": 1}),
    ("sum_pool", {"kernel_size": 21, "stride": 1, "axes": (0, 2)}),
]


def answers(x: np.ndarray) -> list[bytes]:
    """The bits of a few calls that are large enough for threads."""
    results = [getattr(ndp, name)(x, **arguments, backend="numba") for name, arguments in CALLS]
    return [part.tobytes() for result in results for part in (result if isinstance(result, tuple) else (result,))]


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((24, 200, 150), dtype=np.float32)


@pytest.fixture(scope="module")
def expected(large: np.ndarray) -> list[bytes]:
    before = ndp.get_num_threads()
    ndp.set_num_threads(1)
    result = answers(large)
    ndp.set_num_threads(before)
    return result


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_same_bits_with_any_number_of_threads(count: int, large: np.ndarray, expected: list[bytes]) -> None:
    ndp.set_num_threads(count)
    assert answers(large) == expected


def test_many_callers_at_once(large: np.ndarray, expected: list[bytes]) -> None:
    ndp.set_num_threads(2)
    results: list[list[bytes]] = []
    callers = [threading.Thread(target=lambda: results.append(answers(large))) for _ in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
    assert len(results) == 16
    assert all(result == expected for result in results)


def _child(x: np.ndarray, expected: list[bytes], failed: Any) -> None:
    failed.value = answers(x) != expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # Python 3.12: a process that has threads forks
def test_a_forked_process(large: np.ndarray, expected: list[bytes]) -> None:
    ndp.set_num_threads(2)
    assert answers(large) == expected  # there are threads now, which the child will not have
    context = multiprocessing.get_context("fork")
    failed = context.Value("b", 1)
    child = context.Process(target=_child, args=(large, expected, failed))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert not failed.value


def test_an_error_in_a_thread_is_raised() -> None:
    def work(blocks: Iterator[int]) -> None:
        for block in blocks:
            if block == 5:
                raise ZeroDivisionError

    ndp.set_num_threads(4)
    with pytest.raises(ZeroDivisionError):
        ndp.threads.share(20, work)


def test_every_block_is_done_once() -> None:
    done: list[int] = []
    for count in (1, 2, 8):
        ndp.set_num_threads(count)
        for blocks in (0, 1, 5, 1000):
            done.clear()
            ndp.threads.share(blocks, done.extend)
            assert sorted(done) == list(range(blocks))


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_is_an_int_of_at_least_1(n: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="`n` must be"):
        ndp.set_num_threads(n)


@pytest.mark.parametrize(("said", "expected"), [("3", "3"), ("", ""), ("0", "NDPOOL_NUM_THREADS"), ("x", "got 'x'")])
def test_the_environment_sets_the_number_of_threads(said: str, expected: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import ndpool; print(ndpool.get_num_threads())"],
        env={**os.environ, "NDPOOL_NUM_THREADS": said},
        check=False,
        capture_output=True,
        text=True,
    )
    assert expected in run.stdout + run.stderr
    assert (run.returncode == 0) == (said in ("3", ""))


# ---- compiling, memory -----------------------------------------------------------------------------------------------


def test_one_compiled_body_serves_every_shape() -> None:
    _fresh(compiled._recipe)
    ndp.max_pool(np.zeros((4, 4), np.float32), 2, backend="numba")
    before = len(machine.run.signatures)
    for shape in ((50,), (9, 9, 9), (3, 4, 5, 6), (2, 3, 4, 5, 6, 7)):
        x = np.zeros(shape, np.float32)
        for one in (x, np.asfortranarray(x), x[::-1], np.broadcast_to(x[..., :1], shape)):
            ndp.max_pool(one, 2, stride=1, padding=1, padding_mode="wrap", backend="numba")
            ndp.max_pool(one, shape, backend="numba")
    assert len(machine.run.signatures) == before


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    """Compiled code is kept where that can be, and made anew where not: here a folder's place is taken by a file."""
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    code = "import numpy, ndpool; print(ndpool.max_pool(numpy.arange(6.0, dtype='f4'), 2, backend='numba').tolist())"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(nowhere / "cache"), "HOME": str(nowhere)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == "[1.0, 3.0, 5.0]", run.stderr


@pytest.mark.parametrize("mode", ["ignore", "constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("name", ["max", "max with positions", "mean"])
def test_memory_beside_the_result_is_small(name: str, mode: str) -> None:
    ndp.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal((12, 1000, 1000), dtype=np.float32)
    plan = WindowPlan.sliding(x.shape, 5, stride=1, padding=2, padding_mode=mode)
    positions = "flat" if "positions" in name else None
    reduction = reduction_of(name.split(maxsplit=1)[0])
    compiled.reduce(x[:, :8, :8], WindowPlan.sliding((12, 8, 8), 2), reduction, positions)  # compiled by now
    tracemalloc.start()
    values, at_ = compiled.reduce(x, plan, reduction, positions)
    used = tracemalloc.get_traced_memory()[1] - values.nbytes - (0 if at_ is None else at_.nbytes)
    tracemalloc.stop()
    assert used < 16 * 2**20
