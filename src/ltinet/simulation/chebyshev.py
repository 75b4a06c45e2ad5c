"""Chebyshev series of functions of the step length.

A function of the step length h between two lengths is interpolated at the extrema of T_n, its coefficients follow from
a discrete cosine transform (type I), and its polynomials are available in double-double precision. Series store the
highest degree first: sums end with their largest terms, which rounds least.
"""

import numpy as np
import scipy  # which loads scipy.fft when it is first used

from ltinet._util.double_double import DoubleDouble, add, multiply
from ltinet._util.floating_point import Array


def interpolation_lengths(low: float, high: float, degree: int) -> Array:
    """Return the `degree + 1` lengths, in descending order, at which a series is interpolated.

    Every second of them is a length for half the degree.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return np.asarray(middle + half * np.cos(np.pi / degree * np.arange(degree + 1)))


def interpolation_coefficients(values: Array) -> Array:
    """Return the series `(degree + 1, …)` through values at the interpolation lengths, first axis."""
    coefficients = np.asarray(scipy.fft.dct(values, type=1, axis=0)) / (len(values) - 1)
    coefficients[[0, -1]] /= 2.0
    return coefficients[::-1]


def evaluate_polynomials(h: Array, low: float, high: float, *, out: Array) -> None:
    """Write T_{count−1} … T_1, T_0 at lengths h to the rows of `out`, `(count, len(h))`."""
    x = (h - 0.5 * (low + high)) / (0.5 * (high - low))
    twice, ascending = 2.0 * x, out[::-1]
    ascending[0], ascending[1:2] = 1.0, x
    for two_before, before, polynomial in zip(ascending, ascending[1:], ascending[2:], strict=False):
        np.multiply(twice, before, out=polynomial)
        polynomial -= two_before


def double_double_polynomials(x: Array, *, count: int) -> DoubleDouble:
    """Return T_{count−1} … T_0 at some x, `(len(x), count)`, in double-double precision."""
    zeros = np.zeros_like(x)
    ascending = [DoubleDouble(np.ones_like(x), zeros), DoubleDouble(x, zeros)]
    while len(ascending) < count:
        twice = multiply(DoubleDouble(2.0 * x, zeros), ascending[-1])
        ascending.append(add(twice, DoubleDouble(-ascending[-2].high, -ascending[-2].low)))
    return DoubleDouble(*(np.column_stack(parts[::-1]) for parts in zip(*ascending[:count], strict=True)))


def exponential_degree(rho: float, *, tolerance: float) -> int:
    """Return a degree beyond which the coefficients of e^{zx}, |z| ≤ ρ, are below a fraction of its largest value.

    They are 2 I_k(z), and |I_k(z)| ≤ (|z|/2)^k/k! e^{|Re z|} (Watson 1922). φ-functions, which are averages of e^{zx},
    need no higher degree.
    """
    term, k = 2.0, 0
    while term > tolerance or k < rho:
        k += 1
        term *= 0.5 * rho / k
    return max(k, 2)
