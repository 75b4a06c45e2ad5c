"""The page as a widget of a notebook: the same views, asked for over the line between page and kernel."""

import json
from typing import Any

from ltinet.errors import MissingDependencyError
from ltinet.explorer.answers import answered
from ltinet.explorer.assets import asset_text
from ltinet.explorer.bundle import bundled
from ltinet.explorer.desk import Desk
from ltinet.explorer.examples import EXAMPLES
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.state import State
from ltinet.explorer.uploads import hash_of

_ASKED = ("view", "band", "engines", "script")


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

    desk = Desk()
    widget = ExploreWidget(start=_start(desk, file))
    widget.on_msg(lambda source, message, buffers: source.send(reply(desk, message)))  # noqa: ARG005 - its signature
    return widget


def reply(desk: Desk, message: Any) -> dict[str, Any]:
    """What a message from the page is answered with."""
    kind, query = message.get("kind"), message.get("query", {})
    if kind not in _ASKED:
        return {"id": message.get("id"), "status": 404, "text": json.dumps({"error": "a notebook has no such view"})}
    found = answered(desk, kind, {str(key): str(value) for key, value in query.items()})
    return {"id": message.get("id"), "status": found.status, "text": found.content.decode(), "name": found.name}


def _start(desk: Desk, file: DroppedFile | None) -> dict[str, Any]:
    examples = [{"name": f"example:{name}", "title": own.title} for name, own in EXAMPLES.items()]
    if file is None:
        return {"first": State().query(), "examples": examples, "files": []}
    digest = hash_of(file)
    desk.files[digest] = file
    told = [{"hash": digest, "name": file.title, "kind": "given"}]
    return {"first": State(system=f"file:{digest}").query(), "examples": examples, "files": told}
