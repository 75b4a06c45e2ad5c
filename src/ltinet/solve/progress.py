"""A progress bar for runs that take long, when somebody looks on."""

import sys
from collections.abc import Iterable, Iterator
from threading import Timer
from typing import TypeVar

Item = TypeVar("Item")
_PATIENCE = 2.0  # seconds before a bar appears


def counted(items: Iterable[Item], *, total: int, noun: str) -> Iterator[Item]:
    """The items as they come; after two seconds a bar on the error stream shows how many did, if that is a terminal.

    The bar is gone when the items are: it is for those who wait, not for the record.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    bar = progress.add_task(noun, total=total)
    # By a timer, since the first item alone may take long.
    timer = Timer(_PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        for item in items:
            progress.advance(bar)
            yield item
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
