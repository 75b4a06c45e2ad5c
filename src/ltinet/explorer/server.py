"""HTTP server of the page on 127.0.0.1: routes, size and time limits, access checks, and start and end of a page.

Every user of the machine can reach 127.0.0.1. A request must name this host, must not come from another origin, and
must carry the random token of the page as the first part of its path, which no other page knows and no browser adds
by itself. Nothing is computed here: `PageSession` answers.
"""

import hmac
import os
import re
import secrets
import socket
import threading
import time
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, final
from urllib.parse import parse_qsl, urlsplit

from ltinet.errors import LtinetError
from ltinet.explorer.files import MAX_OPTIONS, MAX_UPLOAD_BYTES, Upload
from ltinet.explorer.page import DATA_MARK, data_block, page_files, render_page
from ltinet.explorer.page_session import PageSession, upload_too_large
from ltinet.explorer.requests import HANDLERS, PageResponse, error_response
from ltinet.explorer.worker_manager import WorkerManager

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refusal(NamedTuple):
    """Status and message of a request that is rejected."""

    status: int
    sentence: str


def check_request(method: str, path: str, headers: Mapping[str, str], *, port: int, token: str) -> Refusal | None:
    """Return why a request is rejected; None if it is accepted.

    Names of `headers` are lower case. The token is the first part of the path: no other page knows it, and no browser
    adds it by itself as it would a cookie.
    """
    hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
    host = headers.get("host", "")
    if host not in hosts:
        return Refusal(403, "requests must name 127.0.0.1 as their host")
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return Refusal(403, "requests from other pages are not accepted")
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin") and not (site == "none" and method == "GET"):
        return Refusal(403, "requests from other pages are not accepted")
    if "upgrade" in headers:
        return Refusal(400, "protocol upgrades are not supported")
    first_part = path.split("/", 2)[1] if path.startswith("/") else ""
    if not hmac.compare_digest(first_part.encode(), token.encode()):
        return Refusal(403, "the address has no valid token; open the address that was printed when the page started")
    return None


_MAX_CONNECTIONS = 96
_READ_TIMEOUT = 15.0  # seconds for the next bytes of a request
_UPLOAD_TIMEOUT = 120.0  # seconds for a complete file
_TAB = re.compile(r"[0-9a-z]{1,24}", re.ASCII)


