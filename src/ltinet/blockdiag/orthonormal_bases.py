"""Orthonormal bases of the invariant subspaces of all blocks, and the inverse of the matrix that they form.

Orthonormal columns within each block give a condition number within a factor √L of the best for L blocks (Demmel 1983).
Each block column X_l = Q_l S_l is replaced by Q_l, its diagonal block Λ_l by S_l Λ_l S_l⁻¹. A pair a ± iω stands as
[[a, b], [c, a]] with b ≥ |c| and bc = −ω². Where columns are too large or too nearly parallel to be orthonormalised
accurately, the subspace is recomputed by orthogonal swaps.

The inverse uses that the basis is block triangular: with orthogonal W inside the blocks, basis · W = U is upper
triangular and basis⁻¹ = W U⁻¹, at n³/3 flops.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, rq

from ltinet._util.floating_point import EPS, summation_tolerance
from ltinet.blockdiag.decoupling import Decoupling, decouple, decouple_neurons
from ltinet.blockdiag.schur import SchurForm, leading_subspace
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.orthonormal_bases
# Work on many rows at once, but not on all: temporary copies that outgrow the cache cost more than the work itself.

_CHUNK_SIZE = 15_000  # 120 kB: above 128 kB an allocator fetches new pages from the system each time


def row_chunks(count: int, width: int) -> Iterator[slice]:
    """Slices that cover `count` rows of `width` numbers, each small enough for temporary copies of its rows."""
    rows = max(1, _CHUNK_SIZE // max(width, 1))
    return (slice(start, start + rows) for start in range(0, count, rows))


# MERGED ltinet.blockdiag.orthonormal_bases
# The best basis of each block: orthonormal columns, which is within √L of the best condition number (Demmel 1983).

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


def orthonormalise(decoupled: Decoupling, schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
    """Replace each block column X_l = Q_l S_l by Q_l, and its diagonal block Λ_l by S_l Λ_l S_l⁻¹.

    `bounds` are the first states of the blocks, n at the end. Cost O(n Σ n_l²).
    """
    rows, diagonal = np.ascontiguousarray(decoupled.X.T), decoupled.diagonal  # one vector per row: faster to gather
    basis, blocks = np.zeros(rows.shape), np.zeros(rows.shape)
    first, sizes = bounds[:-1], bounds[1:] - bounds[:-1]
    is_single_neuron = schur.neurons_between(bounds) == 1
    real = first[is_single_neuron & (sizes == 1)]
    if len(real):
        basis[real] = rows[real] / np.sqrt(_row_dots(rows[real], rows[real]))[:, None]
        blocks[real, real] = diagonal[real, real]
    pair = first[is_single_neuron & (sizes == 2)]
    for piece in row_chunks(len(pair), len(rows)):
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
    p_norm, q_norm = np.sqrt(_row_dots(p, p)), np.sqrt(_row_dots(q, q))
    if (np.abs(_row_dots(p, q)) > 10.0 * EPS * p_norm * q_norm).any():
        p, q = _with_orthogonal_parts(p, q)
        p_norm, q_norm = np.sqrt(_row_dots(p, p)), np.sqrt(_row_dots(q, q))
    basis[at], basis[at + 1] = p / p_norm[:, None], q / q_norm[:, None]
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    blocks[at, at] = blocks[at + 1, at + 1] = diagonal[at, at]
    blocks[at, at + 1], blocks[at + 1, at] = omega * (p_norm / q_norm), -omega * (q_norm / p_norm)


def _with_orthogonal_parts(p: Matrix, q: Matrix) -> tuple[Matrix, Matrix]:
    """Row by row, the real and imaginary parts of (p + iq)·e^{iθ} with the θ that makes them orthogonal."""
    angle = 0.5 * np.arctan2(2.0 * _row_dots(p, q), _row_dots(p, p) - _row_dots(q, q))[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * p + sine * q, cosine * q - sine * p


def _row_dots(left: Matrix, right: Matrix) -> Vector:
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
    coupled = np.triu(~(np.abs(similar) <= _similarity_rounding(S, block, similar)), 1)  # what is no number is kept
    coupled[pairs, pairs + 1] = False
    return Q @ turn, np.where(coupled, similar, standard)


def _similarity_rounding(S: Matrix, block: Matrix, similar: Matrix) -> Matrix | float:
    """What rounding may leave at the entries of S · block · S⁻¹ = similar: eps · |S||block||S⁻¹| there."""
    noise = summation_tolerance(len(S))
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


# MERGED ltinet.blockdiag.orthonormal_bases
# A basis for each block of a Schur form, and for each single neuron: where every partition starts.


def neuron_bases(schur: SchurForm) -> BlockBases:
    """Orthonormal bases of the invariant subspaces of all diagonal blocks, by eigenvectors where they are accurate."""
    return orthonormalise(decouple_neurons(schur, schur.starts), schur, schur.starts)


def block_bases(schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
    """The same for blocks of any number of neurons, which begin at `bounds`, n at the end.

    Where connected blocks share an eigenvalue, eigenvectors are divided by next to nothing and Sylvester equations by
    rounding: the latter keep apart what only rounding errors connect.
    """
    decoupled = decouple_neurons(schur, bounds)
    if _couples_equal_eigenvalues(decoupled.X, schur, bounds):
        decoupled = decouple(schur.R, bounds)
    return orthonormalise(decoupled, schur, bounds)


def _couples_equal_eigenvalues(X: Matrix, schur: SchurForm, bounds: NDArray[np.intp]) -> bool:
    """Whether columns of a neuron have entries at others of the same eigenvalue, by the measure of LAPACK's `trsyl`."""
    block = np.repeat(np.arange(len(bounds) - 1), schur.neurons_between(bounds))
    values = schur.eigenvalues
    is_equal = np.abs(values[:, None] - values) <= EPS * np.abs(schur.R).max(initial=0.0)
    others, neurons = (is_equal & (block[:, None] < block)).nonzero()
    first, last = schur.starts[:-1], schur.starts[1:] - 1
    entries = (X[rows[others], columns[neurons]] for rows in (first, last) for columns in (first, last))
    return any(own.any() for own in entries)


