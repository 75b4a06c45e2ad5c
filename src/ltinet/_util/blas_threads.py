"""Limits on the number of BLAS threads for small matrices.

Waking a second thread costs more than a product of small matrices. The limit applies to the whole process, is shared by
all threads that request it, and is removed with the last of them. It is set through functions of OpenBLAS, or through
threadpoolctl for other libraries. Fork handlers keep locks of this module and of OpenBLAS from being held in a child
process.
"""

import math
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

# Matrix orders for which one thread is faster; speed only. Empirical, on two cores: up to five times faster between these
# orders; below them BLAS uses one thread by itself. From order 128 on an idle second core gains little, and a busy one
# slows both down, at orders 200 and 270 by a factor of two.
_MIN_LIMITED_ORDER, _MAX_LIMITED_ORDER = 64, 384
# Multiplications of a run that takes seconds on one thread, where several threads are faster despite their start-up.
_LONG_RUN_MULTIPLICATIONS = 2**33
_SHORT_PRODUCT_MULTIPLICATIONS = 2**18  # multiplications; OpenBLAS uses one thread for smaller products
_BUNDLED_LIBRARY = re.compile(r"[\\/]\.?(numpy|scipy)(\.libs|[\\/])")  # folders of their wheels


def limit_blas_threads(n_states: int, *, largest: int = _MAX_LIMITED_ORDER) -> AbstractContextManager[None]:
    """Return a context that limits BLAS to one thread for matrices of order up to `largest`, and does nothing for others."""
    return _LIMIT if _MIN_LIMITED_ORDER <= n_states <= largest else _NO_LIMIT


def limit_blas_threads_for_work(
    n_multiplications: int, *, in_one_product: float = math.inf
) -> AbstractContextManager[None]:
    """Return a context that limits BLAS to one thread for work that consists of many small products.

    If `in_one_product`, the multiplications of the largest product, is small, OpenBLAS uses one thread anyway.
    """
    is_long = n_multiplications > _LONG_RUN_MULTIPLICATIONS
    return _NO_LIMIT if is_long or in_one_product <= _SHORT_PRODUCT_MULTIPLICATIONS else _LIMIT


def single_blas_thread() -> AbstractContextManager[None]:
    """Return a context that limits BLAS to one thread in the whole process until the last user leaves it."""
    return _LIMIT


class _SharedLimit(AbstractContextManager[None]):
    """Reference-counted limit shared by all threads; the last one restores the previous number of BLAS threads.

    It calls the libraries directly, because a context of threadpoolctl takes longer than a short simulation.
    """

    def __init__(self) -> None:
        self.lock, self._users = threading.Lock(), 0
        self._previous: list[tuple[_ThreadControl, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            if self._users == 0:
                for control in _thread_controls():
                    count = control.get() or 1
                    if count > 1:
                        self._previous.append((control, count))
                        control.set(1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self._users = max(self._users - 1, 0)
            if self._users == 0 and self._previous:
                self._restore()

    def begin_in_child(self) -> None:
        """Reset the state in a forked child, where the threads that hold the limit or the lock do not exist."""
        self.lock, self._users = threading.Lock(), 0
        self._restore()

    def _restore(self) -> None:
        for control, count in self._previous:
            control.set(count)
        self._previous = []


class _ThreadControl(NamedTuple):
    """Functions that get and set the number of threads of a library."""

    get: Callable[[], int | None]
    set: Callable[[int], object]


@cache
def _thread_controls() -> tuple[_ThreadControl, ...]:
    return tuple(_thread_control(library) for library in _blas_libraries())


def _thread_control(library: Any) -> _ThreadControl:
    """Return functions of OpenBLAS itself if possible, which take a tenth of the time of those of threadpoolctl."""
    if library.internal_api == "openblas" and library.threading_layer == "pthreads":
        for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
            get_count = getattr(library.dynlib, f"{prefix}openblas_get_num_threads{suffix}", None)
            set_count = getattr(library.dynlib, f"{prefix}openblas_set_num_threads{suffix}", None)
            if get_count is not None and set_count is not None:
                return _ThreadControl(get_count, set_count)

    def set_from_any_thread(count: int) -> None:
        # From version 3.6 on, threadpoolctl silently ignores all threads but the first that set a number.
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
        library.set_num_threads(count)
        if clear is not None:
            clear(force=True)

    return _ThreadControl(library.get_num_threads, set_from_any_thread)


@cache
def _blas_libraries() -> tuple[Any, ...]:
    """Return the BLAS libraries bundled with NumPy and SciPy, or all BLAS libraries if neither bundles one."""
    libraries = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    bundled = [library for library in libraries if _BUNDLED_LIBRARY.search(library.filepath)]
    return tuple(bundled or libraries)


_LIMIT, _NO_LIMIT = _SharedLimit(), nullcontext()
_SMALL_MATRIX = np.asfortranarray(np.eye(8))


def _before_fork() -> None:
    """Wait until no thread holds a lock that would stay locked in the child.

    While this module holds its lock, no thread is inside threadpoolctl, which has a lock, too. OpenBLAS has a lock for
    its memory, in the copies of NumPy and of SciPy, which it does not release in a child; one product with each copy
    waits for it. Only a thread that runs a long decomposition at the moment of the fork can still hold it.
    """
    _LIMIT.lock.acquire()
    np.dot(_SMALL_MATRIX.T, _SMALL_MATRIX)
    blas = sys.modules.get("scipy.linalg.blas")
    if blas is not None:
        blas.dsyrk(1.0, _SMALL_MATRIX)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _LIMIT.lock.release(),
        after_in_child=_LIMIT.begin_in_child,
    )
