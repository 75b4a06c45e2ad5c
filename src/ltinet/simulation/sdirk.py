"""SDIRK4: L-stable, stiffly accurate singly diagonally implicit Runge–Kutta method of order four.

Method of Hairer & Wanner (Solving ODEs II, table IV.6.5) with its embedded method of order three. All stages share
one factorization. For E x' = A x + B u stage i is

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

NODES = np.array([1 / 4, 3 / 4, 11 / 20, 1 / 2, 1.0])
_GAMMA = 0.25
_WEIGHTS = (
    np.array([]),
    np.array([1 / 2]),
    np.array([17 / 50, -1 / 25]),
    np.array([371 / 1360, -137 / 2720, 15 / 544]),
    np.array([25 / 24, -49 / 48, 125 / 16, -85 / 12]),
)
# Weights of order four minus those of the embedded method of order three.
_ERROR = np.array([25 / 24 - 59 / 48, -49 / 48 + 17 / 96, 125 / 16 - 225 / 32, -85 / 12 + 85 / 12, 1 / 4])
_CACHED_FACTORS = 6  # factorizations: of a step, its half and the step lengths around them


class SDIRKStep(NamedTuple):
    """State after a step `(n, batch)`, and its difference to the embedded method of order three."""

    state: Array
    difference: Array
    filtered: Array
    """(E − hγA)⁻¹ E times the difference, in which stiff states, which decay in truth, have less weight."""


class SDIRKStepper:
    """Steps of a sparse descriptor system; factorizations of the last step lengths are cached."""

    def __init__(self, descriptor: SparseDescriptor) -> None:
        self._descriptor = descriptor
        self._is_symmetric = has_symmetric_pattern(descriptor.state, descriptor.mass)
        self._factors: OrderedDict[float, SparseLU] = OrderedDict()
        self.n_factorizations = 0
        self.n_solves = 0

    def step(self, x: Array, h: float, inputs: Array) -> SDIRKStep:
        """Take a step of length h from x; `inputs` are u at the nodes, `(5, m, batch)`."""
        B, state = self._descriptor.B, x
        slopes: list[Array] = []
        for weights, u in zip(_WEIGHTS, inputs, strict=True):
            w = x + h * sum((a * k for a, k in zip(weights, slopes, strict=True)), start=np.zeros_like(x))
            state = self._solve(h, self._times_E(w) + (h * _GAMMA) * (B @ u))
            slopes.append((state - w) / (h * _GAMMA))
        difference = h * sum((a * k for a, k in zip(_ERROR, slopes, strict=True)), start=np.zeros_like(x))
        return SDIRKStep(state, difference, self._solve(h, self._times_E(difference)))

    def _times_E(self, x: Array) -> Array:
        return x if self._descriptor.mass is None else np.asarray(self._descriptor.mass @ x)

    def _solve(self, h: float, right: Array) -> Array:
        """Solve (E − hγA) X = right; the first solution with new factors is refined, which tests their quality."""
        self.n_solves += 1
        if h in self._factors:
            self._factors.move_to_end(h)
            return np.asarray(self._factors[h].solve_unrefined(right))
        E: Any = sparse.eye_array(len(right)) if self._descriptor.mass is None else self._descriptor.mass
        self.n_factorizations += 1
        try:
            factors = SparseLU(E - (h * _GAMMA) * self._descriptor.state, has_symmetric_pattern=self._is_symmetric)
            solution = factors.solve(right)
        except SingularMatrixError:
            raise SimulationError(
                f"E − {h * _GAMMA:.3g} A is singular to working precision, so that a step of {h:.3g} is not possible: E "
                "and A share a null vector, or a pole lies there. Remove undetermined states or reduce the model."
            ) from None
        self._factors[h] = factors
        if len(self._factors) > _CACHED_FACTORS:
            self._factors.popitem(last=False)
        return np.asarray(solution)
