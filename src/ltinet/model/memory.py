"""Large models meet the end of memory: one clear error, instead of whatever allocation happened to fail."""

from collections.abc import Iterator
from contextlib import contextmanager

from ltinet.errors import InvalidSystemError


@contextmanager
def told_if_short(n_states: int, n_nonzeros: int) -> Iterator[None]:
    """Say that memory is short, for what, and what to do.

    Raises:
        InvalidSystemError: there was not enough memory inside.
    """
    try:
        yield
    except MemoryError:
        raise InvalidSystemError(
            f"there is not enough memory to work with a sparse matrix of {n_states}×{n_states} and {n_nonzeros} "
            "non-zeros, whose factors take many times its own room; use a coarser grid or a machine with more memory"
        ) from None
