"""Up to which frequency a system follows: where its gain first falls below that at rest by 3 dB."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ltinet.analysis.narrowing import narrowed
from ltinet.arrays import Array

Response = Callable[[Array], NDArray[np.complex128]]
Test = Callable[[Array], NDArray[np.bool_]]


def bandwidth_of(response: Response, at_rest: Array, frequencies: Array, *, drop: float) -> Array:
    """The first frequency at which |H_ij| is `drop` decibels below |H_ij(0)|, p×m.

    Infinite where it never falls so far up to the last of the frequencies, NaN where the gain at rest is zero or
    infinite.
    """
    limit = np.abs(at_rest) * 10.0 ** (-drop / 20.0)
    result = np.full(at_rest.shape, np.nan)
    usable = np.isfinite(limit) & (limit > 0.0)
    if not usable.any():
        return result
    # An octave apart down to where nothing has happened yet.
    slower = frequencies[0] * np.exp2(np.arange(-20.0, 0.0))
    grid = np.concatenate([slower, frequencies])
    gains = np.abs(response(grid))
    for i, j in np.argwhere(usable).tolist():
        below = np.flatnonzero(gains[:, i, j] < limit[i, j])
        if not len(below):
            result[i, j] = np.inf
            continue
        first = int(below[0])
        start = grid[first - 1] if first else 0.0
        result[i, j] = narrowed(_falls_below(response, (i, j), float(limit[i, j])), start, float(grid[first]))
    return result


def _falls_below(response: Response, pair: tuple[int, int], limit: float) -> Test:
    return lambda omega: np.abs(response(omega)[:, *pair]) < limit
