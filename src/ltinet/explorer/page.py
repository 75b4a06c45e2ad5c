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
from ltinet._util.text import format_path, sanitize
from ltinet.errors import FileFormatError
from ltinet.explorer.files import TABLE_SUFFIXES, Upload, upload_hash
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
    """Return type and content of every static file by its name."""
    entries = {entry.name: entry for entry in files("ltinet.explorer").joinpath("static").iterdir()}
    types = {name: _TYPES.get(Path(name).suffix) for name in entries}
    return {name: (kind, entries[name].read_bytes()) for name, kind in types.items() if kind is not None}


def asset_text(name: str) -> str:
    """Return a static file as text."""
    return load_assets()[name][1].decode()


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|async function|const|class)", re.MULTILINE)


@cache
def bundle_script(entry: str) -> str:
    """Return a module with everything that it imports in one script; exports of the entry module stay."""
    order: list[str] = []
    _visit(entry, order, ())
    parts = [_IMPORT.sub("", asset_text(name)) for name in order]
    return "\n".join([*(_EXPORT.sub("", part) for part in parts[:-1]), parts[-1]])


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
    """Return the HTML with marks replaced by contents; each mark must occur once."""
    page = asset_text("index.html")
    for mark, content in contents.items():
        if page.count(mark) != 1:
            raise ValueError(f"index.html must have {mark} once")
        page = page.replace(mark, content)
    return page


def data_block(name: str, data: Mapping[str, Any]) -> str:
    """Return data as JSON in HTML, which browsers do not execute and which no text in it can end."""
    written = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{written}</script>'


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """Return type and content of the two files that the page loads: its style, and all its scripts as one."""
    return {
        STYLE_FILE: load_assets()[STYLE_FILE],
        SCRIPT_FILE: (load_assets()[SCRIPT_FILE][0], bundle_script(SCRIPT_FILE).encode()),
    }


_MAX_POINTS = 48  # of the trade-off curve in a standalone page, which has some 60 kB for each
_COMMON = ("before", "title", "notes", "reduction")  # parts of a view that do not depend on the limit on cond(T)


def render_shared_page(service: ViewService, state: ViewState) -> str:
    """Return the HTML of a standalone page of one system."""
    script, style = bundle_script("shared.js"), asset_text(STYLE_FILE)
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    return render_page(
        {
            '<link rel="stylesheet" href="page.css">': f"<style>{style}</style>",
            '<script type="module" src="main.js"></script>': f'<script type="module">{script}</script>',
            "<!-- policy -->": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            DATA_MARK: data_block("data", shared_data(service, state)),
        }
    )


def write_shared_page(path: str | PathLike[str], file: Upload | None) -> Path:
    """Write the standalone page of an upload, or of the first example; return its path.

    Raise `FileFormatError` if it cannot be written, or does not end in .html.
    """
    target, service, state = Path(path), ViewService(), ViewState()
    if target.suffix.lower() not in (".html", ".htm"):
        raise FileFormatError(f"{format_path(path)} is not the name of a page; it must end in .html")
    if file is not None and file.suffix in TABLE_SUFFIXES:
        raise FileFormatError(
            f"{sanitize(file.name)} is a table, and a standalone page needs a model; identify one first: ltinet identify "
            f"{sanitize(file.name)} --inputs … --outputs … -o net.safetensors"
        )
    if file is not None:
        service.files[upload_hash(file)] = file
        state = ViewState(system=f"file:{upload_hash(file)}")
    content = render_shared_page(service, state).encode()
    try:
        write_file_atomically(target, content)
    except OSError as error:
        raise FileFormatError(
            f"{format_path(path)} cannot be written ({error.strerror}); choose another place"
        ) from None
    return target


def shared_data(service: ViewService, state: ViewState) -> JSONObject:
    """Return the views of all limits, with common parts stored once."""
    subject = service.subject(state)
    count = len(subject.budgets)
    spread = np.linspace(0, count - 1, min(count, _MAX_POINTS)).round().astype(int).tolist()
    chosen = sorted({*spread, subject.point_index(state.k)})
    views = []
    for index in chosen:
        point = replace(state, k=subject.budgets[index], pick=None)
        views.append({**service.view(point), "band": service.band(point)})
    first = views[0]
    return {
        "state": state.query(),
        "same": {name: first[name] for name in _COMMON},
        "bode": {name: first["bode"][name] for name in ("omega", "system", "system_phase")},
        "trade": first["trade"],
        "places": chosen,
        "views": [_without_common_parts(view) for view in views],
    }


def _without_common_parts(view: JSONObject) -> JSONObject:
    """Return a view without the parts that all views have in common."""
    parts: dict[str, Any] = {name: part for name, part in view.items() if name not in (*_COMMON, "trade")}
    parts["bode"] = {name: view["bode"][name] for name in ("network", "network_phase", "difference")}
    return parts


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
