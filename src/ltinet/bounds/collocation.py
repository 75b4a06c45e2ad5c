"""The rule by which errors are followed along a piece of time: Radau nodes, and polynomials through them.

A polynomial of degree q is held by its values at the start of a piece and at the q right Radau points in it, the last
of which is the end. If z' = f(z) holds at these points, then z' − f is, for linear f, a multiple of the one polynomial
that vanishes at all of them, and that is largest at the start of the piece: its size there bounds it everywhere.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # which loads scipy.special when it is first used
from numpy.polynomial import chebyshev, legendre

from ltinet.arrays import Array, Complex


@dataclass(frozen=True, eq=False)
class Rule:
    """Everything about q Radau points on (0, 1]."""

    nodes: Array
    integrals: Array
    """(q × q): from values of a polynomial at the nodes to its integrals from 0 to each of them."""
    at_start: Array
    """(q,): from values at the nodes to the value at 0 of the polynomial of degree q − 1 through them."""
    eigenvalues: Complex
    eigenvectors: Complex
    inverse_eigenvectors: Complex
    """integrals = eigenvectors · diag(eigenvalues) · inverse_eigenvectors."""
    to_series: Array
    """(q + 1 × q + 1): from values at 0 and at the nodes to Chebyshev coefficients on [0, 1]."""
    magnification: float
    """By how much values at 0 and the nodes can be exceeded in between (Lebesgue's constant)."""

    @property
    def n_nodes(self) -> int:
        """Q."""
        return len(self.nodes)


@cache
def radau(n_nodes: int) -> Rule:
    """The rule with q = `n_nodes` ≥ 2 points."""
    inner = np.asarray(scipy.special.roots_jacobi(n_nodes - 1, 1.0, 0.0)[0], dtype=np.float64)
    x = np.append(inner, 1.0)
    degrees = np.eye(n_nodes)
    from_values = np.linalg.inv(legendre.legvander(x, n_nodes - 1))
    antiderivatives = np.stack([legendre.legval(x, legendre.legint(row, lbnd=-1.0)) for row in degrees], axis=1)
    integrals = 0.5 * antiderivatives @ from_values
    values, vectors = np.linalg.eig(integrals)
    to_series = np.linalg.inv(chebyshev.chebvander(np.append(-1.0, x), n_nodes))
    dense = chebyshev.chebvander(np.linspace(-1.0, 1.0, 40 * n_nodes), n_nodes) @ to_series
    return Rule(
        nodes=0.5 * (x + 1.0),
        integrals=integrals,
        at_start=legendre.legvander(np.array([-1.0]), n_nodes - 1)[0] @ from_values,
        eigenvalues=np.asarray(values, dtype=np.complex128),
        eigenvectors=np.asarray(vectors, dtype=np.complex128),
        inverse_eigenvectors=np.asarray(np.linalg.inv(vectors), dtype=np.complex128),
        to_series=to_series,
        magnification=float(np.max(np.sum(np.abs(dense), axis=1))),
    )


@dataclass(frozen=True, eq=False)
class PieceValues:
    """Functions on all pieces of a grid: at the starts `(N, n)`, and at the nodes `(N, q, n)`, the ends among them."""

    start: Array
    nodes: Array

    @property
    def largest(self) -> Array:
        """The largest magnitude on each piece, `(N, n)`."""
        return np.asarray(np.maximum(np.abs(self.start), np.max(np.abs(self.nodes), axis=1)))


def values_on_pieces(breaks: Array, coefficients: Array, *, grid: Array, rule: Rule) -> PieceValues:
    """Evaluate a piecewise Chebyshev series `(pieces, degree + 1, components)` on a grid that contains its breaks."""
    middle = 0.5 * (grid[:-1] + grid[1:])
    piece = np.clip(np.searchsorted(breaks, middle, side="right") - 1, 0, len(coefficients) - 1)
    left, width = breaks[piece], breaks[piece + 1] - breaks[piece]
    width = np.where(width > 0.0, width, 1.0)
    share = np.append(0.0, rule.nodes)
    x = 2.0 * ((grid[:-1] - left)[:, None] + np.diff(grid)[:, None] * share) / width[:, None] - 1.0
    series = coefficients[piece]
    later = np.zeros((*x.shape, coefficients.shape[2]))
    latest = later
    for k in range(series.shape[1] - 1, 0, -1):  # Clenshaw
        later, latest = series[:, None, k] + 2.0 * x[:, :, None] * later - latest, later
    values = series[:, None, 0] + x[:, :, None] * later - latest
    return PieceValues(values[:, 0], values[:, 1:])
