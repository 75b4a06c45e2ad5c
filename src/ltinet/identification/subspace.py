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

# MERGED ltinet.identification.subspace
# The block Hankel matrix of all records, compressed to its triangular factor.
#
# Its rows are s blocks of future inputs, s of past inputs, s of past outputs and s of future ones; it has a column for
# every sample with s samples before it and s from it on. Only its factor R, H Hᵀ = Rᵀ R, is needed. H Hᵀ itself is cheap,
# since along a block diagonal only the samples at both ends change; but it squares the condition, so that it serves where
# noise makes all rows independent, and clean records go through a QR decomposition, some columns of H at a time.

_AT_ONCE = 2**21  # numbers of H that are worked on together
# Of H Hᵀ in units of its diagonal: smallest pivot of R², below which more than half of the digits of a row are gone.
_INDEPENDENT = 1e-7


class HankelFactor(NamedTuple):
    """R with rows in the order future inputs, past inputs, past outputs, future outputs; R is upper triangular."""

    R: Matrix
    block_rows: int
    n_inputs: int
    n_outputs: int
    n_columns: int

    def narrowed(self, block_rows: int) -> "HankelFactor":
        """The same for fewer block rows: those next to the present."""
        s, m, p, k = self.block_rows, self.n_inputs, self.n_outputs, block_rows
        if k == s:
            return self
        future_u = np.arange(k * m)
        past_u = s * m + np.arange((s - k) * m, s * m)
        past_y = 2 * s * m + np.arange((s - k) * p, s * p)
        future_y = 2 * s * m + s * p + np.arange(k * p)
        kept = np.concatenate([future_u, past_u, past_y, future_y])
        R = np.asarray(linalg.qr(self.R[:, kept], mode="r", check_finite=False)[0][: len(kept)], dtype=np.float64)
        return HankelFactor(R, k, m, p, self.n_columns)


