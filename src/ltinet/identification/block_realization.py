"""Realizations with block-diagonal A for fitting: H(s) = C (s − A)⁻¹ B + D.

Real partial fractions combine 1/(s − p) and 1/(s − p̄) of a pair such that their coefficients are real; pairs are
blocks [[a, ω], [−ω, a]]. For given poles the residues, and for given A and B the matrices C and D (or for given A and
C, B and D), are linear least-squares problems, solved here with weights for every frequency and channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from ltinet._util.floating_point import Array, Complex
from ltinet.blockdiag.block_diagonalization import block_diagonalize
from ltinet.identification.frequency_data import ScaledResponse

# Partial fractions.


def sort_pairs(poles: Complex) -> Complex:
    """Sort poles: real ones first, ascending, then of each pair the pole with positive imaginary part followed by the other."""
    real = np.sort(poles[poles.imag == 0.0].real).astype(np.complex128)
    upper = poles[poles.imag > 0.0]
    upper = upper[np.argsort(upper.imag)]
    return np.concatenate([real, np.column_stack([upper, upper.conj()]).ravel()])


def partial_fractions(s: Complex, poles: Complex) -> Complex:
    """Return columns 1/(s − p), and for pairs 1/(s − p) + 1/(s − p̄) and j/(s − p) − j/(s − p̄), `(K, N)`.

    The poles are sorted by `sort_pairs`.
    """
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    plain = 1.0 / (s[:, None] - poles)
    columns = plain.copy()
    upper, lower = plain[:, n_real::2], plain[:, n_real + 1 :: 2]
    columns[:, n_real::2] = upper + lower
    columns[:, n_real + 1 :: 2] = 1j * (upper - lower)
    return columns


def pole_blocks(poles: Complex) -> tuple[Array, Array]:
    """Return A and b with c (s − A)⁻¹ b = Σ cᵢ · (column i of `partial_fractions`) for every real c."""
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    A, b = np.diag(poles.real), np.ones(len(poles))
    at = np.arange(n_real, len(poles), 2)
    A[at, at + 1], A[at + 1, at] = poles[at].imag, -poles[at].imag
    b[at], b[at + 1] = 2.0, 0.0
    return A, b


def stack_real_imag(values: Complex) -> Array:
    """Stack real parts above imaginary parts, along the last axis but one."""
    return np.concatenate([values.real, values.imag], axis=-2)


# Realization.


@dataclass(frozen=True)
class BlockRealization:
    """Realization of H(s) = C (s − A)⁻¹ B + D, where A has diagonal blocks of these sizes and is zero elsewhere."""

    A: Array
    B: Array
    C: Array
    D: Array
    sizes: tuple[int, ...]

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.A)

    @property
    def poles(self) -> Complex:
        """Eigenvalues of A, block by block."""
        parts = [np.linalg.eigvals(self.A[block][:, block]) for block in self.blocks()]
        return np.concatenate([*parts, np.empty(0)]).astype(np.complex128)

    def dual(self) -> "BlockRealization":
        """Return the realization of the transposed response."""
        return BlockRealization(self.A.T, self.C.T, self.B.T, self.D.T, self.sizes)

    def blocks(self) -> list[NDArray[np.intp]]:
        """Return the indices of the states of every block."""
        return np.split(np.arange(self.n_states), np.cumsum(self.sizes)[:-1]) if self.sizes else []

    def response(self, s: Complex) -> Complex:
        """Return H(s), `(len(s), p, m)`."""
        return np.asarray(self.C @ self.state_responses(s) + self.D)

    def state_responses(self, s: Complex) -> Complex:
        """Return (s − A)⁻¹ B, `(len(s), n, m)`."""
        return _solve_blocks(self.A, self.B, s, self.sizes)

    def output_responses(self, s: Complex) -> Complex:
        """Return C (s − A)⁻¹, `(len(s), p, n)`."""
        return _solve_blocks(self.A.T, self.C.T, s, self.sizes).transpose(0, 2, 1)


def to_block_realization(A: Array, B: Array, C: Array, D: Array) -> BlockRealization:
    """Block-diagonalize a realization: real poles, pairs, and poles that are nearly dependent together."""
    if len(A) == 0:
        return BlockRealization(A, B, C, D, ())
    form = block_diagonalize(A)
    return BlockRealization(np.array(form.A), form.T_inv @ B, C @ form.T, D, form.block_sizes)


def _solve_blocks(A: Array, B: Array, s: Complex, sizes: Sequence[int]) -> Complex:
    """Return (s − A)⁻¹ B, all blocks of one size at once."""
    X = np.empty((len(s), *B.shape), dtype=np.complex128)
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.empty(0, dtype=np.intp)
    for size in set(sizes):
        states = starts[np.array(sizes) == size][:, None] + np.arange(size)
        inner = A[states[:, :, None], states[:, None, :]]
        solved = _inverses(inner, s) @ B[states]
        X[:, states.ravel()] = solved.reshape(len(s), -1, B.shape[1])
    return X


def _inverses(blocks: Array, s: Complex) -> Complex:
    """Return (s − A_b)⁻¹ for every point and every block of one size, in closed form up to size 2."""
    shifted = s[:, None, None, None] * np.eye(blocks.shape[-1]) - blocks
    if blocks.shape[-1] == 1:
        return np.asarray(1.0 / shifted)
    if blocks.shape[-1] == 2:
        a, b, c, d = shifted[..., 0, 0], shifted[..., 0, 1], shifted[..., 1, 0], shifted[..., 1, 1]
        adjugate = np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)
        return np.asarray(adjugate / (a * d - b * c)[..., None, None])
    return np.asarray(np.linalg.inv(shifted))


# Linear least squares.


def fit_residues(data: ScaledResponse, poles: Complex) -> BlockRealization:
    """Fit residues of full rank for given poles, and return the model with N·min(p, m) states, not minimal."""
    K, p, m = data.H.shape
    regressors = partial_fractions(data.s, poles)
    if data.feedthrough:
        regressors = np.column_stack([regressors, np.ones((K, 1))])
    residues = np.empty((regressors.shape[1], p, m))
    for i in range(p):
        for j in range(m):
            weights = data.weights[:, i, j]
            side = weights * data.H[:, i, j]
            columns = stack_real_imag(weights[:, None] * regressors)
            residues[:, i, j] = least_squares(columns, np.concatenate([side.real, side.imag]))
    N = len(poles)
    D = residues[N] if data.feedthrough else np.zeros((p, m))
    A, b = pole_blocks(poles)
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    sizes = ((1,) * n_real + (2,) * ((N - n_real) // 2)) * min(p, m)
    parts: list[NDArray[Any]]
    if m <= p:  # the poles once for every input
        parts = [np.kron(np.eye(m), A), np.kron(np.eye(m), b[:, None]), residues[:N].transpose(1, 2, 0)]
    else:  # once for every output, transposed: bᵀ (s − Aᵀ)⁻¹ c = cᵀ (s − A)⁻¹ b
        parts = [np.kron(np.eye(p), A.T), residues[:N].transpose(1, 0, 2), np.kron(np.eye(p), b[None, :])]
    n = len(parts[0])
    shapes = ((n, n), (n, m), (p, n))
    A, B, C = (np.asarray(M, dtype=np.float64).reshape(shape) for M, shape in zip(parts, shapes, strict=True))
    return BlockRealization(A, B, C, D, sizes)


def fit_output_matrices(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """Return the model with the best C and D for its A and B."""
    X = model.state_responses(data.s)
    C, D = np.empty_like(model.C), np.zeros(model.D.shape)
    for i in range(len(C)):
        weights = data.weights[:, i]
        M = weighted_regressors(X, weights, feedthrough=data.feedthrough)
        side = weights.ravel() * data.H[:, i].ravel()
        row = least_squares(M, np.concatenate([side.real, side.imag]))
        C[i] = row[: model.n_states]
        if data.feedthrough:
            D[i] = row[model.n_states :]
    return replace(model, C=C, D=D)


def weighted_regressors(X: Complex, weights: Array, *, feedthrough: bool) -> Array:
    """Return the regressors of one output: rows are (frequency, input), columns the states and, for D, the inputs.

    X = (s − A)⁻¹B is `(K, n, m)`, the weights of the output are `(K, m)`.
    """
    K, _, m = X.shape
    columns = X.transpose(0, 2, 1)
    if feedthrough:
        columns = np.concatenate([columns, np.broadcast_to(np.eye(m), (K, m, m))], axis=2)
    return stack_real_imag((weights[:, :, None] * columns).reshape(K * m, -1))


def least_squares(M: Array, side: Array) -> Array:
    """Return x that minimizes ‖M x − side‖, with columns of M scaled to norm 1."""
    scale = np.linalg.norm(M, axis=0)
    scale[scale == 0.0] = 1.0
    return np.asarray(lstsq(M / scale, side, lapack_driver="gelsy", check_finite=False)[0] / scale)