@final
class PageServer(ThreadingHTTPServer):
    """Server of one page behind its token."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = os.name == "posix"  # on Windows several programs could listen on the port then

    def __init__(self, session: PageSession, *, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(18)
        self._open: OrderedDict[socket.socket, bool] = OrderedDict()
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), PageRequest)

    @property
    def address(self) -> str:
        """Address of the page, token included."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def trust(self, connection: socket.socket) -> None:
        """Mark a connection that has sent the token."""
        with self._open_lock:
            if connection in self._open:
                self._open[connection] = True
                self._open.move_to_end(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; if there are too many, close the oldest that never sent the token."""
        with self._open_lock:
            self._open[request] = False
            if len(self._open) > _MAX_CONNECTIONS:
                untrusted = (connection for connection, trusted in self._open.items() if not trusted)
                oldest = next(untrusted, next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
                self._open.pop(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Remove a connection that ends."""
        with self._open_lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections, which browsers cause all the time."""


@final
class PageRequest(BaseHTTPRequestHandler):
    """Handler of GET requests, and of POST requests for uploads and cancellations."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "ltinet", ""
    timeout = _READ_TIMEOUT
    disable_nagle_algorithm = True
    wbufsize = -1
    server: PageServer

    def do_GET(self) -> None:
        """Respond with the page, its files, or views."""
        self._respond({"": self._page, "table": self._table, **dict.fromkeys(HANDLERS, self._view)})

    def do_POST(self) -> None:
        """Store an uploaded file, or cancel requests of a tab."""
        self._respond({"upload": self._upload, "cancel": self._cancel})

    def _respond(self, routes: dict[str, Callable[[str], PageResponse]]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        refusal = check_request(self.command, self.path, headers, port=self.server.server_port, token=self.server.token)
        if refusal is not None:
            self.close_connection = True
            self._send(error_response(refusal.sentence, refusal.status))
            return
        self.server.trust(self.connection)
        place = urlsplit(self.path).path.split("/", 2)[2:]
        name = place[0] if place else ""
        if name in routes:
            self._send(routes[name](name))
        elif self.command == "GET" and name in page_files():
            kind, content = page_files()[name]
            self._send(PageResponse(200, content, kind))
        else:
            self.close_connection = True
            self._send(error_response("not found", 404))

    def _page(self, _: str) -> PageResponse:
        page = render_page({DATA_MARK: data_block("start", self.server.session.start_data())})
        return PageResponse(200, page.encode(), "text/html; charset=utf-8")

    def _table(self, _: str) -> PageResponse:
        return self.server.session.table_file()

    def _view(self, kind: str) -> PageResponse:
        query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True, max_num_fields=32))
        tab = self._tab(query.pop("tab", ""))
        return self.server.session.ask(kind, query, tab=tab)

    def _upload(self, _: str) -> PageResponse:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()) or "transfer-encoding" in self.headers:
            return self._closing(error_response("an upload needs its length (Content-Length)", 411))
        if int(length[:12]) > MAX_UPLOAD_BYTES:
            return self._closing(upload_too_large())
        content = self._body(int(length))
        if content is None:
            return self._closing(error_response("the upload is incomplete; try again", 400))
        query = dict(parse_qsl(urlsplit(self.path).query, max_num_fields=4))
        file = Upload(query.get("name", "")[-200:], content, query.get("options", "")[:MAX_OPTIONS])
        return self.server.session.drop(file, tab=self._tab(query.get("tab", "")))

    def _cancel(self, _: str) -> PageResponse:
        self.close_connection = True  # the rest of the request is not read
        query = dict(parse_qsl(urlsplit(self.path).query, max_num_fields=4))
        self.server.session.backend.cancel(self._tab(query.get("tab", "")), query.get("kind", ""))
        return PageResponse(200, b"{}")

    def _tab(self, text: str) -> str:
        return text if _TAB.fullmatch(text) else "?"

    def _body(self, length: int) -> bytes | None:
        parts, deadline = [], time.monotonic() + _UPLOAD_TIMEOUT
        while length:
            part = self.rfile.read1(min(length, 1 << 20))
            if not part or time.monotonic() > deadline:
                return None
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _closing(self, response: PageResponse) -> PageResponse:
        self.close_connection = True
        return response

    def _send(self, response: PageResponse) -> None:
        self.send_response(response.status)
        for name, value in SECURITY_HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", response.type)
        self.send_header("Content-Length", str(len(response.content)))
        if response.name:
            self.send_header("Content-Disposition", f'attachment; filename="{response.name}"')
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(response.content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def run_page(file: Upload | None, *, port: int, browser: bool, callback: Callable[[str], None]) -> None:
    """Serve a page until Ctrl-C."""
    with running_server(file, port=port) as server:
        callback(f"explore at {server.address} (Ctrl-C ends it)")
        if browser:
            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            callback("ended")


@contextmanager
def running_server(file: Upload | None = None, *, port: int = 0) -> Iterator[PageServer]:
    """Yield a server that is ready to serve and computes its first view; stop it at the end of the block."""
    with closing(WorkerManager()) as backend, _server(PageSession(backend, file), port) as server:
        session = server.session
        first_view = partial(session.ask, "view", {"system": session.first.system}, tab="first")
        threading.Thread(target=first_view, daemon=True).start()  # while the browser starts
        yield server


def _server(session: PageSession, port: int) -> PageServer:
    try:
        return PageServer(session, port=port)
    except (OSError, OverflowError) as error:
        raise LtinetError(f"port {port} cannot be used ({error}); leave it out to take any that is free") from None
