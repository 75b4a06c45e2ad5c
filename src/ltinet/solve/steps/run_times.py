"""A model of the seconds that a run over evenly spaced samples takes, by which its way is chosen.

The constants were measured on one core of a server processor. What matters is how the ways compare, not the seconds.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.once import cached_property
from ltinet.solve.modal import ModalSystem
from ltinet.solve.steps.convolution import width_for
from ltinet.solve.steps.lasting import FADED

_WIDEST = 2**8  # steps in a block: beyond, products grow faster than the recurrence shrinks
_RUNS = 32  # that share a preparation: a network is made once and run often


@dataclass(frozen=True)
class RunTimes:
    """For one system, step and number of samples."""

    system: ModalSystem
    step: float
    n_times: int

    @property
    def best_width(self) -> int:
        """K of the fastest blocks, 1 for single steps."""
        return int(self._widths[np.argmin(self._in_blocks)])

    @property
    def in_blocks(self) -> float:
        """Seconds of a run in the fastest blocks."""
        return float(np.min(self._in_blocks))

    @property
    def by_convolution(self) -> float:
        """Seconds of a run by fast convolution: transforms, products, and a share of the preparation."""
        n, m, p = self.system.n_states, self.system.n_inputs, self.system.n_outputs
        K = width_for(self.n_times)
        transforms = 4 * K * (m + p) * 0.6e-9 * math.log2(2 * K)
        products = 3 * K * m * p * 3e-9
        prepare = (
            3e-4
            + 4 * K * m * p * (n * 1.2e-10 + 2e-8)
            + math.sqrt(K) * n * 1.5e-7
            + float(self._powers(np.sqrt(8.0 * K)))
        )
        return 8e-5 + transforms + products + prepare / _RUNS

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        return 2 ** np.arange(min(_WIDEST, max(self.n_times, 1)).bit_length())

    @cached_property
    def _in_blocks(self) -> Array:
        """For every width: products, copies, recurrence by calls and by memory, and a share of the preparation."""
        system, K = self.system, self._widths
        n, m, p = system.n_states, system.n_inputs, system.n_outputs
        dense = self._sizes_of_blocks
        sizes = np.ones(len(system.rates))
        sizes[: system.n_pairs] = 2
        lasts = system.rates.real * (self.step * K[:, None]) >= math.log(FADED)
        lasts[0] = True  # single steps keep all states
        n_kept = lasts @ sizes + dense.sum()
        blocks_of_inputs = np.where(n_kept < n, 2, 1)  # that outputs depend on directly
        steps = self.n_times / K
        flops = 2.0 * self.n_times * (K * m * p * blocks_of_inputs + n_kept * (m + p)) + 2.0 * steps * (dense @ dense)
        copies = self.n_times * m * blocks_of_inputs * 3e-9
        calls = np.minimum(steps, 3.0 * np.sqrt(steps) + 20.0) * 3e-6 * (n_kept > dense.sum())
        calls = calls + steps * 1.5e-6 * len(dense)  # dense blocks take one step after the other
        prepare = 2e-4 + K * n * (m + p) * 1.5e-8 + K**2 * m * p * 1e-8 + self._powers(K)
        return np.asarray(5e-5 + flops / 1.5e10 + copies + calls + steps * n_kept * 6e-9 + prepare / _RUNS)

    @cached_property
    def _sizes_of_blocks(self) -> Array:
        return np.array([len(block.F) for block in self.system.blocks], dtype=np.float64)

    def _powers(self, count: Any) -> Array:
        """Seconds for the powers of dense blocks up to some number by squaring, and for what they make of B and C."""
        sizes, channels = self._sizes_of_blocks, self.system.n_inputs + self.system.n_outputs
        return np.asarray(2.0 * (np.log2(count) * np.sum(sizes**3) + count * channels * (sizes @ sizes)) / 1.5e10)
