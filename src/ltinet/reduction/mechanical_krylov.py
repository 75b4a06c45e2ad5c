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
from typing import Any

import numpy as np
from scipy import sparse

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet.reduction.mechanical_modes import CoupledOscillators, Oscillators
from ltinet.reduction.mechanical_pencil import MechanicalPencil
from ltinet.reduction.projection import Projection, RayleighDamping, ReducedStates, project, residual_space
from ltinet.reduction.rational_krylov import ProgressCallback, extend_basis
from ltinet.reduction.residual_bound import ResidualBound, ResidualPair, projection_rounding, weighted_residuals
from ltinet.reduction.supremum import frequency_grid, mean_square, spectral_norms
from ltinet.systems.sparse_lu import factorize_superlu

# MERGED ltinet.reduction.mechanical_krylov
# Solutions (s²M + sD + K)⁻¹[B, Cᵀ] at places on the imaginary axis, and where the next places are.

_APART = 1.05  # ratio of two frequencies of one batch
_AGAIN = 1e-3  # relative distance from a frequency that was taken
INITIAL_FREQUENCIES = (0.0, 1.0, 4.0, 16.0)  # times the slowest frequency
BATCH_SIZE = 3  # fixed, so that the result does not depend on who computes it

PencilMatrices = tuple[Any, Any, Any, Array, Array]


def damped_solutions(model: MechanicalPencil, frequencies: Sequence[float], *, n_jobs: int) -> Array:
    """Real and imaginary parts of the solutions for B and Cᵀ, all frequencies side by side.

    Every frequency is a job of its own, whoever computes it, so that the result does not depend on the workers.
    """
    own = model.pencil
    matrices: PencilMatrices = (own.E, model.D, -own.A, own.B, own.C)
    if n_jobs == 1:
        return np.hstack([_solutions(matrices, omega) for omega in frequencies])
    from joblib import Parallel, delayed  # here, because few reductions share their work

    return np.hstack(Parallel(n_jobs=n_jobs)(delayed(_solutions)(matrices, omega) for omega in frequencies))


def _solutions(matrices: PencilMatrices, omega: float) -> Array:
    M, D, K, B, C = matrices
    P: Any = K if omega == 0.0 else K - omega**2 * M + 1j * omega * D
    right = np.hstack([B, C.T]).astype(P.dtype)
    columns = factorize_superlu(sparse.csc_array(P), pivoting=0.01).solve(right)
    return np.hstack([columns.real, columns.imag]) if omega else np.asarray(columns)


def next_frequencies(omega: Array, values: Array, taken: Sequence[float]) -> list[float]:
    """Where a bound peaks, the largest peaks first, apart from each other and from those that are taken."""
    inner = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    peaks = np.concatenate([np.flatnonzero(inner) + 1, [len(values) - 1]])
    peaks = peaks[np.argsort(-values[peaks], kind="stable")]
    chosen: list[float] = []
    for own in omega[peaks].tolist():
        is_new = all(abs(own - other) > _AGAIN * own for other in taken)
        if own > 0.0 and is_new and all(max(own / other, other / own) > _APART for other in chosen):
            chosen.append(own)
        if len(chosen) == BATCH_SIZE:
            break
    return chosen or [1.5 * max(taken)]


# MERGED ltinet.reduction.mechanical_krylov
# The bound of a Galerkin model of a mechanical one with D = αM + βK, over all frequencies and in the mean.
#
# G − G_r = R_c P⁻¹ R_b, P = s²M + sD + K. In the norm of M⁻¹ the gain of P⁻¹ is ρ = max 1/|k − ω² + iω(α + βk)| over all
# stiffnesses k ≥ k₀; in that of K⁻¹ it is max k/|…|. Over all real k they are at most |1 + iβω|/(ω(α + βω²)) and
# |iω + α|/(α + βω²), and for ω² ≤ k₀/4 at most 4/(3k₀) and 4/3. With x = ω² ≥ k₀/4 there is α + βx ≥ α' + β'x for α' =
# α + βk₀/8 and β' = β/2, and √5 ω ≥ |iω + √k₀|, so that these rational functions are above them everywhere:
#
#     γ √5 |1 + iβω| / (|iω + √k₀| (α' + β'ω²)),     γ |iω + α + √k₀| / (α' + β'ω²),
#
# with γ = max(1, (4/3)(α + βk₀/4)/√k₀).

