"""Hypothesis: a page of another site that knows the address, token and all, can neither read nor change anything."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from explored_page import ServedPage

pytestmark = pytest.mark.slow  # pages in a browser

ATTACKS = {
    "fetch": "fetch(address).then((a) => a.text())",
    "fetch without cors": """fetch(address, {mode: 'no-cors'}).then((a) => a.text())
        .then((a) => a || Promise.reject('opaque'))""",
    "upload": """fetch(address + 'upload?name=a.csv', {method: 'POST', body: 't,u,y\\n0,0,0\\n1,1,1\\n'})
        .then((a) => a.text())""",
    "websocket": """new Promise((yes, no) => {
        const s = new WebSocket(address.replace('http', 'ws') + 'view'); s.onopen = yes; s.onerror = () => no('closed');
    })""",
    "script": """new Promise((yes, no) => {
        const s = document.createElement('script'); s.src = address + 'main.js'; s.type = 'module';
        s.onload = yes; s.onerror = () => no('blocked'); document.head.append(s);
    })""",
    "frame": """new Promise((yes, no) => {
        const f = document.createElement('iframe'); f.src = address; document.body.append(f);
        f.onload = () => { try { f.contentDocument.body ? no('empty') : yes(); } catch { no('foreign'); } };
    })""",
}


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """A page of another origin."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>stranger</title><body>")

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("attack", ATTACKS)
def test_other_pages_are_refused(browser: Any, served: ServedPage, stranger: str, attack: str) -> None:
    before = served.server.session.uploads.listed()
    tab = browser.new_page()
    tab.goto(stranger)
    outcome = tab.evaluate(
        f"(address) => ({ATTACKS[attack]}).then((a) => ['got', String(a)], (e) => ['refused', String(e)])",
        served.server.address,
    )
    assert outcome[0] == "refused"
    assert served.server.session.uploads.listed() == before
    tab.close()


def test_a_form_of_another_page_is_refused(browser: Any, served: ServedPage, stranger: str) -> None:
    before = served.server.session.uploads.listed()
    tab = browser.new_page()
    tab.goto(stranger)
    with tab.expect_navigation():
        tab.evaluate(
            "(address) => { const form = document.createElement('form'); form.method = 'POST'; form.action = address;"
            " document.body.append(form); form.submit(); }",
            f"{served.server.address}upload?name=a.csv",
        )
    assert "requests from other pages are not accepted" in tab.inner_text("body")
    assert served.server.session.uploads.listed() == before
    tab.close()
