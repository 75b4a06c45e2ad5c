"""Orthonormal bases of the invariant subspaces of all blocks.

Orthonormal columns within each block give a condition number within a factor √L of the best for L blocks (Demmel 1983).
Each block column X_l = Q_l S_l is replaced by Q_l, its diagonal block Λ_l by S_l Λ_l S_l⁻¹. A pair a ± iω stands as
[[a, b], [c, a]] with b ≥ |c| and bc = −ω². Where columns are too large or too nearly parallel to be orthonormalized
accurately, the subspace is recomputed by orthogonal swaps.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet._util.floating_point import EPS, MAX_AMPLIFICATION, summation_tolerance
from ltinet.blockdiag.decoupling import Decoupling, decouple, decouple_neurons
from ltinet.blockdiag.schur import SchurForm, leading_subspace
from ltinet.systems.matrices import Matrix

# Columns of a block of several neurons, or of a nearly real pair, have errors of eps times their size, which remain
# when they are orthonormalized. Where the size, or the condition number of the columns of a pair, exceeds
# MAX_AMPLIFICATION, the subspace is computed by orthogonal swaps instead.


@dataclass(frozen=True)
class BlockBases:
    """Solution of R · basis = basis · blocks with orthonormal columns in each block.

    The diagonal blocks are quasi-triangular. A pair a ± iω stands as [[a, b], [c, a]] with b ≥ |c| and bc = −ω²; the
    maps of Theorem 1 divide by b.
    """

    basis: Matrix
    blocks: Matrix
    bounds: NDArray[np.intp]


def orthonormalize(decoupled: Decoupling, schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
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
    if len(pair):
        _single_pairs(rows, diagonal, pair, basis=basis, blocks=blocks)
    is_nearly_real = np.zeros(len(first), dtype=bool)
    is_nearly_real[is_single_neuron & (sizes == 2)] = (
        -blocks[pair + 1, pair] * MAX_AMPLIFICATION**2 < blocks[pair, pair + 1]
    )
    for block in (~is_single_neuron | is_nearly_real).nonzero()[0]:
        at = slice(int(bounds[block]), int(bounds[block + 1]))
        columns, block_matrix = decoupled.X[: at.stop, at], diagonal[at, at]
        growth = np.linalg.cond(columns) if is_nearly_real[block] else np.max(np.abs(columns))
        if growth > MAX_AMPLIFICATION:
            columns, block_matrix = leading_subspace(schur.R[: at.stop, : at.stop], at.start) or (columns, block_matrix)
        Q, blocks[at, at] = _coupled_block(columns, block_matrix)
        basis[at, : at.stop] = Q.T
    return BlockBases(basis.T, blocks, bounds)


def _single_pairs(rows: Matrix, diagonal: Matrix, at: NDArray[np.intp], *, basis: Matrix, blocks: Matrix) -> None:
    """Orthonormalize many blocks of one pair at once, through their eigenvectors v = p + iq.

    Multiplied by the phase that makes v·v real, v has orthogonal parts with |p| ≥ |q|. On the normalized parts the pair
    is [[a, b], [c, a]] with b = ω|p|/|q|, c = −ω|q|/|p|. Parts that were nearly parallel are treated a second time.
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
    """Return row by row the real and imaginary parts of (p + iq)·e^{iθ} with the θ that makes them orthogonal."""
    angle = 0.5 * np.arctan2(2.0 * _row_dots(p, q), _row_dots(p, p) - _row_dots(q, q))[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * p + sine * q, cosine * q - sine * p


def _row_dots(left: Matrix, right: Matrix) -> NDArray[np.float64]:
    """Return the scalar products of corresponding rows."""
    return np.asarray(np.einsum("ij,ij->i", left, right))


def _coupled_block(columns: Matrix, block: Matrix) -> tuple[Matrix, Matrix]:
    """Return the QR factor Q of a block column of several neurons, and the block in this basis.

    The triangular factor S keeps the quasi-triangular pattern of S · block · S⁻¹; each pair is then rotated to equal
    diagonal entries.
    """
    Q, S = np.linalg.qr(columns)
    similar = lapack.dtrtrs(S, (S @ block).T, trans=1)[0].T
    pairs = np.flatnonzero(np.diag(block, -1))
    rotation, standard = (
        np.eye(len(block)),
        np.diag(block.diagonal()),
    )  # similarity keeps eigenvalues and their real parts
    for i in pairs.tolist():
        (p, upper), (lower, minus_p) = similar[i : i + 2, i : i + 2].tolist()
        omega = math.sqrt(abs(block[i, i + 1])) * math.sqrt(abs(block[i + 1, i]))
        cosine, sine, upper, lower = _standard_rotation(0.5 * (p - minus_p), upper, lower, omega=omega)
        flip = math.copysign(1.0, upper)
        rotation[i : i + 2, i : i + 2] = [[cosine, -flip * sine], [sine, flip * cosine]]
        standard[i, i + 1], standard[i + 1, i] = flip * upper, flip * lower
    similar = rotation.T @ similar @ rotation
    coupled = np.triu(
        ~(np.abs(similar) <= _similarity_rounding(S, block, similar)), 1
    )  # NaN compares as false and is kept
    coupled[pairs, pairs + 1] = False
    return Q @ rotation, np.where(coupled, similar, standard)


def _similarity_rounding(S: Matrix, block: Matrix, similar: Matrix) -> Matrix | float:
    """Return the rounding bound eps · |S||block||S⁻¹| for the entries of similar = S · block · S⁻¹."""
    noise = summation_tolerance(len(S))
    # S comes from columns [Y; s·I], so that ‖S⁻¹‖ ≤ 1/s: where no nonzero entry is below this, none is noise.
    largest = noise * float(np.linalg.norm(S) * np.linalg.norm(block)) / float(np.abs(S.diagonal()).min())
    if not ((similar != 0.0) & (np.abs(similar) <= largest)).any():
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(noise * (np.abs(S) @ np.abs(block) @ np.abs(lapack.dtrtri(S)[0])))


def _standard_rotation(
    half_difference: float, upper: float, lower: float, *, omega: float
) -> tuple[float, float, float, float]:
    """Return cosine and sine of the rotation of [[p, upper], [lower, −p]] to zero diagonal, and the new off-diagonals.

    The symmetric part becomes ±[[0, r], [r, 0]], the skew part [[0, w], [−w, 0]] stays. The larger entry |w| + r has no
    cancellation and comes first; the smaller follows from their invariant product −ω², so that a pair stays a pair
    however small its ω, even where the given entries have underflowed.
    """
    symmetric, skew = 0.5 * (upper + lower), 0.5 * (upper - lower)
    sign = math.copysign(1.0, skew)
    angle = 0.5 * math.atan2(-sign * half_difference, sign * symmetric)
    larger = skew + sign * math.hypot(half_difference, symmetric) or omega
    return math.cos(angle), math.sin(angle), larger, -omega * (omega / larger)


def neuron_bases(schur: SchurForm) -> BlockBases:
    """Return orthonormal bases of the invariant subspaces of all diagonal blocks.

    They come from eigenvectors where these are accurate.
    """
    return orthonormalize(decouple_neurons(schur, schur.starts), schur, schur.starts)


def block_bases(schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
    """Return orthonormal bases for blocks of any number of neurons, which begin at `bounds`, n at the end.

    Where coupled blocks share an eigenvalue, eigenvectors are divided by almost zero and solutions of Sylvester
    equations by rounding: the latter separate neurons that are coupled by rounding errors only.
    """
    decoupled = decouple_neurons(schur, bounds)
    if _couples_equal_eigenvalues(decoupled.X, schur, bounds):
        decoupled = decouple(schur.R, bounds)
    return orthonormalize(decoupled, schur, bounds)


def _couples_equal_eigenvalues(X: Matrix, schur: SchurForm, bounds: NDArray[np.intp]) -> bool:
    """Return whether columns of a neuron have entries at other neurons of the same eigenvalue.

    Eigenvalues count as equal at the tolerance of LAPACK's `trsyl`.
    """
    block = np.repeat(np.arange(len(bounds) - 1), schur.neurons_between(bounds))
    values = schur.eigenvalues
    is_equal = np.abs(values[:, None] - values) <= EPS * np.abs(schur.R).max(initial=0.0)
    others, neurons = (is_equal & (block[:, None] < block)).nonzero()
    first, last = schur.starts[:-1], schur.starts[1:] - 1
    entries = (X[rows[others], columns[neurons]] for rows in (first, last) for columns in (first, last))
    return any(values.any() for values in entries)
