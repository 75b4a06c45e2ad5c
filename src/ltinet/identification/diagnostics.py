"""Diagnostics of an identified model on the data that it was fitted to, or on other data.

Results rely on `Diagnostics`, one class for records and one for frequency responses: covariance, warnings, fit,
residuals and comparisons. The arguments `first` and `second` are u and y, or omega and H; where both are None, the data
that the model was found in are used, of long records their beginnings. The data of a covariance are stored, so that it
is computed only on request.

Covariance of a fitted response. The noise of an instrument is proportional to the response, a floor, or both. The
covariance therefore takes the residual r of every frequency by itself, (JᵀJ)⁻¹ Jᵀ diag(r²) J (JᵀJ)⁻¹ (White 1980). A
model follows a peak that few frequencies show, and its residuals there are smaller than the noise by the share 1 − h
that the hat matrix leaves: they are divided by it (MacKinnon and White 1985).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.errors import InvalidSignalError
from ltinet.identification.frequency_data import FrequencyData, validate_frequency_data
from ltinet.identification.frequency_fit import FittedResponse
from ltinet.identification.frequency_order import ROUNDING_FLOOR
from ltinet.identification.innovations import (
    InnovationModel,
    Innovations,
    fit_innovations,
    innovation_covariance,
)
from ltinet.identification.linear_parameters import DrivenModel, Trend, fit_initial_condition, simulate_record
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.output_error import MAX_PARAMETERS, ParameterLayout, record_residuals
from ltinet.identification.preprocessing import ChannelUnits, whiten
from ltinet.identification.records import Record, require_channels, shift_records, validate_records
from ltinet.identification.residual_analysis import ResidualTests, analyze_residuals, feedback_warning
from ltinet.identification.uncertainty import (
    ParameterCovariance,
    parameter_covariance,
    response_gradient,
)

# Lower limit of 1 − h: a residual that the model cancels entirely has no information on the noise.
_MIN_NOISE_SHARE = 0.01
_NO_NOISE_MESSAGE = (
    "this system was identified from a frequency response and has no model of the noise over time; "
    "identify it from records"
)
Values = NDArray[np.float64] | NDArray[np.complex128]


class DataComparison(NamedTuple):
    """Measured values and those of the model, of one shape; the rows of records are samples."""

    x: Array
    """Times from 0 on, or frequencies."""
    measured: Values
    modeled: Values


class CandidateSummary(NamedTuple):
    """Model that was compared, with its error on test samples, relative to their size."""

    order: int
    method: str
    block_rows: int
    """0 for methods without block rows."""
    refined: bool
    family: str
    """How B and D were found: "simulation", "filtered" (records sent through a noise filter) or "predictor"."""
    error: float


_NOISE_FREE = 99.999  # fit in % above which records hardly have noise


def compute_fits(comparisons: Sequence[DataComparison]) -> Array:
    """Return 100 (1 − ‖y − ŷ‖/‖y − mean‖) % of every output, over all records, or inputs and frequencies.

    An output without deviation from its mean is compared with its size.
    """
    errors, deviations, sizes = (
        np.sqrt(sum((np.abs(values) ** 2).sum(axis=(0, *range(2, values.ndim))) for values in group))
        for group in zip(*((y - fitted, y - y.mean(axis=0), y) for _, y, fitted in comparisons), strict=True)
    )
    units = np.where(deviations > 0.0, deviations, np.maximum(sizes, np.finfo(float).tiny))
    return np.asarray(100.0 * (1.0 - errors / units))


def drift_warning(poles: Complex, duration: float, fits: Array) -> tuple[str, ...]:
    """Return a warning where a real pole is slower than all records together, as that of a drift or an integrator is.

    Records without noise determine such a pole.
    """
    if fits.min(initial=100.0) > _NOISE_FREE:
        return ()
    slow = np.flatnonzero((poles.imag == 0.0) & (np.abs(poles.real) * duration < 1.0))
    if not len(slow):
        return ()
    pole = float(poles[slow[0]].real)
    return (
        f"the real pole {pole:.3g} is slower than the {duration:.4g} of the records show, and not distinguishable from 0: "
        'if outputs drift, try trend="linear"; if the plant does not integrate, gain and time constants may be wrong',
    )


# Records.


@final
@dataclass(frozen=True, eq=False)
class RecordDiagnostics:
    """Model at the samples, the records that it was fitted to, and the offsets of the channels."""

    modes: ModalModel
    driven: DrivenModel
    """Model in units of its records, with their starts."""
    noise: Innovations | None
    """Noise in units of the records, where the model was found by one-step predictions."""
    noise_filter: Array | None
    """Filter of the records that the model was fitted to, where they were filtered."""
    records: tuple[Record, ...]
    """Records in their units, of long ones the beginnings."""
    share: float
    """Share of all samples that the beginnings hold."""
    units: ChannelUnits
    feedthrough: bool
    trend: Trend
    dt: float
    delay: tuple[int, ...]
    input_offsets: Array
    output_offsets: Array
    """Offsets that the model adds to its outputs."""
    levels: Array
    """Offsets that were subtracted from outputs before the model was fitted, `(p,)`."""

    def covariance(self) -> ParameterCovariance | None:
        """Return the covariance of the parameters, assuming that the other samples carry as much information each."""
        n_direct = self.modes.n_inputs * self.feedthrough
        if self.noise is None:
            driven, records = self.driven, self.records
            if self.noise_filter is not None:
                records = whiten(records, self.noise_filter)
                ones = np.ones(self.modes.n_outputs)
                pairs = [fit_initial_condition(driven.model, it, trend=self.trend, scale=ones) for it in records]
                driven = replace(driven, starts=tuple(start for start, _ in pairs))
            covariance = parameter_covariance(driven, records, n_direct=n_direct, trend=self.trend)
        else:
            covariance = innovation_covariance(
                self.driven.model, self.noise, self.records, n_direct=n_direct, trend=self.trend
            )
        return covariance and replace(covariance, matrix=self.share * covariance.matrix, gain=self.units.gain)

    def innovation_model(self) -> InnovationModel:
        """Return the model at the samples with its noise, in the user's units and the states of `modes.sampled()`."""
        if self.noise is not None:
            model = InnovationModel.of_modes(self.driven.model, self.noise)
        else:
            parts = record_residuals(self.driven, self.records)
            model = fit_innovations(self.driven.model, tuple(part.residuals for part in parts))
        A, B, C, D = self.modes.sampled()
        units = self.units.outputs
        return InnovationModel(A, B, C, D, model.K / units, model.covariance * np.outer(units, units))

    def predicted(self, u: Array, y: Array, horizon: int) -> Array:
        """Return predictions of y `(T, p)`; inputs before the record are at their offsets."""
        deviations = u - self.input_offsets
        shifted = np.zeros_like(deviations)
        for j, delay in enumerate(self.delay):
            shifted[delay:, j] = deviations[: len(u) - delay, j]
        return self.innovation_model().predicted(shifted, y - self.output_offsets, horizon) + self.output_offsets

    def residual_warnings(self) -> tuple[str, ...]:
        """Return a warning where the records seem to come from a closed loop, and the method is not made for it."""
        return () if self.noise is not None else feedback_warning(self.driven, self.records)

    def residuals(self, first: Any, second: Any, *, one_step: bool) -> ResidualTests:
        """Return residual tests with starts fitted, and trends of simulated outputs where they belong to the model."""
        records, residuals, scale = self._prepare(first, second), [], np.ones(self.modes.n_outputs)
        if one_step:
            model = self.innovation_model()
            errors = [record.y - model.predicted(record.u, record.y, 1) for record in records]
            return analyze_residuals(errors, [record.u for record in records])
        for record in records:
            start, _ = fit_initial_condition(self.modes, record, trend=self.trend, scale=scale)
            residuals.append(record.y - simulate_record(self.modes, record, start))
        return analyze_residuals(residuals, [record.u for record in records])

    def compared(self, first: Any, second: Any) -> tuple[DataComparison, ...]:
        """Return outputs `(T, p)` of every record and the simulated ones, states fitted at the first sample."""
        comparisons = []
        for record in self._prepare(first, second):
            deviations = np.linalg.norm(record.y - record.y.mean(axis=0), axis=0)
            scale = np.where(deviations > 0.0, deviations, 1.0)
            start, _ = fit_initial_condition(self.modes, record, trend="none", scale=scale)
            simulated = simulate_record(self.modes, record, start)
            times = np.asarray(self.dt * np.arange(len(record)), dtype=np.float64)
            comparisons.append(DataComparison(times, record.y + self.output_offsets, simulated + self.output_offsets))
        return tuple(comparisons)

    def _prepare(self, u: Any, y: Any) -> tuple[Record, ...]:
        """Return records without offsets and delays; by default those that the model was fitted to."""
        if u is None and y is None:
            shift = self.levels - self.output_offsets
            return tuple(
                Record(record.u * self.units.inputs, record.y * self.units.outputs + shift) for record in self.records
            )
        records = validate_records(u, y).records
        require_channels(records[0], self.modes.n_inputs, self.modes.n_outputs)
        centered = tuple(Record(record.u - self.input_offsets, record.y - self.output_offsets) for record in records)
        return shift_records(centered, self.delay)


