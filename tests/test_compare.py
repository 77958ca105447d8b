"""The comparison itself: a backend that returns nonsense must fail every one of its checks."""

import numpy as np
import pytest

from ndpool.testing import oracle

from .compare import assert_indices, assert_rounded, assert_same

X = np.array([0.0, -0.0, 3.0, np.nan, 2.0, 5.0])
MAX = oracle.sliding(X, 2, reduction="max")
MEAN = oracle.sliding(np.array([1.0, 2.0, 4.0, np.inf, np.nan, 1.0], np.float32), 2, reduction="mean")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros_like, "want"),
        (lambda v: -v, "want"),  # only the sign of a zero differs in the first element
        (np.nan_to_num, "want"),
        (lambda v: np.nextafter(v, 9), "want"),
        (lambda v: v.astype(np.float32), "dtype"),
        (lambda v: v[:, None], "shape"),
        (lambda v: v[:2], "shape"),
        (lambda v: v.tolist(), "not an array"),
        (lambda _: None, "not an array"),
    ],
)
def test_wrong_values(wrong, words: str) -> None:
    assert_same(MAX.values.copy(), MAX.values)
    with pytest.raises(AssertionError, match=words):
        assert_same(wrong(MAX.values), MAX.values)


def test_the_sign_of_zero_and_any_nan() -> None:
    assert_same(np.array([-np.nan]), np.array([np.nan]))
    with pytest.raises(AssertionError, match="want"):
        assert_same(np.array([-0.0]), np.array([0.0]))


@pytest.mark.parametrize("encoding", oracle.ENCODINGS)
def test_wrong_indices(encoding: str) -> None:
    right = MAX.winners[encoding]
    assert_indices(right, MAX, encoding)
    wrongs = [
        (lambda i: i + 1, "want"), (lambda i: i.astype(np.int32), "dtype"), (lambda i: i[1:], "shape"),
        (lambda i: np.full_like(i, -1), "want"),
    ]  # fmt: skip
    for wrong, words in wrongs:
        got = tuple(map(wrong, right)) if encoding == "coords" else wrong(right)
        with pytest.raises(AssertionError, match=words):
            assert_indices(got, MAX, encoding)
    with pytest.raises(AssertionError, match=r"not an array|no tuple"):
        assert_indices(None, MAX, encoding)
    if encoding == "coords":
        with pytest.raises(AssertionError, match="no tuple of 1"):
            assert_indices((), MAX, encoding)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros_like, "bound"),
        (lambda v: v * np.float32(1 + 1e-5), "bound"),
        (lambda v: np.where(np.isnan(v), np.float32(0), v), "bound"),
        (lambda v: np.where(np.isinf(v), np.finfo(np.float32).max, v), "bound"),
        (lambda v: np.full_like(v, np.nan), "bound"),
        (lambda v: np.full_like(v, np.inf), "bound"),
        (lambda v: v.astype(np.float64), "dtype"),
        (lambda v: v[:0], "shape"),
        (lambda _: None, "not an array"),
    ],
)
def test_wrong_means(wrong, words: str) -> None:
    assert_rounded(MEAN.values, MEAN)
    assert_rounded(np.nextafter(MEAN.values, np.float32(np.inf)), MEAN)
    with pytest.raises(AssertionError, match=words):
        assert_rounded(wrong(MEAN.values), MEAN)


def test_integer_sums_are_exact() -> None:
    answer = oracle.sliding(np.array([2**53, 1, 5, 5]), 2, reduction="sum")
    assert_rounded(np.array([2**53 + 1, 10]), answer)
    with pytest.raises(AssertionError, match="want"):
        assert_rounded(np.array([2**53, 10]), answer)


def test_float16_is_judged_by_a_float32_accumulator() -> None:
    answer = oracle.sliding(np.array([2048.0, 1.0, 1.0], np.float16), 3, reduction="sum")
    assert_rounded(np.array([2050.0], np.float16), answer)
    with pytest.raises(AssertionError, match="bound"):
        assert_rounded(np.array([2048.0], np.float16), answer)  # what a float16 accumulator gives
