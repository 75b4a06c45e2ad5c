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
from ltinet.simulation.convolution import Convolution, prepare_convolution
from ltinet.simulation.discrete_step import DiscreteStep, prepare_discrete_step
from ltinet.simulation.modal import ModalSystem
from ltinet.simulation.nonuniform import NonuniformSteps
from ltinet.simulation.step_model import ExactStep, SingleSteps, prepare_single_steps, prepare_step_model
from ltinet.simulation.time_blocks import DECAYED, NestedBlocks, TimeBlocks, prepare_block_states, prepare_time_blocks

# Memory.

_MALLOC_BYTES = 2**24  # glibc keeps freed blocks of up to twice this size
_BLAS_BUFFER_SHAPE = 64, 256  # rows and columns: as large as factors of products of short blocks of time


def retain_freed_memory() -> None:
    """Let the C library keep freed memory for the next run: fetching it anew would cost as much as a run.

    glibc adapts its limit to the largest block that it mapped and saw freed: smaller blocks are then taken from memory
    that it keeps, up to twice that size. Nothing is written to the block, so that it costs no memory. The call has no
    effect with other C libraries.
    """
    np.empty(_MALLOC_BYTES, dtype=np.uint8)


@cache
def touch_blas_buffers() -> None:
    """Let each BLAS write once to the memory into which it copies factors.

    Its kernels prefetch beyond the end of small factors. Where nothing was ever written no page is mapped, and the
    repeated page-table lookups make such products up to three times slower.
    """
    factor = np.zeros(_BLAS_BUFFER_SHAPE)
    with single_blas_thread():
        np.matmul(factor, factor.T)
        blas.dgemm(1.0, factor, factor, trans_b=True)


# Cost model.

_MAX_WIDTH = 2**8  # steps in a block: beyond, products grow faster than the recurrence shrinks
_RUNS_PER_PREPARATION = 32  # assumed number of runs that share a preparation: a network is made once and run often


