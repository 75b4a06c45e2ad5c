"""Small matrices on one thread: waking a second one costs BLAS more than the whole product takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

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
    """Limit BLAS to one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
