"""The one conversion at the public door: whatever a user calls a matrix becomes a real, finite, read-only float64 one.

Everything behind the door trusts what comes out of here. Neighbouring libraries compute silently with integer or
complex matrices and return wrong numbers; here integers are cast and complex ones refused.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet.errors import InvalidSystemError

Matrix: TypeAlias = NDArray[np.float64]
"""A real float64 array with two axes."""

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
"""What `as_real_matrix` accepts: nested lists, numbers, arrays, SciPy sparse arrays and matrices."""

_REAL_KINDS = "biuf"  # NumPy dtype kinds that are cast: bool, signed, unsigned, floating


def as_real_matrix(value: MatrixLike, name: str, *, vector: Literal["row", "column"] | None = None) -> Matrix:
    """Return a C-contiguous, read-only float64 copy of `value` with two axes.

    A scalar becomes 1×1. A 1-D array is refused unless `vector` says whether it is a row or a column. Booleans and
    integers are cast, sparse matrices filled in, and −0.0 becomes 0.0, so that equal matrices are equal bit for bit.

    Raises:
        InvalidSystemError: `value` is complex, not numeric, masked, not finite, or has the wrong number of axes; the
            message names the argument as `name`.
    """
    array = _as_array(value, name)
    require_real_kind(array.dtype, name)
    with np.errstate(over="ignore"):  # an entry too large for float64 becomes inf and is reported below
        matrix = np.array(_with_two_axes(array, name, vector), dtype=np.float64, order="C")
    matrix += 0.0  # −0.0 + 0.0 is +0.0; every other number stays as it is
    _require_finite(matrix, name)
    matrix.setflags(write=False)
    return matrix


def as_square_matrix(value: MatrixLike, name: str) -> Matrix:
    """Return `as_real_matrix(value, name)`, which must be square; an empty list is the 0×0 matrix."""
    array = _as_array(value, name)
    if array.size == 0 and array.ndim < 2:
        array = np.zeros((0, 0))
    matrix = as_real_matrix(array, name)
    rows, columns = matrix.shape
    if rows != columns:
        raise InvalidSystemError(
            f"{name} is {rows}×{columns}; it must be square, with one row and one column per state"
        )
    return matrix


def require_real_kind(dtype: np.dtype[Any], name: str) -> None:
    """Refuse numbers that are complex, and what is no number.

    Raises:
        InvalidSystemError: the message names the argument as `name`.
    """
    if dtype.kind == "c":
        raise InvalidSystemError(
            f"{name} is complex ({dtype}); systems here are real: pass {name}.real if that is meant"
        )
    if dtype.kind not in _REAL_KINDS:
        raise InvalidSystemError(
            f"{name} has dtype {dtype}, not a numeric one; pass numbers, such as np.asarray({name}, dtype=float)"
        )


def shape_of(value: MatrixLike, name: str) -> tuple[int, ...]:
    """Return the shape of `value` as it came, for decisions and messages that depend on its number of axes."""
    return value.shape if sparse.issparse(value) else _as_array(value, name).shape


def read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same array, no longer writeable: results are shared, not copied."""
    array.setflags(write=False)
    return array


def _as_array(value: MatrixLike, name: str) -> NDArray[Any]:
    if type(value) is np.ndarray:  # nothing to convert, and no subclass that means something else
        return value
    if sparse.issparse(value):
        return _filled_in(value, name)
    if np.ma.is_masked(value):  # np.asarray would drop the mask and use whatever lies below it
        raise InvalidSystemError(f"{name} has masked entries; fill them first: {name}.filled(0.0)")
    try:
        return np.asarray(value)
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:  # ragged lists; arrays of other libraries that refuse to convert
        raise InvalidSystemError(
            f"{name} cannot be read as a matrix: {error}; pass an array or rows of equal length"
        ) from None


def _filled_in(value: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(value.toarray())
    except (MemoryError, ValueError):  # NumPy raises the second when the size does not even fit an integer
        shape = "×".join(map(str, value.shape))
        raise InvalidSystemError(f"{name} is {shape} and does not fit into memory; reduce the model first") from None


def _with_two_axes(array: NDArray[Any], name: str, vector: Literal["row", "column"] | None) -> NDArray[Any]:
    if array.ndim == 2:
        return array
    if array.ndim == 0:
        return array.reshape(1, 1)
    if array.ndim == 1 and vector is not None:
        return array[None, :] if vector == "row" else array[:, None]
    raise InvalidSystemError(
        f"{name} has {array.ndim} axes, shape {array.shape}; it must have two: "
        f"{name}[:, None] makes a 1-D array a column, {name}[None, :] a row"
    )


def _require_finite(matrix: Matrix, name: str) -> None:
    finite = np.isfinite(matrix)
    if not finite.all():
        bad = np.argwhere(~finite)
        row, column = bad[0]
        raise InvalidSystemError(
            f"{name} has entries that are not finite, {len(bad)} in all, the first {name}[{row}, {column}] = "
            f"{matrix[row, column]}; replace NaN, infinities and numbers beyond float64 before building the system"
        )
