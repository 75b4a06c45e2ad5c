"""The best basis of each block: orthonormal columns, which is within √L of the best condition number (Demmel 1983)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.decompose.decouple import Decoupled
from ltinet.decompose.pieces import pieces
from ltinet.decompose.reorder import leading_subspace
from ltinet.decompose.schur import SchurForm
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS, sum_rounding

Vector = NDArray[np.float64]

# Columns of a block of several neurons, or of a nearly real pair, are exact to eps times their size, which
# orthonormalising them does not mend. Where they have grown beyond this, or are as nearly parallel, the subspace is
# computed by orthogonal swaps instead.
_GROWTH_LIMIT = 100.0


@dataclass(frozen=True)
class BlockBases:
    """R · basis = basis · blocks, with orthonormal columns in each block and quasi-triangular diagonal blocks.

    A pair a ± iω stands as [[a, b], [c, a]] with b ≥ |c| and bc = −ω²; the maps of Theorem 1 divide by b.
    """

    basis: Matrix
    blocks: Matrix
    bounds: NDArray[np.intp]


def orthonormalise(decoupled: Decoupled, schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
    """Replace each block column X_l = Q_l S_l by Q_l, and its diagonal block Λ_l by S_l Λ_l S_l⁻¹.

    `bounds` are the first states of the blocks, n at the end. Cost O(n Σ n_l²).
    """
    rows, diagonal = np.ascontiguousarray(decoupled.X.T), decoupled.diagonal  # one vector per row: faster to gather
    basis, blocks = np.zeros(rows.shape), np.zeros(rows.shape)
    first, sizes = bounds[:-1], bounds[1:] - bounds[:-1]
    is_single_neuron = schur.neurons_between(bounds) == 1
    real = first[is_single_neuron & (sizes == 1)]
    if len(real):
        basis[real] = rows[real] / np.sqrt(_dots(rows[real], rows[real]))[:, None]
        blocks[real, real] = diagonal[real, real]
    pair = first[is_single_neuron & (sizes == 2)]
    for piece in pieces(len(pair), len(rows)):
        _single_pairs(rows, diagonal, pair[piece], basis=basis, blocks=blocks)
    is_lopsided = np.zeros(len(first), dtype=bool)
    is_lopsided[is_single_neuron & (sizes == 2)] = -blocks[pair + 1, pair] * _GROWTH_LIMIT**2 < blocks[pair, pair + 1]
    for block in (~is_single_neuron | is_lopsided).nonzero()[0]:
        at = slice(int(bounds[block]), int(bounds[block + 1]))
        columns, own = decoupled.X[: at.stop, at], diagonal[at, at]
        growth = np.linalg.cond(columns) if is_lopsided[block] else np.max(np.abs(columns))
        if growth > _GROWTH_LIMIT:
            columns, own = leading_subspace(schur.R[: at.stop, : at.stop], at.start) or (columns, own)
        Q, blocks[at, at] = _coupled_block(columns, own)
        basis[at, : at.stop] = Q.T
    return BlockBases(basis.T, blocks, bounds)


def _single_pairs(rows: Matrix, diagonal: Matrix, at: NDArray[np.intp], *, basis: Matrix, blocks: Matrix) -> None:
    """Many blocks of one pair at once, through their eigenvectors v = p + iq.

    Turned by the angle that makes v·v real, v has orthogonal parts with |p| ≥ |q|; normalised, they stand the pair as
    [[a, b], [c, a]] with b = ω|p|/|q|, c = −ω|q|/|p|. Parts that were nearly parallel are turned once more.
    """
    b, c = diagonal[at, at + 1], diagonal[at + 1, at]
    p, q = _with_orthogonal_parts(
        np.copysign(np.sqrt(np.abs(b)), b)[:, None] * rows[at], np.sqrt(np.abs(c))[:, None] * rows[at + 1]
    )
    p_norm, q_norm = np.sqrt(_dots(p, p)), np.sqrt(_dots(q, q))
    if (np.abs(_dots(p, q)) > 10.0 * EPS * p_norm * q_norm).any():
        p, q = _with_orthogonal_parts(p, q)
        p_norm, q_norm = np.sqrt(_dots(p, p)), np.sqrt(_dots(q, q))
    basis[at], basis[at + 1] = p / p_norm[:, None], q / q_norm[:, None]
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    blocks[at, at] = blocks[at + 1, at + 1] = diagonal[at, at]
    blocks[at, at + 1], blocks[at + 1, at] = omega * (p_norm / q_norm), -omega * (q_norm / p_norm)


def _with_orthogonal_parts(p: Matrix, q: Matrix) -> tuple[Matrix, Matrix]:
    """Row by row, the real and imaginary parts of (p + iq)·e^{iθ} with the θ that makes them orthogonal."""
    angle = 0.5 * np.arctan2(2.0 * _dots(p, q), _dots(p, p) - _dots(q, q))[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * p + sine * q, cosine * q - sine * p


def _dots(left: Matrix, right: Matrix) -> Vector:
    """Row by row, the scalar products."""
    return np.asarray(np.einsum("ij,ij->i", left, right))


def _coupled_block(columns: Matrix, block: Matrix) -> tuple[Matrix, Matrix]:
    """QR of a block column of several neurons; the triangular factor keeps the block's quasi-triangular pattern."""
    Q, S = np.linalg.qr(columns)
    similar = lapack.dtrtrs(S, (S @ block).T, trans=1)[0].T
    pairs = np.flatnonzero(np.diag(block, -1))
    turn, standard = np.eye(len(block)), np.diag(block.diagonal())  # similarity keeps eigenvalues and their real parts
    for i in pairs.tolist():
        (p, upper), (lower, minus_p) = similar[i : i + 2, i : i + 2].tolist()
        cosine, sine, upper, lower = _standard_rotation(
            0.5 * (p - minus_p), upper, lower, product=float(block[i, i + 1] * block[i + 1, i])
        )
        flip = math.copysign(1.0, upper)
        turn[i : i + 2, i : i + 2] = [[cosine, -flip * sine], [sine, flip * cosine]]
        standard[i, i + 1], standard[i + 1, i] = flip * upper, flip * lower
    similar = turn.T @ similar @ turn
    coupled = np.triu(~(np.abs(similar) <= _rounding_of(S, block, similar)), 1)  # what is no number is kept
    coupled[pairs, pairs + 1] = False
    return Q @ turn, np.where(coupled, similar, standard)


