"""Detection of the format of a table: dialect, header and units, and the roles of the columns.

The longest run of rows with equally many cells is the data; the header and a row of units are searched above it. The
column of times is recognised by its name or its cells, and its unit by the options, the row of units or the name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import final

from ltinet._util.text import format_count, format_names
from ltinet.errors import FileFormatError
from ltinet.tables.cells import (
    DELIMITER_CANDIDATES,
    DELIMITER_NAMES,
    Dialect,
    detect_decimal,
    is_comment,
    is_data_cell,
    is_datetime,
    is_gap,
    is_timestamp,
    looks_like_a_clock,
    looks_like_a_date,
    quote_cell,
    split_cells,
    without_thousands,
)
from ltinet.tables.options import Column, TableOptions
from ltinet.tables.source import HEAD_BYTES, TextBlock
from ltinet.tables.timestamps import (
    KNOWN_UNITS,
    in_seconds,
    is_time_name,
    mentions_utc,
    parse_time_zone,
    unit_of,
    unit_text,
)

# MERGED ltinet.tables.format_detection
# Where the rows of numbers begin, and which line above them is the header.

_LONGEST_UNIT = 12


@final
@dataclass(frozen=True)
class Line:
    """A line that is not blank, cut into cells."""

    number: int
    cells: list[str]
    is_comment: bool

    @property
    def n_data(self) -> int:
        """How many of its cells are numbers or times."""
        return 0 if self.is_comment else sum(is_data_cell(cell) for cell in self.cells)

    @property
    def is_data(self) -> bool:
        """Whether there is nothing in it but numbers, times and gaps."""
        return (
            not self.is_comment and self.n_data > 0 and all(is_data_cell(cell) or is_gap(cell) for cell in self.cells)
        )


@final
@dataclass(frozen=True)
class Layout:
    """The header, and the rows below it that have been seen."""

    header: Line | None
    units: Line | None
    rows: list[Line]
    is_clean: bool
    """Whether there are rows of nothing but numbers, times and gaps."""

    @property
    def first_line(self) -> int:
        """The number of the first row."""
        return self.rows[0].number

    @property
    def fits(self) -> bool:
        """Whether the header has a name for each column of the longest run of rows."""
        return self.header is None or len(self.header.cells) == len(self.rows[0].cells)


def split_lines(text: str, delimiter: str, first_line: int = 1) -> list[Line]:
    """Lines that are not blank, cut into cells; a comment is cut as if it were none, for it may be the header.

    Raises:
        ValueError: a quote is opened and not closed; the line's number is the argument.
    """
    found = []
    for number, line in enumerate(text.split("\n"), first_line):
        if not line.strip():
            continue
        comment = is_comment(line)
        plain = line.lstrip().lstrip("#%").strip() if comment else line
        try:
            found.append(Line(number, split_cells(plain, delimiter), comment))
        except ValueError:
            if not comment:
                raise ValueError(number) from None
            found.append(Line(number, [plain], comment))
    return found


def detect_layout(lines: Sequence[Line], *, header: bool | None) -> Layout | None:
    """The longest run of rows with equally many cells, what belongs to it above, and its header; None without rows."""
    plain = [line for line in lines if not line.is_comment and any(line.cells)]
    begin, is_clean = _longest_run(plain)
    if begin is None:
        return None
    while begin > 0 and plain[begin - 1].n_data and _could_be_row(plain[begin - 1], plain[begin]):
        begin -= 1
    rows = plain[begin:]
    if header is False:
        return Layout(None, None, rows, is_clean)
    above = [line for line in lines if line.number < rows[0].number and any(line.cells)]
    found = _header_in(above, len(rows[0].cells), forced=header is True)
    if found[0] is None and header and len(rows) > 1:  # names that look like numbers
        return Layout(rows[0], None, rows[1:], is_clean)
    return Layout(*found, rows, is_clean)


def _longest_run(lines: Sequence[Line]) -> tuple[int | None, bool]:
    """Where it begins, and whether it is of pure data; rows with text in them count only where there are no others."""
    for is_clean in (True, False):
        fitting = [line.is_data if is_clean else line.n_data > 0 for line in lines]
        best, length, begin = None, 0, 0
        for place, line in enumerate(lines):
            if not fitting[place]:
                continue
            if place == 0 or not fitting[place - 1] or len(lines[place - 1].cells) != len(line.cells):
                begin = place
            if place - begin + 1 > length:
                best, length = begin, place - begin + 1
        if best is not None:
            return best, is_clean
    return None, False


def _could_be_row(line: Line, below: Line) -> bool:
    """Whether a line with numbers in it is a row with a fault rather than part of what is written above a table.

    Such preambles begin with a word: "Samples 5 5". A row begins with a number or a time.
    """
    return is_data_cell(line.cells[0]) or (len(line.cells) == len(below.cells) and is_gap(line.cells[0]))


def _header_in(above: Sequence[Line], n_columns: int, *, forced: bool) -> tuple[Line | None, Line | None]:
    """The header and the row of units below it; a comment is one only if it has a name for each column."""
    usable = [line for line in above if not line.is_comment or len(line.cells) == n_columns]
    plain = [line for line in usable if not line.is_comment]
    nearest = plain[-1] if plain and (forced or not plain[-1].n_data) else None
    if nearest is None or (len(nearest.cells) != n_columns and usable[-1].is_comment):
        return (usable[-1] if usable and usable[-1].is_comment else nearest), None
    if len(plain) > 1 and len(plain[-2].cells) == len(nearest.cells) and _are_units(nearest.cells, plain[-2].cells):
        return plain[-2], nearest
    return nearest, None


def _are_units(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Whether they are units: short, with one of time, or nothing, below the name of the time."""
    times = [place for place, name in enumerate(names) if is_time_name(name)]
    if not times or any(is_time_name(cell) and unit_of(cell) is None for cell in cells):
        return False
    below = [strip_unit_brackets(cells[place]) for place in times]
    return all(unit_of(unit) or is_gap(unit) for unit in below) and all(len(cell) <= _LONGEST_UNIT for cell in cells)


