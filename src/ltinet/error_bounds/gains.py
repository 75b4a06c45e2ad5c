"""Finite-horizon peak-to-peak gains of neurons, and error bounds of layers based on them.

Neurons: m ξ̈ + c ξ̇ + k ξ = f at rest has ξ = h ∗ f. If |f| ≤ 1 up to T, then |ξ| ≤ ∫₀ᵀ|h| and |ξ̇| ≤ ∫₀ᵀ|ḣ|, and no
smaller bounds hold. Both integrals have closed forms: between sign changes of h the integral is a difference of step
responses, and the sign changes of an oscillation are evenly spaced, so that their sum is geometric. The integral of
|ḣ| is the total variation of h. The horizon may be infinite for stable neurons; all functions take arrays of neurons.

Layers: the error of z' = F z + … obeys ε' = F ε + d, hence e_i ≤ Γ_i (|d_i| + Σ_{j>i} |F_ij| e_j), solved from the last
neuron to the first at a cost linear in the connections. With a growth rate σ errors are measured in units of exp(σt),
which keeps the gains of unstable neurons moderate; the least bound over several σ is used.

Rounding: exact steps of length h commit at most a few eps of the largest state per step. Decomposition: with
x = X z the network solves z' = (F + ΔF) z + (G + ΔG) u with ΔF = X⁻¹(A X − X F) and ΔG = X⁻¹(B − X G), and its
outputs have Φ + ΔΦ with ΔΦ = C X − Φ. A bound b without the feedback of ε and a contraction r give ε ≤ b/(1 − r).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import commutator, product_difference
from ltinet._util.floating_point import EPS, Array
from ltinet._util.phi_functions import phi1

_SERIES_TERMS = 26  # of a power series in |z| ≤ 1 with denominators (j + 2)!: the rest is below eps
_SERIES_RADIUS = 1.0  # |root · T| up to which the power series is used
_ROOT_SEPARATION = 0.25  # (d/|larger root|) real roots a ± d at this distance are subtracted without cancellation
# σ above the fastest growth, in units of 1/horizon: a chain of k neurons of equal growth is bounded best at σ ≈ k.
_GROWTH_OFFSETS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
_MIN_DAMPED_FREQUENCY = 1e-3  # ω/√k below which a pair is not split into two complex numbers


# Neurons


class Gains(NamedTuple):
    """Gains ∫|h| and ∫|ḣ| from the right-hand side to ξ and to ξ̇."""

    value: Array
    rate: Array


def first_order_gains(c: Array, k: Array, *, horizon: float) -> Gains:
    """Return gains of c ξ̇ + k ξ = f, with h = exp(−k t/c)/c.

    The gain to ξ̇ contains the impulse in ḣ, the direct path from f to ξ̇ = (f − k ξ)/c.
    """
    root = -k / c
    with np.errstate(over="ignore"):
        if np.isfinite(horizon):
            growth = np.asarray(horizon * phi1(root * horizon))
        else:
            growth = np.where(root < 0.0, -1.0 / np.where(root < 0.0, root, 1.0), np.inf)
    value = growth / np.abs(c)
    moving = np.where(root == 0.0, 0.0, np.abs(root)) * np.where(root == 0.0, 0.0, value)
    return Gains(value, 1.0 / np.abs(c) + moving)


def second_order_gains(m: Array, c: Array, k: Array, *, horizon: float) -> Gains:
    """Return gains of m ξ̈ + c ξ̇ + k ξ = f with any roots a ± d, complex, equal or real, in either half plane."""
    a = -0.5 * c / m
    discriminant = a * a - k / m
    value, rate = np.empty(a.shape), np.empty(a.shape)
    under = discriminant < 0.0
    over = ~under
    if np.any(under):
        value[under], rate[under] = _underdamped_gains(a[under], np.sqrt(-discriminant[under]), horizon)
    if np.any(over):
        value[over], rate[over] = _overdamped_gains(a[over], np.sqrt(discriminant[over]), (k / m)[over], horizon)
    return Gains(value / np.abs(m), rate / np.abs(m))


def _underdamped_gains(a: Array, omega: Array, horizon: float) -> tuple[Array, Array]:
    """Return ∫|h| and ∫|ḣ| of h = exp(at) sin(ωt)/ω, where h(t + π/ω) = −q h(t) with q = exp(aπ/ω)."""
    half_period = np.pi / omega
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        factor = np.exp(a * half_period)
        n_halves = np.floor(horizon / half_period)  # complete half periods
        rest = np.where(np.isfinite(n_halves), horizon - n_halves * half_period, 0.0)
        grown = np.where(np.isfinite(n_halves), np.exp(a * half_period * n_halves), 0.0)
        complete = np.where(n_halves > 0.0, (1.0 + factor) * _geometric_sum(a * half_period, n_halves), 0.0)
        value = complete / (a * a + omega * omega) + grown * _underdamped_step(a, omega, rest)
        # ḣ = 0 first at the peak, then every half period: h is monotone in between.
        peak_time = np.arctan2(omega, -a) / omega
        peak = np.exp(a * peak_time) * np.sin(omega * peak_time) / omega
        n_peaks = np.floor((horizon - peak_time) / half_period)
        sign = np.where(np.isfinite(n_peaks) & (n_peaks % 2.0 != 0.0), -1.0, 1.0)
        last = np.where(np.isfinite(n_peaks), sign * np.exp(a * half_period * n_peaks), 0.0) * peak
        end = np.exp(a * horizon) * np.sin(omega * horizon) / omega if np.isfinite(horizon) else np.zeros_like(a)
        between = np.where(n_peaks > 0.0, (1.0 + factor) * _geometric_sum(a * half_period, n_peaks), 0.0)
        variation = peak * (1.0 + between) + np.abs(end - last)
    return value, np.where(horizon > peak_time, variation, np.abs(end))


def _overdamped_gains(a: Array, d: Array, product: Array, horizon: float) -> tuple[Array, Array]:
    """Return ∫|h| and ∫|ḣ| of h = exp(at) sinh(dt)/d ≥ 0, which has at most one peak."""
    # The roots a ± d without cancellation: the larger one by magnitude, and the other from the product.
    larger = a + np.copysign(d, a)
    other = np.where(larger == 0.0, 0.0, product / np.where(larger == 0.0, 1.0, larger))
    slow, fast = np.where(np.signbit(a), other, larger), np.where(np.signbit(a), larger, other)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(horizon):
            peak = np.where(slow < 0.0, _overdamped_impulse(slow, d, _peak_time(slow, d)), np.inf)
            return np.where(slow < 0.0, 1.0 / np.where(slow < 0.0, product, 1.0), np.inf), 2.0 * peak
        value = _overdamped_step(a, d, slow, fast, product, horizon)
        peak_time = np.where(slow < 0.0, _peak_time(slow, d), np.inf)
        end = _overdamped_impulse(slow, d, np.full_like(a, horizon))
        peak = _overdamped_impulse(slow, d, np.minimum(peak_time, horizon))
    return value, np.where(peak_time < horizon, 2.0 * peak - end, end)


def _peak_time(slow: Array, d: Array) -> Array:
    """Return the time at which ḣ = 0: log(fast/slow)/(slow − fast), or 1/|root| in the critical case."""
    size = np.where(slow < 0.0, -slow, 1.0)
    ratio = 2.0 * d / size
    return np.asarray(np.where(ratio > 0.0, np.log1p(ratio) / np.where(ratio > 0.0, ratio, 1.0), 1.0) / size)


def _overdamped_impulse(slow: Array, d: Array, t: Array) -> Array:
    """Return exp(at) sinh(dt)/d = t exp(slow t) φ₁(−2dt)."""
    return np.asarray(t * np.exp(slow * t) * phi1(-2.0 * d * t))


def _overdamped_step(a: Array, d: Array, slow: Array, fast: Array, product: Array, T: float) -> Array:
    """Return the step response ∫₀ᵀh of real roots: T² times the divided difference of φ₁ at both roots times T."""
    largest = np.maximum(np.abs(slow), np.abs(fast))
    small, apart = largest * T <= _SERIES_RADIUS, d >= _ROOT_SEPARATION * largest
    distance = np.where(apart & ~small, 2.0 * d, 1.0)
    separate = T * (phi1(slow * T) - phi1(fast * T)) / distance
    # Close roots: exp(aT) sinh(dT)/d and exp(aT) cosh(dT) are smooth in d, and neither root is near zero.
    cosh = 0.5 * (np.exp(slow * T) + np.exp(fast * T))
    close = (1.0 + a * _overdamped_impulse(slow, d, np.full_like(a, T)) - cosh) / np.where(apart | small, 1.0, product)
    return np.where(small, _step_series(2.0 * a * T, product * T * T) * T * T, np.where(apart, separate, close))


def _underdamped_step(a: Array, omega: Array, t: Array) -> Array:
    """Return the step response ∫₀ᵗh of complex roots, for t up to half a period."""
    product = a * a + omega * omega
    small = product * t * t <= _SERIES_RADIUS
    sinc = np.where(omega * t > 0.0, np.sin(omega * t) / omega, t)
    closed_form = (1.0 + np.exp(a * t) * (a * sinc - np.cos(omega * t))) / product
    return np.where(small, _step_series(2.0 * a * t, product * t * t) * t * t, closed_form)


def _step_series(total: Array, product: Array) -> Array:
    """Return Σ H_j/(j + 2)! with H_j the complete symmetric polynomials of two roots, from their sum and product."""
    before, now = np.zeros_like(total), np.ones_like(total)
    factorial, result = 2.0, np.full_like(total, 0.5)
    usable = np.abs(total) <= 2.0 * _SERIES_RADIUS  # elsewhere the result is not used and must not overflow
    total, product = np.where(usable, total, 0.0), np.where(usable & (np.abs(product) <= _SERIES_RADIUS), product, 0.0)
    for j in range(1, _SERIES_TERMS):
        before, now = now, total * now - product * before
        factorial *= j + 2
        result = result + now / factorial
    return result


def _geometric_sum(exponent: Array, count: Array) -> Array:
    """Return 1 + q + … + q^(count − 1) with q = exp(exponent); no terms for negative counts."""
    number = np.maximum(count, 0.0)
    finite = np.isfinite(number)
    flat = exponent == 0.0
    ratio = np.expm1(exponent * np.where(finite, number, 1.0)) / np.expm1(np.where(flat, 1.0, exponent))
    infinite_sum = np.where(exponent < 0.0, -1.0 / np.expm1(np.where(exponent < 0.0, exponent, 1.0)), np.inf)
    return np.where(finite, np.where(flat, number, ratio), infinite_sum)


# Layers: e ≤ G e + δ with G ≥ 0 strictly upper triangular


@dataclass(frozen=True, eq=False)
class LayerEquations:
    """Equations z' = F z + G u of a layer, with (ξ of all neurons, then ξ̇ of second-order ones) = z + J u."""

    F: Array
    G: Array
    J: Array
    state_indices: tuple[tuple[int, ...], ...]
    """For each neuron the indices of its ξ and, if it is of second order, of its ξ̇ in z."""

    @property
    def n_states(self) -> int:
        """Length of z."""
        return len(self.F)


