"""Piecewise polynomials in time, as Chebyshev series: the common form of the dense outputs of all SciPy solvers.

On the piece between two breaks the polynomial is Σ_k a_k T_k(x) with x from −1 to 1. It is determined by its values at
the Chebyshev points of every piece.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from ltinet._util.floating_point import Array


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
        return clenshaw(self.coefficients[piece], x)


def clenshaw(series: Array, x: Array) -> Array:
    """Return Σ a_k T_k(x) of series `(..., degree + 1, components)` at x `(...)`."""
    return np.asarray(chebyshev.chebval(x[..., None], np.moveaxis(series, -2, 0), tensor=False))


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
