"""The exact solution for sampled inputs: outputs at samples by the fastest way, the rest on request."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.once import cached_property
from ltinet.signals.corners import input_corners
from ltinet.signals.finite import all_finite
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact.queries import in_order
from ltinet.solve.exact.sampled_states import SampledStates
from ltinet.solve.realisation import Realisation
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.even_walk import EvenWalk
from ltinet.solve.steps.single_steps import SingleSteps
from ltinet.solve.steps.time_blocks import TimeBlocks
from ltinet.solve.uneven.any_length import AnyLength
from ltinet.solve.uneven.walk import IrregularWalk
from ltinet.threads import threads_for_work

_QUERIES = 2**18  # numbers: times between samples that are worked on together
_PER_QUERY = 32  # numbers at least, however few states there are: the terms of the series for its length


class ExactPath:
    """The exact solution for sampled inputs: states at samples on request, closed form between them."""

    def __init__(
        self,
        realisation: Realisation,
        samples: SampledSignal,
        x0: ArrayLike | None,
        *,
        network: Realisation | None = None,
        input_error: float = 0.0,
    ) -> None:
        self.realisation, self.samples, self.input_error = realisation, samples, input_error
        self.network = realisation if network is None else network  # in its block coordinates, which knows neurons
        self.x0 = None if x0 is None else realisation.user_start(x0, samples.batch_shape)
        self.u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self.linear = samples.hold == "linear"

    @cached_property
    def z0(self) -> Array:
        """Packed states at the first sample, `(batch, n)`."""
        system, batch = self.realisation.system, len(self.u)
        if self.x0 is None:
            return np.zeros((batch, system.n_states))
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is told by the time where it shows
            return system.packed_from_blocks(self.realisation.initial_state(self.x0, (batch,)))

    @property
    def way(self) -> str:
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
        return self.realisation.grids.from_any_state(step, linear=self.linear, n_times=len(self.samples.t))

    @cached_property
    def convolution(self) -> Convolution | None:
        """The grid of a run by fast convolution, None for one that takes another way."""
        step = self.samples.step
        if step is None or (self.x0 is not None and self.z0.any()):
            return None
        return self.realisation.grids.from_rest(step, linear=self.linear, n_times=len(self.samples.t))

    @property
    def n_multiplications(self) -> int:
        """About how many a run takes."""
        system, (batch, n_times, n_inputs) = self.realisation.system, self.u.shape
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
                with threads_for_work(self.n_multiplications, in_one_product=self._longest_product):
                    y = self._outputs_of_steps(threads=threads)
        # Products of blocks and transforms may overflow a little before the outputs do: single steps tell.
        return self._unflatten(y) if all_finite(y) else self.outputs(self.samples.t)

    def _outputs_of_steps(self, *, threads: int) -> Array:
        """Outputs y `(batch, T, p)` at all samples, one block of steps after the other."""
        if self._grid is not None:
            return self._grid.outputs_from(self.z0, self.u, threads=threads)
        y = self._irregular_walk.outputs(self.realisation.output_weights.T)
        y += self.u @ self.realisation.system.D.T
        return y

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        weights, D = self.realisation.output_weights, self.realisation.system.D
        return self._gathered(t, lambda z, u: z @ weights.T + u @ D.T, width=len(D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        return input_corners(self.samples, t)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        if self.network is not self.realisation:
            return self.through(self.network).neuron_states(t)
        system, coordinates = self.realisation.system, self.realisation.coordinates
        return self._gathered(
            t,
            lambda z, u: coordinates.neurons_from_blocks(system.blocks_from_packed(z)) + u @ coordinates.J.T,
            width=system.n_states,
        )

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        system, coordinates = self.realisation.system, self.realisation.coordinates
        x = self._gathered(
            t, lambda z, _: coordinates.user_from_blocks(system.blocks_from_packed(z)), width=system.n_states
        )
        if self.x0 is not None:  # which T and its inverse would give back but for rounding
            first = np.flatnonzero(t == self.samples.t[0])
            x[..., first, :] = self.x0.reshape(*self.samples.batch_shape, 1, self.x0.shape[-1])
        return x

    def through(self, realisation: Realisation) -> "ExactPath":
        """The same run in other coordinates."""
        x0 = None if self.x0 is None else self.x0.reshape(*self.samples.batch_shape, self.x0.shape[-1])
        return ExactPath(realisation, self.samples, x0)

    def _gathered(self, t: Array, read: Any, *, width: int) -> Array:
        """What is read off packed states and inputs at any times, `(..., len(t), width)`, a piece after the other."""
        values = np.empty((len(self.u), len(t), width))
        with threads_for_work(self.n_multiplications), np.errstate(over="ignore", invalid="ignore"):
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
        system, samples = self.realisation.system, self.samples
        walk: EvenWalk | IrregularWalk = self._irregular_walk
        if samples.step is not None:
            grid = self.realisation.grids.single(samples.step, linear=self.linear)
            blocks = self.realisation.grids.nested(samples.step, linear=self.linear, n_times=len(samples.t))
            walk = EvenWalk(grid, blocks, self.u, self.z0)
        per_sample, width = system.n_states * len(self.u), self.grid_width
        return SampledStates(walk, n_samples=len(samples.t), numbers_per_sample=per_sample, width=width)

    @property
    def _irregular_walk(self) -> IrregularWalk:
        return IrregularWalk(self.any_length, self.samples.t, self.u, self.z0)

    @cached_property
    def any_length(self) -> AnyLength:
        """The steps between uneven samples."""
        return self._up_to_longest.for_run(np.diff(self.samples.t))

    @property
    def _up_to_longest(self) -> AnyLength:
        """Steps as long as those between samples, and shorter."""
        return self.realisation.grids.any_length(self.samples.longest_step, linear=self.linear)

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Which of the times, packed states `(batch, k, n)` and inputs there, some times after the other.

        Between samples by one exact step of a fraction of an interval from the sample before.
        """
        samples, states = self.samples, self.sampled_states
        if t is samples.t or np.array_equal(t, samples.t):
            for own, z in states.pieces():
                yield own, z, self.u[:, own]
            return
        at_once = max(1, _QUERIES // max(_PER_QUERY, self.realisation.system.n_states * len(self.u)))
        for piece, at, before in in_order(t, samples.t, length=states.length, at_once=at_once):
            own, z = states.piece(piece)
            yield at, *self._between(t[at], before, z[:, before - own.start])

    def _between(self, t: Array, before: NDArray[np.intp], z: Array) -> tuple[Array, Array]:
        """States and inputs at times between samples, from the states at the samples before them."""
        h, now = t - self.samples.t[before], self.u[:, before]
        then = self.samples.value(t).reshape(len(self.u), len(t), self.samples.n_inputs)
        return (self._up_to_longest.step(h, z, now, then) if h.any() else z), then

    def _unflatten(self, values: Array) -> Array:
        return values.reshape(*self.samples.batch_shape, *values.shape[1:])
