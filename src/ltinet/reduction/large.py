"""Large sparse systems: a Galerkin model as exact as it is asked for, then the fewest states of that."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ltinet.arrays import Array
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.balancing import DenseMethod, Matrices, balance_states
from ltinet.reduction.bound import ResidualBound
from ltinet.reduction.dense import DenseReducer, DenseReduction, prepare
from ltinet.reduction.galerkin import Galerkin, IsEnough, Told, galerkin
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.modal import modes_of
from ltinet.reduction.orders import smallest_order
from ltinet.reduction.pencil import Pencil
from ltinet.reduction.projection import Projection
from ltinet.reduction.separation import Separated
from ltinet.reduction.states import ReducedStates

_SHARE = 0.9  # of what is allowed that the projection may take: a few more states cost less than another shift
_UNSEEN = 1e-10  # of the gain: smaller errors are not worth a shift
_UNNOTICED = 4.0  # times the least error of a truncation: bounds of residuals are an order of magnitude above errors


@dataclass(frozen=True, eq=False)
class LargeReduction:
    """A reduced system, with the parts of its error."""

    matrices: Matrices
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


def reduce_large(
    system: Pencil, *, order: int | None, tolerance: float | None, method: DenseMethod, n_jobs: int, told: Told
) -> LargeReduction:
    """Reduce to an order, or to an error relative to sup ‖G_r‖."""
    weight = system.dissipation
    reducers = lru_cache(maxsize=1)(_reducer)
    is_enough = _small_enough(tolerance) if order is None else _far_below_truncation(order, reducers)
    found = galerkin(system, weight, is_enough=is_enough, n_jobs=n_jobs, told=told)
    reducer = reducers(found.projection)
    residual = found.bound.peak
    if order is not None:
        small = reducer.reduced(min(order, reducer.system.n_states), method=method)
    else:
        allowed = max(tolerance * found.bound.gain - residual, 0.0) if tolerance is not None else 0.0
        small = smallest_order(reducer, lambda own: own.error <= allowed, allowed=allowed, method=method)
    return _put_together(system, found, reducer, small, is_certified=weight is not None)


def _put_together(
    system: Pencil, found: Galerkin, reducer: DenseReducer, small: DenseReduction, *, is_certified: bool
) -> LargeReduction:
    own = small.matrices
    return LargeReduction(
        matrices=Matrices(own.A, own.B, own.C, own.D + system.D),
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
        return prepare(given)
    modes = modes_of(projection.inputs.poles, projection.B, projection.C)
    separated = Separated(modes, modes.taken(np.zeros(modes.n_states, dtype=np.bool_)), Distance(0.0, 0.0))
    return DenseReducer(given, separated, balance_states(modes))


def _small_enough(tolerance: float | None) -> IsEnough:
    share = _SHARE * (tolerance or 0.0)

    def is_enough(_: Projection, bound: ResidualBound) -> bool:
        return bound.peak <= share * bound.gain

    return is_enough


def _far_below_truncation(order: int, reducers: Callable[[Projection], DenseReducer]) -> IsEnough:
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