_SPACING = 1.6  # of places in phase: 1.15 of the largest value at most


@dataclass(frozen=True, eq=False)
class Majorant:
    """A rational function of ω that is nowhere below the gain of P⁻¹ in one of both norms."""

    damping: RayleighDamping
    smallest: float
    """k₀."""
    is_in_masses: bool
    """In the norm of M⁻¹, or in that of K⁻¹."""

    @cached_property
    def _softer(self) -> RayleighDamping:
        return RayleighDamping(self.damping.alpha + self.damping.beta * self.smallest / 8.0, 0.5 * self.damping.beta)

    @cached_property
    def poles(self) -> Complex:
        """Real and negative."""
        alpha, beta = self._softer
        both = [-math.sqrt(alpha / beta)] * 2 if beta > 0.0 else []
        return np.array([*([-math.sqrt(self.smallest)] if self.is_in_masses else []), *both], dtype=np.complex128)

    def __call__(self, omega: Array) -> Array:
        """Its values."""
        (alpha, beta), (soft_alpha, soft_beta) = self.damping, self._softer
        root = math.sqrt(self.smallest)
        below = soft_alpha + soft_beta * omega**2
        gamma = max(1.0, 4.0 / 3.0 * (alpha + 0.25 * beta * self.smallest) / root)
        if self.is_in_masses:
            return np.asarray(gamma * math.sqrt(5.0) * np.hypot(1.0, beta * omega) / (np.hypot(omega, root) * below))
        return np.asarray(gamma * np.hypot(omega, alpha + root) / below)


@dataclass(frozen=True, eq=False)
class DampedResidualNorms:
    """Residuals of a projection in both norms, each with its majorant."""

    model: MechanicalPencil
    projection: Projection
    ways: tuple[tuple[ResidualPair, Majorant], ...]

    @classmethod
    def of(
        cls, model: MechanicalPencil, projection: Projection, V: Array, damping: RayleighDamping
    ) -> "DampedResidualNorms":
        """Measure the residuals of a basis V."""
        space = residual_space(model.pencil, projection, V)
        ways = [
            (ResidualPair(*weighted_residuals(space, model.mass)), Majorant(damping, model.smallest, is_in_masses=True))
        ]
        if damping.beta > 0.0:  # without it the gain in the other norm grows with frequency
            stiff = Majorant(damping, model.smallest, is_in_masses=False)
            ways.append((ResidualPair(*weighted_residuals(space, model.stiffness)), stiff))
        return cls(model, projection, tuple(ways))

    def bound(self) -> ResidualBound:
        """Over all frequencies, the lesser of both norms; both fall to zero at infinity."""
        found = self.projection
        poles = np.concatenate([found.inputs.poles, found.outputs.poles, *(own.poles for _, own in self.ways)])
        places = frequency_grid(poles, spacing=_SPACING)
        products = [side.product(found, places.omega) * own(places.omega) for side, own in self.ways]
        peaks = [places.supremum(own, 0.0) for own in products]
        of_z, of_y = projection_rounding(self.model.pencil, found)
        sizes = [float(np.linalg.norm(own.largest)) for own in (found.outputs, found.inputs)]
        rounding = of_z * sizes[0] + of_y * sizes[1]
        beta = 0.0 if found.damping is None else found.damping.beta
        gains = found.inputs.times(found.C, places.omega) / (1.0 + 1j * beta * places.omega)[:, None, None]
        gain = float(np.max(spectral_norms(gains), initial=0.0))
        return ResidualBound(min(peaks) + rounding, places.omega, np.min(products, axis=0), gain, math.nan)

    def mean(self) -> float:
        """The H2 norm, by the better of both norms."""
        found, best = self.projection, math.inf
        for side, own in self.ways:

            def squares(omega: Array, side: ResidualPair = side, own: Majorant = own) -> Array:
                return side.squares(found, omega) * own(omega) ** 2

            poles = np.concatenate([found.inputs.poles, found.outputs.poles, own.poles])
            best = min(best, math.sqrt(mean_square(poles, squares)))
        of_z, of_y = projection_rounding(self.model.pencil, found)
        return best + of_z * found.outputs.mean + of_y * found.inputs.mean


# MERGED ltinet.reduction.mechanical_krylov
# Galerkin models of large mechanical ones, frequencies where the bound is largest: the projection stays mechanical.

