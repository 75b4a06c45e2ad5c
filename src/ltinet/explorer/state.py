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

DEFAULT_BUDGET = 1e4  # that of `construct`
INPUT_KINDS = ("step", "impulse", "chirp")  # besides a table, "file:…"
_HASH = r"[0-9a-f]{64}"
_SYSTEM = re.compile(rf"example:[a-z_]{{1,40}}|file:{_HASH}", re.ASCII)
_RECORD = re.compile(rf"file:{_HASH}", re.ASCII)
_PICK = re.compile(r"(\d{1,6})\.(\d{1,6})", re.ASCII)
_COLUMNS = re.compile(r"\d{1,4}(,\d{1,4}){0,63}", re.ASCII)
_MOST_STATES = 1000


class InvalidStateError(LtinetError, ValueError):
    """An address asks for something that the page cannot show."""


@final
@dataclass(frozen=True)
class ViewState:
    """One view of one system."""

    system: str = "example:triangular"
    """A built-in system, or a file by the hash of its bytes."""
    k: float = DEFAULT_BUDGET
    """The budget: the largest condition number of T."""
    order: int | None = None
    """States that a reduction is to keep; None for the system as it is."""
    u: str = "step"
    """What drives the response: step, impulse, chirp, or a table."""
    T: float | None = None
    """The end of the response; None for one that suits the system."""
    input: int = 1
    """The input that is driven and seen in the Bode diagram, counted from 1."""
    output: int = 1
    """The output that is looked at."""
    pick: tuple[int, int] | None = None
    """The layer and neuron whose share in the output is shown, counted from 0 as in `net.layers[0].neurons[1]`."""
    drive: tuple[int, ...] = ()
    """Columns of a table of measurements that drive, counted from 1."""
    answer: tuple[int, ...] = ()
    """Columns that answer: the system between both is identified."""

    def query(self) -> str:
        """The part of an address that says all of this; what is as usual is left out."""
        usual = asdict(ViewState())
        told = {key: value for key, value in asdict(self).items() if value != usual[key] or key == "system"}
        return urlencode({key: _encode_value(key, value) for key, value in told.items()})

    @property
    def subject(self) -> tuple[Any, ...]:
        """What decides which system it is: the rest chooses how to look at it."""
        columns = (self.drive, self.answer) if self.system.startswith("file:") else ()
        return self.system, self.order, *columns

    @property
    def files(self) -> tuple[str, ...]:
        """Hashes of the files that it needs."""
        return tuple(name.removeprefix("file:") for name in (self.system, self.u) if name.startswith("file:"))


def parse_state(query: Mapping[str, str]) -> ViewState:
    """The state that an address asks for.

    Raises:
        InvalidStateError: something in it is no state of the page.
    """
    unknown = sorted(set(query) - set(ViewState.__dataclass_fields__))
    if unknown:
        raise InvalidStateError(
            f"the address has {sanitize(repr(unknown[0]))}, which the page does not know; leave it out"
        )
    return ViewState(**{key: _READERS[key](key, text) for key, text in query.items() if text != ""})


def _encode_value(key: str, value: Any) -> str:
    if key == "pick":
        return f"{value[0]}.{value[1]}"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return repr(value) if isinstance(value, float) else str(value)


def _invalid_value(key: str, text: str, wanted: str) -> InvalidStateError:
    return InvalidStateError(f"{key} is {sanitize(repr(text))} in the address; it must be {wanted}")


def _system(key: str, text: str) -> str:
    if not _SYSTEM.fullmatch(text):
        raise _invalid_value(key, text, "example:NAME, or file: and the hash of one that was dropped here")
    return text


def _budget(key: str, text: str) -> float:
    value = _number(text)
    if not value >= 1.0:
        raise _invalid_value(key, text, "a number of at least 1, which every condition number is")
    return value


def _end(key: str, text: str) -> float:
    value = _number(text)
    if not 0.0 < value < math.inf:
        raise _invalid_value(key, text, "a time after 0")
    return value


def _number(text: str) -> float:
    try:
        return float(text) if len(text) < 40 else math.nan
    except ValueError:
        return math.nan


def _count(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_STATES):
        raise _invalid_value(key, text, f"a whole number from 1 to {_MOST_STATES}")
    return int(text[:9])


def _driving(key: str, text: str) -> str:
    if text not in INPUT_KINDS and not _RECORD.fullmatch(text):
        raise _invalid_value(
            key, text, f"{', '.join(INPUT_KINDS)}, or file: and the hash of a table that was dropped here"
        )
    return text


def _pick(key: str, text: str) -> tuple[int, int]:
    found = _PICK.fullmatch(text)
    if not found:
        raise _invalid_value(key, text, "a layer and a neuron, such as 3.1")
    return int(found[1]), int(found[2])


def _columns(key: str, text: str) -> tuple[int, ...]:
    if not _COLUMNS.fullmatch(text):
        raise _invalid_value(key, text, "numbers of columns, such as 1,2")
    return tuple(map(int, text.split(",")))


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "system": _system,
    "k": _budget,
    "order": _count,
    "u": _driving,
    "T": _end,
    "input": _count,
    "output": _count,
    "pick": _pick,
    "drive": _columns,
    "answer": _columns,
}
