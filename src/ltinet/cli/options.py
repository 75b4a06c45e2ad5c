"""Parsing of options that several commands share: channels by name or number from 1, and how a table is read.

Error messages about tables are translated from the arguments of `read_table` to options as the user typed them.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Any, Literal

import typer

from ltinet._util.text import format_names, sanitize
from ltinet.errors import FileFormatError
from ltinet.tables.options import Gaps, TableOptions, validate_options


def parse_channel(text: str | None, names: Sequence[str], *, option: str, noun: str) -> int | None:
    """Return the index of a channel, given by its name or its number from 1; None for all channels."""
    if text is None:
        return None
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= len(names):
        return int(text) - 1
    numbered = f"a number from 1 to {len(names)}, or one of " if len(names) > 1 else ""
    raise typer.BadParameter(
        f"{sanitize(repr(text))} is not an {noun} of this system; give {numbered}{format_names(names)}, or omit it",
        param_hint=f"'{option}'",
    )


def parse_names(text: str | None) -> list[str] | None:
    """Split names at commas; a name that contains a comma stands in quotation marks, as in CSV."""
    if text is None:
        return None
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:
        raise typer.BadParameter(
            f"{sanitize(repr(text))} is not a list of names; give them in one line, separated by commas"
        ) from None


def option(metavar: str | None, text: str, *flags: str, default: bool | str = False) -> Any:
    """Return an option of a command with its help.

    `default` is the text that stands for its default; True for the default itself, False for none.
    """
    return typer.Option(*flags, metavar=metavar, show_default=default, help=text)


def flag(name: str, text: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=text)


_DETECTED = "detected"
Delimiter = Annotated[str | None, option("SIGN", "Table: column separator: , ; tab space.", default=_DETECTED)]
Decimal = Annotated[str | None, option(".|,", "Table: decimal mark.", default=_DETECTED)]
Thousands = Annotated[str | None, option("SIGN", "Table: thousands separator.", default="none")]
Header = Annotated[
    bool | None, option(None, "Table: whether the first row holds names.", "--header/--no-header", default=_DETECTED)
]
Time = Annotated[str | None, option("COLUMN", "Table: time column, by name or number from 1.", default="by its name")]
TimeUnit = Annotated[str | None, option("UNIT", "Table: unit of times: s, ms, us, ns, min, h, d.", default=_DETECTED)]
Zone = Annotated[
    str | None, option("ZONE", "Table: time zone of dates without one: UTC, Europe/Berlin.", default="none")
]
Dt = Annotated[float | None, option("STEP", "Table: time step of rows without times.", "--dt", default="none")]
FillGaps = Annotated[
    Literal["error", "hold", "linear"],
    option(None, "Table: missing values: reject, hold the last value, or interpolate.", default=True),
]
RecordGaps = Annotated[
    Gaps,
    option(None, "Table: missing values: reject, hold the last value, interpolate, or split the record.", default=True),
]
ChosenColumns = Annotated[
    str | None, option("NAMES", "Table: input columns, names or numbers: 2,3 or Force,Torque.", default="all")
]
Encoding = Annotated[str, option("NAME", "Table: text encoding.", default=True)]
DayFirst = Annotated[
    bool | None,
    option(None, "Table: order of dates such as 01.03.2026.", "--day-first/--month-first", default=_DETECTED),
]
_OPTION = re.compile(rf'\b({"|".join(field.name for field in fields(TableOptions))})=("|\[[^\]]*\])')
_FLAGS = {"header=False": "--no-header", "day_first=True": "--day-first", "day_first=False": "--month-first"}


def table_options(options: TableOptions, columns: str | None) -> TableOptions:
    """Return validated table options with the columns, separated by commas."""
    chosen = parse_names(columns)
    with typed_option_names():
        return validate_options(options.with_columns(chosen))


@contextmanager
def typed_option_names() -> Iterator[None]:
    """Write options in error messages as on the command line: `--time-unit "ms"`, not `time_unit="ms"`."""
    try:
        yield
    except FileFormatError as error:
        message = str(error)
        for argument, typed in _FLAGS.items():
            message = message.replace(argument, typed)
        raise type(error)(_OPTION.sub(_typed_option, message)) from None


def _typed_option(match: re.Match[str]) -> str:
    value = match[2].strip("[]").replace(", ", ",")
    return f"--{match[1].replace('_', '-')} {value}"
