"""Blocks and networks drawn at random with the patterns of the paper, and their transfer functions in 50 digits."""

import mpmath
import numpy as np

from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.network.network import Network, NetworkParameters

mpmath.mp.dps = 50


def pattern_block(n_real, n_pairs, seed=0):
    """A full block of pattern G (Definition 4): reals first, then pairs [[a, b], [c, a]] with b > 0 > c."""
    rng = np.random.default_rng(seed)
    n = n_real + 2 * n_pairs
    A = np.triu(rng.uniform(0.1, 1.0, (n, n)), 1) - np.diag(rng.uniform(0.5, 2.0, n))
    for i in range(n_real, n, 2):
        A[i + 1, i + 1], A[i, i + 1], A[i + 1, i] = A[i, i], rng.uniform(0.5, 2.0), -rng.uniform(0.5, 2.0)
    return A


def random_layer(orders, n_inputs, seed=0):
    """A layer of Definition 7 with nothing special: any m, c and k, all couplings, u̇ everywhere, orders as given."""
    rng = np.random.default_rng(seed)
    n = len(orders)
    M = np.diag([rng.uniform(0.5, 2.0) if order == 2 else 0.0 for order in orders])
    C, K = (np.triu(rng.uniform(-1.0, 1.0, (n, n)), 1) + np.diag(rng.uniform(0.5, 2.0, n)) for _ in range(2))
    return HorizontalLayer(M, C, K, rng.standard_normal((n, n_inputs)), rng.standard_normal((n, n_inputs)))


def random_parameters(orders, n_inputs, n_outputs, seed=0):
    """Parameter sets of Definitions 1 and 2 for layers with the given orders of neurons; no system behind them."""
    rng = np.random.default_rng(seed)
    own = [random_layer(layer, n_inputs, seed=rng.integers(2**32)).parameters for layer in orders]
    Phi = tuple(tuple(rng.standard_normal((n_outputs, order)) for order in layer) for layer in orders)
    columns = (tuple(getattr(p, field) for p in own) for field in LayerParameters._fields)
    return NetworkParameters(*columns, Phi, rng.standard_normal((n_outputs, n_inputs)))


def random_network(orders, n_inputs, n_outputs, seed=0):
    """A network built from parameters alone."""
    return Network.from_parameters(random_parameters(orders, n_inputs, n_outputs, seed))


def exact(matrix):
    """An array as an mpmath matrix, without rounding."""
    array = np.asarray(matrix)
    result = mpmath.zeros(*array.shape)
    for index, value in np.ndenumerate(array):
        result[index] = mpmath.mpmathify(value.item())
    return result


def rounded(matrix):
    """An mpmath matrix as a complex array."""
    return np.array(
        [[complex(matrix[i, j]) for j in range(matrix.cols)] for i in range(matrix.rows)], dtype=complex
    ).reshape(matrix.rows, matrix.cols)


def product(left, right):
    """Matrix product in 50 digits, for empty matrices too."""
    return left * right if left.cols else mpmath.zeros(left.rows, right.cols)


def solve(left, right):
    """left⁻¹ right in 50 digits, one factorisation for all columns."""
    factors, pivots = mpmath.mp.LU_decomp(left)
    result = mpmath.zeros(right.rows, right.cols)
    for j in range(right.cols):
        column = [mpmath.mpmathify(right[i, j]) for i in range(right.rows)]
        lower = mpmath.mp.L_solve(factors, mpmath.matrix(column), pivots)
        upper = mpmath.mp.U_solve(factors, lower)
        for i in range(right.rows):
            result[i, j] = upper[i]
    return result


def layer_response(layer, s):
    """(M s² + C s + K)⁻¹ (E + V s) in 50 digits."""
    s = mpmath.mpmathify(s)
    left = exact(layer.M) * s**2 + exact(layer.C) * s + exact(layer.K)
    return solve(left, exact(layer.E) + exact(layer.V) * s)


def network_response(network, s):
    """Σ φ ξ + φ̇ s ξ + Ψ at a complex s in 50 digits, from the definition."""
    s = mpmath.mpmathify(s)
    H = exact(network.Psi)
    for layer, Phi in zip(network.layers, network.Phi, strict=True):
        xi = layer_response(layer, s)
        rows = [xi[i, :] for i in range(layer.n_neurons)]
        rows += [s * xi[i, :] for i in np.flatnonzero(layer.is_second_order).tolist()]
        for weights, row in zip(Phi.T, rows, strict=True):
            H += exact(weights[:, None]) * row
    return H


def system_response(system, s):
    """C (s − A)⁻¹ B + D at a complex s in 50 digits."""
    s = mpmath.mpmathify(s)
    n = len(system.A)
    if n == 0:
        return exact(system.D)
    return exact(system.C) * solve(s * mpmath.eye(n) - exact(system.A), exact(system.B)) + exact(system.D)
