"""Finite-horizon L1 gains of single neurons in closed form: what bounds on errors are made of.

A neuron m ξ̈ + c ξ̇ + k ξ = f that starts at rest has ξ = h ∗ f. If |f| ≤ 1 up to the time T, then |ξ| ≤ ∫₀ᵀ|h| and
|ξ̇| ≤ ∫₀ᵀ|ḣ| there, and no smaller numbers will do (peak-to-peak gains). Between sign changes of h the integral is a
difference of step responses; the sign changes of an oscillation are evenly spaced, so that their sum is geometric. The
integral of |ḣ| is the total variation of h.

A horizon may be infinite for stable neurons. All functions take arrays of neurons.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array

_TERMS = 26  # of a power series in |z| ≤ 1 with denominators (j + 2)!: the rest is below eps
_SMALL = 1.0  # |root · T| up to which the power series is used
_APART = 0.25  # real roots a ± d with d above this share of the larger one are far enough apart to subtract


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
        value[swings], rate[swings] = _oscillating(a[swings], np.sqrt(-discriminant[swings]), horizon)
    if not np.all(swings):
        rests = ~swings
        value[rests], rate[rests] = _creeping(a[rests], np.sqrt(discriminant[rests]), (k / m)[rests], horizon)
    return Gains(value / np.abs(m), rate / np.abs(m))


def _oscillating(a: Array, omega: Array, horizon: float) -> tuple[Array, Array]:
    """∫|h| and ∫|ḣ| of h = exp(at) sin(ωt)/ω; half a period on, h is −q times what it was, q = exp(aπ/ω)."""
    half = np.pi / omega
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        factor = np.exp(a * half)
        halves = np.floor(horizon / half)  # finished half periods
        left = np.where(np.isfinite(halves), horizon - halves * half, 0.0)
        grown = np.where(np.isfinite(halves), np.exp(a * half * halves), 0.0)
        full = np.where(halves > 0.0, (1.0 + factor) * _geometric_sum(a * half, halves), 0.0) / (a * a + omega * omega)
        value = full + grown * _swing_step(a, omega, left)
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


def _creeping(a: Array, d: Array, product: Array, horizon: float) -> tuple[Array, Array]:
    """∫|h| and ∫|ḣ| of h = exp(at) sinh(dt)/d ≥ 0, which has at most one peak."""
    slow, fast = _real_roots(a, d, product)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(horizon):
            peak = np.where(slow < 0.0, _creep(slow, d, _peak_time(slow, d)), np.inf)
            return np.where(slow < 0.0, 1.0 / np.where(slow < 0.0, product, 1.0), np.inf), 2.0 * peak
        value = _creep_step(a, d, slow, fast, product, horizon)
        peak_time = np.where(slow < 0.0, _peak_time(slow, d), np.inf)
        end = _creep(slow, d, np.full_like(a, horizon))
        peak = _creep(slow, d, np.minimum(peak_time, horizon))
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


def _creep(slow: Array, d: Array, t: Array) -> Array:
    """exp(at) sinh(dt)/d = t exp(slow t) φ₁(−2dt)."""
    z = -2.0 * d * t
    return np.asarray(t * np.exp(slow * t) * _phi1(z))


def _creep_step(a: Array, d: Array, slow: Array, fast: Array, product: Array, T: float) -> Array:
    """The step response ∫₀ᵀh of real roots: T² times the divided difference of φ₁ at both roots times T."""
    small = np.maximum(np.abs(slow), np.abs(fast)) * T <= _SMALL
    apart = d >= _APART * np.maximum(np.abs(slow), np.abs(fast))
    distance = np.where(apart & ~small, 2.0 * d, 1.0)
    subtracted = T * (_phi1(slow * T) - _phi1(fast * T)) / distance
    # Together: exp(aT) sinh(dT)/d and exp(aT) cosh(dT) are smooth in d, and neither root is near zero.
    cosh = 0.5 * (np.exp(slow * T) + np.exp(fast * T))
    together = (1.0 + a * _creep(slow, d, np.full_like(a, T)) - cosh) / np.where(apart | small, 1.0, product)
    return np.where(small, _step_series(2.0 * a * T, product * T * T) * T * T, np.where(apart, subtracted, together))


def _swing_step(a: Array, omega: Array, t: Array) -> Array:
    """The step response ∫₀ᵗh of complex roots, for t up to half a period."""
    product = a * a + omega * omega
    small = product * t * t <= _SMALL
    sinc = np.where(omega * t > 0.0, np.sin(omega * t) / omega, t)
    together = (1.0 + np.exp(a * t) * (a * sinc - np.cos(omega * t))) / product
    return np.where(small, _step_series(2.0 * a * t, product * t * t) * t * t, together)


def _step_series(total: Array, product: Array) -> Array:
    """Σ H_j/(j + 2)! with H_j the complete symmetric polynomials of two roots, from their sum and product."""
    before, now = np.zeros_like(total), np.ones_like(total)
    factorial, result = 2.0, np.full_like(total, 0.5)
    usable = np.abs(total) <= 2.0 * _SMALL  # elsewhere the result is not used and must not overflow
    total, product = np.where(usable, total, 0.0), np.where(usable & (np.abs(product) <= _SMALL), product, 0.0)
    for j in range(1, _TERMS):
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
