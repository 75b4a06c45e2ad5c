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
_LONGEST = 10_000  # as in NumPy
PREFIX = len(_MAGIC) + 2 + 4
"""Bytes from which the length of the header can be told."""

_ITEM = re.compile(
    r"""\s*(?:
        (?P<q1>['"])descr(?P=q1)\s*:\s*(?:(?P<q2>['"])(?P<descr>[^'"\\]{1,20})(?P=q2)|(?P<fields>\[))
      | (?P<q3>['"])fortran_order(?P=q3)\s*:\s*(?P<fortran>True|False)
      | (?P<q4>['"])shape(?P=q4)\s*:\s*\(\s*(?P<shape>(?:[0-9]{1,19}L?\s*,\s*)*(?:[0-9]{1,19}L?\s*)?)\)
    )\s*(?P<comma>,?)""",
    re.VERBOSE,
)
_NUMBERS = re.compile(r"[<>|](?:b1|[iu]1)|[<>](?:[iu][248]|f[248]|c8|c16)")
_EXTENDED = re.compile(r"[<>|=]?(?:f1[026]|c2[04]|c32)")


class ArrayHeader(NamedTuple):
    """What an array says of itself."""

    dtype: "np.dtype[Any]"
    is_fortran: bool
    shape: tuple[int, ...]


def header_length(prefix: bytes, name: str) -> int:
    """Bytes before the numbers, from the first bytes of an array.

    Raises:
        ValueError: this is no array of NumPy.
    """
    form = _LENGTHS.get((prefix[6], prefix[7])) if len(prefix) >= PREFIX and prefix.startswith(_MAGIC) else None
    if form is None:
        raise ValueError(f"{name} is not an array in a format of NumPy that is known here")
    (length,) = struct.unpack_from(form, prefix, 8)
    if not PREFIX <= length <= _LONGEST:
        raise ValueError(f"the header of {name} claims {length} bytes")
    return 8 + struct.calcsize(form) + int(length)


def parse_header(head: bytes, name: str) -> ArrayHeader:
    """Read the whole header, as long as `header_length` said.

    Raises:
        ValueError: it does not describe an array of numbers.
    """
    form = _LENGTHS[head[6], head[7]]
    text = head[8 + struct.calcsize(form) :].decode("utf-8" if head[6] == 3 else "latin-1")
    items = _items(text, name)
    return ArrayHeader(_dtype(items["descr"], name), items["fortran"] == "True", _shape(items["shape"], name))


def _items(text: str, name: str) -> dict[str, str]:
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")):
        raise ValueError(f"the header of {name} is not a dictionary")
    found: dict[str, str] = {}
    position, stop = 1, len(body) - 1
    needs_comma = False
    while body[position:stop].strip():
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


def _shape(text: str, name: str) -> tuple[int, ...]:
    sizes = [part.strip() for part in text.split(",")]
    if not text.strip():
        return ()
    if len(sizes) == 1:
        raise ValueError(f"the shape of {name} is not a tuple")  # (3) is no tuple in Python, (3,) is
    return tuple(int(size.removesuffix("L")) for size in sizes if size)
