"""Worker process of the explorer, its messages, and its resource limits.

The worker computes views itself and forks a child for each job that may take long, so that it can be killed. A
message is a JSON header and a block of bytes, preceded by the lengths of both; nothing is pickled. Limits on address
space and processor time are set with `setrlimit`, so that the operating system enforces them.
"""

import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

from ltinet._util.blas_threads import single_blas_thread
from ltinet.errors import LtinetError
from ltinet.explorer.files import Upload
from ltinet.explorer.requests import VIEWS, PageResponse, answer_request, error_response
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.view_service import ViewService

_LENGTHS = struct.Struct("!II")


class Message(NamedTuple):
    """A message between processes: a JSON header and bytes."""

    header: dict[str, Any]
    content: bytes = b""

    def packed(self) -> bytes:
        """Return the message as bytes."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.content)) + header + self.content


class Receiver(Protocol):
    """Receiving end of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Return some bytes, none at the end."""
        ...


def read_message(source: Receiver) -> Message | None:
    """Return the next message; None if the connection is closed."""
    lengths = _receive_exactly(source, _LENGTHS.size)
    if lengths is None:
        return None
    n_header, n_content = _LENGTHS.unpack(lengths)
    header, content = _receive_exactly(source, n_header), _receive_exactly(source, n_content)
    return None if header is None or content is None else Message(json.loads(header), content)


def decode_message(content: bytes) -> Message | None:
    """Return a message from bytes; None if they are incomplete."""
    if len(content) < _LENGTHS.size:
        return None
    n_header, n_content = _LENGTHS.unpack_from(content)
    start = _LENGTHS.size + n_header
    if len(content) != start + n_content:
        return None
    return Message(json.loads(content[_LENGTHS.size : start]), content[start:])


def _receive_exactly(source: Receiver, count: int) -> bytes | None:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


_MAX_ADDRESS_SPACE = 6 * 2**30  # bytes, for computations
_MAX_READING_SPACE = 2**30  # bytes in addition to those in use, for reading an uploaded file
_MAX_READING_SECONDS = 20  # of processor time, for reading an uploaded file


def limit_memory() -> None:
    """Limit the address space of this process to that of computations."""
    _limit(resource.RLIMIT_AS, _MAX_ADDRESS_SPACE)


def limit_file_reading() -> None:
    """Limit memory and time of this process for reading an uploaded file."""
    _limit(resource.RLIMIT_AS, _addresses() + _MAX_READING_SPACE)
    _limit(resource.RLIMIT_CPU, _MAX_READING_SECONDS)
    _limit(resource.RLIMIT_CORE, 0)


def release_memory() -> None:
    """Collect garbage and return free memory to the operating system.

    Networks have reference cycles, so that only the collector frees them, and the C library keeps what was freed.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # exists in glibc
    if trim is not None:
        trim(0)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    # macOS defines the limit of the address space, but does not accept it.
    with suppress(ValueError, OSError):
        resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _addresses() -> int:
    """Return the size of the address space of this process in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return _MAX_ADDRESS_SPACE - _MAX_READING_SPACE


_VIEWS_PER_CLEANUP = 16  # memory is released after so many views, when idle: it takes some 20 ms
_LAZY_MODULES = ("scipy.fft", "ltinet.reduction.api", "ltinet.identification.api")  # not needed by the first view


@dataclass
class _Job:
    """A child process that responds to one request through a pipe."""

    number: int
    process: int
    content: bytearray = field(default_factory=bytearray)


def run_worker(line: socket.socket) -> None:
    """Respond to messages from a socket until its other end is closed."""
    os.setpgid(0, 0)  # so that one signal kills it with its children
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    limit_memory()
    with single_blas_thread():
        _Worker(line).run()


@final
class _Worker:
    """Worker process: its caches, its jobs by the descriptor of their pipe, and its preparations when idle."""

    def __init__(self, line: socket.socket) -> None:
        self.line, self.service = line, ViewService()
        self.jobs: dict[int, _Job] = {}  # by the descriptor of their pipe
        self.ahead: Iterator[ViewState] = iter(())
        self.pending_imports: Iterator[str] = iter(())
        self.n_views = 0  # since memory was released

    def run(self) -> None:
        """Handle messages and results of jobs; prepare likely requests when idle."""
        idle = False
        while True:
            line = self.line.fileno()
            ready, _, _ = select.select([line, *self.jobs], [], [], None if idle else 0.0)
            if line in ready and not self._handle(read_message(self.line)):
                return
            for pipe in [descriptor for descriptor in ready if descriptor != line]:
                self._gather(pipe)
            idle = not ready and not self._prepare()

    def _handle(self, message: Message | None) -> bool:
        """Act on a message; return False at the end."""
        if message is None:
            return False
        header = message.header
        match header["kind"]:
            case "file":
                self.service.files[header["hash"]] = Upload(header["name"], message.content)
            case "forget":
                self.service.files.pop(header["hash"], None)
            case "cancel":
                self._cancel(header["job"])
            case kind if kind in VIEWS:
                self._send(header["id"], answer_request(self.service, kind, header["query"]))
                self._look_ahead(header["query"])
            case _:
                try:
                    self._fork(header)
                except OSError as error:  # no memory or no descriptors left for another process
                    reason = f"a process cannot be started ({error.strerror})"
                    self._send(header["id"], error_response(reason, 500))
        return True

    def _fork(self, header: dict[str, object]) -> None:
        reading, writing = os.pipe()
        try:
            process = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if process == 0:
            try:
                os.close(reading)
                self._answer_as_child(header, writing)
            finally:
                os._exit(0)
        os.close(writing)
        self.jobs[reading] = _Job(int(str(header["id"])), process)

    def _answer_as_child(self, header: dict[str, object], writing: int) -> None:
        self.line.close()  # belongs to the worker
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kind, query = str(header["kind"]), header["query"]
        if kind == "open":
            limit_file_reading()
        response = answer_request(self.service, kind, query if isinstance(query, dict) else {})
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_response_message(int(str(header["id"])), response).packed())

    def _gather(self, pipe: int) -> None:
        part, job = os.read(pipe, 1 << 20), self.jobs[pipe]
        job.content += part
        if part:
            return
        os.close(pipe)
        del self.jobs[pipe]
        message = decode_message(bytes(job.content))
        if message is None:  # ended in the middle
            message = _response_message(
                job.number, error_response("stopped: the computation exceeded its time or memory limit", 400)
            )
        self.line.sendall(message.packed())

    def _cancel(self, number: int) -> None:
        for job in self.jobs.values():
            if job.number == number:
                os.kill(job.process, signal.SIGKILL)

    def _send(self, number: int, response: PageResponse) -> None:
        self.line.sendall(_response_message(number, response).packed())

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
        is_due = self.n_views >= _VIEWS_PER_CLEANUP
        if is_due:
            self.n_views = 0
            release_memory()
        return is_due


def _response_message(number: int, response: PageResponse) -> Message:
    return Message(
        {"id": number, "status": response.status, "type": response.type, "name": response.name}, response.content
    )
