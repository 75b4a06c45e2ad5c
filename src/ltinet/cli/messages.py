"""What somebody in front of a terminal sees while the program works; a pipe or a log sees none of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.markup import escape

from ltinet.progress import after_a_while, onlooker
from ltinet.shown import without_controls


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show that something is going on, to those who have waited for a second."""
    console = onlooker()
    if console is None:
        yield
        return
    status = console.status(escape(without_controls(message)))
    with after_a_while(status.start, status.stop):
        yield


@contextmanager
def falling(message: str) -> Iterator[Callable[[int, float], None]]:
    """A function to call with the number of shifts and the relative bound, which those who look on see fall."""
    console = onlooker()
    if console is None:
        yield lambda n_shifts, bound: None  # noqa: ARG005 - nobody to tell
        return
    text = escape(without_controls(message))
    status = console.status(text)
    with after_a_while(status.start, status.stop):
        yield lambda n_shifts, bound: status.update(f"{text}: {n_shifts} shifts, error ≤ {bound:.1e} of the gain")


def remark(message: str) -> None:
    """Say what was done."""
    console = onlooker()
    if console is not None:
        console.print(without_controls(message), markup=False, highlight=False, soft_wrap=True)
