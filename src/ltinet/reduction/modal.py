"""A system as a sum of its modes, c_i b_i/(s − λ_i): its response, its Gramians in closed form, its own real blocks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.cauchy import cauchy_factor
from ltinet.tolerances import sum_rounding

_CHUNK = 1 << 21  # complex numbers held at a time
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Modes:
    """rates (n,), B (n × m) and C (p × n), complex; of a pair both are there, the one with Im λ > 0 first."""

    rates: Complex
    B: Complex
    C: Complex

    @property
    def poles(self) -> Complex:
        """All λ."""
        return self.rates

    @property
    def n_states(self) -> int:
        """How many modes there are, both of a pair counted."""
        return len(self.rates)

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """Where the first of every pair stands."""
        return np.flatnonzero(self.rates.imag > 0.0)

    def taken(self, which: Mask) -> "Modes":
        """Some of the modes."""
        return Modes(self.rates[which], self.B[which], self.C[:, which])

    @property
    def F(self) -> Array:
        """Real and block diagonal, [[a, ω], [−ω, a]] for pairs."""
        F = np.diag(self.rates.real)
        F[self.pairs, self.pairs + 1] = self.rates.imag[self.pairs]
        F[self.pairs + 1, self.pairs] = -self.rates.imag[self.pairs]
        return F

    @property
    def G(self) -> Array:
        """The inputs of the real states, whose columns in x are Re w and Im w of an eigenvector w."""
        return in_real_states(self.B, self.pairs).real.copy()

    @property
    def H(self) -> Array:
        """The outputs of the real states."""
        H = self.C.real.copy()
        H[:, self.pairs + 1] = self.C.imag[:, self.pairs]
        return H

    def advanced(self, columns: Array) -> Array:
        """F times columns."""
        return _turned(self.rates, self.pairs, columns)

    def integrated(self, columns: Array) -> Array:
        """F⁻¹ times columns."""
        return _turned(1.0 / self.rates, self.pairs, columns)

    def factors(self) -> tuple[Array, Array]:
        """Real L and R with P = L Lᵀ and Q = R Rᵀ, the Gramians of the real states; all modes are stable."""
        sizes = np.sqrt(np.abs(_squares(self.B) * _squares(self.C.T))) / (2.0 * np.abs(self.rates.real))
        if len(self.pairs) == 0:  # all of it real, at a quarter of the cost
            rates, B, C = self.rates.real, self.B.real, self.C.real.T
            by_B, by_C = (_over(sizes, own) for own in (B, C))
            return cauchy_factor(rates, B, weights=by_B), cauchy_factor(rates, C, weights=by_C)
        reach = cauchy_factor(self.rates, self.B, weights=_over(sizes, self.B))
        see = cauchy_factor(self.rates.conj(), self.C.conj().T, weights=_over(sizes, self.C.T))
        seen = 0.5 * in_real_states(see, self.pairs)
        seen[np.flatnonzero(self.rates.imag == 0.0)] *= 2.0
        return _real_factor(in_real_states(reach, self.pairs)), _real_factor(seen)

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """H(iω) − D, `(K, p, m)`, and a bound on what rounding took from it, in the Frobenius norm, `(K,)`."""
        n_outputs, n_inputs = len(self.C), self.B.shape[1]
        products = (self.C.T[:, :, None] * self.B[:, None, :]).reshape(self.n_states, n_outputs * n_inputs)
        sizes = np.sqrt(_squares(self.C.T) * _squares(self.B))
        values = np.empty((len(omega), n_outputs * n_inputs), dtype=np.complex128)
        rounding = np.empty(len(omega))
        chunk = max(1, _CHUNK // max(self.n_states, 1))
        for start in range(0, len(omega), chunk):
            own = slice(start, start + chunk)
            gains = 1.0 / (1j * omega[own, None] - self.rates)
            values[own] = gains @ products
            rounding[own] = np.abs(gains) @ sizes
        return values.reshape(len(omega), n_outputs, n_inputs), sum_rounding(self.n_states) * rounding


def modes_of(rates: Complex, G: Array, H: Array) -> Modes:
    """The modes of real blocks: b = (g₁ − i g₂)/2 and c = h₁ + i h₂ for a pair."""
    pairs = np.flatnonzero(rates.imag > 0.0)
    B, C = G.astype(np.complex128), H.astype(np.complex128)
    B[pairs] = 0.5 * (G[pairs] - 1j * G[pairs + 1])
    C[:, pairs] = H[:, pairs] + 1j * H[:, pairs + 1]
    B[pairs + 1], C[:, pairs + 1] = B[pairs].conj(), C[:, pairs].conj()
    return Modes(rates, B, C)


def in_real_states(rows: Complex, pairs: NDArray[np.intp]) -> Complex:
    """Coefficients of Re w and Im w from those of w and its conjugate: first + second and i (first − second)."""
    result = np.array(rows)
    result[pairs] = rows[pairs] + rows[pairs + 1]
    result[pairs + 1] = 1j * (rows[pairs] - rows[pairs + 1])
    return result


def _turned(rates: Complex, pairs: NDArray[np.intp], columns: Array) -> Array:
    result = rates.real[:, None] * columns
    result[pairs] += rates.imag[pairs, None] * columns[pairs + 1]
    result[pairs + 1] -= rates.imag[pairs, None] * columns[pairs]
    return result


def _squares(rows: Complex | Array) -> Array:
    return np.asarray((rows.real**2 + rows.imag**2).sum(axis=1))


def _over(sizes: Array, rows: Complex | Array) -> Array:
    """What makes pivots of a Gramian independent of the units of modes."""
    own = np.sqrt(_squares(rows))
    return np.divide(sizes, own, out=np.zeros_like(sizes), where=own > 0.0)


def _real_factor(factor: Complex) -> Array:
    """Real L with L Lᵀ = factor·factorᴴ, which is real; no wider than it is high."""
    both = np.hstack([factor.real, factor.imag])
    if both.shape[1] <= both.shape[0]:
        return both
    return np.asarray(linalg.qr(both.T, mode="r", check_finite=False)[0][: len(both)].T)
