"""A page that is served: from the start of its processes to their end."""

import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ltinet.errors import LtinetError
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.nursery import start_nursery
from ltinet.explorer.reception import Reception
from ltinet.explorer.server import PageServer
from ltinet.explorer.staff import Staff


def run_page(file: DroppedFile | None, *, port: int, browser: bool, told: Callable[[str], None]) -> None:
    """Serve a page until Ctrl-C."""
    with serving(file, port=port) as server:
        told(f"explore at {server.address} (Ctrl-C ends it)")
        if browser:
            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            told("ended")


@contextmanager
def serving(file: DroppedFile | None = None, *, port: int = 0) -> Iterator[PageServer]:
    """A server that is ready to serve and has begun to compute; it ends with the block."""
    staff = Staff(start_nursery())
    try:
        server = _server(Reception(staff, file), port)
        try:
            threading.Thread(target=_begin, args=(server,), daemon=True).start()
            yield server
        finally:
            server.server_close()
    finally:
        staff.close()


def _server(reception: Reception, port: int) -> PageServer:
    try:
        return PageServer(reception, port=port)
    except (OSError, OverflowError) as error:
        raise LtinetError(f"port {port} cannot be used ({error}); leave it out to take any that is free") from None


def _begin(server: PageServer) -> None:
    """Compute the first view while the browser starts."""
    server.reception.ask("view", {"system": server.reception.first.system}, tab="first")
