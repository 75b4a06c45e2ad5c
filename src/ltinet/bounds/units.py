"""Units of states in which rows and columns of a matrix are of one size: powers of two, which cost no digit."""

import numpy as np
from scipy.linalg import lapack

from ltinet.arrays import Array


def best_units(F: Array) -> Array:
    """The units `(n,)`: F · units / units[:, None] is balanced."""
    return np.asarray(lapack.dgebal(F, scale=1, permute=0)[3]) if len(F) else np.ones(0)