def layer_state_indices(is_second_order: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Return the indices of ξ and ξ̇ of each neuron among the states of its layer."""
    rates = (len(is_second_order) + np.cumsum(is_second_order) - 1).tolist()
    return tuple((i, rates[i]) if second else (i,) for i, second in enumerate(is_second_order.tolist()))


@dataclass(frozen=True, eq=False)
class LayerGains:
    """Gains of all neurons of a layer, for some growth rates."""

    equations: LayerEquations
    growths: Array
    """σ, `(S,)`."""
    matrices: tuple[Array, ...]
    """Γ_i, `(S, 1, 1)` or `(S, 2, 2)`: from the right-hand side of the rows of a neuron in z' to its ξ and ξ̇."""

    def propagate(self, source: Array) -> Array:
        """Return bounds e `(S, …, n)` on the states from bounds `(S, …, n)` on terms added to z' = F z."""
        weights = np.abs(self.equations.F)
        errors = np.zeros_like(source)
        for indices, gain in zip(reversed(self.equations.state_indices), reversed(self.matrices), strict=True):
            rows = list(indices)
            # The errors of this neuron are still zero: its feedback to itself is part of its gains.
            entering = source[..., rows] + errors @ weights[rows].T
            errors[..., rows] = entering @ gain.transpose(0, 2, 1)
        return errors

    def propagate_in_time(self, source: Array, *, cells: Array) -> Array:
        """Return bounds e `(cells, n)` from bounds `(cells, n)` on terms added to z' in each cell of time.

        The least of the bounds for all growth rates; later cells do not contribute to a cell.
        """
        since, until = (np.multiply.outer(self.growths, edges - cells[0]) for edges in (cells[:-1], cells[1:]))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.maximum.accumulate(source * np.exp(-since)[..., None], axis=1)
            errors = self.propagate(scaled) * np.exp(until)[..., None]
        return np.asarray(np.fmin.reduce(errors, axis=0))


def layer_gains(equations: LayerEquations, *, horizon: float) -> LayerGains:
    """Return gains for the growth rate 0, and for unstable layers also at and above their fastest growth."""
    neurons = equations.state_indices
    first = np.array([indices[0] for indices in neurons if len(indices) == 1], dtype=np.intp)
    second = np.array([indices for indices in neurons if len(indices) == 2], dtype=np.intp).reshape(-1, 2)
    values, rates = second.T
    roots, k, c = equations.F[first, first], -equations.F[rates, values], -equations.F[rates, rates]
    slowest_decay = -0.5 * c + np.sqrt(np.maximum(0.25 * c * c - k, 0.0))
    fastest = float(np.max(np.concatenate([roots, slowest_decay]), initial=0.0))
    growths = np.zeros(1)
    if fastest > 0.0 and 0.0 < horizon < np.inf:
        growths = np.array([0.0, *(fastest + offset / horizon for offset in _GROWTH_OFFSETS)])
    sigma = growths[:, None]
    one = first_order_gains(np.ones_like(roots), sigma - roots, horizon=horizon).value
    two = second_order_gains(*np.broadcast_arrays(1.0, c + 2.0 * sigma, k + sigma * (c + sigma)), horizon=horizon)
    # ∫|exp(At)| exp(−σt) of A = [[0, 1], [−k, −c]], whose exponential has the columns (ḣ + c h, −k h) and (h, ḣ).
    rate = two.rate + sigma * two.value
    pairs = np.array([[rate + np.abs(c) * two.value, two.value], [np.abs(k) * two.value, rate]]).transpose(3, 2, 0, 1)
    singles, doubles = iter(one.T), iter(pairs)
    matrices = tuple(next(singles)[:, None, None] if len(indices) == 1 else next(doubles) for indices in neurons)
    return LayerGains(equations, growths, matrices)


def theorem2_constant(gains: LayerGains) -> float:
    """Return the constant 1 + C + … + C^(n_l − 1) of the proof of Theorem 2, C the largest gain of a neuron's inputs.

    Infinite where it overflows.
    """
    equations, weights = gains.equations, np.abs(gains.equations.F)
    largest = 0.0
    for indices, gain in zip(equations.state_indices, gains.matrices, strict=True):
        entering = weights[list(indices)].copy()
        entering[:, indices] = 0.0
        largest = max(largest, float(np.max(gain[0] @ np.sum(entering, axis=1))))
    with np.errstate(over="ignore"):  # a power of Python numbers would raise
        return float(np.sum(np.float64(largest) ** np.arange(len(equations.state_indices))))


def layer_error_constant(gains: LayerGains) -> float:
    """Return the largest row sum of (I − G)⁻¹, which replaces the constant of Theorem 2."""
    weights = np.abs(gains.equations.F)
    errors = np.zeros(gains.equations.n_states)
    for indices, gain in zip(reversed(gains.equations.state_indices), reversed(gains.matrices), strict=True):
        rows = list(indices)
        errors[rows] = 1.0 + gain[0] @ (weights[rows] @ errors)
    return float(np.max(errors, initial=0.0))


# Rounding of exact steps


class LayerRounding(NamedTuple):
    """Bounds on the states of a layer and on their rounding errors in every cell of time."""

    size: Array
    error: Array


def bound_rounding(
    gains: LayerGains, *, largest_input: Array, start: Array, step: float, cells: Array
) -> LayerRounding:
    """Bound the rounding errors of exact steps of length `step`, for inputs up to `largest_input` `(m,)`.

    A step forms e^{Fh} z + … from sums of n + m products, and errs by that many roundings of its terms: the state, and
    what enters during the step. All states of a layer mix in it, so that rounding is relative to the largest of them.
    No input is needed, only its size: the states are bounded by gains.
    """
    equations = gains.equations
    n_states, n_inputs = equations.G.shape
    entering = np.abs(equations.G) @ largest_input
    from_start = np.abs(equations.F) @ np.abs(start)  # z = z(0) + w, and w' = F w + F z(0) + G u starts at zero
    source = np.broadcast_to(entering + from_start, (len(cells) - 1, n_states))
    size = np.abs(start) + gains.propagate_in_time(source, cells=cells)
    scale = _rounding_scale(equations, size)
    relative = (n_states + n_inputs + 8) * EPS
    errors = relative * (scale / step + scale @ np.abs(equations.F).T + entering)
    return LayerRounding(size, gains.propagate_in_time(errors, cells=cells) + relative * scale)


def _rounding_scale(equations: LayerEquations, size: Array) -> Array:
    """Return the size to which rounding in each state is relative: the largest of the layer, or a single pair's modulus.

    A pair a ± iω steps as one complex number ξ − i (ξ̇ − a ξ)/ω.
    """
    F = equations.F
    if len(equations.state_indices) == 1 and len(F) == 2:
        a, stiffness = 0.5 * float(F[1, 1]), -float(F[1, 0])
        if stiffness - a * a > _MIN_DAMPED_FREQUENCY**2 * stiffness > 0.0:
            omega = np.sqrt(stiffness - a * a)
            modulus = size[:, :1] + (size[:, 1:] + abs(a) * size[:, :1]) / omega
            return np.hstack([modulus, np.sqrt(stiffness) * modulus])
    return np.repeat(np.max(size, axis=1, initial=0.0, keepdims=True), len(F), axis=1)


# Decomposition error


@dataclass(frozen=True, eq=False)
class DecompositionMismatch:
    """Bounds on |ΔF|, |ΔG| and |ΔΦ|, the distance of a network from its system, and on rounding of X⁻¹ x."""

    F: Array
    G: Array
    Phi: Array
    start: Array
    """(n × n): rounding of X⁻¹ x per unit of |z|."""


def measure_mismatch(
    A: Array, X: Array, X_inv: Array, *, F: Array, G: Array, Phi: Array, B: Array | None, C: Array | None
) -> DecompositionMismatch:
    """Measure ΔF, ΔG and ΔΦ in extended precision; where B or C is None, rounding of G or Φ takes their place.

    Cost O(n³).
    """
    n = len(A)
    amplified = (n + 4) * EPS * (np.abs(X_inv) @ np.abs(X))  # X_inv X = I up to this, and so is all that it multiplies
    in_F = np.abs(X_inv @ commutator(A, X, F))
    in_G = amplified @ np.abs(G) if B is None else np.abs(X_inv @ product_difference(B, X, G))
    in_Phi = np.abs(Phi) @ amplified if C is None else np.abs(product_difference(Phi, C, X))
    return DecompositionMismatch(in_F + amplified @ in_F, in_G + amplified @ in_G, in_Phi, amplified)


def bound_decomposition(
    layers: tuple[LayerGains, ...], mismatch: DecompositionMismatch, *, size: Array, largest_input: Array, start: Array,
    cells: Array,
) -> Array:  # fmt: skip
    """Return bounds `(cells, n)` on the effect of the mismatch on the states, whose sizes are at most `size`.

    ε' = F ε + ΔF (z + ε) + ΔG u: a bound b without the ε on the right and a contraction r with K b ≤ r b, where K is
    the propagation of ΔF ε through the layers, give ε ≤ b/(1 − r).
    """
    shift = mismatch.start @ np.abs(start)
    F_shift = [np.abs(gains.equations.F) @ part for gains, part in _split_by_layer(layers, shift)]
    source = size @ mismatch.F.T + mismatch.G @ largest_input + np.concatenate([np.zeros(0), *F_shift])
    first = shift + _propagate_layers(layers, source, cells=cells)
    second = _propagate_layers(layers, first @ mismatch.F.T, cells=cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        contraction = float(np.max(np.where(second > 0.0, second / first, 0.0), initial=0.0))
    return first / (1.0 - contraction) if contraction < 1.0 else np.full(first.shape, np.inf)


def _propagate_layers(layers: tuple[LayerGains, ...], source: Array, *, cells: Array) -> Array:
    parts = [gains.propagate_in_time(part, cells=cells) for gains, part in _split_by_layer(layers, source)]
    return np.concatenate([source[..., :0], *parts], axis=-1)


def _split_by_layer(layers: tuple[LayerGains, ...], values: Array) -> list[tuple[LayerGains, Array]]:
    """Return the values of each layer, from the last axis."""
    sizes = [gains.equations.n_states for gains in layers]
    return list(zip(layers, np.split(values, np.cumsum(sizes)[:-1], axis=-1), strict=True)) if layers else []
