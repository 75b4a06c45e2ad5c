"""States at the end of a block of time: of some, something is left; others have faded and need no recurrence."""

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.steps.recurrence import Decay

Indices = NDArray[np.intp]
FADED = 2.0**-60  # of a state that enters a sum in double precision nothing is left


def sort_states(decay: Decay, *, fades_below: float = FADED) -> tuple[Indices, Indices, Decay]:
    """Places of packed states that last and of those that have faded, and the decay of the lasting ones."""
    pairs, reals = np.abs(decay.pairs) >= fades_below, np.abs(decay.reals) >= fades_below
    dense = [bool(np.linalg.norm(matrix) >= fades_below) for matrix in decay.blocks]
    sizes = [len(matrix) for matrix in decay.blocks]
    mask = np.concatenate([np.repeat(pairs, 2), reals, np.repeat(np.array(dense, dtype=bool), sizes)])
    blocks = tuple(matrix for matrix, lasts in zip(decay.blocks, dense, strict=True) if lasts)
    return np.flatnonzero(mask), np.flatnonzero(~mask), Decay(decay.pairs[pairs], decay.reals[reals], blocks)
