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
from dataclasses import dataclass, field
from functools import cache
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
    """One message."""

    header: dict[str, Any]
    content: bytes = b""

    def packed(self) -> bytes:
        """As it travels."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.content)) + header + self.content


class Receiver(Protocol):
    """The end of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Some bytes, none at the end."""
        ...


def read_message(source: Receiver) -> Message | None:
    """The next message; None where the other side is gone."""
    lengths = _receive_exactly(source, _LENGTHS.size)
    if lengths is None:
        return None
    n_header, n_content = _LENGTHS.unpack(lengths)
    header, content = _receive_exactly(source, n_header), _receive_exactly(source, n_content)
    return None if header is None or content is None else Message(json.loads(header), content)


def decode_message(content: bytes) -> Message | None:
    """A message that was gathered; None where it is not complete."""
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


_COMPUTING = 6 * 2**30  # bytes of addresses for everything that is computed
_OPENING = 2**30  # more than the process has already, to look at a file that somebody dropped
_SECONDS = 20  # of processor time for that


def limit_memory() -> None:
    """Refuse memory beyond what computing may take."""
    _limit(resource.RLIMIT_AS, _COMPUTING)


def limit_file_reading() -> None:
    """Refuse memory and time beyond what reading a file may take."""
    _limit(resource.RLIMIT_AS, _addresses() + _OPENING)
    _limit(resource.RLIMIT_CPU, _SECONDS)
    _limit(resource.RLIMIT_CORE, 0)


def release_memory() -> None:
    """Free what nobody holds, and give it back to the system.

    Networks refer to themselves, so that only the collector frees them, which by itself comes rarely; and the C library
    keeps what was freed.
    """
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """`malloc_trim`, where the C library is glibc."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(which, (wanted, hard))
    except (ValueError, OSError):  # macOS knows the limit of addresses and refuses it
        return


def _addresses() -> int:
    """Bytes of addresses that this process has now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return _COMPUTING - _OPENING


_VIEWS = 16  # after which memory is tidied: some 20 ms, while nobody asks
_LAZY_MODULES = ("scipy.fft", "ltinet.reduction.api", "ltinet.identification.api")  # what the first view does without


@dataclass
class _Job:
    """A child process that answers one question into a pipe."""

    number: int
    process: int
    content: bytearray = field(default_factory=bytearray)


def run_worker(line: socket.socket) -> None:
    """Answer what comes over a socket until its other end is closed."""
    os.setpgid(0, 0)  # with its children it can be ended at one stroke
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    limit_memory()
    with single_blas_thread():
        _Worker(line).run()


@final
class _Worker:
    def __init__(self, line: socket.socket) -> None:
        self.line, self.desk = line, ViewService()
        self.jobs: dict[int, _Job] = {}  # by the descriptor of their pipe
        self.ahead: Iterator[ViewState] = iter(())
        self.late: Iterator[str] = iter(())
        self.n_views = 0  # since the desk was tidied

    def run(self) -> None:
        idle = False
        while True:
            line = self.line.fileno()
            ready, _, _ = select.select([line, *self.jobs], [], [], None if idle else 0.0)
            if line in ready and not self._take(read_message(self.line)):
                return
            for pipe in [own for own in ready if own != line]:
                self._gather(pipe)
            idle = not ready and not self._prepare()

    def _take(self, frame: Message | None) -> bool:
        """Act on a message; False at the end."""
        if frame is None:
            return False
        header = frame.header
        match header["kind"]:
            case "file":
                self.desk.files[header["hash"]] = Upload(header["name"], frame.content)
            case "forget":
                self.desk.files.pop(header["hash"], None)
            case "cancel":
                self._cancel(header["job"])
            case kind if kind in VIEWS:
                self._send(header["id"], answer_request(self.desk, kind, header["query"]))
                self._look_ahead(header["query"])
            case _:
                try:
                    self._fork(header)
                except OSError as error:  # no memory or no descriptors left for another process
                    self._send(
                        header["id"], error_response(f"no process can be started for this ({error.strerror})", 500)
                    )
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
        self.line.close()  # its end is the worker's, not this job's
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kind, query = str(header["kind"]), header["query"]
        if kind == "open":
            limit_file_reading()
        answer = answer_request(self.desk, kind, query if isinstance(query, dict) else {})
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_response_message(int(str(header["id"])), answer).packed())

    def _gather(self, pipe: int) -> None:
        part, job = os.read(pipe, 1 << 20), self.jobs[pipe]
        job.content += part
        if part:
            return
        os.close(pipe)
        del self.jobs[pipe]
        frame = decode_message(bytes(job.content))
        if frame is None:  # ended in the middle
            frame = _response_message(
                job.number, error_response("this was stopped: it took too long, or more memory than it may", 400)
            )
        self.line.sendall(frame.packed())

    def _cancel(self, number: int) -> None:
        for job in self.jobs.values():
            if job.number == number:
                os.kill(job.process, signal.SIGKILL)

    def _send(self, number: int, answer: PageResponse) -> None:
        self.line.sendall(_response_message(number, answer).packed())

    def _look_ahead(self, query: dict[str, str]) -> None:
        self.late, self.n_views = iter(_LAZY_MODULES), self.n_views + 1
        try:
            self.ahead = self.desk.neighbours(parse_state(query))
        except LtinetError:
            self.ahead = iter(())

    def _prepare(self) -> bool:
        """Compute or import something that may be asked for next, while nobody asks; False where there is nothing."""
        try:
            state = next(self.ahead, None)
            if state is not None:
                self.desk.written_view(state)
        except Exception:  # it will be told when somebody asks for it
            self.ahead, state = iter(()), None
        return state is not None or self._import_late() or self._tidy()

    def _import_late(self) -> bool:
        name = next(self.late, None)
        if name is not None:
            import_module(name)
        return name is not None

    def _tidy(self) -> bool:
        is_due = self.n_views >= _VIEWS
        if is_due:
            self.n_views = 0
            release_memory()
        return is_due


def _response_message(number: int, answer: PageResponse) -> Message:
    return Message({"id": number, "status": answer.status, "type": answer.type, "name": answer.name}, answer.content)