# Frequency responses.


@final
@dataclass(frozen=True, eq=False)
class ResponseDiagnostics:
    """Continuous-time model with the frequency response that it was fitted to."""

    fitted: FittedResponse
    modes: ModalModel | None
    """None where the eigenvectors are nearly dependent."""
    feedthrough: bool

    def covariance(self) -> ParameterCovariance | None:
        """Return the covariance of the parameters, None where they are too many or their derivatives dependent."""
        if self.modes is None:
            return None
        measured, weights = self.fitted.measured, self.fitted.weights
        parameters = ParameterLayout(self.modes, self.modes.n_inputs * self.feedthrough, "none", 0)
        errors = ((measured.H - self.fitted.response(measured.omega)) * weights).ravel()
        residuals = np.concatenate([errors.real, errors.imag])
        n = len(parameters)
        if not 0 < n <= MAX_PARAMETERS or len(residuals) <= n or np.abs(residuals).max() <= ROUNDING_FLOOR:
            return None
        _, gradient = response_gradient(parameters, measured.omega, dt=None)
        J = (gradient * weights[..., None]).reshape(-1, n)
        # With J = QR the covariance is R⁻¹ Qᵀ diag(r²/(1 − h)²) Q R⁻ᵀ, where h are the squared norms of the rows of Q.
        Q, R = linalg.qr(np.vstack([J.real, J.imag]), mode="economic", check_finite=False)
        if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
            return None
        share = np.maximum(1.0 - (Q**2).sum(axis=1), _MIN_NOISE_SHARE)
        middle = (Q.T * (residuals / share) ** 2) @ Q
        inverse = linalg.solve_triangular(R, np.eye(n), check_finite=False)
        matrix = inverse @ middle @ inverse.T
        return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), np.ones_like(self.fitted.model.D))

    def innovation_model(self) -> InnovationModel:
        """Raise InvalidSignalError: noise is that of records."""
        raise InvalidSignalError(_NO_NOISE_MESSAGE)

    def predicted(self, u: Array, y: Array, horizon: int) -> Array:  # noqa: ARG002 - signature of the protocol
        """Raise InvalidSignalError: predictions need a noise model."""
        raise InvalidSignalError(_NO_NOISE_MESSAGE)

    def residual_warnings(self) -> tuple[str, ...]:
        """Return no warnings: those of frequency responses are found together with the model."""
        return ()

    def residuals(self, first: Any, second: Any, *, one_step: bool) -> ResidualTests:  # noqa: ARG002 - signature of the protocol
        """Raise InvalidSignalError: correlations over time are those of records."""
        raise InvalidSignalError(
            "this system was identified from a frequency response, which has no residuals over time; "
            "result.plot.compare(omega, H) shows measured and modeled responses"
        )

    def compared(self, first: Any, second: Any) -> tuple[DataComparison, ...]:
        """Return H `(K, p, m)` as measured and of the model."""
        data = self._response(first, second)
        return (DataComparison(data.omega, data.H, self.fitted.response(data.omega)),)

    def _response(self, omega: Any, H: Any) -> FrequencyData:
        """Return a validated response, by default the one that the model was fitted to."""
        if omega is None and H is None:
            return self.fitted.measured
        data = validate_frequency_data(omega, H, None, fewest=1)
        if data.H.shape[1:] != self.fitted.model.D.shape:
            outputs, inputs = self.fitted.model.D.shape
            raise InvalidSignalError(
                f"H has {data.H.shape[1]} outputs and {data.H.shape[2]} inputs; the model has {outputs} and {inputs}"
            )
        return data


Diagnostics: TypeAlias = RecordDiagnostics | ResponseDiagnostics
