"""Norms of residuals as functions of frequency with known poles, in the norm of the inverse of a definite matrix."""

import math
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.reduction.definite import Definite
from ltinet.reduction.norms import frobenius, norms, spectral_norm
from ltinet.reduction.projection import Combination, ResidualSpace
from ltinet.reduction.states import DampedStates, ReducedStates
from ltinet.tolerances import sum_rounding

_COLUMNS = 32  # that are solved for at a time, for memory
States = ReducedStates | DampedStates


@dataclass(frozen=True, eq=False)
class Residual:
    """R(iω) = first + rest·y(iω) in coordinates in which its norm is the Euclidean one: (k × m) and (k × N).

    `off` is what rounding may have taken from its norm, at any frequency.
    """

    first: Array
    rest: Array
    off: float
    per_state: float
    """The norm of E V, by which what is left of (iω − A_r) y = b counts."""

    def norms(self, states: States, omega: Array) -> Array:
        """‖R(iω)‖ for the states y."""
        return np.asarray(norms(states.times(self.rest, omega) + self.first) + self._off(states))

    def squares(self, states: States, omega: Array) -> Array:
        """‖R(iω)‖² in the Frobenius norm."""
        return np.asarray((frobenius(states.times(self.rest, omega) + self.first) + self._off(states)) ** 2)

    def _off(self, states: States) -> float:
        """With what evaluation takes: rounding of the sum of all parts, and of the states in it."""
        sizes = float(np.linalg.norm(self.rest, axis=0) @ states.largest) + float(np.linalg.norm(self.first))
        return self.off + sum_rounding(len(states.A)) * sizes + self.per_state * states.unsolved

    @property
    def at_infinity(self) -> float:
        """‖R‖ there."""
        return spectral_norm(self.first) + self.off


def residuals(space: ResidualSpace, weight: Definite) -> tuple[Residual, Residual]:
    """Those of inputs and of outputs.

    What is left of Q after the solves, ρ = Q − M Z, moves inner products by ‖ρ‖/λ_min at most: that much is added.
    """
    Q = space.Q
    inner, left, size_of_Z = np.empty((Q.shape[1], Q.shape[1])), 0.0, 0.0
    for begin in range(0, Q.shape[1], _COLUMNS):
        own = Q[:, begin : begin + _COLUMNS]
        Z = weight.solve(own)
        inner[:, begin : begin + _COLUMNS] = Q.T @ Z
        left = math.hypot(left, np.linalg.norm(own - weight.matrix @ Z))
        size_of_Z = math.hypot(size_of_Z, np.linalg.norm(Z))
    wrong = left / weight.smallest + sum_rounding(len(Q)) * size_of_Z
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = np.sqrt(np.maximum(values, 0.0) + wrong)[:, None] * vectors.T
    size = space.mass / math.sqrt(weight.smallest)
    return _weighted(space.inputs, root, weight, size), _weighted(space.outputs, root, weight, size)


def euclidean(space: ResidualSpace) -> tuple[Residual, Residual]:
    """The same in the Euclidean norm, without any solve: to choose shifts by."""
    inputs, outputs = space.inputs, space.outputs
    return Residual(inputs.first, inputs.rest, 0.0, 0.0), Residual(outputs.first, outputs.rest, 0.0, 0.0)


def _weighted(own: Combination, root: Array, weight: Definite, per_state: float) -> Residual:
    """‖x‖ in the norm of M⁻¹ is at most ‖x‖/√λ_min."""
    return Residual(root @ own.first, root @ own.rest, own.off / math.sqrt(weight.smallest), per_state)
