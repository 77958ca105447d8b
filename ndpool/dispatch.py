"""From an array to the engines that can take it, without importing any array library.

The root module of the array's type names the entry point; the entry points are read at the first call, never at import.
There is no current backend: the array decides, and ``backend=`` overrides for one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import array_api_compat

from . import arguments
from .backend import Backend, Capabilities, Engine
from .generic.reduce import reduce as generic_reduce
from .generic.scatter import scatter as generic_scatter
from .plan import WindowPlan
from .reductions import Reduction

GROUP = "ndpool.backends"
# Every type's MRO ends in `object`, of this root module: the entry point of what is no array yet.
ARRAY_LIKES = "builtins"
GENERIC = Engine(
    "generic",
    Capabilities("the Array API standard alone: take, where and slices", positions=("flat", "plane"), where=True),
    generic_reduce,
    generic_scatter,
)


@cache
def entries() -> dict[str, Any]:
    """Return the registered entry points by name; two of one name are kept as an error that names both."""
    from importlib.metadata import entry_points

    found: dict[str, Any] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in found:
            names = [getattr(e.dist, "name", "an unknown distribution") for e in (found[entry.name], entry)]
            found[entry.name] = RuntimeError(
                f"the backend {entry.name!r} is registered twice, by {names[0]!r} and {names[1]!r}: uninstall one"
            )
        else:
            found[entry.name] = entry
    return found


@cache
def load(name: str) -> Backend:
    """Import and return the backend registered under `name`."""
    entry = entries()[name]
    if isinstance(entry, Exception):
        raise entry
    backend: Backend = entry.load()
    return backend


@lru_cache(maxsize=512)
def backend_of(kind: Any) -> Backend | None:
    """Return the backend for arrays of the type `kind`; `None` where only the generic engine is left."""
    for base in kind.__mro__[:-1]:
        root = base.__module__.partition(".")[0]
        if root in entries():
            return load(root)
    return None


@dataclass(frozen=True)
class Target:
    """An array as an engine takes it, its mask, and the engines that may be asked, in the order of preference."""

    x: Any
    mask: Any
    engines: tuple[Engine, ...]


def resolve(x: Any, backend: str | None) -> Target:
    """Return `x` as an array together with the engines that take it.

    Raises
    ------
    ValueError
        If `backend` names an engine that cannot take this array; the error says which can.
    TypeError
        If `x` is no array and nothing that an array can be made of.
    """
    kind: Any = type(x)  # mypy doubts that a type is hashable
    found = backend_of(kind)
    if found is None and not array_api_compat.is_array_api_obj(x):
        if ARRAY_LIKES not in entries():
            raise TypeError(f"`x` must be an array of an Array API library, got {x!r} of type {type(x).__name__}")
        found = load(ARRAY_LIKES)  # a list, or another array-like
    array, mask = (x, None) if found is None else found.unpack(x)
    engines = (*(found.engines if found else ()), GENERIC)
    if backend is not None:
        chosen = tuple(engine for engine in engines if engine.name == backend)
        if not chosen:
            allowed = ", ".join(repr(engine.name) for engine in engines)
            raise ValueError(f"`backend` {backend!r} cannot take an array of type {type(x).__name__}: {allowed} can")
        engines = chosen if chosen[0] is GENERIC else (*chosen, GENERIC)
    return Target(array, mask, engines)


_namespaces: dict[Any, Any] = {}


def namespace(x: Any) -> Any:
    """Return the Array API namespace of an array."""
    kind = type(x)
    if kind not in _namespaces:
        _namespaces[kind] = array_api_compat.array_namespace(x)
    return _namespaces[kind]


def device(x: Any) -> Any:
    """Return the device of an array."""
    return array_api_compat.device(x[0] if isinstance(x, tuple) else x)


def mask_of(target: Target, where: Any) -> Any:
    """Return the mask of elements that take part, of the array's own and the one given; `None` where all do."""
    if where is None:
        return target.mask
    given = resolve(where, None).x
    xp, shape = namespace(target.x), tuple(target.x.shape)
    arguments.check_mask(tuple(given.shape), shape, given.dtype, given.dtype == xp.bool)
    given = xp.broadcast_to(given, shape)
    return given if target.mask is None else given & target.mask


def reduce(
    target: Target, plan: WindowPlan, reduction: Reduction, encoding: str | None, where: Any
) -> tuple[Any, Any, str | None]:
    """Run ``reduce`` on the first engine whose record allows this call.

    Returns
    -------
    values, positions, encoding
        The last is the encoding of `positions`: the one wanted, where the engine tells it.
    """
    for engine in target.engines:
        if engine.takes(target.x.dtype, reduction, where is not None):
            known = engine.capabilities.positions
            told = encoding if encoding in known or encoding is None else known[0]
            values, positions = engine.reduce(target.x, plan, reduction, told, where)
            return values, positions, told
    raise AssertionError("the generic engine takes every call that passed the checks")


def scatter(target: Target, plan: WindowPlan, positions: Any = None, overlap: str = "sum") -> Any:
    """Run ``scatter`` on the first engine that has it and takes the dtype."""
    for engine in target.engines:
        if engine.scatter is not None and engine.capabilities.takes_dtype(target.x.dtype):
            return engine.scatter(target.x, plan, positions, overlap)
    raise AssertionError("the generic engine takes every call that passed the checks")


def backends() -> dict[str, dict[str, Capabilities]]:
    """Return what is installed: for each registered array library its engines, in the order of preference.

    A library that is registered but can't be imported (its package is not installed) is left out. The generic engine,
    which takes any Array API array, stands under ``"*"``.

    Returns
    -------
    dict of dict of Capabilities
        By the root module of the array's type, then by the engine's name, which is what ``backend=`` takes.

    Examples
    --------
    >>> import ndpool as ndp
    >>> "generic" in ndp.backends()["*"]
    True
    """
    found = {}
    for name in entries():
        if name == ARRAY_LIKES:
            continue
        try:
            engines = load(name).engines
        except ImportError:
            continue
        found[name] = {engine.name: engine.capabilities for engine in engines}
    return {**found, "*": {GENERIC.name: GENERIC.capabilities}}
