"""Tables as a terminal and a notebook show them; every text is taken as text, whatever marks it has."""

from collections.abc import Sequence
from html import escape

Row = Sequence[str]
_MOST_ROWS = 40  # of more the first and the last


def text_table(headings: Row, rows: Sequence[Row]) -> str:
    """Headings and rows in columns that are aligned at their right."""
    lines = [headings, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(headings))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def html_table(headings: Row, rows: Sequence[Row]) -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it labels and values, for a notebook."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for label, value in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def shown_places(count: int) -> list[int | None]:
    """Which rows of so many a table shows; None stands for those that it leaves out."""
    if count <= _MOST_ROWS:
        return list(range(count))
    return [*range(_MOST_ROWS // 2), None, *range(count - _MOST_ROWS // 2, count)]


def left_out(count: int, n_columns: int) -> list[str]:
    """The row that says how many of so many rows are not shown."""
    return [f"⋮ {count - _MOST_ROWS} more", *[""] * (n_columns - 1)]
