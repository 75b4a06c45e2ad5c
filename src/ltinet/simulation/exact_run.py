"""Exact solution for sampled inputs: outputs at the samples by the fastest algorithm, other times and states on demand.

Between samples the solution has a closed form: a state at time t is one exact step of a fraction of an interval from
the sample before. States at samples are computed in pieces of time, and only the state at the beginning of each piece
is kept, so that memory is that of one piece; short runs are kept whole. Requested times are sorted by the piece in
which they lie, and each piece is computed once.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

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
from ltinet.simulation.time_blocks import TimeBlocks, UniformStepper, outputs_from_states

_MAX_PIECE_NUMBERS = 2**18  # numbers in the states of a piece of time (2 MiB)
_MIN_PIECE_SAMPLES = 64  # samples of a piece, however many states there are: calls cost time as well
_MAX_STORED_NUMBERS = 2**20  # numbers in the states of a run that is stored (8 MiB)
_MAX_QUERY_NUMBERS = 2**18  # numbers in the states at times between samples that are processed together (2 MiB)
_MIN_NUMBERS_PER_TIME = 32  # numbers per time, however few states there are: the terms of the series for its length


class ExactRun:
    """Exact solution for sampled inputs: states at samples on request, closed form between them."""

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
        self.network = realization if network is None else network  # in block coordinates, with the maps to neurons
        self.x0 = None if x0 is None else realization.broadcast_initial_state(x0, samples.batch_shape)
        self.u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self.linear = samples.hold == "linear"

    @cached_property
    def z0(self) -> Array:
        """Packed states at the first sample, `(batch, n)`."""
        system, batch = self.realization.system, len(self.u)
        if self.x0 is None:
            return np.zeros((batch, system.n_states))
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported with its time
            return system.packed_from_blocks(self.realization.initial_state(self.x0, (batch,)))

    @property
    def algorithm(self) -> str:
        """Algorithm of outputs at samples: "steps of any length", "convolution", "blocks" or "single steps"."""
        if self.samples.step is None:
            return "steps of any length"
        if self.convolution is not None:
            return "convolution"
        return "blocks" if self.grid_width > 1 else "single steps"

    @property
    def grid_width(self) -> int:
        """Number of samples between two states of the recurrence."""
        return 1 if self._grid is None else self._grid.width

    @cached_property
    def _grid(self) -> SingleSteps | TimeBlocks | None:
        """Grid from any state; None at uneven samples."""
        step = self.samples.step
        if step is None:
            return None
        return self.realization.grids.uniform(step, linear=self.linear, n_times=len(self.samples.t))

    @cached_property
    def convolution(self) -> Convolution | None:
        """Grid of a run by fast convolution; None if another algorithm is used."""
        step = self.samples.step
        if step is None or (self.x0 is not None and self.z0.any()):
            return None
        return self.realization.grids.convolution(step, linear=self.linear, n_times=len(self.samples.t))

    @property
    def n_multiplications(self) -> int:
        """Approximate number of multiplications of a run."""
        system, (batch, n_times, n_inputs) = self.realization.system, self.u.shape
        return int(batch * n_times * system.n_states * (n_inputs + system.n_outputs))

    def sampled_outputs(self, *, threads: int) -> Array:
        """Return y at all samples without storing states: memory is a few times that of inputs and outputs."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            convolution = self.convolution
            if convolution is not None:  # without BLAS
                y = convolution.outputs(self.u, threads=threads)
            else:
                grid, (batch, n_times, _) = self._grid, self.u.shape
                longest = grid.longest_product(batch, n_times) if isinstance(grid, TimeBlocks) else math.inf
                with limit_blas_threads_for_work(self.n_multiplications, in_one_product=longest):
                    if grid is not None:
                        y = outputs_from_states(grid, self.z0, self.u, threads=threads)
                    else:
                        y = self._nonuniform_stepper.outputs(self.realization.output_weights.T)
                        y += self.u @ self.realization.system.D.T
        # Products of blocks and transforms may overflow a little before the outputs do: then single steps decide.
        return self._unflatten(y) if all_finite(y) else self.outputs(self.samples.t)

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times."""
        weights, D = self.realization.output_weights, self.realization.system.D
        return self._evaluate(t, lambda z, u: z @ weights.T + u @ D.T, width=len(D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return times and values of the input for a plot, at the times t and at knots between them."""
        return polyline_points(self.samples, t)

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) at any times."""
        if self.network is not self.realization:
            x0 = None if self.x0 is None else self._unflatten(self.x0)
            return ExactRun(self.network, self.samples, x0).neuron_states(t)
        system, coordinates = self.realization.system, self.realization.coordinates
        return self._evaluate(
            t,
            lambda z, u: coordinates.neurons_from_blocks(system.blocks_from_packed(z)) + u @ coordinates.J.T,
            width=system.n_states,
        )

    def user_states(self, t: Array) -> Array:
        """Return states x at any times."""
        system, coordinates = self.realization.system, self.realization.coordinates
        x = self._evaluate(
            t, lambda z, _: coordinates.user_from_blocks(system.blocks_from_packed(z)), width=system.n_states
        )
        if self.x0 is not None:  # exactly, which T T⁻¹ x0 would round
            first = np.flatnonzero(t == self.samples.t[0])
            x[..., first, :] = self._unflatten(self.x0[:, None])
        return x

    def _evaluate(self, t: Array, function: Callable[[Array, Array], Array], *, width: int) -> Array:
        """Return a function of packed states and inputs at any times, `(..., len(t), width)`, piece by piece."""
        values = np.empty((len(self.u), len(t), width))
        with limit_blas_threads_for_work(self.n_multiplications), np.errstate(over="ignore", invalid="ignore"):
            for index, z, u in self.states_at(t):
                values[:, index] = function(z, u)
        if not all_finite(values):
            first = int(np.argmin(np.isfinite(values).all(axis=(0, 2))))
            raise SimulationError(
                f"the solution overflows at t = {t[first]:.6g}. Simulate a shorter time, or choose other units for "
                "inputs and states."
            )
        return self._unflatten(values)

    @cached_property
    def sampled_states(self) -> "SampledStates":
        """States at the samples."""
        grids, samples = self.realization.grids, self.samples
        stepper: UniformStepper | NonuniformStepper = self._nonuniform_stepper
        if samples.step is not None:
            grid = grids.single(samples.step, linear=self.linear)
            blocks = grids.nested(samples.step, linear=self.linear, n_times=len(samples.t))
            stepper = UniformStepper(grid, blocks, self.u, self.z0)
        return SampledStates(
            stepper,
            n_samples=len(samples.t),
            numbers_per_sample=self.realization.system.n_states * len(self.u),
            width=self.grid_width,
        )

    @property
    def _nonuniform_stepper(self) -> NonuniformStepper:
        return NonuniformStepper(self.nonuniform_steps, self.samples.t, self.u, self.z0)

    @cached_property
    def nonuniform_steps(self) -> NonuniformSteps:
        """Steps between uneven samples."""
        return self._steps_up_to_longest.for_run(np.diff(self.samples.t))

    @property
    def _steps_up_to_longest(self) -> NonuniformSteps:
        """Steps as long as those between samples, and shorter."""
        return self.realization.grids.nonuniform(self.samples.longest_step, linear=self.linear)

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Yield the indices of some times, packed states `(batch, k, n)` there and inputs there.

        States between samples follow by one exact step of a fraction of an interval from the sample before.
        """
        samples, states = self.samples, self.sampled_states
        if t is samples.t or np.array_equal(t, samples.t):
            for piece, z in states.pieces():
                yield piece, z, self.u[:, piece]
            return
        per_time = max(_MIN_NUMBERS_PER_TIME, self.realization.system.n_states * len(self.u))
        at_once = max(1, _MAX_QUERY_NUMBERS // per_time)
        for number, index, before in group_queries(t, samples.t, length=states.length, at_once=at_once):
            piece, z = states.piece(number)
            times, now, z = t[index], self.u[:, before], z[:, before - piece.start]
            h = times - samples.t[before]
            then = samples.value(times).reshape(len(self.u), len(times), samples.n_inputs)
            yield index, self._steps_up_to_longest.step(h, z, now, then) if h.any() else z, then

    def _unflatten(self, values: Array) -> Array:
        return values.reshape(*self.samples.batch_shape, *values.shape[1:])


class SampledStates:
    """States of a run at its samples, in pieces of time.

    The state at the beginning of every piece is stored, so that a piece can be computed again; short runs are stored.
    """

    def __init__(
        self, stepper: UniformStepper | NonuniformStepper, *, n_samples: int, numbers_per_sample: int, width: int = 1
    ) -> None:
        self._stepper, self.n_samples = stepper, n_samples
        length = max(_MIN_PIECE_SAMPLES, _MAX_PIECE_NUMBERS // max(1, numbers_per_sample))
        self.length = -(-length // width) * width  # pieces begin where blocks of `width` samples do
        self._begins = [stepper.z0]
        self._stores_all = n_samples * numbers_per_sample <= _MAX_STORED_NUMBERS
        self._stored: dict[int, Array] = {}

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Yield the samples and the states of all pieces in turn."""
        for number in range(-(-self.n_samples // self.length)):
            yield self.piece(number)
        if not self._stores_all:
            self._stored.clear()

    def piece(self, number: int) -> tuple[slice, Array]:
        """Return the samples and the states of one piece; the last one may be requested again at no cost."""
        while len(self._begins) <= number:
            self.piece(len(self._begins) - 1)
        samples = slice(number * self.length, min((number + 1) * self.length, self.n_samples))
        if number not in self._stored:
            if not self._stores_all:
                self._stored.clear()
            self._stored[number], after = self._stepper.advance(samples.start, samples.stop, self._begins[number])
            if len(self._begins) == number + 1:
                self._begins.append(after.copy())  # a view would keep the whole piece alive
        return samples, self._stored[number]


class QueryGroup(NamedTuple):
    """Some of the requested times, between the samples of one piece."""

    piece: int
    times: slice | NDArray[np.intp]
    """Indices of the times."""
    before: NDArray[np.intp]
    """The last sample up to each time."""


def group_queries(t: Array, samples: Array, *, length: int, at_once: int) -> Iterator[QueryGroup]:
    """Yield times t in ascending order, grouped by pieces of `length` samples, up to `at_once` of them together.

    Besides the times, only their order is held in memory, and not even that if they ascend.
    """
    order = None if np.all(t[1:] >= t[:-1]) else np.argsort(t)
    for begin in range(0, len(t), at_once):
        group = slice(begin, min(begin + at_once, len(t)))
        times = t[group] if order is None else t[order[group]]
        before = np.clip(np.searchsorted(samples, times, side="right") - 1, 0, len(samples) - 1)
        pieces = before // length
        edges = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(times)]
        for first, stop in pairwise(edges):
            part = slice(begin + first, begin + stop)
            yield QueryGroup(int(pieces[first]), part if order is None else order[part], before[first:stop])
