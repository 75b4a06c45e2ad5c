"""A request to stop, SIGTERM or SIGHUP, as an exception: what was begun is cleared away before the process ends.

Only the program does this. In a library signals belong to whoever uses it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import final

_NAMES = ("SIGTERM", "SIGHUP")


@final
class StopRequest(BaseException):
    """Raised where a signal arrived; no handler of ordinary errors takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stopping_in_order() -> Iterator[None]:
    """Turn requests to stop into exceptions, and end as the signal would have ended the process at once.

    A signal that is ignored, as `nohup` has it, stays ignored.
    """
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _: FrameType | None) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)  # a second one must not disturb the clearing away
        raise StopRequest(number)

    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    except StopRequest as request:
        _end_by(request.number)
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def _end_by(number: int) -> None:
    """Whoever waits for this process learns that a signal ended it."""
    if sys.stderr is not None:
        sys.stderr.write(f"ltinet: stopped by {signal.Signals(number).name}\n")
        sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
