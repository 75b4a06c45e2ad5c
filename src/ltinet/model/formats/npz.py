"""NumPy's archives of arrays, read and written without pickle, and without belief in what they say of themselves."""

import math
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance, require_few, require_plausible_inflation, times
from ltinet.model.formats.npy_header import PREFIX, header_length, parse_header
from ltinet.model.formats.opening import OpenedFile, opened
from ltinet.model.matrices import Matrix
from ltinet.shown import shown

_ENDING = ".npy"
_ARRAY = b"\x93NUMPY"
_ENCRYPTED = 0x1


def list_variables(path: Path) -> list[str]:
    """Name the arrays without reading them."""
    with opened(path) as file, _archive(file) as archive:
        return list(_members(archive))


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there; an array of Python objects is refused, since reading it could run code.

    Raises:
        ValueError: the archive is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    allowance = Allowance(max_bytes)
    arrays: dict[str, Any] = {}
    with opened(path) as file, _archive(file) as archive:
        members = _members(archive)
        for name in names:
            if name in members:
                try:
                    arrays[name] = _array(archive, members[name], name, allowance)
                except zipfile.BadZipFile as error:
                    raise ValueError(f"{name}: {error}") from None
    return arrays


def write(target: Path | BinaryIO, matrices: Mapping[str, Matrix]) -> None:
    """Write a compressed archive."""
    arrays: dict[str, Any] = dict(matrices)
    if isinstance(target, Path):
        with target.open("wb") as stream:
            np.savez_compressed(stream, **arrays)
    else:
        np.savez_compressed(target, **arrays)


def _archive(file: OpenedFile) -> zipfile.ZipFile:
    if file.bytes_at(0, min(file.length, len(_ARRAY))) == _ARRAY:
        raise ValueError("it holds a single array (.npy), not an archive of named ones")
    return zipfile.ZipFile(file.stream)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    require_few(archive.filelist)
    for member in archive.infolist():
        if "\0" in member.orig_filename:
            raise ValueError("it has a member whose name does not end where it should")
        name = member.filename.removesuffix(_ENDING)
        if name in members:
            raise ValueError(f"it holds {shown(name)} twice")
        members[name] = member
    return members


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, allowance: Allowance) -> Any:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & _ENCRYPTED:
        raise ValueError(f"{name} is compressed or encrypted in a way that NumPy does not write")
    require_plausible_inflation(member.file_size, member.compress_size, name)
    with archive.open(member) as stream:
        head = stream.read(PREFIX)
        head += stream.read(header_length(head, name) - len(head))
        header = parse_header(head, name)
        allowance.claim(header.shape, name)
        count = header.dtype.itemsize * math.prod(header.shape)
        if member.file_size != len(head) + count:
            raise ValueError(f"{name} is {times(header.shape)}, but has {member.file_size - len(head)} bytes")
        content = stream.read(count)
        if len(content) != count or stream.read(1):  # the last read also compares the checksum
            raise ValueError(f"{name} has not as many numbers as it says")
    if header.dtype.kind == "b" and content.translate(None, b"\0\1"):
        raise ValueError(f"{name} has entries that are neither true nor false")
    numbers = np.frombuffer(content, header.dtype)
    return numbers.reshape(header.shape, order="F" if header.is_fortran else "C")
