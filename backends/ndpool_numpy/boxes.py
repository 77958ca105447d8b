"""Reads what a tile needs, and reduces all its axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool.padding import FILL

from .algebra import Algebra, State
from .costs import cost
from .passes import reduce_axis
from .scratch import Scratch
from .tiles import Span, Tile

Array = NDArray[Any]
# As many tables are kept.
_KEPT = 4

Source = Callable[[tuple[Span, ...]], State]


@dataclass
class Call:
    """What one call of the engine has beside its plan; the rest is kept for the next call.

    Attributes
    ----------
    x : array
        In memory order.
    scratch : Scratch
        Memory for one tile after another.
    box : array
        What was read last.
    careful : bool
        Whether an earlier tile had NaNs, or zeros of both signs.
    kept : dict
        Tables of a few tiles: tiles that differ in batch axes alone share them.
    """

    x: Array
    scratch: Scratch = field(default_factory=Scratch)
    box: Any = None
    careful: bool = False
    kept: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, and keep it for a while."""
        if key not in self.kept:
            if len(self.kept) >= _KEPT:
                self.kept.clear()
            self.kept[key] = make()
        return self.kept[key]


def anywhere(call: Call, test: Any, *arguments: Any) -> bool:
    """Return whether a ufunc that tells true from false is true of any element."""
    call.scratch.reset("test")
    there = test(*arguments, out=call.scratch.take("test", arguments[0].shape, bool))
    return bool(there.any())


def read(call: Call, spans: tuple[Span, ...], dtype: Any, ignored: Any, fill: Any) -> Array:
    """Return the elements at the local positions of a tile.

    Parameters
    ----------
    call : Call
        The array, and the scratch whose region ``"source"`` is overwritten.
    spans : tuple of Span
        For each axis of the array.
    dtype : dtype
        Of the result.
    ignored, fill : scalar
        What stands at positions that take no part, and at those of fill elements. Of two that an element has, on two
        axes, either may stand there: a window is told by its cells in which nothing takes part.

    Returns
    -------
    array
        A view of the array where that serves; not to be written.
    """
    x: Any = call.x
    scratch = call.scratch
    if x.dtype == dtype and all(span.direct for span in spans):
        view: Array = x[(..., *(span.reads[0][0] for span in spans))]
        if view.flags.aligned and (view.ndim == 0 or view.strides[-1] == view.itemsize or view.shape[-1] == 1):
            return view
    scratch.reset("source")
    box: Any = scratch.take("source", tuple(span.length for span in spans), dtype)
    if all(span.copies is not None for span in spans):
        # What borders repeat is in the box itself: one large copy, and small ones axis by axis.
        here, there = (tuple(span.reads[0][part] for span in spans) for part in (0, 1))
        np.copyto(box[(..., *there)], x[(..., *here)])
        for axis, span in enumerate(spans):
            for again, at in span.copies or ():
                box[(slice(None),) * axis + (at,)] = box[(slice(None),) * axis + (again,)]
    else:
        for reads in itertools.product(*(span.reads for span in spans)):
            here, there = zip(*reads, strict=True)
            np.copyto(box[(..., *there)], x[(..., *here)])
    for axis, span in enumerate(spans):
        for cell, at in span.fills:
            box[(slice(None),) * axis + (at,)] = fill if cell == FILL else ignored
    result: Array = box
    return result


def order_of(algebra: Algebra, spans: tuple[Span, ...], axes: Iterable[int], itemsize: int) -> list[int]:
    """Return in which order to reduce the axes of a tile: soon what shrinks it much for little work."""

    def gain(axis: int) -> float:
        span = spans[axis]
        rest = max(math.prod(s.length for a, s in enumerate(spans) if a != axis), 1)
        work = cost(algebra, span, rest, axis == len(spans) - 1, itemsize) / (rest * span.length)
        return (span.count / span.length - 1) / (work + 1e-9)

    return sorted(axes, key=gain)


def reduce_tile(
    algebra: Algebra, tile: Tile, source: Source, axes: Sequence[int], weights: Mapping[int, int], out: State | None
) -> State:
    """Reduce all pooled axes of a tile.

    Parameters
    ----------
    algebra : Algebra
        What to do.
    tile : Tile
        The tile.
    source : callable
        Returns the state of the elements that a chunk of the tile reads.
    axes : sequence of int
        The pooled axes in memory order, in the order in which to reduce them.
    weights : mapping
        For each of them, how far one cell moves a code.
    out : State or None
        Where the result may be written.

    Returns
    -------
    State
        `out`, or a state that the next source does not overwrite.
    """
    chunks = list(tile.chunks())
    parts: list[tuple[int, State]] = []
    for spans in chunks:
        state = read_state = source(spans)
        region = "odd"
        for axis in axes:
            target = out if axis == axes[-1] and len(chunks) == 1 else None
            before, other = state, "even" if region == "odd" else "odd"
            state = reduce_axis(algebra, before, axis, spans[axis], weights[axis], other, target)
            region = region if state is before else other
        if len(chunks) == 1:
            return algebra.owned(state, 0) if state is read_state else state
        code = sum(spans[axis].cell * weights[axis] for axis in axes)
        # Parts of windows are put together by a tree as well: two of the same size become one.
        level, owned = 0, algebra.owned(state, code)
        while parts and parts[-1][0] == level:
            owned = algebra.merge(parts.pop()[1], owned)
            level += 1
        parts.append((level, owned))
    result = parts.pop()[1]
    while parts:
        result = algebra.merge(parts.pop()[1], result)
    return result
