"""What roundings that do not know of each other come to along a run: the root of the sum of their squares.

Each is uniform within its bound or nearer to zero, so that its standard deviation is at most 0.58 of it: three times
the root is five standard deviations of their sum. Where fewer than nine of them last, their plain sum is less.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed, DenseKernel, lasting_steps

_SPREAD = 3.0
_SMALLEST = 1e-280  # squares below which they lose their digits, and nothing is said


def _of_squares(squares: Array) -> Array:
    return np.where(squares > _SMALLEST, _SPREAD * np.sqrt(squares), np.inf)


def scalar_spread(growth: Array, errors: Committed, *, cell: float) -> Array:
    """Bounds `(cells, n)` on what errors at every step do to scalars with real parts `growth`."""
    kept = np.exp(2.0 * growth * cell)
    most = np.maximum(1.0, kept)
    entered = errors.each_step**2 * lasting_steps(2.0 * growth, errors, cell=cell)
    squares = np.empty_like(entered)
    before = np.zeros_like(growth)
    for own, added in zip(squares, entered, strict=True):
        own[:] = np.where(before == 0.0, 0.0, most * before) + added
        before = np.where(before == 0.0, 0.0, kept * before) + added
    return _of_squares(squares)


def dense_spread(kernel: DenseKernel, errors: Committed, *, cell: float) -> Array:
    """The same for a coupled block: bounds `(cells, p)` on what they do to the outputs."""
    n_cells = len(errors.each_step)
    peak, integral = kernel.lags(n_cells)
    first = errors.each_step**2 * np.minimum(errors.n_steps, 1.0)[:, None]
    others = errors.each_step**2 * kernel.rates(errors, cell=cell)[:, None]
    squares = np.zeros((n_cells, peak.shape[1]))
    for lag in range(n_cells):
        sources = slice(0, n_cells - lag)
        squares[lag:] += first[sources] @ (peak[lag] ** 2).T + others[sources] @ (peak[lag] * integral[lag]).T
    return _of_squares(squares)
