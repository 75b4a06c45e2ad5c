"""Outputs where the input jumps: of a time given twice the first is before the jump, the second after it."""

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.signal import Smooth


def before_jumps(y: Array, t: Array, signal: Smooth, D: Array) -> Array:
    """Outputs at times t with those before jumps in place, from outputs y after them: states do not jump, D u does."""
    first = np.flatnonzero(t[1:] == t[:-1])
    if not len(first):
        return y
    y = y.copy()
    y[..., first, :] -= (signal.value(t[first]) - signal.value_before(t[first])) @ D.T
    return y
