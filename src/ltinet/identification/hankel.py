"""The block Hankel matrix of all records, compressed to its triangular factor.

Its rows are s blocks of future inputs, s of past inputs, s of past outputs and s of future ones; it has a column for
every sample with s samples before it and s from it on. Only its factor R, H Hᵀ = Rᵀ R, is needed. H Hᵀ itself is cheap,
since along a block diagonal only the samples at both ends change; but it squares the condition, so that it serves where
noise makes all rows independent, and clean records go through a QR decomposition, some columns of H at a time.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.record import Record
from ltinet.model.matrices import Matrix
from ltinet.threads import one_blas_thread

_AT_ONCE = 2**21  # numbers of H that are worked on together
# Of H Hᵀ in units of its diagonal: smallest pivot of R², below which more than half of the digits of a row are gone.
_INDEPENDENT = 1e-7


class Compressed(NamedTuple):
    """R with rows in the order future inputs, past inputs, past outputs, future outputs; R is upper triangular."""

    R: Matrix
    block_rows: int
    n_inputs: int
    n_outputs: int
    n_columns: int

    def narrowed(self, block_rows: int) -> "Compressed":
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
        return Compressed(R, k, m, p, self.n_columns)


def compressed(records: tuple[Record, ...], block_rows: int) -> Compressed:
    """The factor for s block rows, from all records with at least 2 s samples."""
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    usable = [own for own in records if len(own) >= 2 * block_rows]
    n_columns = sum(len(own) - 2 * block_rows + 1 for own in usable)
    with one_blas_thread():
        R = _by_products(usable, block_rows)
        if R is None:
            R = _by_rotations(usable, block_rows)
    return Compressed(R, block_rows, m, p, n_columns)


def _order(s: int, m: int, p: int) -> Array:
    """Rows of sample after sample, inputs before outputs, in the order of `Compressed`."""
    places = np.arange(2 * s * (m + p)).reshape(2 * s, m + p)
    parts = (places[s:, :m], places[:s, :m], places[:s, m:], places[s:, m:])
    return np.concatenate([own.ravel() for own in parts])


def _by_products(records: list[Record], s: int) -> Matrix | None:
    """R by Cholesky from H Hᵀ, None where its rows are not independent enough."""
    gram = sum(_products(np.hstack([own.u, own.y]), 2 * s) for own in records)
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    order = _order(s, m, p)
    gram = np.asarray(gram)[np.ix_(order, order)]
    scale = np.sqrt(gram.diagonal())
    if not np.all(scale > 0.0):
        return None
    try:
        R = linalg.cholesky(gram / scale[:, None] / scale, check_finite=False)
    except linalg.LinAlgError:
        return None
    return np.asarray(R * scale) if np.all(R.diagonal() ** 2 > _INDEPENDENT) else None


def _products(z: Array, n_rows: int) -> Array:
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


def _by_rotations(records: list[Record], s: int) -> Matrix:
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
            rows = blocks.transpose(0, 2, 1).reshape(len(blocks), -1)[:, _order(s, m, p)]
            R = linalg.qr(np.vstack([R, rows]), mode="r", overwrite_a=True, check_finite=False)[0][:n_rows]
    return np.vstack([R, np.zeros((n_rows - len(R), n_rows))])
