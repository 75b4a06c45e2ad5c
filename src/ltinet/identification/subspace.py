"""Subspace identification of A and C: MOESP, N4SID and CVA.

The block Hankel matrix H of all records has s blocks of future inputs, s of past inputs, s of past outputs and s of
future outputs as its rows, and a column for every sample with s samples before it and s from it on. Only its
triangular factor R, H Hᵀ = Rᵀ R, is needed. H Hᵀ is cheap, since along a block diagonal only the samples at both ends
change, but it squares the condition number; it is used where noise makes all rows independent, and a QR decomposition
otherwise.

With W the past (inputs and outputs) and U the future inputs, the part of the future outputs Y that W explains beyond
U spans the columns of the observability matrix [C; C A; C A²; …]. The methods differ in its weighting: MOESP
(Verhaegen 1994, past outputs as instruments) by what remains of W without U, N4SID (Van Overschee and De Moor 1994)
by W itself, CVA (Larimore 1990) by the inverse root of the covariance of Y without U.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array
from ltinet.identification.records import Record
from ltinet.systems.matrices import Matrix

Method = Literal["moesp", "n4sid", "cva", "pbsid"]
METHODS: tuple[Method, ...] = ("moesp", "n4sid", "cva")
_CHUNK_SIZE = 2**21  # numbers of H in memory at a time
# Smallest squared pivot of the Cholesky factor of H Hᵀ, scaled to a unit diagonal: √eps, rounded up. Below it more than
# half of the digits of a row are lost.
_MIN_PIVOT = 1e-7


class HankelFactor(NamedTuple):
    """Upper triangular R, with its columns in the order future inputs, past inputs, past outputs, future outputs."""

    R: Matrix
    block_rows: int
    n_inputs: int
    n_outputs: int
    n_columns: int

    def with_block_rows(self, block_rows: int) -> "HankelFactor":
        """Return the factor for fewer block rows: those next to the present."""
        s, m, p, k = self.block_rows, self.n_inputs, self.n_outputs, block_rows
        if k == s:
            return self
        future_u = np.arange(k * m)
        past_u = s * m + np.arange((s - k) * m, s * m)
        past_y = 2 * s * m + np.arange((s - k) * p, s * p)
        future_y = 2 * s * m + s * p + np.arange(k * p)
        columns = np.concatenate([future_u, past_u, past_y, future_y])
        R = np.asarray(linalg.qr(self.R[:, columns], mode="r", check_finite=False)[0][: len(columns)], dtype=np.float64)
        return HankelFactor(R, k, m, p, self.n_columns)


def has_enough_columns(records: tuple[Record, ...], block_rows: int) -> bool:
    """Return True if the Hankel matrices of all records have as many columns as rows."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    n_columns = sum(max(0, len(record) - 2 * block_rows + 1) for record in records)
    return bool(n_columns >= 2 * block_rows * (m + p))


