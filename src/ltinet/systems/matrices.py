"""Validation of dense and sparse matrices at the public API.

`as_real_matrix` returns real, finite, C-contiguous, read-only float64 copies with two axes; `as_sparse_matrix` does the
same for square sparse matrices in compressed rows without filling them in. Booleans and integers are cast, complex and
masked entries are refused. −0.0 becomes 0.0, so that equal matrices are equal bit for bit. Indices of sparse matrices
are checked, since SciPy does not. Sparse integers are cast before duplicates are summed, which could overflow.

Code behind the public API trusts these matrices and does not check them again.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet._util.text import format_count
from ltinet.errors import InvalidSystemError

Matrix: TypeAlias = NDArray[np.float64]
"""A real float64 array with two axes."""

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
"""Input of `as_real_matrix`: nested lists, numbers, arrays, SciPy sparse arrays and matrices."""

_REAL_KINDS = "biuf"  # NumPy dtype kinds that are cast: bool, signed, unsigned, floating


def as_real_matrix(value: MatrixLike, name: str, *, vector: Literal["row", "column"] | None = None) -> Matrix:
    """Return a C-contiguous, read-only float64 copy of `value` with two axes.

    A scalar becomes 1×1, a 1-D array a row or a column as `vector` specifies, and a sparse matrix dense.

    Raises InvalidSystemError, with the argument called `name`, if `value` is complex, not numeric, masked, not finite,
    or has the wrong number of axes.
    """
    array = _as_array(value, name)
    require_real_dtype(array.dtype, name)
    with np.errstate(over="ignore"):  # overflows are reported below
        matrix = np.array(_with_two_axes(array, name, vector), dtype=np.float64, order="C")
    matrix += 0.0  # −0.0 + 0.0 is +0.0; every other number stays as it is
    _require_finite(matrix, name, lambda at: divmod(at, matrix.shape[1]))
    matrix.setflags(write=False)
    return matrix


def as_square_matrix(value: MatrixLike, name: str) -> Matrix:
    """Return `as_real_matrix(value, name)` for a square matrix; an empty list is the 0×0 matrix."""
    array = _as_array(value, name)
    if array.size == 0 and array.ndim < 2:
        array = np.zeros((0, 0))
    matrix = as_real_matrix(array, name)
    _require_square(matrix, name)
    return matrix


def require_real_dtype(dtype: np.dtype[Any], name: str) -> None:
    """Raise InvalidSystemError for complex and for non-numeric types."""
    if dtype.kind == "c":
        raise InvalidSystemError(
            f"{name} is complex ({dtype}), but systems must be real; pass {name}.real if the imaginary part is not needed"
        )
    if dtype.kind not in _REAL_KINDS:
        raise InvalidSystemError(
            f"{name} has dtype {dtype}, which is not numeric; convert it: np.asarray({name}, dtype=float)"
        )


def shape_of(value: MatrixLike, name: str) -> tuple[int, ...]:
    """Return the shape of `value` before conversion."""
    return value.shape if sparse.issparse(value) else _as_array(value, name).shape


def make_read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make an array read-only and return it, so that results can be shared without copies."""
    array.setflags(write=False)
    return array


def _as_array(value: MatrixLike, name: str) -> NDArray[Any]:
    if type(value) is np.ndarray:  # no subclass, such as a masked array
        return value
    if sparse.issparse(value):
        return _to_dense(value, name)
    if np.ma.is_masked(value):  # np.asarray would drop the mask and use whatever lies below it
        raise InvalidSystemError(f"{name} has masked entries; fill them first: {name}.filled(0.0)")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; arrays of other libraries
        raise InvalidSystemError(
            f"{name} cannot be read as a matrix: {error}; pass an array or rows of equal length"
        ) from None


def _to_dense(value: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(value.toarray())
    except (MemoryError, ValueError):  # ValueError if the size overflows an integer
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
        f"{name} has {format_count(array.ndim, 'axis', 'axes')}, shape {array.shape}; it must have two: "
        f"{name}[:, None] makes a 1-D array a column, {name}[None, :] a row"
    )