def compress_hankel(records: tuple[Record, ...], block_rows: int) -> HankelFactor:
    """The factor for s block rows, from all records with at least 2 s samples."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    usable = [own for own in records if len(own) >= 2 * block_rows]
    n_columns = sum(len(own) - 2 * block_rows + 1 for own in usable)
    with single_blas_thread():
        R = _cholesky_factor(usable, block_rows)
        if R is None:
            R = _qr_factor(usable, block_rows)
    return HankelFactor(R, block_rows, m, p, n_columns)


def _row_order(s: int, m: int, p: int) -> Array:
    """Rows of sample after sample, inputs before outputs, in the order of `HankelFactor`."""
    places = np.arange(2 * s * (m + p)).reshape(2 * s, m + p)
    parts = (places[s:, :m], places[:s, :m], places[:s, m:], places[s:, m:])
    return np.concatenate([own.ravel() for own in parts])


def _cholesky_factor(records: list[Record], s: int) -> Matrix | None:
    """R by Cholesky from H Hᵀ, None where its rows are not independent enough."""
    gram = sum(_gram_matrix(np.hstack([own.u, own.y]), 2 * s) for own in records)
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
    return np.asarray(R * scale) if np.all(R.diagonal() ** 2 > _INDEPENDENT) else None


def _gram_matrix(z: Array, n_rows: int) -> Array:
    """H Hᵀ of one record z `(T, channels)`, rows sample after sample: the first block row, then from it all others."""
    n_columns, c = len(z) - n_rows + 1, z.shape[1]
    gram = np.empty((n_rows, n_rows, c, c))
    for lag in range(n_rows):
        gram[0, lag] = z[:n_columns].T @ z[lag : lag + n_columns]
    for row in range(1, n_rows):
        left, came = z[row - 1], z[row - 1 + n_columns]
        for column in range(row, n_rows):
            gone, new = z[column - 1], z[column - 1 + n_columns]
            gram[row, column] = gram[row - 1, column - 1] - np.outer(left, gone) + np.outer(came, new)
    for row in range(n_rows):
        for column in range(row):
            gram[row, column] = gram[column, row].T
    return gram.transpose(0, 2, 1, 3).reshape(n_rows * c, n_rows * c)


def _qr_factor(records: list[Record], s: int) -> Matrix:
    """R by QR decompositions, some columns of H after the other."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    n_rows = 2 * s * (m + p)
    R = np.zeros((0, n_rows))
    at_once = max(2 * n_rows, _AT_ONCE // n_rows)
    for own in records:
        z = np.hstack([own.u, own.y])
        for begin in range(0, len(z) - 2 * s + 1, at_once):
            window = z[begin : begin + at_once + 2 * s - 1]
            blocks = np.lib.stride_tricks.sliding_window_view(window, 2 * s, axis=0)  # (columns, channels, 2 s)
            rows = blocks.transpose(0, 2, 1).reshape(len(blocks), -1)[:, _row_order(s, m, p)]
            R = linalg.qr(np.vstack([R, rows]), mode="r", overwrite_a=True, check_finite=False)[0][:n_rows]
    return np.vstack([R, np.zeros((n_rows - len(R), n_rows))])


# MERGED ltinet.identification.subspace
# Subspace methods: states, seen as what the past tells of the future, and from them A and C.
#
# With W the past (inputs and outputs) and U the future inputs, what is left of future outputs Y without U and explained
# by W spans the columns of the observability matrix [C; C A; C A²; …]. The methods differ in how they weigh it: MOESP
# (Verhaegen 1994, past outputs as instruments) by what is left of W without U, N4SID (Van Overschee and De Moor 1994) by
# W itself, CVA (Larimore 1990) by the inverse root of the covariance of Y without U.

Method = Literal["moesp", "n4sid", "cva"]
METHODS: tuple[Method, ...] = ("moesp", "n4sid", "cva")


@dataclass(frozen=True, eq=False)
class SubspaceDecomposition:
    """Singular values, and directions of the observability matrix in their order."""

    method: Method
    block_rows: int
    values: Array
    directions: Matrix
    n_outputs: int

    @property
    def largest_order(self) -> int:
        """Orders up to which A follows from a shift of the observability matrix."""
        return min((self.block_rows - 1) * self.n_outputs, len(self.values))

    def model(self, order: int) -> tuple[Matrix, Matrix]:
        """A and C of so many states: C is on top of the observability matrix, and A shifts it by a block."""
        gamma, p = self.directions[:, :order], self.n_outputs
        return np.asarray(linalg.lstsq(gamma[:-p], gamma[p:], check_finite=False)[0]), gamma[:p]


def decompose_subspace(data: HankelFactor, method: Method) -> SubspaceDecomposition:
    """One weighted singular value decomposition."""
    s, m, p = data.block_rows, data.n_inputs, data.n_outputs
    L = data.R.T
    future, past = slice(0, s * m), slice(s * m, 2 * s * m + s * p)
    outputs = slice(past.stop, past.stop + s * p)
    explained = L[outputs, past]
    if method == "moesp":
        return _decomposed(explained, method, data)
    if method == "n4sid":
        gain = linalg.lstsq(L[past, past].T, explained.T, cond=s * (m + p) * EPS, check_finite=False)[0].T
        return _decomposed(gain @ L[past, future.start : past.stop], method, data)
    left = np.hstack([explained, L[outputs, outputs]])
    U, sizes, _ = linalg.svd(left, full_matrices=False, check_finite=False)
    kept = sizes > s * p * EPS * sizes[0]
    whitened = (U[:, kept] / sizes[kept]).T @ explained
    V, values, _ = linalg.svd(whitened, full_matrices=False, check_finite=False)
    return SubspaceDecomposition(method, s, values, (U[:, kept] * sizes[kept]) @ (V * np.sqrt(values)), p)


def _decomposed(explained: Matrix, method: Method, data: HankelFactor) -> SubspaceDecomposition:
    U, values, _ = linalg.svd(explained, full_matrices=False, check_finite=False)
    return SubspaceDecomposition(method, data.block_rows, values, U * np.sqrt(values), data.n_outputs)
