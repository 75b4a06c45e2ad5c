"""Kronecker sums A = L₂ ⊗ I + I ⊗ L₁, as fields on rectangular grids have: T = T₂ ⊗ T₁, which is never formed.

State i + n₁ j stands at place (i, j). The eigenvalues are all sums of one of L₁ and one of L₂.
"""

from collections.abc import Callable, Iterator
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet.arrays import Array
from ltinet.decompose.structures.basis import Rotated, Rotation
from ltinet.decompose.structures.diagonal_blocks import of_rates
from ltinet.decompose.structures.structure import Structure, sizes_of
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.tolerances import EPS

Factor = Callable[[SparseMatrix], Structure | None]
"""How a factor is decomposed."""

_ROUNDED = 4.0 * EPS  # relative to the largest entry
_MOST_TRIED = 32  # numbers of rows in a grid


@final
class Grid:
    """Q = Q₂ ⊗ Q₁; with `swapped` the modes of Q₂ follow each other, else those of Q₁."""

    def __init__(self, first: Rotation, second: Rotation, shape: tuple[int, int], *, swapped: bool) -> None:
        self.first, self.second, self.shape, self.swapped = first, second, shape, swapped

    def forward(self, x: Array) -> Array:
        """Qᵀ x, along one direction after the other."""
        n1, n2 = self.shape
        k = x.shape[1]
        along = self.second.forward(np.ascontiguousarray(x).reshape(n2, n1 * k)).reshape(n2, n1, k)
        turned = np.ascontiguousarray(along.transpose(1, 0, 2)).reshape(n1, n2 * k)
        z = self.first.forward(turned).reshape(n1, n2, k)
        return np.ascontiguousarray(z if self.swapped else z.transpose(1, 0, 2)).reshape(n1 * n2, k)

    def backward(self, z: Array) -> Array:
        """Q z."""
        n1, n2 = self.shape
        k = z.shape[1]
        modes = z.reshape(n1, n2, k) if self.swapped else z.reshape(n2, n1, k).transpose(1, 0, 2)
        turned = self.first.backward(np.ascontiguousarray(modes).reshape(n1, n2 * k)).reshape(n1, n2, k)
        along = np.ascontiguousarray(turned.transpose(1, 0, 2)).reshape(n2, n1 * k)
        return self.second.backward(along).reshape(n1 * n2, k)


def kronecker_sum(A: SparseMatrix, decompose: Factor, *, max_condition: float) -> Structure | None:
    """The structure of a Kronecker sum whose factors have structures, at most one of them with pairs; else None."""
    for n1 in _row_lengths(A):
        parts = _factors(A, n1)
        if parts is None:
            continue
        first, second = (decompose(part) for part in parts)
        if first is None or second is None or (first.has_pairs and second.has_pairs):
            return None
        if first.condition * second.condition > max_condition:
            return None
        return _joined(first, second)
    return None


def _joined(first: Structure, second: Structure) -> Structure | None:
    one, two = first.basis, second.basis
    if not isinstance(one, Rotated) or not isinstance(two, Rotated):
        return None
    n1, n2, swapped = len(first.rates), len(second.rates), second.has_pairs
    sums = np.add.outer(first.rates, second.rates) if swapped else np.add.outer(second.rates, first.rates)
    rates: NDArray[np.complex128] = sums.ravel()
    scaling = _product(two.scaling, n2, one.scaling, n1)
    lengths = _product(one.lengths, n1, two.lengths, n2) if swapped else _product(two.lengths, n2, one.lengths, n1)
    basis = Rotated(Grid(one.rotation, two.rotation, (n1, n2), swapped=swapped), scaling, lengths)
    kinds = dict.fromkeys((first.told, second.told))
    told = f"Kronecker sum {n1} × {n2} ({'; '.join(kinds)})"
    stretch = (first.stretch[0] * second.stretch[0], first.stretch[1] * second.stretch[1])
    return Structure(told, of_rates(rates), rates, sizes_of(rates), basis, stretch)


def _product(slow: Array | None, n_slow: int, fast: Array | None, n_fast: int) -> Array | None:
    """All products of two lists of factors, the last index the fast one; None stands for ones."""
    if slow is None and fast is None:
        return None
    one, two = np.ones(n_slow) if slow is None else slow, np.ones(n_fast) if fast is None else fast
    return np.asarray(np.outer(one, two).ravel(), dtype=np.float64)


def _row_lengths(A: SparseMatrix) -> Iterator[int]:
    """Distances between coupled states that divide n: one of them is the length of a row of the grid."""
    n = int(A.shape[0])
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    distances = np.unique(np.abs(rows - A.indices))
    fitting = [int(distance) for distance in distances if 1 < distance < n and n % distance == 0]
    yield from fitting[:_MOST_TRIED]


def _factors(A: SparseMatrix, n1: int) -> tuple[SparseMatrix, SparseMatrix] | None:
    """L₁ and L₂, if A is their Kronecker sum to rounding: what one diagonal has the other need not."""
    n2 = int(A.shape[0]) // n1
    half = 0.5 * float(A[0, 0])  # of the diagonal to each, so that eigenvalues add without cancellation
    first = sparse.csr_array(A[:n1, :n1] - half * sparse.eye_array(n1))
    second = sparse.csr_array(A[::n1, ::n1] - half * sparse.eye_array(n2))
    for factor in (first, second):
        factor.eliminate_zeros()
    off = [int(own.nnz - np.count_nonzero(own.diagonal())) for own in (first, second)]
    if n2 * off[0] + n1 * off[1] != A.nnz - np.count_nonzero(A.diagonal()):
        return None
    joined = sparse.kron(sparse.eye_array(n2), first) + sparse.kron(second, sparse.eye_array(n1))
    difference = abs(sparse.csr_array(A - joined))
    largest = difference.max() if difference.nnz else 0.0
    return (first, second) if largest <= _ROUNDED * abs(A).max() else None
