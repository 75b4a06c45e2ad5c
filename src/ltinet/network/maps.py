"""Maps of Theorem 1 between a block and its layer, named as in the paper's appendix and with its errata applied.

A block (𝒜, ℬ) of pattern G has k_r real eigenvalues on its leading 1×1 blocks and k_c pairs on 2×2 blocks. The states
of the pairs are sorted into first components ξ_c and second components η:

    [ξ_r]'   [A11 A12 A13] [ξ_r]   [B1]
    [ξ_c]  = [ 0  A22 A23] [ξ_c] + [B2] u
    [ η ]    [ 0  A32 A33] [ η ]   [B3]

All square blocks A_ij are upper triangular and the diagonal of A23 holds the entries b ≠ 0 of the 2×2 blocks, so that
every inverse is a triangular solve and every result is upper triangular again.

The sums in these maps cancel where a neuron does not depend on an input, or an output not on a neuron. The magnitudes
of their terms, from the same formulas with absolute values, tell which results are rounding errors and become zero;
otherwise they would differ between processors and count as weights.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ltinet._util.floating_point import Array
from ltinet.systems.matrices import Matrix


class EtaMap(NamedTuple):
    """Map η = W ξ_c + Q ξ̇_c + Z u to the components that the second-order form eliminates."""

    W: Matrix
    Q: Matrix
    Z: Matrix


class LayerMatrices(NamedTuple):
    """Matrices of a horizontal layer M ξ̈ + C ξ̇ + K ξ = E u + V u̇ (Definition 7).

    M is diagonal, C and K are upper triangular.
    """

    M: Matrix
    C: Matrix
    K: Matrix
    E: Matrix
    V: Matrix


class LayerParameters(NamedTuple):
    """Parameter sets (𝓜, 𝓒, 𝓚, 𝓦) of one layer.

    Parameters
    ----------
    masses, dampings, stiffnesses : tuple of float
        m, c and k of each neuron.
    weights : tuple of ndarray
        Weights w = [e | v | −k_ij −c_ij …] of each neuron, with its couplings to the neurons j after it.
    """

    masses: tuple[float, ...]
    dampings: tuple[float, ...]
    stiffnesses: tuple[float, ...]
    weights: tuple[Matrix, ...]


class _SortedBlock(NamedTuple):
    """Block with its states in the order (ξ_r, ξ_c, η)."""

    A11: Matrix
    A12: Matrix
    A13: Matrix
    A22: Matrix
    A23: Matrix
    A32: Matrix
    A33: Matrix
    B1: Matrix
    B2: Matrix
    B3: Matrix


def m_eta(A: Matrix, B: Matrix, *, n_real: int) -> EtaMap:
    """Return (W, Q, Z) of a block (𝒜, ℬ): Q = A23⁻¹, W = −A23⁻¹ A22, Z = −A23⁻¹ B2. Cost O(k_c³ + k_c² m)."""
    block = _sort_states(A, B, n_real)
    n_pairs = len(block.A23)
    right = np.hstack([-block.A22, np.eye(n_pairs), -block.B2])
    solved = solve_upper(block.A23, right)
    return EtaMap(solved[:, :n_pairs], solved[:, n_pairs : 2 * n_pairs], solved[:, 2 * n_pairs :])


def m_lti(A: Matrix, B: Matrix, *, n_real: int) -> LayerMatrices:
    """Return (M, C, K, E, V) of a block (𝒜, ℬ), its differential equations (Lemma A.2). Cost O(n_l³ + n_l² m)."""
    return _layer_matrices(_sort_states(A, B, n_real), m_eta(A, B, n_real=n_real))


def _layer_matrices(block: _SortedBlock, eta: EtaMap) -> LayerMatrices:
    """Return (M, C, K, E, V); all terms of an entry have one sign in these formulas."""
    W, Q, Z = eta
    n_real = len(block.A11)
    real, pairs = slice(0, n_real), slice(n_real, n_real + len(Q))
    n_neurons, A2333 = pairs.stop, block.A23 @ block.A33
    M, C, K = (np.zeros((n_neurons, n_neurons)) for _ in range(3))
    M[pairs, pairs] = np.eye(len(Q))
    C[real, real] = np.eye(n_real)
    C[real, pairs] = -block.A13 @ Q
    C[pairs, pairs] = -(block.A22 + A2333 @ Q)
    K[real, real] = -block.A11
    K[real, pairs] = -(block.A12 + block.A13 @ W)
    K[pairs, pairs] = -(block.A23 @ block.A32 + A2333 @ W)
    E = np.vstack([block.B1 + block.A13 @ Z, A2333 @ Z + block.A23 @ block.B3])
    V = np.vstack([np.zeros_like(block.B1), block.B2])
    return LayerMatrices(M, np.triu(C), np.triu(K), E, V)


def n_dynn(parameters: LayerParameters, *, n_inputs: int) -> LayerMatrices:
    """Return (M, C, K, E, V) of a layer from its parameter sets (𝓜, 𝓒, 𝓚, 𝓦) (Lemma 1)."""
    n_neurons = len(parameters.masses)
    C, K = np.diag(np.array(parameters.dampings, dtype=float)), np.diag(np.array(parameters.stiffnesses, dtype=float))
    E, V = np.zeros((n_neurons, n_inputs)), np.zeros((n_neurons, n_inputs))
    for i, w in enumerate(parameters.weights):
        E[i], V[i] = w[:n_inputs], w[n_inputs : 2 * n_inputs]
        K[i, i + 1 :], C[i, i + 1 :] = -w[2 * n_inputs :: 2], -w[2 * n_inputs + 1 :: 2]
    return LayerMatrices(np.diag(np.array(parameters.masses, dtype=float)), C, K, E, V)


def n_dynn_inverse(layer: LayerMatrices) -> LayerParameters:
    """Return the parameter sets (𝓜, 𝓒, 𝓚, 𝓦) of a layer from its matrices."""
    weights = []
    for i in range(len(layer.M)):
        connections = np.column_stack([-layer.K[i, i + 1 :], -layer.C[i, i + 1 :]]).ravel()
        weights.append(np.concatenate([layer.E[i], layer.V[i], connections]))
    masses, dampings, stiffnesses = (tuple(matrix.diagonal().tolist()) for matrix in (layer.M, layer.C, layer.K))
    return LayerParameters(masses, dampings, stiffnesses, tuple(weights))


def m_h(A: Matrix, B: Matrix, *, n_real: int) -> LayerParameters:
    """Return the parameter sets of a block, the composition of m_lti and the inverse of n_dynn."""
    return n_dynn_inverse(m_lti(A, B, n_real=n_real))


def m_o(A: Matrix, B: Matrix, C: Matrix, *, n_real: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return (φ, φ̇, ψ) of a block, its part y = φ ξ + φ̇ ξ̇_c + ψ u of the outputs.

    φ is p×n_l and φ̇ p×k_c: the ξ̇ of first-order neurons have zero weights and are not stored. With C split into its
    columns (C_r, C_c, C_η): φ = [C_r, C_c + C_η W], φ̇ = C_η Q, ψ = C_η Z; the network's Ψ is D plus the sum of the ψ.
    """
    return _output_weights(C, m_eta(A, B, n_real=n_real), n_real)


