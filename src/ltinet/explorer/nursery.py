"""Where workers come from: a process that has everything imported, computes nothing, and forks.

A new worker is there in milliseconds, which is what makes it cheap to end one. The process of a user may have threads,
and forking those is not safe: there the nursery is a program of its own, and only the command line, which has none yet,
forks it.
"""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import final

from ltinet.errors import LtinetError
from ltinet.explorer.worker import serve


@final
@dataclass
class Nursery:
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


def start_nursery() -> Nursery:
    """A nursery, forked where that is safe and started as a program otherwise."""
    ours, theirs = socket.socketpair()
    if threading.active_count() == 1:
        process = os.fork()
        if process == 0:
            try:
                ours.close()
                _tend(theirs)
            finally:
                os._exit(0)
        theirs.close()
        return Nursery(ours, process)
    command = [sys.executable, "-c", f"from ltinet.explorer.nursery import tend; tend({theirs.fileno()})"]
    program = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)  # noqa: S603 - ourselves
    theirs.close()
    return Nursery(ours, program)


def tend(descriptor: int) -> None:
    """Be the nursery at the end of a socket with this descriptor."""
    _tend(socket.socket(fileno=descriptor))


def _tend(line: socket.socket) -> None:
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
                serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        socket.send_fds(line, [str(process).encode()], [ours.fileno()])
        ours.close()
