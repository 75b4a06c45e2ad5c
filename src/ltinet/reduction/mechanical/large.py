"""Large sparse mechanical models: by rational Krylov spaces or by their slowest modes, the largest shares kept."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.reduction.bound import ResidualBound
from ltinet.reduction.galerkin import Told
from ltinet.reduction.mechanical.damped_galerkin import IsEnough, damped_galerkin
from ltinet.reduction.mechanical.damped_pencil import DampedPencil, damped_pencil
from ltinet.reduction.mechanical.estimated import FEWEST, MOST, estimated_by_modes, estimated_by_projection
from ltinet.reduction.mechanical.lowest_modes import lowest_modes, rest_of
from ltinet.reduction.mechanical.selection import keep, keep_enough
from ltinet.reduction.mechanical.small import modal_outcome
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.states import Rayleigh
from ltinet.tolerances import EPS

MechanicalMethod = Literal["modes", "krylov"]

_SHARE = 0.6  # of what is allowed that the projection may take
_UNNOTICED = 4.0  # times the share of the first mode left out: a bound so near is not worth a factorisation
_UNSEEN = 1e-10  # of the gain


def reduce_large_model(
    model: SecondOrderMatrices,
    *,
    order: int | None,
    tolerance: float | None,
    method: MechanicalMethod,
    n_jobs: int,
    told: Told,
) -> Outcome:
    """Reduce to `order` states, two for a mode, or to an error relative to the largest gain.

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or D does not damp.
    """
    given = damped_pencil(model)
    if given.D.nnz == 0 or not given.D.diagonal().any():
        raise InvalidSystemError("D is zero: resonances have infinite gains; add damping, such as alpha * M + beta * K")
    damping = given.damping
    if damping is None:
        if method == "modes":
            return estimated_by_modes(given, order=order, tolerance=tolerance)
        return estimated_by_projection(given, order=order, tolerance=tolerance, n_jobs=n_jobs, told=told)
    if method == "modes":
        return _by_modes(given, damping, order=order, tolerance=tolerance)
    is_enough = _small_enough(tolerance) if order is None else _far_below(order // 2)
    found = damped_galerkin(given, damping, is_enough=is_enough, n_jobs=n_jobs, told=told)
    peak = found.bound.peak + given.distance.peak
    own = found.oscillators
    return _kept(
        own,
        order=order,
        tolerance=tolerance,
        already=peak,
        mean=lambda: found.mean() + given.distance.mean,
        way=f"Galerkin projection at {found.n_shifts} frequencies to {len(own)} modes, D = αM + βK",
    )


def _kept(
    own: Oscillators, *, order: int | None, tolerance: float | None, already: float, mean: Callable[[], float], way: str
) -> Outcome:
    """The largest shares of modes that are `already` away from the model."""
    kept = keep(own, order // 2) if order is not None else keep_enough(own, tolerance=tolerance or 0.0, already=already)
    rounded = 8.0 * EPS * float(np.sum(own.shares))  # of d = α + βk
    parts = {"projection": already + rounded, "truncation": kept.error}
    way = f"{way}, the largest {len(kept.oscillators)} kept"
    return modal_outcome(kept, way=way, parts=parts, mean=lambda: mean() + kept.mean())


def _by_modes(given: DampedPencil, damping: Rayleigh, *, order: int | None, tolerance: float | None) -> Outcome:
    """The slowest modes: twice as many as asked for to choose from, or as many as the tolerance needs."""
    count = FEWEST if order is None else max(order, FEWEST)
    while True:
        modes = lowest_modes(given, count)
        own, rest = modes.oscillators(given, damping.of(modes.stiffness)), rest_of(given, damping, modes)
        whole = keep(own, len(own))
        is_enough = order is not None or rest.peak <= _SHARE * (tolerance or 0.0) * whole.peak
        if is_enough or count >= min(MOST, given.pencil.n_states - 2):
            break
        count = min(2 * count, given.pencil.n_states - 2)
    already = rest.peak + given.distance.peak
    way = f"the {len(own)} slowest modes by shift-inverted iteration, D = αM + βK"
    return _kept(
        own,
        order=order,
        tolerance=tolerance,
        already=already,
        mean=lambda: rest.mean + given.distance.mean,
        way=way,
    )


def _small_enough(tolerance: float | None) -> IsEnough:
    return lambda _, bound: bound.peak <= _SHARE * (tolerance or 0.0) * bound.gain


def _far_below(count: int) -> IsEnough:
    """Enough when leaving out modes errs by more than the projection."""

    def is_enough(own: Oscillators, bound: ResidualBound) -> bool:
        n_left = len(own) - count
        if n_left <= 0:
            return False
        first = float(np.sort(own.shares)[n_left - 1])
        return bound.peak <= max(_UNNOTICED * first, _UNSEEN * bound.gain)

    return is_enough
