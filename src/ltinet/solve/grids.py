"""Grids that were prepared for a network, kept for the next call: a second run costs no preparation."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ltinet.recent import Recent
from ltinet.solve.modal import ModalSystem
from ltinet.solve.steps.allocation import keep_freed_memory, write_where_blas_packs
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.even_walk import NestedBlocks
from ltinet.solve.steps.fastest_way import fast_convolution, nested_blocks, uniform_grid
from ltinet.solve.steps.hump import rises
from ltinet.solve.steps.one_step import OneStep, one_step
from ltinet.solve.steps.propagators import MatrixSteps, matrix_steps
from ltinet.solve.steps.single_steps import SingleSteps, single_steps
from ltinet.solve.steps.time_blocks import TimeBlocks
from ltinet.solve.uneven.any_length import AnyLength

_KEPT = 8  # of each kind
_MANY = 64  # steps that are worked on together, about


class Grids:
    """Prepared grids by step length, hold and number of samples; the last few of each kind are kept.

    `careful` is for coordinates in which blocks were not made to keep digits: the user's own. `of_blocks` says how
    exponentials of coupled blocks are taken.
    """

    def __init__(self, system: ModalSystem, *, careful: bool = False, of_blocks: MatrixSteps = matrix_steps) -> None:
        keep_freed_memory()
        write_where_blas_packs()
        self._system, self._careful, self._of_blocks = system, careful, of_blocks
        self._steps = Recent[OneStep](_KEPT)
        self._single = Recent[SingleSteps](_KEPT)
        self._blocks = Recent[SingleSteps | TimeBlocks](_KEPT)
        self._nested = Recent[NestedBlocks](_KEPT)
        self._convolutions = Recent[Convolution | None](_KEPT)
        self._any_length = Recent[AnyLength](_KEPT)

    def __reduce__(self) -> tuple[Callable[[ModalSystem], "Grids"], tuple[ModalSystem]]:
        made = partial(Grids, careful=self._careful, of_blocks=self._of_blocks)
        return made, (self._system,)  # prepared anew where it arrives

    def step(self, length: float, *, linear: bool) -> OneStep:
        """One step."""
        return self._steps.get((length, linear), lambda: self._one_step(length, linear=linear))

    def _one_step(self, length: float, *, linear: bool) -> OneStep:
        careful = self._careful and any(rises(block.F, _MANY * length) for block in self._system.blocks)
        return replace(one_step(self._system, length, linear=linear, of_blocks=self._of_blocks), careful=careful)

    def single(self, length: float, *, linear: bool) -> SingleSteps:
        """States at all samples."""
        return self._single.get((length, linear), lambda: single_steps(self.step(length, linear=linear)))

    def from_any_state(self, length: float, *, linear: bool, n_times: int) -> SingleSteps | TimeBlocks:
        """Outputs of about so many samples; one grid serves up to twice as many."""
        key = (length, linear, n_times.bit_length())
        return self._blocks.get(key, lambda: self._fastest(self.step(length, linear=linear), n_times))

    def _fastest(self, step: OneStep, n_times: int) -> SingleSteps | TimeBlocks:
        """The fastest grid; where one is careful, of those whose powers of a step keep their digits."""
        return single_steps(step) if step.careful else uniform_grid(step, n_times)

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
