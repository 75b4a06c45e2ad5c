"""Bring a run of `ltinet reproduce --out DIR` into the documentation: `python docs/refresh_reproduction.py DIR`.

Copies `results.json` and those figures that the reproduction page shows. A quick run is refused: its numbers are not
those of the paper's setup.
"""

import json
import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def main(run: Path) -> None:
    """Copy the run."""
    results = run / "results.json"
    if json.loads(results.read_text(encoding="utf-8"))["run"]["quick"]:
        sys.exit(f"{run} is a quick run; make a full one: ltinet reproduce --out {run}")
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    shutil.copy(results, DOCS / "reproduction")
    for name in re.findall(r"^```\{reproduced-figure\} (\S+)$", page, flags=re.MULTILINE):
        shutil.copy(run / "figures" / f"{name}.png", DOCS / "reproduction")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
