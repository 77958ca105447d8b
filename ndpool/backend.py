"""What a backend is: engines that implement up to three primitives, and a record of what each can do.

A backend is a package found through the entry-point group ``ndpool.backends``; its entry point is named after the root
module of the arrays that it takes, and gives a `Backend`. What an engine leaves out, the generic engine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .plan import WindowPlan
from .reductions import RULES, Reduction


class Reduce(Protocol):
    """The primitive ``reduce``: the values of every window, and the positions of the winners.

    Parameters
    ----------
    x : array
        Of the shape ``plan.input_shape``, of a dtype and a reduction that the engine's record allows; never written.
    plan : WindowPlan
        What each window covers.
    reduction : Reduction
        What to do with it.
    want_positions : str or None
        One of the encodings that the engine's record names; `None` for no positions.
    where : array of bool or None
        Of the shape of `x` (or broadcast to it); elements outside take no part. Given only to an engine that takes it.

    Returns
    -------
    values, positions
        Arrays of the shape ``plan.output_shape``; `positions` is of int64, or `None`.
    """

    def __call__(
        self, x: Any, plan: WindowPlan, reduction: Reduction, want_positions: str | None, where: Any = None
    ) -> tuple[Any, Any]:
        """Return the values and the positions."""
        ...


class Scatter(Protocol):
    """The primitive ``scatter``, the adjoints of ``reduce``: by positions, or by windows; the same bits in every run.

    Parameters
    ----------
    values : array
        One entry for each window; never written.
    plan : WindowPlan
        What each window covers; by positions, only ``plan.input_shape`` counts.
    positions : array of int64 or None
        Of the shape of `values`: where each value goes, as a ``"flat"`` index, inside ``plan.input_shape``; -1 for
        nowhere. `None`: to every element of its window, as often as that is there.
    overlap : {"sum", "last", "max", "error"}
        What becomes of values that go to one position: their sum, the last in C order, the largest (a NaN wins), or an
        error. By windows, values are summed.

    Returns
    -------
    array
        Of the shape ``plan.input_shape`` and the dtype of `values`, zero where nothing went.
    """

    def __call__(self, values: Any, plan: WindowPlan, positions: Any = None, overlap: str = "sum") -> Any:
        """Return the array."""
        ...


def _any_dtype(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do, declared once: dispatch, tests and docs read this record.

    Attributes
    ----------
    how : str
        How the engine works, in a few words.
    reductions : frozenset of str
        The reductions that its ``reduce`` takes.
    positions : tuple of str
        The encodings in which it tells positions; the others are derived.
    where : bool
        Whether it takes a mask.
    omit : bool
        Whether it takes ``nan_policy="omit"``.
    takes_dtype : callable
        Whether it takes a dtype.
    """

    how: str
    reductions: frozenset[str] = frozenset(RULES)
    positions: tuple[str, ...] = ("flat",)
    where: bool = False
    omit: bool = True
    takes_dtype: Callable[[Any], bool] = _any_dtype


@dataclass(frozen=True)
class Engine:
    """A named implementation of the primitives."""

    name: str
    capabilities: Capabilities
    reduce: Reduce
    scatter: Scatter | None = None

    def takes(self, dtype: Any, reduction: Reduction, masked: bool) -> bool:
        """Return whether this engine's record allows a call."""
        record = self.capabilities
        return (
            reduction.name in record.reductions
            and (record.where or not masked)
            and (record.omit or not reduction.omits_nan)
            and record.takes_dtype(dtype)
        )


def _as_it_is(x: Any) -> tuple[Any, Any]:
    return x, None


@dataclass(frozen=True)
class Backend:
    """The engines for the arrays of one library.

    Attributes
    ----------
    name : str
        The root module of the arrays' type.
    engines : tuple of Engine
        In the order of preference.
    unpack : callable
        Turns what the user gave into an array of this library and a mask of elements that take part, or `None`.
    """

    name: str
    engines: tuple[Engine, ...] = field(default=())
    unpack: Callable[[Any], tuple[Any, Any]] = _as_it_is
