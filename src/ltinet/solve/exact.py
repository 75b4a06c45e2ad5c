"""The exact engine: no step-size control and no stiffness, since between samples the solution has a closed form.

It runs in block coordinates (`modal`), never in the second-order form that neurons show.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.threads import threads_for_work
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.once import cached_property
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis, all_finite
from ltinet.solve.any_length import AnyLength
from ltinet.solve.convolution import Convolution
from ltinet.solve.coordinates import Coordinates, as_given, placed
from ltinet.solve.even_walk import EvenWalk
from ltinet.solve.grids import Grids
from ltinet.solve.irregular import IrregularWalk, longest_step
from ltinet.solve.modal import ModalSystem, modal_system
from ltinet.solve.packing import pack_weights
from ltinet.solve.queries import in_order
from ltinet.solve.sampled_states import SampledStates
from ltinet.solve.sharing import n_threads
from ltinet.solve.short_steps import is_short
from ltinet.solve.solution import Solution

# cond(T) as given, beyond which states may be off by 1e-10 of their size after 10,000 steps, and outputs of runs that
# begin in a state, which see differences of states.
_COSTS_STATES, _COSTS_OUTPUTS = 1e3, 1e5
_COSTS_SHORT_STEPS = 1e4  # likewise, for outputs after steps so short that little has happened yet
_SMALL = 32  # states: one block of them costs little more than many
_QUERIES = 2**18  # numbers: times between samples that are worked on together
_PER_QUERY = 32  # numbers at least, however few states there are: the terms of the series for its length


class ExactEngine:
    """A network prepared for exact simulation."""

    def __init__(
        self,
        network: Network,
        form: BlockDiagonalForm | None,
        *,
        origin: SystemMatrices | None = None,
        blocks: BlockSystem | None = None,
    ) -> None:
        self.network, self.form, self.origin = network, form, origin
        self._blocks = blocks
        self._last_axis: TimeAxis | None = None

    @cached_property
    def in_user_states(self) -> "ExactEngine | None":
        """The same system as one block in the user's own states, where T would cost these digits; None elsewhere.

        States that are small beside others in the user's units are small differences of large z.
        """
        form, origin = self.form, self.origin
        if form is None or origin is None or not origin.n_states:
            return None
        if origin.n_states > _SMALL and form.condition_raw <= _COSTS_STATES:
            return None
        engine = ExactEngine(self.network, None, origin=origin)
        engine.__dict__["_placed"] = as_given(origin)
        return engine

    def for_run(self, longest_step: float, *, from_state: bool) -> "ExactEngine":
        """The engine for a run: T may cost one that begins in a state, or takes short steps, too many digits.

        Outputs of the first short steps are small beside the states that T mixes for them.
        """
        direct = self.in_user_states
        if direct is None or self.form is None:
            return self
        costs = self.form.condition_raw
        if from_state and costs > _COSTS_OUTPUTS:
            return direct
        is_small = self.network.n_states <= _SMALL and costs > _COSTS_SHORT_STEPS
        return direct if is_small and is_short(direct.blocks.A, longest_step) else self

    @cached_property
    def _placed(self) -> tuple[BlockSystem, Coordinates]:
        with threads_for_work(self.network.n_states**3):  # many solves of a few states
            return placed(self.network, self.form, self._blocks)

    @property
    def blocks(self) -> BlockSystem:
        """The network in block coordinates, without the maps to others where it is known already."""
        return self._placed[0] if self.form is None or self._blocks is None else self._blocks

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        return self._placed[1]

    @cached_property
    def system(self) -> ModalSystem:
        """The same in modal coordinates, in which steps are taken."""
        return modal_system(self.blocks)

    @cached_property
    def grids(self) -> Grids:
        """What was prepared for evenly spaced samples."""
        return Grids(self.system)

    @cached_property
    def output_weights(self) -> Matrix:
        """From packed states to outputs, (p × n)."""
        return pack_weights(self.system, self.system.C, [block.C for block in self.system.blocks])

    def time_axis(self, t: ArrayLike) -> TimeAxis:
        """Times, checked; those of the last call are recognised and not checked again."""
        if self._last_axis is None or not np.array_equal(np.asarray(t), self._last_axis.t):
            self._last_axis = TimeAxis.of(t)
        return self._last_axis

    def simulate(
        self, signal: Signal, t: Array, *, x0: ArrayLike | None, input_tolerance: float, n_jobs: int
    ) -> Solution:
        """Outputs at the times t, from the state x0 at t[0]."""
        threads = n_threads(n_jobs)
        samples, refinement, off = signal.sampled_over(t, tolerance=input_tolerance)
        engine = self.for_run(samples.longest_step, from_state=x0 is not None)
        neurons = None if engine is self else self
        trajectory = ExactTrajectory(engine, samples, x0, input_error=off, neurons=neurons)
        y = _outputs_at(trajectory, t, threads=threads)
        stats: dict[str, Any] = {
            "engine": "exact",
            "grid": "irregular" if samples.step is None else "uniform",
            "way": trajectory.way,
            "n_samples": len(samples.t),
            "samples_per_interval": refinement,
        }
        return Solution(t, y, trajectory, stats)

    def initial_state(self, x0: ArrayLike | None, batch_shape: tuple[int, ...]) -> Array:
        """States z of the blocks at the start, `(batch, n)`, from the user's x0."""
        n = self.system.n_states
        if x0 is None:
            return np.zeros((math.prod(batch_shape), n))
        return self.coordinates.blocks_from_user(self.user_start(x0, batch_shape))

    def user_start(self, x0: ArrayLike, batch_shape: tuple[int, ...]) -> Array:
        """The user's x0, checked, one row for each member of a batch."""
        n = self.system.n_states
        x = np.asarray(x0, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != n or not np.all(np.isfinite(x)):
            raise InvalidSignalError(
                f"x0 has shape {x.shape} or is not finite; it must have {n} entries, one per state, along its last axis"
            )
        try:
            x = np.broadcast_to(x, (*batch_shape, n))
        except ValueError:
            raise InvalidSignalError(
                f"x0 has shape {x.shape} but the inputs come in a batch of shape {batch_shape}; give one state or one "
                "for each input"
            ) from None
        return x.reshape(math.prod(batch_shape), n)


class ExactTrajectory:
    """The exact solution for sampled inputs: states at samples on request, closed form between them."""

    def __init__(
        self,
        engine: ExactEngine,
        samples: SampledSignal,
        x0: ArrayLike | None,
        *,
        input_error: float = 0.0,
        neurons: ExactEngine | None = None,
    ) -> None:
        self.engine, self.samples, self.input_error = engine, samples, input_error
        self.neurons = neurons  # the engine that knows of neurons, where the run is in the user's states
        self.x0 = None if x0 is None else engine.user_start(x0, samples.batch_shape)
        with np.errstate(over="ignore", invalid="ignore"):  # said below, by the time
            self.z0 = engine.system.packed_from_blocks(engine.initial_state(self.x0, (math.prod(samples.batch_shape),)))
        self.u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self.linear = samples.hold == "linear"

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
        if self.samples.step is None:
            return 1
        return self.engine.grids.from_any_state(
            self.samples.step, linear=self.linear, n_times=len(self.samples.t)
        ).width

    @property
    def convolution(self) -> Convolution | None:
        """The grid of a run by fast convolution, None for one that takes another way."""
        step = self.samples.step
        if step is None or self.z0.any():
            return None
        return self.engine.grids.from_rest(step, linear=self.linear, n_times=len(self.samples.t))

    @property
    def n_multiplications(self) -> int:
        """About how many a run takes."""
        system = self.engine.system
        return math.prod(self.u.shape[:2]) * system.n_states * (system.n_inputs + system.n_outputs)

    def sampled_outputs(self, *, threads: int) -> Array:
        """Outputs y at all samples, without the states there: memory is a few times that of inputs and outputs."""
        samples = self.samples
        with threads_for_work(self.n_multiplications), np.errstate(over="ignore", invalid="ignore"):  # looked at below
            convolution = self.convolution
            if convolution is not None:
                y = convolution.outputs(self.u, threads=threads)
            elif samples.step is not None:
                grid = self.engine.grids.from_any_state(samples.step, linear=self.linear, n_times=len(samples.t))
                y = grid.outputs_from(self.z0, self.u, threads=threads)
            else:
                y = self._irregular_walk.outputs(self.engine.output_weights.T)
                y += self.u @ self.engine.system.D.T
        # Products of blocks and transforms may overflow a little before the outputs do: single steps tell.
        return self._unflatten(y) if all_finite(y) else self.outputs(samples.t)

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        weights, D = self.engine.output_weights, self.engine.system.D
        return self._gathered(t, lambda z, u: z @ weights.T + u @ D.T, width=len(D))

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        if self.neurons is not None:
            return self._through(self.neurons).neuron_states(t)
        system, coordinates = self.engine.system, self.engine.coordinates
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
        system, coordinates = self.engine.system, self.engine.coordinates
        return self._gathered(
            t, lambda z, _: coordinates.user_from_blocks(system.blocks_from_packed(z)), width=system.n_states
        )

    @cached_property
    def _in_user_states(self) -> "ExactTrajectory | None":
        """The same run in the user's own states, where T would cost them digits."""
        engine = self.engine.in_user_states
        return None if engine is None or engine is self.engine else self._through(engine)

    def _through(self, engine: ExactEngine) -> "ExactTrajectory":
        """The same run by another engine."""
        x0 = None if self.x0 is None else self.x0.reshape(*self.samples.batch_shape, self.x0.shape[-1])
        return ExactTrajectory(engine, self.samples, x0)

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
        system, samples = self.engine.system, self.samples
        walk: EvenWalk | IrregularWalk = self._irregular_walk
        if samples.step is not None:
            grid = self.engine.grids.single(samples.step, linear=self.linear)
            blocks = self.engine.grids.nested(samples.step, linear=self.linear, n_times=len(samples.t))
            walk = EvenWalk(grid, blocks, self.u, self.z0)
        return SampledStates(walk, n_samples=len(samples.t), numbers_per_sample=system.n_states * len(self.u))

    @property
    def _irregular_walk(self) -> IrregularWalk:
        return IrregularWalk(self.any_length, self.samples.t, self.u, self.z0)

    @cached_property
    def any_length(self) -> AnyLength:
        """Steps as long as those between samples, and shorter."""
        return self.engine.grids.any_length(longest_step(self.samples.t), linear=self.linear)

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Which of the times, packed states `(batch, k, n)` and inputs there, some times after the other.

        Between samples by one exact step of a fraction of an interval from the sample before.
        """
        samples, states = self.samples, self.sampled_states
        if t is samples.t or np.array_equal(t, samples.t):
            for own, z in states.pieces():
                yield own, z, self.u[:, own]
            return
        at_once = max(1, _QUERIES // max(_PER_QUERY, self.engine.system.n_states * len(self.u)))
        for piece, at, before in in_order(t, samples.t, length=states.length, at_once=at_once):
            own, z = states.piece(piece)
            yield at, *self._between(t[at], before, z[:, before - own.start])

    def _between(self, t: Array, before: NDArray[np.intp], z: Array) -> tuple[Array, Array]:
        """States and inputs at times between samples, from the states at the samples before them."""
        h, now = t - self.samples.t[before], self.u[:, before]
        then = self.samples.value(t).reshape(len(self.u), len(t), self.samples.n_inputs)
        return (self.any_length.step(h, z, now, then) if h.any() else z), then

    def _unflatten(self, values: Array) -> Array:
        return values.reshape(*self.samples.batch_shape, *values.shape[1:])


def _outputs_at(trajectory: ExactTrajectory, t: Array, *, threads: int) -> Array:
    """Outputs at the times t: from those at all samples where t are among them, which needs no states in between."""
    samples = trajectory.samples
    if samples.t is t or np.array_equal(samples.t, t):
        return trajectory.sampled_outputs(threads=threads)
    places = np.searchsorted(samples.t, t, side="right") - 1
    if np.array_equal(samples.t[places], t):
        return trajectory.sampled_outputs(threads=threads)[..., places, :]
    return trajectory.outputs(t)
