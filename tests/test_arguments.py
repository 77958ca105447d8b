"""What the user wrote: every error names the argument, the axis, the value and what is allowed."""

from typing import Any

import numpy as np
import pytest

import ndpool as ndp
from ndpool.padding import ALIASES, NAMES

X = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"kernel_size": 0}, ValueError, "`kernel_size` on axis 0 must be at least 1, got 0"),
        ({"kernel_size": 2.0}, TypeError, "`kernel_size` on axis 0 must be an int, got 2.0 of type float"),
        ({"kernel_size": True}, TypeError, "`kernel_size` on axis 0 must be an int, got True"),
        ({"kernel_size": {0: 2}}, TypeError, "`kernel_size` on axis 0 must be an int"),
        ({"kernel_size": (2, 2, 2)}, ValueError, "`kernel_size` has 3 entries, but the array has 2 axes"),
        ({"kernel_size": (2, 2), "axes": 1}, ValueError, "expected 1 entries, got 2"),
        ({"kernel_size": 7, "axes": 1}, ValueError, "`kernel_size` on axis 1: the window is larger .* covers 7 "),
        ({"stride": (1, -1)}, ValueError, "`stride` on axis 1 must be at least 1, got -1"),
        ({"dilation": 0}, ValueError, "`dilation` on axis 0 must be at least 1, got 0"),
        ({"axes": (0, -2)}, ValueError, r"`axes` names axis 0 twice, in \(0, -2\)"),
        ({"axes": 2}, ValueError, "`axes` has 2, but the array has 2 axes: allowed are -2 to 1"),
        ({"axes": 1, "padding": (1, 2)}, ValueError, r"written \(\(before, after\),\)"),
        ({"padding": "full"}, ValueError, "`padding` must be one of 'valid', 'same', 'same_lower', got 'full'"),
        ({"padding": ((1, 2, 3), 0)}, ValueError, r"`padding` on axis 0 must be .* got \(1, 2, 3\)"),
        ({"padding_mode": "Wrap"}, ValueError, "`padding_mode` on axis 0 is 'Wrap': allowed are 'ignore'"),
        ({"padding_mode": ("wrap", 3)}, TypeError, "`padding_mode` on axis 1 must be a word, got 3"),
        ({"ceil_mode": 1}, TypeError, "`ceil_mode` must be True or False, got 1 of type int"),
        ({"nan_policy": "raise"}, ValueError, "`nan_policy` must be one of 'propagate', 'omit', got 'raise'"),
        ({"return_indices": "rows"}, ValueError, "`return_indices` must be one of 'flat', 'plane'"),
        ({"backend": "gpu"}, ValueError, "`backend` 'gpu' cannot take an array of type ndarray: 'numpy'|'numba'"),
        ({"where": [1, 0]}, TypeError, "`where` must be an array of bool, got dtype int64"),
        ({"where": np.ones((3, 1), dtype=bool)}, ValueError, r"`where` of shape \(3, 1\) does not broadcast"),
    ],
)
def test_errors(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ndp.max_pool(X, **{"kernel_size": 2, **arguments})


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (300, np.uint8, ValueError),
        (-1, np.uint8, ValueError),
        (0.5, np.int32, ValueError),
        (np.nan, np.int32, ValueError),
        (10**400, np.int64, ValueError),
        (10**400, np.float64, ValueError),
        (1e10, np.float16, ValueError),
        ("1", np.float64, TypeError),
        (None, np.float64, TypeError),
        (1j, np.float64, TypeError),
    ],
)
def test_a_fill_value_that_the_dtype_does_not_hold(value: Any, dtype: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="`fill_value` must be representable in the array's dtype"):
        ndp.max_pool(X.astype(dtype), 2, padding=1, padding_mode="constant", fill_value=value)


def test_two_fill_values_at_once() -> None:
    with pytest.raises(ValueError, match="`fill_value` must be 0 where `padding_mode` is 'zeros' on another axis"):
        ndp.max_pool(X, 2, padding=1, padding_mode=("zeros", "constant"), fill_value=3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ndp.lp_pool(X, 0, 2), ValueError, "`p` must be > 0"),
        (lambda: ndp.lp_pool(X, "2", 2), TypeError, "`p` must be a number, got '2' of type str"),
        (lambda: ndp.avg_pool(X, 2, divisor=0), ValueError, "`divisor` must be a finite number other than 0, got 0"),
        (lambda: ndp.max_pool(X.astype(complex), 2), TypeError, "`x` has dtype complex128, which the reduction 'max'"),
        (lambda: ndp.max_pool(np.array(["a", "b"]), 2), TypeError, "`x` has dtype <U1"),
        (lambda: ndp.pool(X, "plan"), TypeError, "`plan` must be a WindowPlan, got 'plan'"),
        (
            lambda: ndp.pool(X, ndp.WindowPlan.sliding((4, 5), 2)),
            ValueError,
            r"`x` has shape \(4, 6\), but the plan's input shape is \(4, 5\)",
        ),
        (
            lambda: ndp.pool(X, ndp.WindowPlan.sliding((4, 6), 2), "sum", return_indices=True),
            ValueError,
            "`return_indices` is for 'max' and 'min', got True with 'sum'",
        ),
        (
            lambda: ndp.convert_indices(
                ndp.max_pool(X, 2, return_indices=True), ndp.WindowPlan.sliding((4, 6), 2), "flat", "plane"
            ),
            TypeError,
            "`indices` must be an array, or for 'coords' a tuple of arrays, got Pooled",
        ),
        (
            lambda: ndp.WindowPlan.intervals((4, 6), {1: [(2, 7)]}),
            ValueError,
            r"`intervals` on axis 1 has \(2, 7\): allowed is 0 <= start <= stop <= 6",
        ),
    ],
)
def test_other_calls(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_mode(name: str) -> None:
    got = ndp.max_pool(X, 3, stride=1, padding=1, padding_mode=name)
    np.testing.assert_array_equal(got, ndp.max_pool(X, 3, stride=1, padding=1, padding_mode=ALIASES.get(name, name)))


def test_a_plan_is_small_at_any_size() -> None:
    plan = ndp.WindowPlan.sliding((10**9,), 10**9 - 3, stride=1, padding=1)
    assert plan.output_shape == (6,)
    assert len(plan.describe()) < 200
    assert hash(plan) == hash(ndp.WindowPlan.sliding((10**9,), 10**9 - 3, stride=1, padding=1))
    assert plan.windows[0].covered.tolist() == [10**9 - 4, *[10**9 - 3] * 4, 10**9 - 4]
