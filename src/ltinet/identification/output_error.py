"""Output-error refinement: all parameters are adjusted to minimise the simulation error.

Gauss-Newton steps within a trust region (Levenberg and Marquardt, MINPACK through SciPy). Residuals and derivatives
are compressed by the same rotation (`linear_parameters`), which preserves lengths and angles, so that a step costs as
much for a million samples as for a thousand once the regressors are compressed.

The rounding of that compression is proportional to the outputs. Where a model of noise-free records leaves less than
that over, a few Gauss-Newton steps on the samples themselves follow, in which rounding errors average out.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array
from ltinet.identification.linear_parameters import (
    DrivenModel,
    InitialCondition,
    ModalRegressors,
    Trend,
    compress_regressors,
    squared_errors,
)
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.records import Record, n_samples
from ltinet.identification.sensitivities import (
    MAX_PARAMETERS,
    MAX_RECORD_SAMPLES,
    ParameterLayout,
    Sensitivities,
    record_residuals,
)

# MERGED ltinet.identification.output_error
# Output-error refinement: all parameters moved until the simulated outputs come as close as they can.
#
# Gauss-Newton steps within a trust region (Levenberg and Marquardt, MINPACK through SciPy). Residuals and derivatives are
# compressed by the same rotation (`sequences`), which changes no length and no angle, so that a step costs as much for a
# million samples as for a thousand once the sequences are there.

_STEPS = 60
_SMALL_CHANGE = 1e-10  # relative, of the parameters and of the error: nobody measures more digits
_LARGEST_GROWTH = 200.0  # exponent of what a mode may grow by over a record
_REJECTED_RESIDUAL = 1e100  # the residual of what is not looked at


class _Evaluation(NamedTuple):
    theta: Array
    residuals: Array
    derivatives: Array


def refine_output_error(
    linear: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel | None:
    """The model after refinement, None where it came no closer or has too many parameters."""
    problem = _OutputErrorProblem(ParameterLayout(linear.model, feedthrough, trend, len(records)), records, scale)
    if len(problem.parameters) > MAX_PARAMETERS:
        return None
    theta = problem.parameters.packed(linear.model, linear.starts)
    n_rows = problem.residuals(theta).size
    if n_rows < len(theta):
        return None
    from scipy import optimize  # here, because few calls need it and it takes its time

    found = optimize.least_squares(
        problem.residuals,
        theta,
        jac=problem.derivatives,
        method="lm",
        x_scale="jac",
        max_nfev=_STEPS,
        xtol=_SMALL_CHANGE,
        ftol=_SMALL_CHANGE,
        gtol=1e-12,
    )
    model, starts = problem.parameters.unpacked(found.x)
    if not np.all(np.isfinite(found.x)) or found.cost >= 0.5 * float(
        problem.residuals(theta) @ problem.residuals(theta)
    ):
        return None
    return problem.judged(_with_pairs_above(model), _starts_above(model, starts))


class _OutputErrorProblem:
    def __init__(self, parameters: ParameterLayout, records: tuple[Record, ...], scale: Array) -> None:
        self.parameters, self._records, self._scale = parameters, records, scale
        self._last: _Evaluation | None = None

    def residuals(self, theta: Array) -> Array:
        return self._at(theta).residuals

    def derivatives(self, theta: Array) -> Array:
        return self._at(theta).derivatives

    def judged(self, model: ModalModel, starts: tuple[InitialCondition, ...]) -> DrivenModel:
        found = [compress_regressors(model, own) for own in self._records]
        errors = [squared_errors(own, model, start) for own, start in zip(found, starts, strict=True)]
        return DrivenModel(model, starts, np.sum(errors, axis=0))

    def _at(self, theta: Array) -> _Evaluation:
        if self._last is None or not np.array_equal(self._last.theta, theta):
            self._last = self._computed(theta.copy())
        return self._last

    def _computed(self, theta: Array) -> _Evaluation:
        model, starts = self.parameters.unpacked(theta)
        longest = max(len(own) for own in self._records)
        if self._last is not None and np.log(np.abs(model.poles).max(initial=0.0)) * longest > _LARGEST_GROWTH:
            return _Evaluation(theta, np.full_like(self._last.residuals, _REJECTED_RESIDUAL), self._last.derivatives)
        residuals, derivatives = [], []
        for number, (record, start) in enumerate(zip(self._records, starts, strict=True)):
            own = self._sequences(model, record, start)
            residuals.append((self.parameters.residuals(own, model, start) / self._scale[:, None]).ravel())
            columns = self.parameters.derivatives(own, model, start, record=number) / self._scale[:, None, None]
            derivatives.append(columns.reshape(-1, columns.shape[-1]))
        return _Evaluation(theta, np.concatenate(residuals), np.vstack(derivatives))

    def _sequences(self, model: ModalModel, record: Record, start: InitialCondition) -> ModalRegressors:
        return compress_regressors(model, record, self.parameters.drive(model, start))


def _with_pairs_above(model: ModalModel) -> ModalModel:
    """Pairs told by their pole above the real axis, where a step went below it."""
    below = model.poles.imag < 0.0
    return ModalModel(
        np.where(below, model.poles.conj(), model.poles),
        model.is_pair,
        np.where(below, model.C.conj(), model.C),
        np.where(below[:, None], model.B.conj(), model.B),
        model.D,
        linear=model.linear,
    )


def _starts_above(model: ModalModel, starts: tuple[InitialCondition, ...]) -> tuple[InitialCondition, ...]:
    below = model.poles.imag < 0.0
    return tuple(InitialCondition(np.where(below, own.states.conj(), own.states), own.trends) for own in starts)


# MERGED ltinet.identification.output_error
# The last digits of a model of clean records: a few Gauss-Newton steps on the samples themselves.
#
# Refinement compresses a record by rotations, whose rounding is a share of the outputs. Where a model leaves less than
# that over, nothing can be read from what is left after a rotation: poles that are near each other lose half of their
# digits. Here residuals are taken sample by sample, and errors of rounding average out.

_NOISE_FREE = np.sqrt(EPS)  # of the outputs: a model that leaves less over is one of clean records
_POLISHING_STEPS = 4
_WORTHWHILE_DECREASE = 0.5  # of the error, by a step that is worth another


def polish(
    linear: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel:
    """The model after the steps that brought it closer; as it is where records are noisy, long, or say too little."""
    n = n_samples(records)
    if not is_noise_free(linear, n, scale) or max(map(len, records)) > MAX_RECORD_SAMPLES:
        return linear
    parameters = ParameterLayout(linear.model, feedthrough, trend, len(records))
    if len(parameters) > MAX_PARAMETERS or n * linear.model.n_outputs <= len(parameters):
        return linear
    for _ in range(_POLISHING_STEPS):
        moved = _gauss_newton_step(linear, records, feedthrough=feedthrough, trend=trend, scale=scale)
        if moved is None or not _relative_rms(moved, n, scale) < _relative_rms(linear, n, scale):
            break
        worth_another = _relative_rms(moved, n, scale) < _WORTHWHILE_DECREASE * _relative_rms(linear, n, scale)
        linear = moved
        if not worth_another:
            break
    return linear


def is_noise_free(linear: DrivenModel, n: int, scale: Array) -> bool:
    """Whether a model of n samples leaves so little over that compressed records cannot tell it from rounding."""
    return bool(_relative_rms(linear, n, scale) <= _NOISE_FREE)


def _gauss_newton_step(
    linear: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel | None:
    """The model one step on, None where some parameters move no output."""
    parameters = ParameterLayout(linear.model, feedthrough, trend, len(records))
    parts = record_residuals(linear, records)
    with single_blas_thread():
        R, side = Sensitivities(parameters, parts, scale).triangle()
        if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
            return None
        step = linalg.solve_triangular(R, side, check_finite=False)
    theta = parameters.packed(linear.model, linear.starts) + np.roll(step, parameters.n_shared)
    model, starts = parameters.unpacked(theta)
    if not np.all(np.isfinite(theta)) or np.any(model.poles.imag < 0.0) or linear.model.is_stable > model.is_stable:
        return None
    moved = DrivenModel(model, starts, linear.errors)
    errors = np.sum([(own.residuals**2).sum(axis=0) for own in record_residuals(moved, records)], axis=0)
    return DrivenModel(model, starts, errors)


def _relative_rms(linear: DrivenModel, n: int, scale: Array) -> float:
    """Root mean square over all outputs, in units of their size."""
    return float(np.sqrt((linear.errors / (n * scale**2)).mean()))
