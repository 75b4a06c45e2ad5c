"""Members of a batch: a few at once, so that what is worked on stays in the cache, and shared by threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ltinet.errors import SimulationError
from ltinet.threads import one_blas_thread


def n_threads(n_jobs: int) -> int:
    """The number of threads that n_jobs asks for; negative ones count down from all cores, as in joblib."""
    if n_jobs == 0:
        raise SimulationError("n_jobs is 0; give the number of threads, or -1 for one per core")
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def in_groups(work: Callable[[slice], None], n_members: int, *, at_once: int, threads: int) -> None:
    """Do the work for groups of members, up to `at_once` in each; groups are independent, and NumPy lets threads run.

    With several threads BLAS gets one for each of them: more would wait for each other.
    """
    if n_members == 1:
        work(slice(0, 1))
        return
    size = max(1, min(at_once, -(-n_members // threads)))
    groups = [slice(begin, begin + size) for begin in range(0, n_members, size)]
    if threads == 1 or len(groups) == 1:
        for group in groups:
            work(group)
        return

    def work_quietly(own: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # what the caller told NumPy holds for its own thread
            work(own)

    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work_quietly, groups):
            pass
