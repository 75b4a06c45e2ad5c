"""A bar on the error stream while the paper is reproduced, when somebody looks on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ltinet.paper.forward_passes import Tell


@contextmanager
def progress_bar(steps: int) -> Iterator[Tell]:
    """A function to call with the name of each step as it begins; without a terminal it does nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005 - nobody to tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=steps)
        begun = 0

        def tell(step: str) -> None:
            nonlocal begun
            progress.update(bar, description=step, completed=begun)
            begun += 1

        yield tell
