"""A progress bar for runs that take long, when somebody looks on."""

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")
_PATIENCE = 2.0  # seconds before a bar appears


def counted(items: Sequence[Item], noun: str) -> Iterator[Item]:
    """The items one by one; after two seconds a bar on the terminal's error stream shows how many are done."""
    begin = monotonic()
    if not sys.stderr.isatty():
        yield from items
        return
    done = 0
    for item in items:
        if monotonic() - begin > _PATIENCE:
            break
        yield item
        done += 1
    else:
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items[done:], description=noun, total=len(items), completed=done, console=Console(stderr=True))
