"""The last digits of a model of clean records: a few Gauss-Newton steps on the samples themselves.

Refinement compresses a record by rotations, whose rounding is a share of the outputs. Where a model leaves less than
that over, nothing can be read from what is left after a rotation: poles that are near each other lose half of their
digits. Here residuals are taken sample by sample, and errors of rounding average out.
"""

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Trend
from ltinet.identification.parameters import MOST_PARAMETERS, Parameters
from ltinet.identification.record import Record, n_samples
from ltinet.identification.sensitivities import LONGEST, Sensitivities, residual_parts
from ltinet.threads import one_blas_thread
from ltinet.tolerances import EPS

_CLEAN = np.sqrt(EPS)  # of the outputs: a model that leaves less over is one of clean records
_STEPS = 4
_FALLS = 0.5  # of the error, by a step that is worth another


def polished(linear: Linear, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array) -> Linear:
    """The model after the steps that brought it closer; as it is where records are noisy, long, or say too little."""
    n = n_samples(records)
    if not is_clean(linear, n, scale) or max(map(len, records)) > LONGEST:
        return linear
    parameters = Parameters(linear.model, feedthrough, trend, len(records))
    if len(parameters) > MOST_PARAMETERS or n * linear.model.n_outputs <= len(parameters):
        return linear
    for _ in range(_STEPS):
        moved = _moved(linear, records, feedthrough=feedthrough, trend=trend, scale=scale)
        if moved is None or not _error(moved, n, scale) < _error(linear, n, scale):
            break
        worth_another = _error(moved, n, scale) < _FALLS * _error(linear, n, scale)
        linear = moved
        if not worth_another:
            break
    return linear


def is_clean(linear: Linear, n: int, scale: Array) -> bool:
    """Whether a model of n samples leaves so little over that compressed records cannot tell it from rounding."""
    return bool(_error(linear, n, scale) <= _CLEAN)


def _moved(
    linear: Linear, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> Linear | None:
    """The model one step on, None where some parameters move no output."""
    parameters = Parameters(linear.model, feedthrough, trend, len(records))
    parts = residual_parts(linear, records)
    with one_blas_thread():
        R, side = Sensitivities(parameters, parts, scale).triangle()
        if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
            return None
        step = linalg.solve_triangular(R, side, check_finite=False)
    theta = parameters.packed(linear.model, linear.starts) + np.roll(step, parameters.n_shared)
    model, starts = parameters.unpacked(theta)
    if not np.all(np.isfinite(theta)) or np.any(model.poles.imag < 0.0) or linear.model.is_stable > model.is_stable:
        return None
    moved = Linear(model, starts, linear.errors)
    errors = np.sum([(own.residuals**2).sum(axis=0) for own in residual_parts(moved, records)], axis=0)
    return Linear(model, starts, errors)


def _error(linear: Linear, n: int, scale: Array) -> float:
    """Root mean square over all outputs, in units of their size."""
    return float(np.sqrt((linear.errors / (n * scale**2)).mean()))
