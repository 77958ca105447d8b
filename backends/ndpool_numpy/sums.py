"""Sum, mean and Lp: elements are added by trees, fill elements are counted, and nothing is ever subtracted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndpool.plan import WindowPlan
from ndpool.reductions import Reduction, dtypes

from .algebra import Plain, Scaled, State
from .boxes import Call, anywhere, order_of, read, reduce_tile
from .positions import weights
from .tiles import Borders, Span, Tile

Array = NDArray[Any]


def _accumulator(dtype: np.dtype[Any], plan: WindowPlan, reduction: Reduction) -> np.dtype[Any]:
    """Return the dtype to add in: for small integers, of as few bytes as no window can overflow."""
    wide: np.dtype[Any] = np.dtype(dtypes(np, dtype, reduction.rule.result)[0])
    if reduction.name == "lp" or dtype.kind not in "biu":
        return wide
    largest = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1
    if largest * math.prod(plan.kernel_shape) < 2**31:
        return np.dtype(np.uint32 if dtype.kind == "u" else np.int32)
    return wide


@dataclass
class _Cells:
    """What the windows of a tile hold: numbers, or arrays that broadcast against the tile.

    Attributes
    ----------
    taking, covered, filled : int or array of int64
        How many cells take part, are elements of the array, and fill elements.
    fillings : array or None
        What the fill elements add.
    divisor, nothing
        What a mean is divided by, and where the result is NaN.
    """

    taking: Any
    covered: Any
    filled: Any
    fillings: Array | None
    divisor: Any
    nothing: Array | None


class Totals:
    """Reduces tiles to their sums, means or norms.

    Parameters
    ----------
    plan : WindowPlan
        The windows.
    order : tuple of int
        The axes of the user's array in memory order.
    reduction : Reduction
        What to do.
    dtype : dtype
        Of the array.
    """

    def __init__(self, plan: WindowPlan, order: tuple[int, ...], reduction: Reduction, dtype: np.dtype[Any]) -> None:
        self.reduction = reduction
        native = dtype.newbyteorder("=")
        self.dtype = _accumulator(native, plan, reduction)
        self.result = np.dtype(dtypes(np, native, reduction.rule.result)[1])
        self.borders = Borders(fill=True, nearest=False)
        self.omit = reduction.omits_nan and native.kind in "fc"
        self.fill = self.dtype.type(native.type(reduction.fill_value))
        self.lp, self.p = reduction.name == "lp", reduction.p or 1
        self.weights = {order.index(axis): weight for axis, weight in weights(plan).items()}
        self.axes: list[int] | None = None

    # ---- what is added -----------------------------------------------------------------------------------------------

    def _elements(self, call: Call, spans: tuple[Span, ...]) -> Array:
        return read(call, spans, self.dtype, 0, 0)

    def _powers(self, call: Call, elements: Array) -> Array:
        """Return ``abs(x)**p``, in the scratch."""
        powers = elements
        if np.may_share_memory(elements, call.x):
            call.scratch.reset("source")
            powers = call.scratch.take("source", elements.shape, self.dtype)
        if self.p == 2:
            return np.multiply(elements, elements, out=powers)
        np.abs(elements, out=powers)
        return powers if self.p == 1 else np.power(powers, self.p, out=powers)

    def _numbers(self, call: Call, spans: tuple[Span, ...]) -> Array:
        """Return the elements with 0 in the place of NaN, outside the scratch."""
        elements = self._elements(call, spans)
        return np.where(np.isnan(elements), 0, elements) if self.omit else elements.copy()

    def _run(self, algebra: Any, tile: Tile, source: Any, out: State | None = None) -> State:
        if self.axes is None:
            self.axes = order_of(algebra, next(tile.chunks()), self.weights, self.dtype.itemsize)
        return reduce_tile(algebra, tile, source, self.axes, self.weights, out)

    def _totals(self, call: Call, tile: Tile, out: Array) -> tuple[Array, Array | None]:
        """Return the sums of a tile, and how many numbers they are of where there are NaNs to omit."""

        def source(spans: tuple[Span, ...]) -> State:
            elements = self._elements(call, spans)
            return (elements if not self.lp else self._powers(call, elements),)

        (total,) = self._run(
            Plain(call.scratch, np.add, self.dtype), tile, source, (out,) if out.dtype == self.dtype else None
        )
        if not (self.omit and anywhere(call, np.isnan, total)):
            return total, None

        def numbers(spans: tuple[Span, ...]) -> State:
            elements = self._numbers(call, spans)
            return (elements if not self.lp else self._powers(call, elements),)

        def count(spans: tuple[Span, ...]) -> State:
            inside = read(call, spans, self.dtype, math.nan, math.nan)
            return ((~np.isnan(inside)).astype(np.int64),)

        total = self._run(Plain(call.scratch, np.add, self.dtype), tile, numbers)[0].copy()
        return total, self._run(Plain(call.scratch, np.add, np.int64), tile, count)[0].copy()

    # ---- what becomes of the sums ------------------------------------------------------------------------------------

    def write(self, call: Call, tile: Tile, out: Array, _at: None = None) -> None:
        """Write the results of a tile; sums have no positions."""
        total, numbers = self._totals(call, tile, out)
        cells: _Cells = call.once(tuple(tile.pieces[axis] for axis in self.weights), lambda: self._cells(tile))
        if self.p != 1 and self._unsafe(call, tile, total, cells):
            total = self._scaled(call, tile, cells)
        else:
            if cells.fillings is not None:
                np.add(total, cells.fillings, out=total)
            if self.p != 1:
                total = np.sqrt(total, out=total) if self.p == 2 else _root(total, self.p)
        divisor, nothing = cells.divisor, cells.nothing
        if numbers is not None or (self.omit and np.isnan(self.fill)):
            number = cells.covered if numbers is None else numbers
            divisor, nothing = self._judge(number if np.isnan(self.fill) else number + cells.filled, cells.taking)
        if self.reduction.name == "mean":
            _divide(total, divisor, out)
        elif total is not out:
            np.copyto(out, total, casting="same_kind")
        if nothing is not None:
            np.copyto(out, math.nan, where=nothing)

    def _cells(self, tile: Tile) -> _Cells:
        """Return what the windows of a tile hold."""
        taking, covered = _product(tile, "taking"), _product(tile, "covered")
        filled = taking - covered
        counts = self.fill != 0 and not (self.omit and np.isnan(self.fill)) and np.any(filled)
        return _Cells(taking, covered, filled, self._fillings(filled) if counts else None, *self._judge(taking, taking))

    def _filling(self) -> Any:
        return self.fill if not self.lp else np.power(np.abs(self.fill), self.p)

    def _fillings(self, count: Any) -> Array:
        """Return what `count` fill elements add: of a complex one part by part, so that an infinite one stays apart."""
        result = np.zeros(np.shape(count), dtype=self.dtype)
        there, count = count > 0, np.asarray(count).astype(result.real.dtype)
        if self.dtype.kind != "c":
            np.multiply(self._filling(), count, out=result, where=there, casting="unsafe")
            return result
        for part, filling in ((result.real, self.fill.real), (result.imag, self.fill.imag)):
            np.multiply(filling, count, out=part, where=there, casting="unsafe")
        return result

    def _judge(self, number: Any, taking: Any) -> tuple[Any, Array | None]:
        """Return what to divide by, and where the result is NaN: where `number` is 0 although elements take part."""
        none = number == 0
        if self.reduction.name != "mean":
            nothing = none & (taking > 0)
            return None, np.asarray(nothing) if np.any(nothing) else None
        divisor: Any = self.reduction.divisor
        if divisor is None:
            real = self.dtype.type(0).real.dtype
            divisor = np.where(none, 1, number).astype(real if real.kind == "f" else np.float64)
        return divisor, np.asarray(none) if np.any(none) else None

    # ---- norms out of the range of the dtype -------------------------------------------------------------------------

    def _unsafe(self, call: Call, tile: Tile, total: Array, cells: _Cells) -> bool:
        """Return whether a power left the range of the dtype: upwards, or downwards where that is not negligible."""
        tiny = np.finfo(self.dtype).tiny * 2.0**30
        fill = self._filling() if cells.fillings is not None else 1
        if anywhere(call, np.isinf, total) or np.isinf(fill) or fill < tiny:
            return True
        if not anywhere(call, np.less, total, tiny):
            return False
        for spans in tile.chunks():
            elements = self._numbers(call, spans)
            if ((elements != 0) & (self._powers(call, elements.copy()) < tiny)).any():
                return True
        return False

    def _scaled(self, call: Call, tile: Tile, cells: _Cells) -> Array:
        algebra = Scaled(call.scratch, self.p, self.dtype)

        def source(spans: tuple[Span, ...]) -> State:
            sizes = np.abs(self._numbers(call, spans))
            return sizes, (sizes != 0).astype(self.dtype)

        state = algebra.owned(self._run(algebra, tile, source), 0)
        if cells.fillings is not None:
            size = np.where(cells.filled > 0, np.abs(self.fill), self.dtype.type(0))
            count = np.where(size == 0, 0, cells.filled).astype(self.dtype)
            state = algebra.merge(state, (np.broadcast_to(size, tile.shape), np.broadcast_to(count, tile.shape)))
        result: Array = state[0] * state[1] ** self.dtype.type(1 / self.p)
        return result


def _divide(total: Array, divisor: Any, out: Array) -> None:
    """Divide: complex numbers part by part, so that an infinite part doesn't reach the other."""
    if total.dtype.kind == "c":
        np.divide(total.real, divisor, out=out.real)
        np.divide(total.imag, divisor, out=out.imag)
    else:
        np.divide(total, divisor, out=out, casting="same_kind")


def _root(total: Array, p: float) -> Array:
    """Return ``total ** (1 / p)``; the rounding of ``1 / p`` alone would cost several digits of a large total."""
    root = np.power(total, 1 / p)
    error = np.power(root, p) / total - 1
    return np.where(np.isfinite(error), root - root * (error / p), root)


def _product(tile: Tile, attribute: str) -> Any:
    """Return a number of cells of each window, as a product over the axes that broadcasts against the tile."""
    product: Any = 1
    for axis, piece in enumerate(tile.pieces):
        number = getattr(piece, attribute)
        if not isinstance(number, int):
            number = number.reshape(tuple(-1 if a == axis else 1 for a in range(len(tile.pieces))))
        product = product * number
    return product
