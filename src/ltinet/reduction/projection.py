"""Galerkin projection of a sparse system, the states of the projected model, and the space of its residuals.

With VᵀE V = I the model is A_r = VᵀA V, b = VᵀB, c = C V. With y = (s − A_r)⁻¹b the states V y leave the residual
R_b(s) = (B − E V b) + (A V − E V A_r) y, and R_c(s) likewise for the outputs, with Aᵀ and z = (s − A_rᵀ)⁻¹cᵀ. For a
symmetric system and rational Krylov spaces all of these columns lie in a space of m + p dimensions.

A mechanical model s²M + s(αM + βK) + K is (1 + βs)(σM + K) with σ = (s² + αs)/(1 + βs): its states are those of the
first-order model (M, −K) at σ(s), up to the factor.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet.reduction.dissipative_pencil import Pencil, Sparse
from ltinet.reduction.mechanical_modes import Oscillators
from ltinet.reduction.separation import solve_triangular_resolvent
from ltinet.reduction.supremum import frequency_grid, frobenius_norms, mean_square

# MERGED ltinet.reduction.projection
# States of a small model at many frequencies: in closed form where it is diagonal, else by a triangle.
#
# A mechanical model s²M + s(αM + βK) + K is (1 + βs)(σM + K) with σ = (s² + αs)/(1 + βs): its states are those of the
# first-order model (M, −K) at σ(s), but for the factor.


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
        return 2.0 * summation_tolerance(len(self.A)) * size

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state over all frequencies, or a little more, `(N,)`."""
        if self.is_diagonal:
            return np.asarray(np.linalg.norm(self.B, axis=1) / np.abs(self.A.diagonal()))
        places = frequency_grid(self.poles)
        sizes = np.linalg.norm(self.times(np.eye(len(self.A)), places.omega), axis=2).max(axis=0, initial=0.0)
        return np.asarray(sizes * places.factor)

    @cached_property
    def mean(self) -> float:
        """The H2 norm of all states together."""
        eye = np.eye(len(self.A))
        return math.sqrt(mean_square(self.poles, lambda omega: frobenius_norms(self.times(eye, omega)) ** 2))

    def times(self, matrix: Array, omega: Array) -> Complex:
        """A real matrix (k × N) times y(iω), `(K, k, m)`."""
        if self.is_diagonal:
            gains = np.asarray(1.0 / (1j * omega[:, None] - self.A.diagonal()), dtype=np.complex128)
            return _summed(gains, matrix, self.B)
        return self._by_triangle(matrix, omega)

    def _by_triangle(self, matrix: Array, omega: Array) -> Complex:
        S, U = self._schur
        turned = solve_triangular_resolvent(
            S, np.asarray(1j * omega, dtype=np.complex128), (U.conj().T @ self.B)[:, None, :]
        )
        values = ((matrix @ U) @ turned.reshape(len(S), -1)).reshape(len(matrix), *turned.shape[1:])
        return np.ascontiguousarray(values.transpose(1, 0, 2))

    @cached_property
    def _schur(self) -> tuple[Complex, Complex]:
        """S and U with A_r = U S Uᴴ."""
        S, U = linalg.schur(self.A, output="complex", check_finite=False)
        return np.asarray(S), np.asarray(U)


class RayleighDamping(NamedTuple):
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
    damping: RayleighDamping

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
        return 4.0 * summation_tolerance(len(self.A)) * (float(np.linalg.norm(self.B)) + sizes)

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


# MERGED ltinet.reduction.projection
# A system projected onto a basis, and the space that all its residuals lie in.
#
# With VᵀE V = I the model is A_r = VᵀA V, b = VᵀB, c = C V. With y = (s − A_r)⁻¹b the states V y leave the residual
# R_b(s) = (B − E V b) + (A V − E V A_r) y, and R_c(s) likewise for the outputs, with Aᵀ and z = (s − A_rᵀ)⁻¹cᵀ. For a
# symmetric system and rational Krylov spaces all of these columns lie in a space of m + p dimensions.

_ROWS = 2**14  # that are turned at a time
_NUMBERS, _COLUMNS = 2**20, 16  # that are looked at at a time: so many numbers, of long columns so many of these
_NOISE = 16.0 * EPS  # of the largest eigenvalue of a Gram matrix: below, it is rounding


