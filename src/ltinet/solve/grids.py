"""Grids that were prepared for a network, kept for the next call: a second run costs no preparation."""

import math
from collections.abc import Callable

from ltinet.recent import Recent
from ltinet.solve.modal import ModalSystem
from ltinet.solve.steps.allocation import keep_freed_memory, write_where_blas_packs
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.even_walk import NestedBlocks
from ltinet.solve.steps.fastest_way import fast_convolution, nested_blocks, uniform_grid
from ltinet.solve.steps.one_step import OneStep, one_step
from ltinet.solve.steps.single_steps import SingleSteps, single_steps
from ltinet.solve.steps.time_blocks import TimeBlocks
from ltinet.solve.uneven.any_length import AnyLength

_KEPT = 8  # of each kind


class Grids:
    """Prepared grids by step length, hold and number of samples; the last few of each kind are kept."""

    def __init__(self, system: ModalSystem) -> None:
        keep_freed_memory()
        write_where_blas_packs()
        self._system = system
        self._steps = Recent[OneStep](_KEPT)
        self._single = Recent[SingleSteps](_KEPT)
        self._blocks = Recent[SingleSteps | TimeBlocks](_KEPT)
        self._nested = Recent[NestedBlocks](_KEPT)
        self._convolutions = Recent[Convolution | None](_KEPT)
        self._any_length = Recent[AnyLength](_KEPT)

    def __reduce__(self) -> tuple[Callable[[ModalSystem], "Grids"], tuple[ModalSystem]]:
        return Grids, (self._system,)  # prepared anew where it arrives

    def step(self, length: float, *, linear: bool) -> OneStep:
        """One step."""
        return self._steps.get((length, linear), lambda: one_step(self._system, length, linear=linear))

    def single(self, length: float, *, linear: bool) -> SingleSteps:
        """States at all samples."""
        return self._single.get((length, linear), lambda: single_steps(self.step(length, linear=linear)))

    def from_any_state(self, length: float, *, linear: bool, n_times: int) -> SingleSteps | TimeBlocks:
        """Outputs of about so many samples; one grid serves up to twice as many."""
        key = (length, linear, n_times.bit_length())
        return self._blocks.get(key, lambda: uniform_grid(self.step(length, linear=linear), n_times))

    def nested(self, length: float, *, linear: bool, n_times: int) -> NestedBlocks | None:
        """The blocks of such outputs with narrower ones within them, for states at all samples."""
        wide = self.from_any_state(length, linear=linear, n_times=n_times)
        if not isinstance(wide, TimeBlocks):
            return None
        key = (length, linear, wide.width)
        return self._nested.get(key, lambda: nested_blocks(self.step(length, linear=linear), wide))

    def from_rest(self, length: float, *, linear: bool, n_times: int) -> Convolution | None:
        """Outputs of so many samples from rest by convolution, where that is the fastest way."""
        key = (length, linear, n_times)
        return self._convolutions.get(key, lambda: fast_convolution(self.step(length, linear=linear), n_times))

    def any_length(self, longest: float, *, linear: bool) -> AnyLength:
        """Steps of all lengths up to the next power of two."""
        octave = math.frexp(longest)[1]
        return self._any_length.get((octave, linear), lambda: AnyLength(self._system, octave=octave, linear=linear))
