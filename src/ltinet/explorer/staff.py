"""Who computes for the server: one worker at a time, asked by many threads, ended and replaced when it must be."""

import itertools
import os
import queue
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, final

from ltinet.errors import LtinetError
from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.answers import VIEWS
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.frames import Frame, read_frame
from ltinet.explorer.nursery import Nursery

_STOPPED = "this was stopped before it was done; change something to go on"
_SECONDS = {"view": 600.0, "open": 30.0}  # before a worker, or its job, is ended; others may take _LONGEST
_LONGEST = 600.0


class _Asked(NamedTuple):
    """A question that waits for its answer."""

    tab: str
    kind: str
    answer: "queue.SimpleQueue[Answer]"


@dataclass
class _Worker:
    """A worker as the server sees it."""

    line: socket.socket
    process: int
    waiting: dict[int, _Asked] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of the files that it has."""


@final
class Staff:
    """The worker that there is, and the questions that it was asked."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._worker: _Worker | None = None

    @property
    def process(self) -> int | None:
        """The number of the process that computes, None where there is none now."""
        worker = self._worker
        return None if worker is None else worker.process

    @property
    def n_waiting(self) -> int:
        """How many questions have no answer yet."""
        worker = self._worker
        return 0 if worker is None else len(worker.waiting)

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, DroppedFile]) -> Answer:
        """The answer to a question; a newer question of the same tab and kind ends one that takes long."""
        number, answer = next(self._numbers), queue.SimpleQueue[Answer]()
        try:
            worker = self._present()
        except LtinetError as error:
            return failed(str(error), 500)
        try:
            with self._lock:
                self._supersede(worker, tab, kind)
                worker.waiting[number] = _Asked(tab, kind, answer)
                self._send_files(worker, files)
                worker.line.sendall(Frame({"kind": kind, "id": number, "query": dict(query)}).packed())
        except OSError:
            self._lost(worker)
        try:
            return answer.get(timeout=_SECONDS.get(kind, _LONGEST))
        except queue.Empty:
            self._end(worker, number)
            return failed("this took too long and was stopped; try a smaller system, or reduce it first", 400)

    def start(self) -> None:
        """Have a worker ready before anybody asks."""
        self._present()

    def cancel(self, tab: str, kind: str = "") -> None:
        """End whatever a tab waits for, or what it waits for of one kind."""
        worker = self._worker
        for number, asked in list({} if worker is None else worker.waiting.items()):
            if asked.tab == tab and worker is not None and kind in ("", asked.kind):
                self._end(worker, number)

    def forget(self, digest: str) -> None:
        """Let the worker drop a file."""
        with self._lock, suppress(OSError):
            if self._worker is not None and digest in self._worker.known:
                self._worker.known.discard(digest)
                self._worker.line.sendall(Frame({"kind": "forget", "hash": digest}).packed())

    def close(self) -> None:
        """End everything."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            _kill(worker)
        self._nursery.close()

    def _present(self) -> _Worker:
        with self._lock:
            if self._worker is None:
                line, process = self._nursery.worker()
                self._worker = _Worker(line, process)
                threading.Thread(target=self._listen, args=(self._worker,), daemon=True).start()
            return self._worker

    def _send_files(self, worker: _Worker, files: Mapping[str, DroppedFile]) -> None:
        for digest, file in files.items():
            if digest not in worker.known:
                worker.known.add(digest)
                told = {"kind": "file", "hash": digest, "name": file.name}
                worker.line.sendall(Frame(told, file.content).packed())

    def _supersede(self, worker: _Worker, tab: str, kind: str) -> None:
        for number, asked in list(worker.waiting.items()):
            if (asked.tab, asked.kind) == (tab, kind) and kind not in VIEWS:
                self._end(worker, number)

    def _end(self, worker: _Worker, number: int) -> None:
        """End a job alone; a view is computed by the worker itself, which goes with it."""
        with self._lock, suppress(OSError):
            asked = worker.waiting.get(number)
            if asked is None:
                return
            if asked.kind in VIEWS:
                _kill(worker)
            else:
                worker.line.sendall(Frame({"kind": "cancel", "job": number}).packed())

    def _listen(self, worker: _Worker) -> None:
        with suppress(OSError):
            while (frame := read_frame(worker.line)) is not None:
                told = frame.header
                asked = worker.waiting.pop(told["id"], None)
                if asked is not None:
                    asked.answer.put(Answer(told["status"], frame.content, told["type"], told["name"]))
        self._lost(worker)

    def _lost(self, worker: _Worker) -> None:
        """The worker is gone: whoever waits is told, and the next question meets a new one."""
        with self._lock:
            if self._worker is worker:
                self._worker = None
            waiting, worker.waiting = worker.waiting, {}
            with suppress(OSError):
                worker.line.close()
        for asked in waiting.values():
            asked.answer.put(failed(_STOPPED, 409))


def _kill(worker: _Worker) -> None:
    """End a worker with all its jobs, and wake whoever listens to it."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(worker.process, signal.SIGKILL)
    with suppress(OSError):
        worker.line.shutdown(socket.SHUT_RDWR)
