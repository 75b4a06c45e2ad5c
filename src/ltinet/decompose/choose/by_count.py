"""A given number of blocks, merged by mutual information until there are no more."""

import numpy as np

from ltinet.decompose.choose.choice import Found
from ltinet.decompose.partition import partition_into
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import separate, separate_neurons, with_kernel_together
from ltinet.errors import PartitionError
from ltinet.tolerances import EPS


def into_blocks(schur: SchurForm, n_blocks: int, *, called: str) -> Found:
    """The form with a given number of blocks and a small condition number; errors call that number as the user does."""
    n_neurons = len(schur.starts) - 1
    if n_blocks > max(n_neurons, 1):
        raise PartitionError(
            f"{called} is {n_blocks}, but A has {n_neurons} neurons (real eigenvalues plus complex pairs); "
            "a block holds at least one, so give fewer blocks"
        )
    if n_blocks == 1:
        return Found(separate(schur, np.zeros(n_neurons, dtype=np.intp)))
    separation = separate_neurons(schur)
    together = with_kernel_together(separation)
    if together.n_blocks >= n_blocks:
        separation = together
    if separation.n_blocks > n_blocks:
        separation = separation.merged(partition_into(separation.atoms, n_blocks))
    if separation.n_blocks < min(n_blocks, n_neurons) or separation.condition > 1.0 / EPS:
        raise PartitionError(
            f"{called} is {n_blocks}, but that many invariant subspaces cannot be told apart in double precision "
            "(repeated or defective eigenvalues); give fewer blocks, or max_condition to have the number chosen"
        )
    return Found(separation)
