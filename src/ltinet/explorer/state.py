"""State of the page as encoded in its address.

Every view is a function of this state and of nothing else. Values are parsed strictly: lengths, ranges and patterns
are checked before anything is computed.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, final
from urllib.parse import urlencode

from ltinet._util.text import sanitize
from ltinet.errors import LtinetError
from ltinet.network_builder import DEFAULT_MAX_CONDITION

INPUT_KINDS = ("step", "impulse", "chirp")  # besides a table, "file:…"
_HASH = r"[0-9a-f]{64}"
_SYSTEM = re.compile(rf"example:[a-z_]{{1,40}}|file:{_HASH}", re.ASCII)
_INPUT = re.compile(rf"{'|'.join(INPUT_KINDS)}|file:{_HASH}", re.ASCII)
_PICK = re.compile(r"\d{1,6}\.\d{1,6}", re.ASCII)
_COLUMNS = re.compile(r"\d{1,4}(,\d{1,4}){0,63}", re.ASCII)
_MAX_COUNT = 1000  # of orders, inputs and outputs
_Reader = Callable[[str, str], Any]


class InvalidStateError(LtinetError, ValueError):
    """An address asks for a view that the page cannot show."""


@final
@dataclass(frozen=True)
class ViewState:
    """One view of one system."""

    system: str = "example:triangular"
    """A built-in system, or a file by its hash."""
    k: float = DEFAULT_MAX_CONDITION
    """Limit on cond(T)."""
    order: int | None = None
    """Order of a reduction; None for the full system."""
    u: str = "step"
    """Input of the response: step, impulse, chirp, or a table."""
    T: float | None = None
    """End of the response; None for an automatic choice."""
    input: int = 1
    """Input of the response and of the Bode plot, counted from 1."""
    output: int = 1
    """Output of the response and of the Bode plot, counted from 1."""
    pick: tuple[int, int] | None = None
    """Layer and neuron whose contribution to the output is shown, counted from 0 as in `net.layers[0].neurons[1]`."""
    drive: tuple[int, ...] = ()
    """Columns of a table that are inputs, counted from 1."""
    answer: tuple[int, ...] = ()
    """Columns that are outputs; a system is identified from both."""

    def query(self) -> str:
        """Return the query of the address, without values that are the default."""
        defaults = asdict(ViewState())
        values = {key: value for key, value in asdict(self).items() if value != defaults[key] or key == "system"}
        return urlencode({key: _encode_value(key, value) for key, value in values.items()})

    @property
    def subject(self) -> tuple[Any, ...]:
        """Key of the system; all other values choose a view of it."""
        columns = (self.drive, self.answer) if self.system.startswith("file:") else ()
        return self.system, self.order, *columns

    @property
    def files(self) -> tuple[str, ...]:
        """Hashes of the files that it needs."""
        return tuple(name.removeprefix("file:") for name in (self.system, self.u) if name.startswith("file:"))


def parse_state(query: Mapping[str, str]) -> ViewState:
    """Return the state of an address; raise `InvalidStateError` for unknown parameters or invalid values."""
    unknown = sorted(set(query) - set(ViewState.__dataclass_fields__))
    if unknown:
        raise InvalidStateError(f"the address has an unknown parameter {sanitize(repr(unknown[0]))}; remove it")
    return ViewState(**{key: _READERS[key](key, text) for key, text in query.items() if text != ""})


def _encode_value(key: str, value: Any) -> str:
    if key == "pick":
        return f"{value[0]}.{value[1]}"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return repr(value) if isinstance(value, float) else str(value)


def _invalid_value(key: str, text: str, expected: str) -> InvalidStateError:
    return InvalidStateError(f"{key} is {sanitize(repr(text))} in the address; it must be {expected}")


def _matched(pattern: re.Pattern[str], expected: str, convert: Callable[[str], Any] = str) -> _Reader:
    """Return a reader of values that match a pattern."""

    def read(key: str, text: str) -> Any:
        if not pattern.fullmatch(text):
            raise _invalid_value(key, text, expected)
        return convert(text)

    return read


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.split("[.,]", text)))


def _number(is_valid: Callable[[float], bool], expected: str) -> _Reader:
    """Return a reader of numbers that satisfy a condition, which must be false for NaN."""

    def read(key: str, text: str) -> float:
        try:
            value = float(text) if len(text) < 40 else math.nan
        except ValueError:
            value = math.nan
        if not is_valid(value):
            raise _invalid_value(key, text, expected)
        return value

    return read


def _count(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_COUNT):
        raise _invalid_value(key, text, f"an integer from 1 to {_MAX_COUNT}")
    return int(text[:9])


_COLUMN_NUMBERS = _matched(_COLUMNS, "numbers of columns, such as 1,2", _numbers)
_READERS: Mapping[str, _Reader] = {
    "system": _matched(_SYSTEM, "example:NAME, or file: and the hash of an uploaded file"),
    "k": _number(lambda value: value >= 1.0, "a condition number, at least 1"),
    "order": _count,
    "u": _matched(_INPUT, f"{', '.join(INPUT_KINDS)}, or file: and the hash of an uploaded table"),
    "T": _number(lambda value: 0.0 < value < math.inf, "a positive time"),
    "input": _count,
    "output": _count,
    "pick": _matched(_PICK, "a layer and a neuron, such as 3.1", _numbers),
    "drive": _COLUMN_NUMBERS,
    "answer": _COLUMN_NUMBERS,
}
