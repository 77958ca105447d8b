"""Memory that is used again for every tile, so that it stays in the cache and is never given back in between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE = 64


class Scratch:
    """Named regions of bytes from which arrays are cut one after another.

    A region grows where it is too small; arrays that were cut before keep the old memory. One scratch serves one call.
    """

    def __init__(self) -> None:
        self._bytes: dict[str, NDArray[np.uint8]] = {}
        self._used: dict[str, int] = {}
        self._arrays: dict[Any, tuple[NDArray[Any], int]] = {}

    def reset(self, region: str) -> None:
        """Give the whole region free."""
        self._used[region] = 0

    def take(self, region: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array with no particular contents from what is left of a region."""
        key = (region, self._used.get(region, 0), shape, dtype)
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = self._cut(*key)
        array, self._used[region] = found
        return array

    def _cut(self, region: str, begin: int, shape: tuple[int, ...], dtype: Any) -> tuple[NDArray[Any], int]:
        """Return a new array, and where it ends."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        memory = self._bytes.get(region)
        if memory is None or begin + size > len(memory):
            # Arrays of the old memory must not be handed out any more.
            self._arrays = {key: value for key, value in self._arrays.items() if key[0] != region}
            memory = self._bytes[region] = _aligned(begin + max(size, begin))
        return memory[begin : begin + size].view(dtype).reshape(shape), begin + -(-size // _LINE) * _LINE


def _aligned(size: int) -> NDArray[np.uint8]:
    memory = np.empty(size + _LINE, dtype=np.uint8)
    skip = -memory.ctypes.data % _LINE
    return memory[skip : skip + size]
