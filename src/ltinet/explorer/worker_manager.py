"""Manager of the worker process: it passes requests to the worker, enforces time limits, and replaces the worker.

Forking a process with threads is unsafe. A process without threads, such as the command line, forks its first worker
directly, which takes milliseconds because everything is imported. Other workers come from the fork server of
`multiprocessing`, which has imported everything, or are started as programs where processes cannot be forked (Windows).
Several threads may send requests.
"""

import itertools
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple, final

from ltinet.explorer.files import Upload
from ltinet.explorer.requests import VIEWS, PageResponse, error_response
from ltinet.explorer.worker import pack_message, receive_message, run_worker

_STOPPED = "this computation was stopped; change any setting to continue"
_DEFAULT_TIMEOUT = 600.0  # seconds until a worker or its job is killed
_TIMEOUTS = {"open": 30.0}
_USUAL_DURATION = 1.0  # seconds; the page stops longer computations when their result is not needed any more


class _PendingRequest(NamedTuple):
    """A request without a response yet."""

    tab: str
    kind: str
    response: "queue.SimpleQueue[PageResponse]"


@dataclass
class _WorkerHandle:
    """A worker, its pending requests and its files."""

    connection: Connection
    process: BaseProcess
    waiting: dict[int, _PendingRequest] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of the files that it has."""
    listener: threading.Thread = field(init=False)

    def send(self, header: dict[str, object], content: bytes = b"") -> None:
        """Send a message; one to a worker that has ended is lost."""
        with suppress(OSError):
            self.connection.send_bytes(pack_message(header, content))

    def kill(self) -> None:
        """Kill the worker with all its jobs."""
        if self.process.pid is not None:
            with suppress(AttributeError, ProcessLookupError, PermissionError):  # Windows has no process groups
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()


@final
class WorkerManager:
    """Manager of the current worker and its requests."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._worker: _WorkerHandle | None = None
        self._is_closed = False
        self._forks = "fork" in multiprocessing.get_all_start_methods()
        if self._forks and threading.active_count() == 1:
            self._worker = self._start_worker("fork")
        else:
            self._prepare_worker()

    @property
    def process(self) -> int | None:
        """Process id of the current worker; None without a worker."""
        worker = self._worker
        return None if worker is None else worker.process.pid

    @property
    def n_waiting(self) -> int:
        """Number of pending requests."""
        worker = self._worker
        return 0 if worker is None else len(worker.waiting)

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:
        """Return the response to a request; a newer request of the same tab and kind stops a running job."""
        number, response = next(self._numbers), queue.SimpleQueue[PageResponse]()
        with self._lock:
            if self._is_closed:
                return error_response(_STOPPED, 409)
            try:
                worker = self._worker = self._worker or self._start_worker("forkserver" if self._forks else "spawn")
            except (OSError, EOFError) as error:  # no memory or no descriptors left for another process
                return error_response(f"the compute process cannot be started ({error}); start the page again", 500)
            if kind not in VIEWS and self._forks:
                self.cancel(tab, kind)
            worker.waiting[number] = _PendingRequest(tab, kind, response)
            for digest in files.keys() - worker.known:
                worker.send({"kind": "file", "hash": digest, "name": files[digest].name}, files[digest].content)
            worker.known.update(files)
            worker.send({"kind": kind, "id": number, "query": dict(query)})
        with suppress(queue.Empty):
            return response.get(timeout=_USUAL_DURATION)
        self._prepare_worker()
        with suppress(queue.Empty):
            return response.get(timeout=_TIMEOUTS.get(kind, _DEFAULT_TIMEOUT))
        self._stop(worker, number)
        return error_response("the time limit was exceeded; use a smaller system, or reduce it first", 400)

    def cancel(self, tab: str, kind: str = "") -> None:
        """Cancel the requests of a tab, or those of one kind."""
        worker = self._worker
        for number, request in list({} if worker is None else worker.waiting.items()):
            if request.tab == tab and worker is not None and kind in ("", request.kind):
                self._stop(worker, number)

    def forget(self, digest: str) -> None:
        """Remove a file from the worker."""
        with self._lock:
            if self._worker is not None and digest in self._worker.known:
                self._worker.known.discard(digest)
                self._worker.send({"kind": "forget", "hash": digest})

    def close(self) -> None:
        """Stop the worker and its jobs."""
        self._is_closed = True
        with self._lock:
            worker = self._worker
        if worker is not None:
            worker.kill()
            worker.listener.join()

    def _prepare_worker(self) -> None:
        """Let the fork server import everything, so that the next worker starts within milliseconds."""
        if self._forks:
            from multiprocessing import forkserver

            forkserver.set_forkserver_preload([run_worker.__module__])
            forkserver.ensure_running()

    def _start_worker(self, method: str) -> _WorkerHandle:
        ours, theirs = multiprocessing.Pipe()
        with theirs, _hidden_main_program():
            process: BaseProcess = multiprocessing.get_context(method).Process(  # type: ignore[attr-defined]
                target=run_worker, args=(theirs,), kwargs={"forks_jobs": self._forks}
            )
            process.start()
        worker = _WorkerHandle(ours, process)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        return worker

    def _stop(self, worker: _WorkerHandle, number: int) -> None:
        """Stop a job; what the worker computes itself ends with the worker, and the next request starts a new one."""
        request = worker.waiting.get(number)
        if request is None:
            return
        if request.kind in VIEWS or not self._forks:
            worker.kill()
            return
        with self._lock:
            worker.send({"kind": "cancel", "job": number})

    def _listen(self, worker: _WorkerHandle) -> None:
        """Receive responses until the worker has ended; requests without a response get an error then."""
        with suppress(EOFError, OSError):
            while True:
                header, content = receive_message(worker.connection)
                request = worker.waiting.pop(header["id"], None)
                if request is not None:
                    request.response.put(PageResponse(header["status"], content, header["type"], header["name"]))
        worker.kill()  # its jobs may still run
        with self._lock:
            if self._worker is worker:
                self._worker = None
        for request in worker.waiting.values():
            request.response.put(error_response(_STOPPED, 409))
        worker.process.join()
        worker.connection.close()


@contextmanager
def _hidden_main_program() -> Iterator[None]:
    """Keep new processes from importing the program of the user, which would open another page if it has no guard."""
    main = vars(sys.modules["__main__"])
    hidden = {name: main[name] for name in ("__file__", "__spec__") if main.get(name) is not None}
    main.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        main.update(hidden)
