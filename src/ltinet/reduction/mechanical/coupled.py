"""Modes that dampings couple: ξ'' + Δ ξ' + diag(k) ξ = b u, y = c ξ, with a full Δ."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.reduction.balancing import Matrices


@dataclass(frozen=True, eq=False)
class Coupled:
    """Stiffnesses (N,), dampings between modes (N × N), B (N × m) and C (p × N)."""

    stiffness: Array
    between: Array
    B: Array
    C: Array

    def taken(self, which: NDArray[np.intp]) -> "Coupled":
        """Some of the modes, the others at rest."""
        return Coupled(self.stiffness[which], self.between[np.ix_(which, which)], self.B[which], self.C[:, which])

    @property
    def matrices(self) -> Matrices:
        """First-order states: all ξ, then all ξ'/w with w near √k and a power of two, so that nothing is rounded."""
        N, (p, m) = len(self.stiffness), (len(self.C), self.B.shape[1])
        units = np.ldexp(1.0, np.rint(0.5 * np.log2(self.stiffness)).astype(np.intp))
        below = [-np.diag(self.stiffness / units), -self.between * units / units[:, None]]
        A = np.block([[np.zeros((N, N)), np.diag(units)], below])
        B, C = np.vstack([np.zeros((N, m)), self.B / units[:, None]]), np.hstack([self.C, np.zeros((p, N))])
        return Matrices(A, B, C, np.zeros((p, m)))
