"""All scripts of the page as one, for places that take a single file: a shared page, a notebook.

The modules are written for it: they import by name from their neighbours, export by word, and no two of them define the
same name at the top. So one after the other, without those lines, they are one script.
"""

import re
from functools import cache

from ltinet.explorer.assets import asset_text, assets

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|async function|const|class)", re.MULTILINE)


@cache
def bundled(entry: str) -> str:
    """A module with everything that it imports, in the order in which that must stand; exports of the entry stay."""
    order: list[str] = []
    _visit(entry, order, ())
    parts = [_IMPORT.sub("", asset_text(name)) for name in order]
    return "\n".join([*(_EXPORT.sub("", part) for part in parts[:-1]), parts[-1]])


def modules() -> list[str]:
    """Names of all modules of the page."""
    return sorted(name for name in assets() if name.endswith(".js"))


def _visit(name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"{name} imports itself, through {above}")
    if name not in order:
        for _, imported in _IMPORT.findall(asset_text(name)):
            _visit(imported, order, (*above, name))
        order.append(name)
