"""Norms of residuals as functions of frequency with known poles, in the norm of the inverse of a definite matrix."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.reduction.definite import Definite
from ltinet.reduction.projection import Combination, ResidualSpace
from ltinet.reduction.supremum import Complex
from ltinet.tolerances import sum_rounding


@dataclass(frozen=True, eq=False)
class Residual:
    """R(iω) = first + rest·y(iω) in coordinates in which its norm is the Euclidean one: (k × m) and (k × N)."""

    first: Array
    rest: Array

    def of(self, states: Complex) -> Complex:
        """The residual for states `(K, N, m)`: `(K, k, m)`."""
        return np.asarray(self.first + self.rest @ states)


def residuals(space: ResidualSpace, weight: Definite) -> tuple[Residual, Residual]:
    """Those of inputs and of outputs; rows at the end stand for what rounding took from vectors.

    What is left of Q after the solves, ρ = Q − M Z, moves inner products by ‖ρ‖/λ_min at most: that much is added.
    """
    Q = space.Q
    Z = weight.solve(Q)
    wrong = float(np.linalg.norm(Q - weight.matrix @ Z)) / weight.smallest
    wrong += sum_rounding(len(Q)) * float(np.linalg.norm(Z))
    inner = Q.T @ Z
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = np.sqrt(np.maximum(values, 0.0) + wrong)[:, None] * vectors.T
    return _weighted(space.inputs, root, weight), _weighted(space.outputs, root, weight)


def euclidean(space: ResidualSpace) -> tuple[Residual, Residual]:
    """The same in the Euclidean norm, without any solve: to choose shifts by."""
    own = np.eye(space.Q.shape[1])
    return Residual(own @ space.inputs.first, own @ space.inputs.rest), Residual(
        own @ space.outputs.first, own @ space.outputs.rest
    )


def _weighted(own: Combination, root: Array, weight: Definite) -> Residual:
    """‖x‖ in the norm of M⁻¹ is at most ‖x‖/√λ_min; the sum over columns at most the root of their number's norm."""
    n_first, n_rest = len(own.off_first), len(own.off_rest)
    share = np.sqrt((n_first + n_rest) / weight.smallest)
    rows = np.vstack([root @ own.first, np.diag(share * own.off_first), np.zeros((n_rest, n_first))])
    rest = np.vstack([root @ own.rest, np.zeros((n_first, n_rest)), np.diag(share * own.off_rest)])
    return Residual(rows, rest)
