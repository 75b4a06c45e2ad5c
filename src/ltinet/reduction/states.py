"""States of a small model at many frequencies: in closed form where it is diagonal, else by a triangle."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.complex_triangle import solve_triangle
from ltinet.reduction.norms import frobenius
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
        k, m, N = len(matrix), self.B.shape[1], len(self.A)
        if self.is_diagonal:
            gains = 1.0 / (1j * omega[:, None] - self.A.diagonal())
            shares = (matrix.T[:, :, None] * self.B[:, None, :]).reshape(N, k * m)
            values = np.empty((len(omega), k * m), dtype=np.complex128)
            values.real, values.imag = gains.real @ shares, gains.imag @ shares
            return values.reshape(len(omega), k, m)
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
