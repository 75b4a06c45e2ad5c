"""How well entries of T⁻¹B and C T are known: as sums, and with the vectors in T that a change of A would turn.

A change of A in its last digits turns the vector of one neuron towards those of others, by eps · |T⁻¹||A||T| over the
distance of their eigenvalues. What an output sees of a neuron is known to that times what it sees of the others: a
weight below it is zero on one processor and 1e-15 on the next.
"""

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.matrices import Matrix
from ltinet.network.rounding import Magnitudes
from ltinet.tolerances import sum_rounding

# Vectors of eigenvalues that nearly coincide turn farther, but together: what one sees less the other sees more. Up to
# here weights can be dropped one by one without a loss of digits.
_FARTHEST = 100.0


def with_turning_vectors(terms: Magnitudes, form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> Magnitudes:
    """The sizes that entries of B and C in block coordinates are known relative to, from those of their sums alone.

    Only for neurons whose entries are small enough for it to matter; cost O(n³) if there are any, all in products.
    """
    weak_inputs = _weak(B.T, terms.B.T)
    weak_outputs = _weak(C, terms.C)
    if len(weak_inputs) + len(weak_outputs) == 0:
        return terms
    B_terms, C_terms = terms.B.copy(), terms.C.copy()
    if len(weak_inputs):
        sizes = np.abs(form.T_inv[weak_inputs]) @ np.abs(form.original) @ np.abs(form.T)
        B_terms[weak_inputs] += _turning(sizes, form, weak_inputs) @ terms.B
    if len(weak_outputs):
        sizes = np.abs(form.T_inv) @ (np.abs(form.original) @ np.abs(form.T[:, weak_outputs]))
        C_terms[:, weak_outputs] += terms.C @ _turning(sizes.T, form, weak_outputs).T
    return Magnitudes(B_terms, C_terms)


def _weak(weights: Matrix, terms: Matrix) -> NDArray[np.intp]:
    """States with a weight, but one that the vectors of others could make."""
    level = sum_rounding(weights.shape[1]) * _FARTHEST * terms.sum(axis=1, keepdims=True)
    return np.asarray(((weights != 0.0) & (np.abs(weights) <= level)).any(axis=0).nonzero()[0])


def _turning(sizes: Matrix, form: BlockDiagonalForm, states: NDArray[np.intp]) -> Matrix:
    """For some states and all others, how far the vector turns per eps; not at all inside a block."""
    values = np.concatenate(form.eigenvalues)
    re, im = values.real, np.abs(values.imag)
    distance = np.hypot(re[states, None] - re, im[states, None] - im)
    block = np.repeat(np.arange(form.n_blocks), form.block_sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        turning = np.minimum(sizes / distance, _FARTHEST)
    return np.where((block[states, None] != block) & (sizes > 0.0), turning, 0.0)
