"""How much memory and time processes that compute may take, set by the system so that no code can forget them."""

import ctypes
import gc
import resource
from functools import cache
from pathlib import Path
from typing import Any

_COMPUTING = 6 * 2**30  # bytes of addresses for everything that is computed
_OPENING = 2**30  # more than the process has already, to look at a file that somebody dropped
_SECONDS = 20  # of processor time for that


def limit_memory() -> None:
    """Refuse memory beyond what computing may take."""
    _limit(resource.RLIMIT_AS, _COMPUTING)


def limit_opening() -> None:
    """Refuse memory and time beyond what reading a file may take."""
    _limit(resource.RLIMIT_AS, _addresses() + _OPENING)
    _limit(resource.RLIMIT_CPU, _SECONDS)
    _limit(resource.RLIMIT_CORE, 0)


def tidy() -> None:
    """Free what nobody holds, and give it back to the system.

    Networks refer to themselves, so that only the collector frees them, which by itself comes rarely; and the C library
    keeps what was freed.
    """
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """`malloc_trim`, where the C library is glibc."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(which, (wanted, hard))
    except (ValueError, OSError):  # macOS knows the limit of addresses and refuses it
        return


def _addresses() -> int:
    """Bytes of addresses that this process has now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return _COMPUTING - _OPENING
