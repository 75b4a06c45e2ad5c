"""Long curves made short without losing their peaks: of each stretch the least and the largest value."""

import itertools

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array

MOST_POINTS = 1000


def kept_points(values: Array, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Indices of at most so many of the values `(T,)`, ascending: both ends, and each stretch's extremes."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, most // 2).astype(np.intp)
    kept = {0, count - 1}
    for start, stop in itertools.pairwise(edges):
        kept |= {int(start + np.argmin(values[start:stop])), int(start + np.argmax(values[start:stop]))}
    return np.array(sorted(kept))
