"""Display of objects: names listed by `dir()`, tables for terminals and notebooks, HTML pages.

All cell texts are escaped. Tables of more than 40 rows show the first and the last 20. HTML pages contain their style
sheet and need neither scripts nor a network connection.
"""

from collections.abc import Sequence
from html import escape
from importlib import resources


def dir_without(obj: object, *hidden: str) -> list[str]:
    """Return the names that `dir(obj)` lists, without internal ones."""
    return sorted(set(object.__dir__(obj)) - set(hidden))


Row = Sequence[str]
_MAX_ROWS = 40  # of longer tables the first and the last 20 rows are shown


def text_table(headings: Row, rows: Sequence[Row]) -> str:
    """Format a table as text with right-aligned columns."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def html_table(headings: Row, rows: Sequence[Row]) -> str:
    """Format a table as HTML with right-aligned columns."""
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_properties(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Format labels and values under a title as an HTML table."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for label, value in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def displayed_rows(count: int) -> list[int | None]:
    """Return the indices of the rows that a table of `count` rows shows; None marks the omitted ones."""
    if count <= _MAX_ROWS:
        return list(range(count))
    return [*range(_MAX_ROWS // 2), None, *range(count - _MAX_ROWS // 2, count)]


def omission_row(count: int, n_columns: int) -> list[str]:
    """Return the row that states how many of `count` rows are omitted."""
    return [f"⋮ {count - _MAX_ROWS} more", *[""] * (n_columns - 1)]


def html_page(title: str, body: str) -> str:
    """Return a complete page with the common style sheet; `body` is HTML, `title` plain text."""
    style = resources.files("ltinet._util").joinpath("html_page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'  # otherwise browsers request an icon from the server
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
