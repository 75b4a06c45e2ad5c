"""Evenly spaced samples: which of the ways through them is fastest, by a model of the time that each takes.

Single steps (`single_steps`) suit many inputs and outputs, blocks of time (`time_blocks`) are for any state at the
start, and fast convolution (`convolution`) is for long runs from rest through many states.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.convolution import Convolution, convolution, width_for
from ltinet.solve.lasting import FADED
from ltinet.solve.modal import ModalSystem
from ltinet.solve.one_step import OneStep
from ltinet.solve.single_steps import SingleSteps, single_steps
from ltinet.solve.time_blocks import TimeBlocks, time_blocks

Array = NDArray[np.float64]
_WIDEST = 2**8  # steps in a block: beyond, products grow faster than the recurrence shrinks
_MOST_PARAMETERS = 2**19  # numbers in the Markov parameters of half a run, for memory
_RUNS = 32  # that share a preparation: a network is made once and run often


def uniform_grid(step: OneStep, n_times: int, *, width: int | None = None) -> SingleSteps | TimeBlocks:
    """Prepare a grid for about `n_times` samples, from any state; blocks have a given number of steps or the best."""
    K = width or _Times(step.system, step.length, n_times).best_width
    while K > 1:
        blocks = time_blocks(step, K)
        if blocks is not None:
            return blocks
        K //= 2
    return single_steps(step)


def fast_convolution(step: OneStep, n_times: int) -> Convolution | None:
    """Prepare a grid for up to `n_times` samples from rest; None where the other ways are faster or more accurate."""
    times = _Times(step.system, step.length, n_times)
    return convolution(step, n_times) if times.worth_convolving else None


@dataclass(frozen=True)
class _Times:
    """A model of the seconds that a run takes."""

    system: ModalSystem
    step: float
    n_times: int

    @cached_property
    def best_width(self) -> int:
        """K of the fastest blocks, 1 for single steps."""
        widths = [2**power for power in range(_WIDEST.bit_length()) if 2**power <= max(self.n_times, 1)]
        return int(min(widths, key=self._in_blocks))

    @property
    def worth_convolving(self) -> bool:
        """Whether a convolution is faster than blocks, and as accurate: where nothing grows."""
        m, p = self.system.n_inputs, self.system.n_outputs
        if not 0 < m * p * width_for(self.n_times) <= _MOST_PARAMETERS or not self.n_times > 1:
            return False
        grows = np.any(self.system.rates.real > 0.0) or np.any(self._slowest_of_blocks >= 0.0)
        return not bool(grows) and self._by_convolution < self._in_blocks(self.best_width)

    @cached_property
    def _slowest_of_blocks(self) -> Array:
        return np.array([np.max(np.linalg.eigvals(block.F).real) for block in self.system.blocks])

    @property
    def _by_convolution(self) -> float:
        m, p, K = self.system.n_inputs, self.system.n_outputs, width_for(self.n_times)
        transforms = 4 * K * (m + p) * 0.6e-9 * math.log2(2 * K)
        products = 3 * K * m * p * 3e-9
        prepare = 4 * K * m * p * (self.system.n_states * 1.2e-10 + 2e-8) + math.sqrt(K) * self.system.n_states * 6e-8
        return 8e-5 + transforms + products + prepare / _RUNS

    def _in_blocks(self, K: int) -> float:
        """Flops of the products, calls and memory of the recurrence, preparation."""
        m, p, n_scalars = self.system.n_inputs, self.system.n_outputs, len(self.system.rates)
        n_each = np.where(np.arange(n_scalars) < self.system.n_pairs, 2, 1)
        rates = np.concatenate([self.system.rates.real, self._slowest_of_blocks])
        sizes = np.concatenate([n_each, [len(block.F) for block in self.system.blocks]])
        lasts = np.exp(np.minimum(rates * (self.step * K), 0.0)) >= FADED
        n_kept = int(sizes[lasts].sum())
        blocks_of_inputs = 2 if n_kept < self.system.n_states else 1  # that outputs depend on directly
        flops = 2.0 * self.n_times * (K * m * p * blocks_of_inputs + n_kept * (m + p))
        copies = self.n_times * m * blocks_of_inputs * 3e-9
        steps = self.n_times / K
        kinds = bool(n_kept) + int(np.count_nonzero(lasts[n_scalars:]))  # dense blocks go one by one
        calls = min(steps, 3.0 * math.sqrt(steps) + 20.0) * 3e-6 * kinds
        prepare = K * self.system.n_states * (m + p) * 1.5e-8
        return 5e-5 + flops / 1.5e10 + copies + calls + steps * n_kept * 6e-9 + prepare / _RUNS
