"""Resolvents (s I − A)⁻¹ of dense and (s E − A)⁻¹ of sparse models for many s.

A dense A is decomposed once, A = V Λ V⁻¹. If cond(V) in balanced coordinates costs few digits, which one step of
refinement restores (`frequency_response`), Λ is diagonal and a solve is a division. Otherwise Λ = R is the real
quasi-triangular Schur form and V is orthogonal in the units that balance A: no digits are lost and each s costs n²/2
products.
Nothing between diagonal and quasi-triangular is searched for, which would take longer than it saves.

A large sparse model gets one sparse LU factorisation of s E − A for each s.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet._util.progress import Progress, track_progress
from ltinet.blockdiag.eigenmodes import (
    QuasiTriangularMatrix,
    columns_of_modes,
    compute_eigenmodes,
    from_modes,
    to_modes,
)
from ltinet.blockdiag.schur import balanced_schur
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

# Decomposition of dense systems.

# Limit on ‖V‖ ‖V⁻¹‖/n of the eigenvectors V in balanced coordinates: errors of eps·1e4 = 2e-12 per unit of a column,
# which one step of refinement removes.
_MAX_EIGENVECTOR_CONDITION = 1e4


@dataclass(frozen=True, eq=False)
class Resolvent:
    """System in the coordinates of A = X Λ X⁻¹, where Λ is diagonal, or a quasi-triangular matrix.

    For diagonal Λ the real columns of X are Re w and Im w of eigenvectors w, and B, C are those of w and w̄.
    """

    system: SystemMatrices
    X: Matrix
    X_inv: Matrix
    rates: Complex
    """Eigenvalues of A."""
    triangle: QuasiTriangularMatrix | None
    """Λ if it is not diagonal."""

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """First column of every pair of eigenvectors."""
        return np.flatnonzero(self.rates.imag > 0.0) if self.triangle is None else np.empty(0, dtype=np.intp)

    @cached_property
    def B(self) -> Complex:
        """Input matrix in these coordinates."""
        return self.to_modes(self.system.B)

    @cached_property
    def C(self) -> Complex:
        """Output matrix in these coordinates."""
        return columns_of_modes(self.system.C @ self.X, self.pairs)

    def to_modes(self, columns: Matrix | Complex) -> Complex:
        """Return states in these coordinates."""
        return to_modes(real_matrix_product(self.X_inv, columns), self.pairs)

    def from_modes(self, columns: Complex) -> Complex:
        """Return states of the system from those in these coordinates."""
        return np.asarray(real_matrix_product(self.X, from_modes(columns, self.pairs)), dtype=np.complex128)

    def solve(self, s: Complex, right: Complex) -> Complex:
        """Return (s I − Λ)⁻¹ times right-hand sides, `(n, m, len(s))` or `(n, m, 1)` for all s."""
        if self.triangle is not None:
            return self.triangle.solve(s, right)
        return np.asarray(right * (1.0 / (s - self.rates[:, None]))[:, None, :], dtype=np.complex128)


def real_matrix_product(matrix: Matrix, columns: Matrix | Complex) -> Matrix | Complex:
    """Return a real matrix times columns, with half the multiplications of a complex product."""
    if columns.dtype.kind != "c":
        return matrix @ columns
    return (matrix @ np.ascontiguousarray(columns).view(np.float64)).view(np.complex128)


def compute_resolvent(system: SystemMatrices) -> Resolvent:
    """Decompose A once; ~30 n³ flops."""
    with limit_blas_threads(system.n_states):
        units, schur = balanced_schur(system.A)
        modes = compute_eigenmodes(system.A, units, schur, max_condition=_MAX_EIGENVECTOR_CONDITION)
    if modes is not None:
        return Resolvent(system, modes.X, modes.X_inv, modes.rates, None)
    X, X_inv = units.scaling[:, None] * schur.Z, schur.Z.T / units.scaling
    triangle = QuasiTriangularMatrix(schur.R * units.factor)
    return Resolvent(system, X, X_inv, schur.all_eigenvalues * units.factor, triangle)


# Sparse systems.


class SparseResolvent:
    """Transfer function C (s E − A)⁻¹ B + D of a sparse model."""

    def __init__(self, system: SystemMatrices, pencil: SparseDescriptor) -> None:
        self.system, self.pencil = system, pencil
        self._E: Any = sparse.eye_array(pencil.n_states, format="csr") if pencil.mass is None else pencil.mass
        self._is_symmetric = has_symmetric_pattern(pencil.state, pencil.mass)

    def at(self, s: Complex, progress: Progress = None) -> Complex:
        """Return H(s), (len(s), p, m); complex(inf, nan) in every entry where s is a pole."""
        H = np.empty((len(s), *self.system.D.shape), dtype=np.complex128)
        with explain_memory_error(self.pencil.n_states, self.pencil.n_nonzeros):
            points = track_progress(s.tolist(), total=len(s), noun="frequency response", progress=progress)
            for index, point in enumerate(points):
                try:
                    H[index] = self._gain(self._factors(point))
                except SingularMatrixError:
                    H[index] = complex(np.inf, np.nan)
        return H

    def dc_gain(self) -> Array:
        """Return the real matrix H(0), in discrete time H(1).

        Raises:
            InvalidSystemError: there is an integrator.
        """
        try:
            factors = self._factors(0.0 if self.system.dt is None else 1.0)
            if factors.is_singular:
                raise SingularMatrixError
            return np.asarray(self._gain(factors), dtype=np.float64)
        except SingularMatrixError:
            raise InvalidSystemError(
                "A is singular to working precision: the model has integrators, and its DC gain is infinite or unknown; "
                "use system.frequency_response(omega) at frequencies other than zero"
            ) from None

    def _factors(self, s: complex | float) -> SparseLU:
        return SparseLU(s * self._E - self.pencil.state, has_symmetric_pattern=self._is_symmetric)

    def _gain(self, factors: SparseLU) -> Any:
        """Return D + C M⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
        system, B = self.system, self.pencil.B
        if system.n_inputs <= system.n_outputs:
            return system.D + system.C @ factors.solve(B)
        return system.D + factors.solve(system.C.T, transposed=True).T @ B
