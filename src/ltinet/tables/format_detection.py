"""Detection of the format of a table: dialect, header and units, and the roles of the columns.

The longest run of rows with equally many cells is the data; the header and a row of units are searched above it. The
time column is recognized by its name or its cells, and its unit by the options, the row of units or the name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import groupby
from typing import final

from ltinet._util.text import format_count, suggest_names
from ltinet.errors import FileFormatError
from ltinet.tables.cells import (
    CLOCK_PATTERN,
    DATE_PATTERN,
    DELIMITER_NAMES,
    Dialect,
    detect_decimal,
    is_comment,
    is_data_cell,
    is_datetime,
    is_gap,
    is_timestamp,
    quote_cell,
    remove_thousands,
    split_cells,
)
from ltinet.tables.options import Column, TableOptions
from ltinet.tables.source import HEAD_BYTES, TextBlock
from ltinet.tables.timestamps import (
    KNOWN_UNITS,
    detect_day_first,
    is_time_name,
    mentions_utc,
    parse_time_zone,
    to_seconds_factors,
    unit_of,
    unit_text,
)

_MAX_LINES = 400  # lines in which the format is detected; the whole head if they hold no rows
_LONGEST_UNIT = 12  # characters of a cell in a row of units
_MAX_NUMBER_DIGITS = 10  # digits of a column number
KNOWN_UNITS_TEXT = ", ".join(KNOWN_UNITS)


@final
class NoRowsError(FileFormatError):
    """Error for text without rows of numbers; in a stream they may still arrive."""


@final
@dataclass(frozen=True)
class TableFormat:
    """Dialect and columns of a table, and the line at which its rows begin."""

    title: str
    dialect: Dialect
    columns: "Columns"
    first_line: int
    """Line number of the first row."""
    notes: tuple[str, ...]

    @property
    def n_columns(self) -> int:
        """Number of cells of each row."""
        return len(self.columns.names)

    def with_decimal(self, decimal: str | None) -> "TableFormat":
        """Return the format with a decimal mark that was detected later."""
        return replace(self, dialect=replace(self.dialect, decimal=decimal))


def detect_format(head: TextBlock, options: TableOptions, title: str) -> TableFormat:
    """Detect the format of a table from its beginning.

    Raises FileFormatError where there is no table, or more than one way to read it.
    """
    text = head.content[: head.content.rfind(b"\n", 0, HEAD_BYTES) + 1 or len(head.content)].decode()
    if not text.strip():
        raise NoRowsError(f"{title} is empty; expected is a header such as t,u1,u2 and a line for each time")
    try:
        delimiter, layout = _detect_delimiter("\n".join(text.split("\n", _MAX_LINES)[:_MAX_LINES]), options, title)
    except NoRowsError:
        delimiter, layout = _detect_delimiter(text, options, title)
    if layout.header is None and options.header is not False:
        raise FileFormatError(
            f"{title} has no header: its first line is numbers; put one such as t,u1,u2 above, or read it without, "
            'naming the time column by its number, with header=False and time="1"'
        )
    if not layout.fits and layout.header is not None:
        raise FileFormatError(
            cell_count_message(f"{title}, line {layout.first_line}", layout.rows[0].cells, len(layout.header.cells))
        )
    columns = detect_columns(layout, options, title)
    decimal = options.decimal
    if decimal is None:
        rows = [
            [remove_thousands(row.cells[k], options.thousands) for k in columns.used if k < len(row.cells)]
            for row in layout.rows
        ]
        whole_rows = [[remove_thousands(cell, options.thousands) for cell in row.cells] for row in layout.rows]
        decimal = detect_decimal(rows, delimiter, f"{title}:", whole_rows)
    notes = []
    top = layout.first_line if layout.header is None else layout.header.number
    if top > 1:
        notes.append(f"{format_count(top - 1, 'line')} above the header left out")
    if columns.time is not None and columns.unit not in (None, "s"):
        notes.append(f"times in {columns.unit} ({quote_cell(columns.names[columns.time])}) brought to seconds")
    if columns.clock is not None:
        of_two = " and ".join(quote_cell(columns.names[k]) for k in columns.times)
        notes.append(f"times read from the columns {of_two}")
    if columns.is_stamped:
        notes.append("times counted in seconds from the first")
    dialect = Dialect(delimiter, decimal, options.thousands)
    notes += unused_times(columns.names, options.dt)
    return TableFormat(title, dialect, columns, layout.first_line, tuple(notes))


def cell_count_message(place: str, cells: list[str], expected: int) -> str:
    """Return the error message for a row that has more or fewer cells than the header."""
    return (
        f"{place} has {format_count(len(cells), 'cell')} but the header has {expected}; fill or remove cells, write "
        'decimal points where commas separate the columns, or name the delimiter, as in delimiter=";"'
    )


# Header and rows.


@final
@dataclass(frozen=True)
class Line:
    """Line of a table that is not blank, split into cells."""

    number: int
    cells: list[str]
    is_comment: bool

    @property
    def n_data(self) -> int:
        """Number of cells that are numbers or times."""
        return 0 if self.is_comment else sum(is_data_cell(cell) for cell in self.cells)

    @property
    def is_data(self) -> bool:
        """True where all cells are numbers, times or gaps."""
        return (
            not self.is_comment and self.n_data > 0 and all(is_data_cell(cell) or is_gap(cell) for cell in self.cells)
        )


@final
@dataclass(frozen=True)
class Layout:
    """Header, row of units and the rows below, as far as the head of the table shows them."""

    header: Line | None
    units: Line | None
    rows: list[Line]
    is_clean: bool
    """True where there are rows that consist of numbers, times and gaps only."""

    @property
    def first_line(self) -> int:
        """Line number of the first row."""
        return self.rows[0].number

    @property
    def fits(self) -> bool:
        """True where the header has a name for each column."""
        return self.header is None or len(self.header.cells) == len(self.rows[0].cells)


def split_lines(text: str, delimiter: str, first_line: int = 1) -> list[Line]:
    """Split text into lines that are not blank, and these into cells; comments too, since they may be the header.

    Raises ValueError with the line number where a quote is opened and not closed.
    """
    lines = []
    for number, line in enumerate(text.split("\n"), first_line):
        if not line.strip():
            continue
        comment = is_comment(line)
        plain = line.lstrip().lstrip("#%").strip() if comment else line
        try:
            cells = split_cells(plain, delimiter)
        except ValueError:
            if not comment:
                raise ValueError(number) from None
            cells = [plain]
        lines.append(Line(number, cells, comment))
    return lines


def detect_layout(lines: Sequence[Line], *, header: bool | None) -> Layout | None:
    """Return the longest run of rows with equally many cells and the header above it; None without rows."""
    plain = [line for line in lines if not line.is_comment and any(line.cells)]
    begin, is_clean = _longest_run(plain)
    if begin is None:
        return None
    # Rows with faults above the run belong to the table, and are reported later; a preamble such as "Samples 5 5"
    # begins with a word, a row with a number, a time or a gap.
    while begin > 0 and plain[begin - 1].n_data:
        above, below = plain[begin - 1].cells, plain[begin].cells
        if not is_data_cell(above[0]) and not (len(above) == len(below) and is_gap(above[0])):
            break
        begin -= 1
    rows = plain[begin:]
    if header is False:
        return Layout(None, None, rows, is_clean)
    top = [line for line in lines if line.number < rows[0].number and any(line.cells)]
    names, units = _find_header(top, len(rows[0].cells), forced=header is True)
    if names is None and header and len(rows) > 1:  # names that look like numbers
        return Layout(rows[0], None, rows[1:], is_clean)
    return Layout(names, units, rows, is_clean)


def _longest_run(lines: Sequence[Line]) -> tuple[int | None, bool]:
    """Return the start of the longest run, and whether it is clean: rows with text count only if there are no others."""
    for is_clean in (True, False):
        shapes = [(line.is_data if is_clean else line.n_data > 0, len(line.cells)) for line in lines]
        runs = [list(run) for (fits, _), run in groupby(range(len(lines)), key=shapes.__getitem__) if fits]
        if runs:
            return max(runs, key=len)[0], is_clean
    return None, False


def _find_header(above: Sequence[Line], n_columns: int, *, forced: bool) -> tuple[Line | None, Line | None]:
    """Return the header and the row of units below it; a comment is a header only if it names every column."""
    usable = [line for line in above if not line.is_comment or len(line.cells) == n_columns]
    plain = [line for line in usable if not line.is_comment]
    nearest = plain[-1] if plain and (forced or not plain[-1].n_data) else None
    if nearest is None or (len(nearest.cells) != n_columns and usable[-1].is_comment):
        return (usable[-1] if usable and usable[-1].is_comment else nearest), None
    if len(plain) > 1 and len(plain[-2].cells) == len(nearest.cells) and _are_units(nearest.cells, plain[-2].cells):
        return plain[-2], nearest
    return nearest, None


def _are_units(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether cells are units: short, and a unit of time, or nothing, below the name of the time."""
    units = [_strip_brackets(cell) for cell in cells]
    # The unit decides whether "T" is a time or a temperature.
    below = [unit for name, unit in zip(names, units, strict=True) if is_time_name(f"{name} ({unit})")]
    if not below or any(is_time_name(cell) and unit_of(cell) is None for cell in cells):
        return False
    return all(unit_of(unit) or is_gap(unit) for unit in below) and all(len(cell) <= _LONGEST_UNIT for cell in cells)


