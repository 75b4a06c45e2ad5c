"""Management of worker processes: a fork server that starts them and a manager that talks to the current one.

The fork server has imported everything and computes nothing; a worker forked from it starts within milliseconds,
which makes it cheap to kill one. Forking a process with threads is unsafe: there the fork server is started as a
program of its own, and only a process without threads, such as the command line, forks it directly. The manager
accepts requests from many threads, enforces time limits, and replaces a worker that has died.
"""

import gc
import itertools
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, final

from ltinet.errors import LtinetError
from ltinet.explorer.files import Upload
from ltinet.explorer.requests import VIEWS, PageResponse, error_response
from ltinet.explorer.worker import Message, read_message, run_worker


@final
@dataclass
class ForkServer:
    """The end of its line; closing it ends the nursery, and every worker whose line is closed ends as well."""

    line: socket.socket
    process: "subprocess.Popen[bytes] | int"

    def worker(self) -> tuple[socket.socket, int]:
        """A new worker: the line to it, and the number of its process.

        Raises:
            LtinetError: the nursery is gone.
        """
        try:
            self.line.sendall(b"n")
            content, descriptors, _, _ = socket.recv_fds(self.line, 32, 1)
        except OSError:
            content, descriptors = b"", []
        if not descriptors:
            raise LtinetError("the process that computes cannot be started any more; start the page again")
        return socket.socket(fileno=descriptors[0]), int(content)

    def close(self) -> None:
        """End it."""
        self.line.close()
        if isinstance(self.process, int):
            with suppress(ChildProcessError):
                os.waitpid(self.process, 0)
        else:
            self.process.kill()  # it may still be importing, and keeps nothing
            self.process.wait()


def start_fork_server() -> ForkServer:
    """A nursery, forked where that is safe and started as a program otherwise."""
    ours, theirs = socket.socketpair()
    if threading.active_count() == 1:
        process = os.fork()
        if process == 0:
            try:
                ours.close()
                _serve_forks(theirs)
            finally:
                os._exit(0)
        theirs.close()
        return ForkServer(ours, process)
    command = [
        sys.executable,
        "-c",
        f"from ltinet.explorer.worker_manager import run_fork_server; run_fork_server({theirs.fileno()})",
    ]
    program = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)  # noqa: S603 - this program
    theirs.close()
    return ForkServer(ours, program)


def run_fork_server(descriptor: int) -> None:
    """Be the nursery at the end of a socket with this descriptor."""
    _serve_forks(socket.socket(fileno=descriptor))


def _serve_forks(line: socket.socket) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the line
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()  # what is imported is no garbage, and workers share it for as long as nobody looks
    while line.recv(1):
        ours, theirs = socket.socketpair()
        process = os.fork()
        if process == 0:
            try:
                line.close()
                ours.close()
                run_worker(theirs)
            finally:
                os._exit(0)
        theirs.close()
        socket.send_fds(line, [str(process).encode()], [ours.fileno()])
        ours.close()


_STOPPED = "this was stopped before it was done; change something to go on"
_SECONDS = {"view": 600.0, "open": 30.0}  # before a worker, or its job, is ended; others may take _LONGEST
_LONGEST = 600.0


class _PendingRequest(NamedTuple):
    """A question that waits for its answer."""

    tab: str
    kind: str
    answer: "queue.SimpleQueue[PageResponse]"


@dataclass
class _WorkerHandle:
    """A worker as the server sees it."""

    line: socket.socket
    process: int
    waiting: dict[int, _PendingRequest] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of the files that it has."""


@final
class WorkerManager:
    """The worker that there is, and the questions that it was asked."""

    def __init__(self, nursery: ForkServer) -> None:
        self._nursery = nursery
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._worker: _WorkerHandle | None = None

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

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:
        """The answer to a question; a newer question of the same tab and kind ends one that takes long."""
        number, answer = next(self._numbers), queue.SimpleQueue[PageResponse]()
        try:
            worker = self._present()
        except LtinetError as error:
            return error_response(str(error), 500)
        try:
            with self._lock:
                self._supersede(worker, tab, kind)
                worker.waiting[number] = _PendingRequest(tab, kind, answer)
                self._send_files(worker, files)
                worker.line.sendall(Message({"kind": kind, "id": number, "query": dict(query)}).packed())
        except OSError:
            self._lost(worker)
        try:
            return answer.get(timeout=_SECONDS.get(kind, _LONGEST))
        except queue.Empty:
            self._end(worker, number)
            return error_response("this took too long and was stopped; try a smaller system, or reduce it first", 400)

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
                self._worker.line.sendall(Message({"kind": "forget", "hash": digest}).packed())

    def close(self) -> None:
        """End everything."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            _kill(worker)
        self._nursery.close()

    def _present(self) -> _WorkerHandle:
        with self._lock:
            if self._worker is None:
                line, process = self._nursery.worker()
                self._worker = _WorkerHandle(line, process)
                threading.Thread(target=self._listen, args=(self._worker,), daemon=True).start()
            return self._worker

    def _send_files(self, worker: _WorkerHandle, files: Mapping[str, Upload]) -> None:
        for digest, file in files.items():
            if digest not in worker.known:
                worker.known.add(digest)
                told = {"kind": "file", "hash": digest, "name": file.name}
                worker.line.sendall(Message(told, file.content).packed())

    def _supersede(self, worker: _WorkerHandle, tab: str, kind: str) -> None:
        for number, asked in list(worker.waiting.items()):
            if (asked.tab, asked.kind) == (tab, kind) and kind not in VIEWS:
                self._end(worker, number)

    def _end(self, worker: _WorkerHandle, number: int) -> None:
        """End a job alone; a view is computed by the worker itself, which goes with it."""
        with self._lock, suppress(OSError):
            asked = worker.waiting.get(number)
            if asked is None:
                return
            if asked.kind in VIEWS:
                _kill(worker)
            else:
                worker.line.sendall(Message({"kind": "cancel", "job": number}).packed())

    def _listen(self, worker: _WorkerHandle) -> None:
        with suppress(OSError):
            while (frame := read_message(worker.line)) is not None:
                told = frame.header
                asked = worker.waiting.pop(told["id"], None)
                if asked is not None:
                    asked.answer.put(PageResponse(told["status"], frame.content, told["type"], told["name"]))
        self._lost(worker)

    def _lost(self, worker: _WorkerHandle) -> None:
        """The worker is gone: whoever waits is told, and the next question meets a new one."""
        with self._lock:
            if self._worker is worker:
                self._worker = None
            waiting, worker.waiting = worker.waiting, {}
            with suppress(OSError):
                worker.line.close()
        for asked in waiting.values():
            asked.answer.put(error_response(_STOPPED, 409))


def _kill(worker: _WorkerHandle) -> None:
    """End a worker with all its jobs, and wake whoever listens to it."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(worker.process, signal.SIGKILL)
    with suppress(OSError):
        worker.line.shutdown(socket.SHUT_RDWR)
