"""Output-error refinement: all parameters are adjusted to minimize the simulation error.

Gauss-Newton steps within a trust region (Levenberg and Marquardt, MINPACK through SciPy). Residuals and derivatives
are compressed by the same rotation (`linear_parameters`), which preserves lengths and angles, so that a step costs as
much for a million samples as for a thousand once the regressors are compressed.

The rounding of that compression is proportional to the outputs. Where the errors of a model of noise-free records are
smaller than that, poles near each other lose half of their digits. A few Gauss-Newton steps on the samples themselves
follow then, in which rounding errors average out.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array
from ltinet.identification.linear_parameters import (
    DrivenModel,
    InitialCondition,
    ModalDrive,
    Trend,
    compress_regressors,
    simulated_outputs,
    with_errors,
)
from ltinet.identification.records import Record, n_samples
from ltinet.identification.sensitivities import (
    MAX_PARAMETERS,
    MAX_RECORD_SAMPLES,
    ParameterLayout,
    Sensitivities,
    record_residuals,
)

_MAX_EVALUATIONS = 60
_TOLERANCE = 1e-10  # relative change of the parameters and of the error, far below the noise of measurements
_MAX_GROWTH_EXPONENT = 200.0  # log of the growth of a mode over a record; its square is far below overflow
_REJECTED_RESIDUAL = 1e100  # residual that makes the trust region reject parameters that grow faster
_NOISE_FREE = np.sqrt(EPS)  # relative error of the outputs at which half of the digits of the residuals are rounding
_POLISHING_STEPS = 4
_WORTHWHILE_DECREASE = 0.5  # ratio of the errors after and before a step that justifies another one


class _Evaluation(NamedTuple):
    """Residuals and derivatives for the last parameters, since SciPy asks for them one by one."""

    theta: Array
    residuals: Array
    derivatives: Array


def refine_output_error(
    driven: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel | None:
    """Return the refined model, None where it is not better or has too many parameters."""
    problem = _OutputErrorProblem(ParameterLayout(driven.model, feedthrough, trend, len(records)), records, scale)
    if len(problem.parameters) > MAX_PARAMETERS:
        return None
    theta = problem.parameters.packed(driven.model, driven.starts)
    if problem.residuals(theta).size < len(theta):
        return None
    from scipy import optimize  # here, because few calls need it and importing it is slow

    solution = optimize.least_squares(
        problem.residuals, theta, jac=problem.derivatives, method="lm", x_scale="jac", max_nfev=_MAX_EVALUATIONS,
        xtol=_TOLERANCE, ftol=_TOLERANCE, gtol=1e-12,
    )  # fmt: skip
    first_residuals = problem.residuals(theta)
    if not np.all(np.isfinite(solution.x)) or solution.cost >= 0.5 * float(first_residuals @ first_residuals):
        return None
    model, starts = problem.parameters.unpacked(solution.x)
    # A step may move the stored pole of a pair below the real axis: store its conjugate.
    below = model.poles.imag < 0.0
    model = replace(
        model,
        poles=np.where(below, model.poles.conj(), model.poles),
        C=np.where(below, model.C.conj(), model.C),
        B=np.where(below[:, None], model.B.conj(), model.B),
    )
    starts = tuple(InitialCondition(np.where(below, it.states.conj(), it.states), it.trends) for it in starts)
    return with_errors(model, starts, [compress_regressors(model, record) for record in records])


class _OutputErrorProblem:
    """Nonlinear least-squares problem of the refinement, with outputs in units of `scale`."""

    def __init__(self, parameters: ParameterLayout, records: tuple[Record, ...], scale: Array) -> None:
        self.parameters, self._records, self._scale = parameters, records, scale
        self._last: _Evaluation | None = None

    def residuals(self, theta: Array) -> Array:
        return self._evaluate(theta).residuals

    def derivatives(self, theta: Array) -> Array:
        return self._evaluate(theta).derivatives

    def _evaluate(self, theta: Array) -> _Evaluation:
        if self._last is None or not np.array_equal(self._last.theta, theta):
            self._last = self._compute(theta.copy())
        return self._last

    def _compute(self, theta: Array) -> _Evaluation:
        model, starts = self.parameters.unpacked(theta)
        longest = max(map(len, self._records))
        if self._last is not None and np.log(np.abs(model.poles).max(initial=0.0)) * longest > _MAX_GROWTH_EXPONENT:
            return _Evaluation(theta, np.full_like(self._last.residuals, _REJECTED_RESIDUAL), self._last.derivatives)
        residuals, derivatives = [], []
        for number, (record, start) in enumerate(zip(self._records, starts, strict=True)):
            part = compress_regressors(model, record, ModalDrive(model.B, start.states))
            error = (simulated_outputs(part, model, start) - part.outputs).T
            residuals.append((error / self._scale[:, None]).ravel())
            columns = self.parameters.derivatives(part, model, start, record=number) / self._scale[:, None, None]
            derivatives.append(columns.reshape(-1, columns.shape[-1]))
        return _Evaluation(theta, np.concatenate(residuals), np.vstack(derivatives))


# Noise-free records.


def polish(
    driven: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel:
    """Improve a model of noise-free records; return it unchanged where they are noisy, long, or too short."""
    n = n_samples(records)
    if not is_noise_free(driven, n, scale) or max(map(len, records)) > MAX_RECORD_SAMPLES:
        return driven
    parameters = ParameterLayout(driven.model, feedthrough, trend, len(records))
    if len(parameters) > MAX_PARAMETERS or n * driven.model.n_outputs <= len(parameters):
        return driven
    for _ in range(_POLISHING_STEPS):
        moved = _gauss_newton_step(driven, records, feedthrough=feedthrough, trend=trend, scale=scale)
        if moved is None or not _relative_rms(moved, n, scale) < _relative_rms(driven, n, scale):
            break
        is_worthwhile = _relative_rms(moved, n, scale) < _WORTHWHILE_DECREASE * _relative_rms(driven, n, scale)
        driven = moved
        if not is_worthwhile:
            break
    return driven


def is_noise_free(driven: DrivenModel, n: int, scale: Array) -> bool:
    """Return whether the error over n samples is within the rounding of compressed records."""
    return bool(_relative_rms(driven, n, scale) <= _NOISE_FREE)


def _gauss_newton_step(
    driven: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel | None:
    """Return the model after one step, None where the derivatives are dependent."""
    parameters = ParameterLayout(driven.model, feedthrough, trend, len(records))
    parts = record_residuals(driven, records)
    with single_blas_thread():
        R, rhs = Sensitivities(parameters, parts, scale).triangle()
        if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
            return None
        step = linalg.solve_triangular(R, rhs, check_finite=False)
    theta = parameters.packed(driven.model, driven.starts) + np.roll(step, parameters.n_shared)
    model, starts = parameters.unpacked(theta)
    if not np.all(np.isfinite(theta)) or np.any(model.poles.imag < 0.0) or driven.model.is_stable > model.is_stable:
        return None
    moved = DrivenModel(model, starts, driven.errors)
    errors = np.sum([(part.residuals**2).sum(axis=0) for part in record_residuals(moved, records)], axis=0)
    return DrivenModel(model, starts, errors)


def _relative_rms(driven: DrivenModel, n: int, scale: Array) -> float:
    """Return the root mean square error over all outputs, in units of their size."""
    return float(np.sqrt((driven.errors / (n * scale**2)).mean()))
