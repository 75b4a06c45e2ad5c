"""Reduction of large sparse systems: projection onto rational Krylov spaces, then balanced truncation.

Shifts are added where the error bound is largest, until the bound suffices or only rounding is left of it. Galerkin
projection preserves dissipativity: the symmetric part of VᵀA V is negative definite with that of A. The projected
model, as accurate as required, is then reduced to the fewest states; both errors enter the bound.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet.reduction.balanced_truncation import (
    DenseMethod,
    DenseReducer,
    DenseReduction,
    StateSpaceMatrices,
    balance_states,
    prepare_reducer,
    smallest_order,
)
from ltinet.reduction.dissipative_pencil import DefiniteMatrix, Pencil, sector_bound
from ltinet.reduction.modal_form import modes_from_blocks
from ltinet.reduction.projection import Projection, ReducedStates, ResidualSpace, project, residual_space
from ltinet.reduction.residual_bound import (
    ResidualBound,
    ResidualPair,
    bound_residuals,
    euclidean_residuals,
    h2_residual_bound,
    weighted_residuals,
)
from ltinet.reduction.separation import DistanceBound, SeparatedSystem
from ltinet.reduction.supremum import frequency_grid, spectral_norms
from ltinet.systems.sparse_lu import factorize_superlu
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.rational_krylov
# Solutions at shifts: what rational Krylov spaces are made of, in batches over joblib.

_DIRECTION_CUTOFF = 1e-10  # of the length of a column: what is left of a shorter one is rounding of the subtraction


def shifted_solutions(system: Pencil, shifts: Sequence[complex], *, n_jobs: int) -> Array:
    """(sE − A)⁻¹B and (sE − A)⁻ᵀCᵀ side by side for all shifts; of complex ones the real and imaginary parts.

    Every shift is a job of its own, whoever computes it, so that the result does not depend on the number of workers.
    """
    matrices, symmetric = (system.A, system.E, system.B, system.C), system.is_symmetric
    if n_jobs == 1:
        return np.hstack([_solutions(matrices, shift, is_symmetric=symmetric) for shift in shifts])
    from joblib import Parallel, delayed  # here, because few reductions share their work

    jobs = (delayed(_solutions)(matrices, shift, is_symmetric=symmetric) for shift in shifts)
    return np.hstack(Parallel(n_jobs=n_jobs)(jobs))


def _solutions(matrices: tuple[Any, Any, Array, Array], shift: complex, *, is_symmetric: bool) -> Array:
    A, E, B, C = matrices
    is_real = complex(shift).imag == 0.0
    M = (shift.real if is_real else shift) * E - A
    factors = factorize_superlu(M.tocsc(), pivoting=0.0 if is_real else 0.01)
    kind = np.float64 if is_real else np.complex128
    if is_symmetric:
        return _real_columns(factors.solve(np.hstack([B, C.T]).astype(kind)))
    columns = [factors.solve(B.astype(kind)), factors.solve(C.T.astype(kind), trans="T")]
    return np.hstack([_real_columns(own) for own in columns])


def _real_columns(columns: NDArray[Any]) -> Array:
    return np.hstack([columns.real, columns.imag]) if columns.dtype.kind == "c" else np.asarray(columns)


def extend_basis(system: Pencil, basis: Array, columns: Array) -> Array:
    """Return an E-orthonormal basis of the span of the columns beyond that of an E-orthonormal basis.

    Where the columns span the whole space, rounding leaves directions beyond its dimension in their Gram matrix, and
    a projection onto these would have modes that are rounding: there are never more directions than states.
    """
    n_left = system.n_states - basis.shape[1]
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, system.E @ columns))
    nonzero = lengths > 0.0  # zero columns of B and rows of C leave zero columns, which have no direction
    columns = columns[:, nonzero] / lengths[nonzero]
    for _ in range(2):  # twice is enough (Kahan, Parlett)
        columns = columns - basis @ (basis.T @ (system.E @ columns))
        columns = _orthonormalize(system, columns, most=n_left)
    return columns


def _orthonormalize(system: Pencil, columns: Array, *, most: int) -> Array:
    """Return an E-orthonormal basis of the `most` largest directions of a span, by two rounds of the Gram matrix."""
    for cutoff in (_DIRECTION_CUTOFF**2, 0.0):
        gram = columns.T @ (system.E @ columns)
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        keep = (values > cutoff) & (np.arange(len(values)) >= len(values) - most)
        columns = columns @ (vectors[:, keep] / np.sqrt(values[keep]))
    return np.asarray(columns)


# MERGED ltinet.reduction.rational_krylov
# Large sparse systems: Galerkin projection onto rational Krylov spaces, shifts where the bound is largest.
#
# Galerkin, because a dissipative system stays one: the symmetric part of VᵀA V is negative definite with that of A.

# Shifts in the first batch and in others, fixed, so that the result does not depend on who computes them. What is
# judged after each batch takes as long as a factorisation where these are dear: the first then has most of what 1e-3
# takes of a plate, and others are small.
_DEAR, _CHEAP = (10, 2), (4, 3)
_SMALL = 20_000  # states
# The slowest and the fastest of the first shifts, of a bound on the slowest rate and of the norm of A: with what a
# shift at infinity sees there, less far is enough.
_SLOWEST = 1.4
_FASTEST, _FASTEST_BELOW_INFINITY = 0.5, 0.3
_APART = 4.0  # ratio of two shifts of one batch
_OSCILLATION_RATIO = 0.5  # |Im λ|/|Re λ| of Ritz values near a peak, from which on a complex shift pays
_MOST_SHIFTS = 60
_STALLED = 3  # rounds without a better bound: rounding is all that is left

ProgressCallback = Callable[[int, float], None]
StoppingTest = Callable[[Projection, ResidualBound], bool]


@dataclass(frozen=True, eq=False)
class GalerkinModel:
    """A projected model x' = A x + B u, y = C x (E = I), with the bound on its distance from the system."""

    projection: Projection
    bound: ResidualBound
    mean: Callable[[], float]
    """A bound on the H2 norm of the error, computed when it is asked for; infinite where it is not known."""
    shifts: tuple[complex, ...]
    estimate: float
    """By how much the last shifts changed the model, over all frequencies."""


