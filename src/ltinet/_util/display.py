"""Display of objects: names listed by `dir()`, tables for terminals and notebooks, HTML pages.

All cell texts are escaped. Tables of more than 40 rows show the first and the last 20. HTML pages contain their style
sheet and need neither scripts nor a network connection.
"""

from collections.abc import Sequence
from html import escape
from importlib import resources

# MERGED ltinet._util.display
# What `dir()` and completion show of an object: what its users may use, not what the rooms here hand each other.


def dir_without(thing: object, *inner: str) -> list[str]:
    """The names that `dir()` lists, without inner ones; these stay reachable."""
    return sorted(set(object.__dir__(thing)) - set(inner))


# MERGED ltinet._util.display
# Tables as a terminal and a notebook show them; every text is taken as text, whatever marks it has.

Row = Sequence[str]
_MAX_ROWS = 40  # of more the first and the last


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


def html_properties(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it labels and values, for a notebook."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for label, value in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def displayed_rows(count: int) -> list[int | None]:
    """Which rows of so many a table shows; None stands for those that it leaves out."""
    if count <= _MAX_ROWS:
        return list(range(count))
    return [*range(_MAX_ROWS // 2), None, *range(count - _MAX_ROWS // 2, count)]


def omission_row(count: int, n_columns: int) -> list[str]:
    """The row that says how many of so many rows are not shown."""
    return [f"⋮ {count - _MAX_ROWS} more", *[""] * (n_columns - 1)]


# MERGED ltinet._util.display
# Self-contained HTML pages: the style sheet is in the page, and neither scripts nor a network are needed.


def html_page(title: str, body: str) -> str:
    """Return a whole page with the common style sheet; `body` is HTML, `title` plain text."""
    style = resources.files("ltinet").joinpath("html_page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'  # otherwise browsers request an icon from the server
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
