"""A plain pool of threads for loops that hold no lock of the interpreter.

The calling thread works too, and waits for nothing that has not begun: many threads may call at once, from a pool of
their own as well, and a process may fork at any time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import arguments

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

VARIABLE = "NDPOOL_NUM_THREADS"


class _Blocks:
    """The numbers 0 to `count` - 1, each given out once, to whichever thread asks."""

    def __init__(self, count: int) -> None:
        self._numbers = iter(range(count))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._numbers)


class _State:
    """The number of threads, and the pool once it was needed."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.forget()

    def forget(self) -> None:
        """Have no pool: a forked process has none of its parent's threads, and perhaps a lock that one of them held."""
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0
        self.lock = threading.Lock()


_state = _State()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_state.forget)


def get_num_threads() -> int:
    """Return how many threads a call may use.

    Returns
    -------
    int
        What `set_num_threads` set; else what the environment variable ``NDPOOL_NUM_THREADS`` says; else the number of
        processors that this process may use.

    Raises
    ------
    ValueError
        If the environment variable is no number of at least 1.
    """
    if _state.count is None:
        said = os.environ.get(VARIABLE, "").strip()
        if said and not (said.isascii() and said.isdigit() and int(said)):
            raise ValueError(f"the environment variable `{VARIABLE}` must be an int of at least 1, got {said!r}")
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        _state.count = int(said) if said else usable
    return _state.count


def set_num_threads(n: int) -> None:
    """Set how many threads a call may use, in the whole process.

    The results are the same bits with any number. Calls on small arrays stay on the calling thread.

    Parameters
    ----------
    n : int
        At least 1, the calling thread included.

    Raises
    ------
    TypeError, ValueError
        If `n` is no int, or below 1.

    Examples
    --------
    >>> import ndpool as ndp
    >>> before = ndp.get_num_threads()
    >>> ndp.set_num_threads(2)
    >>> ndp.get_num_threads()
    2
    >>> ndp.set_num_threads(before)
    """
    _state.count = arguments.integer("n", n, minimum=1)


def _pool(helpers: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # where it is needed: many a process has one thread alone

    with _state.lock:
        if _state.pool is None or _state.size < helpers:
            # The threads of a smaller pool end once they have nothing more to do.
            if _state.pool is not None:
                _state.pool.shutdown(wait=False)
            _state.pool, _state.size = ThreadPoolExecutor(helpers, thread_name_prefix="ndpool"), helpers
        return _state.pool


def share(count: int, work: Callable[[Iterator[int]], Any]) -> None:
    """Do `count` independent blocks of work.

    Parameters
    ----------
    count : int
        The number of blocks.
    work : callable
        Takes an iterator over numbers of blocks and does them; it is called once in each thread.
    """
    blocks = _Blocks(count)
    helpers = min(get_num_threads(), count) - 1
    if helpers < 1:
        work(blocks)
        return
    futures = []
    for _ in range(helpers):
        try:
            futures.append(_pool(helpers).submit(work, blocks))
        except RuntimeError:  # another thread has just replaced the pool, or the interpreter is about to end
            break
    try:
        work(blocks)
    finally:
        # What has not begun by now is not needed any more.
        running = [future for future in futures if not future.cancel()]
        for future in running:
            future.result()
