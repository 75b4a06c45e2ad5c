"""States across blocks of time: some last and need a recurrence, some have faded after a block and need none."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet.model.matrices import Matrix
from ltinet.solve.recurrence import Decay, accumulate

Array = NDArray[np.float64]
FADED = 2.0**-60  # of a state that enters a sum in double precision nothing is left


@dataclass(frozen=True)
class LastingStates:
    """What states bring from one block of time into the next, for those that last and those that have faded."""

    kept: NDArray[np.intp]
    faded: NDArray[np.intp]
    into_kept: Matrix
    from_kept: Matrix
    decay: Decay
    into_faded: Matrix
    from_faded: Matrix
    from_previous: Matrix
    """From the inputs of a block to the outputs of the next, through states that have faded after it."""

    def carry(self, blocks: Array, w: Array, y: Array, after: Array) -> None:
        """Add to y, block by block, what states bring that last, and put them at the end of the last into `after`."""
        if not len(self.kept):
            return
        first = w[:, self.kept]
        ends = (blocks @ self.into_kept).reshape(len(w), -1, len(self.kept))
        accumulate(ends, first, self.decay)
        after[:, self.kept] = ends[:, -1]
        # In one long list of blocks each end is the start of the next; batches begin with their own.
        ends[:-1, -1] = first[1:]
        y[0] += first[0] @ self.from_kept
        _add_product(y[1:], ends.reshape(-1, len(self.kept))[:-1], self.from_kept)

    def fade(self, blocks: Array, w: Array, y: Array, after: Array) -> None:
        """The same for the states that fade within a block."""
        if not len(self.faded):
            return
        per_batch = y.reshape(len(w), len(y) // len(w), y.shape[-1])
        inputs = blocks.reshape(len(w), len(y) // len(w), blocks.shape[-1])
        after[:, self.faded] = inputs[:, -1] @ self.into_faded
        per_batch[:, 0] += w[:, self.faded] @ self.from_faded
        for outputs, before in zip(per_batch, inputs, strict=True):
            _add_product(outputs[1:], before[:-1], self.from_previous)


def lasting_states(into_state: Matrix, from_state: Matrix, decay: Decay) -> LastingStates:
    """Sort the states of blocks of time, given what inputs do to them, they to outputs, and what is left of them."""
    pairs, reals = np.abs(decay.pairs) >= FADED, np.abs(decay.reals) >= FADED
    dense = [bool(np.linalg.norm(matrix) >= FADED) for matrix in decay.blocks]
    sizes = [len(matrix) for matrix in decay.blocks]
    mask = np.concatenate([np.repeat(pairs, 2), reals, np.repeat(np.array(dense, dtype=bool), sizes)])
    kept, faded = np.flatnonzero(mask), np.flatnonzero(~mask)
    into_faded, from_faded = np.ascontiguousarray(into_state[:, faded]), from_state[faded]
    return LastingStates(
        kept=kept,
        faded=faded,
        into_kept=np.ascontiguousarray(into_state[:, kept]),
        from_kept=from_state[kept],
        decay=Decay(
            decay.pairs[pairs],
            decay.reals[reals],
            tuple(matrix for matrix, lasts in zip(decay.blocks, dense, strict=True) if lasts),
        ),
        into_faded=into_faded,
        from_faded=from_faded,
        from_previous=into_faded @ from_faded,
    )


def _add_product(total: Array, left: Array, right: Array) -> None:
    """Total += left · right without a temporary copy; all C-contiguous."""
    if total.size and left.size:
        blas.dgemm(1.0, right.T, left.T, beta=1.0, c=total.T, overwrite_c=True)
