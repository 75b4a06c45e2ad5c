"""What the covariance of parameters means for the frequency response and for the step response.

To first order: a function of the parameters with the gradient g has the variance gᵀ P g. Responses are sums over modes
of T[c b K(λ)], with K the response of a mode of continuous time whose input weight at samples is 1, and T a real-linear
map: the real part for step responses, (X(ω) + conj X(−ω))/2 for frequency responses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.hold_factors import input_factor, rates
from ltinet.identification.modal_model import ModalModel, kept_parts
from ltinet.identification.parameters import Parameters
from ltinet.solve.steps.propagators import phi_functions

DEVIATIONS_99 = 2.5758293035489004  # of a normal number: 99 % lie within as many standard deviations
_NEARBY = 1e-6  # of a pole: the distance for derivatives of K, whose own digits matter little
_AT_ONCE = 2**21  # numbers of a gradient that are held together


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
    for some in _portions(omega, found):
        value, gradient = response_gradient(found.parameters, some, dt=dt)
        spread = gradient @ found.matrix
        parts, seen = [gradient.real, gradient.imag], [spread.real, spread.imag]
        rows = [[np.einsum("xpmk,xpmk->xpm", a, b) for b in parts] for a in seen]
        responses.append(value)
        covariances.append(np.stack([np.stack(row, axis=-1) for row in rows], axis=-2))
    squared = (found.gain**2)[..., None, None]
    response = np.concatenate(responses) * found.gain
    return FrequencyBand(omega, response, squared * np.concatenate(covariances))


def response_gradient(parameters: Parameters, omega: Array, *, dt: float | None) -> tuple[Complex, Complex]:
    """H(jω) `(len(omega), p, m)` of continuous time, and its gradient by the parameters of the model."""
    model, both = parameters.like, np.concatenate([omega, -omega])

    def kernel(poles: Complex) -> Complex:
        with np.errstate(divide="ignore", invalid="ignore"):  # an integrator at ω = 0 has no response
            return np.asarray(_weight(poles, model, dt) / (1j * both[:, None] - _rates(poles, dt)))

    def combined(values: Complex) -> Complex:
        half = len(values) // 2
        return 0.5 * (values[:half] + values[half:].conj())

    return _response(parameters, kernel, combined, smallest=float(omega[omega > 0.0].min(initial=np.inf)))


def step_band(found: ParameterCovariance, t: Array, dt: float | None) -> StepBand:
    """Responses to steps of 1 at t = 0, from rest."""
    responses, deviations = [], []
    for some in _portions(t, found):

        def kernel(poles: Complex, some: Array = some) -> Complex:
            z = _rates(poles, dt) * some[:, None]
            return np.asarray(_weight(poles, found.model, dt) * some[:, None] * phi_functions(z)[0])

        def combined(values: Complex) -> Complex:
            return values.real.astype(np.complex128)

        smallest = 1.0 / float(some.max(initial=0.0)) if some.max(initial=0.0) > 0.0 else np.inf
        value, gradient = _response(found.parameters, kernel, combined, smallest=smallest)
        variance = np.einsum("xpmk,xpmk->xpm", gradient.real @ found.matrix, gradient.real)
        responses.append(value.real)
        deviations.append(np.sqrt(np.maximum(variance, 0.0)))
    return StepBand(t, found.gain * np.concatenate(responses), found.gain * np.concatenate(deviations))


def _portions(points: Array, found: ParameterCovariance) -> list[Array]:
    """Points in portions for which gradients fit into memory; at least one."""
    model = found.model
    size = max(1, _AT_ONCE // (model.n_inputs * model.n_outputs * (len(found.matrix) + 1)))
    return [points[begin : begin + size] for begin in range(0, max(len(points), 1), size)]


def _rates(poles: Complex, dt: float | None) -> Complex:
    return poles if dt is None else np.asarray(rates(poles) / dt)


def _weight(poles: Complex, model: ModalModel, dt: float | None) -> Complex:
    """By what b at samples becomes that of continuous time."""
    if dt is None:
        return np.ones_like(poles)
    return np.asarray(1.0 / (dt * input_factor(poles, linear=model.linear)))


def _response(
    parameters: Parameters,
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
    step = _NEARBY * np.where(model.poles == 0.0, smallest if np.isfinite(smallest) else 1.0, model.poles)
    slope = (kernel(model.poles + step) - kernel(model.poles - step)) / (2.0 * step)
    p, m = model.n_outputs, model.n_inputs
    products = model.C[:, None, :] * model.B.T[None]  # (p, m, k)
    value = combined((K[:, None, None, :] * products).sum(axis=-1)) + model.D
    by_poles = _parts(slope[:, None, None, :] * products, pairs, combined)
    by_weights = _parts(K[:, None, :] * model.C, pairs, combined)  # (x, p, n): of one input, the same for all
    by_views = _parts(K[:, None, :] * model.B.T, pairs, combined)  # (x, m, n)
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


def _parts(values: Complex, pairs: NDArray[np.bool_], combined: Callable[[Complex], Complex]) -> Complex:
    """Derivatives by real and, for pairs, imaginary parts, along the last axis."""
    by_real, by_imaginary = combined(values), combined(1j * values)
    columns = np.stack([by_real, by_imaginary], axis=-1).reshape(*by_real.shape[:-1], -1)
    return np.asarray(columns[..., kept_parts(pairs)])
