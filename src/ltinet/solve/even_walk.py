"""States at evenly spaced samples, one piece of time after the other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.single_steps import SingleSteps
from ltinet.solve.time_blocks import TimeBlocks

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EvenWalk:
    """States along samples u `(batch, T, m)`, from packed states z0 `(batch, n)` at the first."""

    grid: SingleSteps
    blocks: SingleSteps | TimeBlocks
    """The grid of the outputs: in wide blocks fewer states follow each other, and fewer roundings."""
    u: Array
    z0: Array

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and w at the next one; at the first sample the state itself is known."""
        if first > 0:
            return self._states(self.u[:, first:stop], before)
        states = np.empty((len(self.u), stop, before.shape[-1]))
        states[:, 0] = before
        after = self.grid.step.after_first(before, self.u[:, 0])
        if stop > 1:
            states[:, 1:], after = self._states(self.u[:, 1:stop], after)
        return states, after

    def _states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """All whole blocks side by side from the states at their beginnings, then what is left over."""
        batch, n_times, m = u.shape
        width = self.blocks.width
        n_blocks = n_times // width
        if width == 1 or n_blocks < 2 or not isinstance(self.blocks, TimeBlocks):
            return self.grid.states(u, w)
        whole = n_blocks * width
        starts, after = self.blocks.starts(u[:, :whole], w)
        each = u[:, :whole].reshape(batch * n_blocks, width, m)
        states = np.empty((batch, n_times, w.shape[-1]))
        inside, _ = self.grid.states(each, starts.reshape(batch * n_blocks, w.shape[-1]))
        states[:, :whole] = inside.reshape(batch, whole, w.shape[-1])
        if whole < n_times:
            states[:, whole:], after = self.grid.states(u[:, whole:], after)
        return states, after
