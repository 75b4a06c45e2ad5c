"""A page that is served, and requests to it as programs make them that are no browsers."""

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

from ltinet.explorer.server import PageServer


@dataclass(frozen=True)
class ServedPage:
    """The server, and what is asked of it."""

    server: PageServer

    @property
    def port(self) -> int:
        return self.server.server_port

    def raw(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and content of any request."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                line.putheader(name.replace("_", "-"), value)
            if body is not None and "Content_Length" not in headers:
                line.putheader("Content-Length", str(len(body)))
            line.endheaders(body)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """With the token."""
        return self.raw("GET", f"/{self.server.token}/{path}", **headers)

    def view(self, query: str = "system=example:triangular") -> dict[str, Any]:
        """A view that must be there."""
        status, content = self.get(f"view?{query}")
        assert status == 200, content
        return json.loads(content)

    def upload(self, name: str, content: bytes) -> tuple[int, dict[str, Any]]:
        """Drop a file."""
        from urllib.parse import quote

        status, answer = self.raw("POST", f"/{self.server.token}/upload?name={quote(name)}", content)
        return status, json.loads(answer)

    def connection(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)
