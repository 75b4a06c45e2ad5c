"""Exact solution for sampled inputs: outputs at the samples by the fastest algorithm, other times and states on demand.

Between samples the solution has a closed form: a state at time t is one exact step of a fraction of an interval from
the sample before. States at samples are computed in pieces of time, and only the state at the beginning of each piece
is kept, so that memory is that of one piece; short runs are kept whole. Requested times are sorted by the piece in
which they lie, and each piece is computed once.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet.errors import SimulationError
from ltinet.signals.arrays import all_finite
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import polyline_points
from ltinet.simulation.context import Realization
from ltinet.simulation.convolution import Convolution
from ltinet.simulation.nonuniform import NonuniformStepper, NonuniformSteps
from ltinet.simulation.step_model import SingleSteps
from ltinet.simulation.time_blocks import TimeBlocks, UniformStepper

# MERGED ltinet.simulation.exact_run
# Times at which a run is asked for, in the order in which it passes them, some at a time.
#
# Pieces of a run are walked once, and what is looked up for the times of a piece is gone before the next: for millions of
# times their order is all that is kept, and where they ascend not even that.


class QueryGroup(NamedTuple):
    """Some times between the samples of one piece."""

    piece: int
    at: slice | NDArray[np.intp]
    """Which of the times they are."""
    before: NDArray[np.intp]
    """The last sample up to each."""


def group_queries(t: Array, samples: Array, *, length: int, at_once: int) -> Iterator[QueryGroup]:
    """Times t among samples that come in pieces of one length, up to `at_once` of them together."""
    order = None if np.all(t[1:] >= t[:-1]) else np.argsort(t)
    for begin in range(0, len(t), at_once):
        own = slice(begin, min(begin + at_once, len(t)))
        times = t[own] if order is None else t[order[own]]
        before = np.clip(np.searchsorted(samples, times, side="right") - 1, 0, len(samples) - 1)
        pieces = before // length
        edges = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(times)]
        for first, stop in pairwise(edges):
            part = slice(begin + first, begin + stop)
            yield QueryGroup(int(pieces[first]), part if order is None else order[part], before[first:stop])


# MERGED ltinet.simulation.exact_run
# States at the samples of a run, a piece of time after the other: memory is that of a piece, whatever is asked for.
#
# What a later question needs of an earlier walk is the state at the beginning of every piece; short runs are kept whole.

_PIECE_NUMBERS, _MIN_PIECE_SAMPLES = 2**18, 64  # numbers in a piece, and samples at least: calls cost time as well
_MAX_STORED_NUMBERS = 2**20  # numbers of a run that is kept whole


class SampleStepper(Protocol):
    """How states follow each other along the samples of a run."""

    def begin(self) -> Array:
        """What is needed to go on from the first sample, `(batch, n)`."""
        ...

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states `(batch, stop − first, n)` at samples before `stop`, and what is needed to go on from there."""
        ...


