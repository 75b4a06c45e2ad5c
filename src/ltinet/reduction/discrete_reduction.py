"""Reduction of models in discrete time by the bilinear map z = (1 + s)/(1 − s).

The map takes the unit circle to the imaginary axis: G_d(e^{jθ}) = G(j tan(θ/2)). Stability, Hankel singular values and the
largest gain are those of the image, so that balanced truncation and its bound ‖G − G_r‖∞ carry over (Al-Saggaf and
Franklin 1987). In discrete time this bound holds at any sample as well, since no sample exceeds the ℓ2 norm:

    |e[k]| ≤ ‖e‖ ≤ ‖G − G_r‖∞ ‖u‖        in ℓ2(0 … k).

A pole at −1 has no image, and rounding of the map would move poles on the unit circle to either side. All poles that do not
decay are therefore separated first, by invariant subspaces, and join the reduced model unchanged.

The rounding of both maps, and of this separation, is measured at some frequencies and counts twice in the bound (empirical).
"""

import math
from dataclasses import replace

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.analysis.frequency_response import transfer_evaluator
from ltinet.analysis.sampling import by_differences, from_differences, split_eigenvalues
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import (
    MEASURED_ROUNDING,
    ReductionOptions,
    ReductionOutcome,
    StateSpaceMatrices,
)
from ltinet.reduction.matrix_reduction import reduce_matrices
from ltinet.reduction.rational_krylov import ProgressCallback
from ltinet.systems.system_matrices import SystemMatrices

_STEP = 2.0  # h of the difference rule: s = (z − 1)/(z + 1)
_RULE = 0.5  # α of the trapezoidal rule
_ROUNDING_MARGIN = 2.0  # empirical: rounding at any frequency over that at the frequencies where it is measured
_N_FREQUENCIES = 100  # between two poles of the range, evenly spaced in angle and in logarithm
_SMALLEST_ANGLE = 1e-6  # radians
# Distance from the unit circle at which rounding decides on which side a pole is: 10 n eps ‖A‖ for n ‖A‖ = 400.
_AT_CIRCLE = 1e-12
# Distance from −1 of poles that are separated: the map would lose six digits of nearer ones, and rounding moves a double pole
# by 1e-8.
_NEAR_MINUS_ONE = 1e-6


def reduce_discrete(
    system: SystemMatrices, options: ReductionOptions, *, callback: ProgressCallback
) -> ReductionOutcome:
    """Reduce a dense model in discrete time; the matrices of the outcome are in discrete time."""
    if system.sparse is not None and system.sparse.is_large:
        raise InvalidSystemError(
            f"large sparse models in discrete time cannot be reduced, got {system.n_states} states; reduce the model in "
            "continuous time, and convert the result: ltinet.reduce(system).system.to_discrete(dt)"
        )
    rest, separated = _separate_decaying(system)
    n_separated = separated.n_states
    if not rest.n_states:
        raise InvalidSystemError(
            "no pole of the system is inside the unit circle; they are kept: there is nothing to reduce"
        )
    image = from_differences(rest, _STEP, _RULE)
    order = None if options.order is None else options.order - n_separated
    outcome = reduce_matrices(image, replace(options, order=order, n_separated=n_separated), callback=callback)
    small = SystemMatrices(*outcome.matrices)
    reduced = SystemMatrices(*by_differences(small, _STEP, _RULE), dt=system.dt)
    rounding = _ROUNDING_MARGIN * (_distance(system, image, separated) + _distance(reduced, small))
    bound = None if outcome.error_bound is None else outcome.error_bound + rounding
    notes = (f"{format_count(n_separated, 'state')} kept whose poles do not decay",) if n_separated else ()
    return replace(
        outcome,
        matrices=_join(reduced, separated),
        order=outcome.order + n_separated,
        algorithm=f"{outcome.algorithm} of the bilinear image",
        estimate=outcome.estimate + rounding,
        h2_bound=lambda: math.inf if bound is None else bound,
        parts=outcome.parts if bound is None else {**outcome.parts, MEASURED_ROUNDING: rounding},
        n_retained=outcome.n_retained + n_separated,
        notes=(*outcome.notes, *notes),
        field=None,
    )


def _separate_decaying(system: SystemMatrices) -> tuple[SystemMatrices, SystemMatrices]:
    """Return the part of a system whose poles decay, with D, and the part with the other poles."""

    def decays(re: float, im: float) -> bool:
        return math.hypot(re, im) < 1.0 - _AT_CIRCLE and math.hypot(re + 1.0, im) > _NEAR_MINUS_ONE

    k, T, T_inv, A = split_eigenvalues(system.A, decays)
    B, C = T_inv @ system.B, system.C @ T
    rest = SystemMatrices(A[:k, :k], B[:k], C[:, :k], system.D, dt=system.dt)
    return rest, SystemMatrices(A[k:, k:], B[k:], C[:, k:], np.zeros_like(system.D), dt=system.dt)


def _join(first: SystemMatrices, second: SystemMatrices) -> StateSpaceMatrices:
    """Return the parallel connection of two systems."""
    A = linalg.block_diag(first.A, second.A)
    return StateSpaceMatrices(A, np.vstack([first.B, second.B]), np.hstack([first.C, second.C]), first.D + second.D)


def _distance(discrete: SystemMatrices, continuous: SystemMatrices, separated: SystemMatrices | None = None) -> float:
    """Return the largest ‖G_d(e^{jθ}) − G_s(e^{jθ}) − G(j tan(θ/2))‖ at some angles, where all are finite."""
    angles = np.concatenate(
        [np.geomspace(_SMALLEST_ANGLE, 3.0, _N_FREQUENCIES), np.linspace(0.01, 3.13, _N_FREQUENCIES)]
    )
    z = np.exp(1j * angles)
    difference = transfer_evaluator(discrete)(z) - transfer_evaluator(continuous)(1j * np.tan(0.5 * angles))
    if separated is not None and separated.n_states:
        difference = difference - transfer_evaluator(separated)(z)
    norms: Array = np.linalg.norm(difference, axis=(1, 2))
    return float(np.max(norms[np.isfinite(norms)], initial=0.0))
