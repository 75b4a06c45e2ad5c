"""A large sparse system E x' = A x + B u, y = C x + D u, and what its structure lets one prove."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ltinet.arrays import Array
from ltinet.once import cached_property
from ltinet.reduction.definite import Definite, definite

Sparse = sparse.csc_array


@dataclass(frozen=True, eq=False)
class Pencil:
    """Sparse A and E (n × n), thin dense B (n × m) and C (p × n)."""

    A: Sparse
    E: Sparse
    B: Array
    C: Array
    D: Array

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.A.shape[0])

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether A and E are, bit for bit."""
        return is_symmetric(self.A) and is_symmetric(self.E)

    @cached_property
    def dissipation(self) -> Definite | None:
        """S = −(A + Aᵀ)/2, if it is proven to be positive definite."""
        if not (self.E.diagonal() > 0.0).all() or not is_symmetric(self.E):
            return None
        return definite(-self.A if self.is_symmetric else -0.5 * (self.A + self.A.T))

    @cached_property
    def mass(self) -> Definite | None:
        """E, if it is proven to be positive definite."""
        return definite(self.E) if is_symmetric(self.E) else None


def pencil(A: Any, B: Any, C: Any, D: Any = None, E: Any = None) -> Pencil:
    """A pencil of matrices that were checked already; E is the identity where it is left out."""
    A = sparse.csc_array(A, dtype=np.float64)
    E = sparse.eye_array(A.shape[0], format="csc") if E is None else sparse.csc_array(E, dtype=np.float64)
    B, C = _filled(B), _filled(C)
    D = np.zeros((len(C), B.shape[1])) if D is None else _filled(D)
    return Pencil(A, E, B, C, D)


def _filled(matrix: Any) -> Array:
    filled: Any = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return np.ascontiguousarray(filled, dtype=np.float64)


def is_symmetric(matrix: Sparse) -> bool:
    """Whether a matrix equals its transpose, bit for bit."""
    difference = sparse.csc_array(matrix - matrix.T)
    return not difference.data.any()