def project_galerkin(
    system: Pencil, weight: DefiniteMatrix | None, *, is_enough: StoppingTest, n_jobs: int, callback: ProgressCallback
) -> GalerkinModel:
    """Add shifts until the bound is enough, or rounding is all that is left of it.

    Without a proof that the system is dissipative there is no bound. What decides then is how much the last shifts
    changed the model, and shifts go where the residual is largest.
    """
    V = _at_infinity(system, weight)
    shifts = _first_shifts(system, weight, sees_infinity=V.shape[1] > 0)
    taken: list[complex] = []
    before: Projection | None = None
    best, since = math.inf, 0
    while True:
        new = extend_basis(system, V, shifted_solutions(system, shifts, n_jobs=n_jobs))
        taken += shifts
        projection, V = project(system, np.hstack([V, new]))
        estimate = math.inf if before is None or weight is not None else _model_change(before, projection)
        norms_of = _ResidualNorms.of(system, projection, V, weight)
        bound = norms_of.bound(estimate)
        callback(len(taken), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        since = 0 if bound.peak < 0.9 * best else since + 1
        best, before = min(best, bound.peak), projection
        is_over = not new.size or since >= _STALLED or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states
        if is_over or is_enough(projection, bound):
            return GalerkinModel(
                projection, bound, partial(norms_of.mean, bound), tuple(taken), min(bound.peak, estimate)
            )
        shifts = _next_shifts(bound, projection.A, taken, count=_batches(system)[1])


@dataclass(frozen=True, eq=False)
class _ResidualNorms:
    """Residuals in the norms that bound the error; in the Euclidean one where none does."""

    system: Pencil
    projection: Projection
    slow: ResidualPair
    fast: ResidualPair | None
    weight: DefiniteMatrix | None
    space: ResidualSpace

    @classmethod
    def of(cls, system: Pencil, projection: Projection, V: Array, weight: DefiniteMatrix | None) -> "_ResidualNorms":
        space = residual_space(system, projection, V)
        if weight is None:
            return cls(system, projection, ResidualPair(*euclidean_residuals(space)), None, None, space)
        mass = system.mass if system.is_symmetric else None
        fast = None if mass is None else ResidualPair(*weighted_residuals(space, mass))
        return cls(system, projection, ResidualPair(*weighted_residuals(space, weight)), fast, weight, space)

    def bound(self, estimate: float) -> ResidualBound:
        found = bound_residuals(self.system, self.projection, self.slow, self.fast)
        return found if self.weight is not None else replace(found, peak=estimate)

    def mean(self, bound: ResidualBound) -> float:
        """In the H2 norm: a system that is not symmetric must be proven not to turn too far, which takes a while."""
        mass, fast, turn = self.system.mass, self.fast, 1.0
        if self.weight is None or mass is None:
            return math.inf
        if fast is None:
            fast, turn = ResidualPair(*weighted_residuals(self.space, mass)), sector_bound(self.system, self.weight)
        found, corner = self.projection, bound.corner
        return h2_residual_bound(self.system, found, slow=self.slow, fast=fast, corner=corner, turn=turn)


def _at_infinity(system: Pencil, weight: DefiniteMatrix | None) -> Array:
    """What a shift at infinity would see, E⁻¹B and E⁻¹Cᵀ, for systems whose bound does not fall with frequency.

    With them both residuals are zero there, where they would otherwise be flat; no factorisation but that of E.
    """
    nothing, mass = np.zeros((system.n_states, 0)), system.mass
    if weight is None or mass is None or system.is_symmetric:
        return nothing
    return extend_basis(system, nothing, np.hstack([mass.solve(system.B), mass.solve(system.C.T)]))


def _model_change(before: Projection, now: Projection) -> float:
    """Sup of the difference of two models, at places that suffice for the poles of both."""
    omega = frequency_grid(np.concatenate([before.inputs.poles, now.inputs.poles])).omega
    values = now.inputs.times(now.C, omega) - before.inputs.times(before.C, omega)
    return float(np.max(spectral_norms(values), initial=0.0))


def _batches(system: Pencil) -> tuple[int, int]:
    return _CHEAP if system.n_states <= _SMALL else _DEAR


def _first_shifts(system: Pencil, weight: DefiniteMatrix | None, *, sees_infinity: bool) -> list[complex]:
    """A few real ones between the slowest and the fastest that the matrices have."""
    mass = float(np.max(abs(system.E).sum(axis=0)))
    fastest = float(np.max(abs(system.A).sum(axis=0))) / mass
    slowest = max(_SLOWEST * weight.smallest / mass if weight is not None else 1e-6 * fastest, 1e-12 * fastest)
    share = _FASTEST_BELOW_INFINITY if sees_infinity else _FASTEST
    return [complex(own) for own in np.geomspace(slowest, max(share * fastest, slowest), _batches(system)[0])]


def _next_shifts(bound: ResidualBound, A_r: Array, taken: list[complex], *, count: int) -> list[complex]:
    """Where the bound peaks, the largest peaks first, apart from each other and from shifts that are taken."""
    omega, values = bound.omega[1:], bound.values[1:]
    order = np.argsort(-values, kind="stable")
    ritz = np.linalg.eigvals(A_r)
    slowest = float(np.min(np.abs(ritz)))  # below, the bound is flat, and a shift sees what one there sees
    chosen: list[complex] = []
    for place in order.tolist():
        size = max(omega[place], slowest)
        near = ritz[(np.abs(ritz) < 4.0 * size) & (np.abs(ritz) > 0.25 * size)]
        turns = len(near) > 0 and bool(np.max(np.abs(near.imag) / np.abs(near.real)) > _OSCILLATION_RATIO)
        shift = complex(0.0, size) if turns else complex(size)
        away = [max(abs(shift) / abs(other), abs(other) / abs(shift)) for other in chosen]
        again = [abs(shift - other) / abs(shift) for other in taken]
        if all(ratio > _APART for ratio in away) and all(distance > 1e-2 for distance in again):
            chosen.append(shift)
        if len(chosen) == count:
            break
    return chosen or [complex(1.5 * abs(taken[-1]))]


# MERGED ltinet.reduction.rational_krylov
# Large sparse systems: a Galerkin model as exact as it is asked for, then the fewest states of that.

_SHARE = 0.9  # of what is allowed that the projection may take: a few more states cost less than another shift
_UNSEEN = 1e-10  # of the gain: smaller errors are not worth a shift
_UNNOTICED = 4.0  # times the least error of a truncation: bounds of residuals are an order of magnitude above errors


@dataclass(frozen=True, eq=False)
class SparseReduction:
    """A reduced system, with the parts of its error."""

    matrices: StateSpaceMatrices
    order: int
    projection_error: float
    """Bound on the distance of the Galerkin model; infinite where the system is not proven to be dissipative."""
    truncation_error: float
    """Bound on what leaving out states of the Galerkin model did."""
    mean: Callable[[], float]
    """Bound on the H2 norm of the whole error, computed when it is asked for; infinite where it is not known."""
    estimate: float
    """What the error is thought to be where it is not certified."""
    peak: float
    """Sup ‖G_r‖, or a little less."""
    hankel_values: Array
    """Of the Galerkin model."""
    n_projected: int
    shifts: tuple[complex, ...]

    @property
    def error(self) -> float:
        """The whole bound, on sup ‖G − G_r‖."""
        return self.projection_error + self.truncation_error


def reduce_sparse(
    system: Pencil,
    *,
    order: int | None,
    tolerance: float | None,
    method: DenseMethod,
    n_jobs: int,
    callback: ProgressCallback,
) -> SparseReduction:
    """Reduce to an order, or to an error relative to sup ‖G_r‖."""
    weight = system.dissipation
    reducers = lru_cache(maxsize=1)(_reducer)
    is_enough = _small_enough(tolerance) if order is None else _far_below_truncation(order, reducers)
    found = project_galerkin(system, weight, is_enough=is_enough, n_jobs=n_jobs, callback=callback)
    reducer = reducers(found.projection)
    residual = found.bound.peak
    if order is not None:
        small = reducer.reduced(min(order, reducer.system.n_states), method=method)
    else:
        allowed = max(tolerance * found.bound.gain - residual, 0.0) if tolerance is not None else 0.0
        small = smallest_order(reducer, lambda own: own.error <= allowed, allowed=allowed, method=method)
    return _put_together(system, found, reducer, small, is_certified=weight is not None)


def _put_together(
    system: Pencil, found: GalerkinModel, reducer: DenseReducer, small: DenseReduction, *, is_certified: bool
) -> SparseReduction:
    own = small.matrices
    return SparseReduction(
        matrices=StateSpaceMatrices(own.A, own.B, own.C, own.D + system.D),
        order=small.order,
        projection_error=found.bound.peak if is_certified else math.inf,
        truncation_error=small.error,
        mean=lambda: found.mean() + small.mean() if is_certified else math.inf,
        estimate=found.estimate + small.estimate,
        peak=small.peak,
        hankel_values=reducer.balanced.hankel_values,
        n_projected=len(found.projection.A),
        shifts=found.shifts,
    )


def _reducer(projection: Projection) -> DenseReducer:
    """Symmetric systems have their modes already."""
    given = SystemMatrices(projection.A, projection.B, projection.C)
    states = projection.inputs
    if not (isinstance(states, ReducedStates) and states.is_diagonal):
        return prepare_reducer(given)
    modes = modes_from_blocks(projection.inputs.poles, projection.B, projection.C)
    separated = SeparatedSystem(modes, modes.taken(np.zeros(modes.n_states, dtype=np.bool_)), DistanceBound(0.0, 0.0))
    return DenseReducer(given, separated, balance_states(modes))


def _small_enough(tolerance: float | None) -> StoppingTest:
    share = _SHARE * (tolerance or 0.0)

    def is_enough(_: Projection, bound: ResidualBound) -> bool:
        return bound.peak <= share * bound.gain

    return is_enough


def _far_below_truncation(order: int, reducers: Callable[[Projection], DenseReducer]) -> StoppingTest:
    """Enough when the truncation to the order errs by more than the projection: at least by the first value left.

    That value hardly changes once it is there: it is looked at again where the bound comes near.
    """
    known = math.inf

    def is_enough(projection: Projection, bound: ResidualBound) -> bool:
        nonlocal known
        if len(projection.A) <= order or bound.peak > known:
            return False
        if bound.peak <= _UNSEEN * bound.gain:
            return True
        known = float(reducers(projection).balanced.hankel_values[order])
        return bound.peak <= _UNNOTICED * known

    return is_enough
