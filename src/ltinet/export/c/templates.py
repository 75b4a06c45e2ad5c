"""Templates of C source files, and identifiers and comments from signal names.

The hand-written files of the package contain sections that are replaced by those of a model, and the word `model`,
which is replaced by its prefix. Signal names become identifiers or comments in such a way that no text in a name can
become code.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

_PROTECTION_MARK = "\0"  # occurs neither in names nor in sources
_SECTION = re.compile(r"/\* \[model: ([\w ]+)\] \*/\n(?:.*?\n)?/\* \[end\] \*/\n", re.DOTALL)


@cache
def read_source(folder: str, name: str) -> str:
    """Return a source file of the package."""
    return (resources.files("ltinet.export") / folder / "source" / name).read_text(encoding="utf-8")


def fill_template(text: str, sections: Mapping[str, str], *, prefix: str) -> str:
    """Return a source with its sections, in which the prefix replaces `model`."""
    source = _SECTION.sub(lambda match: sections[match[1]] + "\n", text)
    return rename_model(source, prefix).replace(_PROTECTION_MARK, "")


def protect_model_names(text: str) -> str:
    """Return a text whose words `model` the renaming of `fill_template` leaves as they are."""
    return re.sub(r"(?i)mo(?=del)", lambda match: match[0] + _PROTECTION_MARK, text)


def rename_model(text: str, prefix: str) -> str:
    """Return a source in which a prefix replaces `model` as a word or before an underscore."""
    text = re.sub(r"\bMODEL(?=_)", prefix.upper(), text)
    return re.sub(r"\bmodel(?=_|\.[cho]\b|:)", prefix, text)


_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_MAX_NAME_CHARACTERS = 40  # of a signal name in an identifier; a number is added to names that are equal up to there


def validate_prefix(prefix: object) -> str:
    """Return the prefix of files and identifiers; raise `FileFormatError` if it does not begin a C identifier."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise FileFormatError(
            f"prefix is {sanitize(repr(prefix))}; it must be a C identifier: up to 31 letters, digits and underscores, a "
            "letter first"
        )
    return prefix


def c_identifiers(names: Sequence[str]) -> list[str]:
    """Return distinct identifiers in capitals for names; the number of a name without ASCII letters and digits."""
    identifiers: list[str] = []
    for number, name in enumerate(names, start=1):
        words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()[:_MAX_NAME_CHARACTERS].strip("_")
        identifier = words or str(number)
        while identifier in identifiers:
            identifier = f"{identifier}_{number}"
        identifiers.append(identifier)
    return identifiers


def c_comment(text: str) -> str:
    """Return a text that neither ends nor begins a comment; question marks apart, since two may begin a trigraph."""
    plain = "".join(mark if mark.isprintable() else "?" for mark in text).replace("\\", "/")
    return re.sub(r"(?<=[*/?])(?=[*/?])", " ", plain)
