"""The header of an array in NumPy's format, read by a pattern: NumPy itself runs Python's parser on it.

Deep nesting or a long row of signs would take that parser to its limits, and nothing of what a header may say needs it.
"""

import re
import struct
from typing import Any, NamedTuple

import numpy as np

from ltinet.model.formats.refusals import UnusableError

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}
_BLANKS = " \t\n"
_LONGEST = 10_000  # as in NumPy
_PREFIX = len(_MAGIC) + 2 + 4

_SIZE = "(?:0|[1-9][0-9]{0,18})L?~"  # as Python 2 wrote long numbers
_ITEM = re.compile(
    rf"""~(?:
        (?P<q1>['"])descr(?P=q1)~:~(?:(?P<q2>['"])(?P<descr>[^'"\\]{{1,20}})(?P=q2)|(?P<fields>\[))
      | (?P<q3>['"])fortran_order(?P=q3)~:~(?P<fortran>True|False)
      | (?P<q4>['"])shape(?P=q4)~:~\(~(?P<shape>(?:{_SIZE},~)*(?:{_SIZE})?)\)
    )~(?P<comma>,?)""".replace("~", r"[ \t\n]*"),
    re.VERBOSE,
)
_NUMBERS = re.compile(r"[<>|](?:b1|[iu]1)|[<>](?:[iu][248]|f[248]|c8|c16)")
_TEXTS = re.compile(r"[<>]U[0-9]{1,4}")
_EXTENDED = re.compile(r"[<>|=]?(?:f1[026]|c2[04]|c32)")


class ArrayHeader(NamedTuple):
    """What an array says of itself, and where its numbers begin."""

    dtype: "np.dtype[Any]"
    is_fortran: bool
    shape: tuple[int, ...]
    start: int


def parse_header(content: bytes, name: str, *, texts: bool = False) -> ArrayHeader:
    """Read the header of an array of numbers, or of texts.

    Raises:
        ValueError: this is no array of NumPy, or its header does not describe one.
        UnusableError: it is one of something else.
    """
    form = _LENGTHS.get((content[6], content[7])) if len(content) >= _PREFIX and content.startswith(_MAGIC) else None
    if form is None:
        raise ValueError(f"{name} is not an array in a format of NumPy that is known here")
    (length,) = struct.unpack_from(form, content, len(_MAGIC) + 2)
    first = len(_MAGIC) + 2 + struct.calcsize(form)
    start = first + int(length)
    if length > _LONGEST or start > len(content):
        raise ValueError(f"the header of {name} claims {length} bytes")
    text = content[first:start].decode("utf-8" if content[6] == 3 else "latin-1", "replace")
    items = _items(text, name)
    dtype = _text_dtype(items["descr"], name) if texts else _dtype(items["descr"], name)
    return ArrayHeader(dtype, items["fortran"] == "True", _shape(items["shape"], name), start)


def _items(text: str, name: str) -> dict[str, str]:
    body = text.strip(_BLANKS)
    if not (body.startswith("{") and body.endswith("}")):
        raise ValueError(f"the header of {name} is not a dictionary")
    found: dict[str, str] = {}
    position, stop = 1, len(body) - 1
    needs_comma = False
    while body[position:stop].strip(_BLANKS):
        match = _ITEM.match(body, position, stop)
        if match is None or needs_comma:
            raise ValueError(f"the header of {name} is not that of an array")
        if match["fields"]:
            raise UnusableError(f"{name} is a table with named columns, not an array of numbers")
        for key in ("descr", "fortran", "shape"):
            if match[key] is not None:
                if key in found:
                    raise ValueError(f"the header of {name} says the same twice")
                found[key] = match[key]
        position, needs_comma = match.end(), not match["comma"]
    if len(found) != 3:
        raise ValueError(f"the header of {name} lacks the type, the order or the shape")
    return found


def _dtype(descr: str, name: str) -> "np.dtype[Any]":
    if _NUMBERS.fullmatch(descr):
        return np.dtype(descr)
    if descr.lstrip("<>|=").startswith("O"):
        raise ValueError(
            f"{name} is an object array: reading one could run code, so none is read; save numbers instead"
        )
    if _EXTENDED.fullmatch(descr):
        raise UnusableError(
            f"{name} has numbers of type {descr}, which mean something else on every processor; save it as float64"
        )
    raise UnusableError(f"{name} has the type {descr!r}, which is none of numbers")


def _text_dtype(descr: str, name: str) -> "np.dtype[Any]":
    if not _TEXTS.fullmatch(descr):
        raise UnusableError(f"{name} has the type {descr!r}, which is none of texts")
    return np.dtype(descr)


def _shape(text: str, name: str) -> tuple[int, ...]:
    sizes = [part.strip(_BLANKS) for part in text.split(",")]
    if not text.strip(_BLANKS):
        return ()
    if len(sizes) == 1:
        raise ValueError(f"the shape of {name} is not a tuple")  # (3) is no tuple in Python, (3,) is
    return tuple(int(size.removesuffix("L")) for size in sizes if size)
