"""What the bytes of a dataset or an attribute mean: numbers that NumPy knows, texts, and a name for everything else."""

from typing import Any, NamedTuple

import numpy as np

from ltinet.model.formats.hdf5.cursor import Cursor

_FIXED, _FLOAT, _STRING, _COMPOUND, _REFERENCE, _ARRAY = 0, 1, 3, 6, 7, 10
_OF_OTHERS = (8, 9)  # named values and lists, whose own type follows
_NAMES = {3: "text", 6: "complex numbers", 7: "references", 8: "named values", 9: "lists", 10: "arrays"}
# As IEEE 754 has it: sign, offset, precision, place and size of the exponent, place and size of the mantissa, bias.
_IEEE = {
    2: (15, 0, 16, 10, 5, 0, 10, 15),
    4: (31, 0, 32, 23, 8, 0, 23, 127),
    8: (63, 0, 64, 52, 11, 0, 52, 1023),
}
_NORMALISED = 0x20  # the leading bit of the mantissa is implied, and nothing is filled up


class Datatype(NamedTuple):
    """A type, its size in bytes, and the NumPy type if it is one of numbers."""

    size: int
    numbers: "np.dtype[Any] | None"
    title: str
    is_text: bool = False
    is_compound: bool = False
    is_reference: bool = False
    """Whether it is addresses of objects in the same file."""


def parse_datatype(cursor: Cursor, *, is_part: bool = False) -> Datatype:
    """Read the description of a type; one that is part of another is made of no further ones.

    Raises:
        ValueError: it contradicts itself, or describes numbers that no processor has.
    """
    head = cursor.unsigned(4)
    version, kind, bits, size = head >> 4 & 0xF, head & 0xF, head >> 8, cursor.unsigned(4)
    if version not in (1, 2, 3) or size == 0:
        raise ValueError(f"it has version {version} of types, which is not known here")
    if kind == _FIXED:
        return _whole_numbers(cursor, bits, size)
    if kind == _FLOAT:
        return _floating(cursor, bits, size)
    if kind == _STRING and (bits & 0x0F > 2 or bits >> 4 > 1):
        raise ValueError("it has texts in a form that is not known here")
    if kind not in _NAMES:
        raise ValueError(f"it has values of type {kind}, which MATLAB does not write")
    if kind == _ARRAY or (is_part and kind in _OF_OTHERS):
        raise ValueError(f"it has {_NAMES[kind]} in a form that MATLAB does not write")
    if kind in _OF_OTHERS:
        parse_datatype(cursor, is_part=True)
    is_reference = kind == _REFERENCE and size == 8 and not bits & 0x0F
    return Datatype(size, None, _NAMES[kind], kind == _STRING, kind == _COMPOUND, is_reference)


def _whole_numbers(cursor: Cursor, bits: int, size: int) -> Datatype:
    offset, precision = cursor.numbers("HH")
    if size not in (1, 2, 4, 8) or (offset, precision) != (0, 8 * size) or bits & ~0x09:
        raise ValueError(f"it has whole numbers of {precision} bits in {size} bytes")
    order, sign = ">" if bits & 0x01 else "<", "i" if bits & 0x08 else "u"
    return Datatype(size, np.dtype(f"{order}{sign}{size}"), "whole numbers")


def _floating(cursor: Cursor, bits: int, size: int) -> Datatype:
    layout = (bits >> 8, *cursor.numbers("HHBBBBI"))
    if layout != _IEEE.get(size) or bits & 0xFE != _NORMALISED:
        raise ValueError(f"it has floating-point numbers of {size} bytes in a form that no processor has")
    return Datatype(size, np.dtype(f"{'>' if bits & 0x01 else '<'}f{size}"), "numbers")
