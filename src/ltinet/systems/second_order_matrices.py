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
    triangle_of,
)
from ltinet.systems.system_matrices import SystemMatrices, shape_error

SquareMatrix = Matrix | SparseMatrix
"""Square matrix; M, D and K are all arrays or all sparse."""


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SecondOrderMatrices:
    """M, D, K (n×n), B (n×m) and C (p×n) of a real model as read-only float64 copies.

    Raises InvalidSystemError if a matrix is complex, not finite or of the wrong shape, or a sparse M or K triangular.
    """

    M: SquareMatrix
    D: SquareMatrix
    K: SquareMatrix
    B: Matrix
    C: Matrix

    def __init__(self, M: MatrixLike, D: MatrixLike, K: MatrixLike, B: MatrixLike, C: MatrixLike) -> None:
        convert: Any = as_sparse_matrix if any(map(sparse.issparse, (M, D, K))) else as_square_matrix
        for name, value in (("M", M), ("D", D), ("K", K)):
            object.__setattr__(self, name, convert(value, name))
        n = self.n_positions
        for name, matrix in (("M", self.M), ("K", self.K)):
            if self.is_sparse and triangle_of(matrix) is not None:
                raise InvalidSystemError(
                    f"{name} is triangular; if only half of a symmetric matrix is stored, pass {name} + {name}.T - "
                    f"sparse.diags({name}.diagonal()). Pass it as an array if it is triangular"
                )
        for name in ("D", "K"):
            size = getattr(self, name).shape[0]
            if size != n:
                raise InvalidSystemError(
                    f"{name} is {size}×{size} but M is {n}×{n}; M, D and K must have the same size"
                )
        object.__setattr__(self, "B", as_real_matrix(B, "B", vector="column"))
        object.__setattr__(self, "C", as_real_matrix(C, "C", vector="row"))
        for name, value, size in (("B", B, len(self.B)), ("C", C, self.C.shape[1])):
            if size != n:
                raise shape_error(name, shape_of(value, name), n, first="M", state="position")

    @property
    def n_positions(self) -> int:
        """Number of positions n, the length of q."""
        return int(self.M.shape[0])

    @property
    def n_nonzeros(self) -> int:
        """Number of stored entries of K."""
        return int(self.K.size if isinstance(self.K, np.ndarray) else self.K.nnz)

    @property
    def is_sparse(self) -> bool:
        """True if M, D and K are sparse."""
        return not isinstance(self.M, np.ndarray)

    @property
    def first_order(self) -> SystemMatrices:
        """First-order form E x' = A x + B u with x = (q, q') and E = diag(I, M), sparse if M, D and K are."""
        n, p = self.n_positions, len(self.C)
        B, C = np.vstack([np.zeros_like(self.B), self.B]), np.hstack([self.C, np.zeros((p, n))])
        if self.is_sparse:
            identity: Any = sparse.eye_array(n)
            blocks: Any = [[None, identity], [-self.K, -self.D]]
            E: Any = sparse.block_diag([identity, self.M], format="csr")
            return SystemMatrices(sparse.block_array(blocks, format="csr"), B, C, E=E)
        zero, eye = np.zeros((n, n)), np.eye(n)
        E = None if np.array_equal(np.asarray(self.M), eye) else np.block([[eye, zero], [zero, self.M]])
        return SystemMatrices(np.block([[zero, eye], [-self.K, -self.D]]), B, C, E=E)

    def equals(self, other: "SecondOrderMatrices") -> bool:
        """Return True if all matrices are equal and stored in the same way, dense or sparse."""
        if self.is_sparse != other.is_sparse:
            return False
        is_equal: Any = sparse_equal if self.is_sparse else np.array_equal
        return (
            all(is_equal(getattr(self, name), getattr(other, name)) for name in "MDK")
            and np.array_equal(self.B, other.B)
            and np.array_equal(self.C, other.C)
        )

    def __repr__(self) -> str:
        return f"SecondOrderMatrices(n_positions={self.n_positions}, {self.B.shape[1]} inputs, {len(self.C)} outputs)"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # NumPy unpickles arrays as writeable; the constructor makes them read-only.
        return SecondOrderMatrices, (self.M, self.D, self.K, self.B, self.C)
