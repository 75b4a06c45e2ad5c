"""Heat and transport on a square plate, sparse and of any size, by formula: numbers that can be compared."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet.arrays import Array
from ltinet.model.parameters import as_count, as_finite
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.model.system_matrices import SystemMatrices


def heat_plate(n: int = 400) -> SystemMatrices:
    """Build the heat equation w' = Δw on the unit square with its edges at zero, by five-point differences.

    The grid has g×g inner points with g = round(√n), so g² states: 99,856 for n = 10⁵. With h = 1/(g + 1), the point
    (i, j) at x = (i + 1) h, y = (j + 1) h is state i + g j, counted from 0.
    A = I ⊗ L + L ⊗ I with L = tridiag(1, −2, 1)/h² is sparse and symmetric.

    Input 1 heats the lower left quarter, x, y < 1/2, evenly: 1 at each of its points. Input 2 is one point, the one at
    or below (0.7, 0.6): 1 at this state. Output 1 is the mean over the upper right quarter, x, y > 1/2; output 2 the
    state at or below (0.3, 0.8).
    """
    g = _points(n)
    return SystemMatrices(_laplacian(g), *_inputs_and_outputs(g))


def convection_diffusion_plate(n: int = 400, *, V: float = 10.0) -> SystemMatrices:
    """Build w' = Δw − v·∇w on the unit square with its edges at zero, turned by the vortex of a stream function.

    v = (∂ψ/∂y, −∂ψ/∂x) with ψ = V sin πx sin πy/π: |v| is at most V. Grid, inputs and outputs are those of
    `heat_plate`. The transport is written as half the sum of v·∇w and ∇·(v w), by central differences, so that it is
    skew-symmetric: the symmetric part of A is the heat plate's, whatever V. A is sparse and not symmetric.
    """
    g, speed = _points(n), as_finite(V, "V")
    h = 1.0 / (g + 1)
    along = np.pi * h * np.arange(1, g + 1)
    v_x = speed * np.outer(np.cos(along), np.sin(along))  # (y, x)
    v_y = -speed * np.outer(np.sin(along), np.cos(along))
    transport = _skew(v_x, h, axis=1) + _skew(v_y, h, axis=0)
    return SystemMatrices(sparse.csr_array(_laplacian(g) - transport), *_inputs_and_outputs(g))


def _points(n: int) -> int:
    """Points along an edge."""
    return max(round(math.sqrt(as_count(n, "n"))), 1)


def _laplacian(g: int) -> SparseMatrix:
    inverse_h2 = float((g + 1) ** 2)
    L = inverse_h2 * sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(g, g))
    identity = sparse.eye_array(g)
    return sparse.csr_array(sparse.kron(identity, L) + sparse.kron(L, identity))


def _skew(v: Array, h: float, *, axis: int) -> SparseMatrix:
    """(v ∂ + ∂ v)/2 along one axis: between neighbours ±(v_i + v_j)/(4h)."""
    g = len(v)
    states = np.arange(g * g).reshape(g, g)  # (y, x): state i + g j
    here, there = (np.take(states, range(start, start + g - 1), axis=axis).ravel() for start in (0, 1))
    weight = (v.ravel()[here] + v.ravel()[there]) / (4.0 * h)
    upper = sparse.coo_array((weight, (here, there)), shape=(g * g, g * g))
    return sparse.csr_array(upper - upper.T)


def _inputs_and_outputs(g: int) -> tuple[Array, Array]:
    """B, g²×2, and C, 2×g²."""
    places = np.arange(1, g + 1) / (g + 1)
    B, C = np.zeros((g * g, 2)), np.zeros((2, g * g))
    low, high = places < 0.5, places > 0.5
    B[_quarter(low), 0], B[_state(g, 0.7, 0.6), 1] = 1.0, 1.0
    C[0, _quarter(high)], C[1, _state(g, 0.3, 0.8)] = 1.0 / max(int(high.sum()) ** 2, 1), 1.0
    return B, C


def _quarter(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.logical_and.outer(chosen, chosen)).ravel()


def _state(g: int, x: float, y: float) -> int:
    """The state at or below a place; the first beside the edge where there is none."""
    i, j = (max(math.floor(place * (g + 1)) - 1, 0) for place in (x, y))
    return i + g * j
