"""What is linear in a model: residues for given poles, and C, D or B, D for given dynamics, by least squares."""

from dataclasses import replace

import numpy as np
from scipy.linalg import lstsq

from ltinet.arrays import Array, Complex
from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.partial_fractions import block_matrices, fractions, stacked
from ltinet.identification.from_frequency.realisation import Realisation


def with_residues(data: ScaledResponse, poles: Complex, *, feedthrough: bool) -> Realisation:
    """The best model with these poles and residues of full rank: N·min(p, m) states, not minimal."""
    K, p, m = data.H.shape
    regressors = fractions(data.s, poles)
    if feedthrough:
        regressors = np.column_stack([regressors, np.ones((K, 1))])
    found = np.empty((regressors.shape[1], p, m))
    for i in range(p):
        for j in range(m):
            found[:, i, j] = _least_squares(
                stacked(data.weights[:, i, j, None] * regressors), data.weights[:, i, j] * data.H[:, i, j]
            )
    N = len(poles)
    D = found[N] if feedthrough else np.zeros((p, m))
    A, b = block_matrices(poles)
    few = min(p, m)
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    sizes = ((1,) * n_real + (2,) * ((N - n_real) // 2)) * few
    if m <= p:  # the poles once for every input
        B: Array = np.asarray(np.kron(np.eye(m), b[:, None]), dtype=np.float64)
        C: Array = found[:N].transpose(1, 2, 0).reshape(p, m * N)
        return Realisation(np.asarray(np.kron(np.eye(m), A), dtype=np.float64), B, C, D, sizes)
    # Once for every output, transposed: bᵀ (s − Aᵀ)⁻¹ c = cᵀ (s − A)⁻¹ b.
    B, C = found[:N].transpose(1, 0, 2).reshape(p * N, m), np.asarray(np.kron(np.eye(p), b[None, :]), dtype=np.float64)
    return Realisation(np.asarray(np.kron(np.eye(p), A.T), dtype=np.float64), B, C, D, sizes)


def refitted(model: Realisation, data: ScaledResponse, *, feedthrough: bool) -> Realisation:
    """The model with the best C and D for its A and B."""
    X = model.state_responses(data.s)
    C, D = np.empty_like(model.C), np.zeros(model.D.shape)
    for i in range(len(C)):
        weights = data.weights[:, i]
        M = weighted_regressors(X, weights, feedthrough=feedthrough)
        found = _least_squares(M, weights.ravel() * data.H[:, i].ravel())
        C[i] = found[: model.n_states]
        if feedthrough:
            D[i] = found[model.n_states :]
    return replace(model, C=C, D=D)


def weighted_regressors(X: Complex, weights: Array, *, feedthrough: bool) -> Array:
    """What one output is made of: rows are (frequency, input), columns the states and, with a direct path, the inputs.

    X = (s − A)⁻¹B is (K, n, m), the weights of the output are (K, m).
    """
    K, _, m = X.shape
    columns = X.transpose(0, 2, 1)
    if feedthrough:
        columns = np.concatenate([columns, np.broadcast_to(np.eye(m), (K, m, m))], axis=2)
    return stacked((weights[:, :, None] * columns).reshape(K * m, -1))


def _least_squares(M: Array, wanted: Complex) -> Array:
    """Real x with M x ≈ (Re, Im) of what is wanted, columns of M brought to one size first."""
    scale = np.linalg.norm(M, axis=0)
    scale[scale == 0.0] = 1.0
    right = np.concatenate([wanted.real, wanted.imag])
    return np.asarray(lstsq(M / scale, right, lapack_driver="gelsy", check_finite=False)[0] / scale)
