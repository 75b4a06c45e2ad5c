"""The process that computes: it answers views itself and forks for what takes long, so that this can be ended."""

import os
import select
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import final

from ltinet.errors import LtinetError
from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.answers import VIEWS, answered
from ltinet.explorer.desk import Desk
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.frames import Frame, read_frame, unpacked
from ltinet.explorer.limits import limit_memory, limit_opening, tidy
from ltinet.explorer.state import State, state_of
from ltinet.threads import one_blas_thread

_VIEWS = 16  # after which memory is tidied: some 20 ms, while nobody asks
_LATE = ("scipy.fft", "ltinet.reduced", "ltinet.identifying")  # what the first view does without


@dataclass
class _Job:
    """A child process that answers one question into a pipe."""

    number: int
    process: int
    content: bytearray = field(default_factory=bytearray)


def serve(line: socket.socket) -> None:
    """Answer what comes over a socket until its other end is closed."""
    os.setpgid(0, 0)  # with its children it can be ended at one stroke
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    limit_memory()
    with one_blas_thread():
        _Worker(line).run()


@final
class _Worker:
    def __init__(self, line: socket.socket) -> None:
        self.line, self.desk = line, Desk()
        self.jobs: dict[int, _Job] = {}  # by the descriptor of their pipe
        self.ahead: Iterator[State] = iter(())
        self.late: Iterator[str] = iter(())
        self.n_views = 0  # since the desk was tidied

    def run(self) -> None:
        idle = False
        while True:
            line = self.line.fileno()
            ready, _, _ = select.select([line, *self.jobs], [], [], None if idle else 0.0)
            if line in ready and not self._take(read_frame(self.line)):
                return
            for pipe in [own for own in ready if own != line]:
                self._gather(pipe)
            idle = not ready and not self._prepare()

    def _take(self, frame: Frame | None) -> bool:
        """Act on a message; False at the end."""
        if frame is None:
            return False
        header = frame.header
        match header["kind"]:
            case "file":
                self.desk.files[header["hash"]] = DroppedFile(header["name"], frame.content)
            case "forget":
                self.desk.files.pop(header["hash"], None)
            case "cancel":
                self._cancel(header["job"])
            case kind if kind in VIEWS:
                self._send(header["id"], answered(self.desk, kind, header["query"]))
                self._look_ahead(header["query"])
            case _:
                try:
                    self._fork(header)
                except OSError as error:  # no memory or no descriptors left for another process
                    self._send(header["id"], failed(f"no process can be started for this ({error.strerror})", 500))
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
            limit_opening()
        answer = answered(self.desk, kind, query if isinstance(query, dict) else {})
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_framed(int(str(header["id"])), answer).packed())

    def _gather(self, pipe: int) -> None:
        part, job = os.read(pipe, 1 << 20), self.jobs[pipe]
        job.content += part
        if part:
            return
        os.close(pipe)
        del self.jobs[pipe]
        frame = unpacked(bytes(job.content))
        if frame is None:  # ended in the middle
            frame = _framed(job.number, failed("this was stopped: it took too long, or more memory than it may", 400))
        self.line.sendall(frame.packed())

    def _cancel(self, number: int) -> None:
        for job in self.jobs.values():
            if job.number == number:
                os.kill(job.process, signal.SIGKILL)

    def _send(self, number: int, answer: Answer) -> None:
        self.line.sendall(_framed(number, answer).packed())

    def _look_ahead(self, query: dict[str, str]) -> None:
        self.late, self.n_views = iter(_LATE), self.n_views + 1
        try:
            self.ahead = self.desk.neighbours(state_of(query))
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
            tidy()
        return is_due


def _framed(number: int, answer: Answer) -> Frame:
    return Frame({"id": number, "status": answer.status, "type": answer.type, "name": answer.name}, answer.content)
