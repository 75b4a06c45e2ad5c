"""Notebook widget with the page of the explorer, which sends its requests to the kernel instead of an HTTP server.

Views are computed in a separate process, as for the page in a browser, so that the kernel stays responsive and
requests can be cancelled. All widgets of a kernel share that process.
"""

import atexit
import secrets
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from ltinet._util.text import install_hint
from ltinet.errors import MissingDependencyError
from ltinet.explorer.files import MAX_OPTIONS, MAX_UPLOAD_BYTES, Upload
from ltinet.explorer.page import asset_text, bundle_script
from ltinet.explorer.page_session import PageSession, upload_too_large
from ltinet.explorer.requests import HANDLERS, PageResponse, error_response
from ltinet.explorer.worker_manager import WorkerManager

_REQUEST_KINDS = HANDLERS.keys() - {"open"}


def create_widget(file: Upload | None) -> Any:
    """Return the widget of an upload, or of an example.

    Raise `MissingDependencyError` if anywidget is not installed.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingDependencyError(f"explore in a notebook needs anywidget; {install_hint('jupyter')}") from None

    class ExploreWidget(anywidget.AnyWidget):
        _esm, _css = bundle_script("widget.js"), asset_text("page.css")
        page = traitlets.Unicode(asset_text("index.html")).tag(sync=True)
        start = traitlets.Dict().tag(sync=True)

    session, tab = PageSession(_shared_backend(), file), secrets.token_hex(8)
    widget = ExploreWidget(start=session.start_data())

    def receive(source: Any, message: Any, buffers: Sequence[Any]) -> None:
        def respond() -> None:
            header, content = handle_message(session, message, buffers, tab=tab)
            source.send(header, [content])

        threading.Thread(target=respond, daemon=True).start()  # so that the kernel can receive a cancellation

    widget.on_msg(receive)
    return widget


def handle_message(
    session: PageSession, message: Any, buffers: Sequence[Any], *, tab: str
) -> tuple[dict[str, Any], bytes]:
    """Return the response to a message from the page: its header and its content."""
    query = {str(key): str(value) for key, value in message.get("query", {}).items()}
    response = _answer(session, str(message.get("kind")), query, buffers, tab)
    header = {"id": message.get("id"), "status": response.status, "type": response.type, "name": response.name}
    return header, response.content


def _answer(session: PageSession, kind: str, query: dict[str, str], buffers: Sequence[Any], tab: str) -> PageResponse:
    if kind == "upload":
        if sum(len(buffer) for buffer in buffers) > MAX_UPLOAD_BYTES:
            return upload_too_large()
        return session.drop(
            Upload(query.get("name", "")[-200:], b"".join(buffers), query.get("options", "")[:MAX_OPTIONS]), tab=tab
        )
    if kind == "cancel":
        session.backend.cancel(tab, query.get("kind", ""))
        return PageResponse(200, b"{}")
    if kind == "table":
        return session.table_file()
    if kind not in _REQUEST_KINDS:
        return error_response("there is no such view in a notebook", 404)
    return session.ask(kind, query, tab=tab)


@cache
def _shared_backend() -> WorkerManager:
    """Return the backend of all widgets of this kernel."""
    backend = WorkerManager()
    atexit.register(backend.close)
    return backend
