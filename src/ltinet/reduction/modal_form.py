"""Modal form of a system, Σ c_i b_i/(s − λ_i): eigenvectors, response, and Gramians in closed form.

Real coordinates have blocks of size 1, or [[a, ω], [−ω, a]] for a pair.

The Gramian of decoupled modes, P_ij = −b_i b_jᴴ/(λ_i + λ̄_j), is a Cauchy-like matrix and is computed as L Lᴴ by
elimination. Eliminating mode j from Λ P + P Λᴴ + B Bᴴ = 0 leaves an equation of the same kind, with b_i multiplied
along q = b_j/|b_j| by (λ_i − λ_j)/(λ_i + λ̄_j) (a Blaschke factor) and unchanged across. Nothing cancels, so that
small pivots are as accurate as large ones; O(n² m) in all, and the Gramian itself is never formed.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet.blockdiag.decoupling import decouple_neurons
from ltinet.blockdiag.schur import SchurForm, balance_matrix, is_symmetric, real_schur, schur_by_parts, symmetric_schur

# MERGED ltinet.reduction.modal_form
# The Gramian of decoupled modes, P_ij = −b_i b_jᴴ/(λ_i + λ̄_j), as L Lᴴ: by elimination that keeps small pivots right.
#
# Eliminating mode j from Λ P + P Λᴴ + B Bᴴ = 0 leaves an equation of the same kind, with b_i multiplied along
# q = b_j/|b_j| by (λ_i − λ_j)/(λ_i + λ̄_j) (a Blaschke factor) and as it was across. Nothing cancels, so small pivots
# are as right as large ones; O(n² m) in all, and the Gramian itself is never formed.

Number = TypeVar("Number", np.float64, np.complex128)

_FORGOTTEN = EPS**2  # of the largest pivot: eps of the values that are its root


def cauchy_factor(rates: NDArray[Number], B: NDArray[Number], *, weights: Array) -> NDArray[Number]:
    """L (n × k) with L Lᴴ = P, largest pivots first, until they are nothing beside the first; Re λ < 0.

    Pivots are compared as P_ii times squared weights, which the caller chooses so that units of modes do not matter.
    Both of a pair follow each other, so that the span of the columns is a real one.
    """
    rows, width = np.array(B), -2.0 * rates.real
    partner = _partners(rates)
    columns: list[NDArray[Number]] = []
    left = np.ones(len(rates), dtype=np.bool_)
    first = 0.0
    while left.any():
        pivots = np.where(left, (rows.real**2 + rows.imag**2).sum(axis=1) / width * weights**2, -1.0)
        j = int(np.argmax(pivots))
        first = max(first, float(pivots[j]))
        if not pivots[j] > _FORGOTTEN * first:
            break
        for own in (j,) if partner[j] == j else (j, int(partner[j])):
            column = _eliminated(rates, rows, own, float(width[own]))
            if column is not None:
                columns.append(column)
            left[own] = False
    return np.stack(columns, axis=1) if columns else np.zeros((len(rates), 0), dtype=rows.dtype)


def _eliminated(rates: NDArray[Number], rows: NDArray[Number], j: int, width: float) -> NDArray[Number] | None:
    """The column of L that belongs to pivot j; the rows become those of what is left."""
    size = float(np.linalg.norm(rows[j]))
    if size == 0.0:
        return None
    along = rows[j] / size
    sums = rates + rates[j].conjugate()
    parts = rows @ along.conj()
    column = -parts * np.sqrt(width) / sums  # −b_i b_jᴴ/(λ_i + λ̄_j) over the root of |b_j|²/width
    turned = np.outer(parts * ((rates - rates[j]) / sums), along)
    rows[:] = turned if rows.shape[1] == 1 else (rows - np.outer(parts, along)) + turned
    rows[j] = 0.0
    return np.asarray(column)


def _partners(rates: NDArray[Any]) -> NDArray[np.intp]:
    partner, places = np.arange(len(rates)), np.flatnonzero(rates.imag)
    partner[places[::2]], partner[places[1::2]] = places[1::2], places[::2]
    return partner


# MERGED ltinet.reduction.modal_form
# A system as a sum of its modes, c_i b_i/(s − λ_i): its response, its Gramians in closed form, its own real blocks.

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
        return to_real_coordinates(self.B, self.pairs).real.copy()

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
        seen = 0.5 * to_real_coordinates(see, self.pairs)
        seen[np.flatnonzero(self.rates.imag == 0.0)] *= 2.0
        return _real_factor(to_real_coordinates(reach, self.pairs)), _real_factor(seen)

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
        return values.reshape(len(omega), n_outputs, n_inputs), summation_tolerance(self.n_states) * rounding


def modes_from_blocks(rates: Complex, G: Array, H: Array) -> Modes:
    """The modes of real blocks: b = (g₁ − i g₂)/2 and c = h₁ + i h₂ for a pair."""
    pairs = np.flatnonzero(rates.imag > 0.0)
    B, C = G.astype(np.complex128), H.astype(np.complex128)
    B[pairs] = 0.5 * (G[pairs] - 1j * G[pairs + 1])
    C[:, pairs] = H[:, pairs] + 1j * H[:, pairs + 1]
    B[pairs + 1], C[:, pairs + 1] = B[pairs].conj(), C[:, pairs].conj()
    return Modes(rates, B, C)


def to_real_coordinates(rows: Complex, pairs: NDArray[np.intp]) -> Complex:
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


# MERGED ltinet.reduction.modal_form
# Real coordinates in which every mode of a matrix stands alone: 1×1, or [[a, ω], [−ω, a]] for a pair.

_SMALL, _SPARSE = 64, 0.1  # states and share of entries: beyond and below these it is worth to look for separate parts


@dataclass(frozen=True, eq=False)
class Eigenmodes:
    """A X = X F, F the real blocks of the rates; of a pair the rate with Im λ > 0 comes first."""

    X: Array
    X_inv: Array
    rates: Complex


def compute_eigenmodes(A: Array, *, most: float) -> Eigenmodes | None:
    """The modes of a matrix; None where their vectors are nearly parallel, by a condition number over `most`. O(n³)."""
    symmetric = is_symmetric(A)
    units = balance_matrix(A, rescale_states=not symmetric)
    schur = symmetric_schur(units.matrix) if symmetric else _schur(units.matrix)
    found = decouple_neurons(schur, schur.starts)
    vectors, rates = _turning(found.X, found.diagonal, schur.pairs)
    if not np.isfinite(vectors).all():
        return None
    try:
        inverse = vectors.T if symmetric and _is_orthogonal(schur) else np.linalg.inv(vectors)
    except np.linalg.LinAlgError:
        return None
    if not float(np.linalg.norm(vectors) * np.linalg.norm(inverse)) <= most * max(len(A), 1):
        return None
    return Eigenmodes(
        units.scaling[:, None] * (schur.Z @ vectors), (inverse @ schur.Z.T) / units.scaling, rates * units.factor
    )


def _schur(A: Array) -> SchurForm:
    is_sparse = len(A) > _SMALL and np.count_nonzero(A) <= _SPARSE * A.size
    return schur_by_parts(A) if is_sparse else real_schur(A)


def _is_orthogonal(schur: SchurForm) -> bool:
    return bool(np.count_nonzero(schur.R - np.diag(schur.R.diagonal())) == 0)


def _turning(X: Array, diagonal: Array, pairs: NDArray[np.intp]) -> tuple[Array, Complex]:
    """Columns of one length, those of pairs in the ratio in which their block [[a, b], [c, a]] turns: b = −c > 0."""
    X = np.array(X)
    b, c = diagonal[pairs, pairs + 1], diagonal[pairs + 1, pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        X[:, pairs + 1] *= np.sign(b)
        X[:, pairs] *= np.sqrt(np.abs(b / c))
        lengths = np.sqrt(np.einsum("ij,ij->j", X, X))
        longer = np.maximum(lengths[pairs], lengths[pairs + 1])
        lengths[pairs] = lengths[pairs + 1] = longer
        X /= lengths
    rates = diagonal.diagonal().astype(np.complex128)
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return X, rates
