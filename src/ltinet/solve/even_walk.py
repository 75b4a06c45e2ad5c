"""States at evenly spaced samples, one piece of time after the other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.single_steps import SingleSteps

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EvenWalk:
    """States along samples u `(batch, T, m)`, from packed states z0 `(batch, n)` at the first."""

    grid: SingleSteps
    u: Array
    z0: Array

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and w at the next one; at the first sample the state itself is known."""
        if first > 0:
            return self.grid.states(self.u[:, first:stop], before)
        states = np.empty((*self.u[:, first:stop].shape[:2], before.shape[-1]))
        states[:, 0] = before
        after = self.grid.step.after_first(before, self.u[:, 0])
        if stop > 1:
            states[:, 1:], after = self.grid.states(self.u[:, 1:stop], after)
        return states, after
