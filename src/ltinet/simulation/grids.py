"""Selection of the algorithm for evenly spaced samples, and a cache of the prepared grids.

Three algorithms share the step model: single steps for many inputs and outputs, blocks of time for any initial state,
and fast convolution for long runs from rest through many states. The fastest is chosen by a cost model whose
constants were measured on one core of a server processor; only the comparison of algorithms matters, not the seconds.
A network keeps its last few prepared grids by step length, hold and number of samples, so that later runs need no
preparation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.cache import LRUCache, cached_property
from ltinet._util.floating_point import Array
from ltinet.simulation.convolution import Convolution, convolution_width, prepare_convolution
from ltinet.simulation.modal import ModalSystem
from ltinet.simulation.nonuniform import NonuniformSteps
from ltinet.simulation.step_model import ExactStep, SingleSteps, prepare_single_steps, prepare_step_model
from ltinet.simulation.time_blocks import DECAYED, NestedBlocks, TimeBlocks, prepare_block_states, prepare_time_blocks

# MERGED ltinet.simulation.grids
# Memory for one run after the other: kept when it is freed, since fetching it anew costs as much as a run.

_MALLOC_BLOCK = 2**24  # bytes
_FACTOR = 64, 256  # rows and columns: as much as products of short blocks of time reach


def retain_freed_memory() -> None:
    """Let the C library keep freed memory for the next run, instead of returning it to the system.

    glibc learns from the largest block that it mapped and saw freed: smaller ones come from memory that it keeps, up to
    twice that size. Nothing is written to the block, so that it costs no memory. Other libraries take no notice.
    """
    np.empty(_MALLOC_BLOCK, dtype=np.uint8)


@cache
def touch_blas_buffers() -> None:
    """Let each BLAS write once to the memory into which it copies factors.

    Its kernels fetch ahead of what they work on, beyond the end of small factors. Where nothing was ever written there
    is no page to be found, and looking for it again and again makes such products up to three times slower.
    """
    factor = np.zeros(_FACTOR)
    with single_blas_thread():
        np.matmul(factor, factor.T)
        blas.dgemm(1.0, factor, factor, trans_b=True)


# MERGED ltinet.simulation.grids
# A model of the seconds that a run over evenly spaced samples takes, by which its way is chosen.
#
# The constants were measured on one core of a server processor. What matters is how the ways compare, not the seconds.

_MAX_WIDTH = 2**8  # steps in a block: beyond, products grow faster than the recurrence shrinks
_RUNS_PER_PREPARATION = 32  # that share a preparation: a network is made once and run often


@dataclass(frozen=True)
class CostModel:
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
        K = convolution_width(self.n_times)
        transforms = 4 * K * (m + p) * 0.6e-9 * math.log2(2 * K)
        products = 3 * K * m * p * 3e-9
        prepare = (
            3e-4
            + 4 * K * m * p * (n * 1.2e-10 + 2e-8)
            + math.sqrt(K) * n * 1.5e-7
            + float(self._powers(np.sqrt(8.0 * K)))
        )
        return 8e-5 + transforms + products + prepare / _RUNS_PER_PREPARATION

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        return 2 ** np.arange(min(_MAX_WIDTH, max(self.n_times, 1)).bit_length())

    @cached_property
    def _in_blocks(self) -> Array:
        """For every width: products, copies, recurrence by calls and by memory, and a share of the preparation."""
        system, K = self.system, self._widths
        n, m, p = system.n_states, system.n_inputs, system.n_outputs
        dense = self._sizes_of_blocks
        sizes = np.ones(len(system.rates))
        sizes[: system.n_pairs] = 2
        lasts = system.rates.real * (self.step * K[:, None]) >= math.log(DECAYED)
        lasts[0] = True  # single steps keep all states
        n_kept = lasts @ sizes + dense.sum()
        blocks_of_inputs = np.where(n_kept < n, 2, 1)  # that outputs depend on directly
        steps = self.n_times / K
        flops = 2.0 * self.n_times * (K * m * p * blocks_of_inputs + n_kept * (m + p)) + 2.0 * steps * (dense @ dense)
        copies = self.n_times * m * blocks_of_inputs * 3e-9
        calls = np.minimum(steps, 3.0 * np.sqrt(steps) + 20.0) * 3e-6 * (n_kept > dense.sum())
        calls = calls + steps * 1.5e-6 * len(dense)  # dense blocks take one step after the other
        prepare = 2e-4 + K * n * (m + p) * 1.5e-8 + K**2 * m * p * 1e-8 + self._powers(K)
        return np.asarray(
            5e-5 + flops / 1.5e10 + copies + calls + steps * n_kept * 6e-9 + prepare / _RUNS_PER_PREPARATION
        )

    @cached_property
    def _sizes_of_blocks(self) -> Array:
        return np.array([len(block.F) for block in self.system.blocks], dtype=np.float64)

    def _powers(self, count: Any) -> Array:
        """Seconds for the powers of dense blocks up to some number by squaring, and for what they make of B and C."""
        sizes, channels = self._sizes_of_blocks, self.system.n_inputs + self.system.n_outputs
        return np.asarray(2.0 * (np.log2(count) * np.sum(sizes**3) + count * channels * (sizes @ sizes)) / 1.5e10)


# MERGED ltinet.simulation.grids
# Evenly spaced samples: the fastest of the ways through them.
#
# Single steps (`prepare_single_steps`) suit many inputs and outputs, blocks of time (`prepare_time_blocks`) are for any state at the
# start, and fast convolution (`prepare_convolution`) is for long runs from rest through many states.

# Transforms round relative to the largest outputs: what they save must be worth that.
_MIN_SAVED_SECONDS, _MIN_SAVED_SHARE = 1e-4, 0.1
_FEW_FOR_CONVOLUTION = 32  # states up to which the predicted saving is smaller than the uncertainty of the prediction
_NARROW_WIDTH = 16  # steps in a block within which states are products: their weights grow with the square of it
_MAX_MARKOV_NUMBERS = 2**19  # numbers in the Markov parameters of half a run, for memory


def prepare_uniform_grid(step: ExactStep, n_times: int) -> SingleSteps | TimeBlocks:
    """Prepare a grid for about `n_times` samples, from any state; blocks as wide as is fastest and possible."""
    K = step.widest_block(CostModel(step.system, step.length, n_times).best_width)
    while K > 1:
        blocks = prepare_time_blocks(step, K)
        if blocks is not None:
            return blocks
        K //= 2
    return prepare_single_steps(step)


def prepare_nested_blocks(step: ExactStep, wide: TimeBlocks) -> NestedBlocks:
    """Prepare states within the blocks of outputs; where those are narrow they are their own narrower ones.

    What fades within a narrow block goes on to the next, as it does in outputs: bounds follow from these states.
    """
    width = min(wide.width, _NARROW_WIDTH)
    narrow = wide if width == wide.width else prepare_time_blocks(step, width, fades_below=0.0)
    return NestedBlocks(wide, narrow or wide, prepare_block_states(step, width if narrow else wide.width))


def select_convolution(step: ExactStep, n_times: int) -> Convolution | None:
    """Prepare a grid for up to `n_times` samples from rest; None where other ways are faster or more accurate."""
    system = step.system
    n_parameters = system.n_inputs * system.n_outputs * convolution_width(n_times)
    if n_times < 2 or not 0 < n_parameters <= _MAX_MARKOV_NUMBERS or system.n_states <= _FEW_FOR_CONVOLUTION:
        return None
    times = CostModel(system, step.length, n_times)
    saved = times.in_blocks - times.by_convolution
    if saved <= max(_MIN_SAVED_SECONDS, _MIN_SAVED_SHARE * times.in_blocks):
        return None
    found = prepare_convolution(step, n_times)
    return None if found.grows else found


# MERGED ltinet.simulation.grids
# Grids that were prepared for a network, kept for the next call: a second run costs no preparation.

_CACHE_SIZE = 8  # of each kind


class GridCache:
    """Prepared grids by step length, hold and number of samples; the last few of each kind are kept."""

    def __init__(self, system: ModalSystem) -> None:
        retain_freed_memory()
        touch_blas_buffers()
        self._system = system
        self._steps = LRUCache[ExactStep](_CACHE_SIZE)
        self._single = LRUCache[SingleSteps](_CACHE_SIZE)
        self._blocks = LRUCache[SingleSteps | TimeBlocks](_CACHE_SIZE)
        self._nested = LRUCache[NestedBlocks](_CACHE_SIZE)
        self._convolutions = LRUCache[Convolution | None](_CACHE_SIZE)
        self._any_length = LRUCache[NonuniformSteps](_CACHE_SIZE)

    def __reduce__(self) -> tuple[Callable[[ModalSystem], "GridCache"], tuple[ModalSystem]]:
        return GridCache, (self._system,)  # prepared anew where it arrives

    def step(self, length: float, *, linear: bool) -> ExactStep:
        """One step."""
        return self._steps.get((length, linear), lambda: prepare_step_model(self._system, length, linear=linear))

    def single(self, length: float, *, linear: bool) -> SingleSteps:
        """States at all samples."""
        return self._single.get((length, linear), lambda: prepare_single_steps(self.step(length, linear=linear)))

    def uniform(self, length: float, *, linear: bool, n_times: int) -> SingleSteps | TimeBlocks:
        """Outputs of about so many samples; one grid serves up to twice as many."""
        key = (length, linear, n_times.bit_length())
        return self._blocks.get(key, lambda: prepare_uniform_grid(self.step(length, linear=linear), n_times))

    def nested(self, length: float, *, linear: bool, n_times: int) -> NestedBlocks | None:
        """The blocks of such outputs with narrower ones within them, for states at all samples."""
        wide = self.uniform(length, linear=linear, n_times=n_times)
        if not isinstance(wide, TimeBlocks):
            return None
        key = (length, linear, wide.width)
        return self._nested.get(key, lambda: prepare_nested_blocks(self.step(length, linear=linear), wide))

    def convolution(self, length: float, *, linear: bool, n_times: int) -> Convolution | None:
        """Outputs of so many samples from rest by convolution, where that is the fastest way."""
        key = (length, linear, n_times)
        return self._convolutions.get(key, lambda: select_convolution(self.step(length, linear=linear), n_times))

    def nonuniform(self, longest: float, *, linear: bool) -> NonuniformSteps:
        """Steps of all lengths up to the next power of two."""
        octave = math.frexp(longest)[1]
        return self._any_length.get(
            (octave, linear), lambda: NonuniformSteps(self._system, octave=octave, linear=linear)
        )