_MOST_SHIFTS = 60
_STALLED = 4  # rounds without a better bound: rounding is all that is left

DampedStoppingTest = Callable[[Oscillators, ResidualBound], bool]


@dataclass(frozen=True, eq=False)
class DampedGalerkinModel:
    """Ritz modes, each damped for itself, with the bound on their distance from the model."""

    oscillators: Oscillators
    bound: ResidualBound
    mean: Callable[[], float]
    n_shifts: int


def project_damped(
    model: MechanicalPencil,
    damping: RayleighDamping,
    *,
    is_enough: DampedStoppingTest,
    n_jobs: int,
    callback: ProgressCallback,
) -> DampedGalerkinModel:
    """Add frequencies until the bound is enough, or rounding is all that is left of it."""
    system = model.pencil
    V, taken = np.zeros((system.n_states, 0)), [0.0][:0]
    frequencies = [own * math.sqrt(model.smallest) for own in INITIAL_FREQUENCIES]
    best, since = math.inf, 0
    while True:
        new = extend_basis(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        taken += frequencies
        projection, V = project(system, np.hstack([V, new]), damping=damping)
        stiffness = -projection.A.diagonal()
        own = Oscillators(stiffness, damping.of(stiffness), projection.B, projection.C)
        measured = DampedResidualNorms.of(model, projection, V, damping)
        bound = measured.bound()
        callback(len(taken), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        since = 0 if bound.peak < 0.9 * best else since + 1
        best = min(best, bound.peak)
        is_over = not new.size or since >= _STALLED or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states
        if is_over or is_enough(own, bound):
            return DampedGalerkinModel(own, bound, measured.mean, len(taken))
        frequencies = next_frequencies(bound.omega, bound.values, taken)


# MERGED ltinet.reduction.mechanical_krylov
# Galerkin models of large mechanical ones whose dampings couple modes: nothing is proven, the last change is told.

_UNSEEN_RATE = 1e-6  # of the largest |λ|


@dataclass(frozen=True, eq=False)
class CoupledGalerkinModel:
    """Ritz modes with the dampings between them, and by how much the last frequencies changed the model."""

    modes: CoupledOscillators
    change: float
    gain: float
    n_shifts: int


def project_coupled(
    model: MechanicalPencil,
    *,
    is_enough: Callable[[CoupledGalerkinModel], bool],
    n_jobs: int,
    callback: ProgressCallback,
) -> CoupledGalerkinModel:
    """Add frequencies where the last ones changed the model most, until that is enough."""
    system = model.pencil
    V, taken = np.zeros((system.n_states, 0)), [0.0][:0]
    frequencies = [own * math.sqrt(model.smallest) for own in INITIAL_FREQUENCIES]
    before: ReducedStates | None = None
    seen = np.zeros((len(system.C), 0))
    while True:
        new = extend_basis(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        taken += frequencies
        _, V = project(system, np.hstack([V, new]))
        modes = project_mechanical(model, V)
        own = modes.matrices
        now = ReducedStates(own.A, own.B)
        omega = frequency_grid(_decaying(now.poles), spacing=_SPACING).omega
        response = now.times(own.C, omega)
        change = spectral_norms(response if before is None else response - before.times(seen, omega))
        gain = float(np.max(spectral_norms(response)))
        largest = math.inf if before is None else float(np.max(change))
        found = CoupledGalerkinModel(modes, largest, gain, len(taken))
        callback(len(taken), largest / gain if gain > 0.0 else 0.0)
        if not new.size or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states or is_enough(found):
            return found
        before, seen = now, own.C
        frequencies = next_frequencies(omega, change, taken)


def project_mechanical(model: MechanicalPencil, V: Array) -> CoupledOscillators:
    """A model on a basis that is orthonormal for M and diagonal for K."""
    own = model.pencil
    stiffness = -np.einsum("ij,ij->j", V, own.A @ V)
    return CoupledOscillators(stiffness, V.T @ (model.D @ V), V.T @ own.B, own.C @ V)


def _decaying(poles: Complex) -> Complex:
    """Poles as places are chosen for them: a model that is not proven to decay may have some that do not."""
    least = _UNSEEN_RATE * float(np.max(np.abs(poles)))
    return np.asarray(np.where(np.abs(poles.real) < least, -least, poles.real) + 1j * poles.imag)
