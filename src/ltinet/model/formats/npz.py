"""NumPy's archives of arrays, read and written without pickle, and without belief in what they say of themselves."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance, times
from ltinet.model.formats.npy_header import parse_header
from ltinet.model.formats.opening import OpenedFile, opened
from ltinet.model.formats.sparse_columns import from_columns
from ltinet.model.formats.zip_archive import Member, content_of, members_of
from ltinet.model.matrices import Matrix
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.shown import shown

_ENDING = ".npy"
_ARRAY = b"\x93NUMPY"
_PARTS = (".data", ".indices", ".indptr", ".shape")  # of a sparse matrix in compressed columns


def list_variables(path: Path) -> list[str]:
    """Name the arrays without reading them, and sparse matrices, of which all parts are there."""
    with opened(path) as file:
        members = _members(file)
        whole = [name for name in dict.fromkeys(map(_owner, members)) if name and _parts(name, members)]
        return [*(name for name in members if _owner(name) not in whole), *whole]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there; an array of Python objects is refused, since reading it could run code.

    Raises:
        ValueError: the archive is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    allowance = Allowance(max_bytes)
    with opened(path) as file:
        members = _members(file)
        found = {name: _array(file, members[name], name, allowance) for name in names if name in members}
        for name in names:
            parts = [] if name in members else _parts(name, members)
            if parts:
                found[name] = _sparse(file, parts, name, allowance)
        return found


def read_texts(path: Path, name: str) -> list[str]:
    """The texts of a list of them.

    Raises:
        ValueError: the variable is none, or damaged.
    """
    with opened(path) as file:
        found = _array(file, _members(file)[name], name, Allowance(DEFAULT_MAX_BYTES), texts=True)
    return [str(text) for text in found.ravel().tolist()]


def write(
    target: Path | BinaryIO,
    matrices: Mapping[str, Matrix | SparseMatrix],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a compressed archive; texts become arrays of texts.

    Of a sparse A there are the arrays A.data, A.indices, A.indptr and A.shape of its columns.
    """
    arrays: dict[str, Any] = {name: np.array(own, dtype=str) for name, own in (texts or {}).items()}
    for name, matrix in matrices.items():
        if isinstance(matrix, SparseMatrix):
            columns = matrix.tocsc()
            parts = (columns.data, columns.indices, columns.indptr, np.array(columns.shape))
            arrays |= {name + ending: part for ending, part in zip(_PARTS, parts, strict=True)}
        else:
            arrays[name] = matrix
    if isinstance(target, Path):
        with target.open("wb") as stream:
            np.savez_compressed(stream, **arrays)
    else:
        np.savez_compressed(target, **arrays)


def _members(file: OpenedFile) -> dict[str, Member]:
    if file.bytes_at(0, min(file.length, len(_ARRAY))) == _ARRAY:
        raise ValueError("it holds a single array (.npy), not an archive of named ones")
    members: dict[str, Member] = {}
    for member in members_of(file):
        name = member.name.removesuffix(_ENDING)
        if name in members:
            raise ValueError(f"it holds {shown(name)} twice")
        members[name] = member
    return members


def _owner(name: str) -> str:
    """The sparse matrix that an array is a part of, "" if it is none."""
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), "")


def _parts(name: str, members: Mapping[str, Member]) -> list[Member]:
    """The parts of a sparse matrix; nothing where one is missing."""
    names = [name + part for part in _PARTS]
    return [members[part] for part in names] if all(part in members for part in names) else []


def _sparse(file: OpenedFile, parts: Sequence[Member], name: str, allowance: Allowance) -> Any:
    data, rows, starts, shape = (
        _array(file, member, name + part, allowance) for member, part in zip(parts, _PARTS, strict=True)
    )
    for values, part in zip((rows, starts, shape), _PARTS[1:], strict=True):
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise ValueError(f"{name}{part} is not a list of whole numbers")
    if len(shape) != 2 or data.ndim != 1:
        raise ValueError(f"{name} is not a sparse matrix in compressed columns")
    size = (int(shape[0]), int(shape[1]))
    allowance.claim_sparse(size, len(rows), name)
    return from_columns(data, rows.astype(np.int64), starts.astype(np.int64), shape=size, name=name)


def _array(file: OpenedFile, member: Member, name: str, allowance: Allowance, *, texts: bool = False) -> Any:
    allowance.require(member.size, name)
    content = content_of(file, member)
    header = parse_header(content, name, texts=texts)
    allowance.claim(header.shape, name)
    count = header.dtype.itemsize * math.prod(header.shape)
    if len(content) != header.start + count:
        raise ValueError(f"{name} is {times(header.shape)}, but has {len(content) - header.start} bytes")
    numbers = np.frombuffer(content, header.dtype, offset=header.start) if count else np.zeros(0, header.dtype)
    if header.dtype.kind == "b" and np.any(numbers.view(np.uint8) > 1):
        raise ValueError(f"{name} has entries that are neither true nor false")
    return numbers.reshape(header.shape, order="F" if header.is_fortran else "C")
