"""Simulation context (prepared network): a system in the coordinates in which it is stepped, and what its runs share.

    x0 ──validated, one row per member of a batch──▶ x ──T⁻¹──▶ z ──packed──▶ (Re v, Im v, dense states)

In block coordinates T is that of the block-diagonal form, z are the states of the blocks, and a step costs O(n). In
original coordinates T is a diagonal matrix of powers of two that balances A (no rounding), and a step costs O(n²).

`origin` is the system (A, B, C, D, E) that a network stands for: the one given to `construct`, also if that was
reduced from a larger one before. Networks that were trained, truncated, built from parameters or loaded without a
system have none; they stand for themselves and run in block coordinates.

A `Realization` is a system in one kind of coordinates. A `SimulationContext` is the realization in block coordinates;
its property `original` is the one in original coordinates, and `coordinate_selection` decides which of both a run uses.
It is made from four values that never change: the parts of the network (or a function that constructs them on first
use), the system `origin`, the error of its reduction, and the time step of a model in discrete time. Delays, operating
point and hold are no part of it, so that networks that differ in these share one context. Everything else follows from
these values and is kept for speed only: cached properties of this module, computed on first use; `grids`, a cache by
step length; and the last time axis, which `time_axis` compares with the next. No other module assigns attributes of a
context (two networks may hold the same one), and no result depends on what is cached.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, balancing_units
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import SimulationError
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.network.network_file import StoredNetwork, has_implicit_transformation
from ltinet.signals.arrays import broadcast_states
from ltinet.signals.times import TimeAxis
from ltinet.simulation.coordinates import Coordinates, network_coordinates
from ltinet.simulation.grids import GridCache
from ltinet.simulation.modal import ModalSystem, pack_weights, single_block_system, to_modal_system
from ltinet.simulation.system_arrays import EngineArrays, NetworkArrays, build_network_arrays
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.system_matrices import SystemMatrices

# Largest error of an output, relative to its size, up to which times beside their grid are treated as even: as accurate as
# outputs are with the largest cond(T) in the user's units (`network_builder`). The error bound includes this error.
_SHIFT_TOLERANCE = 1e-10
# Cancellation between the first inputs of a growing state. Empirical safety factor: with a tenth of it
# tests/unit/simulation/test_shifted.py holds as well.
_FIRST_INPUT_AMPLIFICATION = 8.0
_DECAYED_EXPONENT = 40.0  # |λ|h beyond which a state has decayed after one step: e⁻⁴⁰ = 4e-18 is below a rounding error


class Realization:
    """A system in some coordinates, with everything that is prepared from its matrices once."""

    form: BlockDiagonalForm | None
    """The block-diagonal form behind the coordinates; None for original coordinates and networks without a system."""
    origin: SystemMatrices | None
    """The system whose outputs are computed, for error bounds; None if only the parameters of a network are known."""
    dt: float | None
    """Time step of a model in discrete time; None in continuous time."""

    @property
    def name(self) -> str:
        """Name of the coordinates, "original" or "blocks"."""
        raise NotImplementedError

    @property
    def blocks(self) -> BlockSystem:
        """Matrices in these coordinates."""
        raise NotImplementedError

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        raise NotImplementedError

    @property
    def has_operator(self) -> bool:
        """True if T is an operator of a large structured model, too large for an n × n array."""
        return has_implicit_transformation(self.form)

    @cached_property
    def system(self) -> ModalSystem:
        """System in modal coordinates, in which steps are taken."""
        return to_modal_system(self.blocks)

    @cached_property
    def grids(self) -> GridCache:
        """Prepared grids."""
        return GridCache(self.system, self.dt)

    @cached_property
    def output_weights(self) -> Matrix:
        """Weights from packed states to outputs, (p × n)."""
        return pack_weights(self.system, self.system.C, [block.C for block in self.system.blocks])

    @cached_property
    def arrays(self) -> EngineArrays:
        """Arrays of error bounds; `SimulationError` if T is an operator, since there are too many states."""
        if self.has_operator:
            raise SimulationError(
                f"error bounds need T as a dense matrix, which is too large for {self.system.n_states} states; reduce the "
                "system first: ltinet.reduce(system, tolerance=1e-6)"
            )
        return EngineArrays(self.system, self.output_weights, self.form, self.origin)

    def resolves_shift(self, axis: TimeAxis) -> bool:
        """Return True if the distances of the times from their even grid are visible in the outputs.

        In a time δ a state moves by up to |λ|δ of its size; a state that decays between two samples does not. The
        outputs of a growing state depend in the end on the first inputs alone, each of which adds δ/h of its share.
        """
        if axis.step is None or axis.grid_deviation == 0.0:
            return False
        speed = min(self._spectral_radius, _DECAYED_EXPONENT / axis.step)
        if self._has_growing_states:
            speed = max(speed, _FIRST_INPUT_AMPLIFICATION / axis.step)
        return axis.grid_deviation * speed > _SHIFT_TOLERANCE

    @cached_property
    def _spectral_radius(self) -> float:
        dense = [np.abs(np.linalg.eigvals(block.F)).max(initial=0.0) for block in self.system.blocks]
        return float(np.max(np.concatenate([np.abs(self.system.rates), dense]), initial=0.0))

    @cached_property
    def _has_growing_states(self) -> bool:
        return bool(np.any(self.system.rates.real > 0.0) or np.any(self.system.block_abscissas > 0.0))

    def initial_state(self, x0: ArrayLike | None, batch_shape: tuple[int, ...]) -> Array:
        """Return the initial states z, `(batch, n)`, from the user's x0."""
        if x0 is None:
            return np.zeros((math.prod(batch_shape), self.system.n_states))
        return self.coordinates.blocks_from_user(self.broadcast_initial_state(x0, batch_shape))

    def broadcast_initial_state(self, x0: ArrayLike, batch_shape: tuple[int, ...]) -> Array:
        """Validate the user's x0 and return one row for each member of a batch."""
        return broadcast_states(np.asarray(x0, dtype=np.float64), self.system.n_states, batch_shape)


