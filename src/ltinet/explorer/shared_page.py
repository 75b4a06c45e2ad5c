"""The page as one file without a server: every rung computed beforehand, scripts and styles allowed by their hashes."""

import base64
import hashlib
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ltinet.atomic import write_whole
from ltinet.errors import FileFormatError
from ltinet.explorer.assets import asset_text
from ltinet.explorer.bundle import bundled
from ltinet.explorer.desk import Desk
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.page import DATA, STYLE, data_block, page_with
from ltinet.explorer.state import State
from ltinet.explorer.uploads import hash_of
from ltinet.explorer.views.numbers import Plain
from ltinet.shown import shown_path

_MOST_RUNGS = 48
_SAME = ("before", "title", "remarks", "reduction")  # at every budget


def shared_page(desk: Desk, state: State) -> str:
    """The HTML of a page on which a reader can slide the budget of one system."""
    script, style = bundled("shared.js"), asset_text(STYLE)
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    return page_with(
        {
            '<link rel="stylesheet" href="page.css">': f"<style>{style}</style>",
            '<script type="module" src="main.js"></script>': f'<script type="module">{script}</script>',
            "<!-- policy -->": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            DATA: data_block("data", shared_data(desk, state)),
        }
    )


def write_shared_page(path: str | PathLike[str], file: DroppedFile | None) -> Path:
    """Write the page of a file, or of the first example; its path.

    Raises:
        FileFormatError: it cannot be written there, or does not end in .html.
    """
    target, desk, state = Path(path), Desk(), State()
    if target.suffix.lower() not in (".html", ".htm"):
        raise FileFormatError(f"{shown_path(path)} does not end in .html, as the file of a page does")
    if file is not None:
        desk.files[hash_of(file)] = file
        state = State(system=f"file:{hash_of(file)}")
    content = shared_page(desk, state).encode()
    try:
        write_whole(target, content)
    except OSError as error:
        raise FileFormatError(
            f"{shown_path(path)} cannot be written ({error.strerror}); choose another place"
        ) from None
    return target


def shared_data(desk: Desk, state: State) -> Plain:
    """What every budget buys, told once where it is the same."""
    subject = desk.subject(state)
    chosen = _chosen(len(subject.budgets), subject.place(state.k))
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
        "views": [_shortened(view) for view in views],
    }


def _shortened(view: Plain) -> Plain:
    """Without what is the same in all of them."""
    kept: dict[str, Any] = {name: own for name, own in view.items() if name not in (*_SAME, "trade")}
    kept["bode"] = {name: view["bode"][name] for name in ("network", "network_phase", "difference")}
    return kept


def _chosen(count: int, place: int) -> list[int]:
    """All rungs, or of very many some that are spread over all, this one among them."""
    spread = np.linspace(0, count - 1, min(count, _MOST_RUNGS)).round().astype(int).tolist()
    return sorted({*spread, place})


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
