"""The members of a group, by name; those that lie outside of the file are listed but never followed."""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from ltinet.model.formats.hdf5.container import UNDEFINED, Container
from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.hdf5.filters import parse_filters
from ltinet.model.formats.hdf5.link_message import parse_link
from ltinet.model.formats.hdf5.object_header import FILTERS, LINK, LINK_INFO, SYMBOL_TABLE, ObjectHeader
from ltinet.model.formats.limits import require_few

Links: TypeAlias = dict[str, int | str]
"""The address of each member, or what kind of link it is instead."""

_SOFT = 2
_NO_FREE_PART = 1
_ENTRY_SIZE = 40
_NODE_HEAD = 24


class _Tree(NamedTuple):
    container: Container
    names: bytes
    """The heap in which the names lie."""
    seen: set[int]

    def name(self, offset: int) -> bytes:
        cursor = Cursor(self.names)
        cursor.take(offset)
        return cursor.text()


def links_of(container: Container, header: ObjectHeader) -> Links | None:
    """The members of a group; None if the object is none."""
    table, info = header.find(SYMBOL_TABLE), header.find(LINK_INFO)
    filters = header.find(FILTERS)
    if filters is not None:  # for the names of many members, which are not read; they must be known all the same
        parse_filters(filters.cursor())
    if table is not None:
        tree, heap = table.cursor().numbers("QQ")
        names = _heap(container, heap)
        return _unique(_old_links(_Tree(container, names, set()), tree, None))
    if info is None:
        return None
    links = [parse_link(message.cursor()) for message in header.messages if message.kind == LINK]
    cursor = info.cursor()
    _, marks = cursor.numbers("BB")
    cursor.take(8 if marks & 0x01 else 0)
    if cursor.unsigned(8) != UNDEFINED:
        raise ValueError(
            "it keeps the names of its many variables in a form of HDF5 that MATLAB does not write and that is not "
            "known here; write it with libver='earliest', or as version 7"
        )
    return _unique(links)


def _unique(found: Iterable[tuple[bytes, int | str]]) -> Links:
    links: Links = {}
    for raw, target in found:
        name = raw.decode("utf-8", "surrogateescape")
        require_few(links)
        if name in links:
            raise ValueError("two members of a group have one name")
        links[name] = target
    return links


def _heap(container: Container, address: int) -> bytes:
    cursor = Cursor(container.bytes_at(address, 32))
    cursor.expect(b"HEAP\0", "the names of a group")
    cursor.take(3)
    size, free, start = cursor.numbers("QQQ")
    names = container.bytes_at(start, size)
    for _ in range(size // 16 + 1):  # no more free parts than fit in
        if free == _NO_FREE_PART:
            return names
        following, length = struct.unpack_from("<QQ", names, free) if free + 16 <= size else (0, 0)
        if following == 0 or free + length > size:
            break
        free = following
    raise ValueError("the names of a group have free room where there is none")


def _old_links(tree: _Tree, address: int, level: int | None) -> Iterator[tuple[bytes, int | str]]:
    """Walk a tree of symbol nodes from the left; names ascend, and lie between the keys beside each child."""
    if address in tree.seen:
        raise ValueError("a group contains itself")
    tree.seen.add(address)
    cursor = Cursor(tree.container.bytes_at(address, _NODE_HEAD))
    cursor.expect(b"TREE\0", "the members of a group")
    own_level, count, _, _ = cursor.numbers("BHQQ")
    if level is not None and own_level != level - 1:
        raise ValueError("the members of a group are not in order")
    room = tree.container.nodes_per_node
    entries = Cursor(tree.container.bytes_at(address + _NODE_HEAD, 16 * room + 8))
    if count > room:
        raise ValueError("a group has more members than it has room for")
    last = tree.name(entries.unsigned(8)) if count else b""
    for _ in range(count):
        child, key = entries.numbers("QQ")
        below = _old_links(tree, child, own_level) if own_level else _symbols(tree, child)
        for name, target in below:
            if not last < name:
                raise ValueError("the members of a group are not in order")
            last = name
            yield name, target
        if tree.name(key) < last:
            raise ValueError("the members of a group are not in order")


def _symbols(tree: _Tree, address: int) -> Iterator[tuple[bytes, int | str]]:
    if address in tree.seen:
        raise ValueError("a group contains itself")
    tree.seen.add(address)
    cursor = Cursor(tree.container.bytes_at(address, 8))
    cursor.expect(b"SNOD\1", "the members of a group")
    _, count = cursor.numbers("BH")
    room = tree.container.members_per_node
    entries = Cursor(tree.container.bytes_at(address + 8, _ENTRY_SIZE * room))
    if count > room:
        raise ValueError("a group has more members than it has room for")
    for _ in range(count):
        name, target, kind, _, _, _ = entries.numbers("QQIIQQ")
        if kind > _SOFT:
            raise ValueError("a group has members of a kind that is not known here")
        yield tree.name(name), "a link by name" if kind == _SOFT else target
