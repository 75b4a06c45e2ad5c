"""Where the rows of numbers begin, and which line above them is the header."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ltinet.tables.cells import cut, is_comment, is_datum, is_gap
from ltinet.tables.time_names import is_time_name, unit_of

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
        return 0 if self.is_comment else sum(is_datum(cell) for cell in self.cells)

    @property
    def is_data(self) -> bool:
        """Whether there is nothing in it but numbers, times and gaps."""
        return not self.is_comment and self.n_data > 0 and all(is_datum(cell) or is_gap(cell) for cell in self.cells)


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


def lines_of(text: str, delimiter: str, first_line: int = 1) -> list[Line]:
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
            found.append(Line(number, cut(plain, delimiter), comment))
        except ValueError:
            if not comment:
                raise ValueError(number) from None
            found.append(Line(number, [plain], comment))
    return found


def layout_of(lines: Sequence[Line], *, header: bool | None) -> Layout | None:
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
    return is_datum(line.cells[0]) or (len(line.cells) == len(below.cells) and is_gap(line.cells[0]))


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
    below = [bare_unit(cells[place]) for place in times]
    return all(unit_of(unit) or is_gap(unit) for unit in below) and all(len(cell) <= _LONGEST_UNIT for cell in cells)


def bare_unit(cell: str) -> str:
    """A unit without the brackets around it."""
    return cell.strip().strip("[]()").strip()
