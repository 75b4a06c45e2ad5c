"""Variable projection: Levenberg–Marquardt on A and B, with the optimal C and D eliminated at every step.

The unknowns are all entries of the diagonal blocks of A, more than a block of poles needs, so that a pair can become
two real poles and back; the damping selects among equivalent steps. Golub & Pereyra (1973), with the Jacobian of
Kaufman (1975). With X = (s − A)⁻¹B and Y = C (s − A)⁻¹ the derivatives of H are ∂A_ij: Y_i X_j and ∂B_ij: Y_i e_jᵀ,
less the part that C and D compensate. Where there are more inputs than outputs the dual system is fitted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from ltinet._util.floating_point import Array, Complex
from ltinet.identification.block_realization import (
    BlockRealization,
    fit_output_matrices,
    stack_real_imag,
    weighted_regressors,
)
from ltinet.identification.frequency_data import ScaledResponse

# Damping of Levenberg and Marquardt, relative to a unit diagonal, and its factors after good and bad steps; empirical.
_FIRST_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1e-3, 1e-12, 1e6
_DECREASE, _INCREASE = 0.1, 6.0
# Smallest norm of a projected derivative by that of the derivative: C and D compensate the rest, and half of the
# digits of rounding must not be amplified.
_MIN_REMAINDER = 1e-4
_MAX_IDLE_ROUNDS = 2
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
