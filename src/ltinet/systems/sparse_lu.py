"""Sparse LU factorisation with iterative refinement.

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

from ltinet._util.floating_point import summation_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import SparseMatrix

# MERGED ltinet.systems.sparse_lu
# Large models meet the end of memory: one clear error, instead of whatever allocation happened to fail.


@contextmanager
def explain_memory_error(n_states: int, n_nonzeros: int) -> Iterator[None]:
    """Say that memory is short, for what, and what to do.

    Raises:
        InvalidSystemError: there was not enough memory inside.
    """
    try:
        yield
    except MemoryError:
        raise InvalidSystemError(
            f"there is not enough memory to work with a sparse matrix of {n_states}×{n_states} and {n_nonzeros} "
            "non-zeros, whose factors take many times its own room; use a coarser grid or a machine with more memory"
        ) from None


# MERGED ltinet.systems.sparse_lu
# Sparse LU factors whose solutions are as good as those of a stable method: pivots where they are, then refinement.
#
# Models of fields have symmetric patterns, on which an ordering of A + Aᵀ with pivots on the diagonal makes the fewest
# entries. That is no stable method by itself: what it leaves is measured by the residual, taken back by a step or two of
# refinement, and where that fails the factors are made again with partial pivoting.

Columns = NDArray[Any]
"""Real or complex, n×k."""

_MAX_REFINEMENT_STEPS = 4  # of refinement; one is the rule
_DIAGONAL_PIVOT_THRESHOLD = (
    0.01  # a diagonal entry is the pivot unless it is so much smaller than the largest of its column
)


class SingularMatrixError(ArithmeticError):
    """The matrix is singular to working precision."""


@final
class SparseLU:
    """M⁻¹ of a sparse, real or complex M.

    Raises:
        SingularError: M is singular: a pivot is zero.
        MemoryError: the factors do not fit into memory.
    """

    def __init__(self, matrix: Any, *, has_symmetric_pattern: bool) -> None:
        self._matrix = sparse.csc_array(matrix)
        self._size = float(abs(self._matrix).sum(axis=1).max()) if self._matrix.nnz else 0.0
        self._is_stable = not has_symmetric_pattern
        self._factors = _factorize(self._matrix, is_stable=self._is_stable)

    def solve(self, right: Columns, *, transposed: bool = False) -> Columns:
        """M⁻¹ right, or M⁻ᵀ right: n×k, its residual of the size of rounding.

        Raises:
            SingularError: it cannot be brought there, so that M is singular to working precision.
        """
        X = self._refined(right, transposed=transposed)
        if X is None and not self._is_stable:
            self._is_stable, self._factors = True, _factorize(self._matrix, is_stable=True)
            X = self._refined(right, transposed=transposed)
        if X is None:
            raise SingularMatrixError
        return X

    def solve_unrefined(self, right: Columns) -> Columns:
        """M⁻¹ right without refinement, for those who have asked `solve` once, which mends factors that are bad."""
        return np.asarray(self._factors.solve(right))

    def condition(self) -> float:
        """An estimate of cond₁(M), hardly ever more than three times too small (Higham & Tisseur 2000)."""
        kind = self._matrix.dtype
        inverse = LinearOperator(
            self._matrix.shape,
            matvec=lambda x: self._factors.solve(np.asarray(x, dtype=kind).ravel()),
            rmatvec=lambda x: self._factors.solve(np.asarray(x, dtype=kind).ravel(), "H"),
            dtype=kind,
        )
        return float(abs(self._matrix).sum(axis=0).max() * onenormest(inverse))

    def _refined(self, right: Columns, *, transposed: bool) -> Columns | None:
        """The solution, its residual relative to |M||X| + |right| of the size of rounding in each column."""
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


def has_symmetric_pattern(*matrices: SparseMatrix | None) -> bool:
    """Whether entry (i, j) of the sum of matrices is there where (j, i) is."""
    ones = [abs(matrix).sign() for matrix in matrices if matrix is not None]
    pattern = sum(ones[1:], start=ones[0]).sign()
    return int((pattern - pattern.T).count_nonzero()) == 0


def _factorize(matrix: Any, *, is_stable: bool) -> Any:
    return factorize_superlu(matrix) if is_stable else factorize_superlu(matrix, pivoting=_DIAGONAL_PIVOT_THRESHOLD)


def factorize_superlu(matrix: Any, *, pivoting: float | None = None) -> Any:
    """Factors with partial pivoting, or on a symmetric pattern with pivots on the diagonal down to a share of others.

    Raises:
        SingularError: a pivot is zero.
        MemoryError: the factors do not fit into memory.
    """
    symmetric: Any = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}, "diag_pivot_thresh": pivoting}
    try:
        return splu(matrix, permc_spec="COLAMD") if pivoting is None else splu(matrix, **symmetric)
    except RuntimeError as error:
        if "singular" in str(error):
            raise SingularMatrixError from None
        if "MALLOC" in str(error) or "memory" in str(error).lower():
            raise MemoryError from None
        raise InvalidSystemError(f"the sparse factorisation failed: {error}") from None
