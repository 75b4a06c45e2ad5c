"""Modal form of a system, Σ c_i b_i/(s − λ_i): eigenvectors, response, and Gramians in closed form.

Real coordinates have blocks of size 1, or [[a, ω], [−ω, a]] for a pair.

The Gramian of decoupled modes, P_ij = −b_i b_jᴴ/(λ_i + λ̄_j), is a Cauchy-like matrix and is computed as L Lᴴ by
elimination. Eliminating mode j from Λ P + P Λᴴ + B Bᴴ = 0 leaves an equation of the same kind, with b_i multiplied
along q = b_j/|b_j| by (λ_i − λ_j)/(λ_i + λ̄_j) (a Blaschke factor) and unchanged across. Nothing cancels, so that
small pivots are as accurate as large ones; O(n² m) in all, and the Gramian itself is never formed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet.blockdiag.eigenmodes import columns_of_modes, from_modes, to_modes

Number = TypeVar("Number", np.float64, np.complex128)
Mask = NDArray[np.bool_]

_PIVOT_CUTOFF = EPS**2  # of the largest pivot: Hankel values are roots of pivots, so this is EPS of the largest value
_CHUNK = 1 << 21  # complex numbers held at a time, 32 MB


def cauchy_factor(rates: NDArray[Number], B: NDArray[Number], *, weights: Array) -> NDArray[Number]:
    """Return L (n × k) with L Lᴴ = P, largest pivots first, down to the cutoff; all Re λ < 0.

    Pivots are compared as P_ii times squared weights, which the caller chooses so that units of modes do not matter.
    The columns of a conjugate pair follow each other, so that the span of the columns is real.
    """
    rows, width = np.array(B), -2.0 * rates.real
    partner, complex_modes = np.arange(len(rates)), np.flatnonzero(rates.imag)
    partner[complex_modes[::2]], partner[complex_modes[1::2]] = complex_modes[1::2], complex_modes[::2]
    columns: list[NDArray[Number]] = []
    remaining = np.ones(len(rates), dtype=np.bool_)
    first = 0.0
    while remaining.any():
        pivots = np.where(remaining, (rows.real**2 + rows.imag**2).sum(axis=1) / width * weights**2, -1.0)
        j = int(np.argmax(pivots))
        first = max(first, float(pivots[j]))
        if not pivots[j] > _PIVOT_CUTOFF * first:
            break
        for mode in (j,) if partner[j] == j else (j, int(partner[j])):
            column = _eliminate_mode(rates, rows, mode, float(width[mode]))
            if column is not None:
                columns.append(column)
            remaining[mode] = False
    return np.stack(columns, axis=1) if columns else np.zeros((len(rates), 0), dtype=rows.dtype)


def _eliminate_mode(rates: NDArray[Number], rows: NDArray[Number], j: int, width: float) -> NDArray[Number] | None:
    """Return the column of L that belongs to pivot j, and replace the rows by those of the remaining equation."""
    size = float(np.linalg.norm(rows[j]))
    if size == 0.0:
        return None
    along = rows[j] / size
    sums = rates + rates[j].conjugate()
    parts = rows @ along.conj()
    column = -parts * np.sqrt(width) / sums  # −b_i b_jᴴ/(λ_i + λ̄_j) over the root of |b_j|²/width
    reflected = np.outer(parts * ((rates - rates[j]) / sums), along)
    rows[:] = reflected if rows.shape[1] == 1 else (rows - np.outer(parts, along)) + reflected
    rows[j] = 0.0
    return np.asarray(column)


@dataclass(frozen=True, eq=False)
class Modes:
    """Rates (n,), B (n × m) and C (p × n), complex; conjugate pairs are adjacent, Im λ > 0 first."""

    rates: Complex
    B: Complex
    C: Complex

    @property
    def poles(self) -> Complex:
        """All λ."""
        return self.rates

    @property
    def n_states(self) -> int:
        """Number of modes, two for a pair."""
        return len(self.rates)

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """Index of the first mode of every pair."""
        return np.flatnonzero(self.rates.imag > 0.0)

    def select(self, mask: Mask) -> "Modes":
        """Return some of the modes."""
        return Modes(self.rates[mask], self.B[mask], self.C[:, mask])

    @property
    def F(self) -> Array:
        """Real block-diagonal matrix, with [[a, ω], [−ω, a]] for pairs."""
        F = np.diag(self.rates.real)
        F[self.pairs, self.pairs + 1] = self.rates.imag[self.pairs]
        F[self.pairs + 1, self.pairs] = -self.rates.imag[self.pairs]
        return F

    @property
    def G(self) -> Array:
        """Input matrix of the real states, whose columns in x are Re w and Im w of an eigenvector w."""
        return from_modes(self.B, self.pairs).real.copy()

    @property
    def H(self) -> Array:
        """Output matrix of the real states."""
        H = self.C.real.copy()
        H[:, self.pairs + 1] = self.C.imag[:, self.pairs]
        return H

    def multiply(self, columns: Array) -> Array:
        """Return F times columns."""
        return _multiply_blocks(self.rates, self.pairs, columns)

    def solve(self, columns: Array) -> Array:
        """Return F⁻¹ times columns."""
        return _multiply_blocks(1.0 / self.rates, self.pairs, columns)

    def factors(self) -> tuple[Array, Array]:
        """Return real L and R with P = L Lᵀ and Q = R Rᵀ, the Gramians of the real states; all modes are stable."""
        sizes = np.sqrt(np.abs(_square_norms(self.B) * _square_norms(self.C.T))) / (2.0 * np.abs(self.rates.real))
        if len(self.pairs) == 0:  # real arithmetic, at a quarter of the cost
            rates, B, C = self.rates.real, self.B.real, self.C.real.T
            by_B, by_C = (_pivot_weights(sizes, rows) for rows in (B, C))
            return cauchy_factor(rates, B, weights=by_B), cauchy_factor(rates, C, weights=by_C)
        L = cauchy_factor(self.rates, self.B, weights=_pivot_weights(sizes, self.B))
        R = cauchy_factor(self.rates.conj(), self.C.conj().T, weights=_pivot_weights(sizes, self.C.T))
        R = 0.5 * from_modes(R, self.pairs)
        R[np.flatnonzero(self.rates.imag == 0.0)] *= 2.0
        return _real_factor(from_modes(L, self.pairs)), _real_factor(R)

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """Return H(iω) − D, `(K, p, m)`, and a bound on its rounding error in the Frobenius norm, `(K,)`."""
        sizes = np.sqrt(_square_norms(self.C.T) * _square_norms(self.B))

        def gains_and_rounding(omega: Array) -> tuple[Complex, Array]:
            gains = 1.0 / (1j * omega[:, None] - self.rates)
            return gains, np.abs(gains) @ sizes

        values, rounding = sum_modes(gains_and_rounding, omega, self.B, self.C)
        return values, summation_tolerance(self.n_states) * rounding


def sum_modes(
    gains_and_rounding: Callable[[Array], tuple[Complex, Array]], omega: Array, B: Complex | Array, C: Complex | Array
) -> tuple[Complex, Array]:
    """Return Σ c_j gain_j(ω) b_j, `(K, p, m)`, and the rounding errors `(K,)`; gains are computed for some ω at a time."""
    products = (C.T[:, :, None] * B[:, None, :]).reshape(len(B), len(C) * B.shape[1])
    values = np.empty((len(omega), products.shape[1]), dtype=np.complex128)
    rounding = np.empty(len(omega))
    chunk = max(1, _CHUNK // max(len(B), 1))
    for start in range(0, len(omega), chunk):
        part = slice(start, start + chunk)
        gains, rounding[part] = gains_and_rounding(omega[part])
        values[part] = gains @ products
    return values.reshape(len(omega), len(C), B.shape[1]), rounding


def modes_from_blocks(rates: Complex, G: Array, H: Array) -> Modes:
    """Return the modes of real blocks: b = (g₁ − i g₂)/2 and c = h₁ + i h₂ for a pair."""
    pairs = np.flatnonzero(rates.imag > 0.0)
    return Modes(rates, to_modes(G, pairs), columns_of_modes(H, pairs))


def _multiply_blocks(rates: Complex, pairs: NDArray[np.intp], columns: Array) -> Array:
    result = rates.real[:, None] * columns
    result[pairs] += rates.imag[pairs, None] * columns[pairs + 1]
    result[pairs + 1] -= rates.imag[pairs, None] * columns[pairs]
    return result


def _square_norms(rows: Complex | Array) -> Array:
    return np.asarray((rows.real**2 + rows.imag**2).sum(axis=1))


def _pivot_weights(sizes: Array, rows: Complex | Array) -> Array:
    """Return weights that make pivots of a Gramian independent of the units of modes."""
    norms = np.sqrt(_square_norms(rows))
    return np.divide(sizes, norms, out=np.zeros_like(sizes), where=norms > 0.0)


def _real_factor(factor: Complex) -> Array:
    """Return a real L, no wider than high, with L Lᵀ = factor·factorᴴ, which is real."""
    both = np.hstack([factor.real, factor.imag])
    if both.shape[1] <= both.shape[0]:
        return both
    return np.asarray(linalg.qr(both.T, mode="r", check_finite=False)[0][: len(both)].T)