@dataclass(frozen=True)
class CostModel:
    """Empirical model of the seconds that a run takes, for one system, step and number of samples."""

    system: ModalSystem
    step: float
    n_times: int
    is_discrete: bool = False
    """True if the rates of the system are eigenvalues z of a difference equation."""

    @property
    def best_width(self) -> int:
        """K of the fastest blocks of time, 1 for single steps."""
        return int(self._widths[np.argmin(self._block_seconds)])

    @property
    def block_seconds(self) -> float:
        """Seconds of a run in the fastest blocks of time."""
        return float(np.min(self._block_seconds))

    def seconds_of_width(self, width: int) -> float:
        """Return the seconds of a run in blocks of some width up to the fastest."""
        return float(self._block_seconds[np.flatnonzero(self._widths == width)[0]])

    @property
    def convolution_seconds(self) -> float:
        """Seconds of a run by fast convolution: transforms, products, and a share of the preparation."""
        n, m, p = self.system.n_states, self.system.n_inputs, self.system.n_outputs
        K = max(1, self.n_times // 2)
        transforms = 4 * K * (m + p) * 0.6e-9 * math.log2(2 * K)
        products = 3 * K * m * p * 3e-9
        prepare = (
            3e-4
            + 4 * K * m * p * (n * 1.2e-10 + 2e-8)
            + math.sqrt(K) * n * 1.5e-7
            + float(self._power_seconds(np.sqrt(8.0 * K)))
        )
        return 8e-5 + transforms + products + prepare / _RUNS_PER_PREPARATION

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        return 2 ** np.arange(min(_MAX_WIDTH, max(self.n_times, 1)).bit_length())

    @cached_property
    def _block_seconds(self) -> Array:
        """For every width: products, copies, recurrence by calls and by memory, and a share of the preparation."""
        system, K = self.system, self._widths
        n, m, p = system.n_states, system.n_inputs, system.n_outputs
        dense = self._block_sizes
        sizes = np.ones(len(system.rates))
        sizes[: system.n_pairs] = 2
        is_lasting = self._log_decay * K[:, None] >= math.log(DECAYED)
        is_lasting[0] = True  # single steps keep all states
        n_lasting = is_lasting @ sizes + dense.sum()
        blocks_of_inputs = np.where(n_lasting < n, 2, 1)  # that outputs depend on directly
        steps = self.n_times / K
        flops = 2.0 * self.n_times * (K * m * p * blocks_of_inputs + n_lasting * (m + p))
        flops = flops + 2.0 * steps * (dense @ dense)
        copies = self.n_times * m * blocks_of_inputs * 3e-9
        calls = np.minimum(steps, 3.0 * np.sqrt(steps) + 20.0) * 3e-6 * (n_lasting > dense.sum())
        calls = calls + steps * 1.5e-6 * len(dense)  # dense blocks are stepped one by one
        prepare = 2e-4 + K * n * (m + p) * 1.5e-8 + K**2 * m * p * 1e-8 + self._power_seconds(K)
        return np.asarray(
            5e-5 + flops / 1.5e10 + copies + calls + steps * n_lasting * 6e-9 + prepare / _RUNS_PER_PREPARATION
        )

    @property
    def _log_decay(self) -> Array:
        """Logarithm of the decay of scalars in one step."""
        if not self.is_discrete:
            return np.asarray(self.system.rates.real * self.step)
        with np.errstate(divide="ignore"):  # an eigenvalue zero decays at once
            return np.asarray(np.log(np.abs(self.system.rates)))

    @cached_property
    def _block_sizes(self) -> Array:
        return np.array([len(block.F) for block in self.system.blocks], dtype=np.float64)

    def _power_seconds(self, count: Any) -> Array:
        """Seconds for the powers of dense blocks up to some number by squaring, and for their products with B and C."""
        sizes, channels = self._block_sizes, self.system.n_inputs + self.system.n_outputs
        return np.asarray(2.0 * (np.log2(count) * np.sum(sizes**3) + count * channels * (sizes @ sizes)) / 1.5e10)


# Selection.

# Transforms round relative to the largest output: convolution is taken only if it saves that much.
_MIN_SAVED_SECONDS, _MIN_SAVED_FRACTION = 1e-4, 0.1
_MAX_STATES_WITHOUT_CONVOLUTION = 32  # the predicted saving is smaller than the uncertainty of the prediction
_MAX_MARKOV_NUMBERS = 2**19  # numbers in the Markov parameters of half a run, for memory
_NARROW_WIDTH = 16  # steps in a narrow block: the weights of states at all samples grow with its square


def prepare_uniform_grid(step: ExactStep, costs: CostModel) -> SingleSteps | TimeBlocks:
    """Prepare a grid from any state, with blocks as wide as is fastest and numerically possible."""
    K = step.widest_block(costs.best_width)
    while K > 1:
        blocks = prepare_time_blocks(step, K)
        if blocks is not None:
            return blocks
        K //= 2
    return prepare_single_steps(step)


def prepare_nested_blocks(step: ExactStep, wide: TimeBlocks) -> NestedBlocks:
    """Prepare states at all samples within the blocks of the outputs, by narrower blocks if these are wide.

    Narrow blocks keep all states, decayed ones as well, as outputs do: bounds follow from these states.
    """
    width = min(wide.width, _NARROW_WIDTH)
    narrow = wide if width == wide.width else prepare_time_blocks(step, width, decayed_below=0.0)
    return NestedBlocks(wide, narrow or wide, prepare_block_states(step, width if narrow else wide.width))


def select_convolution(step: ExactStep, costs: CostModel) -> Convolution | None:
    """Prepare a convolution for a run from rest; None if other algorithms are faster or more accurate."""
    system, n_times = step.system, costs.n_times
    n_markov_numbers = system.n_inputs * system.n_outputs * (n_times // 2)
    if (
        n_times < 2
        or not 0 < n_markov_numbers <= _MAX_MARKOV_NUMBERS
        or system.n_states <= _MAX_STATES_WITHOUT_CONVOLUTION
    ):
        return None
    block_seconds = costs.block_seconds
    if isinstance(step, DiscreteStep):  # blocks may be narrower; Markov parameters keep their digits even then
        block_seconds = costs.seconds_of_width(step.widest_block(costs.best_width))
    saved = block_seconds - costs.convolution_seconds
    if saved <= max(_MIN_SAVED_SECONDS, _MIN_SAVED_FRACTION * block_seconds):
        return None
    convolution = prepare_convolution(step, n_times)
    return None if convolution.grows else convolution


# Cache.

_CACHE_SIZE = 8  # grids of each kind


class GridCache:
    """Prepared grids of a system by step length, hold and number of samples; the last few of each kind are kept.

    With a time step dt the system is a difference equation, whose steps have that length.
    """

    def __init__(self, system: ModalSystem, dt: float | None = None) -> None:
        retain_freed_memory()
        touch_blas_buffers()
        self._system, self._dt = system, dt
        self._steps = LRUCache[ExactStep](_CACHE_SIZE)
        self._costs = LRUCache[CostModel](_CACHE_SIZE)
        self._single = LRUCache[SingleSteps](_CACHE_SIZE)
        self._uniform = LRUCache[SingleSteps | TimeBlocks](_CACHE_SIZE)
        self._nested = LRUCache[NestedBlocks](_CACHE_SIZE)
        self._convolutions = LRUCache[Convolution | None](_CACHE_SIZE)
        self._nonuniform = LRUCache[NonuniformSteps](_CACHE_SIZE)

    def __reduce__(self) -> tuple[Callable[..., "GridCache"], tuple[ModalSystem, float | None]]:
        return GridCache, (self._system, self._dt)  # grids are not pickled

    def step(self, length: float, *, linear: bool) -> ExactStep:
        """Return the step model."""
        if self._dt is not None:
            return self._steps.get((length, linear), lambda: prepare_discrete_step(self._system, length))
        return self._steps.get((length, linear), lambda: prepare_step_model(self._system, length, linear=linear))

    def costs(self, length: float, *, n_times: int) -> CostModel:
        """Return the cost model."""
        return self._costs.get(
            (length, n_times), lambda: CostModel(self._system, length, n_times, self._dt is not None)
        )

    def single(self, length: float, *, linear: bool) -> SingleSteps:
        """Return single steps, for states at all samples."""
        return self._single.get((length, linear), lambda: prepare_single_steps(self.step(length, linear=linear)))

    def uniform(self, length: float, *, linear: bool, n_times: int) -> SingleSteps | TimeBlocks:
        """Return the fastest grid from any state for about `n_times` samples; it serves up to twice as many."""
        return self._uniform.get(
            (length, linear, n_times.bit_length()),
            lambda: prepare_uniform_grid(self.step(length, linear=linear), self.costs(length, n_times=n_times)),
        )

    def nested(self, length: float, *, linear: bool, n_times: int) -> NestedBlocks | None:
        """Return blocks for states at all samples within those of `uniform`; None if that takes single steps."""
        wide = self.uniform(length, linear=linear, n_times=n_times)
        if not isinstance(wide, TimeBlocks):
            return None
        key = (length, linear, wide.width)
        return self._nested.get(key, lambda: prepare_nested_blocks(self.step(length, linear=linear), wide))

    def convolution(self, length: float, *, linear: bool, n_times: int) -> Convolution | None:
        """Return the convolution for `n_times` samples from rest, or None if it is not the best algorithm."""
        return self._convolutions.get(
            (length, linear, n_times),
            lambda: select_convolution(self.step(length, linear=linear), self.costs(length, n_times=n_times)),
        )

    def nonuniform(self, longest: float, *, linear: bool) -> NonuniformSteps:
        """Return steps of all lengths up to the power of two above the longest."""
        octave = math.frexp(longest)[1]
        return self._nonuniform.get(
            (octave, linear), lambda: NonuniformSteps(self._system, octave=octave, linear=linear)
        )