def strip_unit_brackets(cell: str) -> str:
    """A unit without the brackets around it."""
    return cell.strip().strip("[]()").strip()


# MERGED ltinet.tables.format_detection
# Which column is the time, in which unit, and which columns are the values.

_LONGEST_NUMBER = 10
KNOWN_UNITS_TEXT = ", ".join(KNOWN_UNITS)


@final
@dataclass(frozen=True)
class Columns:
    """The columns of a table by their places, from 0."""

    names: tuple[str, ...]
    time: int | None
    """None where rows are counted instead."""
    is_stamped: bool
    unit: str | None
    """The unit of times that are numbers; None where nothing says it."""
    zone: tzinfo | None
    """The zone of stamps that have none."""
    values: tuple[int, ...]
    empty: frozenset[int]
    """Columns without a name and without cells, as trailing delimiters make them."""

    @property
    def value_names(self) -> tuple[str, ...]:
        """The names of the values."""
        return tuple(self.names[place] for place in self.values)

    @property
    def scale(self) -> tuple[float, float]:
        """The factor and the divisor that bring times that are numbers to seconds."""
        return (1.0, 1.0) if self.unit is None else in_seconds(self.unit)


def detect_columns(layout: Layout, options: TableOptions, title: str) -> Columns:
    """What each column is, from its name and the cells that were seen.

    Raises:
        FileFormatError: it is not clear, or the options name what is not there.
    """
    names, empty = _names(layout)
    rows = [row for row in layout.rows if len(row.cells) == len(names)]
    cells = [[row.cells[place] for row in rows] for place in range(len(names))]
    time = _time_column(names, cells, options, title)
    is_stamped = time is not None and any(map(is_timestamp, cells[time]))
    if time is not None and not is_stamped:
        _refuse_other_clocks(names[time], [(row.number, row.cells[time]) for row in rows], title)
    zone = None if options.zone is None else parse_time_zone(options.zone)
    if time is not None and zone is None and mentions_utc(names[time]):
        zone = UTC
    unit = None if time is None or is_stamped else _unit(names[time], layout, time, options, title)
    values = _values(names, time, empty, options, title)
    return Columns(tuple(names), time, is_stamped, unit, zone, values, frozenset(empty))


