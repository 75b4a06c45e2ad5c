"""Systems that the model-reduction and control literature measures itself with, of any size, by formula."""

import numpy as np
from scipy.linalg import block_diag

from ltinet.model.matrices import Matrix
from ltinet.model.parameters import as_count, as_not_negative, as_positive
from ltinet.model.system_matrices import SystemMatrices


def heat_rod(n_states: int = 200, *, diffusivity: float = 0.01) -> SystemMatrices:
    """Build the heat equation on a rod of length 1 with both ends at zero, by second-order finite differences.

    A = diffusivity/h²·tridiag(1, −2, 1) with h = 1/(n + 1) is symmetric, with the eigenvalues
    −4·diffusivity/h²·sin²(kπh/2), k = 1..n. The input heats point n//3 (counted from 0), at one third of the rod; the
    output reads point 2·(n//3), near two thirds. The default values give SLICOT's benchmark `heat-cont` (Chahlaoui &
    Van Dooren 2002).
    """
    n = as_count(n_states, "n_states")
    A = as_positive(diffusivity, "diffusivity") * (n + 1) ** 2 * _second_difference(n)
    B, C = np.zeros((n, 1)), np.zeros((1, n))
    B[n // 3, 0] = 1.0
    C[0, 2 * (n // 3)] = 1.0
    return SystemMatrices(A, B, C)


def mass_spring_damper(
    n_masses: int = 10, *, mass: float = 1.0, stiffness: float = 4.0, damping: float = 0.1
) -> SystemMatrices:
    """Build a chain of equal masses between two walls, a spring and a damper in every gap.

    mass·q″ + damping·L q′ + stiffness·L q = f with L = tridiag(−1, 2, −1); the states are (q, q′), the input a force on
    the first mass, the output the position of the last. Its eigenvalues solve
    mass·s² + μ(damping·s + stiffness) = 0 for μ = 4 sin²(kπ/(2n + 2)), k = 1..n.
    """
    n = as_count(n_masses, "n_masses")
    mass = as_positive(mass, "mass")
    gaps = _second_difference(n)
    A = np.block(
        [
            [np.zeros((n, n)), np.eye(n)],
            [as_not_negative(stiffness, "stiffness") / mass * gaps, as_not_negative(damping, "damping") / mass * gaps],
        ]
    )
    B, C = np.zeros((2 * n, 1)), np.zeros((1, 2 * n))
    B[n, 0] = 1.0 / mass
    C[0, n - 1] = 1.0
    return SystemMatrices(A, B, C)


def penzl(n_real: int = 1000) -> SystemMatrices:
    """Build Penzl's example: three resonances at 100, 200 and 400 rad/s over the real eigenvalues −1, −2, …, −n_real.

    A is block diagonal and normal, B = Cᵀ = (10, …, 10, 1, …, 1) with six tens; 1006 states with the default value
    (Penzl 2006, "Algorithms for model reduction of large dynamical systems"; SLICOT calls it FOM).
    """
    n_real = as_count(n_real, "n_real", minimum=0)
    resonances = [np.array([[-1.0, omega], [-omega, -1.0]]) for omega in (100.0, 200.0, 400.0)]
    A = block_diag(*resonances, np.diag(-np.arange(1.0, n_real + 1.0)))
    B = np.concatenate([np.full(6, 10.0), np.ones(n_real)])
    return SystemMatrices(A, B, B)


def _second_difference(n: int) -> Matrix:
    """tridiag(1, −2, 1), zero beyond both ends."""
    return np.asarray(np.eye(n, k=-1) - 2.0 * np.eye(n) + np.eye(n, k=1), dtype=np.float64)
