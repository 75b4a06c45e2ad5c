"""The exact solution for sampled inputs: outputs at samples by the fastest way, the rest on request."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.once import cached_property
from ltinet.recent import Recent
from ltinet.signals.corners import input_corners
from ltinet.signals.finite import all_finite
from ltinet.signals.plateaus import plateaus
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.solve.exact.queries import in_order
from ltinet.solve.exact.sampled_states import SampledStates
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.even_walk import EvenWalk
from ltinet.solve.steps.hump import is_moderate
from ltinet.solve.steps.single_steps import SingleSteps
from ltinet.solve.steps.time_blocks import TimeBlocks
from ltinet.solve.uneven.any_length import AnyLength
from ltinet.solve.uneven.walk import IrregularWalk
from ltinet.threads import threads_for_work
from ltinet.tolerances import EPS

_TRIALS = 16  # that are kept
_UNTOLD = 1e-11  # of its peak: by what a state may be off
_QUERIES = 2**18  # numbers: times between samples that are worked on together
_PER_QUERY = 32  # numbers at least, however few states there are: the terms of the series for its length


class ExactPath:
    """The exact solution for sampled inputs: states at samples on request, closed form between them."""

    def __init__(
        self,
        prepared: PreparedNetwork,
        samples: SampledSignal,
        x0: ArrayLike | None,
        *,
        input_error: float = 0.0,
        neurons: PreparedNetwork | None = None,
    ) -> None:
        self.prepared, self.samples, self.input_error = prepared, samples, input_error
        self.neurons = neurons  # the engine that knows of neurons, where the run is in the user's states
        self.x0 = None if x0 is None else prepared.user_start(x0, samples.batch_shape)
        self.u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self.linear = samples.hold == "linear"

    @cached_property
    def z0(self) -> Array:
        """Packed states at the first sample, `(batch, n)`."""
        system, batch = self.prepared.system, len(self.u)
        if self.x0 is None:
            return np.zeros((batch, system.n_states))
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is told by the time where it shows
            return system.packed_from_blocks(self.prepared.initial_state(self.x0, (batch,)))

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
        return self.prepared.grids.from_any_state(step, linear=self.linear, n_times=len(self.samples.t))

    @cached_property
    def convolution(self) -> Convolution | None:
        """The grid of a run by fast convolution, None for one that takes another way."""
        step = self.samples.step
        if step is None or (self.x0 is not None and self.z0.any()):
            return None
        return self.prepared.grids.from_rest(step, linear=self.linear, n_times=len(self.samples.t))

    @property
    def n_multiplications(self) -> int:
        """About how many a run takes."""
        system, (batch, n_times, n_inputs) = self.prepared.system, self.u.shape
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
        y = self._irregular_walk.outputs(self.prepared.output_weights.T)
        y += self.u @ self.prepared.system.D.T
        return y

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        weights, D = self.prepared.output_weights, self.prepared.system.D
        return self._gathered(t, lambda z, u: z @ weights.T + u @ D.T, width=len(D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        return input_corners(self.samples, t)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        if self.neurons is not None:
            return self.through(self.neurons).neuron_states(t)
        system, coordinates = self.prepared.system, self.prepared.coordinates
        return self._gathered(
            t,
            lambda z, u: coordinates.neurons_from_blocks(system.blocks_from_packed(z)) + u @ coordinates.J.T,
            width=system.n_states,
        )

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        direct = self._in_user_states
        if direct is not None:
            return direct.user_states(t)
        system, coordinates = self.prepared.system, self.prepared.coordinates
        x = self._gathered(
            t, lambda z, _: coordinates.user_from_blocks(system.blocks_from_packed(z)), width=system.n_states
        )
        lost, own = self.states_kept_directly()
        if own is not None and len(lost):
            x[..., lost] = self.through(own).user_states(t)[..., lost]
        if self.x0 is not None:  # which T and its inverse would give back but for rounding
            first = np.flatnonzero(t == self.samples.t[0])
            x[..., first, :] = self.x0.reshape(*self.samples.batch_shape, 1, self.x0.shape[-1])
        return x

    @cached_property
    def _in_user_states(self) -> "ExactPath | None":
        """The same run in the user's own states, where T would cost them digits."""
        prepared = self.network_for_states()
        return None if prepared is None or prepared is self.prepared else self.through(prepared)

    def network_for_states(self) -> PreparedNetwork | None:
        """The network in the user's own states, where these keep more digits."""
        return self.prepared.for_states(self.samples.longest_step)

    def states_kept_directly(self) -> tuple[NDArray[np.intp], PreparedNetwork | None]:
        """Which states T would lose where it keeps the others, and the network in whose own states they are kept."""
        return self.prepared.keep(_LostStates).after(self.samples.longest_step, self.samples.hold)

    def through(self, prepared: PreparedNetwork) -> "ExactPath":
        """The same run by another engine."""
        x0 = None if self.x0 is None else self.x0.reshape(*self.samples.batch_shape, self.x0.shape[-1])
        return ExactPath(prepared, self.samples, x0)

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
        system, samples = self.prepared.system, self.samples
        walk: EvenWalk | IrregularWalk = self._irregular_walk
        if samples.step is not None:
            grid = self.prepared.grids.single(samples.step, linear=self.linear)
            blocks = self.prepared.grids.nested(samples.step, linear=self.linear, n_times=len(samples.t))
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
        return self.prepared.grids.any_length(self.samples.longest_step, linear=self.linear)

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Which of the times, packed states `(batch, k, n)` and inputs there, some times after the other.

        Between samples by one exact step of a fraction of an interval from the sample before.
        """
        samples, states = self.samples, self.sampled_states
        if t is samples.t or np.array_equal(t, samples.t):
            for own, z in states.pieces():
                yield own, z, self.u[:, own]
            return
        at_once = max(1, _QUERIES // max(_PER_QUERY, self.prepared.system.n_states * len(self.u)))
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


class _LostStates:
    """States that are smaller than what rounding leaves of the larger ones that T makes them of, by trial."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared, self._direct = prepared, prepared.in_user_states
        self._kept = Recent[NDArray[np.intp]](_TRIALS)

    def after(self, step: float, hold: Hold) -> tuple[NDArray[np.intp], PreparedNetwork | None]:
        """Which these are in steps of a length, and the network in whose own states they are not lost."""
        direct = self._direct
        if direct is None or step <= 0.0 or not is_moderate(direct.blocks.A, step):
            return np.zeros(0, dtype=np.intp), None
        return self._kept.get((step, hold), lambda: self._tried(direct, plateaus(step, self._n_inputs, hold))), direct

    @property
    def _n_inputs(self) -> int:
        return self._prepared.system.n_inputs

    def _tried(self, direct: PreparedNetwork, samples: SampledSignal) -> NDArray[np.intp]:
        system, n = self._prepared.system, self._prepared.system.n_states
        try:
            x = ExactPath(direct, samples, None).user_states(samples.t)
            own = ExactPath(self._prepared, samples, None)
            z = own._gathered(samples.t, lambda z, _: system.blocks_from_packed(z), width=n)
        except SimulationError:  # the run itself tells when
            return np.zeros(0, dtype=np.intp)
        sizes = np.abs(self._prepared.coordinates.user_from_blocks(np.diag(np.abs(z).max(axis=0, initial=0.0))))
        return np.flatnonzero(n * EPS * sizes.sum(axis=0) > _UNTOLD * np.abs(x).max(axis=0, initial=0.0))