def _require_finite(entries: Matrix, name: str, position: Callable[[int], tuple[int, int]]) -> None:
    """Raise InvalidSystemError for entries that are not finite; `position` gives row and column of an entry."""
    finite = np.isfinite(entries)
    if not finite.all():
        first = int(np.argmin(finite))
        row, column = position(first)
        raise InvalidSystemError(
            f"{name} has entries that are not finite, {np.count_nonzero(~finite)} in all, the first {name}[{row}, {column}]"
            f" = {entries.flat[first]}; replace NaN, infinities and numbers beyond float64 before building the system"
        )


SparseMatrix: TypeAlias = sparse.csr_array
"""Real float64 matrix in compressed rows: sorted, without duplicates and stored zeros, with read-only arrays."""


def as_sparse_matrix(value: MatrixLike, name: str) -> SparseMatrix:
    """Return a read-only copy of a square matrix in compressed rows; O(n + entries).

    Duplicate entries are summed, zeros removed. Raises InvalidSystemError if the matrix is complex, not numeric, not
    finite, not square, has invalid indices, or does not fit into memory.
    """
    try:
        entries = _as_coo(value, name)
        require_real_dtype(entries.dtype, name)
        _require_valid_indices(entries, name)
        with np.errstate(over="ignore"):  # overflows are reported below
            matrix = sparse.csr_array(entries.astype(np.float64))
        matrix.sum_duplicates()
        rows, columns = matrix.indptr, matrix.indices
        _require_finite(matrix.data, name, lambda at: (int(np.searchsorted(rows, at, side="right")) - 1, columns[at]))
        matrix.eliminate_zeros()
    except MemoryError:
        raise InvalidSystemError(f"there is not enough memory for a copy of {name}, {_format_shape(value)}") from None
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def shallow_copy(matrix: SparseMatrix) -> SparseMatrix:
    """Return another object with the same read-only arrays; assignments to it do not change the original."""
    copy = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    copy.has_canonical_format = True
    return copy


def sparse_equal(one: SparseMatrix, other: SparseMatrix) -> bool:
    """Return True if two matrices have the same entries at the same positions."""
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def is_symmetric(matrix: SparseMatrix) -> bool:
    """Return True if a matrix equals its transpose, bit for bit."""
    transposed = matrix.T.tocsr()
    transposed.sort_indices()
    return sparse_equal(matrix, transposed)


def triangle_of(matrix: Any) -> Literal["upper", "lower"] | None:
    """Return "upper" or "lower" for a triangular sparse matrix with entries beside a full diagonal, else None."""
    if matrix.nnz <= matrix.shape[0] or not matrix.diagonal().all():
        return None
    entries = matrix.tocoo()
    if (entries.row <= entries.col).all():
        return "upper"
    return "lower" if (entries.row >= entries.col).all() else None


def describe_sparse(matrix: SparseMatrix) -> str:
    """Describe a sparse matrix in a few words: number of non-zeros, symmetric or not."""
    return f"sparse with {matrix.nnz} non-zeros ({'symmetric' if is_symmetric(matrix) else 'not symmetric'})"


def _as_coo(value: Any, name: str) -> Any:
    """Convert to coordinate format; compressed formats are validated first, which SciPy does not do by itself."""
    try:
        if getattr(value, "format", None) in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)
        return sparse.coo_array(value)
    except ValueError as error:
        raise InvalidSystemError(f"{name} is damaged: {error}; build it again") from None


def _require_square(matrix: Any, name: str) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidSystemError(
            f"{name} is {_format_shape(matrix)}; it must be square, with one row and one column per state"
        )


def _require_valid_indices(matrix: Any, name: str) -> None:
    """Raise InvalidSystemError unless the matrix is square and all indices are in range."""
    _require_square(matrix, name)
    for indices, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
        if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < size):
            raise InvalidSystemError(f"{name} is {_format_shape(matrix)} and has an entry outside it; build it again")


def _format_shape(value: Any) -> str:
    return "×".join(map(str, getattr(value, "shape", np.shape(value))))
