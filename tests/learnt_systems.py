"""Small systems with every kind of pole and block, for tests of the networks that learn."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet

Array = NDArray[np.float64]


def pair(decay: float, frequency: float) -> Array:
    return np.array([[-decay, frequency], [-frequency, -decay]])


def coupled() -> Array:
    """A defective triple, a pair coupled to it, and a nearly critical pair."""
    A = linalg.block_diag(-0.7 * np.eye(3) + np.eye(3, k=1), pair(0.7, 2.0))
    A[:3, 3:] = 0.3
    return A


KINDS: dict[str, Array] = {
    "pairs and reals": linalg.block_diag(pair(0.2, 3.0), pair(0.5, 1.0), [[-0.4]], [[-2.0]]),
    "coupled": coupled(),
    "nearly real pair": linalg.block_diag(np.array([[-1.0, 1.0], [-1e-14, -1.0]]), [[-0.3]]),
    "integrators": linalg.block_diag([[0.0]], np.array([[0.0, 1.0], [0.0, 0.0]]), pair(0.3, 2.0)),
    "unstable": linalg.block_diag([[0.2]], pair(-0.1, 2.0), pair(0.0, 1.0), [[-1.0]]),
}


def network_of(kind: str, *, n_inputs: int = 2, n_outputs: int = 2, seed: int = 0) -> ltinet.DynamicNetwork:
    """The network of a kind of system with inputs, outputs and feedthrough at random."""
    rng = np.random.default_rng(seed)
    A = KINDS[kind]
    B, C = rng.standard_normal((len(A), n_inputs)), rng.standard_normal((n_outputs, len(A)))
    return ltinet.construct((A, B, C, rng.standard_normal((n_outputs, n_inputs))))


def off_by(y: Array, expected: Array) -> float:
    """The largest difference over the peak of its output, over all times and records."""
    axes = tuple(range(expected.ndim - 1))
    peak = np.abs(expected).max(axis=axes)
    return float(np.max(np.abs(np.asarray(y) - expected).max(axis=axes) / np.where(peak > 0.0, peak, 1.0)))
