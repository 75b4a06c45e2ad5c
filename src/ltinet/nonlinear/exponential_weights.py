"""Weights of exponential quadrature: integrals of e^{(1−θ)Z} against Lagrange polynomials, for stacks of small matrices.

    R_j(Z) = ∫₀¹ e^{(1−θ)Z} ℓ_j(θ) dθ,    ℓ_j(θ) = Lagrange polynomials of s nodes c_i in [0, 1].

A polynomial g of degree s − 1 in a step of length h contributes h Σ_j R_j(hF) g(c_j) to the solution of z' = F z + g at
its end, and c_i h Σ_m R_m(c_i hF) g(c_i c_m) at the node c_i.

φ functions would do, but the coefficients of ℓ_j in powers of θ alternate and grow as 4^s: with twelve nodes seven
digits would cancel. R is doubled instead: with θ in either half of the step

    R_j(2Z) = ½ Σ_i [ e^Z ℓ_j(c_i/2) + ℓ_j((1 + c_i)/2) ] R_i(Z),

where all factors are of order one. The start, ‖Z‖ ≤ 1/2, is a Taylor series whose coefficients ∫ (1−θ)^k/k! ℓ_j are
integrated by a Gauss rule without error.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import Legendre, leggauss

from ltinet._util.floating_point import Array

_TAYLOR_NORM = 0.5  # of Z where doubling begins
_TAYLOR_DEGREE = 13  # 0.5^14/14! < 1e-15


@cache
def lobatto_nodes(count: int) -> Array:
    """Return the Gauss–Lobatto nodes on [0, 1]: both ends and the extrema of a Legendre polynomial."""
    inner = Legendre.basis(count - 1).deriv().roots()
    for _ in range(2):  # Newton's method: roots of companion matrices lose a few digits
        derivative = Legendre.basis(count - 1).deriv()
        inner = inner - derivative(inner) / derivative.deriv()(inner)
    return 0.5 + 0.5 * np.concatenate([[-1.0], np.sort(inner), [1.0]])


def lagrange_values(nodes: Array, points: Array) -> Array:
    """Return ℓ_j at points, `(len(points), len(nodes))`."""
    difference = points[:, None] - nodes
    one = np.ones((len(points), 1))
    before = np.hstack([one, np.cumprod(difference[:, :-1], axis=1)])
    after = np.hstack([one, np.cumprod(difference[:, :0:-1], axis=1)])[:, ::-1]
    distances = nodes[:, None] - nodes
    np.fill_diagonal(distances, 1.0)
    return np.asarray(before * after / distances.prod(axis=1))


class ExponentialWeights(NamedTuple):
    """e^Z and R_j(Z) of a stack of matrices Z."""

    exponential: Array
    """`(…, b, b)`."""
    R: Array
    """`(…, b, b, s)`."""


def exponential_weights(Z: Array, nodes: Array) -> ExponentialWeights:
    """Return e^Z and R_j(Z) for matrices Z `(…, b, b)`."""
    norm = float(np.abs(Z).sum(axis=-2).max(initial=0.0))
    doublings = max(0, math.ceil(math.log2(norm / _TAYLOR_NORM))) if norm > 0.0 else 0
    Z = Z / 2.0**doublings
    coefficients = _taylor_coefficients(tuple(nodes.tolist()))
    identity = np.broadcast_to(np.eye(Z.shape[-1]), Z.shape)
    power, exponential = identity, identity
    R = identity[..., None] * coefficients[0]
    for k in range(1, _TAYLOR_DEGREE + 1):
        power = power @ Z
        exponential = exponential + power / math.factorial(k)
        R = R + power[..., None] * coefficients[k]
    first, second = lagrange_values(nodes, 0.5 * nodes), lagrange_values(nodes, 0.5 + 0.5 * nodes)
    for _ in range(doublings):
        R = 0.5 * (np.einsum("...ab,...bcj->...acj", exponential, R @ first) + R @ second)
        exponential = exponential @ exponential
    return ExponentialWeights(exponential, R)


@cache
def _taylor_coefficients(nodes: tuple[float, ...]) -> Array:
    """Return ∫ (1−θ)^k/k! ℓ_j(θ) dθ, `(degree + 1, s)`."""
    points, weights = leggauss(_TAYLOR_DEGREE + len(nodes))
    theta = 0.5 + 0.5 * points
    k = np.arange(_TAYLOR_DEGREE + 1)
    factors = (1.0 - theta) ** k[:, None] / np.array([math.factorial(i) for i in k.tolist()])[:, None]
    return np.asarray((0.5 * weights * factors) @ lagrange_values(np.array(nodes), theta))
