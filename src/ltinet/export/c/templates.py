"""Templates of C source files and names in generated code.

The hand-written files of the package contain sections that are replaced by those of a model, and the word `model`,
which is replaced by its prefix. Signal names become C identifiers or comments in such a way that no text in a name can
become code.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

_PROTECTION_MARK = "\0"  # in no name and in no source
_SECTION = re.compile(r"/\* \[model: ([\w ]+)\] \*/\n(?:.*?\n)?/\* \[end\] \*/\n", re.DOTALL)


@cache
def read_source(folder: str, name: str) -> str:
    """A file of the package."""
    return (resources.files("ltinet.export") / folder / "source" / name).read_text(encoding="utf-8")


def fill_template(text: str, sections: Mapping[str, str], *, prefix: str) -> str:
    """A source with its sections, in which everything that is called model has the name of this one."""
    whole = _SECTION.sub(lambda found: sections[found[1]] + "\n", text)
    return rename_model(whole, prefix).replace(_PROTECTION_MARK, "")


def protect_model_names(text: str) -> str:
    """A text that stays as it is when what is called model gets another name; `fill_template` takes its marks away."""
    return re.sub(r"(?i)mo(?=del)", lambda found: found[0] + _PROTECTION_MARK, text)


def rename_model(text: str, prefix: str) -> str:
    """A source in which `model` as a word, or before an underscore, is another name."""
    text = re.sub(r"\bMODEL(?=_)", prefix.upper(), text)
    return re.sub(r"\bmodel(?=_|\.[cho]\b|:)", prefix, text)


_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_MAX_NAME_CHARACTERS = (
    40  # characters of an identifier that come from a name; C99 tells 31 of external names apart, we add numbers
)


def validate_prefix(prefix: object) -> str:
    """What all names of exported code begin with, and its files.

    Raises:
        FileFormatError: it is no beginning of an identifier.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise FileFormatError(
            f"prefix is {sanitize(repr(prefix))}; names of C begin with it: give up to 31 letters, digits and "
            "underscores, a letter first"
        )
    return prefix


def c_identifiers(names: Sequence[str]) -> list[str]:
    """For each name an identifier in capitals of its own, its number where it has no letter or digit of ASCII."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()[:_MAX_NAME_CHARACTERS].strip("_")
        own = words or str(number)
        while own in found:
            own = f"{own}_{number}"
        found.append(own)
    return found


def c_comment(text: str) -> str:
    """A text that ends no comment and begins none; question marks apart, since two may begin a trigraph."""
    plain = "".join(mark if mark.isprintable() else "?" for mark in text).replace("\\", "/")
    return re.sub(r"(?<=[*/?])(?=[*/?])", " ", plain)
