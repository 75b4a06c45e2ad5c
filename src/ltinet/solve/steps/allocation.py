"""Memory for one run after the other: kept when it is freed, since fetching it anew costs as much as a run."""

from functools import cache

import numpy as np
from scipy.linalg import blas

from ltinet.threads import one_blas_thread

_BLOCK = 2**24  # bytes
_FACTOR = 64, 256  # rows and columns: as much as products of short blocks of time reach


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next run, instead of returning it to the system.

    glibc learns from the largest block that it mapped and saw freed: smaller ones come from memory that it keeps, up to
    twice that size. Nothing is written to the block, so that it costs no memory. Other libraries take no notice.
    """
    np.empty(_BLOCK, dtype=np.uint8)


@cache
def write_where_blas_packs() -> None:
    """Let each BLAS write once to the memory into which it copies factors.

    Its kernels fetch ahead of what they work on, beyond the end of small factors. Where nothing was ever written there
    is no page to be found, and looking for it again and again makes such products up to three times slower.
    """
    factor = np.zeros(_FACTOR)
    with one_blas_thread():
        np.matmul(factor, factor.T)
        blas.dgemm(1.0, factor, factor, trans_b=True)
