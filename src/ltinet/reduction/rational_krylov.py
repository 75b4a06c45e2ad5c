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
from ltinet._util.frequency_supremum import frequency_grid, spectral_norms
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import (
    DenseReducer,
    ReductionOptions,
    ReductionOutcome,
    balance_states,
    prepare_reducer,
    smallest_order,
)
from ltinet.reduction.dissipative_pencil import DefiniteMatrix, Pencil, sector_bound
from ltinet.reduction.lifting import ProjectedField, first_order_field
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
from ltinet.systems.sparse_lu import factorize_superlu
from ltinet.systems.system_matrices import SystemMatrices

ProgressCallback = Callable[[int, float], None]
StoppingTest = Callable[[Projection, ResidualBound], bool]


def ignore_progress(n_shifts: int, error: float) -> None:
    """Do nothing: the default callback of a reduction."""


def combine_callbacks(
    callback: ProgressCallback | None, report: Callable[..., None], tolerance: float | None
) -> ProgressCallback:
    """Return a callback that also reports progress: the share of the decades of the bound down to the tolerance."""

    def combined(n_shifts: int, error: float) -> None:
        if callback is not None:
            callback(n_shifts, error)
        # Before the first shifts the error is as large as the gain.
        fraction = None
        if isinstance(tolerance, float) and 0.0 < tolerance < 1.0 and 0.0 < error < math.inf:
            fraction = max(math.log(error) / math.log(tolerance), 0.0)
        report(fraction, f"{n_shifts} shifts, error {error:.1e} of the gain")

    return combined


# Bases of rational Krylov spaces.

_DIRECTION_CUTOFF = 1e-10  # of the length of a column: what is left of a shorter one is rounding of the subtraction


def shifted_solutions(system: Pencil, shifts: Sequence[complex], *, n_jobs: int) -> Array:
    """Return (sE − A)⁻¹B and (sE − A)⁻ᵀCᵀ side by side for all shifts; real and imaginary parts for complex ones."""
    matrices = (system.A, system.E, system.B, system.C)
    return solve_in_parallel(partial(_solutions, matrices, is_symmetric=system.is_symmetric), shifts, n_jobs=n_jobs)


def solve_in_parallel(solve: Callable[[Any], Array], arguments: Sequence[Any], *, n_jobs: int) -> Array:
    """Return the columns that belong to all arguments, side by side.

    Every argument is a job of its own, so that the result does not depend on the number of workers.
    """
    if n_jobs == 1:
        return np.hstack([solve(argument) for argument in arguments])
    from joblib import Parallel, delayed  # imported here, because few reductions are parallel

    return np.hstack(Parallel(n_jobs=n_jobs)(delayed(solve)(argument) for argument in arguments))


def _solutions(matrices: tuple[Any, Any, Array, Array], shift: complex, *, is_symmetric: bool) -> Array:
    A, E, B, C = matrices
    is_real = complex(shift).imag == 0.0
    M = (shift.real if is_real else shift) * E - A
    factors = factorize_superlu(M.tocsc(), pivoting=0.0 if is_real else 0.01)
    kind = np.float64 if is_real else np.complex128
    if is_symmetric:
        return _real_columns(factors.solve(np.hstack([B, C.T]).astype(kind)))
    columns = [factors.solve(B.astype(kind)), factors.solve(C.T.astype(kind), trans="T")]
    return np.hstack([_real_columns(part) for part in columns])


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
        columns = _orthonormalize(system, columns, max_columns=n_left)
    return columns


def _orthonormalize(system: Pencil, columns: Array, *, max_columns: int) -> Array:
    """Return an E-orthonormal basis of the `max_columns` largest directions of a span, by two rounds of the Gram matrix."""
    for cutoff in (_DIRECTION_CUTOFF**2, 0.0):
        gram = columns.T @ (system.E @ columns)
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        keep = (values > cutoff) & (np.arange(len(values)) >= len(values) - max_columns)
        columns = columns @ (vectors[:, keep] / np.sqrt(values[keep]))
    return np.asarray(columns)


# Galerkin models: shifts are added where the bound is largest.

