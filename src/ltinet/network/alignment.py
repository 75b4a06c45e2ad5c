"""Turn the plane of each single pair so that its second-order equation has small numbers.

The states (ξ, η) of a pair may be turned in their plane by any angle. The maps eliminate η = W ξ + Q ξ̇ + Z u, which
puts −C_η B_ξ/b into Ψ and the same with the other sign into the sum over neurons: at high frequencies their difference
is what is left, and its error is eps·|C_η||B_ξ|/b. Where inputs reach a pair in one direction only (a single input, or
forces on a mode of a structure), ξ can stand across that direction: B_ξ = 0, no u̇ appears and Ψ = D. Where outputs see
one direction only, η can stand across that: C_η = 0. Elsewhere the better of the two is taken.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.matrices import Matrix, read_only
from ltinet.tolerances import EPS

Planes = NDArray[np.float64]
"""A stack of matrices, one for each pair."""

_ROWS = 256  # turned at a time, so that temporary copies stay small


def align_pairs(form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> BlockDiagonalForm:
    """The same form with the basis of every block of one pair turned to suit B and C; cond(T) stays as it is.

    A turned pair stands as [[a, b], [c, d]] with b > 0. Blocks of several neurons are left alone. Cost
    O(n² + n k (m + p)) for k pairs.
    """
    sizes = np.array(form.block_sizes, dtype=np.intp)
    is_pair = [len(values) == 2 and values[0].imag != 0.0 for values in form.eigenvalues]
    at = (np.cumsum(sizes) - sizes)[is_pair][:, None] + np.arange(2)
    if at.size == 0 or B.shape[1] == 0 or len(C) == 0:
        return form
    place = (at[:, :, None], at[:, None, :])
    B_pairs = (form.T_inv[at.ravel()] @ B).reshape(len(at), 2, -1)
    C_pairs = (C @ form.T[:, at.ravel()]).reshape(len(C), len(at), 2).transpose(1, 0, 2)
    turns = _best_turns(form.A[place], B_pairs, C_pairs)
    A = form.A.copy()
    A[place] = _similar(form.A[place], turns)
    form = replace(form, A=read_only(A))  # step by step: at no time do two old matrices live
    form = replace(form, T=read_only(_turn_columns(form.T, at, turns)))
    return replace(form, T_inv=read_only(_turn_columns(form.T_inv.T, at, turns).T))


def _best_turns(blocks: Planes, B: Planes, C: Planes) -> Planes:
    """For each pair an orthogonal basis [ξ, η] of its plane with |C_η||B_ξ|/b small and b > 0."""
    B, C = _of_order_one(B), _of_order_one(C)
    across_inputs = _principal_axes(B @ B.transpose(0, 2, 1))
    across_outputs = _principal_axes(C.transpose(0, 2, 1) @ C)[:, :, ::-1]
    as_it_is = np.broadcast_to(np.eye(2), blocks.shape)
    candidates = np.stack([across_inputs, across_outputs, as_it_is])
    upper = _similar(blocks, candidates)[..., 0, 1]
    # Nothing turned is smaller than its rounding errors.
    B_xi = np.linalg.norm(candidates[..., 0][..., None, :] @ B, axis=(-2, -1)) + EPS * np.linalg.norm(B, axis=(-2, -1))
    C_eta = np.linalg.norm(C @ candidates[..., 1][..., None], axis=(-2, -1)) + EPS * np.linalg.norm(C, axis=(-2, -1))
    size = C_eta * B_xi / np.abs(upper)
    size[1:] *= 2.0  # of equals the first: without u̇ the equations are simpler
    best = np.argmin(size, axis=0), np.arange(len(blocks))
    turns: Planes = np.array(candidates[best])
    turns[:, :, 0] *= np.sign(upper[best])[:, None]  # the upper entry of a complex pair is never zero
    return turns


def _principal_axes(gram: Planes) -> Planes:
    """Orthonormal eigenvectors as columns, the weakest direction first."""
    return np.asarray(np.linalg.eigh(gram)[1])


def _of_order_one(matrices: Planes) -> Planes:
    """Each matrix divided by its largest entry, so that squares neither over- nor underflow."""
    largest = np.max(np.abs(matrices), axis=(1, 2), keepdims=True)
    return np.asarray(matrices / np.where(largest > 0.0, largest, 1.0))


def _similar(blocks: Planes, turns: Planes) -> Planes:
    return np.asarray(turns.swapaxes(-1, -2) @ blocks @ turns)


def _turn_columns(matrix: Matrix, at: NDArray[np.intp], turns: Planes) -> Matrix:
    """Replace the columns [p, q] of each pair by [p, q] · turn."""
    turned = np.array(matrix)
    for start in range(0, len(matrix), _ROWS):
        rows = slice(start, start + _ROWS)
        p, q = matrix[rows, at[:, 0]], matrix[rows, at[:, 1]]
        turned[rows, at[:, 0]] = p * turns[:, 0, 0] + q * turns[:, 1, 0]
        turned[rows, at[:, 1]] = p * turns[:, 0, 1] + q * turns[:, 1, 1]
    return turned
