"""Reader of MATLAB files of version 4, which some archives of benchmark systems still hold.

A file is a sequence of variables: a header of five 32-bit integers (type, rows, columns, complex flag, length of the
name), the name, and the numbers by columns. A sparse matrix is a list of rows (i, j, value) whose last row holds the
size of the matrix.
"""

import math
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.text import sanitize
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    RegularFile,
    SizeAllowance,
    UnsupportedVariableError,
    complex_matrix_error,
    coo_from_entries,
    open_regular,
    require_variable_limit,
)

_HEADER_SIZE = 20
_MAX_NAME_LENGTH = 1024
_NUMBER_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")
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
    """Return True if the first four bytes are those of version 4: an integer with zero bytes, text in later versions."""
    return len(head) >= 4 and 0 in head[:4]


def list_variables(path: Path) -> list[str]:
    """List the names of the variables without reading them."""
    with open_regular(path) as file:
        return list(_variables(file))


def read_texts(path: Path, name: str) -> list[str]:
    """Raise UnsupportedVariableError: version 4 has no cell arrays."""
    raise UnsupportedVariableError(f"{name} in {path.name} is not a list of texts, which version 4 does not have")


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist, dense or sparse.

    Raises ValueError if the file is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    allowance = SizeAllowance(max_bytes)
    with open_regular(path) as file:
        variables = _variables(file)
        return {name: _matrix(file, name, variables[name], allowance) for name in names if name in variables}


def _variables(file: RegularFile) -> dict[str, _Variable]:
    variables: dict[str, _Variable] = {}
    position = 0
    while position < file.length:
        require_variable_limit(variables)
        head = file.bytes_at(position, _HEADER_SIZE)
        order = "<" if struct.unpack("<I", head[:4])[0] < 10_000 else ">"
        code, rows, columns, is_complex, name_length = struct.unpack(f"{order}5i", head)
        machine, reserved, number, kind = code // 1000, code // 100 % 10, code // 10 % 10, code % 10
        is_known = machine == (order == ">") and reserved == 0 and number < len(_NUMBER_TYPES) and kind <= _SPARSE
        is_valid = min(rows, columns) >= 0 and is_complex in (0, 1) and 0 < name_length <= _MAX_NAME_LENGTH
        if not is_known or not is_valid:
            raise ValueError(f"at byte {position} there is no variable of a MATLAB 4 file")
        raw = file.bytes_at(position + _HEADER_SIZE, name_length)
        name = raw[:-1].decode("latin-1")
        if raw[-1] or not name or "\0" in name or name in variables:
            raise ValueError(f"the variable at byte {position} has no valid name, or that of another variable")
        start = position + _HEADER_SIZE + name_length
        dtype = np.dtype(order + _NUMBER_TYPES[number])
        variables[name] = _Variable((rows, columns), kind, dtype, bool(is_complex), start)
        position = start + variables[name].length
        if position > file.length:
            raise ValueError(f"{sanitize(name)} is {rows}×{columns}, for which the file is too short")
    return variables


def _matrix(file: RegularFile, name: str, variable: _Variable, allowance: SizeAllowance) -> Any:
    if variable.kind == _TEXT:
        raise UnsupportedVariableError(f"{name} is text, not a matrix of numbers")
    if variable.is_complex:
        raise complex_matrix_error(name)
    allowance.claim(variable.shape, name)
    content = np.frombuffer(file.bytes_at(variable.start, variable.length), variable.dtype)
    numbers = content.astype(variable.dtype.newbyteorder("="))
    matrix = numbers.reshape(variable.shape, order="F")
    return matrix if variable.kind == _FULL else _sparse(matrix, name, allowance)


def _sparse(triplets: Any, name: str, allowance: SizeAllowance) -> Any:
    """Convert rows (i, j, value) to a sparse matrix; the last row holds its size. Complex matrices have four columns."""
    if triplets.shape[1] == 4:
        raise complex_matrix_error(name)
    if len(triplets) == 0 or triplets.shape[1] != 3:
        raise ValueError(f"{name} is sparse, but not a list of (row, column, value)")
    indices = triplets[:, :2].astype(np.float64)
    if not np.all(indices == np.rint(indices)) or np.any(np.abs(indices) > 2**31):
        raise ValueError(f"{name} has row or column numbers that are not integers")
    rows, columns = indices.astype(np.int64).T
    shape = (int(rows[-1]), int(columns[-1]))
    allowance.claim_sparse(shape, len(rows), name)
    return coo_from_entries(triplets[:-1, 2], rows[:-1] - 1, columns[:-1] - 1, shape=shape, name=name)
