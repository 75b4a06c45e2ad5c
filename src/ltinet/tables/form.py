"""Everything that is decided before the first row is read: dialect, header, columns."""

from dataclasses import dataclass, replace
from typing import final

from ltinet.errors import FileFormatError
from ltinet.shown import count_of
from ltinet.tables.cells import shown_cell, without_thousands
from ltinet.tables.columns import Columns, columns_of
from ltinet.tables.dialect import CANDIDATES, NAMES, Dialect, decimal_of
from ltinet.tables.layout import Layout, layout_of, lines_of
from ltinet.tables.options import TableOptions
from ltinet.tables.source import HEAD, Block

_LINES = 400  # that are looked at; all of the beginning if there are no rows among them


@final
class NoRowsError(FileFormatError):
    """There are no rows of numbers; in a stream they may still come."""


@final
@dataclass(frozen=True)
class Form:
    """How a table is written, and what its columns are."""

    title: str
    dialect: Dialect
    columns: Columns
    first_line: int
    """Where the rows begin."""
    remarks: tuple[str, ...]

    @property
    def n_columns(self) -> int:
        """Cells of each row."""
        return len(self.columns.names)

    def with_decimal(self, decimal: str | None) -> "Form":
        """The same with a decimal mark that was seen later."""
        return replace(self, dialect=replace(self.dialect, decimal=decimal))


def form_of(head: Block, options: TableOptions, title: str) -> Form:
    """Find out how a table is written from its beginning.

    Raises:
        FileFormatError: there is no table, or more than one way to read it.
    """
    text = head.content[: head.content.rfind(b"\n", 0, HEAD) + 1 or len(head.content)].decode()
    if not text.strip():
        raise NoRowsError(f"{title} is empty; expected is a header such as t,u1,u2 and a line for each time")
    first = "\n".join(text.split("\n", _LINES)[:_LINES])
    try:
        delimiter, layout = _chosen(first, options, title)
    except NoRowsError:
        delimiter, layout = _chosen(text, options, title)
    if layout.header is None and options.header is not False:
        raise FileFormatError(
            f"{title} has no header: its first line is numbers; put one such as t,u1,u2 above, or say that there is "
            'none and which column is the time, with header=False and time="1"'
        )
    if not layout.fits and layout.header is not None:
        raise FileFormatError(
            wrong_count(f"{title}, line {layout.first_line}", layout.rows[0].cells, layout.header.cells)
        )
    columns = columns_of(layout, options, title)
    decimal = options.decimal
    if decimal is None:
        read = [[row.cells[k] for k in _read(columns) if k < len(row.cells)] for row in layout.rows]
        rows = [[without_thousands(cell, options.thousands) for cell in row] for row in read]
        decimal = decimal_of(rows, delimiter, f"{title}:")
    return Form(
        title, Dialect(delimiter, decimal, options.thousands), columns, layout.first_line, _remarks(layout, columns)
    )


def wrong_count(place: str, cells: list[str], names: object) -> str:
    """What to say of a row that has more or fewer cells than the header."""
    expected = len(names) if isinstance(names, list | tuple) else names
    return (
        f"{place} has {count_of(len(cells), 'cell')} but the header has {expected}; fill or remove cells, write "
        'decimal points where commas separate the columns, or say what separates them, as in delimiter=";"'
    )


def _chosen(text: str, options: TableOptions, title: str) -> tuple[str, Layout]:
    """The delimiter that gives a header and rows of numbers; only if none of the others does, blanks are one."""
    wanted = CANDIDATES if options.delimiter is None else (options.delimiter,)
    found = {mark: _layout(text, mark, options, title) for mark in wanted}
    several = {mark: own for mark, own in found.items() if own is not None and own.fits and len(own.rows[0].cells) > 1}
    clean = {mark: own for mark, own in several.items() if own.is_clean} or several
    pool = {mark: own for mark, own in clean.items() if mark != " "} or clean
    if len(pool) == 1:
        return next(iter(pool.items()))
    if pool:
        listed = " and ".join(NAMES[mark] for mark in pool)
        raise FileFormatError(
            f'{title}: {listed} could each separate the columns; say which does, as in delimiter="{next(iter(pool))}"'
        )
    return _likely(text, found, title)


def _likely(text: str, found: dict[str, Layout | None], title: str) -> tuple[str, Layout]:
    """What to complain about, or a table of a single column."""
    present = [mark for mark in found if mark != " " and mark in text and found[mark] is not None]
    blank = found.get(" ")
    if not present and blank is not None and len(blank.rows[0].cells) > 1:
        present = [" "]
    mark = next(iter(present), "," if "," in found else next(iter(found)))
    layout = found[mark]
    if layout is None:
        raise NoRowsError(
            f"{title} has a header but no samples; at least one line of numbers must follow, of which none was found"
        )
    return mark, layout


def _layout(text: str, delimiter: str, options: TableOptions, title: str) -> Layout | None:
    try:
        return layout_of(lines_of(text, delimiter), header=options.header)
    except ValueError as error:
        raise FileFormatError(
            f"{title}, line {error}: this is not CSV: a quote is opened and not closed in this line"
        ) from None


def _read(columns: Columns) -> tuple[int, ...]:
    return columns.values if columns.time is None else (columns.time, *columns.values)


def _remarks(layout: Layout, columns: Columns) -> tuple[str, ...]:
    found = []
    top = layout.first_line if layout.header is None else layout.header.number
    if top > 1:
        found.append(f"{count_of(top - 1, 'line')} above the header left out")
    if columns.time is not None and columns.unit not in (None, "s"):
        found.append(f"times in {columns.unit} ({shown_cell(columns.names[columns.time])}) brought to seconds")
    if columns.is_stamped:
        found.append("times counted in seconds from the first")
    return tuple(found)
