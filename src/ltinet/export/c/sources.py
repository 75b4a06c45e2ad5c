"""The hand-written files of this package, with what differs from model to model put into its places."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_MARK = "\0"  # in no name and in no source
_SECTION = re.compile(r"/\* \[model: ([\w ]+)\] \*/\n(?:.*?\n)?/\* \[end\] \*/\n", re.DOTALL)


@cache
def source(folder: str, name: str) -> str:
    """A file of the package."""
    return (resources.files("ltinet.export") / folder / "source" / name).read_text(encoding="utf-8")


def filled(text: str, sections: Mapping[str, str], *, prefix: str) -> str:
    """A source with its sections, in which everything that is called model has the name of this one."""
    whole = _SECTION.sub(lambda found: sections[found[1]] + "\n", text)
    return renamed(whole, prefix).replace(_MARK, "")


def kept(text: str) -> str:
    """A text that stays as it is when what is called model gets another name; `filled` takes its marks away."""
    return re.sub(r"(?i)mo(?=del)", lambda found: found[0] + _MARK, text)


def renamed(text: str, prefix: str) -> str:
    """A source in which `model` as a word, or before an underscore, is another name."""
    text = re.sub(r"\bMODEL(?=_)", prefix.upper(), text)
    return re.sub(r"\bmodel(?=_|\.[cho]\b|:)", prefix, text)
