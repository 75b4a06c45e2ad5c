"""Bring full runs of `ltinet reproduce` into the documentation: `python docs/refresh_reproduction.py DIR [DIR …]`.

The first run is shown: its `results.json` and those figures that the reproduction page has. All of them together say
how far numbers move with rounding, if each was made with another kernel of BLAS (`OPENBLAS_CORETYPE=Haswell ltinet
reproduce --out DIR`); that goes to `src/ltinet/paper/kernel_bands.json`, where values of kernels that are not among the
runs are kept. A quick run is refused: its numbers are not those of the paper's setup.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from ltinet.paper.comparison import format_number

DOCS = Path(__file__).resolve().parent
BANDS = DOCS.parent / "src" / "ltinet" / "paper" / "kernel_bands.json"


def main(folders: list[Path]) -> None:
    """Write the bands, and copy the first run."""
    runs = [_read(folder) for folder in folders]
    bands = _bands(runs, kept=json.loads(BANDS.read_text(encoding="utf-8")))
    BANDS.write_text(json.dumps(bands, indent=2) + "\n", encoding="utf-8")
    (DOCS / "reproduction" / "results.json").write_text(
        json.dumps(_with_bands(runs[0], bands["numbers"]), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for name in re.findall(r"^```\{reproduced-figure\} (\S+)$", page, flags=re.MULTILINE):
        shutil.copy(folders[0] / "figures" / f"{name}.png", DOCS / "reproduction")


def _read(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    if results["run"]["quick"]:
        sys.exit(f"{folder} is a quick run; make a full one: ltinet reproduce --out {folder}")
    return results


def _bands(runs: list[dict[str, Any]], *, kept: dict[str, Any]) -> dict[str, Any]:
    """Which kernels were run with which versions, and what each number that moved came out as."""
    made, found = dict(kept["runs"]), {key: dict(values) for key, values in kept["numbers"].items()}
    for results in runs:
        kernel = results["run"]["kernel"]
        made[kernel] = results["run"]["versions"]
        for key, number in _numbers(results).items():
            found.setdefault(key, {})[kernel] = number["here"]
    moved = {
        key: values for key, values in found.items() if len({format_number(value) for value in values.values()}) > 1
    }
    return {"runs": made, "numbers": moved}


def _with_bands(results: dict[str, Any], bands: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The results, each number with its band: it was computed with bands that were known before."""
    for key, number in _numbers(results).items():
        values = [number["here"], *bands.get(key, {}).values()]
        number["band"] = (
            [min(values), max(values)] if format_number(min(values)) != format_number(max(values)) else None
        )
    return results


def _numbers(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{name}.{key}": own for name, example in results["examples"].items() for key, own in example["numbers"].items()
    }


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
