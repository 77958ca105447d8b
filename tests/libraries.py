"""The array libraries under test: one row each, with the engine it goes through, its quirks and its conversions."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import pytest


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


def _negative_strides(x: np.ndarray) -> np.ndarray:
    """The same values, with every axis walked backwards in memory."""
    backwards = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[backwards])[backwards] if x.ndim else x


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


@dataclass(frozen=True)
class Row:
    """What differs between libraries. A difference is a value here, never a branch in a test."""

    engine: str | None  # what `backend=` gets
    module: str = "numpy"
    arrange: Callable[[np.ndarray], np.ndarray] = _as_it_is
    flags: dict[str, Any] = field(default_factory=dict)  # of array_api_strict
    device: str | None = None
    lacks: frozenset[str] = frozenset()  # dtypes
    defaults: dict[str, str] = field(default_factory=dict)  # of the namespace, where they aren't NumPy's
    requires: tuple[str, ...] = ()  # modules beside the library itself


_STRICT = {"module": "array_api_strict", "lacks": frozenset({"float16"})}
_STRICTEST = {"boolean_indexing": False, "data_dependent_shapes": False, "enabled_extensions": ()}


class Library(Enum):
    """Every row of the test matrix; a new engine or library is one more."""

    NUMPY_DEFAULT = Row(None)
    NUMPY = Row("numpy")
    NUMPY_FORTRAN = Row("numpy", arrange=np.asfortranarray)
    NUMPY_NEGATIVE = Row("numpy", arrange=_negative_strides)
    NUMPY_READ_ONLY = Row("numpy", arrange=_read_only)
    NUMBA = Row("numba", requires=("numba",))
    NUMBA_FORTRAN = Row("numba", arrange=np.asfortranarray, requires=("numba",))
    NUMBA_NEGATIVE = Row("numba", arrange=_negative_strides, requires=("numba",))
    NUMPY_GENERIC = Row("generic")
    STRICT = Row("generic", **_STRICT)
    STRICTEST = Row("generic", flags=_STRICTEST, **_STRICT)
    STRICT_DEVICE = Row("generic", device="device1", **_STRICT)
    TORCH = Row(
        "generic",
        module="torch",
        lacks=frozenset({"uint16", "uint32", "uint64"}),  # no comparison, no indexing
        defaults={"default_float": "float32", "unsigned_sum": "int64"},
    )

    @property
    def engine(self) -> str | None:
        return self.value.engine

    @property
    def defaults(self) -> dict[str, str]:
        return self.value.defaults

    def has(self, dtype: Any) -> bool:
        return str(np.dtype(dtype)) not in self.value.lacks

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Where this library's arrays live: the flags of array_api_strict are global."""
        with contextlib.ExitStack() as stack:
            # inf - inf is NaN in every namespace, and NumPy's warns; an engine on any namespace can't silence it.
            stack.enter_context(np.errstate(all="ignore"))
            if self.value.flags:
                import array_api_strict

                stack.enter_context(array_api_strict.ArrayAPIStrictFlags(**self.value.flags))
            yield

    def array(self, x: np.ndarray) -> Any:
        """An array of this library with the values of `x`: for NumPy in this row's memory order, else a copy."""
        if self.value.module == "torch":
            import torch

            return torch.from_numpy(x.copy())
        if self.value.module == "array_api_strict":
            import array_api_strict

            device = None if self.value.device is None else array_api_strict.Device(self.value.device)
            return array_api_strict.asarray(x.copy(), device=device)
        return self.value.arrange(x)

    def numpy(self, array: Any) -> np.ndarray:
        """The values, after a check that they are of this library and on its device."""
        root = type(array).__module__.partition(".")[0]
        assert root == self.value.module, f"{self.name}: a result of {root}"
        if self.value.module == "array_api_strict":
            import array_api_strict

            device = array_api_strict.Device(self.value.device or "CPU_DEVICE")
            assert array.device == device, f"{self.name}: a result on {array.device}"
            return np.asarray(array.to_device(array_api_strict.Device("CPU_DEVICE")))
        return np.asarray(array)

    @property
    def param(self) -> Any:
        """For `parametrize`: skipped where something is not installed."""
        missing = [m for m in (self.value.module, *self.value.requires) if importlib.util.find_spec(m) is None]
        return pytest.param(self, id=self.name.lower(), marks=pytest.mark.skipif(bool(missing), reason=f"no {missing}"))


def parametrize(*libraries: Library) -> Any:
    """Run a test once for each library; all of them where none is named."""
    return pytest.mark.parametrize("library", [library.param for library in libraries or Library])