class SampledStates:
    """The states of a run at its samples."""

    def __init__(self, walk: SampleStepper, *, n_samples: int, numbers_per_sample: int, width: int = 1) -> None:
        self._walk, self.n_samples = walk, n_samples
        length = max(_MIN_PIECE_SAMPLES, _PIECE_NUMBERS // max(1, numbers_per_sample))
        self.length = -(-length // width) * width  # pieces begin where blocks of so many samples do
        self._begins = [walk.begin()]
        self._keeps = n_samples * numbers_per_sample <= _MAX_STORED_NUMBERS
        self._pieces: dict[int, Array] = {}
        self._last: tuple[int, Array] | None = None

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """All pieces in turn, and which samples they hold."""
        for number in range(-(-self.n_samples // self.length)):
            yield self._samples(number), self._piece(number)

    def piece(self, number: int) -> tuple[slice, Array]:
        """One of them, which may be asked for again."""
        while len(self._begins) <= number:
            self._piece(len(self._begins) - 1, keeps=self._keeps)
        last = self._last
        if last is None or last[0] != number:  # questions come in the order of time
            last = self._last = number, self._piece(number, keeps=self._keeps)
        return self._samples(number), last[1]

    def _samples(self, number: int) -> slice:
        return slice(number * self.length, min((number + 1) * self.length, self.n_samples))

    def _piece(self, number: int, *, keeps: bool = False) -> Array:
        if number in self._pieces:
            return self._pieces[number]
        own = self._samples(number)
        states, after = self._walk.advance(own.start, own.stop, self._begins[number])
        if len(self._begins) == number + 1:
            self._begins.append(after.copy())  # a view would keep the whole piece alive
        if keeps:
            self._pieces[number] = states
        return states


# MERGED ltinet.simulation.exact_run
# The exact solution for sampled inputs: outputs at samples by the fastest way, the rest on request.

_NUMBERS_PER_CALL = 2**18  # numbers: times between samples that are worked on together
_MIN_NUMBERS_PER_TIME = 32  # numbers at least, however few states there are: the terms of the series for its length


class ExactRun:
    """The exact solution for sampled inputs: states at samples on request, closed form between them."""

    def __init__(
        self,
        realization: Realization,
        samples: SampledSignal,
        x0: ArrayLike | None,
        *,
        network: Realization | None = None,
        input_error: float = 0.0,
    ) -> None:
        self.realization, self.samples, self.input_error = realization, samples, input_error
        self.network = realization if network is None else network  # in its block coordinates, which knows neurons
        self.x0 = None if x0 is None else realization.broadcast_initial_state(x0, samples.batch_shape)
        self.u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self.linear = samples.hold == "linear"

    @cached_property
    def z0(self) -> Array:
        """Packed states at the first sample, `(batch, n)`."""
        system, batch = self.realization.system, len(self.u)
        if self.x0 is None:
            return np.zeros((batch, system.n_states))
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is told by the time where it shows
            return system.packed_from_blocks(self.realization.initial_state(self.x0, (batch,)))

    @property
    def algorithm(self) -> str:
        """How outputs at samples are computed: "steps of any length", "convolution", "blocks" or "single steps"."""
        if self.samples.step is None:
            return "steps of any length"
        if self.convolution is not None:
            return "convolution"
        return "blocks" if self.grid_width > 1 else "single steps"

    @property
    def grid_width(self) -> int:
        """How many samples are worked on between two states that follow each other."""
        return 1 if self._grid is None else self._grid.width

    @cached_property
    def _grid(self) -> SingleSteps | TimeBlocks | None:
        """The grid of a run over even times from any state."""
        step = self.samples.step
        if step is None:
            return None
        return self.realization.grids.uniform(step, linear=self.linear, n_times=len(self.samples.t))

    @cached_property
    def convolution(self) -> Convolution | None:
        """The grid of a run by fast convolution, None for one that takes another way."""
        step = self.samples.step
        if step is None or (self.x0 is not None and self.z0.any()):
            return None
        return self.realization.grids.convolution(step, linear=self.linear, n_times=len(self.samples.t))

    @property
    def n_multiplications(self) -> int:
        """About how many a run takes."""
        system, (batch, n_times, n_inputs) = self.realization.system, self.u.shape
        return int(batch * n_times * system.n_states * (n_inputs + system.n_outputs))

    @property
    def _longest_product(self) -> float:
        """How many of them in one product, at most; infinite where that is not known."""
        grid, (batch, n_times, _) = self._grid, self.u.shape
        return grid.longest_product(batch, n_times) if isinstance(grid, TimeBlocks) else math.inf

    def sampled_outputs(self, *, threads: int) -> Array:
        """Outputs y at all samples, without the states there: memory is a few times that of inputs and outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            convolution = self.convolution
            if convolution is not None:  # which does not ask BLAS
                y = convolution.outputs(self.u, threads=threads)
            else:
                with limit_blas_threads_for_work(self.n_multiplications, in_one_product=self._longest_product):
                    y = self._outputs_of_steps(threads=threads)
        # Products of blocks and transforms may overflow a little before the outputs do: single steps tell.
        return self._unflatten(y) if all_finite(y) else self.outputs(self.samples.t)

    def _outputs_of_steps(self, *, threads: int) -> Array:
        """Outputs y `(batch, T, p)` at all samples, one block of steps after the other."""
        if self._grid is not None:
            return self._grid.outputs_from(self.z0, self.u, threads=threads)
        y = self._irregular_walk.outputs(self.realization.output_weights.T)
        y += self.u @ self.realization.system.D.T
        return y

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        weights, D = self.realization.output_weights, self.realization.system.D
        return self._gathered(t, lambda z, u: z @ weights.T + u @ D.T, width=len(D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        return polyline_points(self.samples, t)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        if self.network is not self.realization:
            return self.through(self.network).neuron_states(t)
        system, coordinates = self.realization.system, self.realization.coordinates
        return self._gathered(
            t,
            lambda z, u: coordinates.neurons_from_blocks(system.blocks_from_packed(z)) + u @ coordinates.J.T,
            width=system.n_states,
        )

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        system, coordinates = self.realization.system, self.realization.coordinates
        x = self._gathered(
            t, lambda z, _: coordinates.user_from_blocks(system.blocks_from_packed(z)), width=system.n_states
        )
        if self.x0 is not None:  # which T and its inverse would give back but for rounding
            first = np.flatnonzero(t == self.samples.t[0])
            x[..., first, :] = self.x0.reshape(*self.samples.batch_shape, 1, self.x0.shape[-1])
        return x

    def through(self, realization: Realization) -> "ExactRun":
        """The same run in other coordinates."""
        x0 = None if self.x0 is None else self.x0.reshape(*self.samples.batch_shape, self.x0.shape[-1])
        return ExactRun(realization, self.samples, x0)

    def _gathered(self, t: Array, read: Any, *, width: int) -> Array:
        """What is read off packed states and inputs at any times, `(..., len(t), width)`, a piece after the other."""
        values = np.empty((len(self.u), len(t), width))
        with limit_blas_threads_for_work(self.n_multiplications), np.errstate(over="ignore", invalid="ignore"):
            for at, z, u in self.states_at(t):
                values[:, at] = read(z, u)
        if not all_finite(values):
            place = int(np.argmin(np.isfinite(values).all(axis=(0, 2))))
            raise SimulationError(
                f"the solution exceeds the largest floating-point number at t = {t[place]:.6g}; simulate a shorter "
                "time, or choose other units for inputs and states"
            )
        return self._unflatten(values)

    @cached_property
    def sampled_states(self) -> SampledStates:
        """States at the samples."""
        system, samples = self.realization.system, self.samples
        walk: UniformStepper | NonuniformStepper = self._irregular_walk
        if samples.step is not None:
            grid = self.realization.grids.single(samples.step, linear=self.linear)
            blocks = self.realization.grids.nested(samples.step, linear=self.linear, n_times=len(samples.t))
            walk = UniformStepper(grid, blocks, self.u, self.z0)
        per_sample, width = system.n_states * len(self.u), self.grid_width
        return SampledStates(walk, n_samples=len(samples.t), numbers_per_sample=per_sample, width=width)

    @property
    def _irregular_walk(self) -> NonuniformStepper:
        return NonuniformStepper(self.nonuniform_steps, self.samples.t, self.u, self.z0)

    @cached_property
    def nonuniform_steps(self) -> NonuniformSteps:
        """The steps between uneven samples."""
        return self._up_to_longest.for_run(np.diff(self.samples.t))

    @property
    def _up_to_longest(self) -> NonuniformSteps:
        """Steps as long as those between samples, and shorter."""
        return self.realization.grids.nonuniform(self.samples.longest_step, linear=self.linear)

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Which of the times, packed states `(batch, k, n)` and inputs there, some times after the other.

        Between samples by one exact step of a fraction of an interval from the sample before.
        """
        samples, states = self.samples, self.sampled_states
        if t is samples.t or np.array_equal(t, samples.t):
            for own, z in states.pieces():
                yield own, z, self.u[:, own]
            return
        at_once = max(
            1, _NUMBERS_PER_CALL // max(_MIN_NUMBERS_PER_TIME, self.realization.system.n_states * len(self.u))
        )
        for piece, at, before in group_queries(t, samples.t, length=states.length, at_once=at_once):
            own, z = states.piece(piece)
            yield at, *self._between(t[at], before, z[:, before - own.start])

    def _between(self, t: Array, before: NDArray[np.intp], z: Array) -> tuple[Array, Array]:
        """States and inputs at times between samples, from the states at the samples before them."""
        h, now = t - self.samples.t[before], self.u[:, before]
        then = self.samples.value(t).reshape(len(self.u), len(t), self.samples.n_inputs)
        return (self._up_to_longest.step(h, z, now, then) if h.any() else z), then

    def _unflatten(self, values: Array) -> Array:
        return values.reshape(*self.samples.batch_shape, *values.shape[1:])
