"""HDF5 datasets and attributes: dataspaces, datatypes, chunks and values.

Datasets may be compact (in the object header), contiguous, or chunked with a B-tree of version 1. Datatypes are those
that NumPy has, plus text and object references. Values that were never written must have a fill value of zero. See
`hdf5_structure` for the limits of this reader.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltinet.io.file_access import MAX_AXES, SizeAllowance, UnsupportedVariableError, complex_matrix_error
from ltinet.io.hdf5_structure import (
    ATTRIBUTE,
    ATTRIBUTE_INFO,
    DATASPACE,
    DATATYPE,
    EXTERNAL,
    FILL,
    FILTERS,
    LAYOUT,
    LINK,
    LINK_INFO,
    OLD_FILL,
    SYMBOL_TABLE,
    UNDEFINED_ADDRESS,
    ByteReader,
    Filters,
    Hdf5File,
    ObjectHeader,
    parse_filters,
    undo_filters,
)

_NULL = 2  # dataspace without values


def parse_dataspace(cursor: ByteReader) -> tuple[int, ...] | None:
    """Return the shape, () for a scalar and None for no value; raise ValueError if it is damaged."""
    version, rank, flags = cursor.numbers("BBB")
    if version == 1:
        cursor.take(5)
        kind = 1
    elif version == 2:
        kind = cursor.unsigned(1)
    else:
        raise ValueError(f"it has version {version} of shapes, which is not known here")
    if rank > MAX_AXES or flags & ~0x01 or kind > _NULL or (kind != 1 and rank):
        raise ValueError(f"it has an invalid shape of {rank} axes")
    shape = cursor.numbers(f"{rank}Q")
    if flags & 0x01 and any(most < size for size, most in zip(shape, cursor.numbers(f"{rank}Q"), strict=True)):
        raise ValueError("it has an axis that exceeds its maximal length")
    return None if kind == _NULL else shape


_FIXED, _FLOAT, _STRING, _COMPOUND, _REFERENCE, _ARRAY = 0, 1, 3, 6, 7, 10
_DERIVED_CLASSES = (8, 9)  # named values and lists, whose own type follows
_CLASS_NAMES = {3: "text", 6: "complex numbers", 7: "references", 8: "named values", 9: "lists", 10: "arrays"}
# IEEE 754: sign, offset, precision, position and size of the exponent, position and size of the mantissa, bias.
_IEEE_LAYOUTS = {
    2: (15, 0, 16, 10, 5, 0, 10, 15),
    4: (31, 0, 32, 23, 8, 0, 23, 127),
    8: (63, 0, 64, 52, 11, 0, 52, 1023),
}
_NORMALIZED = 0x20  # the leading bit of the mantissa is implied; no padding


class Datatype(NamedTuple):
    """Datatype with its size in bytes, and the NumPy type if it is numeric."""

    size: int
    numbers: "np.dtype[Any] | None"
    title: str
    is_text: bool = False
    is_compound: bool = False
    is_reference: bool = False
    """True for addresses of objects in the same file."""


def parse_datatype(cursor: ByteReader, *, is_part: bool = False) -> Datatype:
    """Parse a datatype; one that is part of another (`is_part`) must not have parts itself.

    Raises ValueError if it is damaged or not a type that NumPy or MATLAB has.
    """
    head = cursor.unsigned(4)
    version, kind, bits, size = head >> 4 & 0xF, head & 0xF, head >> 8, cursor.unsigned(4)
    if version not in (1, 2, 3) or size == 0:
        raise ValueError(f"it has version {version} of types, which is not known here")
    if kind == _FIXED:
        return _parse_integer(cursor, bits, size)
    if kind == _FLOAT:
        return _parse_float(cursor, bits, size)
    if kind == _STRING and (bits & 0x0F > 2 or bits >> 4 > 1):
        raise ValueError("it has texts in a form that is not known here")
    if kind not in _CLASS_NAMES:
        raise ValueError(f"it has values of type {kind}, which MATLAB does not write")
    if kind == _ARRAY or (is_part and kind in _DERIVED_CLASSES):
        raise ValueError(f"it has {_CLASS_NAMES[kind]} in a form that MATLAB does not write")
    if kind in _DERIVED_CLASSES:
        parse_datatype(cursor, is_part=True)
    is_reference = kind == _REFERENCE and size == 8 and not bits & 0x0F
    return Datatype(size, None, _CLASS_NAMES[kind], kind == _STRING, kind == _COMPOUND, is_reference)


def _parse_integer(cursor: ByteReader, bits: int, size: int) -> Datatype:
    offset, precision = cursor.numbers("HH")
    if size not in (1, 2, 4, 8) or (offset, precision) != (0, 8 * size) or bits & ~0x09:
        raise ValueError(f"it has whole numbers of {precision} bits in {size} bytes")
    order, sign = ">" if bits & 0x01 else "<", "i" if bits & 0x08 else "u"
    return Datatype(size, np.dtype(f"{order}{sign}{size}"), "whole numbers")


def _parse_float(cursor: ByteReader, bits: int, size: int) -> Datatype:
    layout = (bits >> 8, *cursor.numbers("HHBBBBI"))
    if layout != _IEEE_LAYOUTS.get(size) or bits & 0xFE != _NORMALIZED:
        raise ValueError(f"it has floating-point numbers of {size} bytes that are not in an IEEE format")
    return Datatype(size, np.dtype(f"{'>' if bits & 0x01 else '<'}f{size}"), "numbers")


Attributes: TypeAlias = dict[str, str | int | None]
"""Text or integer values; None for values of other types."""


def read_attributes(header: ObjectHeader) -> Attributes:
    """Return the attributes of an object; raise ValueError if one is damaged, duplicated or in dense storage."""
    info = header.find(ATTRIBUTE_INFO)
    if info is not None:
        _require_compact_storage(info.cursor())
    attributes: Attributes = {}
    for message in header.messages:
        if message.kind == ATTRIBUTE:
            name, value = _parse_attribute(message.cursor())
            if name in attributes:
                raise ValueError("an object in it has two attributes of one name")
            attributes[name] = value
    return attributes


def _require_compact_storage(cursor: ByteReader) -> None:
    _, marks = cursor.numbers("BB")
    cursor.take(2 if marks & 0x01 else 0)
    if cursor.unsigned(8) != UNDEFINED_ADDRESS:
        raise ValueError("it keeps many attributes of one object in a form that is not known here")


def _parse_attribute(cursor: ByteReader) -> tuple[str, str | int | None]:
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
    datatype, shape = parse_datatype(ByteReader(parts[1])), parse_dataspace(ByteReader(parts[2]))
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


ChunkOffset: TypeAlias = tuple[int, ...]
_NODE_HEAD = 24


class ChunkLayout(NamedTuple):
    """Location and encoding of the chunks of a dataset."""

    container: Hdf5File
    tree: int
    shape: tuple[int, ...]
    """Shape of a chunk."""
    item_size: int
    filters: Filters


class _Chunk(NamedTuple):
    offset: ChunkOffset
    size: int
    skipped: int
    address: int


def read_chunks(array: NDArray[Any], chunked: ChunkLayout) -> bool:
    """Copy all chunks into the array; return False if the file does not have all of them.

    Raises ValueError if a chunk is damaged, outside of the array or duplicated.
    """
    expected = math.prod(-(-size // step) for size, step in zip(array.shape, chunked.shape, strict=True))
    n_bytes = array.dtype.itemsize * math.prod(chunked.shape)
    count = 0
    if chunked.tree != UNDEFINED_ADDRESS:
        for chunk in _chunks(chunked, chunked.tree, set()):
            places = zip(chunk.offset, array.shape, chunked.shape, strict=True)
            if any(at >= size or at % step for at, size, step in places):
                raise ValueError("it has a chunk that lies outside of it")
            packed = chunked.container.bytes_at(chunk.address, chunk.size)
            content = undo_filters(packed, chunked.filters, skipped=chunk.skipped, size=n_bytes)
            values = np.frombuffer(content, array.dtype).reshape(chunked.shape)
            target = array[tuple(slice(at, at + size) for at, size in zip(chunk.offset, values.shape, strict=True))]
            target[...] = values[tuple(slice(size) for size in target.shape)]  # the last may extend beyond the array
            count += 1
    return bool(count == expected)


def _chunks(chunked: ChunkLayout, address: int, visited: set[int], level: int | None = None) -> Iterator[_Chunk]:
    """Walk the B-tree from the left; check that offsets ascend, so that no chunk occurs twice."""
    if address in visited:
        raise ValueError("the index of its chunks is cyclic")
    visited.add(address)
    cursor = ByteReader(chunked.container.bytes_at(address, _NODE_HEAD))
    cursor.expect(b"TREE\1", "its chunks")
    node_level, count, _, _ = cursor.numbers("BHQQ")
    if level is not None and node_level != level - 1:
        raise ValueError("its chunks are not in order")
    form = f"II{len(chunked.shape) + 1}Q"
    key_size = 16 + 8 * len(chunked.shape)
    capacity = chunked.container.chunks_per_node
    entries = ByteReader(chunked.container.bytes_at(address + _NODE_HEAD, capacity * (key_size + 8) + key_size))
    if count > capacity:
        raise ValueError("it has more chunks in one node than that can hold")
    steps = (*chunked.shape, chunked.item_size)
    size, skipped, *offset = _chunk_key(entries, form, steps)
    for _ in range(count):
        child = entries.unsigned(8)
        next_size, next_skipped, *next_offset = _chunk_key(entries, form, steps)
        leaf = _Chunk(tuple(offset[:-1]), size, skipped, child)
        below = _chunks(chunked, child, visited, node_level) if node_level else iter([leaf])
        for chunk in below:
            if not tuple(offset) <= (*chunk.offset, 0) < tuple(next_offset):
                raise ValueError("its chunks are not in order")
            yield chunk
        size, skipped, offset = next_size, next_skipped, next_offset


def _chunk_key(entries: ByteReader, form: str, steps: tuple[int, ...]) -> tuple[int, ...]:
    key = entries.numbers(form)
    if any(at % step for at, step in zip(key[2:], steps, strict=True)):
        raise ValueError("it has a chunk that begins in the middle of another")
    return key


_COMPACT, _CONTIGUOUS, _CHUNKED, _VIRTUAL = 0, 1, 2, 3
_FILL_UNDEFINED, _FILL_DEFINED = 0x10, 0x20


class _ArrayLayout(NamedTuple):
    """Type and shape of the array that a dataset is read into."""

    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def is_dataset(header: ObjectHeader) -> bool:
    """Return True for a dataset, False for a group; raise ValueError for an object that is both."""
    if header.find(LAYOUT) is None:
        return False
    if any(message.kind in (LINK_INFO, LINK, SYMBOL_TABLE) for message in header.messages):
        raise ValueError("an object in it is both a matrix and a group")
    return True


def read_dataset(
    container: Hdf5File, header: ObjectHeader, *, allowance: SizeAllowance, name: str, references: bool = False
) -> NDArray[Any]:
    """Return the numbers of a dataset or, with `references`, the addresses of the objects that it refers to.

    Raises ValueError if it is damaged, in another file, or not numeric; SizeLimitError if it exceeds the allowance.
    """
    if not is_dataset(header):
        raise ValueError(f"{name} is not a matrix of numbers")
    datatype = parse_datatype(header.need(DATATYPE, "type").cursor())
    shape = parse_dataspace(header.need(DATASPACE, "shape").cursor())
    if header.find(EXTERNAL) is not None:
        raise ValueError(f"{name} keeps its numbers in another file; store them in this file")
    if references and not datatype.is_reference:
        raise UnsupportedVariableError(f"{name} holds {datatype.title}, not references")
    if datatype.is_compound:  # MATLAB stores only complex numbers as compounds
        raise complex_matrix_error(name)
    if datatype.numbers is None and not references:
        raise UnsupportedVariableError(f"{name} holds {datatype.title}, not numbers")
    if shape is None:
        raise ValueError(f"{name} has no value")
    allowance.claim(shape, name)
    fills = [message for message in header.messages if message.kind in (FILL, OLD_FILL)]
    has_zero_fill = not any(any(_fill_value(message.cursor(), is_old=message.kind == OLD_FILL)) for message in fills)
    frame = _ArrayLayout(datatype.numbers or np.dtype("<u8"), shape)
    content, is_whole = _read_content(container, header, frame, allowance)
    if not is_whole and not has_zero_fill:
        raise ValueError(f"{name} has missing chunks with a fill value other than zero, which is not supported")
    numbers = np.frombuffer(content, frame.dtype) if isinstance(content, bytes) else content
    return numbers.reshape(shape).astype(frame.dtype.newbyteorder("="), copy=False)


def _read_content(
    container: Hdf5File, header: ObjectHeader, frame: _ArrayLayout, allowance: SizeAllowance
) -> tuple[bytes | NDArray[Any], bool]:
    """Return the numbers, and False if some are not in the file; those are zero."""
    cursor = header.need(LAYOUT, "place for its numbers").cursor()
    version, kind = cursor.numbers("BB")
    if version not in (3, 4) or kind > _VIRTUAL:
        raise ValueError(f"it has version {version} of data layouts, which is not known here")
    if kind == _VIRTUAL:
        raise ValueError(
            "it is a virtual dataset, whose numbers lie in other datasets or files; store the numbers themselves"
        )
    filters = header.find(FILTERS)
    if kind != _CHUNKED:
        if filters is not None:
            raise ValueError("it filters numbers that are in one piece, which HDF5 cannot")
        return _read_contiguous(container, cursor, frame, is_compact=kind == _COMPACT)
    if version != 3:
        raise ValueError(
            "it keeps its numbers in chunks of HDF5's newest form, which MATLAB does not write and is not known here; "
            "write it with libver='earliest', or as version 7"
        )
    rank, tree = cursor.numbers("BQ")
    sizes = cursor.numbers(f"{rank}I")
    if rank != len(frame.shape) + 1 or sizes[-1] != frame.dtype.itemsize or 0 in sizes:
        raise ValueError("it keeps its numbers in chunks that do not fit its shape")
    parsed_filters = parse_filters(None if filters is None else filters.cursor())
    chunks = ChunkLayout(container, tree, sizes[:-1], sizes[-1], parsed_filters)
    allowance.require(frame.dtype.itemsize * math.prod(chunks.shape), "one of its chunks")
    array = np.zeros(frame.shape, frame.dtype)
    return array, read_chunks(array, chunks)


def _read_contiguous(
    container: Hdf5File, cursor: ByteReader, frame: _ArrayLayout, *, is_compact: bool
) -> tuple[bytes | NDArray[Any], bool]:
    if is_compact:
        content = cursor.take(cursor.unsigned(2))
        if len(content) != frame.n_bytes:
            raise ValueError(f"it has {len(content)} bytes, not {frame.n_bytes}")
        return content, True
    address, size = cursor.numbers("QQ")
    if address == UNDEFINED_ADDRESS:  # never written
        return np.zeros(frame.shape, frame.dtype), False
    if size != frame.n_bytes:
        raise ValueError(f"it has {size} bytes, not {frame.n_bytes}")
    return container.bytes_at(address, size), True


def _fill_value(cursor: ByteReader, *, is_old: bool) -> bytes:
    """Return the value of what was never written: zeros in all files of MATLAB, or nothing if it is undefined."""
    if is_old:
        return cursor.take(cursor.unsigned(4))
    version = cursor.unsigned(1)
    if version in (1, 2):
        is_defined = cursor.take(3)[2] != 0
    elif version == 3:
        marks = cursor.unsigned(1)
        is_defined = bool(marks & _FILL_DEFINED)
        if marks & 0xC0 or (is_defined and marks & _FILL_UNDEFINED):
            raise ValueError("it has fill values with marks that contradict each other or are not known here")
    else:
        raise ValueError(f"it has version {version} of fill values, which is not known here")
    return cursor.take(cursor.unsigned(4)) if is_defined else b""
