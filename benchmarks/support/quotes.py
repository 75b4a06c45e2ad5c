"""Numbers in README and docs are those of the last full run: they stand between marks and are written from the results.

    <!-- results:simulation -->…<!-- /results -->                                     a whole table
    <!-- results:simulation | case, scipy.signal.lsim -->…<!-- /results -->           some of its columns
    <!-- value:simulation | iss | scipy.signal.lsim -->…<!-- /value -->               the median of one cell, in a line

`python -m benchmarks --quote` writes them all; a test fails where a text differs from what that would write.
"""

import re
from pathlib import Path

from benchmarks.support.markdown import cell_text, number, render
from benchmarks.support.table import Table

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"(<!-- results:([^|>]+?)(?:\|([^>]*?))? -->)(.*?)(<!-- /results -->)", re.DOTALL)
VALUE = re.compile(r"(<!-- value:([^|>]+)\|([^|>]+)\|([^|>]+?) -->)(.*?)(<!-- /value -->)")


def quoting_files() -> list[Path]:
    """README and the pages of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_quotes(text: str, tables: dict[str, Table]) -> str:
    """The text with all that stands between marks written anew."""

    def table(match: re.Match[str]) -> str:
        columns = [key.strip() for key in match[3].split(",")] if match[3] else None
        return f"{match[1]}\n\n{render(tables[match[2].strip()], columns)}\n\n{match[5]}"

    def value(match: re.Match[str]) -> str:
        found, row, column = tables[match[2].strip()], match[3].strip(), match[4].strip()
        first = next(iter(found.columns))
        cell = next(entry for entry in found.rows if entry[first] == row)[column]
        return match[1] + (number(cell["median"]) if isinstance(cell, dict) else cell_text(cell)) + match[6]

    return VALUE.sub(value, TABLE.sub(table, text))


def n_quotes(text: str) -> int:
    """How many marks a text has."""
    return len(TABLE.findall(text)) + len(VALUE.findall(text))
