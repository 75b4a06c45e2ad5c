"""HDF5 file structure: superblock, checksums, object headers, filters and groups.

A small strict reader of what MATLAB's version 7.3 needs. The HDF5 library follows links into other files, and its list
of memory errors on damaged files is long. Here every address and length is checked against the file, nothing outside of
it is read, no tree is visited twice, and features that MATLAB never writes are refused by name. Constants are those of
the "HDF5 File Format Specification, version 3.0". Checksums are Jenkins' lookup3 (metadata) and Fletcher's (chunks).
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, final

import numpy as np

from ltinet.io.file_access import RegularFile, require_variable_limit


@final
class ByteReader:
    """Cursor that takes little-endian integers and parts of a block of bytes, never beyond its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes that were not taken yet."""
        return len(self._content) - self.position

    def take(self, count: int) -> bytes:
        """Take the next bytes; raise ValueError if there are too few."""
        if not 0 <= count <= self.remaining:
            raise ValueError("a part of it is shorter than it claims")
        self.position += count
        return self._content[self.position - count : self.position]

    def unsigned(self, size: int) -> int:
        """Take the next unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def numbers(self, form: str) -> tuple[int, ...]:
        """Take the next numbers in a format of the module `struct`."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))

    def text(self) -> bytes:
        """Take the next text, up to its terminating NUL."""
        end = self._content.find(b"\0", self.position)
        if end < 0:
            raise ValueError("a name in it has no end")
        content = self.take(end - self.position)
        self.position += 1
        return content

    def expect(self, mark: bytes, noun: str) -> None:
        """Take a signature; raise ValueError if the bytes differ."""
        if self.take(len(mark)) != mark:
            raise ValueError(f"{noun} is missing where it is expected")


# Checksums: Jenkins' lookup3 of metadata, Fletcher's of chunks.

_MASK = 0xFFFFFFFF  # 32 bits
_START = 0xDEADBEEF  # initial value of lookup3
_MODULUS = 65535  # of Fletcher's checksum


def require_checksum(content: bytes, noun: str) -> None:
    """Compare the last four bytes with the checksum of those before them; raise ValueError if they differ."""
    if len(content) < 4 or lookup3(content[:-4]) != int.from_bytes(content[-4:], "little"):
        raise ValueError(f"the checksum of {noun} does not match")


def lookup3(content: bytes) -> int:
    """Return the hash "lookup3" of Jenkins, `hashlittle` with initial value 0."""
    a = b = c = (_START + len(content)) & _MASK
    if not content:
        return c
    whole = max(len(content) - 1, 0) // 12 * 12  # the last one to twelve bytes take the final mix
    for first, second, third in struct.iter_unpack("<3I", content[:whole]):
        a, b, c = _mix((a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK)
    first, second, third = struct.unpack("<3I", content[whole:].ljust(12, b"\0"))
    return _final_mix((a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK)


def fletcher32(content: bytes) -> int:
    """Return the Fletcher checksum of big-endian 16-bit words, as HDF5 computes it."""
    words = np.frombuffer(content[: len(content) & ~1], ">u2").astype(np.uint64)
    if len(content) % 2:
        words = np.append(words, np.uint64(content[-1] << 8))
    total = int(words.sum())
    weights = np.arange(len(words), 0, -1, dtype=np.uint64)
    # In portions of 2¹⁶ words, whose weighted sums stay below 2⁶⁴ for chunks of fewer than 2²⁴ words.
    weighted = sum(int(np.dot(words[k : k + 65536], weights[k : k + 65536])) for k in range(0, len(words), 65536))
    return (_fold_to_16_bits(weighted) << 16) | _fold_to_16_bits(total)


def _fold_to_16_bits(number: int) -> int:
    """Reduce a sum modulo 65535, where multiples other than 0 give 65535."""
    return (number - 1) % _MODULUS + 1 if number else 0


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for shift in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _rotate_left(c, shift)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _final_mix(a: int, b: int, c: int) -> int:
    for shift in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotate_left(b, shift)) & _MASK
        a, b, c = b, c, a
    return b


def _rotate_left(number: int, shift: int) -> int:
    return ((number << shift) | (number >> (32 - shift))) & _MASK


SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNDEFINED_ADDRESS = 2**64 - 1
"""Address of objects that do not exist."""
SIGNATURE_OFFSETS = (0, 512)
"""Possible offsets of the signature: the start, or behind the header of MATLAB."""

_MAX_SUPERBLOCK_BYTES = 128
_KNOWN_FLAGS = 0x7


@final
class Hdf5File:
    """HDF5 file; addresses count from its signature, and its end is that of the superblock."""

    def __init__(self, file: RegularFile) -> None:
        self._file = file
        self.members_per_node, self.nodes_per_node, self.chunks_per_node = 8, 32, 64
        """Capacity of the nodes of B-trees, which are stored at full size."""
        self._base = next((offset for offset in SIGNATURE_OFFSETS if _has_signature(file, offset)), -1)
        if self._base < 0:
            raise ValueError("it is not an HDF5 file")
        count = min(file.length - self._base, _MAX_SUPERBLOCK_BYTES)
        content = file.bytes_at(self._base, count)
        cursor = ByteReader(content)
        cursor.expect(SIGNATURE, "the signature")
        version = cursor.unsigned(1)
        if version > 3:
            raise ValueError(f"it has version {version} of the HDF5 superblock, which is not known here")
        self.root = self._old_root(cursor, version) if version < 2 else self._new_root(cursor, content)

    def bytes_at(self, address: int, count: int) -> bytes:
        """`count` bytes at an address.

        Raises ValueError if the file does not have them.
        """
        if self._base + address + count > self._end:
            raise ValueError(f"it says that it ends at byte {self._end}, and needs {count} bytes from {address} on")
        return self._file.bytes_at(self._base + address, count)

    def up_to(self, address: int, count: int) -> bytes:
        """Return at most `count` bytes at an address, fewer at the end of the file."""
        return self.bytes_at(address, max(0, min(count, self._end - self._base - address)))

    def _old_root(self, cursor: ByteReader, version: int) -> int:
        versions = cursor.take(4)
        sizes = cursor.take(2)
        if versions[:2] + versions[3:] != bytes(3):
            raise ValueError("it has parts of a version that is not known here")
        cursor.take(1)
        leaf, internal, flags = cursor.numbers("HHI")
        self.members_per_node, self.nodes_per_node = 2 * leaf, 2 * internal
        if version == 1:
            chunks, _ = cursor.numbers("HH")
            self.chunks_per_node = 2 * chunks
        if 0 in (self.members_per_node, self.nodes_per_node, self.chunks_per_node):
            raise ValueError("the nodes of its groups or chunks have no capacity")
        base, extension, end, driver = cursor.numbers("4Q")
        self._check(sizes, flags, base, end)
        if driver != UNDEFINED_ADDRESS or extension != UNDEFINED_ADDRESS:
            raise ValueError("its data lie in other files, or in a form that MATLAB does not write")
        _, root, kind, _, _, _ = cursor.numbers("QQIIQQ")
        if kind > 2:
            raise ValueError("its root is of a kind that is not known here")
        return root

    def _new_root(self, cursor: ByteReader, content: bytes) -> int:
        sizes = cursor.take(2)
        flags = cursor.unsigned(1)
        base, _, end, root = cursor.numbers("4Q")
        require_checksum(content[: cursor.position + 4], "the superblock")
        self._check(sizes, flags, base, end)
        return root

    def _check(self, sizes: bytes, flags: int, base: int, end: int) -> None:
        if sizes != b"\x08\x08" or flags & ~_KNOWN_FLAGS:
            raise ValueError("it has addresses that are not of 8 bytes, which is not known here")
        if base != self._base:
            raise ValueError(f"it says that it begins at byte {base}, and begins at {self._base}")
        if end > self._file.length:
            raise ValueError(f"it is cut off: it says that it has {end} bytes, and has {self._file.length}")
        self._end = end


def _has_signature(file: RegularFile, offset: int) -> bool:
    size = len(SIGNATURE)
    return file.length >= offset + size and file.bytes_at(offset, size) == SIGNATURE


DATASPACE, LINK_INFO, DATATYPE, OLD_FILL, FILL, LINK, EXTERNAL, LAYOUT = 1, 2, 3, 4, 5, 6, 7, 8
GROUP_INFO, FILTERS, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE, MODIFICATION_TIME = 10, 11, 12, 16, 17, 18
ATTRIBUTE_INFO, REFERENCE_COUNT = 21, 22

_EMPTY = 0
_KNOWN_KINDS = {_EMPTY, *range(DATASPACE, LAYOUT + 1), *range(GROUP_INFO, ATTRIBUTE + 1)} | {
    *range(CONTINUATION, MODIFICATION_TIME + 1), ATTRIBUTE_INFO, REFERENCE_COUNT
}  # fmt: skip
# Messages that begin with a version, which is zero, and two flags: number of bytes that follow always and for each flag.
_FLAGGED_SIZES = {LINK_INFO: (16, 8, 8), GROUP_INFO: (0, 4, 4), ATTRIBUTE_INFO: (16, 2, 8)}
_CAN_BE_SHARED = {DATASPACE, DATATYPE, OLD_FILL, FILL, FILTERS, ATTRIBUTE}
_SHARED, _NEVER_SHARED, _WAS_UNKNOWN, _SHAREABLE = 0x02, 0x04, 0x20, 0x40
_MAX_BLOCKS = 1000


class Message(NamedTuple):
    """Message of an object header: one property of the object."""

    kind: int
    flags: int
    content: bytes

    def cursor(self) -> ByteReader:
        """Return a reader of the content; raise ValueError if the content is shared and stored elsewhere."""
        if self.flags & _SHARED:
            raise ValueError("it shares descriptions between objects, which MATLAB does not and is not known here")
        return ByteReader(self.content)


@final
class ObjectHeader:
    """Messages of the object at an address."""

    def __init__(self, container: Hdf5File, address: int) -> None:
        is_version_2 = container.bytes_at(address, 4) == b"OHDR"
        self.messages = tuple((_messages_version_2 if is_version_2 else _messages_version_1)(container, address))

    def find(self, kind: int) -> Message | None:
        """Return the message of a kind that occurs at most once, or None; raise ValueError if there are several."""
        messages = [message for message in self.messages if message.kind == kind]
        if len(messages) > 1:
            raise ValueError("an object in it is described twice")
        return messages[0] if messages else None

    def need(self, kind: int, noun: str) -> Message:
        """Return the message of a kind that must occur once; raise ValueError otherwise."""
        message = self.find(kind)
        if message is None:
            raise ValueError(f"an object in it has no {noun}")
        return message


def _messages_version_1(container: Hdf5File, address: int) -> Iterator[Message]:
    version, _, expected, _, size, _ = ByteReader(container.bytes_at(address, 16)).numbers("BBHIII")
    if version != 1:
        raise ValueError("it has no object header where one is expected")
    blocks, visited, count = [(address + 16, size)], {address + 16}, 0
    for start, length in blocks:  # grows during the loop
        cursor = ByteReader(container.bytes_at(start, length))
        while cursor.remaining and count < expected:
            kind, length, flags, _, _ = cursor.numbers("HHBBH")
            message = _validate_message(Message(kind, flags, cursor.take(length)))
            count += 1
            if kind == CONTINUATION:
                _add_continuation(message, blocks, visited)
            yield message
        if cursor.remaining:
            raise ValueError("an object in it has more messages than it says")
    if count != expected:
        raise ValueError("an object in it has fewer messages than it says")


def _messages_version_2(container: Hdf5File, address: int) -> Iterator[Message]:
    head = ByteReader(container.up_to(address, 64))
    head.expect(b"OHDR", "an object")
    version, flags = head.numbers("BB")
    if version != 2 or flags & 0xC0:
        raise ValueError(f"it has version {version} of object headers, which is not known here")
    head.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
    size = head.unsigned(1 << (flags & 0x03))
    first = head.position
    blocks, visited = [(address, first + size + 4)], {address}
    for index, (start, length) in enumerate(blocks):  # grows during the loop
        content = container.bytes_at(start, length)
        require_checksum(content, "an object")
        cursor = ByteReader(content[:-4])
        if index == 0:
            cursor.take(first)
        else:
            cursor.expect(b"OCHK", "the rest of an object")
        prefix = 6 if flags & 0x04 else 4
        has_gap = False
        while cursor.remaining >= prefix:
            kind, length, message_flags = cursor.numbers("BHB")
            cursor.take(prefix - 4)
            message = _validate_message(Message(kind, message_flags, cursor.take(length)))
            has_gap |= kind == _EMPTY
            if kind == CONTINUATION:
                _add_continuation(message, blocks, visited)
            yield message
        if cursor.remaining and has_gap:  # a gap at the end is too short for a message; an empty message would fill it
            raise ValueError("an object in it has a gap")


def _validate_message(message: Message) -> Message:
    is_shared = bool(message.flags & (_SHARED | _SHAREABLE))
    may_be = message.kind in _CAN_BE_SHARED and not message.flags & _NEVER_SHARED
    if message.flags & _WAS_UNKNOWN or (is_shared and not may_be):
        raise ValueError("an object in it has marks that contradict each other")
    if message.kind == MODIFICATION_TIME and (len(message.content) < 8 or message.content[0] != 1):
        raise ValueError("an object in it has an invalid modification time")
    if message.kind == REFERENCE_COUNT and message.content[:1] != b"\0":
        raise ValueError(f"an object in it has a message of kind {message.kind} in a version that is not known")
    if message.kind in _FLAGGED_SIZES:
        _require_flags(message.kind, ByteReader(message.content))
    if message.kind not in _KNOWN_KINDS:
        raise ValueError(f"an object in it has a message of kind {message.kind}, which MATLAB does not write")
    return message


def _require_flags(kind: int, cursor: ByteReader) -> None:
    always, first, second = _FLAGGED_SIZES[kind]
    version, marks = cursor.numbers("BB")
    if version != 0 or marks & ~0x03:
        raise ValueError(
            f"an object in it has a message of kind {kind} in version {version} with marks {marks:#04x}, of which not "
            f"all are known here"
        )
    cursor.take(always + (first if marks & 0x01 else 0) + (second if marks & 0x02 else 0))


def _add_continuation(message: Message, blocks: list[tuple[int, int]], visited: set[int]) -> None:
    """Add the block that continues an object header; raise ValueError if it was visited already."""
    start, length = message.cursor().numbers("QQ")
    if start in visited or length == 0 or len(blocks) >= _MAX_BLOCKS:
        raise ValueError("the header of an object is cyclic, or continues at an invalid address")
    visited.add(start)
    blocks.append((start, length))


_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_MAX_FILTERS = 32
_CHECKSUM_SIZE = 4


class Filter(NamedTuple):
    """Filter of a chunk with its parameters."""

    kind: int
    values: tuple[int, ...]


Filters: TypeAlias = tuple[Filter, ...]


def parse_filters(cursor: ByteReader | None) -> Filters:
    """Parse the filters in the order of their application; raise ValueError for an unknown one."""
    if cursor is None:
        return ()
    version, count = cursor.numbers("BB")
    if version not in (1, 2) or count > _MAX_FILTERS:
        raise ValueError(f"it has version {version} of filters, which is not known here")
    cursor.take(6 if version == 1 else 0)
    return tuple(_parse_filter(cursor, version) for _ in range(count))


def _parse_filter(cursor: ByteReader, version: int) -> Filter:
    kind = cursor.unsigned(2)
    name_length = cursor.unsigned(2) if version == 1 or kind >= 256 else 0
    _, n_values = cursor.numbers("HH")
    if version == 1 and name_length % 8:
        raise ValueError("the name of a filter is not padded")
    cursor.take(name_length)
    values = cursor.numbers(f"{n_values}I")
    cursor.take(4 if version == 1 and n_values % 2 else 0)
    if kind not in _INVERSE_FILTERS:
        raise ValueError(f"it packs its numbers by the filter {kind}, which MATLAB does not and is not known here")
    return Filter(kind, values)


def undo_filters(packed: bytes, filters: Filters, *, skipped: int, size: int) -> bytes:
    """Undo all filters except those with a bit in `skipped`.

    Raises ValueError if the result does not have `size` bytes or a checksum does not match.
    """
    for index, step in reversed(tuple(enumerate(filters))):
        if not skipped >> index & 1:
            packed = _INVERSE_FILTERS[step.kind](packed, step.values, size + _CHECKSUM_SIZE * len(filters))
    if len(packed) != size:
        raise ValueError(f"a chunk of it has {len(packed)} bytes, not {size}")
    return packed


def _inflate(packed: bytes, values: tuple[int, ...], max_size: int) -> bytes:
    if len(values) != 1 or values[0] > 9:
        raise ValueError("its numbers are compressed at an unknown level")
    machine = zlib.decompressobj()
    content = machine.decompress(packed, max_size + 1)
    if not machine.eof or len(content) > max_size:
        raise ValueError("a chunk of it is not compressed as it should be")
    return content


def _unshuffle(packed: bytes, values: tuple[int, ...], _: int) -> bytes:
    """Undo the shuffle filter, which stores the first bytes of all numbers, then all second ones, and so on."""
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


_INVERSE_FILTERS: dict[int, Callable[[bytes, tuple[int, ...], int], bytes]] = {
    _DEFLATE: _inflate,
    _SHUFFLE: _unshuffle,
    _FLETCHER: _check_fletcher,
}


_HARD_LINK, _SOFT_LINK, _EXTERNAL_LINK = 0, 1, 64
_LINK_KINDS = {_SOFT_LINK: "a link by name", _EXTERNAL_LINK: "a link into another file"}


def parse_link(cursor: ByteReader) -> tuple[bytes, int | str]:
    """Return the name and the address of a link, or a description of a link that is not followed."""
    version, flags = cursor.numbers("BB")
    if version != 1 or flags & 0xE0:
        raise ValueError(f"it has version {version} of links, which is not known here")
    kind = cursor.unsigned(1) if flags & 0x08 else _HARD_LINK
    cursor.take(8 if flags & 0x04 else 0)
    cursor.take(1 if flags & 0x10 else 0)
    name = cursor.take(cursor.unsigned(1 << (flags & 0x03)))
    if not name or 0 in name:
        raise ValueError("a member of a group has no proper name")
    return name, cursor.unsigned(8) if kind == _HARD_LINK else _LINK_KINDS.get(kind, "a link of another kind")


Links: TypeAlias = dict[str, int | str]
"""Address of each member, or the description of a link that is not followed."""

_SOFT_LINK_CACHE_TYPE = 2
_NO_FREE_PART = 1
_ENTRY_SIZE = 40
_NODE_HEAD = 24


class _SymbolTree(NamedTuple):
    """B-tree of the members of a group."""

    container: Hdf5File
    names: bytes
    """Local heap with the names."""
    visited: set[int]

    def name(self, offset: int) -> bytes:
        cursor = ByteReader(self.names)
        cursor.take(offset)
        return cursor.text()


def read_links(container: Hdf5File, header: ObjectHeader) -> Links | None:
    """Return the members of a group; None if the object is not a group."""
    table, info, filters = header.find(SYMBOL_TABLE), header.find(LINK_INFO), header.find(FILTERS)
    if filters is not None:  # of dense link storage, which is not read, but must be known
        parse_filters(filters.cursor())
    if table is not None:
        tree, heap = table.cursor().numbers("QQ")
        names = _read_local_heap(container, heap)
        return _unique_links(_symbol_table_links(_SymbolTree(container, names, set()), tree, None))
    if info is None:
        return None
    links = [parse_link(message.cursor()) for message in header.messages if message.kind == LINK]
    cursor = info.cursor()
    _, marks = cursor.numbers("BB")
    cursor.take(8 if marks & 0x01 else 0)
    if cursor.unsigned(8) != UNDEFINED_ADDRESS:
        raise ValueError(
            "it keeps the names of its many variables in a form of HDF5 that MATLAB does not write and that is not "
            "known here; write it with libver='earliest', or as version 7"
        )
    return _unique_links(links)


def _unique_links(pairs: Iterable[tuple[bytes, int | str]]) -> Links:
    links: Links = {}
    for raw, target in pairs:
        name = raw.decode("utf-8", "surrogateescape")
        require_variable_limit(links)
        if name in links:
            raise ValueError("two members of a group have one name")
        links[name] = target
    return links


def _read_local_heap(container: Hdf5File, address: int) -> bytes:
    cursor = ByteReader(container.bytes_at(address, 32))
    cursor.expect(b"HEAP\0", "the names of a group")
    cursor.take(3)
    size, free, start = cursor.numbers("QQQ")
    names = container.bytes_at(start, size)
    for _ in range(size // 16 + 1):  # the free list cannot be longer
        if free == _NO_FREE_PART:
            return names
        following, length = struct.unpack_from("<QQ", names, free) if free + 16 <= size else (0, 0)
        if following == 0 or free + length > size:
            break
        free = following
    raise ValueError("the free list of the names of a group is damaged")


def _symbol_table_links(tree: _SymbolTree, address: int, level: int | None) -> Iterator[tuple[bytes, int | str]]:
    """Walk a B-tree of symbol nodes from the left; check that names ascend and lie between the keys of each child."""
    if address in tree.visited:
        raise ValueError("a group contains itself")
    tree.visited.add(address)
    cursor = ByteReader(tree.container.bytes_at(address, _NODE_HEAD))
    cursor.expect(b"TREE\0", "the members of a group")
    node_level, count, _, _ = cursor.numbers("BHQQ")
    if level is not None and node_level != level - 1:
        raise ValueError("the members of a group are not in order")
    capacity = tree.container.nodes_per_node
    entries = ByteReader(tree.container.bytes_at(address + _NODE_HEAD, 16 * capacity + 8))
    if count > capacity:
        raise ValueError("a group has more members than its nodes can hold")
    last = tree.name(entries.unsigned(8)) if count else b""
    for _ in range(count):
        child, key = entries.numbers("QQ")
        below = _symbol_table_links(tree, child, node_level) if node_level else _symbol_node_links(tree, child)
        for name, target in below:
            if not last < name:
                raise ValueError("the members of a group are not in order")
            last = name
            yield name, target
        if tree.name(key) < last:
            raise ValueError("the members of a group are not in order")


def _symbol_node_links(tree: _SymbolTree, address: int) -> Iterator[tuple[bytes, int | str]]:
    if address in tree.visited:
        raise ValueError("a group contains itself")
    tree.visited.add(address)
    cursor = ByteReader(tree.container.bytes_at(address, 8))
    cursor.expect(b"SNOD\1", "the members of a group")
    _, count = cursor.numbers("BH")
    capacity = tree.container.members_per_node
    entries = ByteReader(tree.container.bytes_at(address + 8, _ENTRY_SIZE * capacity))
    if count > capacity:
        raise ValueError("a group has more members than its nodes can hold")
    for _ in range(count):
        name, target, kind, _, _, _ = entries.numbers("QQIIQQ")
        if kind > _SOFT_LINK_CACHE_TYPE:
            raise ValueError("a group has members of a kind that is not known here")
        yield tree.name(name), "a link by name" if kind == _SOFT_LINK_CACHE_TYPE else target
