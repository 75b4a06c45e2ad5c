"""Steps that come in crowds: how many of them there are within short windows of time.

Errors of steps fade while time goes on. Where many steps follow each other closely, and then none for long, they are
all there at once, and what fades on the average of the time between them does not fade within the crowd.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array

_MOST_WINDOWS = 20


@dataclass(frozen=True, eq=False)
class Crowds:
    """The most steps that end within any window of each width, cell of time by cell of time."""

    widths: Array
    """Descending from that of a cell, each half of the one before."""
    counts: Array
    """`(cells, widths)`."""

    def lasting(self, growth: Array) -> Array:
        """The largest sum of e^{g s} over the times s since all steps of a cell, `(cells, n)` for real parts g `(n,)`.

        Of what decays it is n e^{g w₀} + Σ n_j (e^{g w_{j+1}} − e^{g w_j}): no more than n_j steps are nearer than w_j.
        """
        with np.errstate(over="ignore"):
            left = np.exp(np.multiply.outer(np.append(self.widths, 0.0), np.minimum(growth, 0.0)))
            most = np.exp(np.maximum(growth, 0.0) * self.widths[0])
        return np.asarray((self.counts[:, :1] * left[0] + self.counts @ np.diff(left, axis=0)) * most)

    def crowding(self, shortest: float) -> Array:
        """By how much steps stand closer than on the average of a cell, `(cells,)`, in windows that are not shorter."""
        wide = np.maximum(1, np.count_nonzero(self.widths >= shortest))
        average = np.maximum(self.counts[:, :1], 1.0) * (self.widths[:wide] / self.widths[0])
        return np.asarray(np.max(self.counts[:, :wide] / average, axis=1, initial=1.0))


def crowds_of(ends: Array, places: NDArray[np.intp], *, n_cells: int, cell: float) -> Crowds:
    """Count the steps that end at ascending times, in the cells whose numbers are given."""
    first = np.searchsorted(places, places, side="left")
    widths, counts = [cell], [np.bincount(places, minlength=n_cells)]
    numbers = np.arange(len(ends))
    while len(widths) < _MOST_WINDOWS and counts[-1].max(initial=0) > 2:
        widths.append(0.5 * widths[-1])
        nearer = numbers - np.maximum(np.searchsorted(ends, ends - widths[-1], side="right"), first) + 1
        most = np.zeros(n_cells, dtype=np.intp)
        np.maximum.at(most, places, nearer)
        counts.append(most)
    return Crowds(np.array(widths), np.array(counts, dtype=np.float64).T)
