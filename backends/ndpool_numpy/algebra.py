"""What is carried for a block of cells, and how two blocks that follow one another become one.

A *state* is a tuple of arrays of one shape. Every class here has the same methods, and `passes` knows nothing else of a
reduction.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .scratch import Scratch

Array = NDArray[Any]
State = tuple[Any, ...]
_FAR = 2**62

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Algebra(Protocol):
    """How states are made and combined.

    Attributes
    ----------
    scratch : Scratch
        Where states are made.
    idempotent : bool
        Whether blocks that are combined may overlap.
    ordered : bool
        Whether blocks must be combined with their neighbours.
    chain : int
        The most cells that may be combined one after another, before a tree is more accurate.
    calls : int
        About how many ufuncs a combination calls.
    """

    scratch: Scratch
    idempotent: bool
    ordered: bool
    chain: int
    calls: int

    def empty(self, region: str, shape: tuple[int, ...], /) -> State:
        """Return a state with no particular contents in a region of the scratch."""

    def combine(self, out: State, left: State, right: State, offset: Any, /) -> None:
        """Write `left` followed by `right` into `out`, which may be `left`; `offset` cells of code lie between them."""

    def copy(self, out: State, state: State, /) -> None:
        """Write a state into `out`."""

    def owned(self, state: State, code: int, /) -> State:
        """Return a copy outside the scratch, of windows that begin `code` cells later."""

    def merge(self, left: State, right: State, /) -> State:
        """Return what becomes of two parts of the same windows, whose codes are those of whole windows."""


class Plain:
    """One array and one ufunc: sums, and the values of an extremum."""

    ordered = False
    calls = 1

    def __init__(self, scratch: Scratch, ufunc: Any, dtype: Any) -> None:
        self.scratch, self.ufunc, self.dtype = scratch, ufunc, dtype
        self.idempotent = ufunc is not np.add
        self.chain = _FAR if self.idempotent else 8

    def empty(self, region: str, shape: tuple[int, ...]) -> State:
        """Make a state in the scratch."""
        return (self.scratch.take(region, shape, self.dtype),)

    def combine(self, out: State, left: State, right: State, _offset: Any) -> None:
        """Write `left` followed by `right` into `out`."""
        self.ufunc(left[0], right[0], out=out[0])

    def copy(self, out: State, state: State) -> None:
        """Write a state into `out`."""
        np.copyto(out[0], state[0])

    def owned(self, state: State, _code: int) -> State:
        """Copy a state out of the scratch."""
        return (state[0].copy(),)

    def merge(self, left: State, right: State) -> State:
        """Put two parts of the same windows together."""
        return (self.ufunc(left[0], right[0]),)


class Coded:
    """The extreme value and its *code*: its C-order position inside the window of the plan's kernel shape.

    A code has as few bytes as the window allows, so it costs less than the value does. A block's codes are below the
    offset of the next block, so that "the code of the right block where that one wins" is a maximum, which NumPy
    vectorises, and not a choice, which it does not. A code of `None` is zero everywhere.

    Attributes
    ----------
    nan : bool
        Whether to expect NaNs.
    zeros : bool
        Whether to expect zeros of both signs, between which the ufunc does not choose the first.
    """

    idempotent = True
    ordered = True
    chain = _FAR
    calls = 4

    def __init__(
        self, scratch: Scratch, ufunc: Any, dtype: Any, cells: int, *, omit: bool, nan: bool, zeros: bool
    ) -> None:
        self.scratch, self.ufunc, self.dtype = scratch, ufunc, np.dtype(dtype)
        self.code = np.min_scalar_type(max(cells - 1, 0))
        self.omit, self.nan, self.zeros = omit, nan or omit, zeros
        self.greater = ufunc in (np.maximum, np.fmax)

    def empty(self, region: str, shape: tuple[int, ...]) -> State:
        """Make a state in the scratch."""
        return self.scratch.take(region, shape, self.dtype), self.scratch.take(region, shape, self.code)

    def _wins(self, a: Array, b: Array, shape: tuple[int, ...], nan: bool) -> Array:
        """Return where `b` is strictly better than `a`."""
        wins = self.scratch.take("wins", shape, bool)
        better: Any = np.greater if self.greater else np.less
        if not nan:
            better(b, a, out=wins)
            return wins
        other = self.scratch.take("wins", shape, bool)
        if self.omit:  # better, or a number after a NaN
            np.not_equal(a, a, out=wins)
            np.equal(b, b, out=other)
            np.logical_and(wins, other, out=wins)
            better(b, a, out=other)
            np.logical_or(wins, other, out=wins)
            return wins
        # Not (worse or equal), which a NaN never is; and nothing is better than a NaN.
        (np.less_equal if self.greater else np.greater_equal)(b, a, out=other)
        np.equal(a, a, out=wins)
        np.greater(wins, other, out=wins)
        return wins

    def combine(self, out: State, left: State, right: State, offset: Any) -> None:
        """Write `left` followed by `right` into `out`."""
        self.scratch.reset("wins")
        shape = out[0].shape
        if isinstance(offset, np.ndarray):
            offset = offset.astype(self.code)
        wins = self._wins(left[0], right[0], shape, self.nan).view(np.uint8)
        code = out[1] if left[1] is None else self.scratch.take("wins", shape, self.code)
        if right[1] is None:
            np.multiply(wins, offset, out=code, dtype=self.code)
        else:
            np.add(right[1], offset, out=code, dtype=self.code)
            np.multiply(code, wins, out=code)
        if left[1] is not None:
            np.maximum(left[1], code, out=out[1])
        if not self.zeros:
            self.ufunc(left[0], right[0], out=out[0])
            return
        # A choice of bits: a ^ ((a ^ b) * wins) is b where it wins.
        word = _WORDS[out[0].dtype.itemsize]
        a, b = left[0].view(word), right[0].view(word)
        bits = np.bitwise_xor(a, b, out=self.scratch.take("wins", shape, word))
        np.multiply(bits, wins, out=bits)
        np.bitwise_xor(a, bits, out=out[0].view(word))

    def copy(self, out: State, state: State) -> None:
        """Write a state into `out`."""
        np.copyto(out[0], state[0])
        np.copyto(out[1], 0 if state[1] is None else state[1])

    def owned(self, state: State, code: int) -> State:
        """Copy a state out of the scratch."""
        codes = np.full(state[0].shape, code, dtype=self.code)
        if state[1] is not None:
            codes += state[1]
        return state[0].copy(), codes

    def merge(self, left: State, right: State) -> State:
        """Put two parts of the same windows together."""
        (a, at), (b, bt) = left, right
        self.scratch.reset("wins")
        nan = self.dtype.kind == "f"  # also where none is expected: a choice would lose it, as the ufunc does not
        wins, loses = self._wins(a, b, a.shape, nan), self._wins(b, a, a.shape, nan)
        wins = wins | (~loses & (bt < at))
        return np.where(wins, b, a), np.where(wins, bt, at)


class Scaled:
    """A magnitude ``s`` and ``q = sum((|x| / s)**p)``: slow, and no power leaves the range of the dtype."""

    idempotent = ordered = False
    chain = 8
    calls = 20

    def __init__(self, scratch: Scratch, p: float, dtype: Any) -> None:
        self.scratch, self.p, self.dtype = scratch, p, dtype

    def empty(self, region: str, shape: tuple[int, ...]) -> State:
        """Make a state in the scratch."""
        return self.scratch.take(region, shape, self.dtype), self.scratch.take(region, shape, self.dtype)

    def combine(self, out: State, left: State, right: State, _offset: Any) -> None:
        """Write `left` followed by `right` into `out`."""
        self.copy(out, self.merge(left, right))

    def copy(self, out: State, state: State) -> None:
        """Write a state into `out`."""
        for part, new in zip(out, state, strict=True):
            np.copyto(part, new)

    def owned(self, state: State, _code: int) -> State:
        """Copy a state out of the scratch."""
        return state[0].copy(), state[1].copy()

    def merge(self, left: State, right: State) -> State:
        """Put two parts of the same windows together."""
        scale = np.maximum(left[0], right[0])
        return scale, self._scaled(left, scale) + self._scaled(right, scale)

    def _scaled(self, state: State, scale: Array) -> Array:
        same = state[0] == scale  # also inf and inf, 0 and 0, which no quotient can tell
        ratio = np.where(same, 1, state[0]) / np.where(same, 1, scale)
        result: Array = state[1] * ratio.astype(self.dtype, copy=False) ** self.p
        return result
