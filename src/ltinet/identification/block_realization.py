"""Realizations with block-diagonal A and their fit to a response: H(s) = C (s − A)⁻¹ B + D.

Real partial fractions combine 1/(s − p) and 1/(s − p̄) of a pair such that their coefficients are real; pairs are
blocks [[a, ω], [−ω, a]]. For given poles the residues, and for given A and B the matrices C and D (or for given A and
C, B and D), are linear least-squares problems, solved here with weights for every frequency and channel.

Variable projection is Levenberg–Marquardt on A and B, with the optimal C and D eliminated at every step. The unknowns
are all entries of the diagonal blocks of A, more than a block of poles needs, so that a pair can become two real poles
and back; the damping selects among equivalent steps. Golub & Pereyra (1973), with the Jacobian of Kaufman (1975). With
X = (s − A)⁻¹B and Y = C (s − A)⁻¹ the derivatives of H are ∂A_ij: Y_i X_j and ∂B_ij: Y_i e_jᵀ, less the part that C
and D compensate. Where there are more inputs than outputs the dual system is fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve, lstsq

from ltinet._util.floating_point import EPS, Array, Complex
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


# Variable projection.

# Damping of Levenberg and Marquardt, relative to a unit diagonal: 1e-12 is the rounding of normal equations of some
# thousand rows, and at 1e6 a step changes the unknowns by 1e-6 of a unit, so that no decrease is left to find. The
# first value and the factors after good and bad steps determine the path (speed).
_FIRST_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1e-3, 1e-12, 1e6
_DECREASE, _INCREASE = 0.1, 6.0
# Smallest norm of a projected derivative by that of the derivative: C and D compensate the rest. The normal equations
# square it, and half of their digits remain at √eps.
_MIN_REMAINDER = EPS**0.25
_MAX_IDLE_ROUNDS = 2  # a single idle round may be due to a damping that is still too large
_Entries = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True)
class DescentOptions:
    """Limits of a descent."""

    rounds: int
    floor: float
    """Error at which the descent stops."""
    gain: float = 1e-3
    """Relative decrease of the error below which a round is idle; the descent stops after two idle rounds."""
    allowed: Callable[[BlockRealization], bool] | None = None
    """Predicate of models that may be stepped to; None for all."""


def descend(model: BlockRealization, data: ScaledResponse, options: DescentOptions) -> BlockRealization:
    """Return the model after the descent, at least as good as with its best C and D, and allowed."""
    if model.n_states == 0:
        return fit_output_matrices(model, data)
    model = _pair_real_poles(model)
    if model.D.shape[0] < model.D.shape[1]:
        return _descend_tall(model.dual(), data.dual(), options).dual()
    return _descend_tall(model, data, options)


def _descend_tall(model: BlockRealization, data: ScaledResponse, options: DescentOptions) -> BlockRealization:
    """Descend for at least as many outputs as inputs."""
    model = fit_output_matrices(model, data)
    # Rows and columns of all entries of A within its blocks.
    entries = np.nonzero(block_diag(*(np.ones((size, size)) for size in model.sizes)))
    error, damping, idle = data.error(model.response(data.s)), _FIRST_DAMPING, 0
    for _ in range(options.rounds):
        if error <= options.floor or idle == _MAX_IDLE_ROUNDS:
            break
        normal, slope, scale = _normal_equations(model, data, entries)
        before = error
        while damping <= _MAX_DAMPING:
            step = _solve_damped(normal, slope, damping)
            if step is not None:
                A, (step_A, step_B) = model.A.copy(), np.split(step / scale, [len(entries[0])])
                A[entries] += step_A
                candidate = replace(model, A=A, B=model.B + step_B.reshape(model.B.shape))
                if options.allowed is None or options.allowed(candidate):
                    candidate = fit_output_matrices(candidate, data)
                    candidate_error = data.error(candidate.response(data.s))
                    if candidate_error < error:
                        model, error, damping = candidate, candidate_error, max(_DECREASE * damping, _MIN_DAMPING)
                        break
            damping *= _INCREASE
        else:
            break
        idle = idle + 1 if error > (1.0 - options.gain) * before else 0
    return model


def _solve_damped(normal: Array, slope: Array, damping: float) -> Array | None:
    """Solve (N + damping I) step = slope; None where the matrix is not positive definite, or the step not finite."""
    try:
        factor = cho_factor(normal + damping * np.eye(len(normal)), check_finite=False)
    except LinAlgError:
        return None
    step = cho_solve(factor, slope, check_finite=False)
    return step if np.isfinite(step).all() else None


def _normal_equations(model: BlockRealization, data: ScaledResponse, entries: _Entries) -> tuple[Array, Array, Array]:
    """Return JᵀJ, Jᵀr and the units of the unknowns that both are in, over all outputs.

    With X = (s − A)⁻¹B and Y = C (s − A)⁻¹ the derivatives of H are ∂A_ij: Y_i X_j and ∂B_ij: Y_i e_jᵀ. Of each the
    part that C and D compensate is subtracted, output by output. Units are the norms of the remainders, bounded below
    where a derivative is compensated altogether and its remainder is rounding.
    """
    X, Y = model.state_responses(data.s), model.output_responses(data.s)
    n_unknowns = len(entries[0]) + model.B.size
    normal, slope, size = np.zeros((n_unknowns, n_unknowns)), np.zeros(n_unknowns), np.zeros(n_unknowns)
    errors = data.weights * (data.H - (model.C @ X + model.D))
    for i in range(len(model.C)):
        weights = data.weights[:, i]
        J = stack_real_imag((weights[:, :, None] * _derivatives(X, Y[:, i], entries)).reshape(weights.size, -1))
        Q = np.linalg.qr(weighted_regressors(X, weights, feedthrough=data.feedthrough))[0]
        size += np.einsum("ij,ij->j", J, J)
        J -= Q @ (Q.T @ J)
        normal += J.T @ J
        slope += J.T @ np.concatenate([errors[:, i].real.ravel(), errors[:, i].imag.ravel()])
    scale = np.sqrt(np.maximum(normal.diagonal(), _MIN_REMAINDER**2 * size))
    scale[scale == 0.0] = 1.0
    return normal / np.outer(scale, scale), slope / scale, scale


def _derivatives(X: Complex, y: Complex, entries: _Entries) -> Complex:
    """Return the derivatives of one output of H by the entries of A and of B, `(K, m, unknowns)`."""
    K, n, m = X.shape
    by_B = np.zeros((K, m, n, m), dtype=np.complex128)
    by_B[:, np.arange(m), :, np.arange(m)] = y
    by_A = y[:, None, entries[0]] * X[:, entries[1]].transpose(0, 2, 1)
    return np.concatenate([by_A, by_B.reshape(K, m, n * m)], axis=2)


def _pair_real_poles(model: BlockRealization) -> BlockRealization:
    """Merge neighboring real poles in blocks of two, so that they may become a pair."""
    blocks = model.blocks()
    single = sorted((block for block in blocks if len(block) == 1), key=lambda block: model.A[block[0], block[0]])
    merged = [np.concatenate(single[at : at + 2]) for at in range(0, len(single), 2)]
    blocks = [*merged, *(block for block in blocks if len(block) > 1)]
    order, sizes = np.concatenate(blocks), tuple(map(len, blocks))
    return BlockRealization(model.A[np.ix_(order, order)], model.B[order], model.C[:, order], model.D, sizes)
