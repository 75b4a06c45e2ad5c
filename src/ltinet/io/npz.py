"""NumPy archives (`.npz`) of arrays and sparse matrices, read and written without pickle.

`zipfile` reads the archive. It does not compare the sizes and counts in the list of members with each other; here they
must agree, and the size of a member is checked before the member is inflated. The header of an array is a Python
literal. Its type is compared with the types that mean the same on every processor; NumPy's parser of headers also
accepts others, and a key that occurs twice. A sparse matrix A is stored in compressed columns as A.data, A.indices,
A.indptr and A.shape.
"""

import ast
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import sanitize
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    RegularFile,
    SizeAllowance,
    UnsupportedVariableError,
    csc_from_columns,
    error_text,
    format_shape,
    open_regular,
    require_plausible_inflation,
    require_variable_limit,
)
from ltinet.systems.matrices import Matrix, SparseMatrix

_LENGTH_SIZES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}  # bytes of the length of the header, by version
_MAX_HEADER_BYTES = 10_000  # the limit of NumPy, below which Python's parser does not exhaust the stack
_HEADER_KEYS = ("descr", "fortran_order", "shape")
_LONG_INTEGER = re.compile(r"(?<=\d)L(?=\s*[,)])")  # as Python 2 wrote lengths
_NUMBERS = re.compile(r"[<>|](?:b1|[iu]1)|[<>](?:[iu][248]|f[248]|c8|c16)")
_TEXTS = re.compile(r"[<>]U[0-9]{1,4}")
_EXTENDED = re.compile(r"[<>|=]?(?:f1[026]|c2[04]|c32)")


def parse_array(content: bytes, name: str, allowance: SizeAllowance, *, texts: bool = False) -> NDArray[Any]:
    """Parse an array of numbers or, with `texts`, of texts.

    Raises ValueError if it is damaged, UnsupportedVariableError if it is of another type, SizeLimitError if it exceeds
    the allowance.
    """
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        length = int.from_bytes(stream.read(_LENGTH_SIZES[version]), "little")
        header = stream.read(min(length, _MAX_HEADER_BYTES))
        text = header.decode("utf-8" if version == (3, 0) else "latin-1")
        if len(header) != length or any(text.count(key) != 1 for key in _HEADER_KEYS):
            raise ValueError(f"it claims {length} bytes, or does not have each key once")
        items = ast.literal_eval(_LONG_INTEGER.sub("", text))
        descr, is_fortran, shape = (items[key] for key in _HEADER_KEYS)
    except Exception as error:  # Python's parser fails in many ways, MemoryError and RecursionError among them
        raise ValueError(f"the header of {name} is not that of an array ({error_text(error)})") from None
    is_shape = type(shape) is tuple and all(type(size) is int for size in shape)
    if len(items) != 3 or type(is_fortran) is not bool or not is_shape:
        raise ValueError(f"the header of {name} is not that of an array of a known order and shape")
    dtype = _dtype(descr, name, texts=texts)
    allowance.claim(shape, name)
    count, start = dtype.itemsize * math.prod(shape), stream.tell()
    if len(content) != start + count:
        raise ValueError(f"{name} is {format_shape(shape)}, but has {len(content) - start} bytes")
    numbers = np.frombuffer(content, dtype, offset=start) if count else np.zeros(0, dtype)
    if dtype.kind == "b" and np.any(numbers.view(np.uint8) > 1):
        raise ValueError(f"{name} has entries that are neither true nor false")
    return numbers.reshape(shape, order="F" if is_fortran else "C")


def _dtype(descr: Any, name: str, *, texts: bool) -> "np.dtype[Any]":
    if not isinstance(descr, str):
        raise UnsupportedVariableError(f"{name} is a table with named columns, not an array of numbers")
    if (_TEXTS if texts else _NUMBERS).fullmatch(descr):
        return np.dtype(descr)
    if descr.lstrip("<>|=").startswith("O"):
        raise ValueError(
            f"{name} is an object array: reading one could run code, so none is read; save numbers instead"
        )
    if _EXTENDED.fullmatch(descr):
        raise UnsupportedVariableError(
            f"{name} has numbers of type {descr}, whose format depends on the processor; save it as float64"
        )
    raise UnsupportedVariableError(
        f"{name} has the type {sanitize(repr(descr))}, which is not {'a text type' if texts else 'numeric'}"
    )


_END, _END_SIZE, _END_64_SIZE, _LOCATOR_SIZE, _ENTRY_SIZE = b"PK\5\6", 22, 56, 20, 46
_MAX_COMMENT_BYTES = 0xFFFF
_MAX_DIRECTORY_BYTES = 1 << 24  # `zipfile` needs many times as much memory


