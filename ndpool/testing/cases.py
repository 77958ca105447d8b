"""The shared table of cases: small inputs from public bug reports of other libraries, with the right answers.

`load()` gives the cases, `run` makes the public call that a case is about, and `check` raises `AssertionError` where
the result is not the right one. Nothing here imports an array library but NumPy, or anything of ndpool: the module
under test is an argument.
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BUILT = {"max_pool": "max", "min_pool": "min", "avg_pool": "mean", "sum_pool": "sum", "lp_pool": "lp"}


@dataclass(frozen=True)
class Later:
    """A kind of case that no public function serves yet."""

    function: str  # once ndpool has it, the row must go
    reason: str


NOT_BUILT = {
    "adaptive_avg_pool": Later("adaptive_avg_pool", "adaptive windows have no public function yet"),
    "adaptive_max_pool": Later("adaptive_max_pool", "adaptive windows have no public function yet"),
    "max_unpool": Later("max_unpool", "unpooling is not written yet"),
    "correlate": Later("correlate", "convolution is not written yet"),
    "max_pool_grad": Later("pool_vjp", "gradients are not written yet"),
    "min_pool_grad": Later("pool_vjp", "gradients are not written yet"),
    "lp_pool_grad": Later("pool_vjp", "gradients are not written yet"),
    "adaptive_avg_pool_grad": Later("pool_vjp", "gradients are not written yet"),
    "max_unpool_grad": Later("max_unpool", "unpooling is not written yet, nor its gradient"),
}

# How far a value may be off where rounding is allowed and the case itself doesn't say.
RTOL = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    id: str
    about: str
    op: str
    input: dict[str, Any]
    kwargs: dict[str, Any]
    expect: dict[str, Any]
    rtol: float | None = None
    sources: tuple[str, ...] = ()
    note: str = ""
    layout: str = ""  # words: memory orders that must not matter
    chunks: list[list[int]] | None = None
    samples: list[list[int]] | None = None
    weights: dict[str, Any] | None = None
    channels: bool = False
    index_values: Any = None
    grad_output: Any = None

    @property
    def raises(self) -> str | None:
        """The error that is the right answer."""
        return self.expect.get("raises")

    @property
    def or_raises(self) -> str | None:
        """An error that is a right answer beside the values."""
        return self.expect.get("or_raises")

    def array(self) -> Array:
        """The input, as a new NumPy array."""
        return build(self.input)

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments as a user writes them: tuples where the file has lists."""
        return {name: _tuples(value) for name, value in self.kwargs.items()}


@functools.cache
def load() -> tuple[Case, ...]:
    """Every case, in the order of the file."""
    text = resources.files(__package__).joinpath("cases.json").read_text("utf-8")
    return tuple(Case(**{**row, "sources": tuple(row["sources"])}) for row in json.loads(text))


def built() -> tuple[Case, ...]:
    """The cases of public functions that are there."""
    return tuple(case for case in load() if case.op in BUILT)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _numbers(value: Any) -> Any:
    """Nested lists with "nan", "inf" and "-0.0" as floats; ints stay ints, so that 2**53 + 1 does."""
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value


def build(spec: dict[str, Any]) -> Array:
    """An array from its shape, dtype and either its values or a rule to fill it."""
    shape, dtype = tuple(spec["shape"]), np.dtype(spec["dtype"])
    if "values" in spec:
        return np.array(_numbers(spec["values"]), dtype).reshape(shape)
    fill = spec["fill"]
    if fill["rule"] == "const":
        return np.full(shape, _numbers(fill["value"]), dtype)
    x = fill["a"] * np.arange(np.prod(shape, dtype=np.int64)) + fill["b"]
    if fill["rule"] == "affine_mod":  # x.flat[i] = ((a*i + b) mod m) - c
        x = x % fill["m"] - fill["c"]
    elif fill["rule"] != "ramp":
        raise ValueError(f"unknown fill rule {fill['rule']!r}")
    return np.asarray(x.reshape(shape), dtype)


