"""Output-error refinement: all parameters are adjusted to minimize the simulation error.

The parameters are, in this order, the poles, b, c and D of the model, then the initial state and trends of every
record. The outputs do not change when b_i is multiplied by a number and c_i divided by it, so that the largest entry
of b_i is held fixed.

Gauss-Newton steps within a trust region (Levenberg and Marquardt, MINPACK through SciPy). Residuals and derivatives
are compressed by the same rotation (`linear_parameters`), which preserves lengths and angles, so that a step costs as
much for a million samples as for a thousand once the regressors are compressed.

The rounding of that compression is proportional to the outputs. Where the errors of a model of noise-free records are
smaller than that, poles near each other lose half of their digits. A few Gauss-Newton steps on the samples themselves
follow then, in which rounding errors average out. Their derivatives, as those of a covariance, are evaluated some
samples at a time without compressing the record first, so that residuals keep the digits that a rotation of the
record would mix with those of the outputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.linear_parameters import (
    N_TRENDS,
    DrivenModel,
    InitialCondition,
    ModalDrive,
    ModalRegressors,
    Trend,
    compress_regressors,
    compute_regressors,
    pack_columns,
    simulated_outputs,
    unpack_complex,
    with_errors,
)
from ltinet.identification.modal_model import ModalModel, component_mask, feedthrough_share
from ltinet.identification.records import Record, n_samples
from ltinet.systems.matrices import Matrix

# Parameters and derivatives.

MAX_PARAMETERS = 400
"""Number of parameters beyond which their derivatives take seconds, and are not computed."""
MAX_RECORD_SAMPLES = 2**16
"""Samples of a record that are used; the others are assumed to carry as much information each."""
POLE_STEP = EPS ** (1.0 / 3.0)
"""Relative step of central differences by a pole: truncation h² and rounding eps/h are equal at ∛eps, for ten digits."""
_CHUNK_SIZE = 2**22  # numbers of the derivatives in memory at a time


@dataclass(frozen=True, eq=False)
class ParameterLayout:
    """Order of the parameters of a model: poles, b, c, D, then record by record."""

    like: ModalModel
    n_direct: int
    """Number of inputs, the first ones, with a direct path to the outputs."""
    trend: Trend
    n_records: int

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Real and imaginary parts of b that are parameters, input by input `(m, states)`; the largest b_i is not."""
        m, pairs = self.like.n_inputs, self.like.is_pair
        free = np.ones((m, len(pairs)), dtype=bool)
        free[np.argmax(np.abs(self.like.B), axis=1), np.arange(len(pairs))] = False
        return np.repeat(free, 2, axis=1)[:, component_mask(pairs)]

    @property
    def n_local(self) -> int:
        """Number of parameters of one record."""
        return self.like.order + self.like.n_outputs * N_TRENDS[self.trend]

    @property
    def n_shared(self) -> int:
        """Number of parameters of the model."""
        n, p = self.like.order, self.like.n_outputs
        return n + int(self.is_free.sum()) + n * p + p * self.n_direct

    def __len__(self) -> int:
        return self.n_shared + self.n_records * self.n_local

    def packed(self, model: ModalModel, starts: tuple[InitialCondition, ...]) -> Array:
        """Return the parameter vector of a model with its starts."""
        pairs = model.is_pair
        parts = [_parts(model.poles, pairs), _parts(model.B.T, pairs)[self.is_free], _parts(model.C, pairs).ravel()]
        parts.append(model.D[:, : self.n_direct].ravel())
        for start in starts:
            parts += [_parts(start.states, pairs), start.trends.ravel()]
        return np.concatenate(parts)

    def unpacked(self, theta: Array) -> tuple[ModalModel, tuple[InitialCondition, ...]]:
        """Return the model and the starts of a parameter vector."""
        like, pairs, n = self.like, self.like.is_pair, self.like.order
        m, p, free = like.n_inputs, like.n_outputs, self.is_free
        poles, rest = unpack_complex(theta[:n], pairs), theta[n:]
        weights = _parts(like.B.T, pairs)
        weights[free], rest = rest[: free.sum()], rest[free.sum() :]
        C, rest = unpack_complex(rest[: n * p].reshape(p, n), pairs), rest[n * p :]
        D = np.zeros((p, m))
        n_values = p * self.n_direct
        D[:, : self.n_direct], rest = rest[:n_values].reshape(p, self.n_direct), rest[n_values:]
        model = ModalModel(poles, pairs, C, unpack_complex(weights, pairs).T, D, linear=like.linear)
        starts = [
            InitialCondition(unpack_complex(local[:n], pairs), local[n:].reshape(p, N_TRENDS[self.trend]))
            for local in rest.reshape(self.n_records, self.n_local)
        ]
        return model, tuple(starts)

    def derivatives(self, part: ModalRegressors, model: ModalModel, start: InitialCondition, *, record: int) -> Array:
        """Return the derivatives of all outputs over one record by all parameters, `(p, q, parameters)`."""
        p, q, pairs, n = model.n_outputs, len(part.outputs), model.is_pair, model.order
        columns = np.zeros((p, q, len(self)))
        forcing = part.inputs @ model.B.T  # b_i u, (q, k)
        by_poles = part.pole_derivatives + _feedthrough_share_slope(model) * forcing
        columns[:, :, :n] = pack_columns(model.C[:, None] * by_poles, pairs)
        free, at = self.is_free, n
        responses = part.responses + model.direct_shares[:, None] * part.inputs[:, None, :]
        by_B = pack_columns(model.C[:, None, None] * responses.transpose(0, 2, 1), pairs)  # (p, q, m, states)
        columns[:, :, at : at + free.sum()] = by_B[:, :, free]
        at += int(free.sum())
        states = np.einsum("qkm,km->qk", part.responses, model.B) + part.decays * start.states
        by_C = pack_columns(states + model.direct_shares * forcing, pairs)
        begin, n_trends = self.n_shared + record * self.n_local, N_TRENDS[self.trend]
        columns[:, :, begin : begin + n] = pack_columns(model.C[:, None] * part.decays, pairs)

        def fill(first: int, values: Array) -> None:
            """Fill the columns of parameters that belong to one output each, with `values` for its own."""
            for output, start in enumerate(range(first, first + p * values.shape[1], values.shape[1] or 1)):
                columns[output, :, start : start + values.shape[1]] = values

        fill(at, by_C)
        fill(at + n * p, part.inputs[:, : self.n_direct])
        fill(begin + n, part.trends[:, :n_trends])
        return columns


