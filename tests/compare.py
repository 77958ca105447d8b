"""Comparison of a result with the oracle's answer. Everything in here asserts: nonsense must not pass."""

from dataclasses import replace
from typing import Any

import numpy as np

from ndpool.testing.oracle import Answer


def in_namespace(answer: Answer, problem: Any, defaults: dict[str, str]) -> Answer:
    """The answer in the dtype that another namespace than NumPy's gives sums and means of integers."""
    dtype, kind = answer.values.dtype, problem.x.dtype.kind
    if kind in "biu" and problem.reduction in ("mean", "lp"):
        dtype = np.dtype(defaults.get("default_float", dtype))
    elif kind == "u" and problem.reduction == "sum":
        dtype = np.dtype(defaults.get("unsigned_sum", dtype))
    return replace(answer, values=answer.values.astype(dtype))


def assert_same(got: np.ndarray, want: np.ndarray, words: str = "") -> None:
    """The same shape, dtype and bits; any NaN is as good as another."""
    assert isinstance(got, np.ndarray), f"{words}: {type(got)} is not an array"
    assert got.shape == want.shape, f"{words}: shape {got.shape}, not {want.shape}"
    assert got.dtype == want.dtype, f"{words}: dtype {got.dtype}, not {want.dtype}"
    good = (got == want) | ((got != got) & (want != want))
    if want.dtype.kind == "f":
        good &= (np.signbit(got) == np.signbit(want)) | (want != want)
    assert np.all(good), f"{words}\ngot  {got.tolist()}\nwant {want.tolist()}"


def assert_indices(got: Any, answer: Answer, encoding: str, words: str = "") -> None:
    """The winners' positions in one encoding."""
    assert answer.winners is not None
    want = answer.winners[encoding]
    if encoding != "coords":
        got, want = (got,), (want,)
    assert isinstance(got, tuple), f"{words}: {encoding} is no tuple of {len(want)}"
    assert len(got) == len(want), f"{words}: {encoding} is no tuple of {len(want)}"
    for one, right in zip(got, want, strict=True):
        assert_same(one, right, f"{words}: {encoding}")


def assert_rounded(got: np.ndarray, answer: Answer, words: str = "") -> None:
    """Within `4 eps log2(terms)` of the magnitudes that were summed, with the accumulator's eps."""
    if answer.exact is None:
        assert_same(got, answer.values, words)
        return
    assert answer.scale is not None
    assert answer.terms is not None
    assert isinstance(got, np.ndarray), f"{words}: {type(got)} is not an array"
    assert got.shape == answer.values.shape, f"{words}: shape {got.shape}, not {answer.values.shape}"
    assert got.dtype == answer.values.dtype, f"{words}: dtype {got.dtype}, not {answer.values.dtype}"
    real = np.empty(0, got.dtype).real.dtype
    accumulator = np.finfo(np.promote_types(real, np.float32))
    bound = 4 * accumulator.eps * np.log2(np.maximum(answer.terms, 2)) * answer.scale
    bound += 4 * float(accumulator.smallest_subnormal)
    good = (answer.scale > accumulator.max) | (np.isnan(got) & np.isnan(answer.exact))  # the sum itself may overflow
    parts = [(got.real, answer.exact.real)]
    if got.dtype.kind == "c":
        parts.append((got.imag, answer.exact.imag))
    inside = np.ones(got.shape, bool)
    with np.errstate(all="ignore"):
        for part, exact in parts:
            # Both ends go through the result's own rounding, so that its last bit (and overflow) is judged fairly.
            inside &= ((exact - bound).astype(real) <= part) & (part <= (exact + bound).astype(real))
    assert np.all(good | inside), (
        f"{words}\ngot   {got.tolist()}\nexact {answer.exact.tolist()}\nbound {bound.tolist()}"
    )
