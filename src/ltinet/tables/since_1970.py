"""Whole numbers that are no seconds: what programs count in milli-, micro- or nanoseconds since 1970."""

from ltinet.errors import FileFormatError

_SINCE_1970 = 1e11  # seconds that nobody measures; in milliseconds since 1970 it is the year 1973


def refuse_numbers_since_1970(first: float, place: str) -> None:
    """Refuse a first time that is too large for seconds, of a column without a unit.

    Raises:
        FileFormatError: it is.
    """
    if abs(first) >= _SINCE_1970:
        raise FileFormatError(
            f"{place}: the time {first:.0f} looks like milli-, micro- or nanoseconds since 1970; say what it is in, as "
            'in time_unit="ms", or time_unit="s" to take it as it is'
        )
