"""Memory for one run after the other: kept when it is freed, since fetching it anew costs as much as a run."""

import numpy as np

_BLOCK = 2**24  # bytes


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next run, instead of returning it to the system.

    glibc learns from the largest block that it mapped and saw freed: smaller ones come from memory that it keeps, up to
    twice that size. Nothing is written to the block, so that it costs no memory. Other libraries take no notice.
    """
    np.empty(_BLOCK, dtype=np.uint8)
