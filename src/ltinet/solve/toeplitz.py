"""What the inputs of a block of time do to the outputs of the same block: a block Toeplitz matrix, half of it zero."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix

Array = NDArray[np.float64]
_WORTH_HALVING = 32  # steps: smaller products gain nothing from leaving out zeros


@dataclass(frozen=True)
class BlockToeplitz:
    """Y_k = Σ_j≤k H_{k−j} U_j over K steps. Long blocks are halved: the quarter above the diagonal is never touched."""

    within: Matrix
    """From the inputs of a block, or of each half, to its outputs."""
    across: Matrix | None
    """From the inputs of the first half to the outputs of the second."""

    def outputs(self, blocks: Array, *, out: Array) -> None:
        """Outputs `(n_blocks, K p)` of inputs `(n_blocks, K m)`, into `out`."""
        if self.across is None:
            np.matmul(blocks, self.within, out=out)
            return
        half_inputs, half_outputs = self.within.shape
        halves = 2 * len(blocks)
        np.matmul(blocks.reshape(halves, half_inputs), self.within, out=out.reshape(halves, half_outputs))
        out[:, half_outputs:] += blocks[:, :half_inputs] @ self.across


def block_toeplitz(markov: Array) -> BlockToeplitz:
    """From Markov parameters H_0 … H_{K−1}, `(K, p, m)`."""
    K = len(markov)
    if K < _WORTH_HALVING or K % 2:
        return BlockToeplitz(_toeplitz(markov, 0, K), None)
    across = _toeplitz(markov, K // 2, K // 2)
    return BlockToeplitz(_toeplitz(markov, 0, K // 2), across)


def _toeplitz(markov: Array, delay: int, K: int) -> Matrix:
    """(K m × K p) with H_{delay + k − j} from input j to output k, 0 where that index is negative; rows are inputs."""
    _, p, m = markov.shape
    padded = np.concatenate([np.zeros((K, p, m)), markov])
    lag = delay + np.arange(K) - np.arange(K)[:, None]
    return np.asarray(padded[lag + K].transpose(0, 3, 1, 2).reshape(K * m, K * p))