def _strip_brackets(cell: str) -> str:
    return cell.strip().strip("[]()").strip()


# Delimiter: the one with which a header and rows of numbers appear.


def _detect_delimiter(text: str, options: TableOptions, title: str) -> tuple[str, Layout]:
    """Return the delimiter that gives a header and rows of numbers, and the layout; blanks only if no other does."""
    layouts: dict[str, Layout | None] = {}
    for mark in DELIMITER_NAMES if options.delimiter is None else (options.delimiter,):
        try:
            layouts[mark] = detect_layout(split_lines(text, mark), header=options.header)
        except ValueError as error:
            raise FileFormatError(
                f"{title}, line {error}: this is not CSV: a quote is opened and not closed in this line"
            ) from None
    several = {k: it for k, it in layouts.items() if it is not None and it.fits and len(it.rows[0].cells) > 1}
    clean = {mark: layout for mark, layout in several.items() if layout.is_clean} or several
    pool = {mark: layout for mark, layout in clean.items() if mark != " "} or clean
    if len(pool) == 1:
        return next(iter(pool.items()))
    if pool:
        listed = " and ".join(DELIMITER_NAMES[mark] for mark in pool)
        raise FileFormatError(
            f'{title}: {listed} could each separate the columns; name the delimiter, as in delimiter="{next(iter(pool))}"'
        )
    # A table of a single column, or one with faults, which are reported with the delimiter that occurs.
    present = [mark for mark in layouts if mark != " " and mark in text and layouts[mark] is not None]
    blank = layouts.get(" ")
    if not present and blank is not None and len(blank.rows[0].cells) > 1:
        present = [" "]
    mark = next(iter(present), "," if "," in layouts else next(iter(layouts)))
    layout = layouts[mark]
    if layout is None and options.delimiter is not None and not _has_cells(text, options.delimiter):
        raise NoRowsError(
            f"{title} has a single column with {DELIMITER_NAMES[options.delimiter]} as the delimiter, and no line that is a "
            "number; give the delimiter that separates its columns, or none, so that it is detected"
        )
    if layout is None:
        raise NoRowsError(f"{title} has a header but no samples; at least one line of numbers must follow the header")
    return mark, layout