# Shifts in the first batch and in later ones, fixed, so that the result does not depend on the number of workers.
# Empirical: for many states the analysis after each batch takes as long as a factorization; the first batch then has
# most of the shifts that a tolerance of 1e-3 takes for a plate, and later ones are small.
_LARGE_BATCHES, _SMALL_BATCHES = (10, 2), (4, 3)
_MAX_CHEAP_STATES = 20_000
# Range of the first shifts: the lower end is in units of a bound on the slowest rate, the upper end in units of the
# norm of A. The upper end is lower where the basis has moments at infinity. Empirical, and for speed only: without
# these moments a convection-diffusion plate takes one batch of three shifts more at every tolerance.
_SLOWEST_SHIFT = 1.4
_FASTEST_SHIFT, _FASTEST_SHIFT_WITH_INFINITY = 0.5, 0.3
# Least ratio of two shifts of one batch, and least relative distance from a shift of an earlier batch: closer ones add
# nearly the same directions. |Im λ|/|Re λ| of Ritz values near a peak from which on a complex shift pays. All of them
# decide the number of factorizations (make bench-reduce); the bound is proven for any shifts.
_SHIFT_RATIO = 4.0
_SHIFT_DISTANCE = 1e-2
_OSCILLATION_RATIO = 0.5
MAX_SHIFTS = 60
"""Limit on the number of factorizations."""
MAX_STALLED_ROUNDS, STALLED_RATIO = 4, 0.9
"""Rounds in a row that improve the bound by less than a tenth, after which only rounding is left of it."""


@dataclass(frozen=True, eq=False)
class GalerkinModel:
    """Projected model x' = A x + B u, y = C x (E = I), with the bound on its distance from the system."""

    projection: Projection
    bound: ResidualBound
    h2_bound: Callable[[], float]
    """Function that bounds the H2 norm of the error; infinite where nothing is proven."""
    shifts: tuple[complex, ...]
    estimate: float
    """Change of the model by the last shifts, over all frequencies."""
    field: ProjectedField


