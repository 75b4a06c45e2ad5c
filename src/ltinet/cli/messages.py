"""What somebody in front of a terminal sees while the program works; a pipe or a log sees none of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from ltinet.progress import onlooker
from ltinet.shown import without_controls


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show that something is going on."""
    console = onlooker()
    if console is None:
        yield
        return
    with console.status(message):
        yield


def remark(message: str) -> None:
    """Say what was done."""
    console = onlooker()
    if console is not None:
        console.print(without_controls(message), markup=False, highlight=False, soft_wrap=True)
