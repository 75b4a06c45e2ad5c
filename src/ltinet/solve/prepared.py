"""A network prepared to run: its block coordinates, the system that it stands for, and what its runs share.

Which (A, B, C, D, E) a network stands for is `origin`, and nothing else: the system that was given to `construct`, also
where that was reduced from a larger one before. Networks that were trained, truncated, built from parameters or loaded
without a system have none; they stand for themselves, and run in block coordinates.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.files import StoredNetwork
from ltinet.network.network import Network
from ltinet.once import cached_property
from ltinet.signals.times import TimeAxis
from ltinet.solve.coordinates import Coordinates, placed
from ltinet.solve.network_arrays import NetworkArrays, network_arrays
from ltinet.solve.realisation import OriginalCoordinates, Realisation
from ltinet.threads import threads_for_work


class NetworkParts(NamedTuple):
    """A network, the form that it was made from, and the system in the coordinates of its blocks."""

    network: Network
    form: BlockDiagonalForm | None
    blocks: BlockSystem | None = None


class PreparedNetwork(Realisation):
    """A network in its block coordinates; `original` is its system in the user's coordinates.

    `parts` may be a function, which is called when something asks for the network: a system of few states runs without.
    """

    name = "blocks"

    def __init__(
        self,
        parts: NetworkParts | Callable[[], NetworkParts],
        *,
        origin: SystemMatrices | None = None,
        reduced_error: float | None = None,
    ) -> None:
        self._given, self.origin = parts, origin
        self.reduced_error = reduced_error  # in the H2 norm, from the system that this one was reduced from
        self._last_axis: TimeAxis | None = None

    @cached_property
    def _parts(self) -> NetworkParts:
        return self._given if isinstance(self._given, NetworkParts) else self._given()

    @property
    def network(self) -> Network:
        """The network."""
        return self._parts.network

    @property
    def form(self) -> BlockDiagonalForm | None:  # type: ignore[override]
        """The block-diagonal form that it was made from; None for a network of parameters alone."""
        return self._parts.form

    @property
    def names(self) -> SignalNames:
        """The names of inputs and outputs, those of the system."""
        return UNNAMED if self.origin is None else self.origin.names

    @property
    def n_states(self) -> int:
        """Number of states, known without the network."""
        return self.network.n_states if self.origin is None else self.origin.n_states

    @property
    def n_inputs(self) -> int:
        """Number of inputs, known without the network."""
        return self.network.n_inputs if self.origin is None else self.origin.n_inputs

    @property
    def stored(self) -> StoredNetwork:
        """What a file of the network holds."""
        return StoredNetwork(*self._parts[:2], self.origin, self._parts.blocks, self.reduced_error)

    @cached_property
    def original(self) -> OriginalCoordinates | None:
        """The system in the user's own coordinates; None where there is none, no state, or a number that overflowed."""
        system = self.origin
        if system is None or not system.n_states or (system.sparse is not None and system.sparse.is_large):
            return None
        if not (np.isfinite(system.A).all() and np.isfinite(system.B).all()):  # E⁻¹A of a tiny E
            return None
        original = OriginalCoordinates(system)
        blocks = original.blocks
        is_finite = all(np.isfinite(own).all() for own in (blocks.A, blocks.B, blocks.C))
        return original if is_finite else None

    @cached_property
    def _placed(self) -> tuple[BlockSystem, Coordinates]:
        with threads_for_work(self.network.n_states**3):  # many solves of a few states
            return placed(*self._parts)

    @property
    def blocks(self) -> BlockSystem:
        """The network in block coordinates, without the maps to others where it is known already."""
        known = self._parts.blocks
        return self._placed[0] if self.form is None or known is None else known

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        return self._placed[1]

    @cached_property
    def network_arrays(self) -> NetworkArrays:
        """The layers as error bounds of solvers take them."""
        return network_arrays(self.network, self.form, self.origin, self.coordinates, D=self.system.D)

    def time_axis(self, t: ArrayLike) -> TimeAxis:
        """Times, checked; those of the last call are recognised and not checked again."""
        last, given = self._last_axis, np.asarray(t)
        if last is None or given.shape != last.t.shape or np.count_nonzero(given != last.t):  # faster than any()
            last = self._last_axis = TimeAxis.of(t)
        return last