def project_galerkin(
    system: Pencil, weight: DefiniteMatrix | None, *, is_enough: StoppingTest, n_jobs: int, callback: ProgressCallback
) -> GalerkinModel:
    """Add shifts until the bound suffices, or only rounding is left of it; then return the model with the least bound.

    Without a proof that the system is dissipative there is no bound. The change of the model by the last shifts then
    decides, and shifts are placed where the residual is largest.
    """
    V = _moments_at_infinity(system, weight)
    n_first, n_next = _SMALL_BATCHES if system.n_states <= _MAX_CHEAP_STATES else _LARGE_BATCHES
    shifts = _first_shifts(system, weight, count=n_first, with_infinity=V.shape[1] > 0)
    used: list[complex] = []
    previous: Projection | None = None
    best: GalerkinModel | None = None
    n_stalled = 0
    while True:
        columns = extend_basis(system, V, shifted_solutions(system, shifts, n_jobs=n_jobs))
        used += shifts
        projection, V = project(system, np.hstack([V, columns]))
        estimate = math.inf if previous is None or weight is not None else _model_change(previous, projection)
        residuals = _ResidualNorms.of(system, projection, V, weight)
        bound = residuals.bound(estimate)
        callback(len(used), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        field = first_order_field(system, weight, V, projection.A, projection.B)
        model = GalerkinModel(
            projection, bound, partial(residuals.h2_bound, bound), tuple(used), min(bound.peak, estimate), field
        )
        if is_enough(projection, bound):
            return model
        n_stalled = 0 if best is None or bound.peak < STALLED_RATIO * best.bound.peak else n_stalled + 1
        best = model if best is None or bound.peak < best.bound.peak else best
        previous = projection
        is_full = not columns.size or V.shape[1] >= system.n_states
        if is_full or n_stalled >= MAX_STALLED_ROUNDS or len(used) >= MAX_SHIFTS:
            return best
        shifts = _next_shifts(bound, projection.A, used, count=n_next)


@dataclass(frozen=True, eq=False)
class _ResidualNorms:
    """Residuals in the norms that bound the error, or in the Euclidean norm if there is no bound."""

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
            return cls(system, projection, euclidean_residuals(space), None, None, space)
        mass = system.mass if system.is_symmetric else None
        fast = None if mass is None else weighted_residuals(space, mass)
        return cls(system, projection, weighted_residuals(space, weight), fast, weight, space)

    def bound(self, estimate: float) -> ResidualBound:
        bound = bound_residuals(self.system, self.projection, self.slow, self.fast)
        return bound if self.weight is not None else replace(bound, peak=estimate)

    def h2_bound(self, bound: ResidualBound) -> float:
        """Bound the H2 norm; a system that is not symmetric needs a proof of its sector, which takes a while."""
        mass, fast, sector = self.system.mass, self.fast, 1.0
        if self.weight is None or mass is None:
            return math.inf
        if fast is None:
            fast, sector = weighted_residuals(self.space, mass), sector_bound(self.system, self.weight)
        return h2_residual_bound(
            self.system, self.projection, slow=self.slow, fast=fast, corner=bound.corner, sector=sector
        )


def _moments_at_infinity(system: Pencil, weight: DefiniteMatrix | None) -> Array:
    """Return a basis of E⁻¹B and E⁻¹Cᵀ for systems whose bound does not fall with frequency, else an empty one.

    With it both residuals are zero at infinity, where they would otherwise be flat. Only E is factored.
    """
    empty, mass = np.zeros((system.n_states, 0)), system.mass
    if weight is None or mass is None or system.is_symmetric:
        return empty
    return extend_basis(system, empty, np.hstack([mass.solve(system.B), mass.solve(system.C.T)]))


def _model_change(previous: Projection, current: Projection) -> float:
    """Return the largest difference of two models on a frequency grid for the poles of both."""
    omega = frequency_grid(np.concatenate([previous.inputs.poles, current.inputs.poles])).omega
    values = current.inputs.times(current.C, omega) - previous.inputs.times(previous.C, omega)
    return float(np.max(spectral_norms(values), initial=0.0))


def _first_shifts(system: Pencil, weight: DefiniteMatrix | None, *, count: int, with_infinity: bool) -> list[complex]:
    """Return real shifts, spaced geometrically between bounds on the slowest and the fastest rate."""
    mass = float(np.max(abs(system.E).sum(axis=0)))
    fastest = float(np.max(abs(system.A).sum(axis=0))) / mass
    slowest = max(_SLOWEST_SHIFT * weight.smallest / mass if weight is not None else 1e-6 * fastest, 1e-12 * fastest)
    share = _FASTEST_SHIFT_WITH_INFINITY if with_infinity else _FASTEST_SHIFT
    return [complex(shift) for shift in np.geomspace(slowest, max(share * fastest, slowest), count)]


def _next_shifts(bound: ResidualBound, A_r: Array, used: list[complex], *, count: int) -> list[complex]:
    """Return shifts at the largest values of the bound, apart from each other and from shifts already used."""
    omega, values = bound.omega[1:], bound.values[1:]
    ritz = np.linalg.eigvals(A_r)
    slowest = float(np.min(np.abs(ritz)))  # below, the bound is flat, and one shift serves all frequencies
    chosen: list[complex] = []
    for index in np.argsort(-values, kind="stable").tolist():
        size = max(omega[index], slowest)
        near = ritz[(np.abs(ritz) < 4.0 * size) & (np.abs(ritz) > 0.25 * size)]
        oscillates = len(near) > 0 and bool(np.max(np.abs(near.imag) / np.abs(near.real)) > _OSCILLATION_RATIO)
        shift = complex(0.0, size) if oscillates else complex(size)
        ratios = [max(abs(shift) / abs(other), abs(other) / abs(shift)) for other in chosen]
        distances = [abs(shift - other) / abs(shift) for other in used]
        if all(ratio > _SHIFT_RATIO for ratio in ratios) and all(gap > _SHIFT_DISTANCE for gap in distances):
            chosen.append(shift)
        if len(chosen) == count:
            break
    return chosen or [complex(1.5 * abs(used[-1]))]


# Reduction: a Galerkin model that is accurate enough, then balanced truncation of it.

_PROJECTION_SHARE = 0.9  # of the tolerance that the projection may take: a few more states cost less than a shift
NEGLIGIBLE_ERROR = 1e-10
"""Error relative to the gain that is not worth another shift; the bound that is returned includes it."""
ACCEPTED_RATIO = 4.0
"""Ratio of the bound on the projection to the least error of the truncation at which the projection suffices.

Empirical: bounds of residuals are an order of magnitude above errors. The returned bound is proven for any ratio.
"""
_MAX_ERROR_RATIO = 30.0  # ratio of the errors of projection and truncation up to which a dense reduction is not tried


def reduce_sparse(
    system: Pencil, options: ReductionOptions, *, callback: ProgressCallback
) -> tuple[ReductionOutcome, bool]:
    """Reduce to an order, or to an error relative to sup ‖G_r‖.

    Also return whether the result is about as accurate as a dense reduction would be.
    """
    order = options.order

    def is_below_tolerance(_: Projection, bound: ResidualBound) -> bool:
        return bound.peak <= _PROJECTION_SHARE * options.relative_error * bound.gain

    weight = system.dissipation
    reducers = lru_cache(maxsize=1)(_projected_reducer)
    is_enough = is_below_tolerance if order is None else _order_test(order, reducers)
    model = project_galerkin(system, weight, is_enough=is_enough, n_jobs=options.n_jobs, callback=callback)
    reducer = reducers(model.projection)
    if order is not None:
        small = reducer.reduce(min(order, reducer.system.n_states), method=options.method)
    else:
        allowed = max(options.relative_error * model.bound.gain - model.bound.peak, 0.0)
        small = smallest_order(
            reducer, lambda candidate: candidate.error <= allowed, allowed=allowed, method=options.method
        )
    if weight is not None and not math.isfinite(small.error):
        raise InvalidSystemError(
            "rounding leaves no stable reduced model: rates are spread over too many orders of magnitude, as with penalties; "
            "remove prescribed degrees of freedom: K[free][:, free], M[free][:, free], f[free]"
        )
    projection_error = model.bound.peak if weight is not None else math.inf
    error = projection_error + small.error
    is_accurate = error <= options.relative_error * small.peak
    if order is not None:
        is_accurate = projection_error <= _MAX_ERROR_RATIO * max(small.error, small.peak * NEGLIGIBLE_ERROR)
    is_certified = math.isfinite(error)
    kind = "symmetric" if system.is_symmetric else "dissipative" if is_certified else "not proven to be dissipative"
    outcome = ReductionOutcome(
        matrices=small.matrices._replace(D=small.matrices.D + system.D),
        order=small.order,
        algorithm=f"Galerkin projection at {len(model.shifts)} shifts to {len(model.projection.A)} states ({kind}), "
        "then balanced",
        estimate=model.estimate + small.estimate,
        h2_bound=lambda: model.h2_bound() + small.h2_bound() if weight is not None else math.inf,
        gain=small.peak,
        hankel_values=reducer.balanced.hankel_values,
        parts={"projection": projection_error, "truncation": small.error},
        notes=() if is_certified else ("the symmetric part of A is not negative definite: no bound is known",),
        field=model.field,
    )
    return outcome, is_accurate


def _projected_reducer(projection: Projection) -> DenseReducer:
    """Balance a projected model; that of a symmetric dissipative system is diagonal and needs no separation."""
    matrices, states = SystemMatrices(projection.A, projection.B, projection.C), projection.inputs
    if not (isinstance(states, ReducedStates) and states.is_diagonal and (states.poles.real < 0.0).all()):
        return prepare_reducer(matrices)
    modes = modes_from_blocks(states.poles, projection.B, projection.C)
    aside = modes.select(np.zeros(modes.n_states, dtype=np.bool_))
    return DenseReducer(matrices, SeparatedSystem(modes, aside, DistanceBound(0.0, 0.0)), balance_states(modes))


def _order_test(order: int, reducers: Callable[[Projection], DenseReducer]) -> StoppingTest:
    """Return a test that the error of the truncation, at least the first Hankel value truncated, exceeds the bound.

    That value hardly changes after a few shifts: it is computed again only when the bound comes near.
    """
    truncated_value = math.inf

    def is_enough(projection: Projection, bound: ResidualBound) -> bool:
        nonlocal truncated_value
        if len(projection.A) <= order or bound.peak > truncated_value:
            return False
        if bound.peak <= NEGLIGIBLE_ERROR * bound.gain:
            return True
        truncated_value = float(reducers(projection).balanced.hankel_values[order])
        return bound.peak <= ACCEPTED_RATIO * truncated_value

    return is_enough
