"""The data elements that version 5 of MATLAB's format is made of: a tag with type and length, then the data.

Every length is checked against what is left of the element around it, nothing is nested further than a matrix and its
parts, and compressed elements are inflated to the length that they claim and no further.
"""

import struct
import zlib
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ltinet.model.formats.limits import MOST_AXES, Allowance, require_plausible_inflation

Order: TypeAlias = Literal["<", ">"]

MATRIX, COMPRESSED = 14, 15
HEAD = 4096
"""Bytes from which the header of a matrix can always be read: flags, at most 32 lengths, a name."""

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_INT32, _UINT32, _INDICES, _TEXT = 5, 6, (5, 6), (1, 2, 16)
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}  # of characters, by type of data
_LONGEST_FIELD = 64  # MATLAB's own limit
_COMPLEX = 0x08
_OPAQUE = 17


class Header(NamedTuple):
    """What a matrix element says of itself before its data."""

    name: str
    kind: int
    """MATLAB's class: 1 to 4 are cells, structs, objects and text, 5 is sparse, 6 to 15 numbers."""
    shape: tuple[int, ...]
    is_complex: bool


@final
class Elements:
    """Walks the elements inside a block of bytes, one after the other."""

    def __init__(self, content: bytes, order: Order) -> None:
        self._content = content
        self._order = order
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Whether all of the block was read."""
        return self._position >= len(self._content)

    def header(self) -> Header:
        """The flags, the lengths of the axes and the name, with which every matrix begins."""
        flags = self._integers((_UINT32,))
        if len(flags) != 2:
            raise ValueError("a variable has no proper flags")
        kind, is_complex = int(flags[0]) & 0xFF, bool((int(flags[0]) >> 8) & _COMPLEX)
        if kind == _OPAQUE:  # an object of a class of its own: the name follows at once
            return Header(self._text(), kind, (), is_complex)
        shape = tuple(map(int, self._integers(_INDICES)))
        if not 2 <= len(shape) <= MOST_AXES or min(shape) < 0:
            raise ValueError(f"a variable has {len(shape)} axes, or one of negative length")
        return Header(self._text(), kind, shape, is_complex)

    def fields(self) -> dict[str, bytes]:
        """The fields of a struct with one element, each a matrix without its tag; those that are empty have no bytes.

        Raises:
            ValueError: they are not what a struct has.
        """
        lengths = self._integers((_INT32,))
        width = int(lengths[0]) if len(lengths) == 1 else 0
        text = self._text()
        if not 0 < width <= _LONGEST_FIELD or len(text) % width:
            raise ValueError("a struct has no proper names of fields")
        names = [text[begin : begin + width].split("\0")[0] for begin in range(0, len(text), width)]
        if len(set(names)) < len(names):
            raise ValueError("a struct has two fields of one name")
        return {name: self._matrix("a field of a struct") for name in names}

    def cells(self, count: int) -> list[bytes]:
        """The cells of a cell array, each a matrix without its tag; those that are empty have no bytes.

        Raises:
            ValueError: they are not what a cell array has.
        """
        return [self._matrix("a cell") for _ in range(count)]

    def characters(self) -> str:
        """The characters of a text, down its columns.

        Raises:
            ValueError: they are in an encoding that is not known here, or not in the one that they claim.
        """
        kind, data = self._next()
        if kind not in _ENCODINGS:
            raise ValueError(f"data of type {kind} stands where characters should")
        order = {"<": "-le", ">": "-be"}[self._order] if _ENCODINGS[kind] == "utf-16" else ""
        return data.decode(_ENCODINGS[kind] + order)

    def _matrix(self, what: str) -> bytes:
        kind, content = self._next()
        if kind != MATRIX:
            raise ValueError(f"data of type {kind} stands where {what} should")
        return content

    def indices(self) -> NDArray[np.int64]:
        """Row numbers, or where columns begin."""
        return self._integers(_INDICES)

    def numbers(self) -> NDArray[Any]:
        """Numbers of any type, as they are stored."""
        kind, data = self._next()
        if kind not in _NUMBERS:
            raise ValueError(f"data of type {kind} stands where numbers should")
        return self._as_array(kind, data)

    def _integers(self, kinds: tuple[int, ...]) -> NDArray[np.int64]:
        kind, data = self._next()
        if kind not in kinds:
            raise ValueError(f"data of type {kind} stands where whole numbers should")
        return self._as_array(kind, data).astype(np.int64)

    def _text(self) -> str:
        kind, data = self._next()
        if kind not in _TEXT:
            raise ValueError(f"data of type {kind} stands where a name should")
        return data.decode("latin-1")

    def _as_array(self, kind: int, data: bytes) -> NDArray[Any]:
        dtype = np.dtype(self._order + _NUMBERS[kind])
        if len(data) % dtype.itemsize:
            raise ValueError(f"{len(data)} bytes are no whole count of numbers of {dtype.itemsize} bytes")
        return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)

    def _next(self) -> tuple[int, bytes]:
        """Type and data. What fits into four bytes may stand in the tag itself; else zeros fill up to eight bytes."""
        tag = self._take(8)
        (first,) = struct.unpack(f"{self._order}I", tag[:4])
        if first >> 16:
            kind, count = first & 0xFFFF, first >> 16
            if count > 4:
                raise ValueError(f"a short element claims {count} bytes and can hold 4")
            return kind, tag[4 : 4 + count]
        (count,) = struct.unpack(f"{self._order}I", tag[4:])
        data = self._take(count)
        self._position += -count % 8  # the last one may go without
        return first, data

    def _take(self, count: int) -> bytes:
        stop = self._position + count
        if stop > len(self._content):
            raise ValueError("an element is longer than the variable that it belongs to")
        part = self._content[self._position : stop]
        self._position = stop
        return part


def inflated_head(compressed: bytes, order: Order) -> bytes:
    """The beginning of a compressed matrix, enough for its header, from the beginning of the compressed bytes."""
    machine = zlib.decompressobj()
    _matrix_length(machine.decompress(compressed, 8), order)
    return machine.decompress(machine.unconsumed_tail, HEAD)


def inflated(compressed: bytes, order: Order, *, allowance: Allowance, name: str) -> bytes:
    """The content of a compressed matrix: exactly as long as it claims, with a checksum that holds.

    Raises:
        ValueError: it is anything else.
        BeyondLimitError: it claims more than is allowed.
    """
    machine = zlib.decompressobj()
    count = _matrix_length(machine.decompress(compressed, 8), order)
    require_plausible_inflation(count, len(compressed), name)
    allowance.require(count, name)
    content = machine.decompress(machine.unconsumed_tail, count) if count else b""
    rest = machine.decompress(machine.unconsumed_tail, 1)  # also reads the checksum
    if len(content) != count or rest or not machine.eof or machine.unused_data:
        raise ValueError(f"{name} is not compressed as it should be")
    return content


def _matrix_length(tag: bytes, order: Order) -> int:
    kind, count = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, 0)
    if kind != MATRIX:
        raise ValueError("a compressed element holds something else than a variable")
    return int(count)
