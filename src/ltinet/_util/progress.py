"""Progress of long computations on the error stream: nothing where it is not a terminal, unless it is requested.

Lines and bars appear after one second and are removed when the work ends.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, TypeAlias, TypeVar, final

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
ProgressCallback = Callable[[str], None]
_DELAY_SECONDS = 1.0  # before a bar appears
_TERMINAL_INTERVAL, _LINE_INTERVAL = 1.0, 5.0  # seconds between two lines on a terminal, and in a file or notebook


def stderr_console() -> "Console | None":
    """Return a console on the error stream; None if that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console  # imported here because few runs need it

    return Console(stderr=True)


@final
@dataclass(frozen=True)
class ProgressState:
    """State of a long computation, as callbacks receive it."""

    task: str
    """What is computed."""
    fraction: float | None
    """Share that is done, 0 to 1; None if it is unknown."""
    elapsed: float
    """Seconds since the start."""
    detail: str = ""
    """Present step."""
    waited: float = 0.0
    """Seconds of `elapsed` since the share was reported."""

    @property
    def remaining(self) -> float | None:
        """Estimate of the seconds left, from the share that is done; None if it is unknown."""
        if not self.fraction:
            return None
        at_report = self.elapsed - self.waited
        return max(at_report * (1.0 - self.fraction) / self.fraction - self.waited, 0.0)

    def __str__(self) -> str:
        parts = [] if self.fraction is None else [f"{100.0 * self.fraction:.0f} %"]
        parts += [self.detail] if self.detail else []
        parts.append(f"{self.elapsed:.0f} s")
        if self.remaining is not None:
            parts.append(f"about {self.remaining:.0f} s left")
        return f"{self.task}: {', '.join(parts)}"


Progress: TypeAlias = bool | Callable[[ProgressState], None] | None
"""True shows progress on the error stream, False does not; None does where that is a terminal. Or a callback."""
ProgressReport = Callable[..., None]
"""Function `report(fraction, detail="")` of a computation; the fraction is None if it is unknown."""


@contextmanager
def show_progress(task: str, progress: Progress = None) -> Iterator[ProgressReport]:
    """Yield a function that reports the share that is done.

    A line on the error stream shows it after one second and then every second, with the time left. On a terminal it is
    overwritten and erased at the end. A callback is called at every report instead.
    """
    start = time.perf_counter()
    state = ProgressState(task, None, 0.0)

    def report(fraction: float | None, detail: str = "") -> None:
        nonlocal state
        share = None if fraction is None else min(max(fraction, 0.0), 1.0)
        state = ProgressState(task, share, time.perf_counter() - start, detail)
        if callable(progress):
            progress(state)

    stream = sys.stderr
    is_terminal = stream is not None and stream.isatty()
    if stream is None or callable(progress) or progress is False or (progress is None and not is_terminal):
        yield report
        return

    def draw() -> None:
        elapsed = time.perf_counter() - start
        text = str(replace(state, elapsed=elapsed, waited=elapsed - state.elapsed))
        line = "".join(character if character.isprintable() else "?" for character in text)
        stream.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}" if is_terminal else f"{line}\n")
        stream.flush()

    # The work may be one long call, so that a thread draws.
    ended = Event()

    def watch() -> None:
        interval = _DELAY_SECONDS
        while not ended.wait(interval):
            draw()
            interval = _TERMINAL_INTERVAL if is_terminal else _LINE_INTERVAL

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()
        if is_terminal and time.perf_counter() - start > _DELAY_SECONDS:
            stream.write("\r\x1b[2K")
            stream.flush()


def track_progress(items: Iterable[Item], *, total: int | None, noun: str, progress: Progress = None) -> Iterator[Item]:
    """Iterate over items while their number is reported, and the share if the total is known."""
    with show_progress(noun, progress) as report:
        n_done = 0
        report(0.0 if total else None, f"{n_done}/{total}" if total else "")
        for item in items:
            yield item
            n_done += 1
            report(n_done / total if total else None, f"{n_done}/{total}" if total else f"{n_done}")


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
