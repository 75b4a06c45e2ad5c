"""Notebook widget with the page of the explorer, which talks to the kernel instead of an HTTP server.

Views are computed in a separate process, as for the page in a browser, so that the kernel stays free and requests
can be cancelled. All widgets of a kernel share that process.
"""

import atexit
import json
import secrets
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from ltinet.errors import MissingDependencyError
from ltinet.explorer.files import MAX_UPLOAD_BYTES, Upload
from ltinet.explorer.page import asset_text, bundle_script
from ltinet.explorer.page_session import ComputeBackend, PageSession, upload_too_large
from ltinet.explorer.requests import JOBS, VIEWS, PageResponse, error_response

_REQUEST_KINDS = {*VIEWS, *JOBS} - {"open"}


def create_widget(file: Upload | None) -> Any:
    """The widget of a system, a network, or an example.

    Raises:
        MissingDependencyError: anywidget is not installed.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingDependencyError(
            "explore in a notebook needs anywidget; install it with pip install 'ltinet[jupyter]'"
        ) from None

    class ExploreWidget(anywidget.AnyWidget):
        _esm, _css = bundle_script("widget.js"), asset_text("page.css")
        page = traitlets.Unicode(asset_text("index.html")).tag(sync=True)
        start = traitlets.Dict().tag(sync=True)

    reception, tab = PageSession(_shared_backend(), file), secrets.token_hex(8)
    widget = ExploreWidget(start=reception.told())

    def take(source: Any, message: Any, buffers: Sequence[Any]) -> None:
        def answer() -> None:
            told, content = handle_message(reception, message, buffers, tab=tab)
            source.send(told, [content])

        threading.Thread(target=answer, daemon=True).start()  # the kernel goes on, and hears it when this is cancelled

    widget.on_msg(take)
    return widget


def handle_message(
    reception: PageSession, message: Any, buffers: Sequence[Any], *, tab: str
) -> tuple[dict[str, Any], bytes]:
    """What a message from the page is answered with: what stands in front, and the content."""
    query = {str(key): str(own) for key, own in message.get("query", {}).items()}
    found = _answer(reception, str(message.get("kind")), query, buffers, tab)
    told = {"id": message.get("id"), "status": found.status, "type": found.type, "name": found.name}
    return told, found.content


def _answer(reception: PageSession, kind: str, query: dict[str, str], buffers: Sequence[Any], tab: str) -> PageResponse:
    if kind == "upload":
        if sum(len(own) for own in buffers) > MAX_UPLOAD_BYTES:
            return upload_too_large()
        return reception.drop(Upload(query.get("name", "")[-200:], b"".join(buffers)), tab=tab)
    if kind == "cancel":
        reception.staff.cancel(tab, query.get("kind", ""))
        return PageResponse(200, json.dumps({}).encode())
    if kind not in _REQUEST_KINDS:
        return error_response("a notebook has no such view", 404)
    return reception.ask(kind, query, tab=tab)


@cache
def _shared_backend() -> ComputeBackend:
    """Who computes for all widgets of this kernel."""
    if sys.platform == "win32":
        from ltinet.explorer.page_session import InProcessWorker

        return InProcessWorker()
    from ltinet.explorer.worker_manager import WorkerManager, start_fork_server

    staff = WorkerManager(start_fork_server())
    atexit.register(staff.close)
    return staff
