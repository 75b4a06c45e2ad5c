"""Solutions (s²M + sD + K)⁻¹[B, Cᵀ] at places on the imaginary axis, and where the next places are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ltinet.arrays import Array
from ltinet.model.sparse_factors import superlu
from ltinet.reduction.mechanical.damped_pencil import DampedPencil

_APART = 1.05  # ratio of two frequencies of one batch
_AGAIN = 1e-3  # relative distance from a frequency that was taken
FIRST = (0.0, 1.0, 4.0, 16.0)  # times the slowest frequency
BATCH = 3  # fixed, so that the result does not depend on who computes it

Matrices = tuple[Any, Any, Any, Array, Array]


def damped_solutions(model: DampedPencil, frequencies: Sequence[float], *, n_jobs: int) -> Array:
    """Real and imaginary parts of the solutions for B and Cᵀ, all frequencies side by side.

    Every frequency is a job of its own, whoever computes it, so that the result does not depend on the workers.
    """
    own = model.pencil
    matrices: Matrices = (own.E, model.D, -own.A, own.B, own.C)
    if n_jobs == 1:
        return np.hstack([_solutions(matrices, omega) for omega in frequencies])
    from joblib import Parallel, delayed  # here, because few reductions share their work

    return np.hstack(Parallel(n_jobs=n_jobs)(delayed(_solutions)(matrices, omega) for omega in frequencies))


def _solutions(matrices: Matrices, omega: float) -> Array:
    M, D, K, B, C = matrices
    P: Any = K if omega == 0.0 else K - omega**2 * M + 1j * omega * D
    right = np.hstack([B, C.T]).astype(P.dtype)
    columns = superlu(sparse.csc_array(P), pivoting=0.01).solve(right)
    return np.hstack([columns.real, columns.imag]) if omega else np.asarray(columns)


def next_frequencies(omega: Array, values: Array, taken: Sequence[float]) -> list[float]:
    """Where a bound peaks, the largest peaks first, apart from each other and from those that are taken."""
    inner = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    peaks = np.concatenate([np.flatnonzero(inner) + 1, [len(values) - 1]])
    peaks = peaks[np.argsort(-values[peaks], kind="stable")]
    chosen: list[float] = []
    for own in omega[peaks].tolist():
        is_new = all(abs(own - other) > _AGAIN * own for other in taken)
        if own > 0.0 and is_new and all(max(own / other, other / own) > _APART for other in chosen):
            chosen.append(own)
        if len(chosen) == BATCH:
            break
    return chosen or [1.5 * max(taken)]
