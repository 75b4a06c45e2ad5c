"""Uncertainty of identified models: covariance of the parameters, bands of responses and regions of poles.

Covariance. With J the derivatives of the simulated outputs by the parameters, outputs in units of their residuals,
the covariance is (JᵀJ)⁻¹ JᵀΣJ (JᵀJ)⁻¹. The usual (JᵀJ)⁻¹ holds for white residuals alone. Here every output has an
autoregressive model of its residuals, e = w / a(q), with innovations w that outputs share, so that Σ = L (W ⊗ I) Lᵀ
with L the filters 1/a: JᵀΣJ takes one run of the derivatives through the filters, backwards in time. This is the
covariance of the closest model; the step (JᵀJ)⁻¹Jᵀe of a model that was not refined counts as a deviation of its own.

Bands. To first order a function of the parameters with the gradient g has the variance gᵀ P g. Responses are sums
over modes of T[c b K(λ)], with K the response of a continuous-time mode whose input weight at the samples is 1, and T
a real-linear map: the real part for step responses, (X(ω) + conj X(−ω))/2 for frequency responses.

Pole regions. Ellipses for pairs, intervals for real poles. Where a pair could as well be two real poles there is no
first order: with mean μ and discriminant Δ they are μ ± √Δ, and a root has no slope at 0. But μ and Δ are smooth
functions of the parameters. Wherever their 99 % region contains Δ = 0, both poles share a region in μ and Δ at the
samples.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet._util.phi_functions import phi_functions
from ltinet.identification.linear_parameters import DrivenModel, Trend
from ltinet.identification.modal_model import ModalModel, component_mask, first_states, input_factor, log_poles
from ltinet.identification.output_error import (
    MAX_PARAMETERS,
    POLE_STEP,
    ParameterLayout,
    RecordResiduals,
    Sensitivities,
    record_residuals,
)
from ltinet.identification.preprocessing import apply_filter, fit_autoregression
from ltinet.identification.records import Record, n_samples
from ltinet.systems.matrices import Matrix

NORMAL_QUANTILE_99 = 2.5758293035489004
"""Standard deviations within which 99 % of normal numbers lie."""
_CHUNK_SIZE = 2**21  # numbers of a gradient in memory at a time
_AMBIGUITY_LEVEL = 0.99  # level of the region in which two poles may meet, that of all intervals shown
_REAL_TOLERANCE = 1e-9  # of a pole that a user passes: smaller imaginary parts are rounding of their computation


# Covariance of the parameters.


@dataclass(frozen=True, eq=False)
class ParameterCovariance:
    """Covariance of the parameters of a model `(n_shared, n_shared)`, in the order of `parameters`."""

    parameters: ParameterLayout
    matrix: Matrix
    gain: Matrix
    """Units of outputs by units of inputs `(p, m)`, where parameters are in units of the records."""

    @property
    def model(self) -> ModalModel:
        """Model with these parameters."""
        return self.parameters.like


def parameter_covariance(
    driven: DrivenModel, records: tuple[Record, ...], *, n_direct: int, trend: Trend
) -> ParameterCovariance | None:
    """Return the covariance of the parameters of the model; those of the records are eliminated.

    None where they are too many, more than the samples, or where their derivatives are dependent.
    """
    # A record with no more samples than its own parameters, the start and the trend, holds no information on the model.
    n_own = driven.model.order + 2 * driven.model.n_outputs
    pairs = [
        (record, start)
        for record, start in zip(records, driven.starts, strict=True)
        if len(record) * driven.model.n_outputs > n_own
    ]
    if not pairs:
        return None
    records, starts = (tuple(values) for values in zip(*pairs, strict=True))
    driven = replace(driven, starts=starts)
    parameters = ParameterLayout(driven.model, n_direct, trend, len(records))
    n_values = n_samples(records) * driven.model.n_outputs
    if len(parameters) > MAX_PARAMETERS or n_values <= len(parameters):
        return None
    parts = record_residuals(driven, records)
    residuals = [part.residuals for part in parts]
    n_used = sum(map(len, residuals))
    scale = np.sqrt(sum((e**2).sum(axis=0) for e in residuals) / n_used)
    if not np.all(scale > 0.0):
        return None
    slopes = Sensitivities(parameters, parts, scale)
    with single_blas_thread():
        R, rhs = slopes.triangle()
        n_local = len(parameters) - parameters.n_shared
        shared = R[n_local:, n_local:]
        size = np.linalg.norm(R[:, n_local:], axis=0)
        if not np.all(np.abs(shared.diagonal()) > len(R) * EPS * size):
            return None
        middle = _sandwich_middle(slopes, parts, scale, R)[n_local:, n_local:]
        inverse = linalg.solve_triangular(shared, np.eye(len(shared)), check_finite=False)
        step = inverse @ rhs[n_local:]
    correction = n_values / (n_values - len(parameters))  # degrees of freedom that the fit takes from the residuals
    matrix = (n_used / n_samples(records)) * (correction * inverse @ middle @ inverse.T + np.outer(step, step))
    ones = np.ones_like(driven.model.D)
    return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), ones)


def _sandwich_middle(slopes: Sensitivities, parts: list[RecordResiduals], scale: Array, R: Matrix) -> Matrix:
    """Return QᵀΣQ for J = QR, outputs in units of their residuals; Lᵀ is a run of 1/a backwards in time."""
    from scipy.signal import lfilter  # here, because importing it takes longer than the rest

    filters, W = innovation_model([part.residuals / scale for part in parts])
    total = np.zeros_like(R)
    for number in range(len(parts)):
        memory = [np.zeros((len(coefficients) - 1, len(R))) for coefficients in filters]
        for columns in slopes.backwards(number):
            Q = linalg.solve_triangular(R, columns.reshape(-1, len(R)).T, trans="T", check_finite=False).T
            backward = np.ascontiguousarray(Q).reshape(columns.shape)[:, ::-1]
            for k, a in enumerate(filters):
                if len(a) > 1:
                    backward[k], memory[k] = lfilter([1.0], a, backward[k], axis=0, zi=memory[k])
            mixed = np.einsum("oq,qtk->otk", W, backward)
            total += backward.reshape(-1, len(R)).T @ mixed.reshape(-1, len(R))
    return total


def innovation_model(residuals: list[Array]) -> tuple[list[Array], Matrix]:
    """Return the filters that whiten the residuals `(q, p)` of every output, and the covariance of the innovations."""
    p = residuals[0].shape[1]
    filters = [fit_autoregression([e[:, [output]] for e in residuals]) for output in range(p)]
    longest = max(map(len, filters))
    usable = [e for e in residuals if len(e) >= longest]
    total, count = np.zeros((p, p)), sum(len(e) - longest + 1 for e in usable)
    for e in usable:
        innovations = np.stack([apply_filter(e[longest - len(a) :, j], a) for j, a in enumerate(filters)])
        total += innovations @ innovations.T
    return filters, total / max(count, 1)


# Bands of the frequency response and of the step response.


@final
@dataclass(frozen=True, eq=False)
class FrequencyBand:
    """Frequency response of an identified model with its covariance.

    Parameters
    ----------
    omega
        Frequencies in rad/s.
    response
        H(jω), `(len(omega), p, m)`.
    covariance
        Covariance of real and imaginary part of every entry, `(len(omega), p, m, 2, 2)`.

    """

    omega: Array
    response: Complex
    covariance: Array

    @property
    def magnitude_deviation(self) -> Array:
        """Standard deviation of 20 log₁₀|H|, in dB."""
        return np.asarray(20.0 / np.log(10.0) * self._relative(self.response.conj()))

    @property
    def phase_deviation(self) -> Array:
        """Standard deviation of the phase, in radians."""
        return self._relative(-1j * self.response.conj())

    def _relative(self, factor: Complex) -> Array:
        """Return the standard deviation of Re(factor · H)/|H|²."""
        gradient = np.stack([factor.real, -factor.imag], axis=-1)
        variance = np.einsum("...i,...ij,...j->...", gradient, self.covariance, gradient)
        size = np.abs(self.response) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of a zero response is undefined
            return np.asarray(np.where(size > 0.0, np.sqrt(np.maximum(variance, 0.0)) / size, np.inf))


@final
@dataclass(frozen=True, eq=False)
class StepBand:
    """Step responses of an identified model with their standard deviations.

    Parameters
    ----------
    t
        Times.
    response
        Responses of every output to every input, `(len(t), p, m)`.
    deviation
        Their standard deviations.

    """

    t: Array
    response: Array
    deviation: Array


def frequency_band(covariance: ParameterCovariance, omega: Array, dt: float | None) -> FrequencyBand:
    """Return H(jω) of continuous time with its covariances; dt is None where the modes are continuous."""
    responses, covariances = [], []
    for points in _point_chunks(omega, covariance):
        value, gradient = response_gradient(covariance.parameters, points, dt=dt)
        weighted = gradient @ covariance.matrix
        parts, weighted_parts = [gradient.real, gradient.imag], [weighted.real, weighted.imag]
        rows = [[np.einsum("xpmk,xpmk->xpm", a, b) for b in parts] for a in weighted_parts]
        responses.append(value)
        covariances.append(np.stack([np.stack(row, axis=-1) for row in rows], axis=-2))
    squared = (covariance.gain**2)[..., None, None]
    response = np.concatenate(responses) * covariance.gain
    return FrequencyBand(omega, response, squared * np.concatenate(covariances))


def delayed_frequency_band(band: FrequencyBand, delays: Array) -> FrequencyBand:
    """Return a band with delays `(p, m)`: H e^{−jωτ}, whose covariance turns with it."""
    angle = -band.omega[:, None, None] * delays
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], -2)
    covariance = turn @ band.covariance @ turn.swapaxes(-1, -2)
    return FrequencyBand(band.omega, band.response * np.exp(1j * angle), covariance)


def response_gradient(parameters: ParameterLayout, omega: Array, *, dt: float | None) -> tuple[Complex, Complex]:
    """Return H(jω) `(len(omega), p, m)` of continuous time, and its gradient by the parameters of the model."""
    model, both = parameters.like, np.concatenate([omega, -omega])

    def mode_responses(poles: Complex) -> Complex:
        with np.errstate(divide="ignore", invalid="ignore"):  # the response of an integrator at ω = 0 is infinite
            return np.asarray(_input_weight(poles, model, dt) / (1j * both[:, None] - _mode_exponents(poles, dt)))

    def linear_map(values: Complex) -> Complex:
        half = len(values) // 2
        return 0.5 * (values[:half] + values[half:].conj())

    return _response(parameters, mode_responses, linear_map, smallest=float(omega[omega > 0.0].min(initial=np.inf)))


def step_band(covariance: ParameterCovariance, t: Array, dt: float | None) -> StepBand:
    """Return responses to unit steps at t = 0, from rest, with their standard deviations."""
    responses, deviations = [], []
    for points in _point_chunks(t, covariance):

        def mode_responses(poles: Complex, points: Array = points) -> Complex:
            z = _mode_exponents(poles, dt) * points[:, None]
            return np.asarray(_input_weight(poles, covariance.model, dt) * points[:, None] * phi_functions(z)[0])

        def linear_map(values: Complex) -> Complex:
            return values.real.astype(np.complex128)

        smallest = 1.0 / float(points.max(initial=0.0)) if points.max(initial=0.0) > 0.0 else np.inf
        value, gradient = _response(covariance.parameters, mode_responses, linear_map, smallest=smallest)
        variance = np.einsum("xpmk,xpmk->xpm", gradient.real @ covariance.matrix, gradient.real)
        responses.append(value.real)
        deviations.append(np.sqrt(np.maximum(variance, 0.0)))
    return StepBand(t, covariance.gain * np.concatenate(responses), covariance.gain * np.concatenate(deviations))


def delayed_step_band(covariance: ParameterCovariance, t: Array, dt: float | None, delays: Array) -> StepBand:
    """Return step responses with delays `(p, m)`: zero before, and after that those of the system without delays."""
    response, deviation = (np.zeros((len(t), *delays.shape)) for _ in range(2))
    for delay in np.unique(delays):
        shifted, has_delay = t - delay, delays == delay
        band = step_band(covariance, np.maximum(shifted, 0.0), dt)
        has_begun = (shifted >= 0.0)[:, None]
        response[:, has_delay] = np.where(has_begun, band.response[:, has_delay], 0.0)
        deviation[:, has_delay] = np.where(has_begun, band.deviation[:, has_delay], 0.0)
    return StepBand(t, response, deviation)


def _point_chunks(points: Array, covariance: ParameterCovariance) -> list[Array]:
    """Split points into at least one chunk whose gradients fit into memory."""
    model = covariance.model
    size = max(1, _CHUNK_SIZE // (model.n_inputs * model.n_outputs * (len(covariance.matrix) + 1)))
    return [points[begin : begin + size] for begin in range(0, max(len(points), 1), size)]


def _mode_exponents(poles: Complex, dt: float | None) -> Complex:
    return poles if dt is None else np.asarray(log_poles(poles) / dt)


def _input_weight(poles: Complex, model: ModalModel, dt: float | None) -> Complex:
    """Return 1/γ, the ratio of the input weights b in continuous time and at the samples; 1 for continuous modes."""
    if dt is None:
        return np.ones_like(poles)
    return np.asarray(1.0 / (dt * input_factor(poles, linear=model.linear)))


def _response(
    parameters: ParameterLayout,
    mode_responses: Callable[[Complex], Complex],
    linear_map: Callable[[Complex], Complex],
    *,
    smallest: float,
) -> tuple[Complex, Complex]:
    """Return the response `(x, p, m)` and its gradient by the parameters of the model `(x, p, m, n_shared)`.

    `smallest` is the size of the smallest pole that these points distinguish from 0; it scales the step at such poles.
    """
    model, pairs = parameters.like, parameters.like.is_pair
    K = mode_responses(model.poles)
    step = POLE_STEP * np.where(model.poles == 0.0, smallest if np.isfinite(smallest) else 1.0, model.poles)
    slope = (mode_responses(model.poles + step) - mode_responses(model.poles - step)) / (2.0 * step)
    p, m = model.n_outputs, model.n_inputs
    products = model.C[:, None, :] * model.B.T[None]  # (p, m, k)
    value = linear_map((K[:, None, None, :] * products).sum(axis=-1)) + model.D
    by_poles = _real_derivatives(slope[:, None, None, :] * products, pairs, linear_map)
    by_B = _real_derivatives(K[:, None, :] * model.C, pairs, linear_map)  # (x, p, n), for each input
    by_C = _real_derivatives(K[:, None, :] * model.B.T, pairs, linear_map)  # (x, m, n), for each output
    x, n = len(value), model.order
    of_B, of_C = np.zeros((x, p, m, m, n), complex), np.zeros((x, p, m, p, n), complex)
    of_B[:, :, np.arange(m), np.arange(m)] = by_B[:, :, None]  # of its own input
    of_C[:, np.arange(p), :, np.arange(p)] = by_C  # of its own output
    columns = [by_poles, of_B[..., parameters.is_free], of_C.reshape(x, p, m, p * n)]
    if parameters.n_direct:
        columns.append(np.broadcast_to(np.eye(p * m).reshape(p, m, p * m), (x, p, m, p * m)).astype(complex))
    return value, np.concatenate(columns, axis=-1)


def _real_derivatives(values: Complex, pairs: NDArray[np.bool_], linear_map: Callable[[Complex], Complex]) -> Complex:
    """Return derivatives by real and, for pairs, imaginary parts, along the last axis."""
    by_real, by_imaginary = linear_map(values), linear_map(1j * values)
    columns = np.stack([by_real, by_imaginary], axis=-1).reshape(*by_real.shape[:-1], -1)
    return np.asarray(columns[..., component_mask(pairs)])


# Regions of poles.


@final
@dataclass(frozen=True, eq=False)
class AmbiguousPolePair:
    """Two poles μ ± √Δ that may be a pair (Δ < 0) as well as real (Δ > 0)."""

    mean: float
    discriminant: float
    covariance: Matrix
    """Covariance of mean and discriminant, `(2, 2)`."""
    dt: float | None
    """Sample time, with poles eˢᵈᵗ at the samples; None where they are those of continuous time."""

    def contains(self, pole: complex, *, level: float) -> bool:
        """Return whether a continuous-time pole is one of two within the region."""
        if self.dt is not None and abs(pole.imag) * self.dt > np.pi * (1.0 + _REAL_TOLERANCE):
            return False
        z = complex(np.exp(pole * self.dt)) if self.dt is not None else pole
        is_real = abs(z.imag) <= _REAL_TOLERANCE * abs(z)
        step = np.array([z.real - self.mean, -(z.imag**2) - self.discriminant])
        squared = self._nearest(z.real) if is_real else step @ np.linalg.solve(self.covariance, step)
        return bool(squared <= chi_square_quantile(2, level))

    def reaches_zero(self, level: float) -> bool:
        """Return whether the region contains Δ = 0, and so pairs and real poles."""
        return bool(self.discriminant**2 <= chi_square_quantile(2, level) * self.covariance[1, 1])

    def _nearest(self, pole: float) -> float:
        """Return the smallest squared distance of all pairs of real poles that include this one: Δ = (pole − μ)².

        As a function of x = pole − μ it is a quartic, whose minimum is at a root of its derivative.
        """
        x = np.polynomial.Polynomial([0.0, 1.0])
        mean_step, discriminant_step = pole - self.mean - x, x**2 - self.discriminant
        W = np.linalg.inv(self.covariance)
        squared = (
            W[0, 0] * mean_step**2 + 2.0 * W[0, 1] * mean_step * discriminant_step + W[1, 1] * discriminant_step**2
        )
        return float(min(squared(root.real) for root in squared.deriv().roots()))


@final
@dataclass(frozen=True, eq=False)
class PoleUncertainty:
    """Continuous-time pole with its covariance.

    Parameters
    ----------
    pole
        The pole, of pairs that with Im > 0.
    covariance
        Covariance of its real part `(1, 1)`, for pairs of real and imaginary part `(2, 2)`.
    is_pair
        True for a pair of complex conjugate poles.
    meeting
        Joint region of two poles, where they may be two real poles as well as a pair.

    """

    pole: complex
    covariance: Matrix
    is_pair: bool
    meeting: AmbiguousPolePair | None = None

    @property
    def deviation(self) -> complex:
        """Standard deviations of the real and of the imaginary part, as a complex number."""
        sizes = np.sqrt(self.covariance.diagonal())
        return complex(sizes[0], sizes[1] if self.is_pair else 0.0)

    def contains(self, pole: complex, *, level: float = 0.99) -> bool:
        """Return whether a pole lies within the confidence region.

        Parameters
        ----------
        pole
            Pole in continuous time, of a pair either one.
        level
            Probability that the region contains the true pole.

        Returns
        -------
        bool
            True within the region.

        """
        if self.meeting is not None:
            return self.meeting.contains(complex(pole), level=level)
        difference = complex(pole.real, abs(pole.imag)) - self.pole
        if not self.is_pair and abs(difference.imag) > _REAL_TOLERANCE * abs(self.pole):  # the region is an interval
            return False
        step = np.array([difference.real, difference.imag])[: len(self.covariance)]
        return bool(step @ np.linalg.solve(self.covariance, step) <= chi_square_quantile(len(step), level))


def chi_square_quantile(freedom: int, level: float) -> float:
    """Return the quantile of the χ² distribution for a confidence level."""
    from scipy import special  # here, because importing it is slow

    return float(special.chdtri(freedom, 1.0 - level))


def pole_uncertainties(covariance: ParameterCovariance, dt: float | None) -> tuple[PoleUncertainty, ...]:
    """Return the poles of continuous time, mode by mode: s = log(λ)/dt, with the covariances of λ times |ds/dλ|²."""
    model = covariance.model
    meeting = dict(_ambiguous_pairs(model, covariance.matrix, dt))
    uncertainties = []
    modes = zip(first_states(model.is_pair), model.poles.tolist(), model.is_pair.tolist(), strict=True)
    for number, (first, pole, pair) in enumerate(modes):
        if dt is None:
            slope, s = 1.0 + 0.0j, complex(pole)
        elif not pole:
            slope, s = complex(np.inf), complex(-np.inf)
        else:
            slope, s = 1.0 / (pole * dt), complex(np.log(complex(pole)) / dt)
        turn = np.array([[slope.real, -slope.imag], [slope.imag, slope.real]])[: 1 + pair, : 1 + pair]
        states = slice(first, first + 1 + pair)
        matrix = turn @ covariance.matrix[states, states] @ turn.T
        uncertainties.append(PoleUncertainty(s, matrix, pair, meeting.get(number)))
    return tuple(uncertainties)


def _ambiguous_pairs(
    model: ModalModel, covariance: Matrix, dt: float | None
) -> Iterator[tuple[int, AmbiguousPolePair]]:
    """Yield modes that may meet another, or their own conjugate, with the two of them; real poles occur once at most.

    A pair a ± bj has μ = a, Δ = −b²; two real poles have μ = (λ₁ + λ₂)/2, Δ = ((λ₁ − λ₂)/2)².
    """
    starts = first_states(model.is_pair)
    for number in np.flatnonzero(model.is_pair).tolist():
        pole, states = model.poles[number], slice(starts[number], starts[number] + 2)
        slopes = np.array([[1.0, 0.0], [0.0, -2.0 * pole.imag]])
        two = AmbiguousPolePair(
            float(pole.real), float(-(pole.imag**2)), slopes @ covariance[states, states] @ slopes.T, dt
        )
        if two.reaches_zero(_AMBIGUITY_LEVEL):
            yield number, two
    for first, second in _nearest_real_pairs(model):
        at = [starts[first], starts[second]]
        half = 0.5 * float(model.poles[first].real - model.poles[second].real)
        mean = 0.5 * float(model.poles[first].real + model.poles[second].real)
        slopes = np.array([[0.5, 0.5], [half, -half]])
        two = AmbiguousPolePair(mean, half**2, slopes @ covariance[np.ix_(at, at)] @ slopes.T, dt)
        if two.reaches_zero(_AMBIGUITY_LEVEL):
            yield first, two
            yield second, two


def _nearest_real_pairs(model: ModalModel) -> Iterator[tuple[int, int]]:
    """Yield pairs of real poles, the closest first, each pole once."""
    real = np.flatnonzero(~model.is_pair)
    values = model.poles[real].real
    first, second = np.triu_indices(len(real), 1)
    free = np.ones(len(real), dtype=bool)
    for pair in np.argsort(np.abs(values[first] - values[second]), kind="stable").tolist():
        i, j = int(first[pair]), int(second[pair])
        if free[i] and free[j]:
            free[i] = free[j] = False
            yield int(real[i]), int(real[j])
