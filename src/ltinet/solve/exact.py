"""The exact engine: no step-size control and no stiffness, since between samples the solution has a closed form."""

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import InvalidSignalError
from ltinet.model.state_space import StateSpace
from ltinet.network.network import Network
from ltinet.signals.as_signal import Signal
from ltinet.signals.function import FunctionSignal
from ltinet.signals.refine import sample_function
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.times import TimeAxis
from ltinet.solve.convolution import Convolution
from ltinet.solve.coordinates import Coordinates, coordinates
from ltinet.solve.grids import Grids
from ltinet.solve.irregular import irregular_states
from ltinet.solve.modal import ModalSystem, modal_system
from ltinet.solve.packing import pack, unpack
from ltinet.solve.propagators import matrix_steps, scalar_steps
from ltinet.solve.sharing import n_threads
from ltinet.solve.solution import Solution

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


class ExactEngine:
    """A network prepared for exact simulation."""

    def __init__(self, network: Network, form: BlockDiagonalForm | None, *, origin: StateSpace | None = None) -> None:
        self.network, self.form, self.origin = network, form, origin
        self._last_axis: TimeAxis | None = None

    @cached_property
    def system(self) -> ModalSystem:
        """The network in modal coordinates."""
        return modal_system(self.network)

    @cached_property
    def grids(self) -> Grids:
        """What was prepared for evenly spaced samples."""
        return Grids(self.system)

    @cached_property
    def coordinates(self) -> Coordinates:
        """Maps between the user's states and those of the network."""
        return coordinates(self.form)

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
        refinement = 1
        if isinstance(signal, FunctionSignal):
            samples, refinement = sample_function(signal, t, tolerance=input_tolerance)
        else:
            samples = _from(signal, float(t[0]))
        lines = input_tolerance * np.abs(samples.u).max(initial=0.0) if isinstance(signal, FunctionSignal) else 0.0
        trajectory = ExactTrajectory(self, samples, self.initial_state(x0, samples.batch_shape), input_error=lines)
        stats: dict[str, Any] = {
            "engine": "exact",
            "grid": "irregular" if samples.step is None else "uniform",
            "n_samples": len(samples.t),
            "samples_per_interval": refinement,
        }
        return Solution(t, _outputs_at(trajectory, t, threads=threads), trajectory, stats)

    def initial_state(self, x0: ArrayLike | None, batch_shape: tuple[int, ...]) -> Array:
        """Network states z at the start, `(batch, n)`, from the user's x0."""
        n = self.system.n_states
        if x0 is None:
            return np.zeros((math.prod(batch_shape), n))
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
        return self.coordinates.network_from_user(x.reshape(math.prod(batch_shape), n))


