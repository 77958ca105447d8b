"""Max and min: the values by one ufunc, and where that is not enough, exactly and with the place of each winner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool.plan import Ints, WindowPlan
from ndpool.reductions import Reduction, identity

from .algebra import Coded, Plain, State
from .boxes import Call, anywhere, order_of, read, reduce_tile
from .positions import Decoder, weights
from .tiles import Borders, Span, Tile

Array = NDArray[Any]

_UFUNCS = {
    ("max", False): np.maximum,
    ("min", False): np.minimum,
    ("max", True): np.fmax,
    ("min", True): np.fmin,
}


class Extremum:
    """Reduces tiles to their largest or smallest elements.

    Parameters
    ----------
    plan : WindowPlan
        The windows.
    order : tuple of int
        The axes of the user's array in memory order.
    reduction : Reduction
        ``"max"``, ``"min"``, or ``"lp"`` of infinite p, the largest magnitude.
    dtype : dtype
        Of the user's array; one of booleans is given as bytes.
    encoding : str or None
        That of positions.
    """

    def __init__(
        self,
        plan: WindowPlan,
        order: tuple[int, ...],
        reduction: Reduction,
        dtype: np.dtype[Any],
        encoding: str | None,
    ) -> None:
        native = dtype.newbyteorder("=")
        self.magnitude = reduction.name == "lp"
        name = "max" if self.magnitude else reduction.name
        self.floating = self.magnitude or native.kind == "f"
        self.result = np.dtype(np.float64) if self.magnitude and native.kind in "biu" else native
        self.dtype = np.dtype(np.uint8) if self.result.kind == "b" else self.result
        if self.result == np.float16:
            self.dtype = np.dtype(
                np.float32
            )  # NumPy compares halves one at a time; as float32 they are exact, and fast
        self.identity = 0 if self.magnitude else identity(np, native, name)
        self.omit = reduction.omits_nan and self.floating
        self.ufunc = _UFUNCS[name, self.omit]
        fill = self.dtype.type(native.type(reduction.fill_value))
        self.fill = np.abs(fill) if self.magnitude else fill
        self.borders = Borders(fill=self.magnitude or not self.floating or self.fill != self.identity, nearest=True)
        self.weights = {order.index(axis): weight for axis, weight in weights(plan).items()}
        self.cells = math.prod(plan.kernel_shape)
        self.ordered = sorted(self.weights, key=lambda axis: order[axis], reverse=True)
        self.axes: list[int] | None = None
        self.decoder = Decoder(plan, order, self.borders, encoding or "plane")

    def write(self, call: Call, tile: Tile, out: Array, at: Ints | None) -> None:
        """Write the values of a tile, and the positions of its winners where `at` is for them."""
        if at is None:
            state = self._plain(call, tile, out)
            if self._doubtful(call, tile, state[0], nan=False):
                state = self._coded(call, tile, True, out)
        else:
            state = self._coded(call, tile, call.careful, out)
            if not call.careful and self._doubtful(call, tile, state[0], nan=True):
                call.careful = True
                state = self._coded(call, tile, True, out)
            self.decoder(call, state[1], tile, at)
        if state[0] is not out:
            np.copyto(out, state[0])
        self._nothing(tile, out, at)

    def _source(self, call: Call, spans: tuple[Span, ...]) -> Array:
        box = read(call, spans, self.dtype, self.identity, self.fill)
        if self.magnitude and np.may_share_memory(box, call.x):
            call.scratch.reset("source")
            box = np.abs(box, out=call.scratch.take("source", box.shape, self.dtype))
        elif self.magnitude:
            np.abs(box, out=box)
        call.box = box
        return box

    def _plain(self, call: Call, tile: Tile, out: Array) -> State:
        algebra = Plain(call.scratch, self.ufunc, self.dtype)
        if self.axes is None:
            self.axes = order_of(algebra, next(tile.chunks()), self.weights, self.dtype.itemsize)
        target = (out,) if out.dtype == self.dtype else None
        return reduce_tile(algebra, tile, lambda spans: (self._source(call, spans),), self.axes, self.weights, target)

    def _coded(self, call: Call, tile: Tile, careful: bool, out: Array) -> State:
        algebra = Coded(
            call.scratch,
            self.ufunc,
            self.dtype,
            self.cells,
            omit=self.omit,
            nan=careful,
            zeros=careful and self.floating,
        )
        target = None
        if out.dtype == self.dtype:
            call.scratch.reset("code")
            target = (out, call.scratch.take("code", out.shape, algebra.code))
        return reduce_tile(
            algebra, tile, lambda spans: (self._source(call, spans), None), self.ordered, self.weights, target
        )

    def _doubtful(self, call: Call, tile: Tile, values: Array, nan: bool) -> bool:
        """Return whether the fast way may have gone wrong: on a NaN, or on zeros of both signs."""
        if not self.floating or self.magnitude:
            return False
        if nan and anywhere(call, np.isnan, values):
            return True
        if not anywhere(call, np.equal, values, 0):
            return False
        word = np.dtype(f"i{self.dtype.itemsize}")
        chunks = list(tile.chunks())
        boxes = [call.box] if len(chunks) == 1 else (self._source(call, spans) for spans in chunks)
        return any(anywhere(call, np.equal, box.view(word), np.iinfo(word).min) for box in boxes)

    def _nothing(self, tile: Tile, out: Array, at: Ints | None) -> None:
        """Give windows in which no element takes part their answer."""
        for axis, piece in enumerate(tile.pieces):
            if piece.empty is not None:
                index = (slice(None),) * axis + (piece.empty,)
                out[index] = self.identity
                if at is not None:
                    at[index] = -1
