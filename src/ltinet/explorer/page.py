"""The page as HTML with what it begins with inside, and the two files that it asks its server for."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from ltinet.explorer.assets import asset_text, assets
from ltinet.explorer.bundle import bundled

STYLE, SCRIPT = "page.css", "main.js"
DATA = "<!-- data -->"


def page_with(contents: Mapping[str, str]) -> str:
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
    return {STYLE: assets()[STYLE], SCRIPT: (assets()[SCRIPT][0], bundled(SCRIPT).encode())}
