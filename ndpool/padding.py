"""The one table of padding modes: every name a user may write, and what it does to a coordinate.

A mode is a map from a position on the padded axis to a coordinate of the array, so that no padded copy is ever made.
The maps use plain operators only, and therefore take a Python int as well as an integer array. Nothing else in the
library may know what a mode is called or how it folds an axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

IGNORED: Final = -1
"""Table cell of a position that takes no part in its window."""

FILL: Final = -2
"""Table cell of a position that is an element of the value ``fill_value``."""

Fold = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Mode:
    """A padding mode.

    Attributes
    ----------
    name : str
        The canonical name.
    fold : callable or None
        ``fold(position, size)`` is the coordinate that `position` stands for on an axis of `size` elements; `None`
        for the modes whose padding is no element of the array.
    cell : int
        What padding is where there is no `fold`: `IGNORED` or `FILL`.
    zero : bool
        True for ``"zeros"``: the value is 0, whatever ``fill_value`` says.
    """

    name: str
    fold: Fold | None = None
    cell: int = IGNORED
    zero: bool = False


def _edge(position: Any, size: int) -> Any:
    return (abs(position) - abs(position - (size - 1)) + (size - 1)) // 2


def _reflect(position: Any, size: int) -> Any:
    # A period of 2n-2 (the edge element once); an axis of one element reflects onto itself.
    return (size - 1) - abs((size - 1) - position % max(2 * size - 2, 1))


def _symmetric(position: Any, size: int) -> Any:
    # A period of 2n (the edge element twice), folded about the half-way point between n-1 and n.
    return ((2 * size - 1) - abs(2 * (position % (2 * size)) - (2 * size - 1))) // 2


def _wrap(position: Any, size: int) -> Any:
    return position % size


MODES: Final = {
    mode.name: mode
    for mode in (
        Mode("ignore"),
        Mode("constant", cell=FILL),
        Mode("zeros", cell=FILL, zero=True),
        Mode("edge", _edge),
        Mode("reflect", _reflect),
        Mode("symmetric", _symmetric),
        Mode("wrap", _wrap),
    )
}

ALIASES: Final = {
    "replicate": "edge",
    "nearest": "edge",
    "mirror": "reflect",
    "circular": "wrap",
}

NAMES: Final = (*MODES, *ALIASES)
"""Every word that ``padding_mode`` takes."""
