"""The page as a widget of a notebook: the same views, asked for over the line between page and kernel.

What is computed is computed by a process of its own, as for the page in a browser: the kernel stays free, and whoever
waits can cancel. All widgets of a kernel share that process.
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
from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.answers import JOBS, VIEWS
from ltinet.explorer.assets import asset_text
from ltinet.explorer.bundle import bundled
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.reception import Computing, Reception, too_large
from ltinet.explorer.uploads import MOST_BYTES

_ASKED = {*VIEWS, *JOBS} - {"open"}


def widget_of(file: DroppedFile | None) -> Any:
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
        _esm, _css = bundled("widget.js"), asset_text("page.css")
        page = traitlets.Unicode(asset_text("index.html")).tag(sync=True)
        start = traitlets.Dict().tag(sync=True)

    reception, tab = Reception(_computing(), file), secrets.token_hex(8)
    widget = ExploreWidget(start=reception.told())

    def take(source: Any, message: Any, buffers: Sequence[Any]) -> None:
        def answer() -> None:
            told, content = reply(reception, message, buffers, tab=tab)
            source.send(told, [content])

        threading.Thread(target=answer, daemon=True).start()  # the kernel goes on, and hears it when this is cancelled

    widget.on_msg(take)
    return widget


def reply(reception: Reception, message: Any, buffers: Sequence[Any], *, tab: str) -> tuple[dict[str, Any], bytes]:
    """What a message from the page is answered with: what stands in front, and the content."""
    query = {str(key): str(own) for key, own in message.get("query", {}).items()}
    found = _answer(reception, str(message.get("kind")), query, buffers, tab)
    told = {"id": message.get("id"), "status": found.status, "type": found.type, "name": found.name}
    return told, found.content


def _answer(reception: Reception, kind: str, query: dict[str, str], buffers: Sequence[Any], tab: str) -> Answer:
    if kind == "upload":
        if sum(len(own) for own in buffers) > MOST_BYTES:
            return too_large()
        return reception.drop(DroppedFile(query.get("name", "")[-200:], b"".join(buffers)), tab=tab)
    if kind == "cancel":
        reception.staff.cancel(tab, query.get("kind", ""))
        return Answer(200, json.dumps({}).encode())
    if kind not in _ASKED:
        return failed("a notebook has no such view", 404)
    return reception.ask(kind, query, tab=tab)


@cache
def _computing() -> Computing:
    """Who computes for all widgets of this kernel."""
    if sys.platform == "win32":
        from ltinet.explorer.alone import Alone

        return Alone()
    from ltinet.explorer.nursery import start_nursery
    from ltinet.explorer.staff import Staff

    staff = Staff(start_nursery())
    atexit.register(staff.close)
    return staff
