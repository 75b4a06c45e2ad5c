"""States at evenly spaced samples, one piece of time after the other."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.steps.single_steps import SingleSteps
from ltinet.solve.steps.states_in_blocks import StatesInBlocks
from ltinet.solve.steps.time_blocks import TimeBlocks


@dataclass(frozen=True, eq=False)
class NestedBlocks:
    """The blocks of the outputs, narrower ones within them, and the states within those."""

    wide: TimeBlocks
    narrow: TimeBlocks
    inside: StatesInBlocks


@dataclass(frozen=True, eq=False)
class EvenWalk:
    """States along samples u `(batch, T, m)`, from packed states z0 `(batch, n)` at the first."""

    grid: SingleSteps
    blocks: NestedBlocks | None
    """None where outputs go by single steps too."""
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
        """Whole wide blocks first, then narrow ones, then what is left over."""
        if self.blocks is None:
            return self.grid.states(u, w)
        states, begin = np.empty((*u.shape[:2], w.shape[-1])), 0
        for blocks in (self.blocks.wide, self.blocks.narrow):
            own = slice(begin, begin + (u.shape[1] - begin) // blocks.width * blocks.width)
            if own.stop > own.start:
                starts, w = blocks.starts(u[:, own], w)
                states[:, own] = self._inside(u[:, own], starts)
            begin = own.stop
        if begin < u.shape[1]:
            states[:, begin:], w = self.grid.states(u[:, begin:], w)
        return states, w

    def _inside(self, u: Array, starts: Array) -> Array:
        """States at all samples of blocks, from those at their beginnings; wide blocks by narrow ones."""
        assert self.blocks is not None  # noqa: S101 - the caller has looked
        narrow, inside = self.blocks.narrow, self.blocks.inside
        n, n_blocks = starts.shape[-1], starts.shape[0] * starts.shape[1]
        if not n_blocks:  # a batch of none
            return np.zeros((*u.shape[:2], n))
        width = u.shape[0] * u.shape[1] // n_blocks
        each, w = u.reshape(n_blocks, width, u.shape[-1]), starts.reshape(n_blocks, n)
        if width > narrow.width:
            within, _ = narrow.starts(each, w)
            n_narrow = n_blocks * width // narrow.width
            each, w = each.reshape(n_narrow, narrow.width, u.shape[-1]), within.reshape(n_narrow, n)
        return inside.states(each, w).reshape(*u.shape[:2], n)
