"""Subspace methods: states, seen as what the past tells of the future, and from them A and C.

With W the past (inputs and outputs) and U the future inputs, what is left of future outputs Y without U and explained
by W spans the columns of the observability matrix [C; C A; C A²; …]. The methods differ in how they weigh it: MOESP
(Verhaegen 1994, past outputs as instruments) by what is left of W without U, N4SID (Van Overschee and De Moor 1994) by
W itself, CVA (Larimore 1990) by the inverse root of the covariance of Y without U.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.hankel import Compressed
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS

Method = Literal["moesp", "n4sid", "cva"]
METHODS: tuple[Method, ...] = ("moesp", "n4sid", "cva")


@dataclass(frozen=True, eq=False)
class Subspace:
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


def subspace(data: Compressed, method: Method) -> Subspace:
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
    return Subspace(method, s, values, (U[:, kept] * sizes[kept]) @ (V * np.sqrt(values)), p)


def _decomposed(explained: Matrix, method: Method, data: Compressed) -> Subspace:
    U, values, _ = linalg.svd(explained, full_matrices=False, check_finite=False)
    return Subspace(method, data.block_rows, values, U * np.sqrt(values), data.n_outputs)
