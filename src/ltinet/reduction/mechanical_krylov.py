"""Rational Krylov projection of large mechanical models that keeps their second-order structure.

Solutions (s²M + sD + K)⁻¹[B, Cᵀ] on the imaginary axis span the basis; frequencies are added where the bound is
largest.

Bound for D = αM + βK. G − G_r = R_c P⁻¹ R_b, P = s²M + sD + K. In the norm of M⁻¹ the gain of P⁻¹ is ρ = max 1/|k −
ω² + iω(α + βk)| over all stiffnesses k ≥ k₀; in that of K⁻¹ it is max k/|…|. Over all real k they are at most |1 +
iβω|/(ω(α + βω²)) and |iω + α|/(α + βω²), and for ω² ≤ k₀/4 at most 4/(3k₀) and 4/3. With x = ω² ≥ k₀/4 there is α +
βx ≥ α' + β'x for α' = α + βk₀/8 and β' = β/2, and √5 ω ≥ |iω + √k₀|, so that these rational functions are above them
everywhere (theory page on reduction, Theorem 5):

    γ √5 |1 + iβω| / (|iω + √k₀| (α' + β'ω²)),     γ |iω + α + √k₀| / (α' + β'ω²),

with γ = max(1, (4/3)(α + βk₀/4)/√k₀). Dampings that couple modes have no such bound: there the estimate is the change
of the model by the last frequencies.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet._util.frequency_supremum import COARSE_SPACING, frequency_grid, mean_square, spectral_norms
from ltinet.reduction.dissipative_pencil import absolute_product_norms, prove_definite
from ltinet.reduction.lifting import EnergyInequality, ProjectedField, ResidualColumns, product_rounding
from ltinet.reduction.mechanical_modes import CoupledOscillators, Oscillators
from ltinet.reduction.mechanical_pencil import MechanicalPencil
from ltinet.reduction.projection import Projection, RayleighDamping, ReducedStates, project, residual_space
from ltinet.reduction.rational_krylov import (
    MAX_SHIFTS,
    MAX_STALLED_ROUNDS,
    STALLED_RATIO,
    ProgressCallback,
    extend_basis,
    solve_in_parallel,
)
from ltinet.reduction.residual_bound import (
    ResidualBound,
    ResidualPair,
    projection_rounding,
    weighted_residuals,
)
from ltinet.systems.sparse_lu import factorize_superlu

# Least ratio of two frequencies of one batch, and least relative distance from one of an earlier batch: solutions at
# closer frequencies are nearly parallel and add no direction. They decide the number of factorizations (make
# bench-reduce); the bound is proven for any frequencies.
_FREQUENCY_RATIO = 1.05
_FREQUENCY_DISTANCE = 1e-3
_INITIAL_FREQUENCIES = (0.0, 1.0, 4.0, 16.0)  # times the slowest frequency
_BATCH_SIZE = 3  # speed only; fixed, so that the result does not depend on the number of workers
_MIN_DECAY = 1e-6  # of the largest |λ|: least |Re λ| of poles that a grid is made for; decides an estimate only

PencilMatrices = tuple[Any, Any, Any, Array, Array]

# Bases: solutions on the imaginary axis.


def damped_solutions(model: MechanicalPencil, frequencies: Sequence[float], *, n_jobs: int) -> Array:
    """Return real and imaginary parts of the solutions for B and Cᵀ, all frequencies side by side."""
    pencil = model.pencil
    matrices: PencilMatrices = (pencil.E, model.D, -pencil.A, pencil.B, pencil.C)
    return solve_in_parallel(partial(_solutions, matrices), frequencies, n_jobs=n_jobs)


def _solutions(matrices: PencilMatrices, omega: float) -> Array:
    M, D, K, B, C = matrices
    P: Any = K if omega == 0.0 else K - omega**2 * M + 1j * omega * D
    right = np.hstack([B, C.T]).astype(P.dtype)
    columns = factorize_superlu(sparse.csc_array(P), pivoting=0.01).solve(right)
    return np.hstack([columns.real, columns.imag]) if omega else np.asarray(columns)


def _first_frequencies(model: MechanicalPencil) -> list[float]:
    return [ratio * math.sqrt(model.smallest) for ratio in _INITIAL_FREQUENCIES]


def next_frequencies(omega: Array, values: Array, used: Sequence[float]) -> list[float]:
    """Return the peaks of a bound, the largest first, apart from each other and from frequencies already used."""
    is_peak = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    peaks = np.concatenate([np.flatnonzero(is_peak) + 1, [len(values) - 1]])
    peaks = peaks[np.argsort(-values[peaks], kind="stable")]
    chosen: list[float] = []
    for peak in omega[peaks].tolist():
        is_new = all(abs(peak - other) > _FREQUENCY_DISTANCE * peak for other in used)
        if peak > 0.0 and is_new and all(max(peak / other, other / peak) > _FREQUENCY_RATIO for other in chosen):
            chosen.append(peak)
        if len(chosen) == _BATCH_SIZE:
            break
    return chosen or [1.5 * max(used)]


# Models with D = αM + βK: the projection keeps the structure and has a bound.

DampedStoppingTest = Callable[[Oscillators, ResidualBound], bool]


@dataclass(frozen=True, eq=False)
class Majorant:
    """Rational function of ω that bounds the gain of P⁻¹ in one of the two norms from above."""

    damping: RayleighDamping
    smallest: float
    """Smallest stiffness k₀."""
    is_in_masses: bool
    """True if the norm is that of M⁻¹, otherwise that of K⁻¹."""

    @cached_property
    def _reduced_damping(self) -> RayleighDamping:
        """Coefficients α' and β'."""
        return RayleighDamping(self.damping.alpha + self.damping.beta * self.smallest / 8.0, 0.5 * self.damping.beta)

    @cached_property
    def poles(self) -> Complex:
        """Real, negative poles."""
        alpha, beta = self._reduced_damping
        both = [-math.sqrt(alpha / beta)] * 2 if beta > 0.0 else []
        return np.array([*([-math.sqrt(self.smallest)] if self.is_in_masses else []), *both], dtype=np.complex128)

    def __call__(self, omega: Array) -> Array:
        """Return its values."""
        (alpha, beta), (reduced_alpha, reduced_beta) = self.damping, self._reduced_damping
        root = math.sqrt(self.smallest)
        denominator = reduced_alpha + reduced_beta * omega**2
        gamma = max(1.0, 4.0 / 3.0 * (alpha + 0.25 * beta * self.smallest) / root)
        if self.is_in_masses:
            numerator = gamma * math.sqrt(5.0) * np.hypot(1.0, beta * omega)
            return np.asarray(numerator / (np.hypot(omega, root) * denominator))
        return np.asarray(gamma * np.hypot(omega, alpha + root) / denominator)


@dataclass(frozen=True, eq=False)
class DampedResidualNorms:
    """Residuals of a projection in both norms, each with its majorant."""

    model: MechanicalPencil
    projection: Projection
    norms: tuple[tuple[ResidualPair, Majorant], ...]

    @classmethod
    def of(
        cls, model: MechanicalPencil, projection: Projection, V: Array, damping: RayleighDamping
    ) -> "DampedResidualNorms":
        """Return the residuals of a basis V."""
        space = residual_space(model.pencil, projection, V)
        norms = [(weighted_residuals(space, model.mass), Majorant(damping, model.smallest, is_in_masses=True))]
        if damping.beta > 0.0:  # without it the gain in the other norm grows with frequency
            stiff = Majorant(damping, model.smallest, is_in_masses=False)
            norms.append((weighted_residuals(space, model.stiffness), stiff))
        return cls(model, projection, tuple(norms))

    def bound(self) -> ResidualBound:
        """Return the bound over all frequencies, the lesser of both norms; both fall to zero at infinity."""
        inputs, outputs = self.projection.inputs, self.projection.outputs
        majorants = [majorant for _, majorant in self.norms]
        poles = np.concatenate([inputs.poles, outputs.poles, *(majorant.poles for majorant in majorants)])
        grid = frequency_grid(poles, spacing=COARSE_SPACING)
        products = [pair.product(self.projection, grid.omega) * majorant(grid.omega) for pair, majorant in self.norms]
        rounding = projection_rounding(
            self.model.pencil, self.projection, lambda states: float(np.linalg.norm(states.largest))
        )
        beta = 0.0 if self.projection.damping is None else self.projection.damping.beta
        gains = inputs.times(self.projection.C, grid.omega) / (1.0 + 1j * beta * grid.omega)[:, None, None]
        gain = float(np.max(spectral_norms(gains), initial=0.0))
        peak = min(grid.supremum(values, 0.0) for values in products) + rounding
        return ResidualBound(peak, grid.omega, np.min(products, axis=0), gain, math.nan)

    def h2_bound(self) -> float:
        """Return the bound on the H2 norm, the lesser of both norms."""
        projection, inputs, outputs = self.projection, self.projection.inputs, self.projection.outputs
        best = math.inf
        for pair, majorant in self.norms:

            def squares(omega: Array, pair: ResidualPair = pair, majorant: Majorant = majorant) -> Array:
                return pair.squares(projection, omega) * majorant(omega) ** 2

            poles = np.concatenate([inputs.poles, outputs.poles, majorant.poles])
            best = min(best, math.sqrt(mean_square(poles, squares)))
        return best + projection_rounding(self.model.pencil, projection, lambda states: states.h2_norm)


@dataclass(frozen=True, eq=False)
class DampedGalerkinModel:
    """Ritz modes, which the damping does not couple, with the bound on their distance from the model."""

    oscillators: Oscillators
    bound: ResidualBound
    h2_bound: Callable[[], float]
    n_shifts: int
    field: ProjectedField


def project_damped(
    model: MechanicalPencil,
    damping: RayleighDamping,
    *,
    is_enough: DampedStoppingTest,
    n_jobs: int,
    callback: ProgressCallback,
) -> DampedGalerkinModel:
    """Add frequencies until the bound suffices, or only rounding is left of it."""
    system = model.pencil
    V, used, frequencies = np.zeros((system.n_states, 0)), list[float](), _first_frequencies(model)
    best, n_stalled = math.inf, 0
    while True:
        columns = extend_basis(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        used += frequencies
        projection, V = project(system, np.hstack([V, columns]), damping=damping)
        stiffness = -projection.A.diagonal()
        modes = Oscillators(stiffness, damping.of(stiffness), projection.B, projection.C)
        residuals = DampedResidualNorms.of(model, projection, V, damping)
        bound = residuals.bound()
        callback(len(used), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        n_stalled = 0 if bound.peak < STALLED_RATIO * best else n_stalled + 1
        best = min(best, bound.peak)
        is_full = not columns.size or V.shape[1] >= system.n_states
        is_over = is_full or n_stalled >= MAX_STALLED_ROUNDS or len(used) >= MAX_SHIFTS
        if is_over or is_enough(modes, bound):
            field = mechanical_field(model, V, np.diag(modes.damping), stiffness, projection.B)
            return DampedGalerkinModel(modes, bound, residuals.h2_bound, len(used), field)
        frequencies = next_frequencies(bound.omega, bound.values, used)


# Models whose damping couples modes: an estimate only, the change of the model by the last frequencies.


@dataclass(frozen=True, eq=False)
class CoupledGalerkinModel:
    """Ritz modes with the damping that couples them, and the change of the model by the last frequencies."""

    modes: CoupledOscillators
    change: float
    gain: float
    n_shifts: int
    field: ProjectedField


def project_coupled(
    model: MechanicalPencil,
    *,
    is_enough: Callable[[CoupledGalerkinModel], bool],
    n_jobs: int,
    callback: ProgressCallback,
) -> CoupledGalerkinModel:
    """Add frequencies where the last ones changed the model most, until the change is small enough."""
    system = model.pencil
    V, used, frequencies = np.zeros((system.n_states, 0)), list[float](), _first_frequencies(model)
    previous: tuple[ReducedStates, Array] | None = None
    while True:
        columns = extend_basis(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        used += frequencies
        _, V = project(system, np.hstack([V, columns]))
        modes = project_mechanical(model, V)
        matrices = modes.matrices
        states = ReducedStates(matrices.A, matrices.B)
        # A model that is not proven to decay may have poles that do not.
        least = _MIN_DECAY * float(np.max(np.abs(states.poles)))
        poles = np.where(np.abs(states.poles.real) < least, -least, states.poles.real) + 1j * states.poles.imag
        omega = frequency_grid(poles, spacing=COARSE_SPACING).omega
        response = states.times(matrices.C, omega)
        difference = response if previous is None else response - previous[0].times(previous[1], omega)
        changes = spectral_norms(difference)
        gain = float(np.max(spectral_norms(response)))
        change = math.inf if previous is None else float(np.max(changes))
        field = mechanical_field(model, V, modes.damping, modes.stiffness, modes.B)
        galerkin = CoupledGalerkinModel(modes, change, gain, len(used), field)
        callback(len(used), change / gain if gain > 0.0 else 0.0)
        is_full = not columns.size or V.shape[1] >= system.n_states
        if is_full or len(used) >= MAX_SHIFTS or is_enough(galerkin):
            return galerkin
        previous = states, matrices.C
        frequencies = next_frequencies(omega, changes, used)


def project_mechanical(model: MechanicalPencil, V: Array) -> CoupledOscillators:
    """Return the projection onto a basis that is orthonormal for M and diagonalizes K."""
    pencil = model.pencil
    stiffness = -np.einsum("ij,ij->j", V, pencil.A @ V)
    return CoupledOscillators(stiffness, V.T @ (model.D @ V), V.T @ pencil.B, pencil.C @ V)


# Fields of projected models.


def mechanical_field(model: MechanicalPencil, V: Array, damping: Array, stiffness: Array, B: Array) -> ProjectedField:
    """Return the field of a projection onto a basis that is orthonormal for M and diagonalizes K.

    The states are √k ξ and ξ', which are orthonormal for the energy.
    """
    pencil, root, N = model.pencil, np.sqrt(stiffness), len(stiffness)
    F = np.block([[np.zeros((N, N)), np.diag(root)], [-np.diag(root), -damping]])

    def columns() -> ResidualColumns:
        MV = np.asarray(pencil.E @ V)
        R = [pencil.B - MV @ B, (MV * stiffness + pencil.A @ V) / root, MV @ damping - model.D @ V]
        MV_norms = np.linalg.norm(MV, axis=0)
        sizes = [np.linalg.norm(pencil.B, axis=0) + MV_norms @ np.abs(B)]
        sizes.append((MV_norms * stiffness + absolute_product_norms(pencil.A, V)) / root)
        sizes.append(MV_norms @ np.abs(damping) + absolute_product_norms(model.D, V))
        return ResidualColumns(np.hstack(R), product_rounding(N, pencil.A, model.D) * np.concatenate(sizes))

    def inequality() -> EnergyInequality:
        weight = prove_definite(0.5 * (model.D + model.D.T))
        if weight is None:
            return EnergyInequality(model.mass, 0.0, None, False, model.stiffness)
        return EnergyInequality(weight, 0.0, 0.5, True, model.stiffness)

    return ProjectedField(F, np.vstack([np.zeros_like(B), B]), V / root, columns, inequality)
