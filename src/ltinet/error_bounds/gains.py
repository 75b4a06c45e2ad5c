"""Finite-horizon peak-to-peak gains of neurons, and error bounds of layers based on them.

Neurons: m ξ̈ + c ξ̇ + k ξ = f at rest has ξ = h ∗ f. If |f| ≤ 1 up to T, then |ξ| ≤ ∫₀ᵀ|h| and |ξ̇| ≤ ∫₀ᵀ|ḣ|, and no
smaller bounds hold. Both integrals have closed forms: between sign changes of h the integral is a difference of step
responses, and the sign changes of an oscillation are evenly spaced, so that their sum is geometric.

Layers: the error of z' = F z + … obeys ε' = F ε + d, hence e_i ≤ Γ_i (|d_i| + Σ_{j>i} |F_ij| e_j), solved from the last
neuron to the first at a cost linear in the connections. With a growth rate σ errors are measured in units of exp(σt),
which keeps the gains of unstable neurons moderate; the least bound over several σ is used.

Rounding: exact steps of length h commit at most a few eps of the largest state per step. Decomposition: with
x = X z the network solves z' = (F + ΔF) z + (G + ΔG) u with ΔF = X⁻¹(A X − X F) and ΔG = X⁻¹(B − X G). A bound b
without the feedback of ε and a contraction r give ε ≤ b/(1 − r).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.extended_precision import commutator, product_difference

# MERGED ltinet.error_bounds.gains
# Finite-horizon L1 gains of single neurons in closed form: what bounds on errors are made of.
#
# A neuron m ξ̈ + c ξ̇ + k ξ = f that starts at rest has ξ = h ∗ f. If |f| ≤ 1 up to the time T, then |ξ| ≤ ∫₀ᵀ|h| and
# |ξ̇| ≤ ∫₀ᵀ|ḣ| there, and no smaller numbers will do (peak-to-peak gains). Between sign changes of h the integral is a
# difference of step responses; the sign changes of an oscillation are evenly spaced, so that their sum is geometric. The
# integral of |ḣ| is the total variation of h.
#
# A horizon may be infinite for stable neurons. All functions take arrays of neurons.

_SERIES_TERMS = 26  # of a power series in |z| ≤ 1 with denominators (j + 2)!: the rest is below eps
_SERIES_RADIUS = 1.0  # |root · T| up to which the power series is used
_ROOT_SEPARATION = 0.25  # real roots a ± d with d above this share of the larger one are far enough apart to subtract


class Gains(NamedTuple):
    """∫|h| and ∫|ḣ|: from the right-hand side to ξ and to ξ̇."""

    value: Array
    rate: Array


def neuron_gains(m: Array, c: Array, k: Array, *, horizon: float) -> Gains:
    """Gains of neurons of either order over `horizon`; m = 0 marks first order.

    The gain of a first-order neuron to ξ̇ contains the impulse in ḣ, the direct way from f to ξ̇ = (f − k ξ)/c.
    """
    m, c, k = np.broadcast_arrays(*(np.asarray(own, dtype=np.float64) for own in (m, c, k)))
    value, rate = np.empty(m.shape), np.empty(m.shape)
    first = m == 0.0
    value[first], rate[first] = first_order_gains(c[first], k[first], horizon=horizon)
    value[~first], rate[~first] = second_order_gains(m[~first], c[~first], k[~first], horizon=horizon)
    return Gains(value, rate)


def first_order_gains(c: Array, k: Array, *, horizon: float) -> Gains:
    """Gains of c ξ̇ + k ξ = f: h = exp(−k t/c)/c."""
    root = -k / c
    value = _growth_integral(root, horizon) / np.abs(c)
    moving = np.where(root == 0.0, 0.0, np.abs(root)) * np.where(root == 0.0, 0.0, value)
    return Gains(value, 1.0 / np.abs(c) + moving)


def second_order_gains(m: Array, c: Array, k: Array, *, horizon: float) -> Gains:
    """Gains of m ξ̈ + c ξ̇ + k ξ = f with any roots a ± d, complex, equal or real, in either half plane."""
    a = -0.5 * c / m
    discriminant = a * a - k / m
    value, rate = np.empty(a.shape), np.empty(a.shape)
    swings = discriminant < 0.0
    if np.any(swings):
        value[swings], rate[swings] = _underdamped_gains(a[swings], np.sqrt(-discriminant[swings]), horizon)
    if not np.all(swings):
        rests = ~swings
        value[rests], rate[rests] = _overdamped_gains(a[rests], np.sqrt(discriminant[rests]), (k / m)[rests], horizon)
    return Gains(value / np.abs(m), rate / np.abs(m))


def _underdamped_gains(a: Array, omega: Array, horizon: float) -> tuple[Array, Array]:
    """∫|h| and ∫|ḣ| of h = exp(at) sin(ωt)/ω; half a period on, h is −q times what it was, q = exp(aπ/ω)."""
    half = np.pi / omega
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        factor = np.exp(a * half)
        halves = np.floor(horizon / half)  # finished half periods
        left = np.where(np.isfinite(halves), horizon - halves * half, 0.0)
        grown = np.where(np.isfinite(halves), np.exp(a * half * halves), 0.0)
        full = np.where(halves > 0.0, (1.0 + factor) * _geometric_sum(a * half, halves), 0.0) / (a * a + omega * omega)
        value = full + grown * _underdamped_step(a, omega, left)
        # ḣ = 0 first at the peak, then every half period: h is monotone in between.
        peak_time = np.arctan2(omega, -a) / omega
        peak = np.exp(a * peak_time) * np.sin(omega * peak_time) / omega
        passed = np.floor((horizon - peak_time) / half)
        sign = np.where(np.isfinite(passed) & (passed % 2.0 != 0.0), -1.0, 1.0)
        last = np.where(np.isfinite(passed), sign * np.exp(a * half * passed), 0.0) * peak
        end = np.exp(a * horizon) * np.sin(omega * horizon) / omega if np.isfinite(horizon) else np.zeros_like(a)
        between = np.where(passed > 0.0, (1.0 + factor) * _geometric_sum(a * half, passed), 0.0)
        later = peak * (1.0 + between) + np.abs(end - last)
    return value, np.where(horizon > peak_time, later, np.abs(end))


def _overdamped_gains(a: Array, d: Array, product: Array, horizon: float) -> tuple[Array, Array]:
    """∫|h| and ∫|ḣ| of h = exp(at) sinh(dt)/d ≥ 0, which has at most one peak."""
    slow, fast = _real_roots(a, d, product)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(horizon):
            peak = np.where(slow < 0.0, _overdamped_impulse(slow, d, _peak_time(slow, d)), np.inf)
            return np.where(slow < 0.0, 1.0 / np.where(slow < 0.0, product, 1.0), np.inf), 2.0 * peak
        value = _overdamped_step(a, d, slow, fast, product, horizon)
        peak_time = np.where(slow < 0.0, _peak_time(slow, d), np.inf)
        end = _overdamped_impulse(slow, d, np.full_like(a, horizon))
        peak = _overdamped_impulse(slow, d, np.minimum(peak_time, horizon))
    return value, np.where(peak_time < horizon, 2.0 * peak - end, end)


def _real_roots(a: Array, d: Array, product: Array) -> tuple[Array, Array]:
    """A + d and a − d without cancellation: the larger one by magnitude, and the other from the product."""
    larger = a + np.copysign(d, a)
    other = np.where(larger == 0.0, 0.0, product / np.where(larger == 0.0, 1.0, larger))
    return np.where(np.signbit(a), other, larger), np.where(np.signbit(a), larger, other)


def _peak_time(slow: Array, d: Array) -> Array:
    """Where ḣ = 0: log(fast/slow)/(slow − fast); 1/|root| in the critical case."""
    size = np.where(slow < 0.0, -slow, 1.0)
    ratio = 2.0 * d / size
    return np.asarray(np.where(ratio > 0.0, np.log1p(ratio) / np.where(ratio > 0.0, ratio, 1.0), 1.0) / size)


def _overdamped_impulse(slow: Array, d: Array, t: Array) -> Array:
    """exp(at) sinh(dt)/d = t exp(slow t) φ₁(−2dt)."""
    z = -2.0 * d * t
    return np.asarray(t * np.exp(slow * t) * _phi1(z))


def _overdamped_step(a: Array, d: Array, slow: Array, fast: Array, product: Array, T: float) -> Array:
    """The step response ∫₀ᵀh of real roots: T² times the divided difference of φ₁ at both roots times T."""
    small = np.maximum(np.abs(slow), np.abs(fast)) * T <= _SERIES_RADIUS
    apart = d >= _ROOT_SEPARATION * np.maximum(np.abs(slow), np.abs(fast))
    distance = np.where(apart & ~small, 2.0 * d, 1.0)
    subtracted = T * (_phi1(slow * T) - _phi1(fast * T)) / distance
    # Together: exp(aT) sinh(dT)/d and exp(aT) cosh(dT) are smooth in d, and neither root is near zero.
    cosh = 0.5 * (np.exp(slow * T) + np.exp(fast * T))
    together = (1.0 + a * _overdamped_impulse(slow, d, np.full_like(a, T)) - cosh) / np.where(
        apart | small, 1.0, product
    )
    return np.where(small, _step_series(2.0 * a * T, product * T * T) * T * T, np.where(apart, subtracted, together))


def _underdamped_step(a: Array, omega: Array, t: Array) -> Array:
    """The step response ∫₀ᵗh of complex roots, for t up to half a period."""
    product = a * a + omega * omega
    small = product * t * t <= _SERIES_RADIUS
    sinc = np.where(omega * t > 0.0, np.sin(omega * t) / omega, t)
    together = (1.0 + np.exp(a * t) * (a * sinc - np.cos(omega * t))) / product
    return np.where(small, _step_series(2.0 * a * t, product * t * t) * t * t, together)


def _step_series(total: Array, product: Array) -> Array:
    """Σ H_j/(j + 2)! with H_j the complete symmetric polynomials of two roots, from their sum and product."""
    before, now = np.zeros_like(total), np.ones_like(total)
    factorial, result = 2.0, np.full_like(total, 0.5)
    usable = np.abs(total) <= 2.0 * _SERIES_RADIUS  # elsewhere the result is not used and must not overflow
    total, product = np.where(usable, total, 0.0), np.where(usable & (np.abs(product) <= _SERIES_RADIUS), product, 0.0)
    for j in range(1, _SERIES_TERMS):
        before, now = now, total * now - product * before
        factorial *= j + 2
        result = result + now / factorial
    return result


def _growth_integral(rate: Array, T: float) -> Array:
    """∫₀ᵀ exp(rate t) dt."""
    with np.errstate(over="ignore"):
        if np.isfinite(T):
            return np.asarray(T * _phi1(rate * T))
    return np.where(rate < 0.0, -1.0 / np.where(rate < 0.0, rate, 1.0), np.inf)


def _geometric_sum(exponent: Array, count: Array) -> Array:
    """1 + q + … + q^(count − 1) with q = exp(exponent); no terms for negative counts."""
    number = np.maximum(count, 0.0)
    finite = np.isfinite(number)
    flat = exponent == 0.0
    ratio = np.expm1(exponent * np.where(finite, number, 1.0)) / np.expm1(np.where(flat, 1.0, exponent))
    endless = np.where(exponent < 0.0, -1.0 / np.expm1(np.where(exponent < 0.0, exponent, 1.0)), np.inf)
    return np.where(finite, np.where(flat, number, ratio), endless)


def _phi1(z: Array) -> Array:
    """(eᶻ − 1)/z, with 1 at z = 0."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.asarray(np.where(z == 0.0, 1.0, np.expm1(safe) / safe))


