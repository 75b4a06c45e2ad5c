"""Hypothesis: BLAS has one thread while somebody asks for it, and afterwards what it had before."""

import os
import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from ltinet._util.blas_threads import (
    _blas_libraries,
    limit_blas_threads,
    limit_blas_threads_for_work,
    single_blas_thread,
)


def counts():
    """Threads of the BLAS that NumPy and SciPy call; others come with libraries that somebody imports later."""
    own = {library.filepath for library in _blas_libraries()}
    return [found.num_threads for found in ThreadpoolController().lib_controllers if found.filepath in own]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if max(counts(), default=1) < 2:
            pytest.skip("this BLAS has one thread")
        yield


def test_the_limit_ends_with_the_last_who_asked_for_it_whoever_that_is():
    before = counts()
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def first():
        with single_blas_thread():
            first_is_in.set()
            second_is_in.wait(10)
        first_is_out.set()

    def second():
        first_is_in.wait(10)
        with single_blas_thread():
            second_is_in.set()
            first_is_out.wait(10)
            seen.extend(counts())

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}
    assert counts() == before


@pytest.mark.parametrize(
    ("limit", "expected"), [(limit_blas_threads(100), 1), (limit_blas_threads(1000), 2), (limit_blas_threads(3), 2)]
)
def test_matrices_of_small_order_have_one_thread(limit, expected):
    with limit:
        assert set(counts()) == {expected}


@pytest.mark.parametrize(("work", "expected"), [(10**6, 1), (10**11, 2)])
def test_short_work_has_one_thread(work, expected):
    with limit_blas_threads_for_work(work):
        assert set(counts()) == {expected}


def test_products_that_blas_keeps_on_one_thread_need_no_limit():
    with limit_blas_threads_for_work(10**6, in_one_product=10**5):
        assert set(counts()) == {2}
    with limit_blas_threads_for_work(10**6, in_one_product=10**6):
        assert set(counts()) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_child_of_a_fork_has_what_was_before():
    with single_blas_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if set(counts()) == {2} else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
