"""Reduction of mechanical models to few modes: choice of the method and the error of each.

Small models are reduced from all of their modes. Large ones with D = αM + βK use rational Krylov spaces or the
slowest modes, with a proven bound. Where dampings couple modes, small models are compared with the whole model over
all frequencies, and large ones come with an estimate instead of a bound.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import error_norms
from ltinet.reduction.matrix_reduction import ReductionOutcome
from ltinet.reduction.mechanical_krylov import (
    CoupledGalerkinModel,
    DampedStoppingTest,
    project_coupled,
    project_damped,
    project_mechanical,
)
from ltinet.reduction.mechanical_modes import (
    CompleteModes,
    CoupledOscillators,
    Oscillators,
    SelectedModes,
    bisect_smallest,
    compute_all_modes,
    select_modes,
    select_modes_to_tolerance,
)
from ltinet.reduction.mechanical_pencil import (
    MechanicalPencil,
    compute_lowest_modes,
    make_mechanical_pencil,
    remainder_bound,
)
from ltinet.reduction.projection import RayleighDamping
from ltinet.reduction.rational_krylov import ProgressCallback
from ltinet.reduction.residual_bound import ResidualBound
from ltinet.reduction.separation import SeparatedSystem, separate_stable
from ltinet.systems.second_order_matrices import SecondOrderMatrices
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES
from ltinet.systems.sparse_lu import explain_memory_error
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.mechanical_reduction
# Small mechanical models: all modes are known, those with the largest shares are kept.

_NEGLIGIBLE_COUPLING = 1e-6  # of the largest share: up to here modes are taken as damped each for itself


def reduce_dense_model(model: SecondOrderMatrices, *, order: int | None, tolerance: float | None) -> ReductionOutcome:
    """Reduce to `order` states, two for a mode, or to an error relative to the largest gain."""
    found = compute_all_modes(model)
    if found.distance.peak <= _NEGLIGIBLE_COUPLING * float(np.max(found.oscillators.shares, initial=0.0)):
        return _modal(found, order=order, tolerance=tolerance)
    return _coupled(model, found, order=order, tolerance=tolerance)


def _modal(found: CompleteModes, *, order: int | None, tolerance: float | None) -> ReductionOutcome:
    distance = found.distance
    kept = (
        select_modes(found.oscillators, order // 2)
        if order is not None
        else select_modes_to_tolerance(found.oscillators, tolerance=tolerance or 0.0, already=distance.peak)
    )
    return modal_outcome(
        kept,
        way=f"modes with the largest gains, {len(kept.oscillators)} of {len(found.oscillators)}",
        parts={"truncation": kept.error, "rounding": distance.peak},
        mean=lambda: kept.mean() + distance.mean,
    )


def modal_outcome(
    kept: SelectedModes, *, way: str, parts: dict[str, float], mean: Callable[[], float]
) -> ReductionOutcome:
    """What was found where every mode is damped for itself; the bound is the sum of its parts."""
    error = sum(parts.values())
    own = kept.oscillators
    is_known = math.isfinite(error)
    return ReductionOutcome(
        matrices=own.matrices,
        order=2 * len(own),
        way=way,
        error_bound=error if is_known else None,
        estimate=error if is_known else kept.error,
        mean=mean,
        gain=kept.peak,
        hankel_values=None,
        parts=parts if is_known else {},
        second_order=to_second_order_matrices(own),
    )


def to_second_order_matrices(own: Oscillators | CoupledOscillators) -> SecondOrderMatrices:
    """Modes as a mechanical model with M = I."""
    N = len(own.stiffness)
    D = np.diag(own.damping) if isinstance(own, Oscillators) else own.between
    return SecondOrderMatrices(np.eye(N), D, np.diag(own.stiffness), own.B, own.C)


def _coupled(
    model: SecondOrderMatrices, found: CompleteModes, *, order: int | None, tolerance: float | None
) -> ReductionOutcome:
    """Dampings couple modes: what leaving some out does is measured against the model in first-order form."""
    own = found.oscillators
    ranked = np.argsort(-own.shares, kind="stable")
    whole = separate_stable(model.first_order)
    modes = CoupledOscillators(own.stiffness, found.between, own.B, own.C)

    def reduced(count: int) -> ReductionOutcome:
        return coupled_outcome(modes.taken(np.sort(ranked[:count])), whole, n_modes=len(own))

    if order is not None:
        return reduced(order // 2)
    return bisect_smallest(len(own), reduced, lambda tried: _is_within(tried, tolerance or 0.0))


def _is_within(tried: ReductionOutcome, tolerance: float) -> bool:
    return tried.error_bound is not None and tried.error_bound <= tolerance * tried.gain


def coupled_outcome(kept: CoupledOscillators, whole: SeparatedSystem, *, n_modes: int) -> ReductionOutcome:
    """Kept modes with the dampings between them, compared with the whole model over all frequencies."""
    small = kept.matrices
    own = separate_stable(SystemMatrices(small.A, small.B, small.C))
    found = error_norms(whole.stable, own, small.D)
    rounding = own.distance.peak + whole.distance.peak
    is_known = math.isfinite(found.error + rounding) and whole.aside.n_states == 0
    return ReductionOutcome(
        matrices=small,
        order=len(small.A),
        way=f"modes with the largest gains, {len(kept.stiffness)} of {n_modes}, coupled by their dampings",
        error_bound=found.error + rounding if is_known else None,
        estimate=found.error,
        mean=lambda: found.mean() + own.distance.mean + whole.distance.mean if is_known else math.inf,
        gain=found.peak,
        hankel_values=None,
        parts={"truncation": found.error, "rounding": rounding} if is_known else {},
        second_order=to_second_order_matrices(kept),
    )


# MERGED ltinet.reduction.mechanical_reduction
# Large mechanical models whose dampings couple modes: reduced with their structure, with an estimate and no bound.

MIN_MODES, MAX_MODES = 20, 640  # modes that are looked for to meet a tolerance
_SHARE = 0.6  # of what is allowed that the projection may take
_UNNOTICED = 4.0  # times the share of the first mode left out
_UNSEEN = 1e-10  # of the gain
_NO_BOUND_NOTE = "D is no αM + βK, so that dampings couple modes: no bound is known"


def estimated_by_projection(
    given: MechanicalPencil, *, order: int | None, tolerance: float | None, n_jobs: int, callback: ProgressCallback
) -> ReductionOutcome:
    """By rational Krylov spaces that keep the structure; the estimate is what the last frequencies changed."""

    def is_enough(found: CoupledGalerkinModel) -> bool:
        if order is None:
            return found.change <= _SHARE * (tolerance or 0.0) * found.gain
        n_left = len(found.modes.stiffness) - order // 2
        if n_left <= 0:
            return False
        own = found.modes
        shares = np.sort(Oscillators(own.stiffness, _positive(own), own.B, own.C).shares)
        return found.change <= max(_UNNOTICED * float(shares[n_left - 1]), _UNSEEN * found.gain)

    found = project_coupled(given, is_enough=is_enough, n_jobs=n_jobs, callback=callback)
    way = f"Galerkin projection at {found.n_shifts} frequencies to {len(found.modes.stiffness)} modes"
    return _estimated(found.modes, found.change, order=order, tolerance=tolerance, way=way)


def estimated_by_modes(given: MechanicalPencil, *, order: int | None, tolerance: float | None) -> ReductionOutcome:
    """The slowest modes with the dampings between them, against the slower half of them."""
    count = MIN_MODES if order is None else max(order, MIN_MODES)
    while True:
        modes = compute_lowest_modes(given, count)
        own = project_mechanical(given, modes.V)
        slower, n_modes = own.taken(np.arange(len(own.stiffness) // 2)), len(own.stiffness)
        half = coupled_outcome(slower, _separated(own), n_modes=n_modes)
        is_enough = order is not None or half.estimate <= _SHARE * (tolerance or 0.0) * half.gain
        if is_enough or count >= min(MAX_MODES, given.pencil.n_states - 2):
            way = f"the {n_modes} slowest modes by shift-inverted iteration"
            return _estimated(own, half.estimate, order=order, tolerance=tolerance, way=way)
        count = min(2 * count, given.pencil.n_states - 2)


def _estimated(
    own: CoupledOscillators, change: float, *, order: int | None, tolerance: float | None, way: str
) -> ReductionOutcome:
    """The modes with the largest shares, judged against all of the projection."""
    whole, n_modes = _separated(own), len(own.stiffness)
    ranked = np.argsort(-Oscillators(own.stiffness, _positive(own), own.B, own.C).shares, kind="stable")

    def reduced(count: int) -> ReductionOutcome:
        return coupled_outcome(own.taken(np.sort(ranked[:count])), whole, n_modes=n_modes)

    if order is not None:
        best = reduced(order // 2)
    else:
        best = bisect_smallest(n_modes, reduced, lambda own: own.estimate + change <= (tolerance or 0.0) * own.gain)
    way = f"{way}, the largest {best.order // 2} kept"
    return replace(
        best,
        way=way,
        error_bound=None,
        estimate=best.estimate + change,
        mean=lambda: math.inf,
        parts={},
        notes=(_NO_BOUND_NOTE,),
    )


def _separated(own: CoupledOscillators) -> SeparatedSystem:
    small = own.matrices
    return separate_stable(SystemMatrices(small.A, small.B, small.C))


def _positive(own: CoupledOscillators) -> Array:
    """Dampings of single modes, to rank them by."""
    damping = own.between.diagonal()
    return np.asarray(np.maximum(damping, EPS * np.sqrt(own.stiffness)))


# MERGED ltinet.reduction.mechanical_reduction
# Large sparse mechanical models: by rational Krylov spaces or by their slowest modes, the largest shares kept.

MechanicalMethod = Literal["modes", "krylov"]


def reduce_sparse_model(
    model: SecondOrderMatrices,
    *,
    order: int | None,
    tolerance: float | None,
    method: MechanicalMethod,
    n_jobs: int,
    callback: ProgressCallback,
) -> ReductionOutcome:
    """Reduce to `order` states, two for a mode, or to an error relative to the largest gain.

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or D does not damp.
    """
    given = make_mechanical_pencil(model)
    if given.D.nnz == 0 or not given.D.diagonal().any():
        raise InvalidSystemError("D is zero: resonances have infinite gains; add damping, such as alpha * M + beta * K")
    damping = given.damping
    if damping is None:
        if method == "modes":
            return estimated_by_modes(given, order=order, tolerance=tolerance)
        return estimated_by_projection(given, order=order, tolerance=tolerance, n_jobs=n_jobs, callback=callback)
    if method == "modes":
        return _by_modes(given, damping, order=order, tolerance=tolerance)
    is_enough = _small_enough(tolerance) if order is None else _far_below(order // 2)
    found = project_damped(given, damping, is_enough=is_enough, n_jobs=n_jobs, callback=callback)
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
) -> ReductionOutcome:
    """The largest shares of modes that are `already` away from the model."""
    kept = (
        select_modes(own, order // 2)
        if order is not None
        else select_modes_to_tolerance(own, tolerance=tolerance or 0.0, already=already)
    )
    rounded = 8.0 * EPS * float(np.sum(own.shares))  # of d = α + βk
    parts = {"projection": already + rounded, "truncation": kept.error}
    way = f"{way}, the largest {len(kept.oscillators)} kept"
    return modal_outcome(kept, way=way, parts=parts, mean=lambda: mean() + kept.mean())


def _by_modes(
    given: MechanicalPencil, damping: RayleighDamping, *, order: int | None, tolerance: float | None
) -> ReductionOutcome:
    """The slowest modes: twice as many as asked for to choose from, or as many as the tolerance needs."""
    count = MIN_MODES if order is None else max(order, MIN_MODES)
    while True:
        modes = compute_lowest_modes(given, count)
        own, rest = modes.oscillators(given, damping.of(modes.stiffness)), remainder_bound(given, damping, modes)
        whole = select_modes(own, len(own))
        is_enough = order is not None or rest.peak <= _SHARE * (tolerance or 0.0) * whole.peak
        if is_enough or count >= min(MAX_MODES, given.pencil.n_states - 2):
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


def _small_enough(tolerance: float | None) -> DampedStoppingTest:
    return lambda _, bound: bound.peak <= _SHARE * (tolerance or 0.0) * bound.gain


def _far_below(count: int) -> DampedStoppingTest:
    """Enough when leaving out modes errs by more than the projection."""

    def is_enough(own: Oscillators, bound: ResidualBound) -> bool:
        n_left = len(own) - count
        if n_left <= 0:
            return False
        first = float(np.sort(own.shares)[n_left - 1])
        return bound.peak <= max(_UNNOTICED * first, _UNSEEN * bound.gain)

    return is_enough


# MERGED ltinet.reduction.mechanical_reduction
# Which way a mechanical model is reduced.


def reduce_model(
    model: SecondOrderMatrices,
    *,
    order: int | None,
    tolerance: float | None,
    method: MechanicalMethod | None,
    n_jobs: int,
    callback: ProgressCallback,
) -> ReductionOutcome:
    """All modes of a model that can be filled in; of a larger one Krylov spaces, or its slowest modes if asked.

    Raises:
        InvalidSystemError: the model has no modes to choose from, or there is nothing to reduce.
    """
    for name, matrix, what in (("B", model.B, "no input pushes anything"), ("C", model.C, "no output sees anything")):
        if not matrix.any():
            raise InvalidSystemError(f"{name} is zero: {what}, and there is nothing to reduce; the outputs are zero")
    n = model.n_positions
    with explain_memory_error(n, model.n_nonzeros):
        if 2 * n <= MAX_DENSE_STATES and method != "krylov":
            return reduce_dense_model(model, order=order, tolerance=tolerance)
        with single_blas_thread():
            return reduce_sparse_model(
                model, order=order, tolerance=tolerance, method=method or "krylov", n_jobs=n_jobs, callback=callback
            )
