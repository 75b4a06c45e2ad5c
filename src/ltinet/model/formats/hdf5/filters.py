"""How the chunks of a dataset were packed, and how they are unpacked: never to more than a chunk holds."""

import zlib
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ltinet.model.formats.hdf5.checksum import fletcher32
from ltinet.model.formats.hdf5.cursor import Cursor

_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_MOST_FILTERS = 32
_CHECKSUM_SIZE = 4


class Filter(NamedTuple):
    """One step of packing, and the numbers that it was given."""

    kind: int
    values: tuple[int, ...]


Filters: TypeAlias = tuple[Filter, ...]


def parse_filters(cursor: Cursor | None) -> Filters:
    """The steps in the order in which they were applied; none if there is no such message.

    Raises:
        ValueError: one of them is not known here.
    """
    if cursor is None:
        return ()
    version, count = cursor.numbers("BB")
    if version not in (1, 2) or count > _MOST_FILTERS:
        raise ValueError(f"it has version {version} of filters, which is not known here")
    cursor.take(6 if version == 1 else 0)
    return tuple(_parse_filter(cursor, version) for _ in range(count))


def _parse_filter(cursor: Cursor, version: int) -> Filter:
    kind = cursor.unsigned(2)
    name_length = cursor.unsigned(2) if version == 1 or kind >= 256 else 0
    _, n_values = cursor.numbers("HH")
    if version == 1 and name_length % 8:
        raise ValueError("a filter of it has a name that is not filled up")
    cursor.take(name_length)
    values = cursor.numbers(f"{n_values}I")
    cursor.take(4 if version == 1 and n_values % 2 else 0)
    if kind not in _UNPACK:
        raise ValueError(f"it packs its numbers by the filter {kind}, which MATLAB does not and is not known here")
    return Filter(kind, values)


def unpack(packed: bytes, filters: Filters, *, skipped: int, size: int) -> bytes:
    """Undo all steps but those whose bits in `skipped` are set; what comes out has exactly `size` bytes.

    Raises:
        ValueError: it has not, or a checksum does not match.
    """
    for index, step in reversed(tuple(enumerate(filters))):
        if not skipped >> index & 1:
            packed = _UNPACK[step.kind](packed, step.values, size + _CHECKSUM_SIZE * len(filters))
    if len(packed) != size:
        raise ValueError(f"a chunk of it has {len(packed)} bytes, not {size}")
    return packed


def _inflate(packed: bytes, values: tuple[int, ...], most: int) -> bytes:
    if len(values) != 1 or values[0] > 9:
        raise ValueError("its numbers are compressed at an unknown level")
    machine = zlib.decompressobj()
    content = machine.decompress(packed, most + 1)
    if not machine.eof or len(content) > most:
        raise ValueError("a chunk of it is not compressed as it should be")
    return content


def _unshuffle(packed: bytes, values: tuple[int, ...], _: int) -> bytes:
    """Bytes were sorted by their place in a number: all first ones, then all second ones; a rest stays at the end."""
    if len(values) != 1 or values[0] == 0:
        raise ValueError("its numbers are shuffled by an unknown size")
    width = values[0]
    count = len(packed) // width
    sorted_bytes = np.frombuffer(packed[: count * width], np.uint8).reshape(width, count)
    return sorted_bytes.T.tobytes() + packed[count * width :]


def _check_fletcher(packed: bytes, _: tuple[int, ...], __: int) -> bytes:
    content, stored = packed[:-_CHECKSUM_SIZE], packed[-_CHECKSUM_SIZE:]
    if len(stored) != _CHECKSUM_SIZE or fletcher32(content) != int.from_bytes(stored, "little"):
        raise ValueError("the checksum of a chunk of it does not match")
    return content


_UNPACK: dict[int, Callable[[bytes, tuple[int, ...], int], bytes]] = {
    _DEFLATE: _inflate,
    _SHUFFLE: _unshuffle,
    _FLETCHER: _check_fletcher,
}
