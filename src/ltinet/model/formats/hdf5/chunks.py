"""Datasets in chunks: a tree says where in the file each of them lies."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltinet.model.formats.hdf5.container import UNDEFINED, Container
from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.hdf5.filters import Filters, unpack

Place: TypeAlias = tuple[int, ...]
_NODE_HEAD = 24


class Chunked(NamedTuple):
    """Where and how a dataset keeps its chunks."""

    container: Container
    tree: int
    shape: tuple[int, ...]
    """Of one chunk."""
    item_size: int
    filters: Filters


class _Chunk(NamedTuple):
    place: Place
    size: int
    skipped: int
    address: int


def fill_from_chunks(array: NDArray[Any], chunked: Chunked) -> bool:
    """Copy all chunks to their places; False if some places were left as they are.

    Raises:
        ValueError: a chunk is damaged, lies outside of the array or is there twice.
    """
    expected = math.prod(-(-size // step) for size, step in zip(array.shape, chunked.shape, strict=True))
    n_bytes = array.dtype.itemsize * math.prod(chunked.shape)
    count = 0
    if chunked.tree != UNDEFINED:
        for chunk in _chunks(chunked, chunked.tree, set()):
            if any(
                at >= size or at % step for at, size, step in zip(chunk.place, array.shape, chunked.shape, strict=True)
            ):
                raise ValueError("it has a chunk that lies outside of it")
            packed = chunked.container.bytes_at(chunk.address, chunk.size)
            content = unpack(packed, chunked.filters, skipped=chunk.skipped, size=n_bytes)
            _copy(array, np.frombuffer(content, array.dtype).reshape(chunked.shape), chunk.place)
            count += 1
    return bool(count == expected)


def _copy(array: NDArray[Any], chunk: NDArray[Any], place: Place) -> None:
    """Chunks at the far ends may reach beyond the array."""
    target = array[tuple(slice(at, at + size) for at, size in zip(place, chunk.shape, strict=True))]
    target[...] = chunk[tuple(slice(size) for size in target.shape)]


def _chunks(chunked: Chunked, address: int, seen: set[int], level: int | None = None) -> Iterator[_Chunk]:
    """Walk the tree from the left; places ascend, so that none comes twice."""
    if address in seen:
        raise ValueError("its chunks lead back to themselves")
    seen.add(address)
    cursor = Cursor(chunked.container.bytes_at(address, _NODE_HEAD))
    cursor.expect(b"TREE\1", "its chunks")
    own_level, count, _, _ = cursor.numbers("BHQQ")
    if level is not None and own_level != level - 1:
        raise ValueError("its chunks are not in order")
    form = f"II{len(chunked.shape) + 1}Q"
    key_size = 16 + 8 * len(chunked.shape)
    room = chunked.container.chunks_per_node
    entries = Cursor(chunked.container.bytes_at(address + _NODE_HEAD, room * (key_size + 8) + key_size))
    if count > room:
        raise ValueError("it has more chunks in one place than there is room for")
    steps = (*chunked.shape, chunked.item_size)
    size, skipped, *place = _key(entries, form, steps)
    for _ in range(count):
        child = entries.unsigned(8)
        next_size, next_skipped, *next_place = _key(entries, form, steps)
        below = (
            _chunks(chunked, child, seen, own_level)
            if own_level
            else iter([_Chunk(tuple(place[:-1]), size, skipped, child)])
        )
        for chunk in below:
            if not tuple(place) <= (*chunk.place, 0) < tuple(next_place):
                raise ValueError("its chunks are not in order")
            yield chunk
        size, skipped, place = next_size, next_skipped, next_place


def _key(entries: Cursor, form: str, steps: tuple[int, ...]) -> tuple[int, ...]:
    key = entries.numbers(form)
    if any(at % step for at, step in zip(key[2:], steps, strict=True)):
        raise ValueError("it has a chunk that begins in the middle of another")
    return key