def _names(layout: Layout) -> tuple[list[str], set[int]]:
    """Names with their units, numbers for columns without a header; and the columns that are nothing at all."""
    n_columns = len(layout.rows[0].cells)
    if layout.header is None:
        return [f"column {place + 1}" for place in range(n_columns)], set()
    names = [" ".join(name.split()) for name in layout.header.cells]
    units = [
        "" if layout.units is None else strip_unit_brackets(cell) for cell in (layout.units or layout.header).cells
    ]
    full = [f"{name} ({unit})" if unit and not is_gap(unit) else name for name, unit in zip(names, units, strict=True)]
    rows = [row.cells for row in layout.rows if len(row.cells) == n_columns]
    return full, {k for k, name in enumerate(full) if not name and all(not row[k] for row in rows)}


def _time_column(names: Sequence[str], cells: list[list[str]], options: TableOptions, title: str) -> int | None:
    if options.time is not None:
        return column_position(options.time, names, "time", title)
    found = [k for k in range(len(names)) if is_time_name(names[k]) or any(map(is_datetime, cells[k]))]
    if options.dt is not None:
        return None
    if len(found) == 1:
        return found[0]
    if found:
        listed = " and ".join(quote_cell(names[place]) for place in found[:3])
        raise FileFormatError(
            f"{title} has {len(found)} time columns, {listed}; say which to take by its name or number, as in "
            f'time="{found[0] + 1}"'
        )
    raise FileFormatError(
        f"{title}: no column is called t or time (the first column is called {quote_cell(names[0])}); say which "
        'it is by its name or number, as in time="1", or give the step of evenly spaced rows, as in dt="0.01"'
    )


def column_position(column: Column, names: Sequence[str], option: str, title: str) -> int:
    """The place of a column that was asked for: text by its name, with or without capitals, or a number from 1."""
    text = str(column)
    for wanted, known in ((text, list(names)), (text.casefold(), [name.casefold() for name in names])):
        found = [place for place, name in enumerate(known) if name == wanted and isinstance(column, str)]
        if len(found) > 1:
            numbers = ", ".join(str(place + 1) for place in found)
            raise FileFormatError(
                f"{title}: columns {numbers} are all called {quote_cell(text)}; give {option} by its number"
            )
        if found:
            return found[0]
    if text.isdecimal() and len(text) < _LONGEST_NUMBER and 1 <= int(text) <= len(names):
        return int(text) - 1
    raise FileFormatError(
        f"{title} has no column {quote_cell(text)}, which {option} asks for; it has {format_names(names)}"
    )


def _refuse_other_clocks(name: str, cells: Sequence[tuple[int, str]], title: str) -> None:
    """Refuse dates in an order that only their writer knows, and times of day, which begin again at midnight."""
    for line, cell in cells:
        where = f"{title}, line {line}, column {quote_cell(name)}: {quote_cell(cell)}"
        instead = (
            'write times as in 2024-05-01T12:00:00, say which column has them with time="…", or give the step of '
            'evenly spaced rows, as in dt="0.01"'
        )
        if looks_like_a_date(cell):
            raise FileFormatError(f"{where} is a date whose order is not known, day or month first; {instead}")
        if looks_like_a_clock(cell):
            raise FileFormatError(f"{where} is a time of day without a date; {instead}")


def _unit(name: str, layout: Layout, place: int, options: TableOptions, title: str) -> str | None:
    """The unit of the times: that of the options, of the row of units, or of the name."""
    below = "" if layout.units is None else strip_unit_brackets(layout.units.cells[place])
    text = options.time_unit if options.time_unit is not None else (below or unit_text(name))
    if text is None or is_gap(text):
        return unit_of(name)  # a column called "seconds"
    unit = unit_of(text)
    if unit is None and options.time_unit is not None:
        raise FileFormatError(f"time_unit is {quote_cell(text)}; known are {KNOWN_UNITS_TEXT}")
    if unit is None:
        raise FileFormatError(
            f"{title}: the unit {quote_cell(text)} of the column {quote_cell(name)} is not known; say what it is in "
            f'with time_unit="s" ({KNOWN_UNITS_TEXT})'
        )
    return unit


def _values(
    names: Sequence[str], time: int | None, empty: set[int], options: TableOptions, title: str
) -> tuple[int, ...]:
    if options.columns is not None:
        chosen = tuple(column_position(column, names, "columns", title) for column in options.columns)
        if time in chosen or len(set(chosen)) < len(chosen):
            raise FileFormatError(f"{title}: columns asks for the time, or for one column twice; leave that out")
        return chosen
    left_out = {time, *empty}
    if options.dt is not None:
        left_out |= {place for place, name in enumerate(names) if is_time_name(name)}
    found = tuple(place for place in range(len(names)) if place not in left_out)
    for place in found:
        if not names[place]:
            raise FileFormatError(
                f"{title}: column {place + 1} has no name; name it, or say which columns to take with columns="
                f'"{",".join(str(other + 1) for other in found if other != place) or "2"}"'
            )
        if names.count(names[place]) > 1:
            raise FileFormatError(
                f"{title}: more than one column is called {quote_cell(names[place])}; say by numbers which to take, "
                f'as in columns="{place + 1}"'
            )
    return found


