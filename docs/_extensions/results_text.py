"""`results.json` of `ltinet reproduce` as text of the reproduction page: every number comes from the file."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ltinet.paper.comparison import Verdict, format_number
from ltinet.paper.report import VERDICT_MARKS, format_band

RESULTS = Path(__file__).resolve().parents[1] / "reproduction" / "results.json"
MISSING = (
    ":::{note}\nThis build has no results. `ltinet reproduce --out DIR` writes them, and "
    "`docs/refresh_reproduction.py DIR` brings them here.\n:::\n"
)


def read_results() -> dict[str, Any] | None:
    """The results of the last reproduction that was kept, None if there is none."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None


def summary_text(results: Mapping[str, Any]) -> str:
    """How the results were made, and how many numbers got which verdict."""
    run = results["run"]
    numbers = [number for example in results["examples"].values() for number in example["numbers"].values()]
    counts = Counter(number["verdict"] for number in numbers)
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    rows = "\n".join(f"| {VERDICT_MARKS[own]} {own} | {counts[own]} |" for own in Verdict if counts[own])
    quick = f"\n**A quick run.** {run['quick_note']}\n" if run["quick"] else ""
    made = f"Made by `{run['command']}` with {versions}, and the rounding of BLAS kernel {run['kernel']}."
    return f"{made}\n{quick}\n| verdict | numbers |\n|---|---|\n{rows}\n"


def numbers_text(example: Mapping[str, Any]) -> str:
    """All numbers of one example: the paper's, the one found here, what counts as reproduced, the verdict."""
    rows = "\n".join(_row(number) for number in example["numbers"].values())
    return f"| number | paper | here | expected | verdict |\n|---|---|---|---|---|\n{rows}\n"


def _row(number: Mapping[str, Any]) -> str:
    meaning = f"{number['meaning']} *({number['note'].rstrip('.')})*" if number["note"] else number["meaning"]
    verdict = f"{VERDICT_MARKS[Verdict(number['verdict'])]} {number['verdict']}".replace(" ", "\N{NO-BREAK SPACE}")
    band = f" ({format_band(number['band'])})" if number["band"] else ""
    cells = (meaning, _shown(number["paper"]), _shown(number["here"]) + band, number["expected"], verdict)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else format_number(value)
