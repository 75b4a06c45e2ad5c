"""The numbers of a dataset, wherever in the file it keeps them: in its header, in one piece, or in chunks."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.model.formats.hdf5.chunks import Chunked, fill_from_chunks
from ltinet.model.formats.hdf5.container import UNDEFINED, Container
from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.hdf5.dataspace import parse_shape
from ltinet.model.formats.hdf5.datatype import parse_datatype
from ltinet.model.formats.hdf5.filters import parse_filters
from ltinet.model.formats.hdf5.object_header import (
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
    ObjectHeader,
)
from ltinet.model.formats.limits import Allowance
from ltinet.model.formats.refusals import UnusableError, is_complex

_COMPACT, _CONTIGUOUS, _CHUNKED, _VIRTUAL = 0, 1, 2, 3
_HAS_NONE, _HAS_VALUE = 0x10, 0x20  # a fill value


class _Frame(NamedTuple):
    """What a dataset is to be filled into."""

    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def is_dataset(header: ObjectHeader) -> bool:
    """Whether the object holds data itself, and not members.

    Raises:
        ValueError: it holds both.
    """
    if header.find(LAYOUT) is None:
        return False
    if any(message.kind in (LINK_INFO, LINK, SYMBOL_TABLE) for message in header.messages):
        raise ValueError("an object in it is both a matrix and a group")
    return True


def read_dataset(
    container: Container, header: ObjectHeader, *, allowance: Allowance, name: str, references: bool = False
) -> NDArray[Any]:
    """All numbers of a dataset, or the addresses of the objects that it refers to.

    Raises:
        ValueError: it is damaged, lies in other files, or holds something else than numbers.
        BeyondLimitError: it takes more than is allowed.
    """
    if not is_dataset(header):
        raise ValueError(f"{name} is no matrix of numbers")
    datatype = parse_datatype(header.need(DATATYPE, "type").cursor())
    shape = parse_shape(header.need(DATASPACE, "shape").cursor())
    if header.find(EXTERNAL) is not None:
        raise ValueError(f"{name} keeps its numbers in another file, which is not read")
    if references and not datatype.is_reference:
        raise UnusableError(f"{name} holds {datatype.title}, not references")
    if datatype.is_compound:  # which MATLAB makes of nothing else
        raise is_complex(name)
    if datatype.numbers is None and not references:
        raise UnusableError(f"{name} holds {datatype.title}, not numbers")
    if shape is None:
        raise ValueError(f"{name} has no value")
    allowance.claim(shape, name)
    has_zero_fill = _has_zero_fill(header)
    frame = _Frame(datatype.numbers or np.dtype("<u8"), shape)
    content, is_whole = _content(container, header, frame, allowance)
    if not is_whole and not has_zero_fill:
        raise ValueError(f"{name} leaves out numbers that are not zero, which is not known here")
    numbers = np.frombuffer(content, frame.dtype) if isinstance(content, bytes) else content
    return numbers.reshape(shape).astype(frame.dtype.newbyteorder("="), copy=False)


def _content(
    container: Container, header: ObjectHeader, frame: _Frame, allowance: Allowance
) -> tuple[bytes | NDArray[Any], bool]:
    """The numbers, and whether all of them are in the file; those that are not are zero."""
    cursor = header.need(LAYOUT, "place for its numbers").cursor()
    version, kind = cursor.numbers("BB")
    if version not in (3, 4) or kind > _VIRTUAL:
        raise ValueError(f"it has version {version} of data layouts, which is not known here")
    if kind == _VIRTUAL:
        raise ValueError("it puts its numbers together from other datasets or files, which is not read")
    filters = header.find(FILTERS)
    if kind != _CHUNKED:
        if filters is not None:
            raise ValueError("it filters numbers that are in one piece, which HDF5 cannot")
        return _in_one_piece(container, cursor, frame, is_compact=kind == _COMPACT)
    if version != 3:
        raise ValueError(
            "it keeps its numbers in chunks of HDF5's newest form, which MATLAB does not write and is not known here; "
            "write it with libver='earliest', or as version 7"
        )
    rank, tree = cursor.numbers("BQ")
    sizes = cursor.numbers(f"{rank}I")
    if rank != len(frame.shape) + 1 or sizes[-1] != frame.dtype.itemsize or 0 in sizes:
        raise ValueError("it keeps its numbers in chunks that do not fit its shape")
    chunks = Chunked(
        container, tree, sizes[:-1], sizes[-1], parse_filters(None if filters is None else filters.cursor())
    )
    allowance.require(frame.dtype.itemsize * math.prod(chunks.shape), "one of its chunks")
    array = np.zeros(frame.shape, frame.dtype)
    return array, fill_from_chunks(array, chunks)


def _in_one_piece(
    container: Container, cursor: Cursor, frame: _Frame, *, is_compact: bool
) -> tuple[bytes | NDArray[Any], bool]:
    if is_compact:
        content = cursor.take(cursor.unsigned(2))
        if len(content) != frame.n_bytes:
            raise ValueError(f"it has {len(content)} bytes, not {frame.n_bytes}")
        return content, True
    address, size = cursor.numbers("QQ")
    if address == UNDEFINED:  # never written
        return np.zeros(frame.shape, frame.dtype), False
    if size != frame.n_bytes:
        raise ValueError(f"it has {size} bytes, not {frame.n_bytes}")
    return container.bytes_at(address, size), True


def _has_zero_fill(header: ObjectHeader) -> bool:
    """Whether what was never written is zero; files may say otherwise, though MATLAB's do not."""
    fills = [message for message in header.messages if message.kind in (FILL, OLD_FILL)]
    return not any(any(_fill_value(message.cursor(), is_old=message.kind == OLD_FILL)) for message in fills)


def _fill_value(cursor: Cursor, *, is_old: bool) -> bytes:
    if is_old:
        return cursor.take(cursor.unsigned(4))
    version = cursor.unsigned(1)
    if version in (1, 2):
        is_defined = cursor.take(3)[2] != 0
    elif version == 3:
        marks = cursor.unsigned(1)
        is_defined = bool(marks & _HAS_VALUE)
        if marks & 0xC0 or (is_defined and marks & _HAS_NONE):
            raise ValueError("it has fill values with marks that contradict each other or are not known here")
    else:
        raise ValueError(f"it has version {version} of fill values, which is not known here")
    return cursor.take(cursor.unsigned(4)) if is_defined else b""
