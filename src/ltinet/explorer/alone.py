"""Who computes where no process can be forked: the thread that asks, which nothing can end."""

import threading
from collections.abc import Mapping
from typing import final

from ltinet.explorer.answer import Answer
from ltinet.explorer.answers import answered
from ltinet.explorer.desk import Desk
from ltinet.explorer.files import DroppedFile


@final
class Alone:
    """A desk, and one question after the other."""

    def __init__(self) -> None:
        self._desk, self._lock = Desk(), threading.Lock()

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, DroppedFile]) -> Answer:  # noqa: ARG002 - nobody is superseded
        """The answer to a question."""
        with self._lock:
            self._desk.files.update(files)
            return answered(self._desk, kind, query)

    def cancel(self, tab: str, kind: str = "") -> None:
        """Nothing: a thread cannot be ended."""

    def forget(self, digest: str) -> None:
        """Drop a file."""
        with self._lock:
            self._desk.files.pop(digest, None)
