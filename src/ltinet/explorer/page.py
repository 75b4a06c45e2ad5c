"""HTML page of the explorer: its static files, its bundled script, and the standalone page.

The JavaScript modules import by name from files beside them, export by keyword, and no two define the same name at
top level; so concatenating them without import lines gives one script. The standalone page contains the views of
every point of the trade-off curve and needs no server; its scripts and styles are allowed by their hashes in the
content security policy.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.text import format_path
from ltinet.errors import FileFormatError
from ltinet.explorer.files import Upload, upload_hash
from ltinet.explorer.state import ViewState
from ltinet.explorer.view_service import ViewService
from ltinet.explorer.views import JSONObject

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def load_assets() -> dict[str, tuple[str, bytes]]:
    """Type and content of every file of the page by its name."""
    found = {}
    for entry in files("ltinet.explorer").joinpath("static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            found[entry.name] = (_TYPES[suffix], entry.read_bytes())
    return found


def asset_text(name: str) -> str:
    """A file of the page as text."""
    return load_assets()[name][1].decode()


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|async function|const|class)", re.MULTILINE)


@cache
def bundle_script(entry: str) -> str:
    """A module with everything that it imports, in the order in which that must stand; exports of the entry stay."""
    order: list[str] = []
    _visit(entry, order, ())
    parts = [_IMPORT.sub("", asset_text(name)) for name in order]
    return "\n".join([*(_EXPORT.sub("", part) for part in parts[:-1]), parts[-1]])


def script_names() -> list[str]:
    """Names of all modules of the page."""
    return sorted(name for name in load_assets() if name.endswith(".js"))


def _visit(name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"{name} imports itself, through {above}")
    if name not in order:
        for _, imported in _IMPORT.findall(asset_text(name)):
            _visit(imported, order, (*above, name))
        order.append(name)


STYLE_FILE, SCRIPT_FILE = "page.css", "main.js"
DATA_MARK = "<!-- data -->"


def render_page(contents: Mapping[str, str]) -> str:
    """The HTML with marks replaced by contents.

    Raises:
        ValueError: a mark does not stand in it exactly once.
    """
    page = asset_text("index.html")
    for mark, content in contents.items():
        if page.count(mark) != 1:
            raise ValueError(f"index.html must have {mark} once")
        page = page.replace(mark, content)
    return page


def data_block(name: str, data: Mapping[str, Any]) -> str:
    """Data inside of HTML, which no browser runs and no text in it can end."""
    written = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{written}</script>'


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """Type and content of what the page asks for: its style, and all its scripts as one, which is one journey."""
    return {
        STYLE_FILE: load_assets()[STYLE_FILE],
        SCRIPT_FILE: (load_assets()[SCRIPT_FILE][0], bundle_script(SCRIPT_FILE).encode()),
    }


_MOST_RUNGS = 48
_SAME = ("before", "title", "notes", "reduction")  # at every budget


def render_shared_page(desk: ViewService, state: ViewState) -> str:
    """The HTML of a page on which a reader can slide the budget of one system."""
    script, style = bundle_script("shared.js"), asset_text(STYLE_FILE)
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    return render_page(
        {
            '<link rel="stylesheet" href="page.css">': f"<style>{style}</style>",
            '<script type="module" src="main.js"></script>': f'<script type="module">{script}</script>',
            "<!-- policy -->": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            DATA_MARK: data_block("data", shared_data(desk, state)),
        }
    )


def write_shared_page(path: str | PathLike[str], file: Upload | None) -> Path:
    """Write the page of a file, or of the first example; its path.

    Raises:
        FileFormatError: it cannot be written there, or does not end in .html.
    """
    target, desk, state = Path(path), ViewService(), ViewState()
    if target.suffix.lower() not in (".html", ".htm"):
        raise FileFormatError(f"{format_path(path)} does not end in .html, as the file of a page does")
    if file is not None:
        desk.files[upload_hash(file)] = file
        state = ViewState(system=f"file:{upload_hash(file)}")
    content = render_shared_page(desk, state).encode()
    try:
        write_file_atomically(target, content)
    except OSError as error:
        raise FileFormatError(
            f"{format_path(path)} cannot be written ({error.strerror}); choose another place"
        ) from None
    return target


def shared_data(desk: ViewService, state: ViewState) -> JSONObject:
    """What every budget buys, told once where it is the same."""
    subject = desk.subject(state)
    chosen = _select_points(len(subject.budgets), subject.place(state.k))
    views = []
    for place in chosen:
        own = replace(state, k=subject.budgets[place], pick=None)
        views.append({**desk.view(own), "band": desk.band(own)})
    first = views[0]
    bode = {name: first["bode"][name] for name in ("omega", "system", "system_phase")}
    return {
        "state": state.query(),
        "same": {name: first[name] for name in _SAME},
        "bode": bode,
        "trade": first["trade"],
        "places": chosen,
        "views": [_without_common_parts(view) for view in views],
    }


def _without_common_parts(view: JSONObject) -> JSONObject:
    """Without what is the same in all of them."""
    kept: dict[str, Any] = {name: own for name, own in view.items() if name not in (*_SAME, "trade")}
    kept["bode"] = {name: view["bode"][name] for name in ("network", "network_phase", "difference")}
    return kept


def _select_points(count: int, place: int) -> list[int]:
    """All rungs, or of very many some that are spread over all, this one among them."""
    spread = np.linspace(0, count - 1, min(count, _MOST_RUNGS)).round().astype(int).tolist()
    return sorted({*spread, place})


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
