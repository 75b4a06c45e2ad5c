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

# MERGED ltinet.systems.sparse_descriptor
# The state equation of a sparse model, E x' = A x + B u, as it was given: nothing is filled in, E⁻¹ never formed.

MAX_DENSE_STATES = 3000
"""States up to which a sparse model is filled in where arrays are needed: 72 MB and a minute for a Schur form."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SparseDescriptor:
    """A, E and B of a sparse model E x' = A x + B u; E is None where it is the identity.

    A and E are read-only, in compressed rows; B is an array, n×m. `state` and `mass` are A and E for those who promise
    not to write: what `A` and `E` give out can be changed without consequences here.
    """

    state: SparseMatrix
    mass: SparseMatrix | None
    B: Matrix

    @property
    def A(self) -> SparseMatrix:
        """The state matrix as it was given."""
        return shallow_copy(self.state)

    @property
    def E(self) -> SparseMatrix | None:
        """The matrix before x', None for the identity."""
        return None if self.mass is None else shallow_copy(self.mass)

    @property
    def n_states(self) -> int:
        """The number of states, n."""
        return int(self.state.shape[0])

    @property
    def n_nonzeros(self) -> int:
        """Entries of A that are not zero."""
        return int(self.state.nnz)

    @property
    def is_large(self) -> bool:
        """Whether A has too many states to be filled in."""
        return self.n_states > MAX_DENSE_STATES

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether A = Aᵀ and E = Eᵀ, bit for bit."""
        return is_symmetric(self.state) and (self.mass is None or is_symmetric(self.mass))

    @cached_property
    def asymmetry(self) -> float:
        """The largest |A − Aᵀ| relative to the largest |A|: about 1e-16 where rounding alone took the symmetry."""
        difference, largest = self.state - self.state.T, abs(self.state).max() if self.n_nonzeros else 0.0
        return float(abs(difference).max() / largest) if largest and difference.nnz else 0.0

    @cached_property
    def explicit_state(self) -> SparseMatrix | None:
        """E⁻¹A where E is the identity or a regular diagonal matrix; None for any other E."""
        if self.mass is None:
            return self.state
        entries = self.mass.diagonal()
        if self.mass.nnz != len(entries) or not np.all(entries):
            return None
        return as_sparse_matrix(sparse.diags_array(1.0 / entries) @ self.state, "E⁻¹A")

    @cached_property
    def explicit_B(self) -> Matrix | None:
        """E⁻¹B, likewise."""
        if self.mass is None or self.explicit_state is None:
            return self.B if self.mass is None else None
        return as_real_matrix(self.B / self.mass.diagonal()[:, None], "B")

    def require_small(self, what: str) -> None:
        """Say which call to make where arrays of n² numbers would be needed.

        Raises:
            InvalidSystemError: the model is large.
        """
        if self.is_large:
            raise self.size_error(what)

    def size_error(self, what: str) -> InvalidSystemError:
        """The error that says so."""
        return InvalidSystemError(
            f"{what} would fill in a sparse A of {self.n_states}×{self.n_states} with {self.n_nonzeros} non-zeros; "
            "reduce the model first: ltinet.reduce(system, tolerance=1e-6).system, or construct(system, "
            "tolerance=1e-6) for its network. As it is there are system.frequency_response(omega), "
            "system.simulate(u, t) and the sparse matrices, system.sparse"
        )

    def equals(self, other: "SparseDescriptor") -> bool:
        """Whether all matrices are equal as they were given."""
        if not np.array_equal(self.B, other.B) or not sparse_equal(self.state, other.state):
            return False
        if self.mass is None or other.mass is None:
            return self.mass is other.mass
        return sparse_equal(self.mass, other.mass)

    @property
    def description(self) -> str:
        """What it is, in words: entries, symmetric or not, E."""
        return ", ".join(
            [f"A {describe_sparse(self.state)}", "E = I" if self.mass is None else f"E {describe_sparse(self.mass)}"]
        )

    def __dir__(self) -> list[str]:
        return dir_without(
            self, "state", "mass", "explicit_state", "explicit_B", "require_small", "size_error", "equals"
        )

    def __repr__(self) -> str:
        return f"SparseDescriptor({self.n_states} states, {self.description})"
