"""(s I − A)⁻¹ for many s, from one decomposition A = V Λ V⁻¹: scalars where neurons stand apart, else a quasi-triangle.

Every neuron stands apart where the condition number of V costs few digits; a step of refinement brings those back
(`frequency_response`). Elsewhere Λ is quasi-triangular and V orthogonal in the units that balance A: no digits are
lost, each s costs n²/2 products, and nobody searches for something between, which would take longer than it saves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.analysis.quasi_triangle import QuasiTriangle
from ltinet.arrays import Complex
from ltinet.decompose.balance import balance
from ltinet.decompose.eigenvectors import decouple_neurons
from ltinet.decompose.schur import SchurForm, is_symmetric, real_schur, schur_by_parts, symmetric_schur
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.once import cached_property
from ltinet.threads import threads_for

# cond(V) in balanced coordinates: what one step of refinement brings back with room to spare, eps·1e4 being 2e-12.
_APART = 1e4
_SMALL, _SPARSE = 64, 0.1  # states and share of entries: beyond and below these it is worth to look for separate parts


@dataclass(frozen=True, eq=False)
class Diagonalisation:
    """A = diag(scaling) Z X Λ X⁻¹ Zᵀ diag(scaling)⁻¹, with Z orthogonal and V = diag(scaling) Z X.

    Of a pair two real columns of X stand for the complex ones, Re w and Im w for w and its conjugate.
    """

    rates: Complex
    triangle: QuasiTriangle | None
    """Λ where it is not diagonal: real, with 2×2 blocks for pairs; X is the identity then, and None."""
    scaling: NDArray[np.float64]
    Z: Matrix
    X: Matrix | None
    X_inv: Matrix | None
    pairs: NDArray[np.intp]

    def to_modes(self, B: Matrix | Complex) -> Complex:
        """V⁻¹ B."""
        rows = times(self.Z.T, B / self.scaling[:, None])
        rows = rows if self.X_inv is None else times(self.X_inv, rows)
        result = rows.astype(np.complex128)
        real, imaginary = 0.5 * rows[self.pairs], 0.5 * rows[self.pairs + 1]
        result[self.pairs], result[self.pairs + 1] = real - 1j * imaginary, real + 1j * imaginary
        return result

    def from_modes(self, C: Matrix) -> Complex:
        """C V."""
        columns = (C * self.scaling) @ self.Z
        columns = columns if self.X is None else columns @ self.X
        result = columns.astype(np.complex128)
        real, imaginary = columns[:, self.pairs], columns[:, self.pairs + 1]
        result[:, self.pairs], result[:, self.pairs + 1] = real + 1j * imaginary, real - 1j * imaginary
        return result

    def states_of(self, modes: Complex) -> Complex:
        """V times columns: w y + w̄ y′ is Re w (y + y′) + Im w i (y − y′)."""
        columns = np.array(modes)
        first, second = modes[self.pairs], modes[self.pairs + 1]
        columns[self.pairs], columns[self.pairs + 1] = first + second, 1j * (first - second)
        return np.asarray(times(self.Z, columns if self.X is None else times(self.X, columns)) * self.scaling[:, None])


def times(matrix: Matrix, columns: Matrix | Complex) -> Matrix | Complex:
    """A product, by half as many multiplications where the columns are complex."""
    if columns.dtype.kind != "c":
        return matrix @ columns
    return (matrix @ np.ascontiguousarray(columns).view(np.float64)).view(np.complex128)


@dataclass(frozen=True, eq=False)
class Resolvent:
    """A system in the coordinates of Λ."""

    system: SystemMatrices
    form: Diagonalisation

    @property
    def rates(self) -> Complex:
        """The diagonal of Λ: all eigenvalues of A."""
        return self.form.rates

    @cached_property
    def B(self) -> Complex:
        """V⁻¹B."""
        return self.form.to_modes(self.system.B)

    @cached_property
    def C(self) -> Complex:
        """C V."""
        return self.form.from_modes(self.system.C)

    def solve(self, s: Complex, right: Complex) -> Complex:
        """(s I − Λ)⁻¹ times right-hand sides `(n, m, len(s))`, one for each s, or `(n, m, 1)` for all."""
        if self.form.triangle is not None:
            return self.form.triangle.solve(s, right)
        return np.asarray(right * (1.0 / (s - self.rates[:, None]))[:, None, :], dtype=np.complex128)


def resolvent_of(system: SystemMatrices) -> Resolvent:
    """Decompose A once; ~30 n³ flops."""
    A = system.A
    with threads_for(len(A)):
        symmetric = is_symmetric(A)
        units = balance(A, rescale_states=not symmetric)
        schur = symmetric_schur(units.matrix) if symmetric else _schur(units.matrix)
        form = _apart(schur, units.scaling, units.factor)
        return Resolvent(system, form or _together(schur, units.scaling, units.factor))


def _schur(A: Matrix) -> SchurForm:
    """The Schur form, part by part where A has so few entries that it may well fall apart."""
    is_sparse = len(A) > _SMALL and np.count_nonzero(A) <= _SPARSE * A.size
    return schur_by_parts(A) if is_sparse else real_schur(A)


def _apart(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalisation | None:
    """Every neuron alone, if its V is well conditioned and no pair is nearly real."""
    decoupled = decouple_neurons(schur, schur.starts)
    X, Lambda, pairs = decoupled.X, decoupled.diagonal, schur.pairs
    omega = Lambda[pairs, pairs + 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        X = X / np.sqrt(np.einsum("ij,ij->j", X, X))
        is_turn = (omega > 0.0) & (Lambda[pairs + 1, pairs] == -omega)
        size = np.maximum(
            np.linalg.norm(decoupled.X[:, pairs], axis=0), np.linalg.norm(decoupled.X[:, pairs + 1], axis=0)
        )
        X[:, pairs], X[:, pairs + 1] = decoupled.X[:, pairs] / size, decoupled.X[:, pairs + 1] / size
    if not is_turn.all() or not np.isfinite(X).all():
        return None
    if not _smallest_diagonal(X, pairs) * _APART >= 1.0:
        return None
    try:
        X_inv = _inverse(X, pairs)
    except np.linalg.LinAlgError:  # parallel vectors
        return None
    if not _condition_bound(X, X_inv) <= _APART:
        return None
    rates = Lambda.diagonal().astype(np.complex128)
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return Diagonalisation(rates * factor, None, scaling, schur.Z, X, X_inv, pairs)


def _inverse(X: Matrix, pairs: NDArray[np.intp]) -> Matrix:
    """The inverse, of which little is to be computed where nothing couples neurons.

    Raises:
        LinAlgError: X is singular.
    """
    if np.count_nonzero(X) > len(X) + 2 * len(pairs):
        return np.asarray(np.linalg.inv(X), dtype=np.float64)
    inverse = np.diag(1.0 / X.diagonal())
    at = pairs[:, None] + np.arange(2)
    inverse[at[:, :, None], at[:, None, :]] = np.linalg.inv(X[at[:, :, None], at[:, None, :]])
    return inverse


def _smallest_diagonal(X: Matrix, pairs: NDArray[np.intp]) -> float:
    """The least size of a diagonal block of a block triangular X, whose inverse is as large as its reciprocal."""
    sizes = np.abs(X.diagonal())
    blocks = np.hypot(np.hypot(sizes[pairs], sizes[pairs + 1]), np.hypot(X[pairs, pairs + 1], X[pairs + 1, pairs]))
    sizes[pairs] = sizes[pairs + 1] = blocks
    return float(sizes.min(initial=1.0))


def _condition_bound(X: Matrix, X_inv: Matrix) -> float:
    """cond₂(X) or more, by ‖·‖₂² ≤ ‖·‖₁‖·‖∞ for X and its inverse."""
    bound = 1.0
    with np.errstate(over="ignore"):
        for factor in (X, X_inv):
            magnitude = np.abs(factor)
            bound *= float(
                np.sqrt(magnitude.sum(axis=0).max(initial=0.0)) * np.sqrt(magnitude.sum(axis=1).max(initial=0.0))
            )
    return bound


def _together(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalisation:
    """All neurons in one quasi-triangle, the real Schur form."""
    rates = np.repeat(schur.eigenvalues, schur.sizes)
    rates[schur.pairs + 1] = rates[schur.pairs].conj()
    triangle = QuasiTriangle(schur.R * factor)
    return Diagonalisation(rates * factor, triangle, scaling, schur.Z, None, None, np.empty(0, dtype=np.intp))
