"""Names of signals as identifiers of C and as text in comments: whatever they are, nothing of them is executed."""

import re
from collections.abc import Sequence

from ltinet.errors import FileFormatError
from ltinet.shown import shown

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_LONGEST = 40  # characters of an identifier that come from a name; C99 tells 31 of external names apart, we add numbers


def checked_prefix(prefix: object) -> str:
    """What all names of exported code begin with, and its files.

    Raises:
        FileFormatError: it is no beginning of an identifier.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise FileFormatError(
            f"prefix is {shown(repr(prefix))}; names of C begin with it: give up to 31 letters, digits and "
            "underscores, a letter first"
        )
    return prefix


def identifiers(names: Sequence[str]) -> list[str]:
    """For each name an identifier in capitals of its own, its number where it has no letter or digit of ASCII."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()[:_LONGEST].strip("_")
        own = words or str(number)
        while own in found:
            own = f"{own}_{number}"
        found.append(own)
    return found


def as_comment(text: str) -> str:
    """A text that ends no comment and begins none; question marks apart, since two may begin a trigraph."""
    plain = "".join(mark if mark.isprintable() else "?" for mark in text).replace("\\", "/")
    return re.sub(r"(?<=[*/?])(?=[*/?])", " ", plain)
