"""The files of the page, read once: a name that a browser asks for is looked up and never opened."""

from functools import cache
from importlib.resources import files

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """Type and content of every file of the page by its name."""
    found = {}
    for entry in files("ltinet.explorer").joinpath("static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            found[entry.name] = (_TYPES[suffix], entry.read_bytes())
    return found


def asset_text(name: str) -> str:
    """A file of the page as text."""
    return assets()[name][1].decode()
