"""Which neurons of a block feed each other: entries that are there, and not what rounding left in their place."""

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.separate import Separation
from ltinet.model.matrices import Matrix
from ltinet.tolerances import sum_rounding

Pattern = NDArray[np.bool_]


def coupled_neurons(block: Matrix, n_real: int) -> Pattern:
    """For each two neurons i < j of a block of pattern G, whether j feeds i; False elsewhere."""
    first = np.concatenate([np.arange(n_real), np.arange(n_real, len(block), 2)])
    if len(first) < 2:
        return np.zeros((len(first), len(first)), dtype=bool)
    feeds = np.logical_or.reduceat(np.logical_or.reduceat(block != 0.0, first, axis=0), first, axis=1)
    return np.asarray(np.triu(feeds, 1))


def without_noise_couplings(separation: Separation, A: Matrix) -> Matrix:
    """The blocks of a separation of A with couplings below the rounding bound of their entry set to zero.

    An entry of T⁻¹A T is known to eps · |T⁻¹||A||T| there. That costs O(n²) for each row and column with entries that
    are small against the norms of T⁻¹ and A; those are few.
    """
    bases, Z = separation.bases, separation.schur.Z
    blocks, noise = np.array(bases.blocks), sum_rounding(len(A))
    wide = (separation.neurons > 1).nonzero()[0]
    if len(wide) == 0:
        return blocks
    largest = float(np.linalg.norm(A))
    is_pair = np.zeros(len(blocks), dtype=bool)
    is_pair[separation.schur.pairs] = True
    for start, stop in zip(bases.bounds[wide].tolist(), bases.bounds[wide + 1].tolist(), strict=True):
        own = slice(start, stop)
        coupling, left = np.triu(blocks[own, own], 1), separation.inverse[own]
        pairs = is_pair[own].nonzero()[0]
        coupling[pairs, pairs + 1] = 0.0
        rows, columns = _small(coupling, noise * largest * np.linalg.norm(left, axis=1))
        if len(rows) == 0:
            continue
        right = np.abs(A) @ np.abs(Z @ bases.basis[:, start + columns])
        bound = noise * (np.abs(left[rows] @ Z.T) @ right)
        places = np.ix_(rows, columns)
        noisy = (np.abs(coupling[places]) <= bound) & (coupling[places] != 0.0)
        blocks[own, own][places] = np.where(noisy, 0.0, blocks[own, own][places])
    return blocks


def _small(coupling: Matrix, levels: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of entries that are not zero but at most the level of their row."""
    small = (coupling != 0.0) & (np.abs(coupling) <= levels[:, None])
    return small.any(axis=1).nonzero()[0], small.any(axis=0).nonzero()[0]