# MERGED ltinet.tables.format_detection
# Everything that is decided before the first row is read: dialect, header, columns.

_LINES = 400  # that are looked at; all of the beginning if there are no rows among them


@final
class NoRowsError(FileFormatError):
    """There are no rows of numbers; in a stream they may still come."""


@final
@dataclass(frozen=True)
class TableFormat:
    """How a table is written, and what its columns are."""

    title: str
    dialect: Dialect
    columns: Columns
    first_line: int
    """Where the rows begin."""
    notes: tuple[str, ...]

    @property
    def n_columns(self) -> int:
        """Cells of each row."""
        return len(self.columns.names)

    def with_decimal(self, decimal: str | None) -> "TableFormat":
        """The same with a decimal mark that was seen later."""
        return replace(self, dialect=replace(self.dialect, decimal=decimal))


def detect_format(head: TextBlock, options: TableOptions, title: str) -> TableFormat:
    """Find out how a table is written from its beginning.

    Raises:
        FileFormatError: there is no table, or more than one way to read it.
    """
    text = head.content[: head.content.rfind(b"\n", 0, HEAD_BYTES) + 1 or len(head.content)].decode()
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
            cell_count_message(f"{title}, line {layout.first_line}", layout.rows[0].cells, layout.header.cells)
        )
    columns = detect_columns(layout, options, title)
    decimal = options.decimal
    if decimal is None:
        read = [[row.cells[k] for k in _read(columns) if k < len(row.cells)] for row in layout.rows]
        rows = [[without_thousands(cell, options.thousands) for cell in row] for row in read]
        decimal = detect_decimal(rows, delimiter, f"{title}:")
    return TableFormat(
        title, Dialect(delimiter, decimal, options.thousands), columns, layout.first_line, _notes(layout, columns)
    )


def cell_count_message(place: str, cells: list[str], names: object) -> str:
    """What to say of a row that has more or fewer cells than the header."""
    expected = len(names) if isinstance(names, list | tuple) else names
    return (
        f"{place} has {format_count(len(cells), 'cell')} but the header has {expected}; fill or remove cells, write "
        'decimal points where commas separate the columns, or say what separates them, as in delimiter=";"'
    )


def _chosen(text: str, options: TableOptions, title: str) -> tuple[str, Layout]:
    """The delimiter that gives a header and rows of numbers; only if none of the others does, blanks are one."""
    wanted = DELIMITER_CANDIDATES if options.delimiter is None else (options.delimiter,)
    found = {mark: _layout(text, mark, options, title) for mark in wanted}
    several = {mark: own for mark, own in found.items() if own is not None and own.fits and len(own.rows[0].cells) > 1}
    clean = {mark: own for mark, own in several.items() if own.is_clean} or several
    pool = {mark: own for mark, own in clean.items() if mark != " "} or clean
    if len(pool) == 1:
        return next(iter(pool.items()))
    if pool:
        listed = " and ".join(DELIMITER_NAMES[mark] for mark in pool)
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
        return detect_layout(split_lines(text, delimiter), header=options.header)
    except ValueError as error:
        raise FileFormatError(
            f"{title}, line {error}: this is not CSV: a quote is opened and not closed in this line"
        ) from None


def _read(columns: Columns) -> tuple[int, ...]:
    return columns.values if columns.time is None else (columns.time, *columns.values)


def _notes(layout: Layout, columns: Columns) -> tuple[str, ...]:
    found = []
    top = layout.first_line if layout.header is None else layout.header.number
    if top > 1:
        found.append(f"{format_count(top - 1, 'line')} above the header left out")
    if columns.time is not None and columns.unit not in (None, "s"):
        found.append(f"times in {columns.unit} ({quote_cell(columns.names[columns.time])}) brought to seconds")
    if columns.is_stamped:
        found.append("times counted in seconds from the first")
    return tuple(found)
