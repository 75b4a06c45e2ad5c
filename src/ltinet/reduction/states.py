"""States of a small model at many frequencies: in closed form from its modes, else by a triangle."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.complex_triangle import solve_triangle
from ltinet.reduction.norms import frobenius
from ltinet.reduction.supremum import mean_square, places_for
from ltinet.tolerances import sum_rounding

_APART = 1e4  # condition number of modes: beyond, sums of them lose too many digits


class _Modes(NamedTuple):
    """y = vectors (iω − rates)⁻¹ inputs, and the condition number of the vectors."""

    rates: Complex
    vectors: Complex
    inputs: Complex
    condition: float


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
        return self._modes.rates if self._modes is not None else np.asarray(self._schur[0].diagonal())

    @property
    def rounding(self) -> float:
        """What evaluation may take from sums over states, relative to the sum of their sizes."""
        condition = 1.0 if self.is_diagonal or self._modes is None else self._modes.condition
        return sum_rounding(len(self.A)) * condition

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state over all frequencies, or a little more, `(N,)`."""
        if self.is_diagonal:
            return np.asarray(np.linalg.norm(self.B, axis=1) / np.abs(self.A.diagonal()))
        if self._modes is not None:
            lives = np.linalg.norm(self._modes.inputs, axis=1) / np.abs(self._modes.rates.real)
            return np.asarray(np.abs(self._modes.vectors) @ lives)
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
        if self._modes is None:
            return self._by_triangle(matrix, omega)
        rates, vectors, inputs, _ = self._modes
        gains = 1.0 / (1j * omega[:, None] - rates)
        if k * m <= N * 4:
            seen = ((matrix @ vectors).T[:, :, None] * inputs[:, None, :]).reshape(N, k * m)
            return np.asarray((gains @ seen).reshape(len(omega), k, m))
        return np.asarray((matrix @ vectors) @ (gains[:, :, None] * inputs))

    def _by_triangle(self, matrix: Array, omega: Array) -> Complex:
        S, U = self._schur
        turned = solve_triangle(S, np.asarray(1j * omega, dtype=np.complex128), (U.conj().T @ self.B)[:, None, :])
        values = ((matrix @ U) @ turned.reshape(len(S), -1)).reshape(len(matrix), *turned.shape[1:])
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    @cached_property
    def _modes(self) -> _Modes | None:
        rates, vectors = np.linalg.eig(self.A)
        vectors = np.asarray(vectors, dtype=np.complex128)
        condition = float(np.linalg.cond(vectors))
        if not condition <= _APART:
            return None
        return _Modes(rates.astype(np.complex128), vectors, np.linalg.solve(vectors, self.B), condition)

    @cached_property
    def _schur(self) -> tuple[Complex, Complex]:
        """S and U with A_r = U S Uᴴ."""
        S, U = linalg.schur(self.A, output="complex", check_finite=False)
        return np.asarray(S), np.asarray(U)
