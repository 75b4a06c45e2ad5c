"""Whether numbers are finite: asked of every input and output, so it must cost next to nothing."""

import math

import numpy as np
from scipy.linalg.blas import dasum

from ltinet.arrays import Array

_FEW, _AT_ONCE = 1_000, 10_000  # numbers: fewer are looked at as fast one by one, for more some BLAS would wake threads


def all_finite(values: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    if values.size > _FEW and values.flags.c_contiguous and values.dtype == np.float64:
        flat = values.reshape(-1)
        for begin in range(0, len(flat), _AT_ONCE):
            if not math.isfinite(dasum(flat[begin : begin + _AT_ONCE])):
                break  # one of them is not finite, or their sum is not
        else:
            return True
    return bool(np.count_nonzero(np.isfinite(values)) == values.size)  # faster than all()
