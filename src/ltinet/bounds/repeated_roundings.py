"""Roundings that are the same at every step: those of terms that stay as they are, in sums that do not.

A state has so many digits, and what is added to it is cut to these. A term that is the same at every step is cut by the
same amount each time, whatever digits the state has: such roundings go in one direction, and do not spread by chance.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.tolerances import EPS

LAST_DIGITS = 16.0  # eps of a sum: terms that differ by less from step to step are cut alike for long
_TINY = 2.0**-1022


def repeated_roundings(largest: Array, usual: Array, states: Array, changes: Array, *, of_products: Array) -> Array:
    """What rounding adds to P z in the same direction at every step, `(cells, n)`.

    |P| is `largest` at most, `(n, n)`, and `usual` in most steps of each cell, `(cells, n, n)`; states are as large as
    `states` and differ by `changes` from step to step. `of_products` is the share of steps, `(cells,)`, whose matrices
    have been multiplied with each other often: there what is kept of a state is cut alike as well.
    """
    sums = (states @ largest.T)[:, :, None]
    unit = 0.5 * EPS * sums
    each = np.minimum(largest * states[:, None], unit)
    each[usual * changes[:, None] > LAST_DIGITS * EPS * sums] = 0.0
    kept = np.arange(len(largest))
    each[:, kept, kept] = of_products[:, None] * unit[:, :, 0]
    # Each goes where it likes: in a sum of many they spread as if by chance (`step_rounding`).
    total = each.sum(axis=-1)
    shares = each / np.maximum(total, _TINY)[:, :, None]
    return np.asarray(total * np.minimum(1.0, 2.0 * np.sqrt(np.square(shares).sum(axis=-1))))