@dataclass(frozen=True, eq=False)
class Projection:
    """A_r, b, c, in coordinates in which the symmetric part of A_r is diagonal."""

    A: Array
    B: Array
    C: Array
    E: Array
    """VᵀE V, the identity up to rounding."""
    projected: Array
    """VᵀA V as it was computed: A_r, but for a symmetric system not quite diagonal."""
    moved: Array
    """Euclidean norms of the columns of A V, `(N,)`."""
    carried: Array
    """Likewise of E V."""
    length: float
    """The Frobenius norm of V: √N for E = I, any other in other units of E."""
    damping: RayleighDamping | None = None
    """Of a mechanical model with M = E and K = −A, whose residuals are those of (E, A) at σ(s) in the place of s."""

    @cached_property
    def inputs(self) -> ReducedStates | DampedStates:
        """(s − A_r)⁻¹b."""
        return self._states(self.A, self.B)

    @cached_property
    def outputs(self) -> ReducedStates | DampedStates:
        """(s − A_rᵀ)⁻¹cᵀ."""
        return self._states(self.A.T, self.C.T)

    def _states(self, A: Array, B: Array) -> ReducedStates | DampedStates:
        return ReducedStates(A, B) if self.damping is None else DampedStates(A, B, self.damping)


@dataclass(frozen=True, eq=False)
class Combination:
    """R(s) = Q (first + rest·y(s)) up to `off` in the Euclidean norm, at any frequency."""

    first: Array
    rest: Array
    off: float


@dataclass(frozen=True, eq=False)
class ResidualSpace:
    """An orthonormal basis Q (n × q) of all residuals, and both residuals in it."""

    Q: Array
    inputs: Combination
    outputs: Combination
    mass: float
    """A bound on ‖E V‖: √‖E‖, because VᵀE V = I."""


def project(system: Pencil, V: Array, *, damping: RayleighDamping | None = None) -> tuple[Projection, Array]:
    """Project a system onto an E-orthonormal basis; the basis comes back turned as the projection is."""
    symmetric_part = V.T @ (system.A @ V)
    _, turn = np.linalg.eigh(0.5 * (symmetric_part + symmetric_part.T))
    V = V @ turn
    AV = np.asarray(system.A @ V)
    full = V.T @ AV
    A_r = np.diag(full.diagonal()) if system.is_symmetric else full  # any A_r will do: residuals tell what it costs
    EV = np.asarray(system.E @ V)
    moved, carried = (np.linalg.norm(own, axis=0) for own in (AV, EV))
    length = float(np.linalg.norm(V))
    return Projection(A_r, V.T @ system.B, system.C @ V, V.T @ EV, full, moved, carried, length, damping), V


