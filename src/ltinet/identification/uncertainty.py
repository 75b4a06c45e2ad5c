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
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.linear_parameters import DrivenModel, Trend
from ltinet.identification.modal_model import ModalModel, component_mask, input_factor, log_poles
from ltinet.identification.preprocessing import fit_autoregression
from ltinet.identification.records import Record, n_samples
from ltinet.identification.sensitivities import (
    MAX_PARAMETERS,
    ParameterLayout,
    RecordResiduals,
    Sensitivities,
    record_residuals,
)
from ltinet.simulation.propagators import phi_functions
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.uncertainty
# How certain the parameters of a model are: (JᵀJ)⁻¹ JᵀΣJ (JᵀJ)⁻¹ with the Σ that the residuals show.
#
# J are the derivatives of the simulated outputs by the parameters, outputs in units of their residuals, as the refinement
# weights them. The usual (JᵀJ)⁻¹ holds for white residuals alone: under noise that lasts its regions are too small. Here
# every output has an autoregressive model of its residuals, e = w / a(q), with innovations w that outputs share, so that
# Σ = L (W ⊗ I) Lᵀ with L the filters 1/a: JᵀΣJ takes one run of the derivatives through the filters, backwards in time.
#
# That is the covariance of the closest model. One that a subspace method gave and that no refinement moved stands beside
# it, by (JᵀJ)⁻¹Jᵀe to first order: this step counts as a deviation of its own.


@dataclass(frozen=True, eq=False)
class ParameterCovariance:
    """The covariance of the parameters of a model `(n_shared, n_shared)`, in the order of `parameters`."""

    parameters: ParameterLayout
    matrix: Matrix
    gain: Matrix
    """Units of outputs by units of inputs `(p, m)`, where parameters are told in units of the records."""

    @property
    def model(self) -> ModalModel:
        """The model whose parameters they are."""
        return self.parameters.like


def parameter_covariance(
    linear: DrivenModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend
) -> ParameterCovariance | None:
    """The covariance of all parameters that belong to the model and not to a record.

    None where they are too many, more than the samples say, or where some of them move no output.
    """
    parameters = ParameterLayout(linear.model, feedthrough, trend, len(records))
    n_values = n_samples(records) * linear.model.n_outputs
    if len(parameters) > MAX_PARAMETERS or n_values <= len(parameters):
        return None
    parts = record_residuals(linear, records)
    residuals = [own.residuals for own in parts]
    n_seen = sum(len(own) for own in residuals)
    scale = np.sqrt(sum((own**2).sum(axis=0) for own in residuals) / n_seen)
    if not np.all(scale > 0.0):
        return None
    slopes = Sensitivities(parameters, parts, scale)
    with single_blas_thread():
        R, side = slopes.triangle()
        n_local = len(parameters) - parameters.n_shared
        seen = R[n_local:, n_local:]
        size = np.linalg.norm(R[:, n_local:], axis=0)
        if not np.all(np.abs(seen.diagonal()) > len(R) * EPS * size):
            return None
        middle = _sandwich_middle(slopes, parts, scale, R)[n_local:, n_local:]
        inverse = linalg.solve_triangular(seen, np.eye(len(seen)), check_finite=False)
        step = inverse @ side[n_local:]
    lost = n_values / (n_values - len(parameters))  # residuals are smaller than the noise by what was fitted
    matrix = (n_seen / n_samples(records)) * (lost * inverse @ middle @ inverse.T + np.outer(step, step))
    ones = np.ones_like(linear.model.D)
    return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), ones)


def _sandwich_middle(slopes: Sensitivities, parts: list[RecordResiduals], scale: Array, R: Matrix) -> Matrix:
    """QᵀΣQ, outputs in units of their residuals."""
    from scipy.signal import lfilter  # here, because it takes longer to import than the rest

    filters, W = innovation_model([own.residuals / scale for own in parts])
    total = np.zeros_like(R)
    for number in range(len(parts)):
        memory = [np.zeros((len(own) - 1, len(R))) for own in filters]
        for columns in slopes.backwards(number):
            shape = columns.shape
            Q = linalg.solve_triangular(R, columns.reshape(-1, len(R)).T, trans="T", check_finite=False).T
            turned = np.ascontiguousarray(Q).reshape(shape)[:, ::-1]
            for output, own in enumerate(filters):
                if len(own) > 1:
                    turned[output], memory[output] = lfilter([1.0], own, turned[output], axis=0, zi=memory[output])
            mixed = np.einsum("oq,qtk->otk", W, turned)
            total += turned.reshape(-1, len(R)).T @ mixed.reshape(-1, len(R))
    return total


