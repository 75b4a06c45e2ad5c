"""Chebyshev series: piecewise polynomials in time, and functions of the step length.

A piecewise polynomial Σ_k a_k T_k(x) on the pieces between breaks is the common form of the dense outputs of all
SciPy solvers. A function of the step length h between two lengths is interpolated at the extrema of T_n, its
coefficients follow from a discrete cosine transform (type I), and its polynomials are available in double-double
precision. Series in the step length store the highest degree first: sums end with their largest terms, which rounds
least.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # which loads scipy.fft when it is first used
from numpy.polynomial import chebyshev

from ltinet._util.double_double import DoubleDouble, add, multiply
from ltinet._util.floating_point import Array

# Piecewise polynomials: the common form of all dense outputs.


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """Piecewise polynomial: piece k, from breaks[k] to breaks[k + 1], is a Chebyshev series.

    Coefficients are `(pieces, degree + 1, components)`. It is right-continuous; the last piece includes its end.
    """

    breaks: Array
    coefficients: Array

    def __call__(self, t: Array) -> Array:
        """Return values `(len(t), components)`."""
        piece = np.clip(np.searchsorted(self.breaks, t, side="right") - 1, 0, len(self.coefficients) - 1)
        left, width = self.breaks[piece], self.breaks[piece + 1] - self.breaks[piece]
        x = np.where(width > 0.0, 2.0 * (t - left) / np.where(width > 0.0, width, 1.0) - 1.0, 0.0)
        return _clenshaw(self.coefficients[piece], x[:, None])


def _clenshaw(series: Array, x: Array) -> Array:
    """Return Σ a_k T_k(x) along the middle axis of a series `(points, degree + 1, components)`."""
    later = np.zeros_like(series[:, 0])
    latest = np.zeros_like(later)
    for k in range(series.shape[1] - 1, 0, -1):
        later, latest = series[:, k] + 2.0 * x * later - latest, later
    return np.asarray(series[:, 0] + x * later - latest)


@cache
def chebyshev_points(degree: int) -> Array:
    """Return the Chebyshev points in (−1, 1) at which values determine a polynomial of a degree."""
    return chebyshev.chebpts1(degree + 1)


@cache
def values_to_coefficients(degree: int) -> Array:
    """Return the matrix from values at the Chebyshev points to coefficients."""
    return np.asarray(np.linalg.inv(chebyshev.chebvander(chebyshev_points(degree), degree)), dtype=np.float64)


def node_times(left: Array, right: Array, degree: int) -> Array:
    """Return the Chebyshev points of every piece, `(pieces, degree + 1)`."""
    half = 0.5 * (right - left)
    return np.asarray((left + half)[:, None] + half[:, None] * chebyshev_points(degree))


def from_node_values(breaks: Array, values: Array) -> PiecewisePolynomial:
    """Return the piecewise polynomial with values `(pieces, degree + 1, components)` at the nodes of its pieces."""
    transform = values_to_coefficients(values.shape[1] - 1)
    return PiecewisePolynomial(breaks, np.einsum("ij,pjc->pic", transform, values))


# Functions of the step length: the highest degree comes first.


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