def residual_space(system: Pencil, own: Projection, V: Array) -> ResidualSpace:
    """The space of the residuals, without directions that are rounding; what is left out is counted in `off`.

    Of n × N numbers only V and the basis are there at a time: columns are made again where they are looked at again.
    """
    inputs = _Side(system, V, system.A, system.B, own.A, own.B, own.inputs.largest)
    outputs = _Side(system, V, system.A.T, system.C.T, own.A.T, own.C.T, own.outputs.largest)
    Q = _orthonormal(_columns(inputs, outputs))
    rests = _in_basis(Q, inputs), None if system.is_symmetric else _in_basis(Q, outputs)
    rounded, ends = _rounded(system, own, V), 4.0 * EPS * math.sqrt(len(own.A))
    return ResidualSpace(
        Q,
        _combination(Q, inputs, rests[0], rounded, ends),
        _combination(Q, outputs, rests[1] or rests[0], rounded, ends),
        mass=1.01 * math.sqrt(float(abs(system.E).sum(axis=0).max())),
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """Residuals of inputs, or of outputs with everything transposed."""

    system: Pencil
    V: Array
    A: Sparse | sparse.csr_array
    B: Array
    reduced: Array
    seen: Array
    """VᵀB."""
    largest: Array
    """Of each state, over all frequencies."""

    @cached_property
    def first(self) -> Array:
        """B − E V VᵀB."""
        return np.asarray(self.B - self.system.E @ (self.V @ self.seen))

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Some columns at a time of A V − E V A_r."""
        n, N = self.V.shape
        width = max(_COLUMNS, _NUMBERS // n)
        for begin in range(0, N, width):
            own = slice(begin, min(begin + width, N))
            diagonal = self.reduced.diagonal()[own]
            moved = self.V[:, own] * diagonal if self.system.is_symmetric else self.V @ self.reduced[:, own]
            yield own, np.asarray(self.A @ self.V[:, own] - self.system.E @ moved)


def _columns(inputs: _Side, outputs: _Side) -> Array:
    """All that residuals are combinations of, with the largest values of the states.

    Each side is divided by its size, so that what is noise beside one is not lost of the other.
    """
    sides = (inputs,) if inputs.system.is_symmetric else (inputs, outputs)
    firsts = inputs.first.shape[1], outputs.first.shape[1]
    n, N = inputs.V.shape
    together = np.empty((n, sum(firsts) + len(sides) * N))
    lengths = np.empty((len(sides), N))
    for place, side in enumerate(sides):
        begin = sum(firsts) + place * N
        for own, piece in side.pieces():
            together[:, begin + own.start : begin + own.stop] = piece
            lengths[place, own] = np.linalg.norm(piece, axis=0)
    sizes = [_size_of(inputs, lengths[0]), _size_of(outputs, lengths[-1])]
    scales = np.array([inputs.largest / sizes[0], outputs.largest / sizes[1]])
    if len(sides) == 1:
        scales = np.max(scales, axis=0, keepdims=True)
    together[:, sum(firsts) :] *= scales.ravel()
    together[:, : firsts[0]] = inputs.first / sizes[0]
    together[:, firsts[0] : sum(firsts)] = outputs.first / sizes[1]
    return together


def _size_of(side: _Side, lengths: Array) -> float:
    size = math.hypot(float(np.linalg.norm(side.first)), float(np.linalg.norm(lengths * side.largest)))
    return size if size > 0.0 else 1.0


class _BasisCoordinates(NamedTuple):
    """Columns in a basis, and the lengths of what is left of them."""

    parts: Array
    left: Array


def _in_basis(Q: Array, side: _Side) -> _BasisCoordinates:
    parts, left = np.empty((Q.shape[1], side.V.shape[1])), np.empty(side.V.shape[1])
    for own, piece in side.pieces():
        parts[:, own] = Q.T @ piece
        left[own] = np.linalg.norm(piece - Q @ parts[:, own], axis=0)
    return _BasisCoordinates(parts, left)


def _combination(Q: Array, side: _Side, rest: _BasisCoordinates, rounded: Array, ends: float) -> Combination:
    """Both parts in the basis; what is left of them, and rounding, count with the largest values of the states."""
    first = Q.T @ side.first
    off = float(np.linalg.norm(side.first - Q @ first)) + ends * float(np.linalg.norm(side.B))
    return Combination(first, rest.parts, off + float((rest.left + rounded) @ side.largest))


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span, in the place of the columns, by two rounds of the Gram matrix."""
    for noise in (_NOISE * columns.shape[1], 0.0):
        values, vectors = np.linalg.eigh(columns.T @ columns)
        kept = values > noise * np.max(values, initial=0.0)
        turn = vectors[:, kept] / np.sqrt(values[kept])
        for begin in range(0, len(columns), _ROWS):
            rows = columns[begin : begin + _ROWS]
            rows[:, : turn.shape[1]] = rows @ turn
        columns = columns[:, : turn.shape[1]]
    return columns


def _rounded(system: Pencil, own: Projection, V: Array) -> Array:
    """What rounding left in the columns of A V − E V A_r, `(N,)`: each entry is a sum of a few products."""
    n_terms = int(np.max(np.diff(system.A.tocsr().indptr), initial=1)) + 2
    lengths = np.linalg.norm(V, axis=0)
    return np.asarray(n_terms * EPS * (_size(system.A) * lengths + _size(system.E) * (lengths @ np.abs(own.A))))


def _size(matrix: Sparse) -> float:
    """A bound on the norm of |matrix|."""
    sizes = abs(matrix)
    return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max()))
