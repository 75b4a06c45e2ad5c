"""How large a bound is beside what it bounds."""

import math

import numpy as np

from ltinet.arrays import Array


def worst_share(bound: Array, peak: Array) -> float:
    """The largest bound of an output relative to its peak; outputs that are zero do not count, unknown is infinite."""
    shares = np.divide(bound, peak, out=np.zeros_like(peak), where=peak > 0.0)
    return float(np.nan_to_num(shares, nan=math.inf, posinf=math.inf).max(initial=0.0))
