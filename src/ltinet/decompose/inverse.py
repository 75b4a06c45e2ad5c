"""The inverse of the bases of all blocks: they are block triangular, and triangular after a turn inside each block."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, rq

from ltinet.decompose.orthonormal import BlockBases
from ltinet.decompose.pieces import pieces
from ltinet.model.matrices import Matrix


def inverse_of(bases: BlockBases) -> Matrix:
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
    _turn_rows(columns, at, cosine, -sine)
    columns[at, at + 1] = 0.0
    wide = [slice(start, start + size) for start, size in zip(first, sizes, strict=True) if size > 2]
    turns = [_triangularise(columns, own) for own in wide]
    # Of Uᵀ, since `trtri` makes X L − I small, and T⁻¹ is for U X − I small.
    transposed, info = lapack.dtrtri(columns, lower=1)
    if info != 0 or not np.isfinite(transposed).all():
        raise np.linalg.LinAlgError("the bases of two blocks are parallel")
    rows = np.asarray(transposed.T)
    _turn_rows(rows, at, cosine, sine)
    for own, turn in zip(wide, turns, strict=True):
        rows[own] = turn @ rows[own]
    return rows


def _turn_rows(rows: Matrix, at: NDArray[np.intp], cosine: Matrix, sine: Matrix) -> None:
    """Replace the rows p at `at` and q below by cosine·p + sine·q and cosine·q − sine·p."""
    for piece in pieces(len(at), len(rows)):
        p, q = rows[at[piece]], rows[at[piece] + 1]
        rows[at[piece]] = cosine[piece] * p + sine[piece] * q
        rows[at[piece] + 1] = cosine[piece] * q - sine[piece] * p


def _triangularise(columns: Matrix, own: slice) -> Matrix:
    """Turn the columns of a wide block, given as rows, until its square is triangular; returns the turn."""
    triangle, Q = rq(columns[own, own].T, check_finite=False)
    columns[own, : own.start] = Q @ columns[own, : own.start]
    columns[own, own] = triangle.T
    return np.asarray(Q.T)
