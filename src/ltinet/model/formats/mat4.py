"""MATLAB's oldest binary files, version 4, which some archives of benchmark systems still hold."""

import math
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance, require_few
from ltinet.model.formats.opening import OpenedFile, opened
from ltinet.model.formats.refusals import UnusableError, is_complex
from ltinet.model.formats.sparse_columns import from_places
from ltinet.shown import shown

_HEADER_SIZE = 20
_LONGEST_NAME = 1024
_NUMBERS = ("f8", "f4", "i4", "i2", "u2", "u1")
_FULL, _TEXT, _SPARSE = 0, 1, 2


class _Variable(NamedTuple):
    shape: tuple[int, int]
    kind: int
    dtype: "np.dtype[Any]"
    is_complex: bool
    start: int

    @property
    def length(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize * (2 if self.is_complex else 1)


def is_version_4(head: bytes) -> bool:
    """Tell by the first four bytes: a small number here, letters of a text in every later version."""
    return len(head) >= 4 and 0 in head[:4]


def list_variables(path: Path) -> list[str]:
    """Name the variables without reading them."""
    with opened(path) as file:
        return list(_variables(file))


def read_texts(path: Path, name: str) -> list[str]:
    """There are none: version 4 knows no cell arrays.

    Raises:
        ValueError: always.
    """
    raise UnusableError(f"{name} in {path.name} is no list of texts, which version 4 does not have")


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there, dense or sparse.

    Raises:
        ValueError: the file is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    allowance = Allowance(max_bytes)
    with opened(path) as file:
        found = _variables(file)
        return {name: _matrix(file, name, found[name], allowance) for name in names if name in found}


def _variables(file: OpenedFile) -> dict[str, _Variable]:
    found: dict[str, _Variable] = {}
    position = 0
    while position < file.length:
        require_few(found)
        head = file.bytes_at(position, _HEADER_SIZE)
        order = "<" if struct.unpack("<I", head[:4])[0] < 10_000 else ">"
        code, rows, columns, is_complex, name_length = struct.unpack(f"{order}5i", head)
        machine, reserved, number, kind = code // 1000, code // 100 % 10, code // 10 % 10, code % 10
        is_known = machine == (order == ">") and reserved == 0 and number < len(_NUMBERS) and kind <= _SPARSE
        if not is_known or min(rows, columns) < 0 or is_complex not in (0, 1) or not 0 < name_length <= _LONGEST_NAME:
            raise ValueError(f"at byte {position} there is no variable of a MATLAB 4 file")
        raw = file.bytes_at(position + _HEADER_SIZE, name_length)
        name = raw[:-1].decode("latin-1")
        if raw[-1] or not name or "\0" in name or name in found:
            raise ValueError(f"at byte {position} there is a variable without a proper name, or with one used before")
        start = position + _HEADER_SIZE + name_length
        found[name] = _Variable((rows, columns), kind, np.dtype(order + _NUMBERS[number]), bool(is_complex), start)
        position = start + found[name].length
        if position > file.length:
            raise ValueError(f"{shown(name)} is {rows}×{columns}, for which the file is too short")
    return found


def _matrix(file: OpenedFile, name: str, variable: _Variable, allowance: Allowance) -> Any:
    if variable.kind == _TEXT:
        raise UnusableError(f"{name} is text, not a matrix of numbers")
    if variable.is_complex:
        raise is_complex(name)
    allowance.claim(variable.shape, name)
    content = np.frombuffer(file.bytes_at(variable.start, variable.length), variable.dtype)
    numbers = content.astype(variable.dtype.newbyteorder("="))
    matrix = numbers.reshape(variable.shape, order="F")
    if variable.kind == _FULL:
        return matrix
    return _sparse(matrix, name, allowance)


def _sparse(triplets: Any, name: str, allowance: Allowance) -> Any:
    """Rows (i, j, value), of complex matrices (i, j, real, imaginary); the last one holds the size of the matrix."""
    if triplets.shape[1] == 4:
        raise is_complex(name)
    if len(triplets) == 0 or triplets.shape[1] != 3:
        raise ValueError(f"{name} is sparse, but not a list of row, column and value")
    places = triplets[:, :2].astype(np.float64)
    if not np.all(places == np.rint(places)) or np.any(np.abs(places) > 2**31):
        raise ValueError(f"{name} has rows and columns that are no whole numbers")
    rows, columns = places.astype(np.int64).T
    shape = (int(rows[-1]), int(columns[-1]))
    allowance.claim_sparse(shape, len(rows), name)
    return from_places(triplets[:-1, 2], rows[:-1] - 1, columns[:-1] - 1, shape=shape, name=name)
