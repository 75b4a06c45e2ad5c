"""SDIRK4: L-stable, stiffly accurate singly diagonally implicit Runge–Kutta method of order four.

Method of Hairer & Wanner (Solving ODEs II, table IV.6.5) with its embedded method of order three. All stages share
one factorisation. For E x' = A x + B u stage i is

    (E − hγA) X_i = E w_i + hγ B u_i,    w_i = x + h Σ_j a_ij k_j,    k_i = (X_i − w_i)/(hγ):

nothing is multiplied by A, which would enlarge the rounding of stiff states.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet.errors import SimulationError
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, has_symmetric_pattern

# MERGED ltinet.simulation.sdirk
# One step of an L-stable, stiffly accurate Runge–Kutta method of order four whose stages share one factorisation.
#
# SDIRK4 of Hairer & Wanner (Solving ODEs II, table IV.6.5), with its embedded method of order three. For E x' = A x + B u
# stage i is (E − hγA) X_i = E w_i + hγ B u_i, w_i = x + h Σ_j a_ij k_j, and k_i = (X_i − w_i)/(hγ): nothing is multiplied
# by A, which would enlarge the rounding of stiff states.

GAMMA = 0.25
NODES = np.array([1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0])
_WEIGHTS = (
    np.array([]),
    np.array([1 / 2]),
    np.array([17 / 50, -1 / 25]),
    np.array([371 / 1360, -137 / 2720, 15 / 544]),
    np.array([25 / 24, -49 / 48, 125 / 16, -85 / 12]),
)
_ERROR = np.array([25 / 24 - 59 / 48, -49 / 48 + 17 / 96, 125 / 16 - 225 / 32, -85 / 12 + 85 / 12, 1 / 4])
_CACHED_FACTORS = 6  # factorisations: of a step, its half and their neighbours


class SDIRKStep(NamedTuple):
    """The state after a step, (n, batch), and what the method of order three would change.

    `filtered` is the same times (E − hγA)⁻¹E: stiff states, which have decayed in truth, weigh less in it.
    """

    state: Array
    difference: Array
    filtered: Array


class SDIRKStepper:
    """Steps of a sparse model; factorisations of the last step lengths are kept."""

    def __init__(self, pencil: SparseDescriptor) -> None:
        self._pencil = pencil
        self._is_symmetric = has_symmetric_pattern(pencil.state, pencil.mass)
        self._factors: OrderedDict[float, SparseLU] = OrderedDict()
        self.n_factorisations = 0
        self.n_solves = 0

    def step(self, x: Array, h: float, inputs: Array) -> SDIRKStep:
        """From x over a step h; `inputs` are u at the nodes, (5, m, batch)."""
        B, state = self._pencil.B, x
        rates: list[Array] = []
        for weights, u in zip(_WEIGHTS, inputs, strict=True):
            w = x + h * sum((a * k for a, k in zip(weights, rates, strict=True)), start=np.zeros_like(x))
            state = self._solve(h, self._times_E(w) + (h * GAMMA) * (B @ u))
            rates.append((state - w) / (h * GAMMA))
        difference = h * sum((a * k for a, k in zip(_ERROR, rates, strict=True)), start=np.zeros_like(x))
        return SDIRKStep(state, difference, self._solve(h, self._times_E(difference)))

    def _times_E(self, x: Array) -> Array:
        return x if self._pencil.mass is None else np.asarray(self._pencil.mass @ x)

    def _solve(self, h: float, right: Array) -> Array:
        self.n_solves += 1
        if h in self._factors:
            self._factors.move_to_end(h)
            return np.asarray(self._factors[h].solve_unrefined(right))
        E: Any = sparse.eye_array(len(right)) if self._pencil.mass is None else self._pencil.mass
        self.n_factorisations += 1
        try:
            factors = SparseLU(E - (h * GAMMA) * self._pencil.state, has_symmetric_pattern=self._is_symmetric)
            first = factors.solve(right)  # its residual tells whether the factors are good
        except SingularMatrixError:
            raise SimulationError(
                f"E − {h * GAMMA:.3g} A is singular to working precision, so that no step of {h:.3g} can be taken: E "
                "and A share a null vector, or a pole lies there; reduce the model, or leave out what is not determined"
            ) from None
        self._factors[h] = factors
        if len(self._factors) > _CACHED_FACTORS:
            self._factors.popitem(last=False)
        return np.asarray(first)
