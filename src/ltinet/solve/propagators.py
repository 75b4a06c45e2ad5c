"""Exact steps of z' = F z + G u over a time h, for inputs that are constant or straight lines between two samples.

    linear    z(t+h) = e^{Fh} z + h(φ₁ − φ₂)(Fh) G u_k + h φ₂(Fh) G u_{k+1}
    constant  z(t+h) = e^{Fh} z + h φ₁(Fh) G u_k

with φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z², entire functions: λ = 0 and defective blocks are ordinary cases.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.model.matrices import Matrix

_TAYLOR_TERMS = 19  # 1/21! < eps/2: enough for |z| ≤ 1


def phi1(z: NDArray[Any]) -> NDArray[Any]:
    """(e^z − 1)/z, with 1 at z = 0; expm1 keeps the digits that the subtraction would lose."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.asarray(np.where(z == 0.0, 1.0, np.expm1(safe) / safe))


def phi2(z: NDArray[Any]) -> NDArray[Any]:
    """(e^z − 1 − z)/z², with 1/2 at z = 0: its Taylor series for |z| < 1, where the subtraction would lose digits."""
    small = np.abs(z) < 1.0
    series = np.zeros_like(z)
    inside = np.where(small, z, 0.0)
    for power in range(_TAYLOR_TERMS, -1, -1):  # Σ z^k/(k+2)!, innermost factor first
        series = 1.0 + inside * series / (power + 3)
    large = np.where(small, 1.0, z)
    return np.asarray(np.where(small, 0.5 * series, (phi1(large) - 1.0) / large))


class StepMatrices(NamedTuple):
    """P = e^{Fh}, and what u at both ends of the step adds: z(t+h) = P z + begin u_k + end u_{k+1}."""

    P: NDArray[Any]
    begin: NDArray[Any]
    end: NDArray[Any]


def scalar_steps(rates: NDArray[np.complex128], h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Steps of v' = λ v + g for many rates λ (last axis) and many lengths h (first axis), per unit of g."""
    z = rates * h[:, None]
    first = h[:, None] * phi1(z)
    if not linear:
        return StepMatrices(np.exp(z), first, np.zeros_like(first))
    second = h[:, None] * phi2(z)
    return StepMatrices(np.exp(z), first - second, second)


def matrix_steps(F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Steps of z' = F z + G u for many lengths h (first axis): one matrix exponential of the augmented system for each.

    exp([[Fh, Gh, 0], [0, 0, I], [0, 0, 0]]) has e^{Fh}, h φ₁ G and h φ₂ G in its first block row (Van Loan 1978). Gh is
    scaled to the size of I and its size multiplied in at the end; a step of length zero is no special case.
    """
    n, m = G.shape
    size = float(np.max(np.abs(G), initial=0.0)) or 1.0
    lengths = h[:, None, None]
    augmented = np.zeros((len(h), n + 2 * m, n + 2 * m))
    augmented[:, :n, :n], augmented[:, :n, n : n + m] = F * lengths, G / size
    augmented[:, n : n + m, n + m :] = np.eye(m)
    exponentials = linalg.expm(augmented)
    first = exponentials[:, :n, n : n + m] * (size * lengths)
    if not linear:
        return StepMatrices(exponentials[:, :n, :n], first, np.zeros_like(first))
    second = exponentials[:, :n, n + m :] * (size * lengths)
    return StepMatrices(exponentials[:, :n, :n], first - second, second)