def _rounding_of(S: Matrix, block: Matrix, similar: Matrix) -> Matrix | float:
    """What rounding may leave at the entries of S · block · S⁻¹ = similar: eps · |S||block||S⁻¹| there."""
    noise = sum_rounding(len(S))
    # S comes from columns [Y; s·I], so that ‖S⁻¹‖ ≤ 1/s: where no entry is below this, none is noise.
    largest = noise * float(np.linalg.norm(S) * np.linalg.norm(block)) / float(np.abs(S.diagonal()).min())
    if not ((similar != 0.0) & (np.abs(similar) <= largest)).any():
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(noise * (np.abs(S) @ np.abs(block) @ np.abs(lapack.dtrtri(S)[0])))


def _standard_rotation(
    half_difference: float, upper: float, lower: float, *, product: float
) -> tuple[float, float, float, float]:
    """Turn [[p, upper], [lower, −p]] to zero diagonal: the cosine and sine, and the new off-diagonals, larger first.

    The symmetric part becomes ±[[0, r], [r, 0]], the skew part [[0, w], [−w, 0]] stays. The larger entry |w| + r has
    no cancellation; the smaller follows from their invariant product −ω², so a pair stays a pair however small its ω.
    """
    symmetric, skew = 0.5 * (upper + lower), 0.5 * (upper - lower)
    sign = math.copysign(1.0, skew)
    angle = 0.5 * math.atan2(-sign * half_difference, sign * symmetric)
    larger = skew + sign * math.hypot(half_difference, symmetric)
    return math.cos(angle), math.sin(angle), larger, product / larger