def run(case: Case, ndp: ModuleType, x: Any, **options: Any) -> Any:
    """Make the call that `case` is about, on an array of any library; `options` are added, as `backend=` is."""
    if case.op not in BUILT:
        raise NotImplementedError(f"{case.id}: {NOT_BUILT[case.op].reason}")
    arguments = case.arguments()
    first = (arguments.pop("p"),) if case.op == "lp_pool" else ()
    return getattr(ndp, case.op)(x, *first, arguments.pop("kernel_size"), **arguments, **options)


def expected_dtype(case: Case, *, default_float: str = "float64", unsigned_sum: str = "uint64") -> str:
    """The dtype of the result. The file has NumPy's; a namespace with other defaults says so."""
    source = np.dtype(case.input["dtype"])
    if source.kind in "biu" and case.op in ("avg_pool", "lp_pool"):
        return default_float
    if source.kind == "u" and case.op == "sum_pool":
        return unsigned_sum
    return str(case.expect.get("dtype", source))


def check(case: Case, result: Any, to_numpy: Callable[[Any], Array] = np.asarray, **defaults: str) -> None:
    """Compare a result with the right answer; `defaults` go to `expected_dtype`."""
    encoding = case.kwargs.get("return_indices", False)
    values, indices = (result.values, result.indices) if encoding else (result, None)
    got, dtype, expect = to_numpy(values), expected_dtype(case, **defaults), case.expect
    words = f"{case.id}: {case.about}" + (f" (must not give {expect['must_not']})" if "must_not" in expect else "")
    _require(got.shape == tuple(expect["shape"]), f"{words}: shape {got.shape}, not {tuple(expect['shape'])}")
    _require(got.dtype == dtype, f"{words}: dtype {got.dtype}, not {dtype}")
    found = _stacked(indices, to_numpy) if encoding else None
    _require(found is None or found.dtype == np.int64, f"{words}: an index dtype that is not int64")

    if "samples" in expect:
        for sample in expect["samples"]:
            at = tuple(sample["at"])
            _same(got[at], np.array(_numbers(sample["value"]), dtype), 0.0, f"{words}: value at {at}")
            if found is not None:
                _same(found[at], np.array(sample["index"]), 0.0, f"{words}: index at {at}")
        return
    exact = case.op in ("max_pool", "min_pool") or got.dtype.kind in "biu"
    rtol = 0.0 if exact else RTOL[dtype] if case.rtol is None else case.rtol
    _same(got, np.array(_numbers(expect["values"]), dtype).reshape(got.shape), rtol, f"{words}: values")
    if found is not None and "indices" in expect:
        _same(found, np.array(expect["indices"], np.int64).reshape(found.shape), 0.0, f"{words}: indices")


def _require(true: bool, words: str) -> None:
    """`assert` that `python -O` leaves alone."""
    if not true:
        raise AssertionError(words)


def _stacked(indices: Any, to_numpy: Callable[[Any], Array]) -> Array:
    """Indices as the file has them: coordinates along a last axis, in the order of `axes`."""
    if isinstance(indices, tuple):
        return np.stack([to_numpy(i) for i in indices], axis=-1)
    return to_numpy(indices)


def _same(got: Array, want: Array, rtol: float, words: str) -> None:
    """Equal within `rtol`, NaN where NaN is wanted, and zeros of the same sign where nothing may be rounded."""
    good = (got == want) | ((got != got) & (want != want))
    if rtol:
        with np.errstate(invalid="ignore"):
            good = good | (np.abs(got - want) <= rtol * np.abs(want))
    elif want.dtype.kind == "f":
        good = good & ((np.signbit(got) == np.signbit(want)) | (want != want))
    _require(bool(np.all(good)), f"{words}\ngot  {got.tolist()}\nwant {want.tolist()}")


def verify(
    case: Case,
    ndp: ModuleType,
    x: Any,
    to_numpy: Callable[[Any], Array] = np.asarray,
    *,
    defaults: dict[str, str] | None = None,
    **options: Any,
) -> None:
    """`run` and `check`, with errors that are answers: `raises` must be raised, `or_raises` may be."""
    allowed = case.raises or case.or_raises
    try:
        result = run(case, ndp, x, **options)
    except (ValueError, TypeError) as error:
        if type(error).__name__ != allowed:
            raise
        return
    _require(case.raises is None, f"{case.id}: {case.about}: no {case.raises} was raised ({case.expect.get('why')})")
    check(case, result, to_numpy, **(defaults or {}))