class OriginalCoordinates(Realization):
    """A system in the user's coordinates: one block of all states, in units in which A is balanced.

    The units are powers of two, so that nothing is rounded: x = units · z, F = units⁻¹ A units.
    """

    name = "original"
    form = None

    def __init__(self, origin: SystemMatrices) -> None:
        self.origin: SystemMatrices = origin
        self.dt = origin.dt
        self.units = balancing_units(origin.A)

    @cached_property
    def norm(self) -> float:
        """‖F‖₁."""
        return float(np.abs(self.blocks.A).sum(axis=0).max(initial=0.0))

    @cached_property
    def blocks(self) -> BlockSystem:
        """Matrices as one block."""
        system, units, n = self.origin, self.units, self.origin.n_states
        with np.errstate(over="ignore", under="ignore"):
            A, B = system.A * (units / units[:, None]), system.B / units[:, None]
        return BlockSystem(A, B, system.C * units, system.D, (n,), (n,))

    @cached_property
    def system(self) -> ModalSystem:
        """System as one dense block."""
        return single_block_system(self.blocks.A, self.blocks.B, self.blocks.C, self.blocks.D)

    @cached_property
    def arrays(self) -> EngineArrays:
        """Arrays of error bounds."""
        return EngineArrays(self.system, self.output_weights, None, self.origin, units=self.units)

    @cached_property
    def coordinates(self) -> Coordinates:
        """Maps that change the units only."""
        return Coordinates.in_units(self.units, self.origin.n_inputs)


class NetworkParts(NamedTuple):
    """A network, the form that it was made from, and its system in block coordinates."""

    network: Network
    form: BlockDiagonalForm | None
    blocks: BlockSystem | None = None


class SimulationContext(Realization):
    """A network in its block coordinates; `original` is its system in the user's coordinates.

    `parts` may be a function that is called when the network is needed: systems of few states are simulated without it.
    """

    name = "blocks"

    def __init__(
        self,
        parts: NetworkParts | Callable[[], NetworkParts],
        *,
        origin: SystemMatrices | None = None,
        reduction_error: float | None = None,
        dt: float | None = None,
    ) -> None:
        self._parts_source, self.origin = parts, origin
        self.dt = dt if origin is None else origin.dt
        self.reduction_error = reduction_error  # H2 norm of the difference from the full-order system
        self._last_axis: TimeAxis | None = None

    @cached_property
    def _parts(self) -> NetworkParts:
        return self._parts_source if isinstance(self._parts_source, NetworkParts) else self._parts_source()

    @property
    def network(self) -> Network:
        """Network."""
        return self._parts.network

    @property
    def form(self) -> BlockDiagonalForm | None:  # type: ignore[override]
        """Block-diagonal form that the network was made from; None for a network of parameters alone."""
        return self._parts.form

    @property
    def names(self) -> SignalNames:
        """Names of the inputs and outputs of the system."""
        return UNNAMED if self.origin is None else self.origin.names

    @property
    def n_states(self) -> int:
        """Number of states; does not need the network if the system is known."""
        return self.network.n_states if self.origin is None else self.origin.n_states

    @property
    def n_inputs(self) -> int:
        """Number of inputs; does not need the network if the system is known."""
        return self.network.n_inputs if self.origin is None else self.origin.n_inputs

    @property
    def stored(self) -> StoredNetwork:
        """Content of a file of the network."""
        return StoredNetwork(*self._parts[:2], self.origin, self._parts.blocks, self.reduction_error, dt=self.dt)

    @cached_property
    def original(self) -> OriginalCoordinates | None:
        """System in the user's coordinates; None without a system or states, and if an entry is not finite."""
        system = self.origin
        if system is None or not system.n_states or (system.sparse is not None and system.sparse.is_large):
            return None
        if not (np.isfinite(system.A).all() and np.isfinite(system.B).all()):  # E⁻¹A of a tiny E
            return None
        original = OriginalCoordinates(system)
        blocks = original.blocks
        is_finite = all(np.isfinite(matrix).all() for matrix in (blocks.A, blocks.B, blocks.C))
        return original if is_finite else None

    @cached_property
    def _blocks_and_coordinates(self) -> tuple[BlockSystem, Coordinates]:
        with limit_blas_threads_for_work(self.network.n_states**3):  # many solves of a few states
            return network_coordinates(*self._parts)

    @property
    def blocks(self) -> BlockSystem:
        """Network in block coordinates; blocks that are known are returned without computing the maps to the others."""
        known = self._parts.blocks
        return self._blocks_and_coordinates[0] if self.form is None or known is None else known

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        return self._blocks_and_coordinates[1]

    @cached_property
    def network_arrays(self) -> NetworkArrays:
        """Arrays of the layers for the error bounds of the neuron solvers."""
        return build_network_arrays(self.network, self.form, self.origin, self.coordinates, D=self.system.D)

    def time_axis(self, t: ArrayLike) -> TimeAxis:
        """Validate times; times equal to those of the last call are not validated again."""
        last, times = self._last_axis, np.asarray(t)
        if last is None or times.shape != last.t.shape or np.count_nonzero(times != last.t):  # faster than any()
            last = self._last_axis = TimeAxis.of(t)
        return last
