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

# MERGED ltinet._util.blas_threads
# Small matrices on one thread: waking a second one costs BLAS more than the whole product takes.

# Orders between which one thread is faster, on two cores by a factor of up to five; below, BLAS uses one by itself.
# From 128 on an idle second core wins little, and a busy one makes both wait: at 200 and 270 by a factor of two.
_MIN_LIMITED_ORDER, _MAX_LIMITED_ORDER = 64, 384
# Multiplications in a run that takes one thread seconds: there several pay, however long they take to wake.
_LONG_RUN_MULTIPLICATIONS = 2**33
_SHORT_PRODUCT_MULTIPLICATIONS = 2**18  # multiplications: shorter products OpenBLAS does on one thread by itself
_BUNDLED_LIBRARY = re.compile(r"[\\/]\.?(numpy|scipy)(\.libs|[\\/])")  # a folder of their wheels


def limit_blas_threads(n_states: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread while working on matrices of small order; leave it alone for larger ones."""
    return _LIMIT if _MIN_LIMITED_ORDER <= n_states <= _MAX_LIMITED_ORDER else _NO_LIMIT


def limit_blas_threads_for_work(
    n_multiplications: int, *, in_one_product: float = math.inf
) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for work of many short products; leave it alone where these are long.

    Where no product has more than a few multiplications a limit is not needed, and would cost as much as they do.
    """
    return (
        _NO_LIMIT
        if n_multiplications > _LONG_RUN_MULTIPLICATIONS or in_one_product <= _SHORT_PRODUCT_MULTIPLICATIONS
        else _LIMIT
    )


def single_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread, in the whole process, until the last of those who asked for it is done."""
    return _LIMIT


class _SharedLimit(AbstractContextManager[None]):
    """One limit for all threads of the process that ask for it: what was before comes back once, at the end.

    Libraries are asked and told directly: a context of threadpoolctl takes longer than a short simulation.
    """

    def __init__(self) -> None:
        self.lock, self._users = threading.Lock(), 0
        self._before: list[tuple[_ThreadControl, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            if self._users == 0:
                for own in _thread_controls():
                    count = own.asked() or 1
                    if count > 1:
                        self._before.append((own, count))
                        own.change(1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self._users = max(self._users - 1, 0)
            if self._users == 0 and self._before:
                self._restore()

    def begin_in_child(self) -> None:
        """After a fork: whoever asked for the limit is not here, and nobody releases a lock."""
        self.lock, self._users = threading.Lock(), 0
        self._restore()

    def _restore(self) -> None:
        for own, count in self._before:
            own.change(count)
        self._before = []


class _ThreadControl(NamedTuple):
    """How many threads a library has, asked and changed."""

    asked: Callable[[], int | None]
    change: Callable[[int], object]


@cache
def _thread_controls() -> tuple[_ThreadControl, ...]:
    return tuple(_thread_control(library) for library in _blas_libraries())


def _thread_control(library: Any) -> _ThreadControl:
    """Functions of OpenBLAS itself, which take a tenth of the time; through threadpoolctl where it has others."""
    if library.internal_api == "openblas" and library.threading_layer == "pthreads":
        for before, after in product(("", "scipy_"), ("", "64_", "_64")):
            count = getattr(library.dynlib, f"{before}openblas_get_num_threads{after}", None)
            change = getattr(library.dynlib, f"{before}openblas_set_num_threads{after}", None)
            if count is not None and change is not None:
                return _ThreadControl(count, change)

    def change_by_anyone(count: int) -> None:
        """Threadpoolctl 3.6 and later let no thread but the first that did so change it, in silence."""
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
        library.set_num_threads(count)
        if clear is not None:
            clear(force=True)

    return _ThreadControl(library.get_num_threads, change_by_anyone)


@cache
def _blas_libraries() -> tuple[Any, ...]:
    """The BLAS of NumPy and that of SciPy, which both are loaded by now; wheels of other libraries may bring more.

    Where NumPy and SciPy bring none of their own, all share one.
    """
    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [library for library in found if _BUNDLED_LIBRARY.search(library.filepath)]
    return tuple(own or found)


_LIMIT, _NO_LIMIT = _SharedLimit(), nullcontext()
_SMALL_MATRIX = np.asfortranarray(np.eye(8))


def _before_fork() -> None:
    """Let nobody hold a lock that stays held in the child.

    With ours no thread is within threadpoolctl, which has its own. OpenBLAS has one for its memory, in the copies of
    NumPy and of SciPy, and does not look after it in a fork: a product of ours waits until whoever has it is done. The
    threads of Python that wait for us then begin no other product; what is left is a thread amid a long decomposition.
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
