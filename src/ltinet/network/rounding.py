"""Which weights are rounding errors: entries that are small against the terms that they were summed from.

The sums of `maps` cancel where a neuron does not see an input, or an output not a neuron. What is left there differs
from one processor to the next, and would count as a weight.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix
from ltinet.network.maps import LayerMatrices, m_eta


class Magnitudes(NamedTuple):
    """|T⁻¹||B| and |C||T|: sizes of the terms that the entries of B and C are sums of; zero where those are zero."""

    B: Array
    C: Array


def without_rounding(values: Array, bound: Array) -> Array:
    """The array with zeros where entries do not exceed their bound; where that overflows nothing is known."""
    zero = np.abs(values) <= bound
    zero &= bound < np.inf
    return np.where(zero, 0.0, values) if zero.any() else values


def lti_magnitudes(A: Matrix, B: Matrix, *, n_real: int) -> LayerMatrices:
    """The sizes of the terms that `m_lti` sums, entry by entry; B holds those of its own entries."""
    r, c, e = slice(0, n_real), slice(n_real, None, 2), slice(n_real + 1, None, 2)
    size = np.abs(A)
    W, Q, Z = _eta_magnitudes(A, B, n_real)
    below, A2333 = np.zeros((len(Q), n_real)), size[c, e] @ size[e, e]
    C = np.block([[np.eye(n_real), size[r, e] @ Q], [below, size[c, c] + A2333 @ Q]])
    K = np.block([[size[r, r], size[r, c] + size[r, e] @ W], [below, size[c, e] @ size[e, c] + A2333 @ W]])
    E = np.vstack([B[r] + size[r, e] @ Z, A2333 @ Z + size[c, e] @ B[e]])
    return LayerMatrices(np.eye(len(C)), C, K, E, np.vstack([B[r], B[c]]))


def output_magnitudes(A: Matrix, B: Matrix, C: Matrix, *, n_real: int) -> tuple[Matrix, Matrix]:
    """The same for `m_o`: of [φ, φ̇] and of ψ; B and C hold the sizes of their own entries."""
    W, Q, Z = _eta_magnitudes(A, B, n_real)
    C_r, C_c, C_eta = C[:, :n_real], C[:, n_real::2], C[:, n_real + 1 :: 2]
    return np.hstack([C_r, C_c + C_eta @ W, C_eta @ Q]), C_eta @ Z


def _eta_magnitudes(A: Matrix, B: Matrix, n_real: int) -> tuple[Matrix, Matrix, Matrix]:
    """The same for `m_eta`."""
    Q = np.abs(m_eta(A, np.zeros((len(A), 0)), n_real=n_real).Q)
    return Q @ np.abs(A[n_real::2, n_real::2]), Q, Q @ B[n_real::2]
