"""Small values attached to an object, by which MATLAB says what it is."""

import math
from typing import TypeAlias

import numpy as np

from ltinet.model.formats.hdf5.container import UNDEFINED
from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.hdf5.dataspace import parse_shape
from ltinet.model.formats.hdf5.datatype import parse_datatype
from ltinet.model.formats.hdf5.object_header import ATTRIBUTE, ATTRIBUTE_INFO, ObjectHeader

Attributes: TypeAlias = dict[str, str | int | None]
"""A text or a whole number each, None for a value of another kind."""


def attributes_of(header: ObjectHeader) -> Attributes:
    """The attributes of an object.

    Raises:
        ValueError: one is damaged or there twice, or they are kept elsewhere.
    """
    info = header.find(ATTRIBUTE_INFO)
    if info is not None:
        _require_here(info.cursor())
    found: Attributes = {}
    for message in header.messages:
        if message.kind == ATTRIBUTE:
            name, value = _attribute(message.cursor())
            if name in found:
                raise ValueError("an object in it has two attributes of one name")
            found[name] = value
    return found


def _require_here(cursor: Cursor) -> None:
    _, marks = cursor.numbers("BB")
    cursor.take(2 if marks & 0x01 else 0)
    if cursor.unsigned(8) != UNDEFINED:
        raise ValueError("it keeps many attributes of one object in a form that is not known here")


def _attribute(cursor: Cursor) -> tuple[str, str | int | None]:
    version, flags = cursor.numbers("BB")
    if version not in (1, 2, 3) or (version > 1 and flags):
        raise ValueError(f"it has attributes of version {version}, or shared ones, which is not known here")
    sizes = cursor.numbers("HHH")
    cursor.take(1 if version == 3 else 0)
    parts = []
    for size in sizes:
        parts.append(cursor.take(size))
        cursor.take(-size % 8 if version == 1 else 0)
    name, end = parts[0][:-1], parts[0][-1:]
    if not name or 0 in name or end != b"\0":
        raise ValueError("an object in it has an attribute without a proper name")
    datatype, shape = parse_datatype(Cursor(parts[1])), parse_shape(Cursor(parts[2]))
    if datatype.is_compound:
        raise ValueError("an object in it has an attribute of several parts, which MATLAB does not write")
    count = 0 if shape is None else math.prod(shape)
    content = cursor.take(datatype.size * count)
    title = name.decode("utf-8", "surrogateescape")
    if count == 1 and datatype.is_text:
        return title, content.partition(b"\0")[0].decode("utf-8", "surrogateescape").rstrip(" ")
    if count == 1 and datatype.numbers is not None and datatype.numbers.kind in "iu":
        return title, int(np.frombuffer(content, datatype.numbers)[0])
    return title, None
