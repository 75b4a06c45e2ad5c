"""Where errors of a run come from beside rounding: what is left of the system, and samples beside their places."""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed
from ltinet.solve.engine_arrays import EngineArrays, InUserStates


class Sources(NamedTuple):
    """What is left of the system, as errors on their way into the states, from states and inputs of some sizes."""

    arrays: EngineArrays
    inputs: Array
    start: Array
    user_start: Array

    def in_modes(self, states: Array, n_steps: Array) -> Committed:
        """Into the modes."""
        residuals = self.arrays.residuals
        packed = self.arrays.packed(states)
        left = self.arrays.modes(packed @ residuals.per_state.T + self.inputs @ residuals.per_input.T)
        return Committed(self.start, np.zeros_like(left), n_steps, left)

    def fed_back(self, states: Array, n_steps: Array) -> Committed:
        """Into the modes, from errors of states alone."""
        left = self.arrays.modes(self.arrays.packed(states) @ self.arrays.residuals.per_state.T)
        return Committed(np.zeros_like(self.start), np.zeros_like(left), n_steps, left)

    def in_user_states(self, residuals: InUserStates, states: Array, n_steps: Array) -> Committed:
        """Into the user's own states."""
        left = self.arrays.packed(states) @ residuals.per_state.T + self.inputs @ residuals.per_input.T
        return Committed(self.user_start, np.zeros_like(left), n_steps, left)


class Late(NamedTuple):
    """Samples that stand beside an even grid, and what changes in that time, cell by cell."""

    moved: Array
    """How far outputs move in that time just before a sample, `(cells, p)`."""
    largest: Array
    """The largest product of that time and of the change of u there, `(cells, m)`."""
    summed: Array
    """Their sum."""
