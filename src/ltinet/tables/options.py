"""Options of the table reader, and their validation.

Every option that is None is detected in the table; a table that can be read in more than one way is rejected.
"""

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, final

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

Gaps = Literal["error", "hold", "linear", "split"]
GAPS = ("error", "hold", "linear", "split")
DELIMITERS = MappingProxyType({",": ",", ";": ";", "\t": "\t", "|": "|", " ": " ", "tab": "\t", "space": " "})
_DECIMALS = (".", ",")
_THOUSANDS = (".", ",", "'", " ")
Column = str | int
"""Column by its name, or by its number, from 1."""


@final
@dataclass(frozen=True)
class TableOptions:
    """Options of `read_table`, under the same names; None means detection."""

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    header: bool | None = None
    time: Column | None = None
    time_unit: str | None = None
    zone: str | None = None
    dt: float | None = None
    gaps: Gaps = "error"
    columns: tuple[Column, ...] | None = None
    encoding: str = "utf-8"
    day_first: bool | None = None

    def with_columns(self, columns: Sequence[Column] | Column | None) -> "TableOptions":
        """Return the options with other columns; a single column need not be in a list."""
        chosen = (columns,) if isinstance(columns, str | int) else columns
        return replace(self, columns=None if chosen is None else tuple(chosen))


def validate_options(options: TableOptions) -> TableOptions:
    """Check the options, and return them with names of delimiters replaced by characters.

    Raises FileFormatError where an option has an unknown value, or where two contradict each other.
    """
    for name, choices in (
        ("delimiter", tuple(DELIMITERS)), ("decimal", _DECIMALS), ("thousands", _THOUSANDS), ("gaps", GAPS)
    ):  # fmt: skip
        value = getattr(options, name)
        if value is not None and value not in choices:
            raise FileFormatError(
                f"{name} is {sanitize(repr(value))}; it must be one of {', '.join(map(repr, choices))}"
            )
    if options.decimal is not None and options.decimal == options.thousands:
        raise FileFormatError(f"decimal and thousands are both {options.decimal!r}; they must differ")
    if options.day_first not in (None, True, False):
        raise FileFormatError(f"day_first is {sanitize(repr(options.day_first))}; it must be True or False")
    dt = None if options.dt is None else _validate_step(options.dt)
    if dt is not None and options.time is not None:
        raise FileFormatError("both dt and time are given; give the time step or the time column, not both")
    try:
        codecs.lookup(options.encoding)
    except LookupError:
        raise FileFormatError(
            f"encoding is {sanitize(repr(options.encoding))}; give a known encoding, such as utf-8, utf-16 or cp1252"
        ) from None
    decimal = options.decimal
    if decimal is None and options.thousands in _DECIMALS:  # the other mark must then be the decimal mark
        decimal = "," if options.thousands == "." else "."
    delimiter = None if options.delimiter is None else DELIMITERS[options.delimiter]
    return replace(options, delimiter=delimiter, decimal=decimal, dt=dt)


def _validate_step(dt: Any) -> float:
    """Return the time step, a number or its text."""
    try:
        step = math.nan if isinstance(dt, bool) else float(dt)
    except (TypeError, ValueError):
        step = math.nan
    if not 0.0 < step < math.inf:
        raise FileFormatError(f"dt is {sanitize(repr(dt))}; it must be a positive time step, as in dt=0.01")
    return step
