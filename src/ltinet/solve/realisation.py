"""A system in the coordinates in which it is stepped, with what its runs share.

    x0 ──checked, one row for each member of a batch──▶ x ──T⁻¹──▶ z ──packed──▶ (Re v, Im v, dense states)

In block coordinates T is that of the block-diagonal form, z are the states of its blocks, and a step costs O(n). In
original coordinates T is 1, z are the user's states, and a step costs O(n²).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.bounds.units import best_units
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import InvalidSignalError
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.files import has_operator
from ltinet.once import cached_property
from ltinet.signals.numbers import check_state
from ltinet.signals.times import TimeAxis
from ltinet.solve.coordinates import Coordinates
from ltinet.solve.engine_arrays import EngineArrays, engine_arrays
from ltinet.solve.grids import Grids
from ltinet.solve.modal import ModalSystem, modal_system, one_block
from ltinet.solve.steps.packing import pack_weights

_OUTPUT_SHIFT = (
    1e-10  # largest error of an output, relative to its size, for which times beside their grid count as even
)
_FIRST_INPUTS = 8.0  # factor for cancellation between the first inputs of a growing state
_FADES = 40.0  # |λ| times a step: e^−40 is below a rounding error


class Realisation:
    """The matrices of a system in some coordinates, and everything that is prepared from them once."""

    form: BlockDiagonalForm | None
    """The block-diagonal form behind the coordinates; None for original coordinates and networks without a system."""
    origin: SystemMatrices | None
    """The system whose outputs are computed, for error bounds; None where only parameters are known."""

    @property
    def name(self) -> str:
        """Of the coordinates, "original" or "blocks"."""
        raise NotImplementedError

    @property
    def blocks(self) -> BlockSystem:
        """The matrices in these coordinates."""
        raise NotImplementedError

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        raise NotImplementedError

    @property
    def has_operator(self) -> bool:
        """Whether T is an operator, of a large structured model: no n × n array can be formed."""
        return has_operator(self.form)

    @cached_property
    def system(self) -> ModalSystem:
        """The system in modal coordinates, in which steps are taken."""
        return modal_system(self.blocks)

    @cached_property
    def grids(self) -> Grids:
        """What was prepared for evenly spaced samples."""
        return Grids(self.system)

    @cached_property
    def output_weights(self) -> Matrix:
        """From packed states to outputs, (p × n)."""
        return pack_weights(self.system, self.system.C, [block.C for block in self.system.blocks])

    @cached_property
    def arrays(self) -> EngineArrays:
        """What error bounds need.

        Raises:
            SimulationError: T is an operator: there are too many states for arrays.
        """
        return engine_arrays(self.system, self.output_weights, self.form, self.origin)

    @cached_property
    def fastest(self) -> float:
        """The largest |λ|."""
        dense = [np.abs(np.linalg.eigvals(block.F)).max(initial=0.0) for block in self.system.blocks]
        return float(np.max(np.concatenate([np.abs(self.system.rates), dense]), initial=0.0))

    def resolves_shift(self, axis: TimeAxis) -> bool:
        """Whether outputs show by how much times stand beside their even grid.

        In a time δ a state moves by up to |λ|δ of its size; one that fades between two samples does not. Of a state
        that grows the first inputs are all that is seen in the end, and each of them adds δ/h of its share.
        """
        if axis.step is None or axis.beside_grid == 0.0:
            return False
        speed = min(self.fastest, _FADES / axis.step)
        return axis.beside_grid * (max(speed, _FIRST_INPUTS / axis.step) if self._grows else speed) > _OUTPUT_SHIFT

    @cached_property
    def _grows(self) -> bool:
        return bool(np.any(self.system.rates.real > 0.0) or np.any(self.system.slowest_of_blocks > 0.0))

    def initial_state(self, x0: ArrayLike | None, batch_shape: tuple[int, ...]) -> Array:
        """States z at the start, `(batch, n)`, from the user's x0."""
        if x0 is None:
            return np.zeros((math.prod(batch_shape), self.system.n_states))
        return self.coordinates.blocks_from_user(self.user_start(x0, batch_shape))

    def user_start(self, x0: ArrayLike, batch_shape: tuple[int, ...]) -> Array:
        """The user's x0, checked, one row for each member of a batch."""
        n = self.system.n_states
        x = np.asarray(x0, dtype=np.float64)
        check_state(x, n)
        try:
            x = np.broadcast_to(x, (*batch_shape, n))
        except ValueError:
            raise InvalidSignalError(
                f"x0 has shape {x.shape} but the inputs come in a batch of shape {batch_shape}; give one state or one "
                "for each input"
            ) from None
        return x.reshape(math.prod(batch_shape), n)


class OriginalCoordinates(Realisation):
    """A system in the user's own coordinates: one block of all states, in units in which A is balanced.

    Units are powers of two, so that nothing is rounded: x = units · z, F = units⁻¹ A units.
    """

    name = "original"
    form = None

    def __init__(self, origin: SystemMatrices) -> None:
        self.origin: SystemMatrices = origin
        self.units = best_units(origin.A)

    @cached_property
    def norm(self) -> float:
        """‖F‖₁."""
        return float(np.abs(self.blocks.A).sum(axis=0).max(initial=0.0))

    @cached_property
    def blocks(self) -> BlockSystem:
        """The matrices as one block."""
        system, units, n = self.origin, self.units, self.origin.n_states
        with np.errstate(over="ignore", under="ignore"):
            A, B = system.A * (units / units[:, None]), system.B / units[:, None]
        return BlockSystem(A, B, system.C * units, system.D, (n,), (n,))

    @cached_property
    def system(self) -> ModalSystem:
        """The same, as it is stepped."""
        return one_block(self.blocks.A, self.blocks.B, self.blocks.C, self.blocks.D)

    @cached_property
    def arrays(self) -> EngineArrays:
        """What error bounds need."""
        return EngineArrays(self.system, self.output_weights, None, self.origin, units=self.units)

    @cached_property
    def coordinates(self) -> Coordinates:
        """Changes of units."""
        return Coordinates.in_units(self.units, self.origin.n_inputs)
