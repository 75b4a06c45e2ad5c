"""Solver output as piecewise polynomials: what every dense output is, in one form that many neurons can share."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from ltinet.arrays import Array


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
def nodes(degree: int) -> Array:
    """Chebyshev points in (−1, 1): values there determine a polynomial of that degree, without ill-conditioning."""
    return chebyshev.chebpts1(degree + 1)


@cache
def values_to_coefficients(degree: int) -> Array:
    """The matrix from values at the nodes to Chebyshev coefficients."""
    return np.asarray(np.linalg.inv(chebyshev.chebvander(nodes(degree), degree)), dtype=np.float64)


def node_times(left: Array, right: Array, degree: int) -> Array:
    """The nodes of every piece, `(pieces, degree + 1)`."""
    half = 0.5 * (right - left)
    return np.asarray((left + half)[:, None] + half[:, None] * nodes(degree))


def from_node_values(breaks: Array, values: Array) -> PiecewisePolynomial:
    """The piecewise polynomial with given values `(pieces, degree + 1, components)` at the nodes of its pieces."""
    transform = values_to_coefficients(values.shape[1] - 1)
    return PiecewisePolynomial(breaks, np.einsum("ij,pjc->pic", transform, values))
