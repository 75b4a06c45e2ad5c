"""What a measurement gives: a table that is written as JSON, read again, and shown as Markdown."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Cell = str | int | float | None | Mapping[str, float]


@dataclass(frozen=True)
class Table:
    """Rows by name of column. A cell is text, a number, or {median, min, max} of repetitions; None is a gap."""

    name: str
    title: str
    note: str
    columns: dict[str, str]
    """Key of a column to its heading; keys of rows beyond these are for figures and the summary."""
    rows: list[dict[str, Cell]]

    def column(self, key: str) -> list[float]:
        """The numbers of a column, medians of what was repeated; gaps and text left out."""
        cells = [row.get(key) for row in self.rows]
        return [middle(cell) for cell in cells if cell is not None and not isinstance(cell, str)]


def write(table: Table, folder: Path, *, environment: Mapping[str, Any]) -> None:
    """Write a table with the description of the machine that it was measured on."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**asdict(table), "environment": dict(environment)}, indent=1, ensure_ascii=False)
    (folder / f"{table.name}.json").write_text(text + "\n", encoding="utf-8")


def read_all(folder: Path) -> dict[str, tuple[Table, dict[str, Any]]]:
    """All tables of a folder by name, each with its environment."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        environment = content.pop("environment")
        found[path.stem] = (Table(**content), environment)
    return found


def middle(cell: Mapping[str, float] | float) -> float:
    """The median of a cell, or the number that it is."""
    return float(cell["median"] if isinstance(cell, Mapping) else cell)
