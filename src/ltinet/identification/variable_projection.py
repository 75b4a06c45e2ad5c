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
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ltinet._util.floating_point import Array, Complex
from ltinet.identification.block_realization import (
    BlockRealization,
    fit_output_matrices,
    stack_real_imag,
    weighted_regressors,
)
from ltinet.identification.frequency_data import ScaledResponse

# MERGED ltinet.identification.variable_projection
# Levenberg–Marquardt on A and B, with the best C and D for them at every step: variable projection.
#
# What moves are all entries of A's blocks. They are more than a block of poles needs, but a pair then becomes two real
# poles and back without a seam; the damping decides what the response does not. Golub & Pereyra (1973), with the
# Jacobian of Kaufman (1975). Where there are more inputs than outputs B and D are eliminated instead, of the dual system.

_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-12, 1e6
_DOWN, _UP = 0.1, 6.0
_COMPENSATED = 1e-4  # of a direction that C and D make up for, half the digits of rounding may be left


@dataclass(frozen=True)
class DescentOptions:
    """How a descent is carried out."""

    feedthrough: bool
    rounds: int
    floor: float
    """Error that is as good as none."""
    gain: float = 1e-3
    """Relative decrease of the error in two rounds running that is not worth a third."""
    allowed: Callable[[BlockRealization], bool] | None = None
    """Which models may be passed through; None for all."""


def descend(model: BlockRealization, data: ScaledResponse, how: DescentOptions) -> BlockRealization:
    """The model after at most some rounds downhill; never worse than with its best C and D, and never not allowed."""
    if model.n_states == 0:
        return fit_output_matrices(model, data, feedthrough=how.feedthrough)
    model = _pair_real_poles(model)
    if model.D.shape[0] < model.D.shape[1]:
        return _descend_oriented(model.dual(), data.dual(), how).dual()
    return _descend_oriented(model, data, how)


def _descend_oriented(model: BlockRealization, data: ScaledResponse, how: DescentOptions) -> BlockRealization:
    model = fit_output_matrices(model, data, feedthrough=how.feedthrough)
    where = _inside_blocks(model)
    error, damping, idle = data.error(model.response(data.s)), _FIRST_DAMPING, 0
    for _ in range(how.rounds):
        if error <= how.floor or idle == 2:
            break
        normal, slope, scale = _normal_equations(model, data, where, feedthrough=how.feedthrough)
        before = error
        while damping <= _MOST_DAMPING:
            step = _step(normal, slope, damping)
            candidate = None if step is None else _apply_step(model, where, step / scale)
            if candidate is not None and (how.allowed is None or how.allowed(candidate)):
                candidate = fit_output_matrices(candidate, data, feedthrough=how.feedthrough)
                worth = data.error(candidate.response(data.s))
                if worth < error:
                    model, error, damping = candidate, worth, max(_DOWN * damping, _LEAST_DAMPING)
                    break
            damping *= _UP
        else:
            break
        idle = idle + 1 if error > (1.0 - how.gain) * before else 0
    return model


def _step(normal: Array, slope: Array, damping: float) -> Array | None:
    try:
        factor = cho_factor(normal + damping * np.eye(len(normal)), check_finite=False)
    except LinAlgError:
        return None
    step = cho_solve(factor, slope, check_finite=False)
    return step if np.isfinite(step).all() else None


def _apply_step(
    model: BlockRealization, where: tuple[NDArray[np.intp], NDArray[np.intp]], step: Array
) -> BlockRealization:
    A = model.A.copy()
    A[where] += step[: len(where[0])]
    return replace(model, A=A, B=model.B + step[len(where[0]) :].reshape(model.B.shape))


def _normal_equations(
    model: BlockRealization,
    data: ScaledResponse,
    where: tuple[NDArray[np.intp], NDArray[np.intp]],
    *,
    feedthrough: bool,
) -> tuple[Array, Array, Array]:
    """JᵀJ, Jᵀr and the units of the unknowns that both are in, over all outputs.

    With X = (s − A)⁻¹B and Y = C (s − A)⁻¹ the derivatives of H are ∂A_ij: Y_i X_j and ∂B_ij: Y_i e_jᵀ. Of each the
    part that C and D could make up for is taken away, output after output. Units are the norms of
    what is left, but where C and D make up for a direction altogether that is rounding, and must not be blown up.
    """
    X, Y = model.state_responses(data.s), model.output_responses(data.s)
    n_unknowns = len(where[0]) + model.B.size
    normal, slope, size = np.zeros((n_unknowns, n_unknowns)), np.zeros(n_unknowns), np.zeros(n_unknowns)
    rest = data.weights * (data.H - (model.C @ X + model.D))
    for i in range(len(model.C)):
        weights = data.weights[:, i]
        J = stack_real_imag((weights[:, :, None] * _derivatives(X, Y[:, i], where)).reshape(weights.size, -1))
        Q = np.linalg.qr(weighted_regressors(X, weights, feedthrough=feedthrough))[0]
        size += np.einsum("ij,ij->j", J, J)
        J -= Q @ (Q.T @ J)
        normal += J.T @ J
        slope += J.T @ np.concatenate([rest[:, i].real.ravel(), rest[:, i].imag.ravel()])
    scale = np.sqrt(np.maximum(normal.diagonal(), _COMPENSATED**2 * size))
    scale[scale == 0.0] = 1.0
    return normal / np.outer(scale, scale), slope / scale, scale


def _derivatives(X: Complex, y: Complex, where: tuple[NDArray[np.intp], NDArray[np.intp]]) -> Complex:
    """∂H of one output by the entries of A and of B, (K, m, unknowns)."""
    K, n, m = X.shape
    by_B = np.zeros((K, m, n, m), dtype=np.complex128)
    by_B[:, np.arange(m), :, np.arange(m)] = y
    by_A = y[:, None, where[0]] * X[:, where[1]].transpose(0, 2, 1)
    return np.concatenate([by_A, by_B.reshape(K, m, n * m)], axis=2)


def _pair_real_poles(model: BlockRealization) -> BlockRealization:
    """Neighbouring real poles two by two in one block, so that they may become a pair."""
    blocks = model.blocks()
    single = sorted((block for block in blocks if len(block) == 1), key=lambda block: model.A[block[0], block[0]])
    merged = [np.concatenate(single[at : at + 2]) for at in range(0, len(single), 2)]
    chosen = [*merged, *(block for block in blocks if len(block) > 1)]
    order = np.concatenate(chosen)
    sizes = tuple(len(block) for block in chosen)
    return BlockRealization(model.A[np.ix_(order, order)], model.B[order], model.C[:, order], model.D, sizes)


def _inside_blocks(model: BlockRealization) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of all entries of A inside its blocks."""
    grids = [np.meshgrid(block, block, indexing="ij") for block in model.blocks()]
    return np.concatenate([rows.ravel() for rows, _ in grids]), np.concatenate(
        [columns.ravel() for _, columns in grids]
    )
