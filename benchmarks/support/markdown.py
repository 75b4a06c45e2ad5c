"""Tables as Markdown. No other place formats a number, so that what is quoted is what was measured."""

from collections.abc import Mapping, Sequence

from benchmarks.support.table import Cell, Table


def render(table: Table, columns: Sequence[str] | None = None) -> str:
    """The table, or some of its columns; rows that have nothing in any of these are left out."""
    chosen = list(columns or table.columns)
    rows = [row for row in table.rows if any(row.get(key) is not None for key in chosen[1:])]
    lines = ["| " + " | ".join(table.columns[key] for key in chosen) + " |", "|" + "---|" * len(chosen)]
    return "\n".join([*lines, *("| " + " | ".join(cell_text(row.get(key)) for key in chosen) + " |" for row in rows)])


def cell_text(cell: Cell) -> str:
    """A number in three digits, repeated measurements as median (smallest … largest), a gap as a dash."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Mapping):
        return f"{number(cell['median'])} ({number(cell['min'])} … {number(cell['max'])})"
    return number(cell)


def number(value: float) -> str:
    """Three digits; errors and other tiny numbers in powers of ten."""
    if isinstance(value, int):
        return str(value)
    if abs(value) >= 100.0:
        return f"{value:.0f}"
    if 0.0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:#.3g}".rstrip(".")
