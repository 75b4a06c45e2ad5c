"""Turn the plane of each pair that stands alone so that its second-order equation has small numbers.

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
from ltinet.decompose.structures.diagonal_blocks import DiagonalBlocks
from ltinet.decompose.turns import Planes, Turns
from ltinet.model.matrices import Matrix, read_only
from ltinet.tolerances import EPS


def align_pairs(form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> BlockDiagonalForm:
    """The same form with the plane of every pair without connections turned to suit B and C; cond(T) stays as it is.

    A turned pair stands as [[a, b], [c, d]] with b > 0. Connected neurons are left alone. Cost O(n² (m + p)).
    """
    at = _single_pairs(form)
    if at.size == 0 or B.shape[1] == 0 or len(C) == 0:
        return form
    place = (at[:, :, None], at[:, None, :])
    transformation = form.transformation.prepared_for(B.shape[1] + len(C))
    B_pairs = transformation.to_blocks(B)[at]
    C_pairs = transformation.from_blocks(C)[:, at].transpose(1, 0, 2)
    turns = _best_turns(form.A[place], B_pairs, C_pairs)
    planes, transformation = _turned(form.A[place], turns), transformation.turned(Turns(turns, at))
    if isinstance(form.A, DiagonalBlocks):
        return replace(form, A=form.A.with_pairs(at, planes), transformation=transformation)
    A = form.A.copy()
    A[place] = planes
    return replace(form, A=read_only(A), transformation=transformation)


def _single_pairs(form: BlockDiagonalForm) -> NDArray[np.intp]:
    """The states `(k, 2)` of pairs that are blocks of their own, or have no connections inside a larger one."""
    sizes, n_reals = np.array(form.block_sizes, dtype=np.intp), np.array(form.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    first = [starts[(sizes == 2) & (n_reals == 0)]]
    for block in ((sizes > 2) & (sizes > n_reals)).nonzero()[0].tolist():
        pairs = np.arange(n_reals[block], sizes[block], 2)
        connections = form.block(block) != 0.0
        connections[pairs[:, None, None] + [[0], [1]], pairs[:, None, None] + [[0, 1]]] = False
        is_connected = connections.any(axis=0) | connections.any(axis=1)
        first.append(starts[block] + pairs[~(is_connected[pairs] | is_connected[pairs + 1])])
    return np.sort(np.concatenate(first))[:, None] + np.arange(2)


def _best_turns(blocks: Planes, B: Planes, C: Planes) -> Planes:
    """For each pair an orthogonal basis [ξ, η] of its plane with |C_η||B_ξ|/b small and b > 0."""
    B, C = _of_order_one(B), _of_order_one(C)
    across_inputs = _principal_axes(B @ B.transpose(0, 2, 1))
    across_outputs = _principal_axes(C.transpose(0, 2, 1) @ C)[:, :, ::-1]
    as_it_is = np.broadcast_to(np.eye(2), blocks.shape)
    candidates = np.stack([across_inputs, across_outputs, as_it_is])
    upper = _similar(blocks, candidates)[..., 0, 1]
    # Nothing turned is smaller than its rounding errors.
    B_xi = _norms(candidates[..., 0][..., None, :] @ B) + EPS * _norms(B)
    C_eta = _norms(C @ candidates[..., 1][..., None]) + EPS * _norms(C)
    with np.errstate(over="ignore"):  # as large as can be is not the best
        size = C_eta * B_xi / np.abs(upper)
    size[1:] *= 2.0  # of equals the first: without u̇ the equations are simpler
    best = np.argmin(size, axis=0), np.arange(len(blocks))
    turns: Planes = np.array(candidates[best])
    turns[:, :, 0] *= np.sign(upper[best])[:, None]  # the upper entry of a complex pair is never zero
    turns[np.abs(turns) <= 4.0 * EPS] = 0.0  # a quarter turn, whose cosine rounding leaves at 6e-17
    return turns


def _turned(blocks: Planes, turns: Planes) -> Planes:
    """The blocks in their new planes; rates of change that rounding alone leaves on the diagonal are zero.

    A turn is known to eps, and so are all entries to eps of the largest.
    """
    similar = _similar(blocks, turns)
    is_turned = (turns[:, 0, 1] != 0.0) | (turns[:, 1, 0] != 0.0)
    noise = 8.0 * EPS * np.abs(similar).max(axis=(1, 2)) * is_turned
    for side in (0, 1):
        similar[np.abs(similar[:, side, side]) <= noise, side, side] = 0.0
    return similar


def _principal_axes(gram: Planes) -> Planes:
    """Orthonormal eigenvectors as columns, the weakest direction first."""
    return np.asarray(np.linalg.eigh(gram)[1])


def _of_order_one(matrices: Planes) -> Planes:
    """Each matrix divided by its largest entry, so that squares neither over- nor underflow."""
    largest = np.max(np.abs(matrices), axis=(1, 2), keepdims=True)
    return np.asarray(matrices / np.where(largest > 0.0, largest, 1.0))


def _norms(matrices: Planes) -> NDArray[np.float64]:
    """Frobenius norms of a stack of matrices with entries of order one."""
    return np.asarray(np.sqrt(np.square(matrices).sum(axis=(-2, -1))))


def _similar(blocks: Planes, turns: Planes) -> Planes:
    return np.asarray(turns.swapaxes(-1, -2) @ blocks @ turns)
