"""Progress bars on the error stream; disabled where it is not a terminal.

Bars are drawn by rich, appear only after one second, and are removed when the work ends.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

# MERGED ltinet._util.progress
# What somebody at a terminal sees of work that takes long; a pipe or a log sees none of it.

Item = TypeVar("Item")
ProgressCallback = Callable[[str], None]
_DELAY_SECONDS = 1.0  # seconds before a bar appears


def stderr_console() -> "Console | None":
    """The error stream for those who look on; None where it is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console  # here, because few runs show anything

    return Console(stderr=True)


def track_progress(items: Iterable[Item], *, total: int | None, noun: str) -> Iterator[Item]:
    """The items as they come; after a second a bar shows how many did, of how many if the total is known.

    The bar is gone when the items are: it is for those who wait, not for the record.
    """
    console = stderr_console()
    if console is None:
        yield from items
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True)
    bar = progress.add_task(noun, total=total)
    # By a timer, since the first item alone may take long.
    with start_after_delay(progress.start, progress.stop):
        for item in items:
            progress.advance(bar)
            yield item


@contextmanager
def start_after_delay(start: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """Start something where the work has not ended after a second, and stop it with the work."""
    timer = Timer(_DELAY_SECONDS, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        stop()


@contextmanager
def progress_bar(steps: int) -> Iterator[ProgressCallback]:
    """A function to call with the name of each step as it begins; a bar shows the one that is under way."""
    console = stderr_console()
    if console is None:
        yield lambda step: None  # noqa: ARG005 - nobody to tell
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=steps)
        begun = 0

        def tell(step: str) -> None:
            nonlocal begun
            progress.update(bar, description=step, completed=begun)
            begun += 1

        yield tell
