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

Item = TypeVar("Item")
ProgressCallback = Callable[[str], None]
_DELAY_SECONDS = 1.0  # before a bar appears


def stderr_console() -> "Console | None":
    """Return a console on the error stream; None if that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console  # imported here because few runs need it

    return Console(stderr=True)


def track_progress(items: Iterable[Item], *, total: int | None, noun: str) -> Iterator[Item]:
    """Iterate over items while a bar shows their number, and the total if it is known."""
    console = stderr_console()
    if console is None:
        yield from items
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True)
    bar = progress.add_task(noun, total=total)
    # A timer starts the bar, since the first item alone may take long.
    with start_after_delay(progress.start, progress.stop):
        for item in items:
            progress.advance(bar)
            yield item


@contextmanager
def start_after_delay(start: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """Call `start` if the body takes more than a second, and `stop` at its end."""
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
    """Yield a function to call with the name of each step as it starts; a bar shows the current step."""
    console = stderr_console()
    if console is None:
        yield lambda step: None  # noqa: ARG005 - the display is disabled
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=steps)
        n_completed = 0

        def begin_step(step: str) -> None:
            nonlocal n_completed
            progress.update(bar, description=step, completed=n_completed)
            n_completed += 1

        yield begin_step
