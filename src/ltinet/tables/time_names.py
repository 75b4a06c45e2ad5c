"""What programs call a column of times, and the units that they put beside the name."""

import re
from types import MappingProxyType

_WORDS = (
    "t|times?|zeit|zeiten|zeitpunkt|uhrzeit|zeitstempel|time ?stamps?|date ?time|datum|date|date ?/ ?time"
    "|datum ?/ ?uhrzeit|datum ?/ ?zeit"
    "|elapsed(?: time)?|rel(?:ative)? time|abs(?:olute)? time|sample time|messzeit|temps|tiempo|tempo"
    "|x_value|seconds?|secs?|sekunden"
)
_NAME = re.compile(
    rf"(?P<word>{_WORDS})"
    r"(?:\s*[\[(](?P<bracketed>.*)[\])]|\s*/\s*(?P<per>\w+)|(?:\s+in\s+|[\s,]+|\.)(?P<after>\w+))?",
    re.IGNORECASE,
)
# How many of the unit make a second, or how many seconds make the unit: one division or product, rounded once.
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_SECONDS = {"min": 60.0, "h": 3600.0, "d": 86400.0}
_ALIASES = {
    "s": "sec secs second seconds sek sekunde sekunden",
    "ms": "msec msecs millisecond milliseconds millisekunden",
    "us": "µs μs usec usecs microsecond microseconds mikrosekunden",
    "ns": "nsec nanosecond nanoseconds nanosekunden",
    "min": "mins minute minutes minuten",
    "h": "hr hrs hour hours std stunde stunden",
    "d": "day days tag tage",
}
UNITS = MappingProxyType({alias: unit for unit, names in _ALIASES.items() for alias in (unit, *names.split())})
"""Units of time by all their names."""
KNOWN_UNITS = tuple(_ALIASES)
_CLOCKS = ("utc", "gmt", "z")
_TEMPERATURES = ("k", "°c", "c", "degc", "deg c", "°f", "f", "degf", "kelvin", "celsius")  # "T (K)" is no time


def is_time_name(name: str) -> bool:
    """Whether a column of this name is meant as the time; a unit may follow the word."""
    found = _found(name)
    if found is None:
        return False
    if (found["bracketed"] or "").strip().casefold() in _TEMPERATURES:
        return False
    after = found["per"] or found["after"]
    return after is None or _unit_or_clock(after)


def unit_text(name: str) -> str | None:
    """What the name says of the unit, "ms" of "Time (ms)"; None where it says nothing."""
    found = _found(name)
    if found is None:
        brackets = re.search(r"[\[(]([^\])]*)[\])]\s*$", name)
        return brackets[1].strip() if brackets else None
    text = found["bracketed"] or found["per"] or found["after"]
    return text.strip() if text and text.strip() else None


def says_utc(name: str) -> bool:
    """Whether the name says that clocks show universal time."""
    return (unit_text(name) or "").casefold() in _CLOCKS


def unit_of(text: str) -> str | None:
    """The unit by its usual sign; None if it is not known."""
    return UNITS.get(text.strip().casefold())


def in_seconds(unit: str) -> tuple[float, float]:
    """A factor and a divisor: t in seconds is t · factor / divisor, where one of the two is 1."""
    return (1.0, _PER_SECOND[unit]) if unit in _PER_SECOND else (_SECONDS[unit], 1.0)


def _found(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(" ".join(name.replace("_", " ").split()) if name.casefold() != "x_value" else name)


def _unit_or_clock(text: str) -> bool:
    return unit_of(text) is not None or text.casefold() in _CLOCKS