def compress_hankel(records: tuple[Record, ...], block_rows: int) -> HankelFactor:
    """Return the factor for s block rows, from all records with at least 2 s samples."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    usable = [record for record in records if len(record) >= 2 * block_rows]
    n_columns = sum(len(record) - 2 * block_rows + 1 for record in usable)
    with single_blas_thread():
        R = _cholesky_factor(usable, block_rows)
        if R is None:
            R = _qr_factor(usable, block_rows)
    return HankelFactor(R, block_rows, m, p, n_columns)


def _row_order(s: int, m: int, p: int) -> Array:
    """Return the rows of a Hankel matrix ordered by samples, inputs before outputs, in the order of `HankelFactor`."""
    rows = np.arange(2 * s * (m + p)).reshape(2 * s, m + p)
    parts = (rows[s:, :m], rows[:s, :m], rows[:s, m:], rows[s:, m:])
    return np.concatenate([part.ravel() for part in parts])


def _cholesky_factor(records: list[Record], s: int) -> Matrix | None:
    """Return R by Cholesky from H Hᵀ, None where its rows are nearly dependent."""
    gram = sum(_gram_matrix(np.hstack([record.u, record.y]), 2 * s) for record in records)
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    order = _row_order(s, m, p)
    gram = np.asarray(gram)[np.ix_(order, order)]
    scale = np.sqrt(gram.diagonal())
    if not np.all(scale > 0.0):
        return None
    try:
        R = linalg.cholesky(gram / scale[:, None] / scale, check_finite=False)
    except linalg.LinAlgError:
        return None
    return np.asarray(R * scale) if np.all(R.diagonal() ** 2 > _MIN_PIVOT) else None


def _gram_matrix(z: Array, n_rows: int) -> Array:
    """Return H Hᵀ of one record z `(T, channels)`, rows ordered by samples.

    The first block row is computed from all samples; along block diagonals each block follows from the one before it
    by the samples that leave and enter the window.
    """
    n_columns, c = len(z) - n_rows + 1, z.shape[1]
    gram = np.empty((n_rows, n_rows, c, c))
    for lag in range(n_rows):
        gram[0, lag] = z[:n_columns].T @ z[lag : lag + n_columns]
    for row in range(1, n_rows):
        out_row, in_row = z[row - 1], z[row - 1 + n_columns]
        for column in range(row, n_rows):
            out_column, in_column = z[column - 1], z[column - 1 + n_columns]
            gram[row, column] = gram[row - 1, column - 1] - np.outer(out_row, out_column) + np.outer(in_row, in_column)
    for row in range(n_rows):
        for column in range(row):
            gram[row, column] = gram[column, row].T
    return gram.transpose(0, 2, 1, 3).reshape(n_rows * c, n_rows * c)


def _qr_factor(records: list[Record], s: int) -> Matrix:
    """Return R by QR decompositions of chunks of columns of H."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    n_rows = 2 * s * (m + p)
    R = np.zeros((0, n_rows))
    chunk = max(2 * n_rows, _CHUNK_SIZE // n_rows)
    for record in records:
        z = np.hstack([record.u, record.y])
        for begin in range(0, len(z) - 2 * s + 1, chunk):
            window = z[begin : begin + chunk + 2 * s - 1]
            blocks = np.lib.stride_tricks.sliding_window_view(window, 2 * s, axis=0)  # (columns, channels, 2 s)
            rows = blocks.transpose(0, 2, 1).reshape(len(blocks), -1)[:, _row_order(s, m, p)]
            R = linalg.qr(np.vstack([R, rows]), mode="r", overwrite_a=True, check_finite=False)[0][:n_rows]
    return np.vstack([R, np.zeros((n_rows - len(R), n_rows))])


# Subspace methods.


@dataclass(frozen=True, eq=False)
class SubspaceDecomposition:
    """Singular values, and the column space of the observability matrix in their order."""

    method: Method
    block_rows: int
    values: Array
    directions: Matrix
    n_outputs: int

    @property
    def largest_order(self) -> int:
        """Largest order for which A follows from a shift of the observability matrix."""
        return min((self.block_rows - 1) * self.n_outputs, len(self.values))

    def model(self, order: int) -> tuple[Matrix, Matrix]:
        """Return A and C of this order: C is the top block of the observability matrix, and A shifts it by a block."""
        gamma, p = self.directions[:, :order], self.n_outputs
        return np.asarray(linalg.lstsq(gamma[:-p], gamma[p:], check_finite=False)[0]), gamma[:p]


def decompose_subspace(data: HankelFactor, method: Method) -> SubspaceDecomposition:
    """Return the weighted singular value decomposition of one method."""
    s, m, p = data.block_rows, data.n_inputs, data.n_outputs
    L = data.R.T
    future, past = slice(0, s * m), slice(s * m, 2 * s * m + s * p)
    outputs = slice(past.stop, past.stop + s * p)
    explained = L[outputs, past]
    if method == "moesp":
        return _decompose(explained, method, data)
    if method == "n4sid":
        gain = linalg.lstsq(L[past, past].T, explained.T, cond=s * (m + p) * EPS, check_finite=False)[0].T
        return _decompose(gain @ L[past, future.start : past.stop], method, data)
    without_inputs = np.hstack([explained, L[outputs, outputs]])
    U, sizes, _ = linalg.svd(without_inputs, full_matrices=False, check_finite=False)
    nonzero = sizes > s * p * EPS * sizes[0]
    U, sizes = U[:, nonzero], sizes[nonzero]
    V, values, _ = linalg.svd((U / sizes).T @ explained, full_matrices=False, check_finite=False)
    return SubspaceDecomposition(method, s, values, (U * sizes) @ (V * np.sqrt(values)), p)


def _decompose(explained: Matrix, method: Method, data: HankelFactor) -> SubspaceDecomposition:
    U, values, _ = linalg.svd(explained, full_matrices=False, check_finite=False)
    return SubspaceDecomposition(method, data.block_rows, values, U * np.sqrt(values), data.n_outputs)
