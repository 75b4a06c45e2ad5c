"""States of a small model at many frequencies: in closed form where it is diagonal, else by a triangle.

A mechanical model s²M + s(αM + βK) + K is (1 + βs)(σM + K) with σ = (s² + αs)/(1 + βs): its states are those of the
first-order model (M, −K) at σ(s), but for the factor.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.complex_triangle import solve_triangle
from ltinet.reduction.norms import frobenius
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.supremum import mean_square, places_for
from ltinet.tolerances import sum_rounding


@dataclass(frozen=True, eq=False)
class ReducedStates:
    """y(iω) = (iω − A_r)⁻¹b for many ω."""

    A: Array
    B: Array

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether A_r is."""
        return bool(np.count_nonzero(self.A) == np.count_nonzero(self.A.diagonal()))

    @cached_property
    def poles(self) -> Complex:
        """The eigenvalues of A_r."""
        if self.is_diagonal:
            return np.asarray(self.A.diagonal(), dtype=np.complex128)
        return np.asarray(self._schur[0].diagonal())

    @cached_property
    def unsolved(self) -> float:
        """A bound on b − (iω − A_r) y for the y that are computed: back substitution is backward stable."""
        size = float(np.linalg.norm(self.B))
        if not self.is_diagonal:
            size += float(np.linalg.norm(self.A)) * float(np.linalg.norm(self.largest))
        return 2.0 * sum_rounding(len(self.A)) * size

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state over all frequencies, or a little more, `(N,)`."""
        if self.is_diagonal:
            return np.asarray(np.linalg.norm(self.B, axis=1) / np.abs(self.A.diagonal()))
        places = places_for(self.poles)
        sizes = np.linalg.norm(self.times(np.eye(len(self.A)), places.omega), axis=2).max(axis=0, initial=0.0)
        return np.asarray(sizes * places.factor)

    @cached_property
    def mean(self) -> float:
        """The H2 norm of all states together."""
        eye = np.eye(len(self.A))
        return math.sqrt(mean_square(self.poles, lambda omega: frobenius(self.times(eye, omega)) ** 2))

    def times(self, matrix: Array, omega: Array) -> Complex:
        """A real matrix (k × N) times y(iω), `(K, k, m)`."""
        if self.is_diagonal:
            gains = np.asarray(1.0 / (1j * omega[:, None] - self.A.diagonal()), dtype=np.complex128)
            return _summed(gains, matrix, self.B)
        return self._by_triangle(matrix, omega)

    def _by_triangle(self, matrix: Array, omega: Array) -> Complex:
        S, U = self._schur
        turned = solve_triangle(S, np.asarray(1j * omega, dtype=np.complex128), (U.conj().T @ self.B)[:, None, :])
        values = ((matrix @ U) @ turned.reshape(len(S), -1)).reshape(len(matrix), *turned.shape[1:])
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    @cached_property
    def _schur(self) -> tuple[Complex, Complex]:
        """S and U with A_r = U S Uᴴ."""
        S, U = linalg.schur(self.A, output="complex", check_finite=False)
        return np.asarray(S), np.asarray(U)


class Rayleigh(NamedTuple):
    """D = αM + βK, both not negative and one of them positive."""

    alpha: float
    beta: float

    def of(self, stiffness: Array) -> Array:
        """The damping of modes, α + βk."""
        return self.alpha + self.beta * stiffness


@dataclass(frozen=True, eq=False)
class DampedStates:
    """y(iω) = (σ(iω) − A_r)⁻¹b with a diagonal A_r = −diag(k)."""

    A: Array
    B: Array
    damping: Rayleigh

    @cached_property
    def oscillators(self) -> Oscillators:
        """Each mode from its force to its position."""
        stiffness = -self.A.diagonal()
        return Oscillators(stiffness, self.damping.of(stiffness), self.B, self.B.T)

    @cached_property
    def poles(self) -> Complex:
        """Two for each mode."""
        return self.oscillators.poles

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state, or a little more: |1 + iβω|/|k − ω² + iωd| ≤ √(1 + 2β²k) h."""
        own = self.oscillators
        return np.asarray(
            np.linalg.norm(self.B, axis=1) * np.sqrt(1.0 + 2.0 * self.damping.beta**2 * own.stiffness) * own.peaks
        )

    @cached_property
    def unsolved(self) -> float:
        """A bound on b − (σ − A_r) y for the y that are computed: σ + k cancels near a resonance."""
        sizes = float(np.linalg.norm(self.oscillators.stiffness * self.largest))
        return 4.0 * sum_rounding(len(self.A)) * (float(np.linalg.norm(self.B)) + sizes)

    @cached_property
    def mean(self) -> float:
        """The H2 norm of all b_j/(s² + d_j s + k_j) together: Σ ‖b_j‖²/(2 d_j k_j) is its square."""
        own = self.oscillators
        return math.sqrt(float(np.sum((self.B**2).sum(axis=1) / (2.0 * own.damping * own.stiffness))))

    def times(self, matrix: Array, omega: Array) -> Complex:
        """A real matrix (k × N) times y(iω), `(K, k, m)`."""
        return _summed((1.0 + 1j * self.damping.beta * omega[:, None]) * self.oscillators.gains(omega), matrix, self.B)


def _summed(gains: Complex, matrix: Array, B: Array) -> Complex:
    """Σ_j matrix[:, j] gains[:, j] B[j] for real matrices, by two real products."""
    k, m, N = len(matrix), B.shape[1], len(B)
    shares = (matrix.T[:, :, None] * B[:, None, :]).reshape(N, k * m)
    values = np.empty((len(gains), k * m), dtype=np.complex128)
    values.real, values.imag = gains.real @ shares, gains.imag @ shares
    return values.reshape(len(gains), k, m)
