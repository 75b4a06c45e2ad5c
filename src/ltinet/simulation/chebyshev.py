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

from ltinet._util.floating_point import Array
from ltinet.simulation.propagators import DoubleDouble, add, multiply

# MERGED ltinet.simulation.chebyshev
# Solver output as piecewise polynomials: what every dense output is, in one form that many neurons can share.


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """On piece k, from breaks[k] to breaks[k + 1], a Chebyshev series: coefficients `(pieces, degree + 1, components)`.

    Right-continuous at breaks; the last piece includes its end.
    """

    breaks: Array
    coefficients: Array

    def __call__(self, t: Array) -> Array:
        """Values `(len(t), components)`."""
        piece = np.clip(np.searchsorted(self.breaks, t, side="right") - 1, 0, len(self.coefficients) - 1)
        left, width = self.breaks[piece], self.breaks[piece + 1] - self.breaks[piece]
        x = np.where(width > 0.0, 2.0 * (t - left) / np.where(width > 0.0, width, 1.0) - 1.0, 0.0)
        return _clenshaw(self.coefficients[piece], x[:, None])


def _clenshaw(series: Array, x: Array) -> Array:
    """Σ a_k T_k(x) along the middle axis of a `(points, degree + 1, components)`."""
    later = np.zeros_like(series[:, 0])
    latest = np.zeros_like(later)
    for k in range(series.shape[1] - 1, 0, -1):
        later, latest = series[:, k] + 2.0 * x * later - latest, later
    return np.asarray(series[:, 0] + x * later - latest)


@cache
def chebyshev_points(degree: int) -> Array:
    """Chebyshev points in (−1, 1): values there determine a polynomial of that degree, without ill-conditioning."""
    return chebyshev.chebpts1(degree + 1)


@cache
def values_to_coefficients(degree: int) -> Array:
    """The matrix from values at the nodes to Chebyshev coefficients."""
    return np.asarray(np.linalg.inv(chebyshev.chebvander(chebyshev_points(degree), degree)), dtype=np.float64)


def node_times(left: Array, right: Array, degree: int) -> Array:
    """The nodes of every piece, `(pieces, degree + 1)`."""
    half = 0.5 * (right - left)
    return np.asarray((left + half)[:, None] + half[:, None] * chebyshev_points(degree))


def from_node_values(breaks: Array, values: Array) -> PiecewisePolynomial:
    """The piecewise polynomial with given values `(pieces, degree + 1, components)` at the nodes of its pieces."""
    transform = values_to_coefficients(values.shape[1] - 1)
    return PiecewisePolynomial(breaks, np.einsum("ij,pjc->pic", transform, values))


# MERGED ltinet.simulation.chebyshev
# Functions of the length of a step as Chebyshev series between two lengths: Σ c_k T_k(x), x from −1 to 1.
#
# The highest degree comes first: sums then end with their largest terms, and round least.


def interpolation_lengths(low: float, high: float, degree: int) -> Array:
    """The `degree + 1` lengths, from the high end to the low one, at which a series is interpolated.

    Those of half the degree are every second of them.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return np.asarray(middle + half * np.cos(np.pi / degree * np.arange(degree + 1)))


def interpolation_coefficients(values: Array) -> Array:
    """The series `(degree + 1, …)` through values at the nodes, first axis."""
    found = np.asarray(scipy.fft.dct(values, type=1, axis=0)) / (len(values) - 1)
    found[[0, -1]] /= 2.0
    return found[::-1]


def evaluate_polynomials(h: Array, low: float, high: float, *, out: Array) -> None:
    """T_{count−1} … T_1, T_0 at lengths h, one for each row of `(count, len(h))`."""
    x = (h - 0.5 * (low + high)) / (0.5 * (high - low))
    twice, ascending = 2.0 * x, out[::-1]
    ascending[0], ascending[1:2] = 1.0, x
    for two_before, before, own in zip(ascending, ascending[1:], ascending[2:], strict=False):
        np.multiply(twice, before, out=own)
        own -= two_before


def double_double_polynomials(x: Array, *, count: int) -> DoubleDouble:
    """The same at some x, `(len(x), count)`, with twice the digits."""
    found = [DoubleDouble(np.ones_like(x), np.zeros_like(x)), DoubleDouble(x, np.zeros_like(x))]
    while len(found) < count:
        twice = multiply(DoubleDouble(2.0 * x, np.zeros_like(x)), found[-1])
        found.append(add(twice, DoubleDouble(-found[-2].high, -found[-2].low)))
    return DoubleDouble(*(np.column_stack(parts[::-1]) for parts in zip(*found[:count], strict=True)))


def exponential_degree(rho: float, *, left: float) -> int:
    """A degree beyond which coefficients of e^{zx}, |z| ≤ ρ, are below a share of its largest value.

    They are 2 I_k(z), and |I_k(z)| ≤ (|z|/2)^k/k! e^{|Re z|} (Watson 1922). Averages of such functions need no more.
    """
    term, k = 2.0, 0
    while term > left or k < rho:
        k += 1
        term *= 0.5 * rho / k
    return max(k, 2)
