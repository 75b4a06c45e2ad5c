"""Diagnostics of an identified model on the data it was found in, or on other data.

`Diagnostics` is the protocol that results rely on: covariance, warnings, fit, residuals and comparisons. It has an
implementation for records and one for frequency responses. The data of a covariance are stored, so that it is
computed only on request.

Covariance of a fitted response. The noise of an instrument is proportional to the response, a floor, or both. The
covariance therefore takes the residual r of every frequency by itself, (JᵀJ)⁻¹ Jᵀ diag(r²) J (JᵀJ)⁻¹ (White 1980). A
model follows a peak that few frequencies show, and its residuals there are smaller than the noise by the share 1 − h
that the hat matrix leaves: they are divided by it (MacKinnon and White 1985).
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.frequency_data import FrequencyData, validate_frequency_data
from ltinet.identification.frequency_fit import FittedResponse
from ltinet.identification.linear_parameters import (
    DrivenModel,
    Trend,
    compute_regressors,
    fit_initial_condition,
    simulated_outputs,
)
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.preprocessing import ChannelUnits
from ltinet.identification.records import Record, n_samples, validate_records
from ltinet.identification.residual_analysis import (
    ResidualTests,
    feedback_warning,
    output_deviations,
    record_fits,
    record_residual_tests,
)
from ltinet.identification.sensitivities import MAX_PARAMETERS, ParameterLayout, leading_part
from ltinet.identification.uncertainty import ParameterCovariance, parameter_covariance, response_gradient
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.diagnostics
# What a result asks of the data that it was found in, whether these are records or a frequency response.

Values = NDArray[np.float64] | NDArray[np.complex128]


class DataComparison(NamedTuple):
    """Measured values beside those of the model, both of one shape; of a record rows are samples."""

    places: Array
    """Times from 0 on, or frequencies."""
    measured: Values
    modelled: Values


class CandidateSummary(NamedTuple):
    """One line of the evidence: a model and its error on data that it had not seen, relative to their size."""

    order: int
    method: str
    block_rows: int
    """0 for methods that have none."""
    refined: bool
    whitened: bool
    error: float


class Diagnostics(Protocol):
    """Data, and what they say of the model.

    `first` and `second` are u and y, or omega and H; None for both are those that the model was found in, of long
    records their beginnings.
    """

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters of the model; None where the data do not tell."""
        ...

    def doubts(self) -> tuple[str, ...]:
        """Warnings that need a look at what the model leaves over."""
        ...

    def fit(self, first: Any, second: Any) -> Array:
        """How well the model explains these data, in % for each output, `(p,)`."""
        ...

    def residuals(self, first: Any, second: Any) -> ResidualTests:
        """What the model leaves over of these data, with its correlations."""
        ...

    def compared(self, first: Any, second: Any) -> tuple[DataComparison, ...]:
        """These data and the model, experiment by experiment."""
        ...


# MERGED ltinet.identification.diagnostics
# What a result keeps of its records, so that confidence is computed when somebody asks for it and not before.


@dataclass(frozen=True, eq=False)
class CovarianceData:
    """A model in units of its records, with their beginnings."""

    linear: DrivenModel
    records: tuple[Record, ...]
    share: float
    """Of all samples."""
    feedthrough: bool
    trend: Trend
    gain: Matrix
    """Units of outputs by units of inputs, `(p, m)`."""

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters; samples that were not kept are taken to say as much each."""
        found = parameter_covariance(self.linear, self.records, feedthrough=self.feedthrough, trend=self.trend)
        return None if found is None else replace(found, matrix=self.share * found.matrix, gain=self.gain)


def covariance_data(
    linear: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, gain: Matrix
) -> CovarianceData:
    """Copies of the beginnings, so that long records can be forgotten."""
    found = [leading_part(own, start) for own, start in zip(records, linear.starts, strict=True)]
    parts = tuple(Record(own.u.copy(), own.y.copy()) for own, _ in found)
    model = replace(linear, starts=tuple(start for _, start in found))
    return CovarianceData(model, parts, n_samples(parts) / n_samples(records), feedthrough, trend, gain)


# MERGED ltinet.identification.diagnostics
# Records as evidence: what a model of them says of these and of others.


@final
@dataclass(frozen=True, eq=False)
class RecordDiagnostics:
    """A model at samples, the records that it was found in, and from where channels are counted."""

    modes: ModalModel
    seen: CovarianceData
    units: ChannelUnits
    dt: float
    delay: tuple[int, ...]
    trend: Trend
    input_offsets: Array
    output_offsets: Array
    """What the model adds to its outputs."""
    levels: Array
    """What outputs were counted from while the model was found, `(p,)`."""

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters, in units of the records."""
        return self.seen.covariance()

    def doubts(self) -> tuple[str, ...]:
        """Whether the records seem to come from a closed loop."""
        return feedback_warning(self.seen.linear, self.seen.records)

    def fit(self, first: Any, second: Any) -> Array:
        """100 (1 − ‖y − ŷ‖/‖y − mean‖) % of every output, states at the first sample fitted."""
        return record_fits(self.modes, self._prepared(first, second))

    def residuals(self, first: Any, second: Any) -> ResidualTests:
        """With starts fitted, and trends where they belong to the model."""
        return record_residual_tests(self.modes, self._prepared(first, second), self.trend)

    def compared(self, first: Any, second: Any) -> tuple[DataComparison, ...]:
        """Outputs `(T, p)` of every record and the simulated ones, states fitted at the first sample."""
        found = []
        for own in self._prepared(first, second):
            start, _ = fit_initial_condition(self.modes, own, trend="none", scale=output_deviations(own))
            simulated = simulated_outputs(compute_regressors(self.modes, own), self.modes, start)
            times = np.asarray(self.dt * np.arange(len(own)), dtype=np.float64)
            found.append(DataComparison(times, own.y + self.output_offsets, simulated + self.output_offsets))
        return tuple(found)

    def _prepared(self, u: Any, y: Any) -> tuple[Record, ...]:
        """Records without offsets and delays; those that the model was found in where none are given."""
        if u is None and y is None:
            moved = self.levels - self.output_offsets
            return tuple(
                Record(own.u * self.units.inputs, own.y * self.units.outputs + moved) for own in self.seen.records
            )
        records = validate_records(u, y).records
        self._require_channels(records[0])
        return tuple(
            Record(own.u - self.input_offsets, own.y - self.output_offsets).shifted(self.delay) for own in records
        )

    def _require_channels(self, record: Record) -> None:
        wanted = self.modes.n_inputs, self.modes.n_outputs
        if (record.u.shape[1], record.y.shape[1]) != wanted:
            raise InvalidSignalError(
                f"u and y have {record.u.shape[1]} and {record.y.shape[1]} channels; the model has {wanted[0]} inputs "
                f"and {wanted[1]} outputs"
            )


