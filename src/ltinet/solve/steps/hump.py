"""How far norms of e^{Fs} may rise before they fall: where they do, products of such matrices lose digits.

A product of a matrix with a state keeps them. ‖e^{Fs}‖ ≤ e^{μs}, with μ the largest eigenvalue of the symmetric part of
F, and falls as e^{αs} in the long run, with α the largest real part of an eigenvalue of F.
"""

import numpy as np

from ltinet.arrays import Array

_TOLERATED = np.log(10.0)
_MANY = 1e6  # times its own speed: a step so long takes SciPy's exponential dozens of squarings, or for ever
_FEW = 64  # states: of larger blocks eigenvalues would take longer than a run


def rises(F: Array, over: float) -> bool:
    """Whether e^{Fs} of some matrices F `(…, n, n)` may rise above e^{αs} by more than tenfold within a time."""
    if not F.size or F.shape[-1] > _FEW:
        return False
    symmetric = 0.5 * F + 0.5 * F.swapaxes(-1, -2)  # a sum of both may exceed all numbers
    speed = np.linalg.eigvalsh(symmetric).max(axis=-1) - np.linalg.eigvals(F).real.max(axis=-1)
    return bool(np.max(speed, initial=0.0) * over > _TOLERATED)


def is_moderate(F: Array, over: float) -> bool:
    """Whether a step is not so long, or a matrix so large, that its exponential cannot be had."""
    return bool(np.abs(F).sum(axis=-1).max(initial=0.0) * over < _MANY)
