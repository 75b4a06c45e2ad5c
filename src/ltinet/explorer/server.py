"""The server of the page, for this machine alone: routes, limits, and nothing that computes."""

import secrets
import socket
import threading
from collections import OrderedDict
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any, final

from ltinet.explorer.reception import Reception
from ltinet.explorer.requests import PageRequest

_MOST_CONNECTIONS = 96


@final
class PageServer(ThreadingHTTPServer):
    """One page behind its token."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, reception: Reception, *, port: int = 0) -> None:
        self.reception = reception
        self.token = secrets.token_urlsafe(18)
        self._open: OrderedDict[socket.socket, bool] = OrderedDict()
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), PageRequest)

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def trust(self, connection: socket.socket) -> None:
        """Note that a connection has shown the token."""
        with self._open_lock:
            if connection in self._open:
                self._open[connection] = True
                self._open.move_to_end(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; where there are too many, the oldest that never showed the token is closed."""
        with self._open_lock:
            self._open[request] = False
            if len(self._open) > _MOST_CONNECTIONS:
                oldest = next((own for own, trusted in self._open.items() if not trusted), next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
                self._open.pop(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        with self._open_lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break off: browsers do that all the time."""
