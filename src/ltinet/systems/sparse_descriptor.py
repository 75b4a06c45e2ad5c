"""Sparse state equation E x' = A x + B u in the matrices given by the user.

E⁻¹ is never formed; E⁻¹A is available only where E is the identity or diagonal. Models of up to 3,000 states may be
filled in where dense arrays are needed; larger ones are refused there with a hint at model reduction.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import sparse

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import (
    Matrix,
    SparseMatrix,
    as_real_matrix,
    as_sparse_matrix,
    describe_sparse,
    is_symmetric,
    shallow_copy,
    sparse_equal,
)

MAX_DENSE_STATES = 3000
"""Number of states up to which sparse models are converted to arrays: 72 MB, and a minute for a Schur form."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparseDescriptor:
    """Sparse model E x' = A x + B u in the matrices given by the user.

    `A` and `E` return shallow copies, so that assignments by users have no effect on the model; `state` and `mass` are
    the matrices themselves, for internal use.

    Parameters
    ----------
    state : csr_array, shape (n, n)
        A, with read-only arrays.
    mass : csr_array, shape (n, n), or None
        E, with read-only arrays; None for the identity.
    B : ndarray, shape (n, m)
        Input matrix.
    """

    state: SparseMatrix
    mass: SparseMatrix | None
    B: Matrix

    @property
    def A(self) -> SparseMatrix:
        """State matrix A in compressed rows."""
        return shallow_copy(self.state)

    @property
    def E(self) -> SparseMatrix | None:
        """Matrix E in compressed rows; None for the identity."""
        return None if self.mass is None else shallow_copy(self.mass)

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return int(self.state.shape[0])

    @property
    def n_nonzeros(self) -> int:
        """Number of non-zero entries of A."""
        return int(self.state.nnz)

    @property
    def is_large(self) -> bool:
        """True if A is too large to be converted to an array."""
        return self.n_states > MAX_DENSE_STATES

    @cached_property
    def is_symmetric(self) -> bool:
        """True if A = Aᵀ and E = Eᵀ, bit for bit."""
        return is_symmetric(self.state) and (self.mass is None or is_symmetric(self.mass))

    @cached_property
    def asymmetry(self) -> float:
        """Largest |A − Aᵀ| relative to the largest |A|: about 1e-16 for a matrix symmetric up to rounding."""
        difference, largest = self.state - self.state.T, abs(self.state).max() if self.n_nonzeros else 0.0
        return float(abs(difference).max() / largest) if largest and difference.nnz else 0.0

    @cached_property
    def explicit_state(self) -> SparseMatrix | None:
        """E⁻¹A if E is the identity or a regular diagonal matrix; None for any other E."""
        if self.mass is None:
            return self.state
        entries = self.mass.diagonal()
        if self.mass.nnz != len(entries) or not np.all(entries):
            return None
        return as_sparse_matrix(sparse.diags_array(1.0 / entries) @ self.state, "E⁻¹A")

    @cached_property
    def explicit_B(self) -> Matrix | None:
        """E⁻¹B if E is the identity or a regular diagonal matrix; None for any other E."""
        if self.mass is None or self.explicit_state is None:
            return self.B if self.mass is None else None
        return as_real_matrix(self.B / self.mass.diagonal()[:, None], "B")

    def size_error(self, operation: str) -> InvalidSystemError:
        """Return the error of an operation that needs arrays of n² numbers.

        Parameters
        ----------
        operation : str
            Operation, for the message.

        Returns
        -------
        InvalidSystemError
            Error that names the calls to use instead.
        """
        return InvalidSystemError(
            f"{operation} would fill in a sparse A of {self.n_states}×{self.n_states} with {self.n_nonzeros} non-zeros; "
            "reduce the model first, in continuous time: ltinet.reduce(system, tolerance=1e-6).system, or "
            "construct(system, tolerance=1e-6) for its network. Without reduction use system.frequency_response(omega), "
            "system.simulate(u, t) and the sparse matrices, system.sparse"
        )

    def equals(self, other: "SparseDescriptor") -> bool:
        """Return True if A, E and B are equal.

        Parameters
        ----------
        other : SparseDescriptor
            Model to compare with.

        Returns
        -------
        bool
            True if all matrices are equal, bit for bit.
        """
        if not np.array_equal(self.B, other.B) or not sparse_equal(self.state, other.state):
            return False
        if self.mass is None or other.mass is None:
            return self.mass is other.mass
        return sparse_equal(self.mass, other.mass)

    @property
    def description(self) -> str:
        """Description in words: entries and symmetry of A and E."""
        E = "E = I" if self.mass is None else f"E {describe_sparse(self.mass)}"
        return f"A {describe_sparse(self.state)}, {E}"

    def __dir__(self) -> list[str]:
        return dir_without(self, "state", "mass", "explicit_state", "explicit_B", "size_error", "equals")

    def __repr__(self) -> str:
        return f"SparseDescriptor({self.n_states} states, {self.description})"
