"""Matrices of a mechanical model M q'' + D q' + K q = B u, y = C q, validated once and immutable.

M, D and K are all dense or all sparse. The first-order form has the states x = (q, q') and E = diag(I, M):
E x' = [[0, I], [−K, −D]] x + [0; B] u, y = [C, 0] x.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import (
    Matrix,
    MatrixLike,
    SparseMatrix,
    as_real_matrix,
    as_sparse_matrix,
    as_square_matrix,
    shape_of,
    sparse_equal,
)
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.systems.second_order_matrices
# What a mechanical model is made of: M q'' + D q' + K q = B u, y = C q, validated once, then immutable.

SquareMatrix = Matrix | SparseMatrix
"""An n×n matrix: all of M, D and K are arrays, or all are sparse."""


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SecondOrderMatrices:
    """M, D, K (n×n), B (n×m) and C (p×n) of a real model as read-only float64 copies; `ltinet.SecondOrder` says more.

    Raises:
        InvalidSystemError: a matrix is complex, not finite or of the wrong shape.
    """

    M: SquareMatrix
    D: SquareMatrix
    K: SquareMatrix
    B: Matrix
    C: Matrix

    def __init__(self, M: MatrixLike, D: MatrixLike, K: MatrixLike, B: MatrixLike, C: MatrixLike) -> None:
        is_sparse = any(sparse.issparse(own) for own in (M, D, K))
        checked: Any = as_sparse_matrix if is_sparse else as_square_matrix
        for name, value in (("M", M), ("D", D), ("K", K)):
            object.__setattr__(self, name, checked(value, name))
        n = self.n_positions
        for name in ("D", "K"):
            other = getattr(self, name).shape[0]
            if other != n:
                raise InvalidSystemError(
                    f"{name} is {other}×{other} but M is {n}×{n}; M q'' + D q' + K q = B u needs all of one size"
                )
        object.__setattr__(self, "B", as_real_matrix(B, "B", vector="column"))
        object.__setattr__(self, "C", as_real_matrix(C, "C", vector="row"))
        self._require_fitting(B, C)

    def _require_fitting(self, B: MatrixLike, C: MatrixLike) -> None:
        n = self.n_positions
        if len(self.B) != n:
            raise InvalidSystemError(
                f"B has shape {shape_of(B, 'B')} but M is {n}×{n}; B needs one row per position, so {n}×(number of "
                "inputs): pass B.T if its positions run along the columns"
            )
        if self.C.shape[1] != n:
            raise InvalidSystemError(
                f"C has shape {shape_of(C, 'C')} but M is {n}×{n}; C needs one column per position, so (number of "
                f"outputs)×{n}: pass C.T if its positions run along the rows"
            )

    @property
    def n_positions(self) -> int:
        """The number of entries of q, n."""
        return int(self.M.shape[0])

    @property
    def n_nonzeros(self) -> int:
        """Entries of K that are stored."""
        return int(self.K.size if isinstance(self.K, np.ndarray) else self.K.nnz)

    @property
    def is_sparse(self) -> bool:
        """Whether M, D and K are sparse."""
        return not isinstance(self.M, np.ndarray)

    @property
    def first_order(self) -> SystemMatrices:
        """E x' = A x + B u with x = (q, q') and E = diag(I, M): 2n states, sparse where M, D and K are."""
        n, p = self.n_positions, len(self.C)
        B, C = np.vstack([np.zeros_like(self.B), self.B]), np.hstack([self.C, np.zeros((p, n))])
        if self.is_sparse:
            ones: Any = sparse.eye_array(n)
            blocks: Any = [[None, ones], [-self.K, -self.D]]
            E: Any = sparse.block_diag([ones, self.M], format="csr")
            return SystemMatrices(sparse.block_array(blocks, format="csr"), B, C, E=E)
        zero, eye = np.zeros((n, n)), np.eye(n)
        E = None if np.array_equal(np.asarray(self.M), eye) else np.block([[eye, zero], [zero, self.M]])
        return SystemMatrices(np.block([[zero, eye], [-self.K, -self.D]]), B, C, E=E)

    def equals(self, other: "SecondOrderMatrices") -> bool:
        """Whether all matrices are equal, and all sparse or none."""
        if self.is_sparse != other.is_sparse:
            return False
        same: Any = sparse_equal if self.is_sparse else np.array_equal
        squares = all(same(getattr(self, name), getattr(other, name)) for name in "MDK")
        return squares and np.array_equal(self.B, other.B) and np.array_equal(self.C, other.C)

    def __repr__(self) -> str:
        return f"SecondOrderMatrices(n_positions={self.n_positions}, {self.B.shape[1]} inputs, {len(self.C)} outputs)"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # NumPy unpickles arrays writeable; going through the door again makes them read-only.
        return SecondOrderMatrices, (self.M, self.D, self.K, self.B, self.C)