# MERGED ltinet.identification.diagnostics
# A frequency response as evidence: how certain a model of it is, and what it says of this response and of others.
#
# Noise of an instrument is a share of the response, a floor, or both; nobody tells. So the covariance takes the residuals
# of every frequency for themselves, (JᵀJ)⁻¹ Jᵀ diag(r²) J (JᵀJ)⁻¹ (White 1980), which holds for any of these. A peak that
# few frequencies show is followed by the model, and its residuals are smaller than the noise by the share 1 − h that the
# hat matrix leaves of them: they are divided by it (MacKinnon and White 1985).

_LEAST_LEFT = 0.01  # of the noise in a residual: what a model follows altogether tells nothing of its noise
_CLEAN = 1e-11  # of a channel: errors below are rounding, which no covariance describes


@final
@dataclass(frozen=True, eq=False)
class ResponseDiagnostics:
    """A model of continuous time with the response that it was found in."""

    model: FittedResponse
    modes: ModalModel | None
    """None where they cannot be told apart."""
    feedthrough: bool

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters; None where they are too many, or some of them move no response."""
        if self.modes is None:
            return None
        measured, weights = self.model.measured, self.model.weights
        parameters = ParameterLayout(self.modes, self.feedthrough, "none", 0)
        left = ((measured.H - self.model.response(measured.omega)) * weights).ravel()
        residuals = np.concatenate([left.real, left.imag])
        n = len(parameters)
        if not 0 < n <= MAX_PARAMETERS or len(residuals) <= n or np.abs(residuals).max() <= _CLEAN:
            return None
        _, gradient = response_gradient(parameters, measured.omega, dt=None)
        J = (gradient * weights[..., None]).reshape(-1, n)
        R, meat = _sandwich_factors(np.vstack([J.real, J.imag]), residuals)
        if R is None:
            return None
        inverse = linalg.solve_triangular(R, np.eye(n), check_finite=False)
        matrix = inverse @ meat @ inverse.T
        return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), np.ones_like(self.model.D))

    def doubts(self) -> tuple[str, ...]:
        """None: what frequencies tell was told when the model was found."""
        return ()

    def fit(self, first: Any, second: Any) -> Array:
        """100 (1 − ‖H − Ĥ‖/‖H − mean‖) % of every output over all inputs and frequencies."""
        own = self._given(first, second)
        H, modelled = own.H, self.model.response(own.omega)
        spread = np.linalg.norm(H - H.mean(axis=0), axis=(0, 2))
        size = np.where(spread > 0.0, spread, np.maximum(np.linalg.norm(H, axis=(0, 2)), np.finfo(float).tiny))
        return np.asarray(100.0 * (1.0 - np.linalg.norm(H - modelled, axis=(0, 2)) / size))

    def residuals(self, first: Any, second: Any) -> ResidualTests:  # noqa: ARG002 - as the protocol has it
        """Refused: correlations over time are those of records."""
        raise InvalidSignalError(
            "this system was found in a frequency response, which has no residuals over time; "
            "found.plot.compare(omega, H) shows measured and modelled responses"
        )

    def compared(self, first: Any, second: Any) -> tuple[DataComparison, ...]:
        """H `(K, p, m)` as measured and as the model has it."""
        own = self._given(first, second)
        return (DataComparison(own.omega, own.H, self.model.response(own.omega)),)

    def _given(self, omega: Any, H: Any) -> FrequencyData:
        if omega is None and H is None:
            return self.model.measured
        own = validate_frequency_data(omega, H, None, fewest=1)
        if own.H.shape[1:] != self.model.D.shape:
            outputs, inputs = self.model.D.shape
            raise InvalidSignalError(
                f"H has {own.H.shape[1]} outputs and {own.H.shape[2]} inputs; the model has {outputs} and {inputs}"
            )
        return own


def _sandwich_factors(J: Matrix, residuals: Array) -> tuple[Matrix | None, Matrix]:
    """R of J = QR, None where it is singular, and Qᵀ diag(r²/(1 − h)²) Q."""
    Q, R = linalg.qr(J, mode="economic", check_finite=False)
    if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
        return None, np.zeros((0, 0))
    left = np.maximum(1.0 - (Q**2).sum(axis=1), _LEAST_LEFT)
    return np.asarray(R), np.asarray((Q.T * (residuals / left) ** 2) @ Q)