def innovation_model(residuals: list[Array]) -> tuple[list[Array], Matrix]:
    """For every output the filter that whitens its residuals `(q, p)`; and the covariance of what is then left."""
    p = residuals[0].shape[1]
    filters = [fit_autoregression([own[:, [output]] for own in residuals]) for output in range(p)]
    longest = max(map(len, filters))
    total, count = np.zeros((p, p)), 0
    for own in residuals:
        n = len(own) - longest + 1
        if n > 0:
            left = np.stack([np.convolve(own[:, j], filters[j])[longest - 1 : len(own)] for j in range(p)])
            total += left @ left.T
            count += n
    return filters, total / max(count, 1)


# MERGED ltinet.identification.uncertainty
# What the covariance of parameters means for the frequency response and for the step response.
#
# To first order: a function of the parameters with the gradient g has the variance gᵀ P g. Responses are sums over modes
# of T[c b K(λ)], with K the response of a mode of continuous time whose input weight at samples is 1, and T a real-linear
# map: the real part for step responses, (X(ω) + conj X(−ω))/2 for frequency responses.

NORMAL_QUANTILE_99 = 2.5758293035489004  # of a normal number: 99 % lie within as many standard deviations
_POLE_STEP = 1e-6  # of a pole: the distance for derivatives of K, whose own digits matter little
_CHUNK_SIZE = 2**21  # numbers of a gradient that are held together


@final
@dataclass(frozen=True, eq=False)
class FrequencyBand:
    """A frequency response `(len(omega), p, m)` and how certain it is."""

    omega: Array
    response: Complex
    covariance: Array
    """Of real and imaginary part of every entry, `(len(omega), p, m, 2, 2)`."""

    @property
    def magnitude_deviation(self) -> Array:
        """Standard deviation of 20 log₁₀|H|, in dB."""
        return np.asarray(20.0 / np.log(10.0) * self._relative(self.response.conj()))

    @property
    def phase_deviation(self) -> Array:
        """Standard deviation of the phase, in radians."""
        return self._relative(-1j * self.response.conj())

    def _relative(self, turn: Complex) -> Array:
        """Standard deviation of Re(turn · H)/|H|²."""
        along = np.stack([turn.real, -turn.imag], axis=-1)
        variance = np.einsum("...i,...ij,...j->...", along, self.covariance, along)
        size = np.abs(self.response) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):  # where the response is 0 its logarithm is not known
            return np.asarray(np.where(size > 0.0, np.sqrt(np.maximum(variance, 0.0)) / size, np.inf))


@final
@dataclass(frozen=True, eq=False)
class StepBand:
    """Step responses `(len(t), p, m)` of every output to every input, and their standard deviations."""

    t: Array
    response: Array
    deviation: Array


def frequency_band(found: ParameterCovariance, omega: Array, dt: float | None) -> FrequencyBand:
    """H(jω) of continuous time with its covariances; dt is None where the modes are those of continuous time."""
    responses, covariances = [], []
    for some in _point_chunks(omega, found):
        value, gradient = response_gradient(found.parameters, some, dt=dt)
        spread = gradient @ found.matrix
        parts, seen = [gradient.real, gradient.imag], [spread.real, spread.imag]
        rows = [[np.einsum("xpmk,xpmk->xpm", a, b) for b in parts] for a in seen]
        responses.append(value)
        covariances.append(np.stack([np.stack(row, axis=-1) for row in rows], axis=-2))
    squared = (found.gain**2)[..., None, None]
    response = np.concatenate(responses) * found.gain
    return FrequencyBand(omega, response, squared * np.concatenate(covariances))


