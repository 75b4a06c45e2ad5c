"""Reduction of models in discrete time by the bilinear map z = (1 + s)/(1 − s).

The map takes the unit circle to the imaginary axis: G_d(e^{jθ}) = G(j tan(θ/2)). Stability, Hankel singular values and the
largest gain are those of the image, so that balanced truncation and its bound ‖G − G_r‖∞ carry over (Al-Saggaf and
Franklin 1987). In discrete time this bound holds at any sample as well, since no sample exceeds the ℓ2 norm:

    |e[k]| ≤ ‖e‖ ≤ ‖G − G_r‖∞ ‖u‖        in ℓ2(0 … k).

The rounding of both maps is measured at some frequencies and counts twice in the bound (empirical).
"""

import math
from dataclasses import replace

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.analysis.frequency_response import transfer_evaluator
from ltinet.analysis.sampling import by_differences, from_differences
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


def reduce_discrete(
    system: SystemMatrices, options: ReductionOptions, *, callback: ProgressCallback
) -> ReductionOutcome:
    """Reduce a dense model in discrete time; the matrices of the outcome are in discrete time."""
    if system.sparse is not None and system.sparse.is_large:
        raise InvalidSystemError(
            f"large sparse models in discrete time cannot be reduced, got {system.n_states} states; reduce the model in "
            "continuous time, and convert the result: ltinet.reduce(system).system.to_discrete(dt)"
        )
    image = from_differences(system, _STEP, _RULE)
    outcome = reduce_matrices(image, options, callback=callback)
    A, B, C, D = outcome.matrices
    small = SystemMatrices(A, B, C, D)
    matrices = StateSpaceMatrices(*by_differences(small, _STEP, _RULE))
    reduced = SystemMatrices(*matrices, dt=system.dt)
    rounding = _ROUNDING_MARGIN * (_distance(system, image) + _distance(reduced, small))
    bound = None if outcome.error_bound is None else outcome.error_bound + rounding
    return replace(
        outcome,
        matrices=matrices,
        algorithm=f"{outcome.algorithm} of the bilinear image",
        estimate=outcome.estimate + rounding,
        h2_bound=lambda: math.inf if bound is None else bound,
        parts=outcome.parts if bound is None else {**outcome.parts, MEASURED_ROUNDING: rounding},
        field=None,
    )


def _distance(discrete: SystemMatrices, continuous: SystemMatrices) -> float:
    """Return the largest ‖G_d(e^{jθ}) − G(j tan(θ/2))‖ at some angles, where both are finite."""
    angles = np.concatenate(
        [np.geomspace(_SMALLEST_ANGLE, 3.0, _N_FREQUENCIES), np.linspace(0.01, 3.13, _N_FREQUENCIES)]
    )
    difference = transfer_evaluator(discrete)(np.exp(1j * angles)) - transfer_evaluator(continuous)(
        1j * np.tan(0.5 * angles)
    )
    norms: Array = np.linalg.norm(difference, axis=(1, 2))
    return float(np.max(norms[np.isfinite(norms)], initial=0.0))
