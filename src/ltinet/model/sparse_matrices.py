"""Sparse matrices at the public door: checked and cast without filling them in, then read-only.

Integers are cast before entries of one place are summed, which in their own type could overflow.
"""

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import MatrixLike, require_real_kind

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
        found = _placed(value, name)
        require_real_kind(found.dtype, name)
        _require_places(found, name)
        with np.errstate(over="ignore"):  # what is too large for float64 becomes inf and is reported below
            matrix = sparse.csr_array(found.astype(np.float64))
        matrix.sum_duplicates()
        _require_finite(matrix, name)
        matrix.eliminate_zeros()
    except MemoryError:
        raise InvalidSystemError(f"there is not enough memory for a copy of {name}, {_size(value)}") from None
    return _frozen(matrix)


def shared(matrix: SparseMatrix) -> SparseMatrix:
    """Another object with the same read-only arrays: what somebody assigns to it does not appear in the first."""
    own = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    own.has_canonical_format = True
    return own


def is_same(one: SparseMatrix, other: SparseMatrix) -> bool:
    """Whether two matrices have the same entries at the same places."""
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )


def is_symmetric(matrix: SparseMatrix) -> bool:
    """Whether a matrix equals its transpose, bit for bit."""
    turned = matrix.T.tocsr()
    turned.sort_indices()
    return is_same(matrix, turned)


def _placed(value: Any, name: str) -> Any:
    """The entries one by one; SciPy follows compressed rows and columns without looking where they lead."""
    try:
        if getattr(value, "format", None) in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)
        return sparse.coo_array(value)
    except ValueError as error:
        raise InvalidSystemError(f"{name} is damaged: {error}; build it anew") from None


def _require_places(matrix: Any, name: str) -> None:
    """Whether it is square, with all entries inside."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidSystemError(f"{name} is {_size(matrix)}; it must be square, with one row and one column per state")
    for places, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
        if len(places) and not (int(places.min()) >= 0 and int(places.max()) < size):
            raise InvalidSystemError(f"{name} is {_size(matrix)} and has an entry outside; build it anew")


def _require_finite(matrix: SparseMatrix, name: str) -> None:
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


def _frozen(matrix: SparseMatrix) -> SparseMatrix:
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def _size(value: Any) -> str:
    return "×".join(map(str, getattr(value, "shape", np.shape(value))))
