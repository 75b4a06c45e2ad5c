"""The HTTP server of the page, for this machine alone: connections, routes, time limits and size limits.

Nothing is computed here: `Reception` answers.
"""

import re
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, final
from urllib.parse import parse_qsl, urlsplit

from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.answers import JOBS, VIEWS
from ltinet.explorer.checks import HEADERS, refusal
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.page import DATA, data_block, page_files, page_with
from ltinet.explorer.reception import Reception, too_large
from ltinet.explorer.uploads import MOST_BYTES

_MOST_CONNECTIONS = 96
_PATIENCE = 15.0  # seconds for the next bytes of a request
_LONGEST_UPLOAD = 120.0  # seconds for all of a file
_TAB = re.compile(r"[0-9a-z]{1,24}", re.ASCII)


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


@final
class PageRequest(BaseHTTPRequestHandler):
    """Answers to GET, and to POST for what changes something: a file that is dropped, a computation that is ended."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ltinet", ""
    timeout = _PATIENCE
    disable_nagle_algorithm = True
    wbufsize = -1
    server: PageServer

    def do_GET(self) -> None:
        """The page, its files, and views."""
        self._answer({"": self._page, **dict.fromkeys((*VIEWS, *JOBS), self._ask)})

    def do_POST(self) -> None:
        """A dropped file, or the end of what a tab waits for."""
        self._answer({"upload": self._upload, "cancel": self._cancel})

    def _answer(self, routes: dict[str, Callable[[str], Answer]]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = refusal(self.command, self.path, headers, port=self.server.server_port, token=self.server.token)
        if found is not None:
            self.close_connection = True
            self._send(failed(found.sentence, found.status))
            return
        self.server.trust(self.connection)
        place = urlsplit(self.path).path.split("/", 2)[2:]
        name = place[0] if place else ""
        if name in routes:
            self._send(routes[name](name))
        elif self.command == "GET" and name in page_files():
            kind, content = page_files()[name]
            self._send(Answer(200, content, kind))
        else:
            self.close_connection = True
            self._send(failed("there is nothing of this name here", 404))

    def _page(self, _: str) -> Answer:
        page = page_with({DATA: data_block("start", self.server.reception.told())})
        return Answer(200, page.encode(), "text/html; charset=utf-8")

    def _ask(self, kind: str) -> Answer:
        query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True, max_num_fields=32))
        tab = self._tab(query.pop("tab", ""))
        return self.server.reception.ask(kind, query, tab=tab)

    def _upload(self, _: str) -> Answer:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()) or "transfer-encoding" in self.headers:
            return self._closing(failed("a file comes with its length", 411))
        if int(length[:12]) > MOST_BYTES:
            return self._closing(too_large())
        content = self._body(int(length))
        if content is None:
            return self._closing(failed("the file broke off", 400))
        query = dict(parse_qsl(urlsplit(self.path).query, max_num_fields=4))
        file = DroppedFile(query.get("name", "")[-200:], content)
        return self.server.reception.drop(file, tab=self._tab(query.get("tab", "")))

    def _cancel(self, _: str) -> Answer:
        self.close_connection = True  # whatever else was sent is not read
        query = dict(parse_qsl(urlsplit(self.path).query, max_num_fields=4))
        self.server.reception.staff.cancel(self._tab(query.get("tab", "")), query.get("kind", ""))
        return Answer(200, b"{}")

    def _tab(self, text: str) -> str:
        return text if _TAB.fullmatch(text) else "?"

    def _body(self, length: int) -> bytes | None:
        parts, deadline = [], time.monotonic() + _LONGEST_UPLOAD
        while length:
            part = self.rfile.read1(min(length, 1 << 20))
            if not part or time.monotonic() > deadline:
                return None
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _closing(self, answer: Answer) -> Answer:
        self.close_connection = True
        return answer

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.content)))
        if answer.name:
            self.send_header("Content-Disposition", f'attachment; filename="{answer.name}"')
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address of the page was printed, and that is all."""