def _output_weights(C: Matrix, eta: EtaMap, n_real: int) -> tuple[Matrix, Matrix, Matrix]:
    W, Q, Z = eta
    C_r, C_c, C_eta = C[:, :n_real], C[:, n_real::2], C[:, n_real + 1 :: 2]
    return np.hstack([C_r, C_c + C_eta @ W]), C_eta @ Q, C_eta @ Z


def _sort_states(A: Matrix, B: Matrix, n_real: int) -> _SortedBlock:
    """Split a block into its parts for ξ_r, ξ_c and η."""
    r, c, e = slice(0, n_real), slice(n_real, None, 2), slice(n_real + 1, None, 2)
    return _SortedBlock(A[r, r], A[r, c], A[r, e], A[c, c], A[c, e], A[e, c], A[e, e], B[r], B[c], B[e])


def solve_upper(triangle: Matrix, right: Matrix) -> Matrix:
    """Solve with an upper triangular matrix of any size, 0×0 included."""
    if len(triangle) == 0 or right.shape[1] == 0:
        return np.zeros(right.shape)
    solution, _ = lapack.dtrtrs(triangle, right)
    return np.asarray(solution)


# Magnitudes of the terms, for rounding bounds


class TermMagnitudes(NamedTuple):
    """Magnitudes |T⁻¹||B| and |C||T| of the terms of the entries of B and C; zero for entries that are zero."""

    B: Array
    C: Array


def drop_rounding(values: Array, bound: Array) -> Array:
    """Return the values with zeros where they do not exceed a finite bound."""
    zero = np.abs(values) <= bound
    zero &= bound < np.inf
    return np.where(zero, 0.0, values) if zero.any() else values


def lti_magnitudes(A: Matrix, B: Matrix, *, n_real: int) -> LayerMatrices:
    """Return the magnitudes of the terms that `m_lti` sums, entry by entry, from those of the entries of B."""
    matrices = _layer_matrices(_sort_states(np.abs(A), B, n_real), _eta_magnitudes(A, B, n_real))
    return LayerMatrices(*map(np.abs, matrices))


def output_magnitudes(A: Matrix, B: Matrix, C: Matrix, *, n_real: int) -> tuple[Matrix, Matrix]:
    """Return the magnitudes of the terms of [φ, φ̇] and ψ in `m_o`, from those of the entries of B and C."""
    values, rates, psi = _output_weights(C, _eta_magnitudes(A, B, n_real), n_real)
    return np.hstack([values, rates]), psi


def _eta_magnitudes(A: Matrix, B: Matrix, n_real: int) -> EtaMap:
    """Return the magnitudes of the terms of (W, Q, Z) in `m_eta`."""
    Q = np.abs(m_eta(A, np.zeros((len(A), 0)), n_real=n_real).Q)
    return EtaMap(Q @ np.abs(A[n_real::2, n_real::2]), Q, Q @ B[n_real::2])