class ExactTrajectory:
    """The exact solution for sampled inputs: states at samples on request, closed form between them."""

    def __init__(self, engine: ExactEngine, samples: SampledSignal, z0: Array, *, input_error: float = 0.0) -> None:
        self.engine, self.samples, self.z0, self.input_error = engine, samples, z0, input_error
        self._u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        self._linear = samples.hold == "linear"

    def sampled_outputs(self, *, threads: int) -> Array:
        """Outputs y at all samples, without the states there: memory is a few times that of inputs and outputs."""
        convolution = self.convolution
        if convolution is not None:
            return self._unflatten(convolution.outputs(self._u, threads=threads))
        system, samples = self.engine.system, self.samples
        if samples.step is not None:
            grid = self.engine.grids.from_any_state(samples.step, linear=self._linear, n_times=len(samples.t))
            start = grid.step.start(self._packed_start(), self._u[:, 0])
            y = grid.outputs(self._u, start, threads=threads)
        else:
            v, parts = self._initial_parts()
            y = np.empty((len(self._u), len(samples.t), system.n_outputs))
            walk = irregular_states(system, samples.t, self._u, v=v, parts=parts, linear=self._linear)
            for at, scalars, blocks in walk:
                y[:, at] = _outputs(system, scalars, blocks) + self._u[:, at] @ system.D.T
        return self._unflatten(y)

    @property
    def convolution(self) -> Convolution | None:
        """The grid of a run by fast convolution, None for one that takes another way."""
        step = self.samples.step
        if step is None or self.z0.any():
            return None
        return self.engine.grids.from_rest(step, linear=self._linear, n_times=len(self.samples.t))

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        v, parts = self._at(t)
        y = _outputs(self.engine.system, v, parts) + self._values(t) @ self.engine.system.D.T
        return self._unflatten(y)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        system = self.engine.system
        z = system.network_from_parts(*self._at(t))
        return self._unflatten(z + self._values(t) @ system.J.T)

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        z = self.engine.system.network_from_parts(*self._at(t))
        return self._unflatten(self.engine.coordinates.user_from_network(z))

    @cached_property
    def _sampled_states(self) -> tuple[Complex, list[Array]]:
        """States at all samples, `(batch, T, n)`: computed when dense output or states are asked for."""
        system, samples = self.engine.system, self.samples
        if samples.step is not None:
            grid = self.engine.grids.single(samples.step, linear=self._linear)
            return unpack(system, grid.states(self._u, grid.step.start(self._packed_start(), self._u[:, 0]))[0])
        v, parts = self._initial_parts()
        walk = list(irregular_states(system, samples.t, self._u, v=v, parts=parts, linear=self._linear))
        blocks = [np.concatenate([piece[2][index] for piece in walk], axis=1) for index in range(len(system.blocks))]
        return np.concatenate([piece[1] for piece in walk], axis=1), blocks

    def _at(self, t: Array) -> tuple[Complex, list[Array]]:
        """States at any times: one exact step of a fraction of an interval from the sample before."""
        system, samples = self.engine.system, self.samples
        scalars, blocks = self._sampled_states
        before = np.clip(np.searchsorted(samples.t, t, side="right") - 1, 0, len(samples.t) - 1)
        h = t - samples.t[before]
        now, then = self._u[:, before], self._values(t)
        P, first, last = scalar_steps(system.rates, h, linear=self._linear)
        v = P * scalars[:, before] + first * (now @ system.B.T) + last * (then @ system.B.T)
        parts = []
        lengths, which = np.unique(h, return_inverse=True)
        for block, states in zip(system.blocks, blocks, strict=True):
            P, first, last = matrix_steps(block.F, block.G, lengths, linear=self._linear)
            own = np.einsum("kij,bkj->bki", P[which], states[:, before])
            own += np.einsum("kij,bkj->bki", first[which], now) + np.einsum("kij,bkj->bki", last[which], then)
            parts.append(own)
        return v, parts

    def _initial_parts(self) -> tuple[Complex, list[Array]]:
        system = self.engine.system
        return system.scalars_from_network(self.z0), [self.z0[:, block.states] for block in system.blocks]

    def _packed_start(self) -> Array:
        return pack(self.engine.system, *self._initial_parts()) if self.z0.any() else self.z0

    def _values(self, t: Array) -> Array:
        values = self.samples.value(t)
        return values.reshape(len(self._u), *values.shape[-2:])

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


def _outputs(system: ModalSystem, v: Complex, parts: list[Array]) -> Array:
    """Re(C v) plus what the dense blocks give, `(batch, T, p)`."""
    y = v.real @ system.C.real.T
    if system.n_pairs:
        pairs = slice(0, system.n_pairs)
        y = y - v.imag[..., pairs] @ system.C.imag[:, pairs].T
    for block, part in zip(system.blocks, parts, strict=True):
        y = y + part @ block.C.T
    return np.asarray(y)


def _from(signal: SampledSignal, start: float) -> SampledSignal:
    """The samples of a signal from a start time on; a sample is added there if it has none."""
    if start == signal.start:
        return signal
    first = int(np.searchsorted(signal.t, start, side="right")) - 1
    if signal.t[first] == start:
        return SampledSignal(signal.t[first:], signal.u[..., first:, :], hold=signal.hold)
    head = signal.value(np.array([start]))
    times = np.concatenate([[start], signal.t[first + 1 :]])
    return SampledSignal(times, np.concatenate([head, signal.u[..., first + 1 :, :]], axis=-2), hold=signal.hold)
