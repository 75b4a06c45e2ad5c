"""NumPy's archives of arrays, read and written without pickle, and without belief in what they say of themselves."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance, times
from ltinet.model.formats.npy_header import parse_header
from ltinet.model.formats.opening import OpenedFile, opened
from ltinet.model.formats.zip_archive import Member, content_of, members_of
from ltinet.model.matrices import Matrix
from ltinet.shown import shown

_ENDING = ".npy"
_ARRAY = b"\x93NUMPY"


def list_variables(path: Path) -> list[str]:
    """Name the arrays without reading them."""
    with opened(path) as file:
        return list(_members(file))


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there; an array of Python objects is refused, since reading it could run code.

    Raises:
        ValueError: the archive is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    allowance = Allowance(max_bytes)
    with opened(path) as file:
        members = _members(file)
        return {name: _array(file, members[name], name, allowance) for name in names if name in members}


def read_texts(path: Path, name: str) -> list[str]:
    """The texts of a list of them.

    Raises:
        ValueError: the variable is none, or damaged.
    """
    with opened(path) as file:
        found = _array(file, _members(file)[name], name, Allowance(DEFAULT_MAX_BYTES), texts=True)
    return [str(text) for text in found.ravel().tolist()]


def write(
    target: Path | BinaryIO, matrices: Mapping[str, Matrix], texts: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write a compressed archive; texts become arrays of texts."""
    arrays: dict[str, Any] = dict(matrices) | {name: np.array(own, dtype=str) for name, own in (texts or {}).items()}
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
