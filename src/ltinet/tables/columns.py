"""Which column is the time, in which unit, and which columns are the values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import final

from ltinet.errors import FileFormatError
from ltinet.shown import shown_names
from ltinet.tables.cells import is_gap, is_moment, is_stamp, looks_like_a_clock, looks_like_a_date, shown_cell
from ltinet.tables.layout import Layout, bare_unit
from ltinet.tables.options import Column, TableOptions
from ltinet.tables.stamps import zone_named
from ltinet.tables.time_names import KNOWN_UNITS, in_seconds, is_time_name, says_utc, unit_of, unit_text

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


def columns_of(layout: Layout, options: TableOptions, title: str) -> Columns:
    """What each column is, from its name and the cells that were seen.

    Raises:
        FileFormatError: it is not clear, or the options name what is not there.
    """
    names, empty = _names(layout)
    rows = [row for row in layout.rows if len(row.cells) == len(names)]
    cells = [[row.cells[place] for row in rows] for place in range(len(names))]
    time = _time_column(names, cells, options, title)
    is_stamped = time is not None and any(map(is_stamp, cells[time]))
    if time is not None and not is_stamped:
        _refuse_other_clocks(names[time], [(row.number, row.cells[time]) for row in rows], title)
    zone = None if options.zone is None else zone_named(options.zone)
    if time is not None and zone is None and says_utc(names[time]):
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
    units = ["" if layout.units is None else bare_unit(cell) for cell in (layout.units or layout.header).cells]
    full = [f"{name} ({unit})" if unit and not is_gap(unit) else name for name, unit in zip(names, units, strict=True)]
    rows = [row.cells for row in layout.rows if len(row.cells) == n_columns]
    return full, {k for k, name in enumerate(full) if not name and all(not row[k] for row in rows)}


def _time_column(names: Sequence[str], cells: list[list[str]], options: TableOptions, title: str) -> int | None:
    if options.time is not None:
        return place_of(options.time, names, "time", title)
    found = [k for k in range(len(names)) if is_time_name(names[k]) or any(map(is_moment, cells[k]))]
    if options.dt is not None:
        return None
    if len(found) == 1:
        return found[0]
    if found:
        listed = " and ".join(shown_cell(names[place]) for place in found[:3])
        raise FileFormatError(
            f"{title} has {len(found)} time columns, {listed}; say which to take by its name or number, as in "
            f'time="{found[0] + 1}"'
        )
    raise FileFormatError(
        f"{title}: no column is called t or time (the first column is called {shown_cell(names[0])}); say which "
        'it is by its name or number, as in time="1", or give the step of evenly spaced rows, as in dt="0.01"'
    )


def place_of(column: Column, names: Sequence[str], option: str, title: str) -> int:
    """The place of a column that was asked for: text by its name, with or without capitals, or a number from 1."""
    text = str(column)
    for wanted, known in ((text, list(names)), (text.casefold(), [name.casefold() for name in names])):
        found = [place for place, name in enumerate(known) if name == wanted and isinstance(column, str)]
        if len(found) > 1:
            numbers = ", ".join(str(place + 1) for place in found)
            raise FileFormatError(
                f"{title}: columns {numbers} are all called {shown_cell(text)}; give {option} by its number"
            )
        if found:
            return found[0]
    if text.isdecimal() and len(text) < _LONGEST_NUMBER and 1 <= int(text) <= len(names):
        return int(text) - 1
    raise FileFormatError(
        f"{title} has no column {shown_cell(text)}, which {option} asks for; it has {shown_names(names)}"
    )


def _refuse_other_clocks(name: str, cells: Sequence[tuple[int, str]], title: str) -> None:
    """Refuse dates in an order that only their writer knows, and times of day, which begin again at midnight."""
    for line, cell in cells:
        where = f"{title}, line {line}, column {shown_cell(name)}: {shown_cell(cell)}"
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
    below = "" if layout.units is None else bare_unit(layout.units.cells[place])
    text = options.time_unit if options.time_unit is not None else (below or unit_text(name))
    if text is None or is_gap(text):
        return unit_of(name)  # a column called "seconds"
    unit = unit_of(text)
    if unit is None and options.time_unit is not None:
        raise FileFormatError(f"time_unit is {shown_cell(text)}; known are {KNOWN_UNITS_TEXT}")
    if unit is None:
        raise FileFormatError(
            f"{title}: the unit {shown_cell(text)} of the column {shown_cell(name)} is not known; say what it is in "
            f'with time_unit="s" ({KNOWN_UNITS_TEXT})'
        )
    return unit


def _values(
    names: Sequence[str], time: int | None, empty: set[int], options: TableOptions, title: str
) -> tuple[int, ...]:
    if options.columns is not None:
        chosen = tuple(place_of(column, names, "columns", title) for column in options.columns)
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
                f"{title}: more than one column is called {shown_cell(names[place])}; say by numbers which to take, "
                f'as in columns="{place + 1}"'
            )
    return found