def _parts(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Return real and, for pairs, imaginary parts along the last axis."""
    return pack_columns(values.conj(), is_pair)


def _feedthrough_share_slope(model: ModalModel) -> Complex:
    """Return dρ/dλ of every mode, by a central difference."""
    if not model.linear:
        return np.zeros_like(model.poles)
    step = POLE_STEP * np.maximum(np.abs(model.poles), POLE_STEP)
    return np.asarray((feedthrough_share(model.poles + step) - feedthrough_share(model.poles - step)) / (2.0 * step))


# All records, some samples at a time.


class RecordResiduals(NamedTuple):
    """Regressors, start and residuals `(q, p)` of the part of a record that is used."""

    regressors: ModalRegressors
    start: InitialCondition
    residuals: Array


def record_residuals(driven: DrivenModel, records: tuple[Record, ...]) -> list[RecordResiduals]:
    """Return regressors and residuals of the records, of long ones at their beginnings."""
    parts = []
    for record, start in zip(records, driven.starts, strict=True):
        beginning, start_here = leading_part(record, start)
        regressors = compute_regressors(driven.model, beginning, ModalDrive(driven.model.B, start_here.states))
        residuals = regressors.outputs - simulated_outputs(regressors, driven.model, start_here)
        parts.append(RecordResiduals(regressors, start_here, residuals))
    return parts


def leading_part(record: Record, start: InitialCondition) -> tuple[Record, InitialCondition]:
    """Return the part of a record that is used, and its start, whose slopes are those over this part."""
    part = record.part(slice(0, MAX_RECORD_SAMPLES))
    shortened = np.array([1.0, max(len(part) - 1, 1) / max(len(record) - 1, 1)])
    return part, InitialCondition(start.states, start.trends * shortened[: start.trends.shape[1]])


class Sensitivities:
    """Derivatives J of all records; columns of the records precede those of the model, and records run backwards."""

    def __init__(self, parameters: ParameterLayout, parts: list[RecordResiduals], scale: Array) -> None:
        self._parameters, self._parts, self._scale = parameters, parts, scale

    def triangle(self) -> tuple[Matrix, Array]:
        """Return R of J = QR, and Qᵀe."""
        n = len(self._parameters)
        R = np.zeros((0, n + 1))
        for number, part in enumerate(self._parts):
            end = len(part.residuals)
            for columns in self.backwards(number):
                rows = slice(end - columns.shape[1], end)
                rhs = (part.residuals[rows] / self._scale).T[..., None]
                stacked = np.vstack([R, np.concatenate([columns, rhs], axis=2).reshape(-1, n + 1)])
                R = np.asarray(linalg.qr(stacked, mode="r", check_finite=False)[0][: n + 1])
                end = rows.start
        return R[:n, :n], R[:n, n]

    def backwards(self, number: int) -> Iterator[Array]:
        """Yield chunks `(p, q, parameters)` of one record, its end first; rows within are in the order of time."""
        part, start, residuals = self._parts[number]
        chunk = max(1, _CHUNK_SIZE // (residuals.shape[1] * len(self._parameters)))
        n_shared, model = self._parameters.n_shared, self._parameters.like
        for end in range(len(residuals), 0, -chunk):
            rows = slice(max(0, end - chunk), end)
            selected = ModalRegressors(
                part.decays[rows], part.responses[rows], part.pole_derivatives[rows], part.inputs[rows],
                part.trends[rows], part.outputs[rows],
            )  # fmt: skip
            columns = self._parameters.derivatives(selected, model, start, record=number)
            yield np.roll(columns, -n_shared, axis=2) / self._scale[:, None, None]


# Refinement.

_MAX_EVALUATIONS = 60  # time limit: a better model is returned also where this ends the refinement
REFINEMENT_TOLERANCE = 1e-10
"""Relative change of parameters and error: noise of 24 bits moves parameters of N samples by 6e-8/√N."""
_MAX_GROWTH_EXPONENT = 200.0  # log of the growth of a mode over a record; its square is far below overflow
_REJECTED_RESIDUAL = 1e100  # residual that makes the trust region reject parameters that grow faster
_NOISE_FREE = np.sqrt(EPS)  # relative error of the outputs at which half of the digits of the residuals are rounding
_POLISHING_STEPS = 4  # of quadratic convergence: 1e-8, 1e-16, and two for poles that are nearly equal


class _Evaluation(NamedTuple):
    """Residuals and derivatives for the last parameters, since SciPy asks for them one by one."""

    theta: Array
    residuals: Array
    derivatives: Array


def refine_output_error(
    driven: DrivenModel,
    records: tuple[Record, ...],
    *,
    n_direct: int,
    trend: Trend,
    scale: Array,
    tolerance: float = REFINEMENT_TOLERANCE,
) -> DrivenModel | None:
    """Return the refined model, None where it is not better or has too many parameters."""
    problem = _OutputErrorProblem(ParameterLayout(driven.model, n_direct, trend, len(records)), records, scale)
    if len(problem.parameters) > MAX_PARAMETERS:
        return None
    theta = problem.parameters.packed(driven.model, driven.starts)
    if problem.residuals(theta).size < len(theta):
        return None
    from scipy import optimize  # here, because few calls need it and importing it is slow

    solution = optimize.least_squares(
        problem.residuals, theta, jac=problem.derivatives, method="lm", x_scale="jac", max_nfev=_MAX_EVALUATIONS,
        xtol=tolerance, ftol=tolerance, gtol=1e-12,
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
    driven: DrivenModel, records: tuple[Record, ...], *, n_direct: int, trend: Trend, scale: Array
) -> DrivenModel:
    """Improve a model of noise-free records; return it unchanged where they are noisy, long, or too short."""
    n = n_samples(records)
    if not is_noise_free(driven, n, scale) or max(map(len, records)) > MAX_RECORD_SAMPLES:
        return driven
    parameters = ParameterLayout(driven.model, n_direct, trend, len(records))
    if len(parameters) > MAX_PARAMETERS or n * driven.model.n_outputs <= len(parameters):
        return driven
    for _ in range(_POLISHING_STEPS):
        moved = _gauss_newton_step(driven, records, n_direct=n_direct, trend=trend, scale=scale)
        if moved is None or not _relative_rms(moved, n, scale) < _relative_rms(driven, n, scale):
            return driven
        driven = moved
    return driven


def is_noise_free(driven: DrivenModel, n: int, scale: Array) -> bool:
    """Return whether the error over n samples is within the rounding of compressed records."""
    return bool(_relative_rms(driven, n, scale) <= _NOISE_FREE)


def _gauss_newton_step(
    driven: DrivenModel, records: tuple[Record, ...], *, n_direct: int, trend: Trend, scale: Array
) -> DrivenModel | None:
    """Return the model after one step, None where the derivatives are dependent."""
    parameters = ParameterLayout(driven.model, n_direct, trend, len(records))
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
