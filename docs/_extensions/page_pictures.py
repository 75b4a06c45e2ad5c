"""Pictures of a page are those that its own code saves, so that none can be out of date.

A page that shows `_generated/NAME/picture.svg` is run before the build in that folder, NAME being its own path without
suffix and with dashes for slashes.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from page_code import run_page
from sphinx.application import Sphinx

FOLDER = "_generated"


def setup(app: Sphinx) -> dict[str, Any]:
    """Run pages before Sphinx looks for their pictures."""
    app.connect("builder-inited", _make_pictures)
    return {"parallel_read_safe": True}


def _make_pictures(app: Sphinx) -> None:
    os.environ["MPLBACKEND"] = "Agg"
    source = Path(app.srcdir)
    for page in sorted(source.rglob("*.md")):
        folder = source / FOLDER / "-".join(page.relative_to(source).with_suffix("").parts)
        if f"{FOLDER}/{folder.name}/" in page.read_text(encoding="utf-8"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for _ in run_page(page, folder):
                pass
