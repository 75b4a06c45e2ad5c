"""Small matrices on one thread: waking a second one costs BLAS more than the whole product takes."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

# Orders between which one thread is faster, on two cores by a factor of up to five; below, BLAS uses one by itself.
_FROM, _TO = 64, 128


@contextmanager
def threads_for(n_states: int) -> Iterator[None]:
    """Limit BLAS to one thread while working on matrices of small order; leave it alone for larger ones."""
    if not _FROM <= n_states <= _TO:
        yield
        return
    with one_blas_thread():
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process, until the last of those who asked for it is done."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _SharedLimit:
    """One limit for all threads of the process that ask for it: what was before comes back once, at the end."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._limiter: AbstractContextManager[Any] = nullcontext()

    def forget(self) -> None:
        """In the child of a fork: whoever held the lock, or the limit, is not here."""
        self._lock, self._users = threading.Lock(), 0

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
                self._limiter.__enter__()
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.__exit__(None, None, None)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_LIMIT = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget)
