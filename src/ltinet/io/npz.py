"""NumPy archives (`.npz`) of arrays and sparse matrices, read and written without pickle.

The zip directory at the end of the archive is read strictly: sizes, counts and checksums must agree. Headers of arrays
are parsed by a regular expression, because NumPy runs Python's parser on them, which deep nesting takes to its limits.
A sparse matrix A is stored in compressed columns as A.data, A.indices, A.indptr and A.shape.
"""

import math
import re
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ltinet._util.text import sanitize
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    RegularFile,
    SizeAllowance,
    UnsupportedVariableError,
    csc_from_columns,
    format_shape,
    open_regular,
    require_plausible_inflation,
    require_variable_limit,
)
from ltinet.systems.matrices import Matrix, SparseMatrix

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}
_WHITESPACE = " \t\n"
_MAX_HEADER_BYTES = 10_000  # the limit of NumPy
_PREFIX = len(_MAGIC) + 2 + 4

_SIZE = "(?:0|[1-9][0-9]{0,18})L?~"  # Python 2 wrote long integers with L
_ITEM = re.compile(
    rf"""~(?:
        (?P<q1>['"])descr(?P=q1)~:~(?:(?P<q2>['"])(?P<descr>[^'"\\]{{1,20}})(?P=q2)|(?P<fields>\[))
      | (?P<q3>['"])fortran_order(?P=q3)~:~(?P<fortran>True|False)
      | (?P<q4>['"])shape(?P=q4)~:~\(~(?P<shape>(?:{_SIZE},~)*(?:{_SIZE})?)\)
    )~(?P<comma>,?)""".replace("~", r"[ \t\n]*"),
    re.VERBOSE,
)
_NUMBERS = re.compile(r"[<>|](?:b1|[iu]1)|[<>](?:[iu][248]|f[248]|c8|c16)")
_TEXTS = re.compile(r"[<>]U[0-9]{1,4}")
_EXTENDED = re.compile(r"[<>|=]?(?:f1[026]|c2[04]|c32)")


class NpyHeader(NamedTuple):
    """Header of an array, with the offset of its numbers."""

    dtype: "np.dtype[Any]"
    is_fortran: bool
    shape: tuple[int, ...]
    start: int


def parse_npy_header(content: bytes, name: str, *, texts: bool = False) -> NpyHeader:
    """Parse the header of an array of numbers or, with `texts`, of texts.

    Raises ValueError for an invalid header, UnsupportedVariableError for an array of another type.
    """
    form = _LENGTHS.get((content[6], content[7])) if len(content) >= _PREFIX and content.startswith(_MAGIC) else None
    if form is None:
        raise ValueError(f"{name} is not an array in a format of NumPy that is known here")
    (length,) = struct.unpack_from(form, content, len(_MAGIC) + 2)
    first = len(_MAGIC) + 2 + struct.calcsize(form)
    start = first + int(length)
    if length > _MAX_HEADER_BYTES or start > len(content):
        raise ValueError(f"the header of {name} claims {length} bytes")
    text = content[first:start].decode("utf-8" if content[6] == 3 else "latin-1", "replace")
    items = _parse_items(text, name)
    dtype = _text_dtype(items["descr"], name) if texts else _number_dtype(items["descr"], name)
    return NpyHeader(dtype, items["fortran"] == "True", _shape(items["shape"], name), start)


def _parse_items(text: str, name: str) -> dict[str, str]:
    body = text.strip(_WHITESPACE)
    if not (body.startswith("{") and body.endswith("}")):
        raise ValueError(f"the header of {name} is not a dictionary")
    items: dict[str, str] = {}
    position, stop = 1, len(body) - 1
    needs_comma = False
    while body[position:stop].strip(_WHITESPACE):
        match = _ITEM.match(body, position, stop)
        if match is None or needs_comma:
            raise ValueError(f"the header of {name} is not that of an array")
        if match["fields"]:
            raise UnsupportedVariableError(f"{name} is a table with named columns, not an array of numbers")
        for key in ("descr", "fortran", "shape"):
            if match[key] is not None:
                if key in items:
                    raise ValueError(f"the header of {name} says the same twice")
                items[key] = match[key]
        position, needs_comma = match.end(), not match["comma"]
    if len(items) != 3:
        raise ValueError(f"the header of {name} lacks the type, the order or the shape")
    return items


def _number_dtype(descr: str, name: str) -> "np.dtype[Any]":
    if _NUMBERS.fullmatch(descr):
        return np.dtype(descr)
    if descr.lstrip("<>|=").startswith("O"):
        raise ValueError(
            f"{name} is an object array: reading one could run code, so none is read; save numbers instead"
        )
    if _EXTENDED.fullmatch(descr):
        raise UnsupportedVariableError(
            f"{name} has numbers of type {descr}, whose format depends on the processor; save it as float64"
        )
    raise UnsupportedVariableError(f"{name} has the type {descr!r}, which is not numeric")


