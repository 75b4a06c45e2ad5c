"""Diagonal matrices: T = 1."""

import numpy as np

from ltinet.decompose.structures.basis import Rotated, Unmoved
from ltinet.decompose.structures.diagonal_blocks import of_rates
from ltinet.decompose.structures.structure import Structure, sizes_of
from ltinet.model.sparse_matrices import SparseMatrix


def diagonal(A: SparseMatrix) -> Structure | None:
    """The structure of a diagonal matrix; None for any other."""
    entries = A.diagonal()
    if int(np.count_nonzero(entries)) != A.nnz:
        return None
    rates = entries.astype(np.complex128)
    return Structure("diagonal matrix", of_rates(rates), rates, sizes_of(rates), Rotated(Unmoved()))
