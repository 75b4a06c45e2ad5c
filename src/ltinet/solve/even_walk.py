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
    blocks: tuple[TimeBlocks, ...]
    """The blocks of the outputs and narrower ones within them: every step of a recurrence errs in the same direction,
    and in blocks within blocks no state has many behind it."""
    u: Array
    z0: Array

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and w at the next one; at the first sample the state itself is known."""
        if first > 0:
            return self._states(self.u[:, first:stop], before, self.blocks)
        states = np.empty((len(self.u), stop, before.shape[-1]))
        states[:, 0] = before
        after = self.grid.step.after_first(before, self.u[:, 0])
        if stop > 1:
            states[:, 1:], after = self._states(self.u[:, 1:stop], after, self.blocks)
        return states, after

    def _states(self, u: Array, w: Array, grids: tuple[TimeBlocks, ...]) -> tuple[Array, Array]:
        """All whole blocks side by side from the states at their beginnings, then what is left over."""
        if not grids:
            return self.grid.states(u, w)
        blocks, *narrower = grids
        batch, n_times, m = u.shape
        n_blocks = n_times // blocks.width
        if n_blocks < 2:
            return self._states(u, w, tuple(narrower))
        whole = n_blocks * blocks.width
        starts, after = blocks.starts(u[:, :whole], w)
        each = u[:, :whole].reshape(batch * n_blocks, blocks.width, m)
        states = np.empty((batch, n_times, w.shape[-1]))
        inside, _ = self._states(each, starts.reshape(batch * n_blocks, w.shape[-1]), tuple(narrower))
        states[:, :whole] = inside.reshape(batch, whole, w.shape[-1])
        if whole < n_times:
            states[:, whole:], after = self._states(u[:, whole:], after, tuple(narrower))
        return states, after
