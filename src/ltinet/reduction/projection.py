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
from scipy import sparse

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet._util.frequency_supremum import frequency_grid, frobenius_norms, mean_square
from ltinet.blockdiag.eigenmodes import QuasiTriangularMatrix
from ltinet.blockdiag.schur import SchurForm, real_schur
from ltinet.reduction.dissipative_pencil import Pencil, Sparse, absolute_product_norms
from ltinet.reduction.mechanical_modes import Oscillators

# States of the projected model at many frequencies.


@dataclass(frozen=True, eq=False)
class ReducedStates:
    """States y(iω) = (iω − A_r)⁻¹b: in closed form if A_r is diagonal, otherwise by its Schur form."""

    A: Array
    B: Array

    @cached_property
    def is_diagonal(self) -> bool:
        """True if A_r is diagonal."""
        return bool(np.count_nonzero(self.A) == np.count_nonzero(self.A.diagonal()))

    @cached_property
    def poles(self) -> Complex:
        """Eigenvalues of A_r."""
        if self.is_diagonal:
            return np.asarray(self.A.diagonal(), dtype=np.complex128)
        return self._schur.all_eigenvalues

    @cached_property
    def unsolved(self) -> float:
        """Bound on the residual b − (iω − A_r) y of the computed y: back substitution is backward stable."""
        size = float(np.linalg.norm(self.B))
        if not self.is_diagonal:
            size += float(np.linalg.norm(self.A)) * float(np.linalg.norm(self.largest))
        return 2.0 * summation_tolerance(len(self.A)) * size

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state over all frequencies, or a little more, `(N,)`."""
        if self.is_diagonal:
            return np.asarray(np.linalg.norm(self.B, axis=1) / np.abs(self.A.diagonal()))
        grid = frequency_grid(self.poles)
        sizes = np.linalg.norm(self.times(np.eye(len(self.A)), grid.omega), axis=2).max(axis=0, initial=0.0)
        return np.asarray(sizes * grid.factor)

    @cached_property
    def h2_norm(self) -> float:
        """H2 norm of all states together."""
        eye = np.eye(len(self.A))
        return math.sqrt(mean_square(self.poles, lambda omega: frobenius_norms(self.times(eye, omega)) ** 2))

    def times(self, matrix: Array, omega: Array) -> Complex:
        """Return a real matrix (k × N) times y(iω), `(K, k, m)`."""
        if self.is_diagonal:
            gains = np.asarray(1.0 / (1j * omega[:, None] - self.A.diagonal()), dtype=np.complex128)
            return _sum_modes(gains, matrix, self.B)
        R, Z = self._schur.R, self._schur.Z
        states = QuasiTriangularMatrix(R).solve(np.asarray(1j * omega), (Z.T @ self.B)[:, :, None])
        values = np.tensordot(matrix @ Z, states, 1)  # (k, m, K)
        return np.ascontiguousarray(values.transpose(2, 0, 1))

    @cached_property
    def _schur(self) -> SchurForm:
        return real_schur(self.A)


class RayleighDamping(NamedTuple):
    """Damping D = αM + βK, both not negative and one of them positive."""

    alpha: float
    beta: float

    def of(self, stiffness: Array) -> Array:
        """Return the damping of modes, α + βk."""
        return self.alpha + self.beta * stiffness


@dataclass(frozen=True, eq=False)
class DampedStates:
    """States y(iω) = (σ(iω) − A_r)⁻¹b of a mechanical model with a diagonal A_r = −diag(k)."""

    A: Array
    B: Array
    damping: RayleighDamping

    @cached_property
    def oscillators(self) -> Oscillators:
        """Modes with the inputs and outputs Bᵀ: each from its force to its position."""
        stiffness = -self.A.diagonal()
        return Oscillators(stiffness, self.damping.of(stiffness), self.B, self.B.T)

    @cached_property
    def poles(self) -> Complex:
        """Two poles for each mode."""
        return self.oscillators.poles

    @cached_property
    def largest(self) -> Array:
        """Sup ‖y_j(iω)‖ of each state, or a little more: |1 + iβω|/|k − ω² + iωd| ≤ √(1 + 2β²k) h."""
        modes = self.oscillators
        return np.asarray(
            np.linalg.norm(self.B, axis=1) * np.sqrt(1.0 + 2.0 * self.damping.beta**2 * modes.stiffness) * modes.peaks
        )

    @cached_property
    def unsolved(self) -> float:
        """Bound on the residual b − (σ − A_r) y of the computed y: σ + k cancels near a resonance."""
        sizes = float(np.linalg.norm(self.oscillators.stiffness * self.largest))
        return 4.0 * summation_tolerance(len(self.A)) * (float(np.linalg.norm(self.B)) + sizes)

    @cached_property
    def h2_norm(self) -> float:
        """H2 norm of all b_j/(s² + d_j s + k_j) together: Σ ‖b_j‖²/(2 d_j k_j) is its square."""
        modes = self.oscillators
        return math.sqrt(float(np.sum((self.B**2).sum(axis=1) / (2.0 * modes.damping * modes.stiffness))))

    def times(self, matrix: Array, omega: Array) -> Complex:
        """Return a real matrix (k × N) times y(iω), `(K, k, m)`."""
        gains = (1.0 + 1j * self.damping.beta * omega[:, None]) * self.oscillators.gains(omega)
        return _sum_modes(gains, matrix, self.B)


def _sum_modes(gains: Complex, matrix: Array, B: Array) -> Complex:
    """Return Σ_j matrix[:, j] gains[:, j] B[j] for real matrices, by two real products."""
    k, m, N = len(matrix), B.shape[1], len(B)
    products = (matrix.T[:, :, None] * B[:, None, :]).reshape(N, k * m)
    values = np.empty((len(gains), k * m), dtype=np.complex128)
    values.real, values.imag = gains.real @ products, gains.imag @ products
    return values.reshape(len(gains), k, m)


# Projection onto a basis, and the space of all residuals.

_ROWS = 2**14  # rows of a tall matrix that are multiplied at a time, in its own memory
_MIN_COLUMNS, _NUMBERS = 16, 2**20  # least number of columns, and numbers, of residuals that are formed at a time
_GRAM_NOISE = 16.0 * EPS  # of the largest eigenvalue of a Gram matrix, per column: eigenvalues below are rounding


@dataclass(frozen=True, eq=False)
class Projection:
    """Projected model A_r, b, c, in coordinates in which the symmetric part of A_r is diagonal."""

    A: Array
    B: Array
    C: Array
    E: Array
    """VᵀE V, the identity up to rounding."""
    VAV: Array
    """VᵀA V as computed: A_r, but for a symmetric system not exactly diagonal."""
    AV_norms: Array
    """Euclidean norms of the columns of A V, `(N,)`."""
    AV_rounding: Array
    """Bounds on the norms of the rounding errors of the columns of A V, `(N,)`: each entry is a sum of a few products."""
    EV_norms: Array
    """Euclidean norms of the columns of E V, `(N,)`."""
    length: float
    """Frobenius norm of V: √N for E = I, any other in other units of E."""
    damping: RayleighDamping | None = None
    """Damping of a mechanical model with M = E and K = −A, whose residuals are those of (E, A) at σ(s) instead of s."""

    @cached_property
    def inputs(self) -> ReducedStates | DampedStates:
        """States (s − A_r)⁻¹b."""
        return self._states(self.A, self.B)

    @cached_property
    def outputs(self) -> ReducedStates | DampedStates:
        """Adjoint states (s − A_rᵀ)⁻¹cᵀ."""
        return self._states(self.A.T, self.C.T)

    def _states(self, A: Array, B: Array) -> ReducedStates | DampedStates:
        return ReducedStates(A, B) if self.damping is None else DampedStates(A, B, self.damping)


class Combination(NamedTuple):
    """Residual R(s) = Q (first + rest·y(s)) up to `off` in the Euclidean norm, at any frequency."""

    first: Array
    rest: Array
    off: float


@dataclass(frozen=True, eq=False)
class ResidualSpace:
    """Orthonormal basis Q (n × q) of all residuals, and both residuals in it."""

    Q: Array
    inputs: Combination
    outputs: Combination
    mass: float
    """Bound on ‖E V‖: √‖E‖, because VᵀE V = I."""


def project(system: Pencil, V: Array, *, damping: RayleighDamping | None = None) -> tuple[Projection, Array]:
    """Project a system onto an E-orthonormal basis; return the projection and the basis in its coordinates."""
    symmetric_part = V.T @ (system.A @ V)
    _, rotation = np.linalg.eigh(0.5 * (symmetric_part + symmetric_part.T))
    V = V @ rotation
    AV = np.asarray(system.A @ V)
    VAV = V.T @ AV
    A_r = np.diag(VAV.diagonal()) if system.is_symmetric else VAV  # any A_r is valid: residuals measure its error
    EV = np.asarray(system.E @ V)
    AV_norms, EV_norms = (np.linalg.norm(columns, axis=0) for columns in (AV, EV))
    length = float(np.linalg.norm(V))
    AV_rounding = _n_terms(system) * EPS * absolute_product_norms(system.A, V)
    ends = V.T @ system.B, system.C @ V
    return Projection(A_r, *ends, V.T @ EV, VAV, AV_norms, AV_rounding, EV_norms, length, damping), V


def residual_space(system: Pencil, projection: Projection, V: Array) -> ResidualSpace:
    """Return the space of the residuals; directions that are rounding are left out and counted in `off`.

    Of n × N arrays only V and the basis are in memory: columns of residuals are formed again where they are needed.
    """
    A_r, inputs, outputs = projection.A, projection.inputs, projection.outputs
    sides = (
        _Side(system, V, system.A, system.B, A_r, projection.B, inputs.largest),
        _Side(system, V, system.A.T, system.C.T, A_r.T, projection.C.T, outputs.largest),
    )
    Q = _orthonormalize(_scaled_columns(*sides))
    first = _coordinates(Q, sides[0])
    coordinates = (first, first if system.is_symmetric else _coordinates(Q, sides[1]))
    rounding, ends = _column_rounding(system, projection, V), 4.0 * EPS * math.sqrt(len(A_r))
    combinations = []
    # Remainders and rounding count with the largest states.
    for side, (parts, remainders) in zip(sides, coordinates, strict=True):
        first_part = Q.T @ side.first
        off = float(np.linalg.norm(side.first - Q @ first_part)) + ends * float(np.linalg.norm(side.B))
        off += float((remainders + rounding) @ side.largest)
        combinations.append(Combination(first_part, parts, off))
    return ResidualSpace(Q, combinations[0], combinations[1], 1.01 * math.sqrt(float(abs(system.E).sum(axis=0).max())))


@dataclass(frozen=True, eq=False)
class _Side:
    """Residuals of inputs, or of outputs with everything transposed."""

    system: Pencil
    V: Array
    A: Sparse | sparse.csr_array
    B: Array
    reduced: Array
    VB: Array
    """VᵀB."""
    largest: Array
    """Largest value of each state, over all frequencies."""

    @cached_property
    def first(self) -> Array:
        """B − E V VᵀB."""
        return np.asarray(self.B - self.system.E @ (self.V @ self.VB))

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Yield the columns of A V − E V A_r, some at a time, with their indices."""
        n, N = self.V.shape
        width = max(_MIN_COLUMNS, _NUMBERS // n)
        for start in range(0, N, width):
            part = slice(start, min(start + width, N))
            diagonal = self.reduced.diagonal()[part]
            product = self.V[:, part] * diagonal if self.system.is_symmetric else self.V @ self.reduced[:, part]
            yield part, np.asarray(self.A @ self.V[:, part] - self.system.E @ product)


def _scaled_columns(inputs: _Side, outputs: _Side) -> Array:
    """Return all columns that residuals combine, times the largest values of the states.

    The columns of inputs and of outputs are divided by their sizes, so that small columns of one kind are not lost as
    noise beside large ones of the other.
    """
    sides = (inputs,) if inputs.system.is_symmetric else (inputs, outputs)
    m, p = inputs.first.shape[1], outputs.first.shape[1]
    n, N = inputs.V.shape
    columns = np.empty((n, m + p + len(sides) * N))
    lengths = np.empty((len(sides), N))
    for number, side in enumerate(sides):
        start = m + p + number * N
        for part, piece in side.pieces():
            columns[:, start + part.start : start + part.stop] = piece
            lengths[number, part] = np.linalg.norm(piece, axis=0)
    sizes = [_residual_size(inputs, lengths[0]), _residual_size(outputs, lengths[-1])]
    scales = np.array([inputs.largest / sizes[0], outputs.largest / sizes[1]])
    if len(sides) == 1:
        scales = np.max(scales, axis=0, keepdims=True)
    columns[:, m + p :] *= scales.ravel()
    columns[:, :m] = inputs.first / sizes[0]
    columns[:, m : m + p] = outputs.first / sizes[1]
    return columns


def _residual_size(side: _Side, lengths: Array) -> float:
    size = math.hypot(float(np.linalg.norm(side.first)), float(np.linalg.norm(lengths * side.largest)))
    return size if size > 0.0 else 1.0


def _coordinates(Q: Array, side: _Side) -> tuple[Array, Array]:
    """Return coordinates of the columns of residuals in a basis, and the lengths of their remainders."""
    parts, remainders = np.empty((Q.shape[1], side.V.shape[1])), np.empty(side.V.shape[1])
    for part, piece in side.pieces():
        parts[:, part] = Q.T @ piece
        remainders[part] = np.linalg.norm(piece - Q @ parts[:, part], axis=0)
    return parts, remainders


def _orthonormalize(columns: Array) -> Array:
    """Return an orthonormal basis of the span, in the memory of the columns, by two rounds of the Gram matrix."""
    for noise in (_GRAM_NOISE * columns.shape[1], 0.0):
        values, vectors = np.linalg.eigh(columns.T @ columns)
        keep = values > noise * np.max(values, initial=0.0)
        transform = vectors[:, keep] / np.sqrt(values[keep])
        for start in range(0, len(columns), _ROWS):
            rows = columns[start : start + _ROWS]
            rows[:, : transform.shape[1]] = rows @ transform
        columns = columns[:, : transform.shape[1]]
    return columns


def _column_rounding(system: Pencil, projection: Projection, V: Array) -> Array:
    """Bound the rounding of the columns of A V − E V A_r, `(N,)`: each entry is a sum of a few products."""
    sums = absolute_product_norms(system.E, V) @ np.abs(projection.A)
    return np.asarray(projection.AV_rounding + _n_terms(system) * EPS * sums)


def _n_terms(system: Pencil) -> int:
    return int(np.max(np.diff(system.A.tocsr().indptr), initial=1)) + 2
