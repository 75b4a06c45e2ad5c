"""How large states are in cells of time that are shorter than steps.

Where states grow by orders of magnitude within a step, its end says little about what it began with and went through:
errors that enter early are small themselves, and grow with it.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import grows_within, length_of, samples_around, take_largest


class FinerSizes(NamedTuple):
    """Moduli of modes in each cell, `(…, cells, modes)`."""

    begun: Array
    """At the samples from which steps go through it."""
    within: Array
    """At its edges, and at samples in it."""

    def of(self, member: int) -> "FinerSizes":
        """Those of one signal of a batch."""
        return FinerSizes(self.begun[member], self.within[member])


def finer_sizes(path: ExactPath, arrays: EngineArrays, cells: Array) -> FinerSizes | None:
    """Those of all signals of a batch; None where states grow little within a step, or cells are longer."""
    t, longest = path.samples.t, path.samples.longest_step
    if not grows_within(arrays, longest) or length_of(cells) >= longest:
        return None
    edges = np.empty((len(path.u), len(cells), arrays.system.n_states))
    for at, z, _ in path.states_at(np.clip(cells, t[0], t[-1])):
        edges[:, at] = np.abs(z)
    within = np.maximum(edges[:, :-1], edges[:, 1:])
    begun = np.zeros_like(within)
    inside = [np.searchsorted(t, cells[:-1], side="left"), np.searchsorted(t, cells[1:], side="right") - 1]
    first, last = samples_around(t, cells).T
    for own, z in path.sampled_states.pieces():
        size = np.abs(z)
        take_largest(within, size, own, np.column_stack(inside))
        take_largest(begun, size, own, np.column_stack([first, np.maximum(last - 1, first)]))
    return FinerSizes(arrays.modes(begun), arrays.modes(within))
