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
from ltinet._util.floating_point import RANK_CHAIN_GROWTH, rounding_tolerance
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

_BALANCING_SWEEPS = 20  # more than any test model needed


class Pencil(NamedTuple):
    """System matrix [[A − λ I, B], [C, D]]."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


def invariant_zeros(system: SystemMatrices) -> NDArray[np.complex128]:
    """Return all finite invariant zeros by falling real part, for any number of inputs and outputs.

    Uncontrollable and unobservable modes are zeros as well where they lower the rank. Cost O((n + m)(n + p) n).
    """
    with limit_blas_threads(system.n_states):
        pencil = balance_pencil(Pencil(system.A, system.B, system.C, system.D))
        # A unit of time in which squares of entries neither overflow nor underflow.
        largest = max(float(np.abs(part).max(initial=0.0)) for part in pencil)
        unit = 2.0 ** int(np.frexp(largest)[1] - 1) if largest > 0.0 else 1.0
        pencil = Pencil(*(part / unit for part in pencil))
        system_matrix = np.block([[pencil.A, pencil.B], [pencil.C, pencil.D]])
        noise = RANK_CHAIN_GROWTH * rounding_tolerance(max(system_matrix.shape), float(np.linalg.norm(system_matrix)))
        reduced = _deflate_infinite_zeros(pencil, noise)
        # Deflation of the transposed system leaves as many inputs and outputs as the rank: D is square and regular.
        reduced = _transpose(_deflate_infinite_zeros(_transpose(reduced), noise))
        values = unit * _finite_zeros(reduced)
    order = np.lexsort((-values.imag, -values.real))
    return values[order]


def balance_pencil(pencil: Pencil) -> Pencil:
    """Scale states, inputs and outputs so that all entries have similar sizes; the zeros stay the same.

    State i is scaled by the ratio of the largest entries of its row and column; inputs and outputs are scaled to the
    size of A. All factors are powers of two.
    """
    A, B, C, D = (np.array(part) for part in pencil)
    for _ in range(_BALANCING_SWEEPS):
        B, C, D = _scale_inputs_and_outputs(A, B, C, D)
        off = A - np.diag(A.diagonal())
        rows = np.maximum(np.abs(off).max(axis=1, initial=0.0), np.abs(B).max(axis=1, initial=0.0))
        columns = np.maximum(np.abs(off).max(axis=0, initial=0.0), np.abs(C).max(axis=0, initial=0.0))
        usable = (rows > 0.0) & (columns > 0.0)
        ratio = np.where(usable, rows / np.where(usable, columns, 1.0), 1.0)
        scale = np.exp2(np.round(0.5 * np.log2(ratio)))
        if (scale == 1.0).all():
            break
        A, B, C = A / scale[:, None] * scale, B / scale[:, None], C * scale
    return Pencil(A, *_scale_inputs_and_outputs(A, B, C, D))


def _scale_inputs_and_outputs(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Scale every column of [B; D] and every row of [C D] to the size of A."""
    size = float(np.abs(A).max(initial=0.0)) or 1.0
    for _ in range(2):  # D belongs to both, so that rows change columns
        columns = _powers(np.vstack([B, D]), size, axis=0)
        B, D = B * columns, D * columns
        rows = _powers(np.hstack([C, D]), size, axis=1)[:, None]
        C, D = C * rows, D * rows
    return B, C, D


def _powers(matrix: Matrix, size: float, *, axis: int) -> NDArray[np.float64]:
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.where(largest > 0.0, np.exp2(np.round(np.log2(size / np.where(largest > 0.0, largest, size)))), 1.0)


def _transpose(pencil: Pencil) -> Pencil:
    A, B, C, D = pencil
    return Pencil(A.T, C.T, B.T, D.T)


def _deflate_infinite_zeros(pencil: Pencil, noise: float) -> Pencil:
    """Return a pencil with D of full row rank and the same finite zeros.

    Rows of D are compressed. Outputs without direct feedthrough then determine some states, which are removed; their
    derivatives are the next outputs, until no state is determined.
    """
    A, B, C, D = pencil
    while True:
        U, rank = _row_compression(D, noise)
        D, C = (U.T @ D)[:rank], U.T @ C
        above, below = C[:rank], C[rank:]
        V, determined = _row_compression(below.T, noise)
        if determined == 0:
            return Pencil(A, B, above, D)
        V = np.roll(V, -determined, axis=1)  # undetermined states first
        n_left = len(A) - determined
        A, B, above = V.T @ A @ V, V.T @ B, above @ V
        C = np.vstack([above[:, :n_left], A[n_left:, :n_left]])
        D = np.vstack([D, B[n_left:]])
        A, B = A[:n_left, :n_left], B[:n_left]
        if n_left == 0:
            return Pencil(A, B, C[:0], D[:0])


def _row_compression(matrix: Matrix, noise: float) -> tuple[Matrix, int]:
    """Return an orthogonal U and the rank beyond noise: Uᵀ·matrix is zero below its first `rank` rows."""
    if not matrix.size:
        return np.eye(len(matrix)), 0
    U, values, _ = np.linalg.svd(matrix)
    return U, int(np.count_nonzero(values > noise))


def _finite_zeros(pencil: Pencil) -> NDArray[np.complex128]:
    """Return the eigenvalues λ of A − λ I under the feedback u = −D⁻¹C x, which keeps y = 0; [C D] W = 0."""
    A, B, C, D = pencil
    n, rank = len(A), len(D)
    if n == 0:
        return np.empty(0, dtype=np.complex128)
    if rank == 0:
        return np.linalg.eigvals(A).astype(np.complex128)
    # The columns of W are an orthonormal basis of the null space of [C D].
    Q, _ = linalg.qr(np.hstack([C, D]).T)
    W = Q[:, rank:]
    left, right = A @ W[:n] + B @ W[n:], W[:n]
    return np.asarray(linalg.eigvals(left, right), dtype=np.complex128)
