"""Options of the table reader, and their validation.

Every option that is not given is detected in the table; a table that can be read in more than one way is refused.
"""

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, final

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

# MERGED ltinet.tables.options
# What a reader of tables can be told; everything that is not told is found in the table, or refused.

Gaps = Literal["error", "hold", "linear", "split"]
GAPS = ("error", "hold", "linear", "split")
DELIMITERS = MappingProxyType({",": ",", ";": ";", "\t": "\t", "|": "|", " ": " ", "tab": "\t", "space": " "})
_DECIMALS = (".", ",")
_THOUSANDS = (".", ",", "'", " ")
Column = str | int
"""A column by its name, or by its number, from 1."""


@final
@dataclass(frozen=True)
class TableOptions:
    """The options of `read_table`, by the same names; None means that the table itself must say."""

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

    def with_columns(self, columns: Sequence[Column] | Column | None) -> "TableOptions":
        """The same options for other columns; a single one need not be in a list."""
        chosen = (columns,) if isinstance(columns, str | int) else columns
        return replace(self, columns=None if chosen is None else tuple(chosen))


def validate_options(options: TableOptions) -> TableOptions:
    """The options as they are meant, `delimiter="tab"` as the sign itself.

    Raises:
        FileFormatError: one has a value that means nothing, or two contradict each other.
    """
    _one_of("delimiter", options.delimiter, tuple(DELIMITERS))
    _one_of("decimal", options.decimal, _DECIMALS)
    _one_of("thousands", options.thousands, _THOUSANDS)
    _one_of("gaps", options.gaps, GAPS)
    delimiter = None if options.delimiter is None else DELIMITERS[options.delimiter]
    if options.decimal is not None and options.decimal == options.thousands:
        raise FileFormatError(f"decimal and thousands are both {options.decimal!r}; they must differ")
    if options.dt is not None and not 0.0 < options.dt < math.inf:
        raise FileFormatError(f"dt is {options.dt}; give a positive time step")
    if options.dt is not None and options.time is not None:
        raise FileFormatError("both dt and time are given; give the time step or the column of times, not both")
    try:
        codecs.lookup(options.encoding)
    except LookupError:
        raise FileFormatError(
            f"encoding is {sanitize(repr(options.encoding))}; give the name of one, such as utf-8, utf-16 or cp1252"
        ) from None
    decimal = options.decimal
    if decimal is None and options.thousands in _DECIMALS:  # only the other mark is left for decimals
        decimal = "," if options.thousands == "." else "."
    return replace(options, delimiter=delimiter, decimal=decimal)


def _one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        listed = ", ".join(map(repr, known))
        raise FileFormatError(f"{name} is {sanitize(repr(value))}; known are {listed}")
