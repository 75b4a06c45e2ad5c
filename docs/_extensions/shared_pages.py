"""Pages that the code of a page writes, `_generated/NAME/page.html`, go along with the documentation, to be framed."""

import shutil
from pathlib import Path
from typing import Any

from page_pictures import FOLDER
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy them when everything else is written."""
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True}


def _copy(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for page in (Path(app.srcdir) / FOLDER).glob("*/*.html"):
            target = Path(app.outdir) / page.relative_to(app.srcdir)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target)