def _has_cells(text: str, delimiter: str) -> bool:
    """Return whether a line of the text has more than one cell."""
    return any(len(line.cells) > 1 for line in split_lines(text, delimiter))


# Roles of the columns.


@final
@dataclass(frozen=True)
class Columns:
    """Roles of the columns of a table, by their positions from 0."""

    names: tuple[str, ...]
    time: int | None
    """Time column; None where rows are counted instead."""
    clock: int | None
    """Column of the times of day where the time column has dates only."""
    is_stamped: bool
    day_first: bool | None
    """Order of dates such as 01.03.2026; None where it is not known."""
    unit: str | None
    """Unit of numeric times; None where it is not stated."""
    zone: tzinfo | None
    """Zone of time stamps without one."""
    values: tuple[int, ...]
    empty: frozenset[int]
    """Columns without a name and without cells, as trailing delimiters make them."""

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the value columns."""
        return tuple(self.names[place] for place in self.values)

    @property
    def times(self) -> tuple[int, ...]:
        """Columns of which the times are read: none, one, or that of dates and that of times of day."""
        return tuple(place for place in (self.time, self.clock) if place is not None)

    @property
    def used(self) -> tuple[int, ...]:
        """Columns of times and of values."""
        return (*self.times, *self.values)

    @property
    def scale(self) -> tuple[float, float]:
        """Factor and divisor that convert numeric times to seconds."""
        return (1.0, 1.0) if self.unit is None else to_seconds_factors(self.unit)


def detect_columns(layout: Layout, options: TableOptions, title: str) -> Columns:
    """Return the role of each column, from its name and the cells in the head of the table.

    Raises FileFormatError where a role is ambiguous, or the options name columns that do not exist.
    """
    names, empty = _column_names(layout)
    if layout.header is not None and layout.header.number > 1:
        title = f"{title} (header: line {layout.header.number})"
    rows = [row for row in layout.rows if len(row.cells) == len(names)]
    cells = [[row.cells[place] for row in rows] for place in range(len(names))]
    time, clock = _time_columns(names, cells, options, title)
    times = [] if time is None else cells[time]
    if time is not None and clock is not None:
        times = [f"{date} {of_day}" for date, of_day in zip(cells[time], cells[clock], strict=True)]
    is_stamped = any(map(is_timestamp, times))
    if time is not None and not is_stamped:
        _reject_other_clocks(names[time], [(row.number, cell) for row, cell in zip(rows, times, strict=True)], title)
    zone = None if options.zone is None else parse_time_zone(options.zone)
    if time is not None and zone is None and mentions_utc(names[time]):
        zone = UTC
    unit = None
    if time is not None and not is_stamped:
        below = "" if layout.units is None else _strip_brackets(layout.units.cells[time])
        unit = detect_time_unit(names[time], below, options, title)
    values = _value_columns(names, {time, clock} - {None}, empty, options, title)
    day_first = detect_day_first(times) if options.day_first is None else options.day_first
    return Columns(tuple(names), time, clock, is_stamped, day_first, unit, zone, values, frozenset(empty))


def _column_names(layout: Layout) -> tuple[list[str], set[int]]:
    """Return names with units (numbered names without a header), and the columns without names and cells."""
    n_columns = len(layout.rows[0].cells)
    if layout.header is None:
        return [f"column {place + 1}" for place in range(n_columns)], set()
    names = [" ".join(name.split()) for name in layout.header.cells]
    if layout.units is not None:
        units = [_strip_brackets(cell) for cell in layout.units.cells]
        names = [f"{name} ({u})" if u and not is_gap(u) else name for name, u in zip(names, units, strict=True)]
    rows = [row.cells for row in layout.rows if len(row.cells) == n_columns]
    return names, {k for k, name in enumerate(names) if not name and all(not row[k] for row in rows)}


def _time_columns(
    names: Sequence[str], cells: list[list[str]], options: TableOptions, title: str
) -> tuple[int | None, int | None]:
    """Return the time column, and that of the times of day where the former has dates only."""
    if options.time is not None:
        return column_position(options.time, names, "time", title), None
    if options.dt is not None:
        return None, None
    times = [k for k in range(len(names)) if is_time_name(names[k]) or any(map(is_datetime, cells[k]))]
    if len(times) == 1:
        return times[0], None
    first = {k: next(iter(cells[k]), "") for k in times}
    dates = [k for k in times if DATE_PATTERN.fullmatch(first[k]) and not is_datetime(first[k])]
    clocks = [k for k in times if CLOCK_PATTERN.fullmatch(first[k])]
    if len(times) == 2 and len(dates) == len(clocks) == 1:
        return dates[0], clocks[0]
    if times:
        listed = " and ".join(quote_cell(names[place]) for place in times[:3])
        raise FileFormatError(
            f"{title} has {len(times)} time columns, {listed}; choose one by its name or number, as in "
            f'time="{times[0] + 1}"'
        )
    raise FileFormatError(
        f"{title}: no column is called t or time (the first column is called {quote_cell(names[0])}); name the time "
        'column by its name or number, as in time="1", or give the step of evenly spaced rows, as in dt="0.01"'
    )


def column_position(column: Column, names: Sequence[str], option: str, title: str) -> int:
    """Return the position of a column given by its name, in upper or lower case, or by its number from 1.

    The unit at the end of a name may be left out where this is unambiguous.
    """
    text = str(column)
    short = list(map(_name_without_unit, names))
    for convert in (str, str.casefold):  # "T" is "T (K)" rather than "t"
        fits = [
            [k for k, other in enumerate(candidates) if convert(other) == convert(text) and isinstance(column, str)]
            for candidates in (names, short)
        ]
        places = fits[0] or fits[1]
        if len(places) > 1 and len({names[place] for place in places}) > 1:
            listed = " and ".join(quote_cell(names[place]) for place in places[:3])
            raise FileFormatError(f"{title}: {quote_cell(text)} fits {listed}; give the whole name or the number")
        if len(places) > 1:
            numbers = ", ".join(str(place + 1) for place in places)
            raise FileFormatError(
                f"{title}: columns {numbers} are all called {quote_cell(text)}; give {option} by its number"
            )
        if places:
            return places[0]
    if text.isdecimal() and len(text) < _MAX_NUMBER_DIGITS and 1 <= int(text) <= len(names):
        return int(text) - 1
    if "," in text and option == "columns":
        parts = ", ".join(f'"{part.strip()}"' for part in text.split(","))
        raise FileFormatError(f"{title} has no column {quote_cell(text)}; give several as a list: columns=[{parts}]")
    raise FileFormatError(f"{title} has no column {quote_cell(text)}; {_suggest_column(text, names)}")


def _name_without_unit(name: str) -> str:
    """Return "valve" of "valve (%)" or "valve [%]"."""
    return re.sub(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])$", "", name)


def _suggest_column(text: str, names: Sequence[str]) -> str:
    """Suggest the names that begin like the text, else those that resemble it."""
    starts = [quote_cell(name) for name in names if text and name.casefold().startswith(text.casefold())]
    return f"did you mean {' or '.join(starts[:3])}?" if starts else suggest_names(text, names)


def _reject_other_clocks(name: str, cells: Sequence[tuple[int, str]], title: str) -> None:
    """Reject dates in an unknown notation, and times of day, which restart at midnight."""
    for line, cell in cells:
        where = f"{title}, line {line}, column {quote_cell(name)}: {quote_cell(cell)}"
        instead = (
            'write times as in 2024-05-01T12:00:00, name their column with time="…", or give the step of '
            'evenly spaced rows, as in dt="0.01"'
        )
        if DATE_PATTERN.fullmatch(cell):
            raise FileFormatError(
                f"{where} is a date in an unknown notation; write the year in four digits; or {instead}"
            )
        if CLOCK_PATTERN.fullmatch(cell):
            raise FileFormatError(f"{where} is a time of day without a date; {instead}")


def detect_time_unit(name: str, below: str, options: TableOptions, title: str) -> str | None:
    """Return the unit of the times: that of the options, of the row of units `below`, or of the name."""
    text = options.time_unit if options.time_unit is not None else (below or unit_text(name))
    if text is None or is_gap(text):
        return unit_of(name)  # a column called "seconds"
    unit = unit_of(text)
    if unit is None and options.time_unit is not None:
        raise FileFormatError(f"time_unit is {quote_cell(text)}; it must be one of {KNOWN_UNITS_TEXT}")
    if unit is None:
        raise FileFormatError(
            f"{title}: the unit {quote_cell(text)} of the column {quote_cell(name)} is not known; give the unit with "
            f'time_unit="s" ({KNOWN_UNITS_TEXT})'
        )
    return unit


def _value_columns(
    names: Sequence[str], times: set[int | None], empty: set[int], options: TableOptions, title: str
) -> tuple[int, ...]:
    if options.columns is not None:
        chosen = tuple(column_position(column, names, "columns", title) for column in options.columns)
        if times & set(chosen) or len(set(chosen)) < len(chosen):
            raise FileFormatError(f"{title}: columns must not contain the time column or a column twice; remove it")
        return chosen
    skipped = {*times, *empty}
    if options.dt is not None:
        skipped |= {place for place, name in enumerate(names) if is_time_name(name)}
    values = tuple(place for place in range(len(names)) if place not in skipped)
    for place in values:
        if not names[place]:
            raise FileFormatError(
                f"{title}: column {place + 1} has no name; name it, or choose columns with columns="
                f"{[other + 1 for other in values if other != place] or [2]}"
            )
        reject_repeated_name(place, names, title)
    return values


def unused_times(names: Sequence[str], dt: float | None) -> list[str]:
    """Return a note if a step replaces the times of a column."""
    times = [quote_cell(name) for name in names if is_time_name(name)]
    return (
        [f"the times in {' and '.join(times)} are not used: rows at steps of {dt:g}"]
        if times and dt is not None
        else []
    )


def reject_repeated_name(place: int, names: Sequence[str], title: str) -> None:
    """Reject a value column whose name another column has, too."""
    if names.count(names[place]) > 1:
        raise FileFormatError(
            f"{title}: more than one column is called {quote_cell(names[place])}; choose columns by their numbers, "
            f'as in columns="{place + 1}"'
        )
