"""States at all samples of narrow blocks, from those at their beginnings: products of powers, no recurrence.

Steps that follow each other err in the same direction each time, since P is rounded once. In a product with P^j the
state after j steps is off by a few units, whatever j is.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.solve.steps.one_step import OneStep
from ltinet.solve.steps.packing import pack, unpack
from ltinet.solve.steps.recurrence import matrix_powers
from ltinet.solve.steps.time_blocks import toeplitz


@dataclass(frozen=True, eq=False)
class StatesInBlocks:
    """A grid whose states are known at all samples of blocks of a few steps."""

    step: OneStep
    width: int
    scalar_powers: Complex
    """P⁰ … P^{K−1} of the scalars."""
    dense_powers: tuple[Array, ...]
    """The same of the dense blocks, (K × n × n) each."""
    from_inputs: Matrix
    """From the inputs of a block to its states, (K m × K n)."""

    def states(self, u: Array, w: Array) -> Array:
        """Packed z `(blocks, K, n)` from inputs `(blocks, K, m)` and packed w `(blocks, n)` at the beginnings."""
        n_blocks, K, m = u.shape
        states = (u.reshape(n_blocks, K * m) @ self.from_inputs).reshape(n_blocks, K, w.shape[-1])
        v, parts = unpack(self.step.system, w)
        turned = [_turned(powers, part) for powers, part in zip(self.dense_powers, parts, strict=True)]
        states += pack(self.step.system, v[:, None] * self.scalar_powers, turned)
        return states


def states_in_blocks(step: OneStep, width: int) -> StatesInBlocks:
    """Prepare blocks of so many steps."""
    into = step.into(step.Gamma, width).transpose(0, 2, 1)
    from_inputs = toeplitz(np.concatenate([step.shift[None], into[:-1]]))
    dense = tuple(matrix_powers(P, width) for P in step.dense)
    return StatesInBlocks(step, width, step.scalar_powers(np.arange(width)), dense, from_inputs)


def _turned(powers: Array, states: Array) -> Array:
    """P^j z for all powers `(K, n, n)` and states `(blocks, n)`, `(blocks, K, n)`."""
    K, n, _ = powers.shape
    return np.asarray(states @ powers.reshape(K * n, n).T).reshape(len(states), K, n)
