"""Sparse LU factorization with iterative refinement.

Discretised fields have symmetric sparsity patterns, for which a minimum-degree ordering of A + Aᵀ with pivots on the
diagonal gives the least fill-in. This is not backward stable by itself: the residual is measured relative to
|M||X| + |right|, reduced by at most four steps of refinement, and where this fails the matrix is factorised again with
partial pivoting. The condition number is estimated by `onenormest` (Higham & Tisseur 2000).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from ltinet._util.floating_point import EPS, summation_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import SparseMatrix


@contextmanager
def explain_memory_error(n_states: int, n_nonzeros: int) -> Iterator[None]:
    """Convert a MemoryError in the body to an InvalidSystemError that states the size of the matrix and a remedy."""
    try:
        yield
    except MemoryError:
        raise InvalidSystemError(
            f"there is not enough memory to work with a sparse matrix of {n_states}×{n_states} and {n_nonzeros} "
            "non-zeros, whose factors take many times its memory; use a coarser grid or a machine with more memory"
        ) from None


Columns = NDArray[Any]
"""Real or complex array, n×k."""

_MAX_REFINEMENT_STEPS = 4  # one is usually enough
# A diagonal entry is the pivot unless it is smaller than this fraction of the largest entry of its column.
_DIAGONAL_PIVOT_THRESHOLD = 0.01


class SingularMatrixError(ArithmeticError):
    """Matrix that is singular to working precision."""


@final
class SparseLU:
    """LU factors of a sparse real or complex matrix M.

    Raises SingularMatrixError if a pivot is zero, MemoryError if the factors do not fit into memory.
    """

    def __init__(self, matrix: Any, *, has_symmetric_pattern: bool) -> None:
        self._matrix = sparse.csc_array(matrix)
        if not (np.diff(self._matrix.indptr).all() and np.bincount(self._matrix.indices, minlength=1).all()):
            raise SingularMatrixError  # a zero column or row, for which SuperLU may end in a failed assertion
        self._size = float(abs(self._matrix).sum(axis=1).max()) if self._matrix.nnz else 0.0
        self._is_stable = not has_symmetric_pattern
        self._factors = _factorize(self._matrix, is_stable=self._is_stable)

    def solve(self, right: Columns, *, transposed: bool = False) -> Columns:
        """Return M⁻¹ right, or M⁻ᵀ right, n×k, with a residual of the size of rounding.

        Raises SingularMatrixError if refinement fails with partial pivoting, too: M is singular to working precision.
        """
        X = self._refined(right, transposed=transposed)
        if X is None and not self._is_stable:
            self._is_stable, self._factors = True, _factorize(self._matrix, is_stable=True)
            X = self._refined(right, transposed=transposed)
        if X is None:
            raise SingularMatrixError
        return X

    def solve_unrefined(self, right: Columns) -> Columns:
        """Return M⁻¹ right without refinement; call `solve` once before, which replaces inaccurate factors."""
        return np.asarray(self._factors.solve(right))

    def condition(self) -> float:
        """Estimate cond₁(R M C) with rows and columns scaled to a largest entry of about one: units do not count.

        The estimate is rarely more than three times too small (Higham & Tisseur 2000).
        """
        kind, sizes = self._matrix.dtype, abs(self._matrix)
        rows = _inverse_sizes(sizes, axis=1)
        columns = _inverse_sizes(sizes * rows[:, None], axis=0)
        inverse = LinearOperator(
            self._matrix.shape,
            matvec=lambda x: self._factors.solve(np.asarray(x, dtype=kind).ravel() / rows) / columns,
            rmatvec=lambda x: self._factors.solve(np.asarray(x, dtype=kind).ravel() / columns, "H") / rows,
            dtype=kind,
        )
        scaled = sizes * rows[:, None] * columns
        return float(scaled.sum(axis=0).max() * onenormest(inverse))

    @property
    def is_singular(self) -> bool:
        """True if M is singular to working precision."""
        return not self.condition() * self._matrix.shape[0] * EPS < 1.0

    def _refined(self, right: Columns, *, transposed: bool) -> Columns | None:
        """Return the refined solution, or None if the residual relative to |M||X| + |right| stays too large."""
        M: Any = self._matrix.T if transposed else self._matrix
        mode = "T" if transposed else "N"
        kind = np.result_type(self._matrix.dtype, right.dtype)
        X = self._factors.solve(np.asarray(right, dtype=kind), mode)
        limit = summation_tolerance(self._matrix.shape[0])
        for _ in range(_MAX_REFINEMENT_STEPS):
            if not np.isfinite(X).all():
                return None
            R = right - M @ X
            scale = self._size * np.abs(X).max(axis=0, initial=0.0) + np.abs(right).max(axis=0, initial=0.0)
            X = X + self._factors.solve(np.asarray(R, dtype=kind), mode)
            if np.all(np.abs(R).max(axis=0, initial=0.0) <= limit * scale):
                return np.asarray(X)
        return None


def _inverse_sizes(sizes: Any, *, axis: int) -> Any:
    """Return powers of two near the inverse of the largest entry of each row (1) or column (0)."""
    largest = np.asarray(sizes.max(axis=axis).toarray()).ravel()
    return np.exp2(-np.rint(np.log2(np.where(largest > 0.0, largest, 1.0))))


def is_singular(matrix: Any) -> bool:
    """Return whether a sparse matrix is singular to working precision, by an LU factorization."""
    try:
        return SparseLU(matrix, has_symmetric_pattern=False).is_singular
    except SingularMatrixError:
        return True


def has_symmetric_pattern(*matrices: SparseMatrix | None) -> bool:
    """Return True if the union of the sparsity patterns of the matrices is symmetric."""
    patterns = [abs(matrix).sign() for matrix in matrices if matrix is not None]
    pattern = sum(patterns[1:], start=patterns[0]).sign()
    return int((pattern - pattern.T).count_nonzero()) == 0


def _factorize(matrix: Any, *, is_stable: bool) -> Any:
    return factorize_superlu(matrix) if is_stable else factorize_superlu(matrix, pivoting=_DIAGONAL_PIVOT_THRESHOLD)


def factorize_superlu(matrix: Any, *, pivoting: float | None = None) -> Any:
    """Factorize a matrix with partial pivoting or, if `pivoting` is a threshold, with preference for the diagonal.

    A threshold is for symmetric patterns. Raises SingularMatrixError if a pivot is zero, MemoryError if the factors do
    not fit into memory.
    """
    symmetric: Any = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}, "diag_pivot_thresh": pivoting}
    try:
        return splu(matrix, permc_spec="COLAMD") if pivoting is None else splu(matrix, **symmetric)
    except RuntimeError as error:
        if "singular" in str(error):
            raise SingularMatrixError from None
        if "MALLOC" in str(error) or "memory" in str(error).lower():
            raise MemoryError from None
        raise InvalidSystemError(f"the sparse factorization failed: {error}") from None
