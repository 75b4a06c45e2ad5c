"""Worker process of the explorer, its messages, and its resource limits.

The worker computes views itself and forks a child for each job that may take long: the child has the caches of the
worker and can be killed without it. Where processes cannot be forked (Windows) the worker runs jobs itself. A message
is a JSON header, a line feed and bytes; nothing is pickled. Limits on address space and processor time are set with
`setrlimit`, so that the operating system enforces them; Windows has no such limits.
"""

import ctypes
import gc
import json
import mmap
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, final

from ltinet._util.blas_threads import single_blas_thread
from ltinet.errors import LtinetError
from ltinet.explorer.files import Upload
from ltinet.explorer.requests import VIEWS, PageResponse, answer_request, error_response
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.view_service import ViewService

_MAX_MESSAGE_BYTES = 2**32


def pack_message(header: dict[str, Any], content: bytes = b"") -> bytes:
    """Return a message between processes."""
    return json.dumps(header).encode() + b"\n" + content


def receive_message(connection: Connection) -> tuple[dict[str, Any], bytes]:
    """Return header and content of the next message; raise `EOFError` or `OSError` if the other end is closed."""
    header, _, content = connection.recv_bytes(_MAX_MESSAGE_BYTES).partition(b"\n")
    return json.loads(header), content


_MAX_ADDRESS_SPACE = 6 * 2**30  # bytes, for computations
_MAX_READING_SPACE = 2**30  # bytes in addition to those in use, for reading an uploaded file
_MAX_READING_SECONDS = 20  # of processor time, for reading an uploaded file


def _limit(**limits: int) -> None:
    """Set limits of this process by their names without RLIMIT_, where the operating system has them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, most in limits.items():
        which = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(which)
        # macOS defines the limit of the address space, but does not accept it.
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _addresses() -> int:
    """Return the size of the address space of this process in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE
    except OSError:
        return _MAX_ADDRESS_SPACE - _MAX_READING_SPACE


def release_memory() -> None:
    """Collect garbage and return free memory to the operating system.

    Networks have reference cycles, so that only the collector frees them, and the C library keeps what was freed.
    """
    gc.collect()
    with suppress(AttributeError, TypeError):  # exists in glibc; Windows has no library of this process
        ctypes.CDLL(None).malloc_trim(0)


_VIEWS_PER_CLEANUP = 16  # memory is released after so many views, when idle: it takes some 20 ms
_LAZY_MODULES = ("scipy.fft", "ltinet.reduction.api", "ltinet.identification.api")  # not needed by the first view


def run_worker(connection: Connection, *, forks_jobs: bool) -> None:
    """Respond to messages until the connection is closed or the process that started this one has ended."""
    if forks_jobs:
        os.setpgid(0, 0)  # so that one signal kills it with its children
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which stops this process
    for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):  # the command line handles them
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    gc.freeze()  # the collector does not touch imported modules, so that children share their pages
    _limit(AS=_MAX_ADDRESS_SPACE)
    server = multiprocessing.parent_process()
    if server is None:
        raise RuntimeError("a worker is started by multiprocessing")
    with single_blas_thread(), suppress(EOFError, OSError):  # closed
        _Worker(connection, server, forks_jobs=forks_jobs).run()


@final
class _Worker:
    """Worker process: its caches, its jobs by their connection, and its preparations when idle."""

    def __init__(self, connection: Connection, server: BaseProcess, *, forks_jobs: bool) -> None:
        self.connection, self.server, self.forks_jobs, self.service = connection, server, forks_jobs, ViewService()
        self.jobs: dict[Connection, tuple[int, BaseProcess]] = {}  # number of the request, and process
        self.ahead: Iterator[ViewState] = iter(())
        self.pending_imports: Iterator[str] = iter(())
        self.n_views = 0  # since memory was released

    def run(self) -> None:
        """Handle messages and results of jobs; prepare likely requests when idle."""
        is_idle = False
        while True:
            ready = set(wait([self.connection, self.server.sentinel, *self.jobs], None if is_idle else 0.0))
            if self.server.sentinel in ready:
                return
            for results in self.jobs.keys() & ready:
                self._finish(results)
            if self.connection in ready:
                self._handle(*receive_message(self.connection))
            is_idle = not ready and not self._prepare()

    def _handle(self, header: dict[str, Any], content: bytes) -> None:
        """Act on a message."""
        match header["kind"]:
            case "file":
                self.service.files[header["hash"]] = Upload(header["name"], content)
            case "forget":
                self.service.files.pop(header["hash"], None)
            case "cancel":
                for number, process in self.jobs.values():
                    if number == header["job"]:
                        process.kill()
            case kind if self.forks_jobs and kind not in VIEWS:
                self._start_job(header)
            case kind:
                self.connection.send_bytes(_answer(self.service, header))
                if kind in VIEWS:
                    self._look_ahead(header["query"])

    def _start_job(self, header: dict[str, Any]) -> None:
        try:
            results, connection = multiprocessing.Pipe(duplex=False)
            with connection:
                arguments = (results, connection, header)
                process = multiprocessing.get_context("fork").Process(target=self._run_job, args=arguments, daemon=True)
                process.start()
        except OSError as error:  # no memory or no descriptors left for another process
            reason = f"a process cannot be started ({error.strerror})"
            self.connection.send_bytes(_response_message(header["id"], error_response(reason, 500)))
        else:
            self.jobs[results] = header["id"], process

    def _run_job(self, results: Connection, connection: Connection, header: dict[str, Any]) -> None:
        """Respond to one request, in a child of the worker."""
        self.connection.close()  # both belong to the worker
        results.close()
        if header["kind"] == "open":
            _limit(AS=_addresses() + _MAX_READING_SPACE, CPU=_MAX_READING_SECONDS, CORE=0)
        connection.send_bytes(_answer(self.service, header))

    def _finish(self, results: Connection) -> None:
        """Pass on the response of a job that has sent it or ended."""
        number, process = self.jobs.pop(results)
        try:
            message = results.recv_bytes()
        except (EOFError, OSError):  # ended before or in the middle of it
            sentence = "stopped: the computation was cancelled, or exceeded its time or memory limit"
            message = _response_message(number, error_response(sentence, 400))
        results.close()
        process.kill()
        process.join()
        self.connection.send_bytes(message)

    def _look_ahead(self, query: dict[str, str]) -> None:
        self.pending_imports, self.n_views = iter(_LAZY_MODULES), self.n_views + 1
        try:
            self.ahead = self.service.neighbors(parse_state(query))
        except LtinetError:
            self.ahead = iter(())

    def _prepare(self) -> bool:
        """Prepare a likely request when idle; return False if nothing is left to do."""
        try:
            state = next(self.ahead, None)
            if state is not None:
                self.service.view_json(state)
        except Exception:  # reported when the state is requested
            self.ahead, state = iter(()), None
        if state is not None:
            return True
        name = next(self.pending_imports, None)
        if name is not None:
            import_module(name)
            return True
        if self.n_views < _VIEWS_PER_CLEANUP:
            return False
        self.n_views = 0
        release_memory()
        return True


def _answer(service: ViewService, header: dict[str, Any]) -> bytes:
    return _response_message(header["id"], answer_request(service, header["kind"], header["query"]))


def _response_message(number: int, response: PageResponse) -> bytes:
    header = {"id": number, "status": response.status, "type": response.type, "name": response.name}
    return pack_message(header, response.content)
