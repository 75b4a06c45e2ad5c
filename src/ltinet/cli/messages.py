"""What somebody in front of a terminal sees while the program works; a pipe or a log sees none of it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from ltinet.shown import without_controls


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show that something is going on."""
    if not _watched():
        yield
        return
    with Console(stderr=True).status(message):
        yield


def remark(message: str) -> None:
    """Say what was done."""
    if _watched():
        Console(stderr=True, highlight=False, soft_wrap=True).print(without_controls(message), markup=False)


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