def response_gradient(parameters: ParameterLayout, omega: Array, *, dt: float | None) -> tuple[Complex, Complex]:
    """H(jω) `(len(omega), p, m)` of continuous time, and its gradient by the parameters of the model."""
    model, both = parameters.like, np.concatenate([omega, -omega])

    def kernel(poles: Complex) -> Complex:
        with np.errstate(divide="ignore", invalid="ignore"):  # an integrator at ω = 0 has no response
            return np.asarray(_weight(poles, model, dt) / (1j * both[:, None] - _mode_exponents(poles, dt)))

    def combined(values: Complex) -> Complex:
        half = len(values) // 2
        return 0.5 * (values[:half] + values[half:].conj())

    return _response(parameters, kernel, combined, smallest=float(omega[omega > 0.0].min(initial=np.inf)))


def step_band(found: ParameterCovariance, t: Array, dt: float | None) -> StepBand:
    """Responses to steps of 1 at t = 0, from rest."""
    responses, deviations = [], []
    for some in _point_chunks(t, found):

        def kernel(poles: Complex, some: Array = some) -> Complex:
            z = _mode_exponents(poles, dt) * some[:, None]
            return np.asarray(_weight(poles, found.model, dt) * some[:, None] * phi_functions(z)[0])

        def combined(values: Complex) -> Complex:
            return values.real.astype(np.complex128)

        smallest = 1.0 / float(some.max(initial=0.0)) if some.max(initial=0.0) > 0.0 else np.inf
        value, gradient = _response(found.parameters, kernel, combined, smallest=smallest)
        variance = np.einsum("xpmk,xpmk->xpm", gradient.real @ found.matrix, gradient.real)
        responses.append(value.real)
        deviations.append(np.sqrt(np.maximum(variance, 0.0)))
    return StepBand(t, found.gain * np.concatenate(responses), found.gain * np.concatenate(deviations))


