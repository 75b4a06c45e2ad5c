"""Balanced coordinates of what decays: how much each state is moved and seen (Moore 1981), and all but a few left."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.reduction.separation import Part
from ltinet.tolerances import EPS

DenseMethod = Literal["truncation", "singular_perturbation"]


class Matrices(NamedTuple):
    """A, B, C and D."""

    A: Array
    B: Array
    C: Array
    D: Array


@dataclass(frozen=True, eq=False)
class Balanced:
    """The Hankel singular values of a stable part, and projections W, V onto its balanced states, largest first."""

    part: Part
    hankel_values: Array
    """All of them, descending; those past the numerical rank are rounding."""
    left: Array
    """W (n × k), k the numerical rank."""
    right: Array
    """V (n × k) with WᵀV = I."""

    @property
    def rank(self) -> int:
        """How many values are more than rounding."""
        return int(self.left.shape[1])

    def tail(self, order: int) -> float:
        """Twice the sum of the values left out: in exact arithmetic a bound on the error (Enns, Glover 1984)."""
        return 2.0 * float(np.sum(self.hankel_values[order:]))

    def truncated(self, order: int) -> Matrices:
        """The first states alone: exact at infinite frequency."""
        W, V, part = self.left[:, :order], self.right[:, :order], self.part
        D = np.zeros((len(part.H), part.G.shape[1]))
        return Matrices(W.T @ part.advanced(V), W.T @ part.G, part.H @ V, D)

    def at_rest(self, order: int) -> Matrices:
        """The others at rest, x₂' = 0 (singular perturbation): exact at zero frequency.

        That is the truncation of G(1/s), whose states are balanced by the same coordinates: of F⁻¹, F⁻¹G and −H F⁻¹.
        """
        W, V, part = self.left[:, :order], self.right[:, :order], self.part
        G, H = part.G, part.H
        still = part.integrated(np.hstack([V, G]))
        at_zero = -H @ still[:, order:]
        A, B, C = W.T @ still[:, :order], W.T @ still[:, order:], -H @ still[:, :order]
        if order == 0:
            return Matrices(A, B, C, at_zero)
        factors = linalg.lu_factor(A, check_finite=False)
        B_r = linalg.lu_solve(factors, B, check_finite=False)
        A_r = linalg.lu_solve(factors, np.eye(order), check_finite=False)
        C_r = -linalg.lu_solve(factors, C.T, trans=1, check_finite=False).T
        return Matrices(A_r, B_r, C_r, at_zero + C_r @ B)


def balance_states(part: Part) -> Balanced:
    """Balance a stable part: from factors of its Gramians, never from the Gramians (square-root method)."""
    L, R = part.factors()
    U, values, Vt = np.linalg.svd(R.T @ L, full_matrices=False)  # SciPy before 1.14 refuses empty ones
    values = np.asarray(values[: part.n_states])
    largest = float(np.max(values, initial=0.0))
    rank = int(np.count_nonzero(values > part.n_states * EPS * largest))
    if largest <= part.n_states * EPS * float(np.linalg.norm(np.abs(R).T @ np.abs(L))):
        rank = 0  # inputs do not reach outputs: all of it is what rounding left of the products
    root = np.sqrt(values[:rank])
    return Balanced(part, _whole(values, part.n_states), R @ (U[:, :rank] / root), L @ (Vt[:rank].T / root))


def reduced_matrices(balanced: Balanced, order: int, *, method: DenseMethod) -> Matrices:
    """The reduced stable part by one of both methods."""
    return balanced.truncated(order) if method == "truncation" else balanced.at_rest(order)


def _whole(values: Array, n_states: int) -> Array:
    """One value for every state: those that no factor reaches are zero."""
    return np.concatenate([values, np.zeros(n_states - len(values))])
