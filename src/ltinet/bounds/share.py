"""How large a bound is beside what it bounds."""

import math

import numpy as np

from ltinet.arrays import Array


def shares(bound: Array, peak: Array) -> Array:
    """Bounds of outputs relative to their peaks; of outputs that are zero nothing, and what is unknown is infinite."""
    found = np.divide(bound, peak, out=np.zeros_like(peak), where=peak > 0.0)
    return np.nan_to_num(found, nan=math.inf, posinf=math.inf)


def worst_share(bound: Array, peak: Array) -> float:
    """The largest of these."""
    return float(shares(bound, peak).max(initial=0.0))
