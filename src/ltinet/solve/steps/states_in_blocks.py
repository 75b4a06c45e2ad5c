"""States at all samples of narrow blocks, from those at their beginnings: products of powers, no recurrence.

Steps that follow each other err in the same direction each time, since P is rounded once. In a product with P^j the
state after j steps is off by a few units, whatever j is.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix
from ltinet.solve.steps.one_step import OneStep, Powers
from ltinet.solve.steps.packing import pack, unpack
from ltinet.solve.steps.time_blocks import toeplitz


@dataclass(frozen=True, eq=False)
class StatesInBlocks:
    """A grid whose states are known at all samples of blocks of a few steps."""

    step: OneStep
    width: int
    powers: Powers
    """P⁰ … P^{K−1}."""
    from_inputs: Matrix
    """From the inputs of a block to its states, (K m × K n)."""

    def states(self, u: Array, w: Array) -> Array:
        """Packed z `(blocks, K, n)` from inputs `(blocks, K, m)` and packed w `(blocks, n)` at the beginnings."""
        n_blocks, K, m = u.shape
        states = (u.reshape(n_blocks, K * m) @ self.from_inputs).reshape(n_blocks, K, w.shape[-1])
        v, parts = unpack(self.step.system, w)
        turned = [np.einsum("jab,kb->kja", own, part) for own, part in zip(self.powers.dense, parts, strict=True)]
        states += pack(self.step.system, v[:, None] * self.powers.scalars, turned)
        return states


def states_in_blocks(step: OneStep, width: int) -> StatesInBlocks:
    """Prepare blocks of so many steps."""
    powers = step.powers(width)
    into = step.into(powers, step.Gamma).transpose(0, 2, 1)
    return StatesInBlocks(step, width, powers, toeplitz(np.concatenate([step.shift[None], into[:-1]])))
