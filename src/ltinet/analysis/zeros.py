"""Invariant zeros: the values of λ at which [[A − λ I, B], [C, D]] has less than its usual rank.

Infinite zeros are deflated first by orthogonal transformations that decide ranks (Emami-Naeini and Van Dooren 1982,
as in SLICOT's AB08ND); the finite ones are left as an ordinary generalised eigenvalue problem. Without the deflation
a QZ algorithm returns large numbers in the place of infinity.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import rounding_tolerance
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.zeros
# Invariant zeros: where the system matrix [[A − λ I, B], [C, D]] has less than its usual rank.
#
# What is infinite is taken away first, by orthogonal transformations that decide ranks (Emami-Naeini and Van Dooren 1982,
# as in SLICOT's AB08ND); what is left is an ordinary generalised eigenvalue problem. Without this a QZ algorithm answers
# with large numbers in the place of infinity.

_SWEEPS = 20  # of balancing, more than any model needed
# What rounding may grow by along a chain of rank decisions, each of which divides by what the one before left.
_CHAIN = 30.0


class Pencil(NamedTuple):
    """A system matrix."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


def invariant_zeros(system: SystemMatrices) -> NDArray[np.complex128]:
    """All finite zeros of a system of any number of inputs and outputs, by falling real part.

    Modes that inputs do not reach or outputs do not see are zeros as well where they lower the rank. Cost
    O((n + m)(n + p) n).
    """
    with limit_blas_threads(system.n_states):
        pencil, unit = _scale_to_unit(balance_pencil(Pencil(system.A, system.B, system.C, system.D)))
        whole = np.block([[pencil.A, pencil.B], [pencil.C, pencil.D]])
        noise = _CHAIN * rounding_tolerance(max(whole.shape), float(np.linalg.norm(whole)))
        reduced = _deflate_infinite_zeros(pencil, noise)
        # Of the transposed system: now the outputs are as many as the rank, and D is square and regular.
        reduced = _transposed(_deflate_infinite_zeros(_transposed(reduced), noise))
        values = unit * _finite_zeros(reduced)
    order = np.lexsort((-values.imag, -values.real))
    return values[order]


def balance_pencil(pencil: Pencil) -> Pencil:
    """The same zeros with states, inputs and outputs in units in which nothing is much larger than anything else.

    State i is scaled by the ratio of what leads to it and what it leads to; every input and output is brought to the
    size of A. All factors are powers of two.
    """
    A, B, C, D = (np.array(part) for part in pencil)
    for _ in range(_SWEEPS):
        B, C, D = _inputs_and_outputs(A, B, C, D)
        off = A - np.diag(A.diagonal())
        rows = np.maximum(np.abs(off).max(axis=1, initial=0.0), np.abs(B).max(axis=1, initial=0.0))
        columns = np.maximum(np.abs(off).max(axis=0, initial=0.0), np.abs(C).max(axis=0, initial=0.0))
        usable = (rows > 0.0) & (columns > 0.0)
        ratio = np.where(usable, rows / np.where(usable, columns, 1.0), 1.0)
        scale = np.exp2(np.round(0.5 * np.log2(ratio)))
        if (scale == 1.0).all():
            break
        A, B, C = A / scale[:, None] * scale, B / scale[:, None], C * scale
    return Pencil(A, *_inputs_and_outputs(A, B, C, D))


def _scale_to_unit(pencil: Pencil) -> tuple[Pencil, float]:
    """The pencil in a unit of time in which squares of entries neither overflow nor vanish, and that unit's rate."""
    largest = max(float(np.abs(part).max(initial=0.0)) for part in pencil)
    unit = 2.0 ** int(np.frexp(largest)[1] - 1) if largest > 0.0 else 1.0
    return Pencil(*(part / unit for part in pencil)), unit


def _inputs_and_outputs(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Every column of [B; D] and every row of [C D] at the size of A."""
    size = float(np.abs(A).max(initial=0.0)) or 1.0
    for _ in range(2):  # D belongs to both
        columns = _powers(np.vstack([B, D]), size, axis=0)
        B, D = B * columns, D * columns
        rows = _powers(np.hstack([C, D]), size, axis=1)[:, None]
        C, D = C * rows, D * rows
    return B, C, D


def _powers(matrix: Matrix, size: float, *, axis: int) -> NDArray[np.float64]:
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.where(largest > 0.0, np.exp2(np.round(np.log2(size / np.where(largest > 0.0, largest, size)))), 1.0)


def _transposed(pencil: Pencil) -> Pencil:
    A, B, C, D = pencil
    return Pencil(A.T, C.T, B.T, D.T)


def _deflate_infinite_zeros(pencil: Pencil, noise: float) -> Pencil:
    """The pencil without what its outputs determine by themselves: D of full row rank, the same finite zeros.

    Rows of D are compressed; outputs that no input reaches at once then determine some states, whose derivatives are
    the next outputs, until no state is determined any more.
    """
    A, B, C, D = pencil
    while True:
        U, rank = _row_compression(D, noise)
        D, C = (U.T @ D)[:rank], U.T @ C
        above, below = C[:rank], C[rank:]
        V, determined = _row_compression(below.T, noise)
        if determined == 0:
            return Pencil(A, B, above, D)
        V = np.roll(V, -determined, axis=1)  # the states that are not determined first
        kept = len(A) - determined
        A, B, above = V.T @ A @ V, V.T @ B, above @ V
        C = np.vstack([above[:, :kept], A[kept:, :kept]])
        D = np.vstack([D, B[kept:]])
        A, B = A[:kept, :kept], B[:kept]
        if kept == 0:
            return Pencil(A, B, C[:0], D[:0])


def _row_compression(matrix: Matrix, noise: float) -> tuple[Matrix, int]:
    """Orthogonal U with Uᵀ·matrix zero below its first rows, and how many these are: the rank beyond noise."""
    if not matrix.size:
        return np.eye(len(matrix)), 0
    U, values, _ = np.linalg.svd(matrix)
    return U, int(np.count_nonzero(values > noise))


def _finite_zeros(pencil: Pencil) -> NDArray[np.complex128]:
    """The eigenvalues of what is left, A − λ I on the states that u = −D⁻¹C x holds: by [C D] W = [0 *]."""
    A, B, C, D = pencil
    n, rank = len(A), len(D)
    if n == 0:
        return np.empty(0, dtype=np.complex128)
    if rank == 0:
        return np.linalg.eigvals(A).astype(np.complex128)
    # Columns of W that [C D] takes to zero, orthonormal.
    Q, _ = linalg.qr(np.hstack([C, D]).T)
    W = Q[:, rank:]
    left, right = A @ W[:n] + B @ W[n:], W[:n]
    return np.asarray(linalg.eigvals(left, right), dtype=np.complex128)