def _text_dtype(descr: str, name: str) -> "np.dtype[Any]":
    if not _TEXTS.fullmatch(descr):
        raise UnsupportedVariableError(f"{name} has the type {descr!r}, which is not a text type")
    return np.dtype(descr)


def _shape(text: str, name: str) -> tuple[int, ...]:
    sizes = [part.strip(_WHITESPACE) for part in text.split(",")]
    if not text.strip(_WHITESPACE):
        return ()
    if len(sizes) == 1:
        raise ValueError(f"the shape of {name} is not a tuple")  # (3) is a number in Python, (3,) a tuple
    return tuple(int(size.removesuffix("L")) for size in sizes if size)


_END, _END_64, _LOCATOR_64, _ENTRY, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4"
_END_SIZE, _END_64_SIZE, _LOCATOR_SIZE, _ENTRY_SIZE, _LOCAL_SIZE = 22, 56, 20, 46, 30
_MAX_DIRECTORY_BYTES = 1 << 26
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _UTF_8 = 0x0001, 0x0800
_ZIP64_MARKER = 0xFFFFFFFF  # the number is in the zip64 field, because it does not fit into 32 bits
_ZIP64_FIELD = 1


class ZipMember(NamedTuple):
    """Member of a zip archive as listed in the directory."""

    raw_name: bytes
    flags: int
    method: int
    checksum: int
    compressed_size: int
    size: int
    start: int

    @property
    def name(self) -> str:
        """Name as text."""
        return self.raw_name.decode("utf-8" if self.flags & _UTF_8 else "cp437")


class _Directory(NamedTuple):
    n_members: int
    start: int
    stop: int


def list_members(file: RegularFile) -> list[ZipMember]:
    """List all members of an archive; raise ValueError if it is not an archive or its directory is damaged."""
    directory = _find_directory(file)
    if directory.stop - directory.start > _MAX_DIRECTORY_BYTES:
        raise ValueError("its list of members is too long")
    content = file.bytes_at(directory.start, directory.stop - directory.start)
    members: list[ZipMember] = []
    position = 0
    while position < len(content):
        require_variable_limit(members)
        member, position = _parse_entry(content, position)
        members.append(member)
    if len(members) != directory.n_members:
        raise ValueError(f"it says that it has {directory.n_members} members, and lists {len(members)}")
    return members


def read_member(file: RegularFile, member: ZipMember) -> bytes:
    """Return the content of a member; raise ValueError if its length or its checksum does not match."""
    name = sanitize(member.name)
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


def _find_directory(file: RegularFile) -> _Directory:
    """Find the directory by the record at the end of the file, which only a comment may follow."""
    tail = file.bytes_at(max(0, file.length - _END_SIZE - 0xFFFF), min(file.length, _END_SIZE + 0xFFFF))
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise ValueError("it is not an archive, or cut off")
    _, *disks, here, count, size, start, comment = struct.unpack_from("<4s4H2IH", tail, at)
    end = file.length - len(tail) + at
    if len(tail) != at + _END_SIZE + comment or any(disks) or here != count:
        raise ValueError("it is one of several parts of an archive, or does not end where it should")
    if _ZIP64_MARKER in (size, start) or count == 0xFFFF:
        return _directory_64(file, end)
    return _validate_directory(count, start, size, end)


def _directory_64(file: RegularFile, end: int) -> _Directory:
    locator = end - _LOCATOR_SIZE
    mark, disk, place, n_disks = struct.unpack("<4sIQI", file.bytes_at(locator, _LOCATOR_SIZE))
    record = struct.unpack("<4sQ2H2I4Q", file.bytes_at(place, _END_64_SIZE))
    record_mark, length, _, _, *disks, here, count, size, start = record
    if mark != _LOCATOR_64 or record_mark != _END_64 or disk or n_disks != 1 or any(disks) or here != count:
        raise ValueError("the end of the archive is damaged")
    if place + 12 + length != locator:
        raise ValueError("the end of the archive is damaged")
    return _validate_directory(count, start, size, place)


def _validate_directory(count: int, start: int, size: int, stop: int) -> _Directory:
    if start + size != stop:
        raise ValueError("its list of members is not where it should be")
    return _Directory(count, start, stop)


def _parse_entry(content: bytes, position: int) -> tuple[ZipMember, int]:
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
        raise ValueError("it has a member without a valid name")
    size, compressed, start = _zip64_values((size, compressed, start), extra)
    return ZipMember(name, flags, method, checksum, compressed, size, start), ends[-1]


def _zip64_values(numbers: tuple[int, int, int], extra: bytes) -> tuple[int, ...]:
    """Replace numbers that do not fit into 32 bits by those of the zip64 field."""
    longer = b""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        longer = extra[4 : 4 + length] if kind == _ZIP64_FIELD else longer
        extra = extra[4 + length :]
    missing = numbers.count(_ZIP64_MARKER)
    if len(longer) < 8 * missing:
        raise ValueError("its list of members lacks a number")
    values = iter(struct.unpack_from(f"<{missing}Q", longer))
    return tuple(next(values) if number == _ZIP64_MARKER else number for number in numbers)


