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
    """Connection to the fork server, which stops when it is closed; workers stop when theirs are closed."""

    line: socket.socket
    process: "subprocess.Popen[bytes] | int"

    def worker(self) -> tuple[socket.socket, int]:
        """Return the connection to a new worker and its process id; raise `LtinetError` if the fork server is gone."""
        try:
            self.line.sendall(b"n")
            content, descriptors, _, _ = socket.recv_fds(self.line, 32, 1)
        except OSError:
            content, descriptors = b"", []
        if not descriptors:
            raise LtinetError("the compute process cannot be started any more; start the page again")
        return socket.socket(fileno=descriptors[0]), int(content)

    def close(self) -> None:
        """Stop it."""
        self.line.close()
        if isinstance(self.process, int):
            with suppress(ChildProcessError):
                os.waitpid(self.process, 0)
        else:
            self.process.kill()  # it may still be importing, and keeps nothing
            self.process.wait()


def start_fork_server() -> ForkServer:
    """Start a fork server: fork it if this process has no other threads, else run it as a program."""
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
    """Run the fork server at the end of a socket with this descriptor."""
    _serve_forks(socket.socket(fileno=descriptor))


def _serve_forks(line: socket.socket) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the line
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()  # the collector does not touch imported modules, so that workers share their pages
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


_STOPPED = "this computation was stopped; change any setting to continue"
_DEFAULT_TIMEOUT = 600.0  # seconds until a worker or its job is killed
_TIMEOUTS = {"open": 30.0}


class _PendingRequest(NamedTuple):
    """A request without a response yet."""

    tab: str
    kind: str
    response: "queue.SimpleQueue[PageResponse]"


@dataclass
class _WorkerHandle:
    """A worker, its pending requests and its files."""

    line: socket.socket
    process: int
    waiting: dict[int, _PendingRequest] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of the files that it has."""


@final
class WorkerManager:
    """Manager of the current worker and its requests."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._worker: _WorkerHandle | None = None

    @property
    def process(self) -> int | None:
        """Process id of the current worker; None without a worker."""
        worker = self._worker
        return None if worker is None else worker.process

    @property
    def n_waiting(self) -> int:
        """Number of pending requests."""
        worker = self._worker
        return 0 if worker is None else len(worker.waiting)

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:
        """Return the response to a request; a newer request of the same tab and kind stops a running job."""
        number, response = next(self._numbers), queue.SimpleQueue[PageResponse]()
        try:
            worker = self._current_worker()
        except LtinetError as error:
            return error_response(str(error), 500)
        try:
            with self._lock:
                self._supersede(worker, tab, kind)
                worker.waiting[number] = _PendingRequest(tab, kind, response)
                self._send_files(worker, files)
                worker.line.sendall(Message({"kind": kind, "id": number, "query": dict(query)}).packed())
        except OSError:
            self._discard(worker)
        try:
            return response.get(timeout=_TIMEOUTS.get(kind, _DEFAULT_TIMEOUT))
        except queue.Empty:
            self._stop(worker, number)
            return error_response("the time limit was exceeded; use a smaller system, or reduce it first", 400)

    def start(self) -> None:
        """Start a worker before the first request."""
        self._current_worker()

    def cancel(self, tab: str, kind: str = "") -> None:
        """Cancel the requests of a tab, or those of one kind."""
        worker = self._worker
        for number, request in list({} if worker is None else worker.waiting.items()):
            if request.tab == tab and worker is not None and kind in ("", request.kind):
                self._stop(worker, number)

    def forget(self, digest: str) -> None:
        """Remove a file from the worker."""
        with self._lock, suppress(OSError):
            if self._worker is not None and digest in self._worker.known:
                self._worker.known.discard(digest)
                self._worker.line.sendall(Message({"kind": "forget", "hash": digest}).packed())

    def close(self) -> None:
        """Stop all processes."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            _kill(worker)
        self._fork_server.close()

    def _current_worker(self) -> _WorkerHandle:
        with self._lock:
            if self._worker is None:
                line, process = self._fork_server.worker()
                self._worker = _WorkerHandle(line, process)
                threading.Thread(target=self._listen, args=(self._worker,), daemon=True).start()
            return self._worker

    def _send_files(self, worker: _WorkerHandle, files: Mapping[str, Upload]) -> None:
        for digest, file in files.items():
            if digest not in worker.known:
                worker.known.add(digest)
                header = {"kind": "file", "hash": digest, "name": file.name}
                worker.line.sendall(Message(header, file.content).packed())

    def _supersede(self, worker: _WorkerHandle, tab: str, kind: str) -> None:
        for number, request in list(worker.waiting.items()):
            if (request.tab, request.kind) == (tab, kind) and kind not in VIEWS:
                self._stop(worker, number)

    def _stop(self, worker: _WorkerHandle, number: int) -> None:
        """Stop a job; a view is computed by the worker itself, which is killed."""
        with self._lock, suppress(OSError):
            request = worker.waiting.get(number)
            if request is None:
                return
            if request.kind in VIEWS:
                _kill(worker)
            else:
                worker.line.sendall(Message({"kind": "cancel", "job": number}).packed())

    def _listen(self, worker: _WorkerHandle) -> None:
        with suppress(OSError):
            while (message := read_message(worker.line)) is not None:
                header = message.header
                request = worker.waiting.pop(header["id"], None)
                if request is not None:
                    request.response.put(
                        PageResponse(header["status"], message.content, header["type"], header["name"])
                    )
        self._discard(worker)

    def _discard(self, worker: _WorkerHandle) -> None:
        """Remove a worker that is gone: its pending requests get an error, and the next request starts a new one."""
        with self._lock:
            if self._worker is worker:
                self._worker = None
            waiting, worker.waiting = worker.waiting, {}
            with suppress(OSError):
                worker.line.close()
        for request in waiting.values():
            request.response.put(error_response(_STOPPED, 409))


def _kill(worker: _WorkerHandle) -> None:
    """Kill a worker with all its jobs, and unblock the thread that reads from it."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(worker.process, signal.SIGKILL)
    with suppress(OSError):
        worker.line.shutdown(socket.SHUT_RDWR)
