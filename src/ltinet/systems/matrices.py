"""Validation of dense and sparse matrices at the public API.

`as_real_matrix` returns real, finite, C-contiguous, read-only float64 copies with two axes; `as_sparse_matrix` does the
same for square sparse matrices in compressed rows without filling them in. Booleans and integers are cast, complex and
masked entries are refused. −0.0 becomes 0.0, so that equal matrices are equal bit for bit. Indices of sparse matrices
are checked, since SciPy does not. Sparse integers are cast before duplicates are summed, which could overflow.

Code behind the public API trusts these matrices and does not check them again.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet.errors import InvalidSystemError

# MERGED ltinet.systems.matrices
# The one conversion at the public door: whatever a user calls a matrix becomes a real, finite, read-only float64 one.
#
# Everything behind the door trusts what comes out of here. Neighbouring libraries compute silently with integer or
# complex matrices and return wrong numbers; here integers are cast and complex ones refused.

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
    require_real_dtype(array.dtype, name)
    with np.errstate(over="ignore"):  # an entry too large for float64 becomes inf and is reported below
        matrix = np.array(_with_two_axes(array, name, vector), dtype=np.float64, order="C")
    matrix += 0.0  # −0.0 + 0.0 is +0.0; every other number stays as it is
    _require_finite_entries(matrix, name)
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


def require_real_dtype(dtype: np.dtype[Any], name: str) -> None:
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


def make_read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same array, no longer writeable: results are shared, not copied."""
    array.setflags(write=False)
    return array


def _as_array(value: MatrixLike, name: str) -> NDArray[Any]:
    if type(value) is np.ndarray:  # nothing to convert, and no subclass that means something else
        return value
    if sparse.issparse(value):
        return _to_dense(value, name)
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


def _to_dense(value: Any, name: str) -> NDArray[Any]:
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


def _require_finite_entries(matrix: Matrix, name: str) -> None:
    finite = np.isfinite(matrix)
    if not finite.all():
        bad = np.argwhere(~finite)
        row, column = bad[0]
        raise InvalidSystemError(
            f"{name} has entries that are not finite, {len(bad)} in all, the first {name}[{row}, {column}] = "
            f"{matrix[row, column]}; replace NaN, infinities and numbers beyond float64 before building the system"
        )


# MERGED ltinet.systems.matrices
# Sparse matrices at the public door: checked and cast without filling them in, then read-only.
#
# Integers are cast before entries of one place are summed, which in their own type could overflow.

SparseMatrix: TypeAlias = sparse.csr_array
"""A real float64 matrix in compressed rows: sorted, every place once, no stored zeros, its arrays read-only."""


def as_sparse_matrix(value: MatrixLike, name: str) -> SparseMatrix:
    """A square sparse matrix of any format of SciPy as a read-only copy; what is no sparse matrix becomes one.

    Cost O(n + entries). Entries of one place are summed, zeros left out.

    Raises:
        InvalidSystemError: it is complex, not numeric, not finite, not square, or its indices lead outside; or there is
            not enough memory for a copy.
    """
    try:
        found = _as_coo(value, name)
        require_real_dtype(found.dtype, name)
        _require_valid_indices(found, name)
        with np.errstate(over="ignore"):  # what is too large for float64 becomes inf and is reported below
            matrix = sparse.csr_array(found.astype(np.float64))
        matrix.sum_duplicates()
        _require_finite_sparse(matrix, name)
        matrix.eliminate_zeros()
    except MemoryError:
        raise InvalidSystemError(f"there is not enough memory for a copy of {name}, {_format_shape(value)}") from None
    return _freeze(matrix)


def shallow_copy(matrix: SparseMatrix) -> SparseMatrix:
    """Another object with the same read-only arrays: what somebody assigns to it does not appear in the first."""
    own = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    own.has_canonical_format = True
    return own


def sparse_equal(one: SparseMatrix, other: SparseMatrix) -> bool:
    """Whether two matrices have the same entries at the same places."""
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def is_symmetric(matrix: SparseMatrix) -> bool:
    """Whether a matrix equals its transpose, bit for bit."""
    turned = matrix.T.tocsr()
    turned.sort_indices()
    return sparse_equal(matrix, turned)


def describe_sparse(matrix: SparseMatrix) -> str:
    """Describe a sparse matrix in a few words: number of non-zeros, symmetric or not."""
    return f"sparse with {matrix.nnz} non-zeros ({'symmetric' if is_symmetric(matrix) else 'not symmetric'})"


def _as_coo(value: Any, name: str) -> Any:
    """The entries one by one; SciPy follows compressed rows and columns without looking where they lead."""
    try:
        if getattr(value, "format", None) in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)
        return sparse.coo_array(value)
    except ValueError as error:
        raise InvalidSystemError(f"{name} is damaged: {error}; build it anew") from None


def _require_valid_indices(matrix: Any, name: str) -> None:
    """Whether it is square, with all entries inside."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidSystemError(
            f"{name} is {_format_shape(matrix)}; it must be square, with one row and one column per state"
        )
    for places, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
        if len(places) and not (int(places.min()) >= 0 and int(places.max()) < size):
            raise InvalidSystemError(f"{name} is {_format_shape(matrix)} and has an entry outside; build it anew")


def _require_finite_sparse(matrix: SparseMatrix, name: str) -> None:
    finite = np.isfinite(matrix.data)
    if finite.all():
        return
    first = int(np.argmin(finite))
    row = int(np.searchsorted(matrix.indptr, first, side="right")) - 1
    raise InvalidSystemError(
        f"{name} has entries that are not finite, {np.count_nonzero(~finite)} in all, the first "
        f"{name}[{row}, {matrix.indices[first]}] = {matrix.data[first]}; replace NaN, infinities and numbers beyond "
        "float64 before building the system"
    )


def _freeze(matrix: SparseMatrix) -> SparseMatrix:
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def _format_shape(value: Any) -> str:
    return "×".join(map(str, getattr(value, "shape", np.shape(value))))