@contextmanager
def _open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive and list its arrays; raise ValueError, also for the body, if the archive is damaged."""
    with open_regular(path) as file:
        if file.bytes_at(0, min(file.length, 6)) == np.lib.format.MAGIC_PREFIX:
            raise ValueError("it holds a single array (.npy), not an archive of named ones")
        end, n_members = _find_directory(file)
        try:
            with zipfile.ZipFile(file.stream) as archive:
                yield archive, _members(file, archive, end, n_members)
        except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, struct.error, zlib.error) as error:
            raise ValueError(error_text(error)) from None


def _find_directory(file: RegularFile) -> tuple[int, int]:
    """Return the end of the list of members and their number, from the record that only a comment may follow.

    Numbers beyond 32 bits are in a second record before it.
    """
    count = min(file.length, _END_SIZE + _MAX_COMMENT_BYTES)
    tail = file.bytes_at(file.length - count, count)
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise ValueError("it is not an archive, or cut off")
    _, *disks, here, n_members, size, start, comment = struct.unpack_from("<4s4H2IH", tail, at)
    end = file.length - len(tail) + at
    if 0xFFFFFFFF in (size, start) or n_members == 0xFFFF:
        end -= _END_64_SIZE + _LOCATOR_SIZE
        here, n_members, size, start = struct.unpack_from("<4Q", file.bytes_at(end, _END_64_SIZE), 24)
    if len(tail) != at + _END_SIZE + comment or any(disks) or here != n_members or start + size != end:
        raise ValueError("it is one of several parts of an archive, or does not end where it should")
    if size > _MAX_DIRECTORY_BYTES:
        raise ValueError("its list of members is too long")
    return end, n_members


def _members(file: RegularFile, archive: zipfile.ZipFile, end: int, n_members: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; raise ValueError unless their list has the number of entries, and the end, that it says."""
    members: dict[str, zipfile.ZipInfo] = {}
    position = archive.start_dir
    for member in archive.infolist():
        require_variable_limit(members)
        name = member.orig_filename.removesuffix(_SUFFIX)
        if name in members:
            raise ValueError(f"it holds {sanitize(name)} twice")
        if not member.orig_filename or "\0" in name or member.compress_size > file.length:
            raise ValueError("it has a member without a valid name, or one that is longer than the archive")
        members[name] = member
        position += _ENTRY_SIZE + sum(struct.unpack("<3H", file.bytes_at(position + 28, 6)))  # name, extra, comment
    if position != end or len(members) != n_members:
        raise ValueError(f"it says that it has {n_members} members, and its list of them is damaged")
    return members


_SUFFIX = ".npy"
_SPARSE_PARTS = (".data", ".indices", ".indptr", ".shape")  # of a sparse matrix in compressed columns


def list_variables(path: Path) -> list[str]:
    """List the names of arrays and complete sparse matrices without reading them."""
    with _open_archive(path) as (_, members):
        whole = [name for name in dict.fromkeys(map(_owner, members)) if name and _parts(name, members)]
        return [*(name for name in members if _owner(name) not in whole), *whole]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist; arrays of Python objects are refused, since reading them could run code.

    Raises ValueError if the archive is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    allowance = SizeAllowance(max_bytes)
    with _open_archive(path) as (archive, members):
        values = {name: _read_array(archive, members[name], name, allowance) for name in names if name in members}
        others = {name: _parts(name, members) for name in names if name not in members}
        return values | {name: _read_sparse(archive, parts, name, allowance) for name, parts in others.items() if parts}


def read_texts(path: Path, name: str) -> list[str]:
    """Read an array of texts; raise ValueError for other variables."""
    with _open_archive(path) as (archive, members):
        array = _read_array(archive, members[name], name, SizeAllowance(DEFAULT_MAX_BYTES), texts=True)
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
    with target.open("wb") if isinstance(target, Path) else nullcontext(target) as stream:
        np.savez_compressed(stream, **arrays)


def _owner(name: str) -> str:
    """Return the sparse matrix that an array is part of, or ""."""
    return next((name.removesuffix(part) for part in _SPARSE_PARTS if name.endswith(part)), "")


def _parts(name: str, members: Mapping[str, zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the parts of a sparse matrix; an empty list if one is missing."""
    names = [name + part for part in _SPARSE_PARTS]
    return [members[part] for part in names] if all(part in members for part in names) else []


def _read_sparse(
    archive: zipfile.ZipFile, parts: Sequence[zipfile.ZipInfo], name: str, allowance: SizeAllowance
) -> Any:
    members = zip(parts, _SPARSE_PARTS, strict=True)
    data, rows, starts, shape = (_read_array(archive, member, name + part, allowance) for member, part in members)
    for values, part in zip((rows, starts, shape), _SPARSE_PARTS[1:], strict=True):
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise ValueError(f"{name}{part} is not a list of whole numbers")
    if len(shape) != 2 or data.ndim != 1:
        raise ValueError(f"{name} is not a sparse matrix in compressed columns")
    size = (int(shape[0]), int(shape[1]))
    allowance.claim_sparse(size, len(rows), name)
    return csc_from_columns(data, rows.astype(np.int64), starts.astype(np.int64), shape=size, name=name)


def _read_array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, allowance: SizeAllowance, *, texts: bool = False
) -> Any:
    """Read an array; `zipfile` verifies its checksum."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed in a way that NumPy does not write")
    allowance.require(member.file_size, name)
    require_plausible_inflation(member.file_size, member.compress_size, name)
    with archive.open(member) as stream:
        content = stream.read(member.file_size)  # without the size, `zipfile` would inflate whatever there is
    if len(content) != member.file_size:
        raise ValueError(f"{name} has {len(content)} bytes, not {member.file_size}")
    return parse_array(content, name, allowance, texts=texts)