_SUFFIX = ".npy"
_SPARSE_PARTS = (".data", ".indices", ".indptr", ".shape")  # of a sparse matrix in compressed columns


def list_variables(path: Path) -> list[str]:
    """List the names of arrays and complete sparse matrices without reading them."""
    with open_regular(path) as file:
        members = _members(file)
        whole = [name for name in dict.fromkeys(map(_owner, members)) if name and _parts(name, members)]
        return [*(name for name in members if _owner(name) not in whole), *whole]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist; arrays of Python objects are refused, since reading them could run code.

    Raises ValueError if the archive is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    allowance = SizeAllowance(max_bytes)
    with open_regular(path) as file:
        members = _members(file)
        values = {name: _read_array(file, members[name], name, allowance) for name in names if name in members}
        for name in names:
            parts = [] if name in members else _parts(name, members)
            if parts:
                values[name] = _read_sparse(file, parts, name, allowance)
        return values


def read_texts(path: Path, name: str) -> list[str]:
    """Read an array of texts; raise ValueError for other variables."""
    with open_regular(path) as file:
        array = _read_array(file, _members(file)[name], name, SizeAllowance(DEFAULT_MAX_BYTES), texts=True)
    return [str(text) for text in array.ravel().tolist()]


def write(
    target: Path | BinaryIO,
    matrices: Mapping[str, Matrix | SparseMatrix],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a compressed archive; a sparse A becomes A.data, A.indices, A.indptr and A.shape of its columns."""
    arrays: dict[str, Any] = {name: np.array(lines, dtype=str) for name, lines in (texts or {}).items()}
    for name, matrix in matrices.items():
        if isinstance(matrix, SparseMatrix):
            columns = matrix.tocsc()
            parts = (columns.data, columns.indices, columns.indptr, np.array(columns.shape))
            arrays |= {name + suffix: part for suffix, part in zip(_SPARSE_PARTS, parts, strict=True)}
        else:
            arrays[name] = matrix
    if isinstance(target, Path):
        with target.open("wb") as stream:
            np.savez_compressed(stream, **arrays)
    else:
        np.savez_compressed(target, **arrays)


def _members(file: RegularFile) -> dict[str, ZipMember]:
    if file.bytes_at(0, min(file.length, len(_MAGIC))) == _MAGIC:
        raise ValueError("it holds a single array (.npy), not an archive of named ones")
    members: dict[str, ZipMember] = {}
    for member in list_members(file):
        name = member.name.removesuffix(_SUFFIX)
        if name in members:
            raise ValueError(f"it holds {sanitize(name)} twice")
        members[name] = member
    return members


def _owner(name: str) -> str:
    """Return the sparse matrix that an array is part of, or ""."""
    return next((name.removesuffix(part) for part in _SPARSE_PARTS if name.endswith(part)), "")


def _parts(name: str, members: Mapping[str, ZipMember]) -> list[ZipMember]:
    """Return the parts of a sparse matrix; an empty list if one is missing."""
    names = [name + part for part in _SPARSE_PARTS]
    return [members[part] for part in names] if all(part in members for part in names) else []


def _read_sparse(file: RegularFile, parts: Sequence[ZipMember], name: str, allowance: SizeAllowance) -> Any:
    data, rows, starts, shape = (
        _read_array(file, member, name + part, allowance) for member, part in zip(parts, _SPARSE_PARTS, strict=True)
    )
    for values, part in zip((rows, starts, shape), _SPARSE_PARTS[1:], strict=True):
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise ValueError(f"{name}{part} is not a list of whole numbers")
    if len(shape) != 2 or data.ndim != 1:
        raise ValueError(f"{name} is not a sparse matrix in compressed columns")
    size = (int(shape[0]), int(shape[1]))
    allowance.claim_sparse(size, len(rows), name)
    return csc_from_columns(data, rows.astype(np.int64), starts.astype(np.int64), shape=size, name=name)


def _read_array(
    file: RegularFile, member: ZipMember, name: str, allowance: SizeAllowance, *, texts: bool = False
) -> Any:
    allowance.require(member.size, name)
    content = read_member(file, member)
    header = parse_npy_header(content, name, texts=texts)
    allowance.claim(header.shape, name)
    count = header.dtype.itemsize * math.prod(header.shape)
    if len(content) != header.start + count:
        raise ValueError(f"{name} is {format_shape(header.shape)}, but has {len(content) - header.start} bytes")
    numbers = np.frombuffer(content, header.dtype, offset=header.start) if count else np.zeros(0, header.dtype)
    if header.dtype.kind == "b" and np.any(numbers.view(np.uint8) > 1):
        raise ValueError(f"{name} has entries that are neither true nor false")
    return numbers.reshape(header.shape, order="F" if header.is_fortran else "C")