def _point_chunks(points: Array, found: ParameterCovariance) -> list[Array]:
    """Points in portions for which gradients fit into memory; at least one."""
    model = found.model
    size = max(1, _CHUNK_SIZE // (model.n_inputs * model.n_outputs * (len(found.matrix) + 1)))
    return [points[begin : begin + size] for begin in range(0, max(len(points), 1), size)]


def _mode_exponents(poles: Complex, dt: float | None) -> Complex:
    return poles if dt is None else np.asarray(log_poles(poles) / dt)


def _weight(poles: Complex, model: ModalModel, dt: float | None) -> Complex:
    """By what b at samples becomes that of continuous time."""
    if dt is None:
        return np.ones_like(poles)
    return np.asarray(1.0 / (dt * input_factor(poles, linear=model.linear)))


def _response(
    parameters: ParameterLayout,
    kernel: Callable[[Complex], Complex],
    combined: Callable[[Complex], Complex],
    *,
    smallest: float,
) -> tuple[Complex, Complex]:
    """The response `(x, p, m)` and its gradient by the parameters of the model `(x, p, m, n_shared)`.

    `smallest` is the pole that would just be told from one at 0.
    """
    model, pairs = parameters.like, parameters.like.is_pair
    K = kernel(model.poles)
    step = _POLE_STEP * np.where(model.poles == 0.0, smallest if np.isfinite(smallest) else 1.0, model.poles)
    slope = (kernel(model.poles + step) - kernel(model.poles - step)) / (2.0 * step)
    p, m = model.n_outputs, model.n_inputs
    products = model.C[:, None, :] * model.B.T[None]  # (p, m, k)
    value = combined((K[:, None, None, :] * products).sum(axis=-1)) + model.D
    by_poles = _real_derivatives(slope[:, None, None, :] * products, pairs, combined)
    by_weights = _real_derivatives(
        K[:, None, :] * model.C, pairs, combined
    )  # (x, p, n): of one input, the same for all
    by_views = _real_derivatives(K[:, None, :] * model.B.T, pairs, combined)  # (x, m, n)
    x, n = len(value), model.order
    of_B, of_C = np.zeros((x, p, m, m, n), complex), np.zeros((x, p, m, p, n), complex)
    for j in range(m):
        of_B[:, :, j, j] = by_weights
    for i in range(p):
        of_C[:, i, :, i] = by_views
    columns = [by_poles, of_B[..., parameters.is_free], of_C.reshape(x, p, m, p * n)]
    if parameters.feedthrough:
        columns.append(np.broadcast_to(np.eye(p * m).reshape(p, m, p * m), (x, p, m, p * m)).astype(complex))
    return value, np.concatenate(columns, axis=-1)


def _real_derivatives(values: Complex, pairs: NDArray[np.bool_], combined: Callable[[Complex], Complex]) -> Complex:
    """Derivatives by real and, for pairs, imaginary parts, along the last axis."""
    by_real, by_imaginary = combined(values), combined(1j * values)
    columns = np.stack([by_real, by_imaginary], axis=-1).reshape(*by_real.shape[:-1], -1)
    return np.asarray(columns[..., component_mask(pairs)])


# MERGED ltinet.identification.uncertainty
# Regions that hold true poles: ellipses for pairs, intervals for real ones, and what lies between the two.
#
# To first order a pole moves by its gradient times what parameters move. Where two poles meet, a pair that could as well
# be two real ones, there is no first order: with mean μ and discriminant Δ they are μ ± √Δ, and a root has no slope at 0.
# But μ and Δ, coefficients of the quadratic, move smoothly through it. So wherever 99 % of them reach beyond Δ = 0, both
# poles share a region told in μ and Δ, at samples.

_AMBIGUITY_LEVEL = 0.99  # at which two poles that may meet are told together
_REAL_TOLERANCE = 1e-9  # of a pole: an imaginary part below is none


@final
@dataclass(frozen=True, eq=False)
class AmbiguousPolePair:
    """Two poles μ ± √Δ, of which records do not tell whether they are a pair (Δ < 0) or real (Δ > 0)."""

    mean: float
    discriminant: float
    covariance: Matrix
    """Of mean and discriminant, `(2, 2)`."""
    dt: float | None
    """At samples poles are eˢᵈᵗ; None where they are those of continuous time themselves."""

    def contains(self, pole: complex, *, level: float) -> bool:
        """Whether a pole of continuous time is one of two within the region."""
        if self.dt is not None and abs(pole.imag) * self.dt > np.pi * (1.0 + _REAL_TOLERANCE):
            return False
        own = complex(np.exp(pole * self.dt)) if self.dt is not None else pole
        is_real = abs(own.imag) <= _REAL_TOLERANCE * abs(own)
        squared = self._nearest(own.real) if is_real else self._squared(own.real, -(own.imag**2))
        return bool(squared <= chi_square_quantile(2, level))

    def reaches_zero(self, level: float) -> bool:
        """Whether the region holds pairs and real poles."""
        return bool(self.discriminant**2 <= chi_square_quantile(2, level) * self.covariance[1, 1])

    def _squared(self, mean: float, discriminant: float) -> float:
        step = np.array([mean - self.mean, discriminant - self.discriminant])
        return float(step @ np.linalg.solve(self.covariance, step))

    def _nearest(self, pole: float) -> float:
        """The smallest distance of all pairs of real poles with this one among them: Δ = (pole − μ)²."""
        x = np.polynomial.Polynomial([0.0, 1.0])  # pole − μ
        along, across = pole - self.mean - x, x**2 - self.discriminant
        W = np.linalg.inv(self.covariance)
        squared = W[0, 0] * along**2 + 2.0 * W[0, 1] * along * across + W[1, 1] * across**2
        turns = squared.deriv().roots()
        return float(min(squared(own.real) for own in turns))


@final
@dataclass(frozen=True, eq=False)
class PoleUncertainty:
    """A pole of continuous time, of pairs that with Im > 0, and how certain it is."""

    pole: complex
    covariance: Matrix
    """Of its real part `(1, 1)`, for pairs of real and imaginary part `(2, 2)`."""
    is_pair: bool
    meeting: AmbiguousPolePair | None = None
    """Where it may be one of two real poles as well as of a pair: both of them."""

    @property
    def deviation(self) -> complex:
        """Standard deviations of the real and of the imaginary part."""
        sizes = np.sqrt(self.covariance.diagonal())
        return complex(sizes[0], sizes[1] if self.is_pair else 0.0)

    def contains(self, pole: complex, *, level: float = 0.99) -> bool:
        """Whether a pole (of a pair either one) lies within the region that holds the true one at this level."""
        if self.meeting is not None:
            return self.meeting.contains(complex(pole), level=level)
        away = complex(pole.real, abs(pole.imag)) - self.pole
        if not self.is_pair and abs(away.imag) > _REAL_TOLERANCE * abs(self.pole):  # only along the line is a region
            return False
        step = np.array([away.real, away.imag])[: len(self.covariance)]
        return bool(step @ np.linalg.solve(self.covariance, step) <= chi_square_quantile(len(step), level))


def chi_square_quantile(n_numbers: int, level: float) -> float:
    """The squared distance, in standard deviations, within which so many normal numbers are at this level."""
    from scipy import special  # here, because it takes its time

    return float(special.chdtri(n_numbers, 1.0 - level))


def pole_uncertainties(found: ParameterCovariance, dt: float | None) -> tuple[PoleUncertainty, ...]:
    """The poles of continuous time, mode by mode: log(λ)/dt, with what that does to small changes of λ."""
    model = found.model
    meeting = dict(_ambiguous_pairs(model, found.matrix, dt))
    told = []
    modes = zip(model.places(), model.poles.tolist(), model.is_pair.tolist(), strict=True)
    for number, (place, pole, pair) in enumerate(modes):
        slope, rate = _continuous_pole(pole, dt)
        turn = np.array([[slope.real, -slope.imag], [slope.imag, slope.real]])[: 1 + pair, : 1 + pair]
        own = slice(place, place + 1 + pair)
        told.append(PoleUncertainty(rate, turn @ found.matrix[own, own] @ turn.T, pair, meeting.get(number)))
    return tuple(told)


def _continuous_pole(pole: complex, dt: float | None) -> tuple[complex, complex]:
    """ds/dλ and s of a pole λ."""
    if dt is None:
        return 1.0 + 0.0j, complex(pole)
    if not pole:
        return complex(np.inf), complex(-np.inf)
    return 1.0 / (pole * dt), complex(np.log(complex(pole)) / dt)


def _ambiguous_pairs(
    model: ModalModel, covariance: Matrix, dt: float | None
) -> Iterator[tuple[int, AmbiguousPolePair]]:
    """For modes that may meet another, or their own conjugate: the two of them; each real pole in one at most."""
    places = model.places()
    for number in np.flatnonzero(model.is_pair).tolist():
        pole, own = model.poles[number], slice(places[number], places[number] + 2)
        two = _pole_pair(
            pole.real, -(pole.imag**2), np.array([[1.0, 0.0], [0.0, -2.0 * pole.imag]]), covariance[own, own], dt
        )
        if two.reaches_zero(_AMBIGUITY_LEVEL):
            yield number, two
    for first, second in _nearest_real_pairs(model):
        at = [places[first], places[second]]
        half = 0.5 * float(model.poles[first].real - model.poles[second].real)
        mean = 0.5 * float(model.poles[first].real + model.poles[second].real)
        two = _pole_pair(mean, half**2, np.array([[0.5, 0.5], [half, -half]]), covariance[np.ix_(at, at)], dt)
        if two.reaches_zero(_AMBIGUITY_LEVEL):
            yield first, two
            yield second, two


def _pole_pair(
    mean: float, discriminant: float, slopes: Array, covariance: Matrix, dt: float | None
) -> AmbiguousPolePair:
    return AmbiguousPolePair(float(mean), float(discriminant), slopes @ covariance @ slopes.T, dt)


def _nearest_real_pairs(model: ModalModel) -> Iterator[tuple[int, int]]:
    """Real poles in twos, the closest first, each once."""
    real = np.flatnonzero(~model.is_pair)
    values = model.poles[real].real
    first, second = np.triu_indices(len(real), 1)
    free = np.ones(len(real), dtype=bool)
    for place in np.argsort(np.abs(values[first] - values[second]), kind="stable").tolist():
        i, j = int(first[place]), int(second[place])
        if free[i] and free[j]:
            free[i] = free[j] = False
            yield int(real[i]), int(real[j])
