"""Worker process of the explorer: it answers requests, with caches and limits of resources of its own.

`worker_manager` starts the workers and describes the way of a request. A message between them is a JSON header, a line
feed and bytes; nothing is pickled. Limits on address space and processor time are set with `setrlimit`, so that the
operating system enforces them; Windows has no such limits.
"""

import ctypes
import gc
import json
import mmap
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, final

from ltinet._util.blas_threads import single_blas_thread
from ltinet.errors import LtinetError
from ltinet.explorer.files import Upload
from ltinet.explorer.requests import SINGLE_KINDS, answer_request
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


_ANSWERS_PER_CLEANUP = 16  # memory is released after so many answers, when idle: it takes some 20 ms
_LAZY_MODULES = ("scipy.fft", "ltinet.reduction.api", "ltinet.identification.api")  # not needed by the first view


def run_worker(connection: Connection, role: str) -> None:
    """Answer requests until the connection is closed; a role among `SINGLE_KINDS` ends with its first response."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which stops this process
    gc.freeze()  # the collector does not touch imported modules, so that workers share their pages
    if role == "open":
        _limit(AS=_addresses() + _MAX_READING_SPACE, CPU=_MAX_READING_SECONDS, CORE=0)
    else:
        _limit(AS=_MAX_ADDRESS_SPACE)
    with single_blas_thread(), suppress(EOFError, OSError):  # closed
        _Worker(connection).run(repeatedly=role not in SINGLE_KINDS)


@final
class _Worker:
    """Worker process: its caches, and its preparations when idle."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.service = connection, ViewService()
        self.ahead: Iterator[ViewState] = iter(())
        self.pending_imports: Iterator[str] = iter(())
        self.n_answers = 0  # since memory was released

    def run(self, *, repeatedly: bool) -> None:
        """Handle messages; prepare likely requests when idle."""
        is_idle = False
        while repeatedly or not self.n_answers:
            if is_idle or self.connection.poll():
                self._handle(*receive_message(self.connection))
                is_idle = False
            else:
                is_idle = not self._prepare()

    def _handle(self, header: dict[str, Any], content: bytes) -> None:
        """Act on a message."""
        match header["kind"]:
            case "file":
                self.service.files[header["hash"]] = Upload(header["name"], content, header["options"])
            case "forget":
                self.service.files.pop(header["hash"], None)
            case kind:
                response = answer_request(self.service, kind, header["query"])
                facts = {"id": header["id"], "status": response.status, "type": response.type, "name": response.name}
                self.connection.send_bytes(pack_message(facts, response.content))
                self.n_answers += 1
                if kind == "view":
                    self._look_ahead(header["query"])

    def _look_ahead(self, query: dict[str, str]) -> None:
        self.pending_imports = iter(_LAZY_MODULES)
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
        if self.n_answers < _ANSWERS_PER_CLEANUP:
            return False
        self.n_answers = 0
        release_memory()
        return True