# MERGED ltinet.blockdiag.orthonormal_bases
# The inverse of the bases of all blocks: they are block triangular, and triangular after a turn inside each block.


def invert_bases(bases: BlockBases) -> Matrix:
    """basis⁻¹ = W U⁻¹, where the orthogonal W turns the columns of each block until basis · W = U is upper triangular.

    Cost n³/3 flops, a sixth of a general inverse. Raises LinAlgError where columns are parallel.
    """
    if len(bases.basis) == 0:
        return bases.basis
    first, sizes = bases.bounds[:-1], bases.bounds[1:] - bases.bounds[:-1]
    columns = np.array(bases.basis.T, order="C")  # one column per row: faster to gather
    at = first[sizes == 2]
    sine, cosine = columns[at, at + 1], columns[at + 1, at + 1]
    length = np.hypot(sine, cosine)
    if not length.all():
        raise np.linalg.LinAlgError("the bases of two blocks are parallel")
    sine, cosine = (sine / length)[:, None], (cosine / length)[:, None]
    _rotate_rows(columns, at, cosine, -sine)
    columns[at, at + 1] = 0.0
    wide = [slice(start, start + size) for start, size in zip(first, sizes, strict=True) if size > 2]
    turns = [_triangularise(columns, own) for own in wide]
    # Of Uᵀ, since `trtri` makes X L − I small, and T⁻¹ is for U X − I small.
    transposed, info = lapack.dtrtri(columns, lower=1)
    if info != 0 or not np.isfinite(transposed).all():
        raise np.linalg.LinAlgError("the bases of two blocks are parallel")
    rows = np.asarray(transposed.T)
    _rotate_rows(rows, at, cosine, sine)
    for own, turn in zip(wide, turns, strict=True):
        rows[own] = turn @ rows[own]
    return rows


def _rotate_rows(rows: Matrix, at: NDArray[np.intp], cosine: Matrix, sine: Matrix) -> None:
    """Replace the rows p at `at` and q below by cosine·p + sine·q and cosine·q − sine·p."""
    for piece in row_chunks(len(at), len(rows)):
        p, q = rows[at[piece]], rows[at[piece] + 1]
        rows[at[piece]] = cosine[piece] * p + sine[piece] * q
        rows[at[piece] + 1] = cosine[piece] * q - sine[piece] * p


def _triangularise(columns: Matrix, own: slice) -> Matrix:
    """Turn the columns of a wide block, given as rows, until its square is triangular; returns the turn."""
    triangle, Q = rq(columns[own, own].T, check_finite=False)
    columns[own, : own.start] = Q @ columns[own, : own.start]
    columns[own, own] = triangle.T
    return np.asarray(Q.T)
