"""Processes of the explorer: the server and its workers, and the way of a request between them.

`server` (HTTP) or `widget` (notebook) hands a request of the page to `PageSession.ask`, which validates its state and
calls `WorkerManager.ask` here. That sends the request through a pipe to a worker, after the uploaded files that this
worker lacks, and waits. The worker (`worker.run_worker`) computes the response (`requests.answer_request`) and
sends it back. A thread for each worker (`_listen`) receives it and wakes the waiting thread, which returns it to the page.

There are two levels of processes, the server and the workers that it starts; workers start none. One worker computes
views, another one error bands and downloads; both stay, and have caches. The second prepares the trade-off curve of a new
system while the first computes its view. Each comparison of engines and each uploaded file has a worker of its own.

A request is stopped if the page cancels it, if a newer one of the same tab and kind replaces it (the page itself cancels
views), or if its time limit, which includes waiting, is exceeded. Its worker is killed, and the next request starts
another. All other requests that wait for this worker, of any tab, get status 409 with it; the page repeats these by
itself, up to three times (`persistent.js`). Workers come from the fork server of `multiprocessing`, which has imported
everything, within milliseconds, and are started as programs where processes cannot be forked (Windows). The server
itself, which has threads, is never forked.
"""

import itertools
import multiprocessing
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple, final

from ltinet.explorer.files import Upload
from ltinet.explorer.requests import SINGLE_KINDS, PageResponse, error_response
from ltinet.explorer.worker import pack_message, receive_message, run_worker

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_DEFAULT_TIMEOUT = 600.0  # seconds from sending a request until its worker is killed
_TIMEOUTS = {"open": 30.0}


class _PendingRequest(NamedTuple):
    """A request without a response yet."""

    tab: str
    kind: str
    response: "queue.SimpleQueue[PageResponse]"

    def stop(self) -> None:
        """Respond that it was stopped: with 409 to a view, which the page repeats, or 400."""
        if self.kind == "view":
            self.response.put(_superseded())
        else:
            sentence = "stopped: the computation was cancelled, or exceeded its time or memory limit"
            self.response.put(error_response(sentence, 400))


def _superseded() -> PageResponse:
    return error_response("this computation was stopped; change any setting to continue", 409)


@dataclass
class _WorkerHandle:
    """A worker, its pending requests and its files."""

    key: tuple[str, int]
    """Role of the worker, and the number of the request if it is the only one."""
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


@final
class WorkerManager:
    """Manager of the workers and their requests; several threads may send requests."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._workers: dict[tuple[str, int], _WorkerHandle] = {}
        self._is_closed = False
        if _METHOD == "forkserver":  # let it import everything
            from multiprocessing import forkserver

            forkserver.set_forkserver_preload([run_worker.__module__])
            forkserver.ensure_running()

    @property
    def process(self) -> int | None:
        """Process id of the worker that computes views; None without one."""
        worker = self._workers.get(("view", 0))
        return None if worker is None else worker.process.pid

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:
        """Return the response to a request, which replaces one of the same tab and kind, except for views."""
        if kind != "view":
            self.cancel(tab, kind)
        number, request = self.send(kind, query, tab=tab, files=files)
        with suppress(queue.Empty):
            return request.response.get(timeout=_TIMEOUTS.get(kind, _DEFAULT_TIMEOUT))
        self._stop(number)
        return error_response("the time limit was exceeded; use a smaller system, or reduce it first", 400)

    def send(
        self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]
    ) -> tuple[int, _PendingRequest]:
        """Send a request to its worker without waiting for the response."""
        number, request = next(self._numbers), _PendingRequest(tab, kind, queue.SimpleQueue())
        with self._lock:
            if self._is_closed:
                request.response.put(_superseded())
                return number, request
            try:
                worker = self._worker_of(
                    (kind, number) if kind in SINGLE_KINDS else ("view" if kind == "view" else "job", 0)
                )
            except (OSError, EOFError) as error:  # no memory or no descriptors left for another process
                sentence = f"the compute process cannot be started ({error}); start the page again"
                request.response.put(error_response(sentence, 500))
                return number, request
            worker.waiting[number] = request
            for digest in files.keys() - worker.known:
                file = files[digest]
                header: dict[str, object] = {"kind": "file", "hash": digest, "name": file.name, "options": file.options}
                worker.send(header, file.content)
            worker.known.update(files)
            worker.send({"kind": kind, "id": number, "query": dict(query)})
        return number, request

    def cancel(self, tab: str, kind: str = "") -> None:
        """Cancel the requests of a tab, or those of one kind."""
        kinds = ("view", "prepare") if kind == "view" else (kind,)
        with self._lock:
            pending = {
                number: request for worker in self._workers.values() for number, request in worker.waiting.items()
            }
            for number, request in pending.items():
                if request.tab == tab and (not kind or request.kind in kinds):
                    self._stop(number)

    def forget(self, digest: str) -> None:
        """Remove a file from the workers."""
        with self._lock:
            for worker in self._workers.values():
                worker.known.discard(digest)
                worker.send({"kind": "forget", "hash": digest})

    def close(self) -> None:
        """Stop the workers."""
        with self._lock:
            self._is_closed = True
            workers = list(self._workers.values())
        for worker in workers:
            worker.process.kill()
            worker.listener.join()

    def _worker_of(self, key: tuple[str, int]) -> _WorkerHandle:
        """Return the worker of a key; start it where it does not run yet."""
        if key in self._workers:
            return self._workers[key]
        ours, theirs = multiprocessing.Pipe()
        with theirs, _hidden_main_program():
            process = multiprocessing.get_context(_METHOD).Process(  # type: ignore[attr-defined]
                target=run_worker, args=(theirs, key[0])
            )
            process.start()
        worker = self._workers[key] = _WorkerHandle(key, ours, process)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        return worker

    def _stop(self, number: int) -> None:
        """Stop a request with its worker; others that wait for this worker can be repeated."""
        with self._lock:
            worker = next((worker for worker in self._workers.values() if number in worker.waiting), None)
            if worker is None:  # its response has just come
                return
            worker.waiting.pop(number).stop()
            for request in worker.waiting.values():
                request.response.put(_superseded())
            worker.waiting.clear()
            self._remove(worker)
            worker.process.kill()

    def _remove(self, worker: _WorkerHandle) -> None:
        if self._workers.get(worker.key) is worker:
            del self._workers[worker.key]

    def _listen(self, worker: _WorkerHandle) -> None:
        """Receive responses until the worker has ended; requests without a response get an error then."""
        try:
            with suppress(EOFError, OSError):
                while True:
                    header, content = receive_message(worker.connection)
                    with self._lock:
                        request = worker.waiting.pop(header["id"], None)
                    if request is not None:
                        request.response.put(PageResponse(header["status"], content, header["type"], header["name"]))
        finally:
            with self._lock:
                self._remove(worker)
                for request in worker.waiting.values():
                    request.stop()
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
