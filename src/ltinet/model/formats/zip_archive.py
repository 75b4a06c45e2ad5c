"""The members of a zip archive, as the directory at its end lists them; what contradicts itself is refused.

Python's own reader is made for archives of every origin and reads on where sizes and counts do not agree.
"""

import struct
import zlib
from typing import NamedTuple

from ltinet.model.formats.limits import require_few, require_plausible_inflation
from ltinet.model.formats.opening import OpenedFile
from ltinet.shown import shown

_END, _END_64, _LOCATOR_64, _ENTRY, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4"
_END_SIZE, _END_64_SIZE, _LOCATOR_SIZE, _ENTRY_SIZE, _LOCAL_SIZE = 22, 56, 20, 46, 30
_LONGEST_DIRECTORY = 1 << 26
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _UTF_8 = 0x0001, 0x0800
_ELSEWHERE = 0xFFFFFFFF  # a number of 32 bits that did not fit, and stands in a field of its own
_FIELD_64 = 1


class Member(NamedTuple):
    """One member, and what the directory says of it."""

    raw_name: bytes
    flags: int
    method: int
    checksum: int
    compressed_size: int
    size: int
    start: int

    @property
    def name(self) -> str:
        """The name as text."""
        return self.raw_name.decode("utf-8" if self.flags & _UTF_8 else "cp437")


class _Directory(NamedTuple):
    n_members: int
    start: int
    stop: int


def members_of(file: OpenedFile) -> list[Member]:
    """All members of an archive.

    Raises:
        ValueError: this is no archive, or its directory is damaged.
    """
    directory = _find_directory(file)
    if directory.stop - directory.start > _LONGEST_DIRECTORY:
        raise ValueError("its list of members is longer than anybody's")
    content = file.bytes_at(directory.start, directory.stop - directory.start)
    members: list[Member] = []
    position = 0
    while position < len(content):
        require_few(members)
        member, position = _parse_entry(content, position)
        members.append(member)
    if len(members) != directory.n_members:
        raise ValueError(f"it says that it has {directory.n_members} members, and lists {len(members)}")
    return members


def content_of(file: OpenedFile, member: Member) -> bytes:
    """The content of a member, as long as it claims and with a checksum that holds.

    Raises:
        ValueError: it is anything else.
    """
    name = shown(member.name)
    if member.method not in (_STORED, _DEFLATED) or member.flags & _ENCRYPTED:
        raise ValueError(f"{name} is compressed or encrypted in a way that NumPy does not write")
    require_plausible_inflation(member.size, member.compressed_size, name)
    head = struct.unpack("<4s5H3I2H", file.bytes_at(member.start, _LOCAL_SIZE))
    mark, _, _, method, *_, name_length, extra_length = head
    own_name = file.bytes_at(member.start + _LOCAL_SIZE, name_length)
    if mark != _LOCAL or method != member.method or own_name != member.raw_name:
        raise ValueError(f"{name} is not where the list of members says")
    start = member.start + _LOCAL_SIZE + name_length + extra_length
    content = file.bytes_at(start, member.compressed_size)
    if method == _DEFLATED:
        machine = zlib.decompressobj(-zlib.MAX_WBITS)
        content = machine.decompress(content, member.size + 1)
        if not machine.eof or machine.unused_data:
            raise ValueError(f"{name} is not compressed as it should be")
    if len(content) != member.size or zlib.crc32(content) != member.checksum:
        raise ValueError(f"the length or the checksum of {name} does not match")
    return content


def _find_directory(file: OpenedFile) -> _Directory:
    """By the record at the very end; a comment may follow it, which has to be as long as it says."""
    tail = file.bytes_at(max(0, file.length - _END_SIZE - 0xFFFF), min(file.length, _END_SIZE + 0xFFFF))
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise ValueError("it is not an archive, or cut off")
    _, *disks, here, count, size, start, comment = struct.unpack_from("<4s4H2IH", tail, at)
    end = file.length - len(tail) + at
    if len(tail) != at + _END_SIZE + comment or any(disks) or here != count:
        raise ValueError("it is one of several parts of an archive, or does not end where it should")
    if _ELSEWHERE in (size, start) or count == 0xFFFF:
        return _directory_64(file, end)
    return _checked(count, start, size, end)


def _directory_64(file: OpenedFile, end: int) -> _Directory:
    locator = end - _LOCATOR_SIZE
    mark, disk, place, n_disks = struct.unpack("<4sIQI", file.bytes_at(locator, _LOCATOR_SIZE))
    record = struct.unpack("<4sQ2H2I4Q", file.bytes_at(place, _END_64_SIZE))
    record_mark, length, _, _, *disks, here, count, size, start = record
    if mark != _LOCATOR_64 or record_mark != _END_64 or disk or n_disks != 1 or any(disks) or here != count:
        raise ValueError("the end of the archive is damaged")
    if place + 12 + length != locator:
        raise ValueError("the end of the archive is damaged")
    return _checked(count, start, size, place)


def _checked(count: int, start: int, size: int, stop: int) -> _Directory:
    if start + size != stop:
        raise ValueError("its list of members is not where it should be")
    return _Directory(count, start, stop)


def _parse_entry(content: bytes, position: int) -> tuple[Member, int]:
    if len(content) < position + _ENTRY_SIZE:
        raise ValueError("its list of members is cut off")
    fields = struct.unpack_from("<4s6H3I5H2I", content, position)
    mark, _, _, flags, method, _, _, checksum, compressed, size, *lengths, disk, _, _, start = fields
    ends = [position + _ENTRY_SIZE]
    for length in lengths:
        ends.append(ends[-1] + length)
    if mark != _ENTRY or disk or ends[-1] > len(content):
        raise ValueError("its list of members is damaged")
    name, extra = content[ends[0] : ends[1]], content[ends[1] : ends[2]]
    if not name or 0 in name:
        raise ValueError("it has a member without a proper name")
    size, compressed, start = _in_full((size, compressed, start), extra)
    return Member(name, flags, method, checksum, compressed, size, start), ends[-1]


def _in_full(numbers: tuple[int, int, int], extra: bytes) -> tuple[int, ...]:
    """Those numbers that did not fit into 32 bits, from the field that holds them one after the other."""
    longer = b""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        longer = extra[4 : 4 + length] if kind == _FIELD_64 else longer
        extra = extra[4 + length :]
    missing = numbers.count(_ELSEWHERE)
    if len(longer) < 8 * missing:
        raise ValueError("its list of members lacks a number")
    found = iter(struct.unpack_from(f"<{missing}Q", longer))
    return tuple(next(found) if number == _ELSEWHERE else number for number in numbers)
