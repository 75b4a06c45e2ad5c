"""Reduction of mechanical models to few modes: choice of the method and the error of each.

Small models are reduced from all of their modes. Large ones with D = αM + βK use rational Krylov spaces or the
slowest modes, with a proven bound. Where dampings couple modes, small models are compared with the whole model over
all frequencies, and large ones come with an estimate instead of a bound.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSystemError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.reduction.balanced_truncation import ReductionOptions, ReductionOutcome, bisect_smallest, error_norms
from ltinet.reduction.lifting import ProjectedField
from ltinet.reduction.mechanical_krylov import CoupledGalerkinModel, project_coupled, project_damped, project_mechanical
from ltinet.reduction.mechanical_modes import (
    CoupledOscillators,
    Oscillators,
    SelectedModes,
    compute_all_modes,
    select_modes,
    select_modes_to_tolerance,
)
from ltinet.reduction.mechanical_pencil import (
    MechanicalPencil,
    compute_lowest_modes,
    find_rayleigh_damping,
    make_mechanical_pencil,
    remainder_bound,
)
from ltinet.reduction.projection import RayleighDamping
from ltinet.reduction.rational_krylov import ACCEPTED_RATIO, NEGLIGIBLE_ERROR, ProgressCallback
from ltinet.reduction.residual_bound import ResidualBound
from ltinet.reduction.separation import DistanceBound, SeparatedSystem, separate_stable
from ltinet.systems.matrices import make_read_only
from ltinet.systems.second_order_matrices import SecondOrderMatrices
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES
from ltinet.systems.sparse_lu import explain_memory_error
from ltinet.systems.system_matrices import SystemMatrices

MechanicalMethod = Literal["modes", "krylov"]

# Of the largest contribution of a mode: coupling that is neglected, and counted in the bound.
_NEGLIGIBLE_COUPLING = 1e-6
_MIN_MODES, _MAX_MODES = 20, 640  # number of modes that are computed to meet a tolerance
_PROJECTION_SHARE = 0.6  # of the tolerance that the projection may take; the rest is left for the modes omitted
_ROUNDING_SHARE = 0.5  # of the tolerance, beyond which the rounding of the modes is not made up for by more modes
_ROUNDING_NOTE = (
    "the bound is above the tolerance by rounding: eigenvalues of (K, M) are spread over too many orders of magnitude; "
    "fewer elements have a smaller bound. The tolerance is met without rounding"
)
_NO_BOUND_NOTE = "D is not of the form αM + βK, so that the damping couples modes: no bound is known"


def reduce_model(
    model: SecondOrderMatrices,
    options: ReductionOptions,
    *,
    method: MechanicalMethod | None,
    callback: ProgressCallback,
) -> ReductionOutcome:
    """Reduce to an order, two states for a mode, or to an error relative to the largest gain.

    All modes of a small model are computed; for a large one rational Krylov spaces, or its slowest modes by request.

    Raises:
        InvalidSystemError: the model has no modes to choose from, or there is nothing to reduce.
    """
    parts = (("B", model.B, "no input acts on the model"), ("C", model.C, "no output depends on it"))
    for name, matrix, problem in parts:
        if not matrix.any():
            raise InvalidSystemError(f"{name} is zero: {problem}, and all outputs are zero; there is nothing to reduce")
    n = model.n_positions
    with explain_memory_error(n, model.n_nonzeros):
        if 2 * n <= MAX_DENSE_STATES and method != "krylov":
            return reduce_dense_model(model, options)
        with single_blas_thread():
            return reduce_sparse_model(model, options, method=method or "krylov", callback=callback)


# Small models: all modes are computed.


def reduce_dense_model(model: SecondOrderMatrices, options: ReductionOptions) -> ReductionOutcome:
    """Reduce a small model to its modes with the largest contributions."""
    complete = compute_all_modes(model)
    modes, distance = complete.oscillators, complete.distance
    M, D, K = (sparse.csc_array(matrix) for matrix in (model.M, model.D, model.K))
    is_coupled = distance.peak > _NEGLIGIBLE_COUPLING * float(np.max(modes.contributions, initial=0.0))
    if is_coupled and find_rayleigh_damping(M, D, K) is None:
        # The error of leaving out coupled modes is measured against the model in first-order form.
        coupled = CoupledOscillators(modes.stiffness, complete.damping, modes.B, modes.C)
        full = separate_stable(model.first_order)
        return _select_coupled(coupled, modes.ranking, full, options, lambda outcome: outcome.error_bound)
    # With D = αM + βK only rounding couples modes. Where it leaves nothing of the tolerance, as with beams of many
    # elements, more modes would not help.
    gain = float(np.max(modes.contributions, initial=0.0))
    is_rounding = options.order is None and distance.peak > _ROUNDING_SHARE * options.relative_error * gain
    selection = _select(modes, options, already=0.0 if is_rounding else distance.peak)
    outcome = _modal_outcome(
        selection,
        algorithm=f"modes with the largest gains, {len(selection.oscillators)} of {len(modes)}",
        parts={"truncation": selection.error, "rounding": distance.peak},
        h2_bound=lambda: selection.h2_bound() + distance.h2,
    )
    return replace(outcome, notes=(_ROUNDING_NOTE,)) if is_rounding else outcome


def _select(modes: Oscillators, options: ReductionOptions, *, already: float) -> SelectedModes:
    if options.order is not None:
        return select_modes(modes, options.order // 2)
    return select_modes_to_tolerance(modes, tolerance=options.relative_error, already=already)


def _modal_outcome(
    selection: SelectedModes,
    *,
    algorithm: str,
    parts: dict[str, float],
    h2_bound: Callable[[], float],
    field: ProjectedField | None = None,
) -> ReductionOutcome:
    """Return the outcome for uncoupled modes; the bound is the sum of its parts."""
    error, modes = sum(parts.values()), selection.oscillators
    return ReductionOutcome(
        matrices=modes.matrices,
        order=2 * len(modes),
        algorithm=algorithm,
        estimate=error if math.isfinite(error) else selection.error,
        h2_bound=h2_bound,
        gain=selection.peak,
        hankel_values=None,
        parts=parts,
        second_order=_to_second_order(modes),
        field=field,
    )


def _to_second_order(modes: Oscillators | CoupledOscillators) -> SecondOrderMatrices:
    """Return modes as a mechanical model with M = I."""
    D = np.diag(modes.damping) if isinstance(modes, Oscillators) else modes.damping
    return SecondOrderMatrices(np.eye(len(modes)), D, np.diag(modes.stiffness), modes.B, modes.C)


def _select_coupled(
    modes: CoupledOscillators,
    ranking: NDArray[np.intp],
    full: SeparatedSystem,
    options: ReductionOptions,
    error: Callable[[ReductionOutcome], float | None],
) -> ReductionOutcome:
    """Keep the first modes of a ranking: as many as the order has, or the fewest whose error suffices."""

    def reduce(count: int) -> ReductionOutcome:
        return _coupled_outcome(modes.select(np.sort(ranking[:count])), full, n_modes=len(modes))

    def is_enough(outcome: ReductionOutcome) -> bool:
        size = error(outcome)
        return size is not None and size <= options.relative_error * outcome.gain

    if options.order is not None:
        return reduce(options.order // 2)
    return bisect_smallest(0, len(modes), reduce(len(modes)), reduce=reduce, is_enough=is_enough)


def _coupled_outcome(modes: CoupledOscillators, full: SeparatedSystem, *, n_modes: int) -> ReductionOutcome:
    """Compare coupled modes with the full model over all frequencies."""
    reduced, D = _separate(modes), modes.matrices.D
    norms = error_norms(full.stable, reduced, D)
    rounding = reduced.distance.peak + full.distance.peak
    is_stable = full.aside.n_states == 0
    return ReductionOutcome(
        matrices=modes.matrices,
        order=2 * len(modes),
        algorithm=f"modes with the largest gains, {len(modes)} of {n_modes}, coupled by the damping",
        estimate=norms.error,
        h2_bound=lambda: norms.h2_bound() + reduced.distance.h2 + full.distance.h2 if is_stable else math.inf,
        gain=norms.peak,
        hankel_values=None,
        parts={"truncation": norms.error, "rounding": rounding} if is_stable else {},
        second_order=_to_second_order(modes),
    )


def _separate(modes: CoupledOscillators) -> SeparatedSystem:
    A, B, C, _ = modes.matrices
    return separate_stable(SystemMatrices(A, B, C))


# Large models with D = αM + βK: rational Krylov spaces or the slowest modes, with a bound.


def reduce_sparse_model(
    model: SecondOrderMatrices, options: ReductionOptions, *, method: MechanicalMethod, callback: ProgressCallback
) -> ReductionOutcome:
    """Reduce a large sparse model.

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or D is zero.
    """
    pencil = make_mechanical_pencil(model)
    if pencil.D.nnz == 0 or not pencil.D.diagonal().any():
        raise InvalidSystemError("D is zero: resonances have infinite gains; add damping, such as alpha * M + beta * K")
    damping = pencil.damping
    if damping is None:
        if method == "modes":
            return _estimate_by_modes(pencil, options)
        return _estimate_by_projection(pencil, options, callback=callback)
    if method == "modes":
        modes, distance = _slowest_modes(pencil, damping, options)
        origin = f"the {len(modes)} slowest modes by shift-inverted iteration"
        h2_bound: Callable[[], float] = lambda: distance.h2  # noqa: E731 - a method in the other case
        peak, field = distance.peak, None
    else:

        def is_enough(modes: Oscillators, bound: ResidualBound) -> bool:
            if options.order is None:
                return bound.peak <= _PROJECTION_SHARE * options.relative_error * bound.gain
            return _is_below_truncation(bound.peak, modes, options.order // 2, bound.gain)

        galerkin = project_damped(pencil, damping, is_enough=is_enough, n_jobs=options.n_jobs, callback=callback)
        modes, h2_bound, peak = galerkin.oscillators, galerkin.h2_bound, galerkin.bound.peak
        field = galerkin.field
        origin = f"Galerkin projection at {galerkin.n_shifts} frequencies to {len(modes)} modes"
    already = peak + pencil.distance.peak
    selection = _select(modes, options, already=already)
    rounding = 8.0 * EPS * float(np.sum(modes.contributions))  # of d = α + βk
    return _modal_outcome(
        selection,
        algorithm=f"{origin}, D = αM + βK, the largest {len(selection.oscillators)} kept",
        parts={"projection": already + rounding, "truncation": selection.error},
        h2_bound=lambda: h2_bound() + pencil.distance.h2 + selection.h2_bound(),
        field=field,
    )


def _slowest_modes(
    pencil: MechanicalPencil, damping: RayleighDamping, options: ReductionOptions
) -> tuple[Oscillators, DistanceBound]:
    """Return the slowest modes, at least twice as many as requested or as many as the tolerance needs."""
    for count in _mode_counts(pencil, options.order):
        lowest = compute_lowest_modes(pencil, count)
        modes, distance = lowest.oscillators(pencil, damping), remainder_bound(pencil, damping, lowest)
        peak = select_modes(modes, len(modes)).peak
        if options.order is not None or distance.peak <= _PROJECTION_SHARE * options.relative_error * peak:
            break
    return modes, distance


def _mode_counts(pencil: MechanicalPencil, order: int | None) -> Iterator[int]:
    """Yield numbers of modes to compute, each twice the one before, up to a limit."""
    count, n_most = max(order or 0, _MIN_MODES), pencil.pencil.n_states - 2
    yield count
    while count < min(_MAX_MODES, n_most):
        count = min(2 * count, n_most)
        yield count


def _is_below_truncation(error: float, modes: Oscillators, count: int, gain: float) -> bool:
    """Return whether leaving out all but `count` modes has a larger error than the projection."""
    n_left = len(modes) - count
    if n_left <= 0:
        return False
    first = float(np.sort(modes.contributions)[n_left - 1])
    return error <= max(ACCEPTED_RATIO * first, NEGLIGIBLE_ERROR * gain)


# Large models whose damping couples modes: an estimate only.


def _estimate_by_projection(
    pencil: MechanicalPencil, options: ReductionOptions, *, callback: ProgressCallback
) -> ReductionOutcome:
    """Project onto rational Krylov spaces; the estimate is the change by the last frequencies."""

    def is_enough(model: CoupledGalerkinModel) -> bool:
        if options.order is None:
            return model.change <= _PROJECTION_SHARE * options.relative_error * model.gain
        return _is_below_truncation(model.change, model.modes.uncoupled, options.order // 2, model.gain)

    galerkin = project_coupled(pencil, is_enough=is_enough, n_jobs=options.n_jobs, callback=callback)
    origin = f"Galerkin projection at {galerkin.n_shifts} frequencies to {len(galerkin.modes)} modes"
    outcome = _estimated_outcome(galerkin.modes, galerkin.change, options, origin=origin)
    return replace(outcome, field=galerkin.field)


def _estimate_by_modes(pencil: MechanicalPencil, options: ReductionOptions) -> ReductionOutcome:
    """Compute the slowest modes with their coupling; the estimate is the effect of leaving out the faster half."""
    for count in _mode_counts(pencil, options.order):
        modes = project_mechanical(pencil, compute_lowest_modes(pencil, count).V)
        slower = modes.select(np.arange(len(modes) // 2))
        half = _coupled_outcome(slower, _separate(modes), n_modes=len(modes))
        if options.order is not None or half.estimate <= _PROJECTION_SHARE * options.relative_error * half.gain:
            break
    origin = f"the {len(modes)} slowest modes by shift-inverted iteration"
    return _estimated_outcome(modes, half.estimate, options, origin=origin)


def _estimated_outcome(
    modes: CoupledOscillators, change: float, options: ReductionOptions, *, origin: str
) -> ReductionOutcome:
    """Keep the modes with the largest contributions, compared with all modes of the projection."""
    ranking, full = modes.uncoupled.ranking, _separate(modes)
    best = _select_coupled(modes, ranking, full, options, lambda outcome: outcome.estimate + change)
    return replace(
        best,
        algorithm=f"{origin}, the largest {best.order // 2} kept",
        estimate=best.estimate + change,
        h2_bound=lambda: math.inf,
        parts={},
        notes=(_NO_BOUND_NOTE,),
    )


# Reduced models as networks.


def oscillator_network(outcome: ReductionOutcome) -> Network | None:
    """Return one second-order neuron for every mode of a reduced mechanical model; None if the damping couples them."""
    model = outcome.second_order
    if model is None:
        return None
    D, K = np.asarray(model.D), np.asarray(model.K)
    if np.count_nonzero(D - np.diag(D.diagonal())):
        return None
    layers, Phi, zero = [], [], np.zeros_like(model.B[:1])
    for j in range(model.n_positions):
        layers.append(HorizontalLayer([[1.0]], [[D[j, j]]], [[K[j, j]]], model.B[j : j + 1], zero))
        Phi.append(make_read_only(np.column_stack([model.C[:, j], np.zeros(len(model.C))])))
    return Network(layers, Phi, np.zeros((len(model.C), model.B.shape[1])))