# MERGED ltinet.error_bounds.gains
# Errors of a layer from errors in its equations: e ≤ G e + δ with G ≥ 0 strictly upper triangular.
#
# The error of a layer z' = F z + … obeys ε' = F ε + d. Neuron i sees d and the errors of the neurons after it, and turns
# them into its own by its gains: e_i ≤ Γ_i (|d_i| + Σ_{j>i} |F_ij| e_j), solved from the last neuron to the first. Cost
# linear in the connections.
#
# With a growth rate σ all errors are measured in units of exp(σt): the gains are then those of exp(−σt) h, which are
# moderate for unstable neurons too. Each σ gives a bound, and the least of them is one.

# Above the fastest growth, in units of 1/horizon: a chain of k neurons of equal growth is bounded best at σ ≈ k.
_GROWTH_OFFSETS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True, eq=False)
class LayerEquations:
    """z' = F z + G u of a layer, with (ξ of all neurons, then ξ̇ of second-order ones) = z + J u."""

    F: Array
    G: Array
    J: Array
    places: tuple[tuple[int, ...], ...]
    """For each neuron where its ξ and, if it is of second order, its ξ̇ stand in z."""

    @property
    def n_states(self) -> int:
        """Length of z."""
        return len(self.F)


def layer_state_indices(is_second_order: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Where ξ and ξ̇ of each neuron stand among the states of its layer."""
    rates = (len(is_second_order) + np.cumsum(is_second_order) - 1).tolist()
    return tuple((i, rates[i]) if second else (i,) for i, second in enumerate(is_second_order.tolist()))


@dataclass(frozen=True, eq=False)
class LayerGains:
    """The gains of all neurons of a layer, for some growth rates."""

    equations: LayerEquations
    growths: Array
    """σ, `(S,)`."""
    matrices: tuple[Array, ...]
    """Γ_i, `(S, 1, 1)` or `(S, 2, 2)`: from what is added to the rows of a neuron in z' to its ξ and ξ̇."""

    def propagate(self, source: Array) -> Array:
        """Bounds e `(S, …, n)` on the states from bounds `(S, …, n)` on what is added to z' = F z."""
        weights = np.abs(self.equations.F)
        errors = np.zeros_like(source)
        for own, gain in zip(reversed(self.equations.places), reversed(self.matrices), strict=True):
            rows = list(own)
            # The errors of this neuron are zero still: what it feeds to itself is in its gains.
            entering = source[..., rows] + errors @ weights[rows].T
            errors[..., rows] = entering @ gain.transpose(0, 2, 1)
        return errors

    def propagate_in_time(self, source: Array, *, cells: Array) -> Array:
        """Bounds e `(cells, n)` from bounds `(cells, n)` on what is added to z' in each cell of time.

        The least of the bounds for all growth rates; what comes later does not matter to a cell.
        """
        since, until = (np.multiply.outer(self.growths, edges - cells[0]) for edges in (cells[:-1], cells[1:]))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.maximum.accumulate(source * np.exp(-since)[..., None], axis=1)
            errors = self.propagate(scaled) * np.exp(until)[..., None]
        return np.asarray(np.fmin.reduce(errors, axis=0))


def layer_gains(equations: LayerEquations, *, horizon: float) -> LayerGains:
    """Gains for the growth rates worth trying: 0, and for unstable layers at and above their fastest growth."""
    first = np.array([own[0] for own in equations.places if len(own) == 1], dtype=np.intp)
    values = np.array([own[0] for own in equations.places if len(own) == 2], dtype=np.intp)
    rates = np.array([own[1] for own in equations.places if len(own) == 2], dtype=np.intp)
    roots, k, c = equations.F[first, first], -equations.F[rates, values], -equations.F[rates, rates]
    growths = _growth_rates(roots, c, k, horizon)
    sigma = growths[:, None]
    one = first_order_gains(np.ones_like(roots), sigma - roots, horizon=horizon).value
    two = second_order_gains(*np.broadcast_arrays(1.0, c + 2.0 * sigma, k + sigma * (c + sigma)), horizon=horizon)
    # ∫|exp(At)| exp(−σt) of A = [[0, 1], [−k, −c]], whose exponential has the columns (ḣ + c h, −k h) and (h, ḣ).
    rate = two.rate + sigma * two.value
    pairs = np.array([[rate + np.abs(c) * two.value, two.value], [np.abs(k) * two.value, rate]]).transpose(3, 2, 0, 1)
    singles, doubles = iter(one.T), iter(pairs)
    matrices = tuple(next(singles)[:, None, None] if len(own) == 1 else next(doubles) for own in equations.places)
    return LayerGains(equations, growths, matrices)


def theorem2_constant(gains: LayerGains) -> float:
    """The constant 1 + C + … + C^(n_l − 1) in the proof of Theorem 2, C the largest gain of a neuron's inputs."""
    places, weights = gains.equations.places, np.abs(gains.equations.F)
    largest = 0.0
    for own, gain in zip(places, gains.matrices, strict=True):
        entering = weights[list(own)].copy()
        entering[:, own] = 0.0
        largest = max(largest, float(np.max(gain[0] @ np.sum(entering, axis=1))))
    with np.errstate(over="ignore"):  # infinite where it exceeds all numbers; Python's own power would raise
        return float(np.sum(np.float64(largest) ** np.arange(len(places))))


def layer_error_constant(gains: LayerGains) -> float:
    """What takes the place of the paper's constant: the largest row sum of (I − G)⁻¹."""
    weights = np.abs(gains.equations.F)
    errors = np.zeros(gains.equations.n_states)
    for own, gain in zip(reversed(gains.equations.places), reversed(gains.matrices), strict=True):
        rows = list(own)
        errors[rows] = 1.0 + gain[0] @ (weights[rows] @ errors)
    return float(np.max(errors, initial=0.0))


def _growth_rates(roots: Array, c: Array, k: Array, horizon: float) -> Array:
    slowest = -0.5 * c + np.sqrt(np.maximum(0.25 * c * c - k, 0.0))
    fastest = float(np.max(np.concatenate([roots, slowest]), initial=0.0))
    if fastest <= 0.0 or not 0.0 < horizon < np.inf:
        return np.zeros(1)
    return np.array([0.0, *(fastest + extra / horizon for extra in _GROWTH_OFFSETS)])


# MERGED ltinet.error_bounds.gains
# What rounding does to an exact simulation: every step commits a little, and gains tell what becomes of it.

_MIN_DAMPED_FREQUENCY = 1e-3  # ω/√k below which a pair is not split into two complex numbers


class LayerRounding(NamedTuple):
    """How large the states of a layer can be in every cell of time, and by how much they can be off."""

    size: Array
    error: Array


def bound_rounding(
    gains: LayerGains, *, largest_input: Array, start: Array, step: float, cells: Array
) -> LayerRounding:
    """Bound the rounding errors of exact steps of length `step`, for inputs up to `largest_input` `(m,)`.

    A step forms e^{Fh} z + … from sums of n + m products, and errs by that many roundings of what it adds: the state,
    and what enters in the time of the step. All states of a layer mix in it, so that rounding is relative to the
    largest of them. No input is needed, only its size: the states are bounded by gains.
    """
    equations = gains.equations
    n_states, n_inputs = equations.G.shape
    shape = (len(cells) - 1, n_states)
    entering = np.abs(equations.G) @ largest_input
    still = np.abs(equations.F) @ np.abs(start)  # z = z(0) + w, and w' = F w + F z(0) + G u starts at zero
    size = np.abs(start) + gains.propagate_in_time(np.broadcast_to(entering + still, shape), cells=cells)
    mixed = _rounding_scale(equations, size)
    share = (n_states + n_inputs + 8) * EPS
    source = share * (mixed / step + mixed @ np.abs(equations.F).T + entering)
    return LayerRounding(size, gains.propagate_in_time(source, cells=cells) + share * mixed)


def _rounding_scale(equations: LayerEquations, size: Array) -> Array:
    """To what rounding in each state is relative: the largest state of the layer, or the modulus of a single pair.

    A pair a ± iω steps as one complex number ξ − i (ξ̇ − a ξ)/ω.
    """
    F = equations.F
    if len(equations.places) == 1 and len(F) == 2:
        a, stiffness = 0.5 * float(F[1, 1]), -float(F[1, 0])
        if stiffness - a * a > _MIN_DAMPED_FREQUENCY**2 * stiffness > 0.0:
            omega = np.sqrt(stiffness - a * a)
            modulus = size[:, :1] + (size[:, 1:] + abs(a) * size[:, :1]) / omega
            return np.hstack([modulus, np.sqrt(stiffness) * modulus])
    return np.repeat(np.max(size, axis=1, initial=0.0, keepdims=True), len(F), axis=1)


# MERGED ltinet.error_bounds.gains
# What is wrong with the network itself: the system in its coordinates is not quite its own.
#
# With x = X z the system x' = A x + B u, y = C x + D u becomes z' = (F + ΔF) z + (G + ΔG) u, y = (Φ + ΔΦ) z + …, where
# ΔF = X⁻¹(A X − X F), ΔG = X⁻¹(B − X G) and ΔΦ = C X − Φ would be zero without rounding in the decomposition.


@dataclass(frozen=True, eq=False)
class DecompositionMismatch:
    """Bounds on |ΔF|, |ΔG| and |ΔΦ|, and by which share of z a state x can be off in these coordinates."""

    F: Array
    G: Array
    Phi: Array
    start: Array
    """(n × n): rounding of X⁻¹ x per unit of |z|."""


def measure_mismatch(
    A: Array, X: Array, X_inv: Array, *, F: Array, G: Array, Phi: Array, B: Array | None, C: Array | None
) -> DecompositionMismatch:
    """Measure what the decomposition left, in extended precision; where B and C are not known, rounding is assumed.

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
    """Bounds `(cells, n)` on what the mismatch does to the states, which are up to `size` `(cells, n)` large.

    ε' = F ε + ΔF (z + ε) + ΔG u: a bound b without the ε on the right and a share r with K b ≤ r b, where K stands for
    the way of ΔF ε through the layers, give ε ≤ b/(1 − r).
    """
    shift = mismatch.start @ np.abs(start)
    F_shift = np.concatenate(
        [np.zeros(0), *(np.abs(own.equations.F) @ part for own, part in _split_by_layer(layers, shift))]
    )
    source = size @ mismatch.F.T + mismatch.G @ largest_input + F_shift
    first = shift + _propagate_layers(layers, source, cells=cells)
    second = _propagate_layers(layers, first @ mismatch.F.T, cells=cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = float(np.max(np.where(second > 0.0, second / first, 0.0), initial=0.0))
    return first / (1.0 - share) if share < 1.0 else np.full(first.shape, np.inf)


def _propagate_layers(layers: tuple[LayerGains, ...], source: Array, *, cells: Array) -> Array:
    parts = [own.propagate_in_time(part, cells=cells) for own, part in _split_by_layer(layers, source)]
    return np.concatenate([source[..., :0], *parts], axis=-1)


def _split_by_layer(layers: tuple[LayerGains, ...], values: Array) -> list[tuple[LayerGains, Array]]:
    """The values of each layer, from the last axis."""
    stops = np.cumsum([own.equations.n_states for own in layers]).tolist()
    return [(own, values[..., stop - own.equations.n_states : stop]) for own, stop in zip(layers, stops, strict=True)]
