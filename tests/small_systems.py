"""Sixty state matrices with up to twelve states: every kind of spectrum that a simulation must get right."""

import numpy as np
from scipy.linalg import block_diag, toeplitz

from hard_matrices import jordan, pair, rotated


def mixed(seed, n_real, n_pairs, coupling, *, shift=0.0):
    """Reals and pairs, coupled from the later to the earlier."""
    rng = np.random.default_rng(seed)
    blocks = [np.array([[-rng.uniform(0.2, 3.0)]]) for _ in range(n_real)]
    blocks += [pair(-rng.uniform(0.1, 1.0), rng.uniform(0.5, 5.0)) for _ in range(n_pairs)]
    A = block_diag(*blocks)
    return A + coupling * np.triu(rng.uniform(-1.0, 1.0, A.shape), 2) + shift * np.eye(len(A))


def similar(A, seed):
    """The same system in other coordinates, with a condition number of some tens."""
    S = np.random.default_rng(seed).standard_normal(A.shape)
    return np.linalg.solve(S, A @ S)


def nearly_equal(distance, n=3):
    """A coupled layer whose real eigenvalues are −1, −1 − distance and so on."""
    return np.diag(-1.0 - distance * np.arange(n)) + np.triu(np.ones((n, n)), 1)


def jordan_of_pairs(a, omega, count):
    """One chain of equal pairs."""
    return np.kron(np.eye(count), pair(a, omega)) + np.kron(np.eye(count, k=1), np.eye(2))


def companion(*coefficients):
    """The matrix of the polynomial with these coefficients, the constant first, and leading coefficient 1."""
    A = np.eye(len(coefficients), k=1)
    A[-1] = -np.array(coefficients, dtype=float)
    return A


REAL = {
    "real": np.diag([-0.5, -1.0, -2.0]),
    "one real": np.array([[-0.7]]),
    "eight reals": similar(np.diag(-np.arange(1.0, 9.0)), 4),
    "twelve reals, rotated": rotated(np.diag(-np.linspace(0.1, 4.0, 12)), 1),
    "equal reals, rotated": rotated(np.diag([-1.0] * 3 + [-2.0] * 2), 2),
    "upwind chain": toeplitz(np.r_[-1.0, 1.0, np.zeros(10)], np.r_[-1.0, np.zeros(11)]),
    "reals 1e-6 apart": nearly_equal(1e-6),
    "reals 1e-9 apart": nearly_equal(1e-9, 5),
    "reals 1e-13 apart": nearly_equal(1e-13),
    "almost critical damping": np.array([[0.0, 1.0], [-1.0, -2.0 + 1e-9]]),
    "critical damping": np.array([[0.0, 1.0], [-1.0, -2.0]]),
}
COMPLEX = {
    "complex": block_diag(pair(-0.1, 2.0), pair(-0.3, 5.0)),
    "undamped": pair(0.0, 3.0),
    "almost undamped": block_diag(pair(-1e-9, 1.0), pair(-1e-6, 4.0)),
    "six pairs": mixed(20, 0, 6, 0.0),
    "six pairs, rotated": rotated(mixed(21, 0, 6, 0.0), 3),
    "coupled pairs": mixed(3, 0, 4, 1.0),
    "pairs 1e-7 apart, coupled": block_diag(pair(-0.2, 1.0), pair(-0.2, 1.0 + 1e-7)) + np.eye(4, k=2),
    "skew-symmetric": np.triu(np.ones((6, 6)), 1) - np.tril(np.ones((6, 6)), -1),
    "lopsided pairs": block_diag([[-0.5, 100.0], [-0.01, -0.5]], [[-1.0, 0.01], [-400.0, -1.0]]),
    "companion": companion(4.0, 6.0, 5.0, 2.0),
}
MIXED = {
    "mixed": mixed(0, 2, 2, 0.0),
    "mixed, skew coordinates": similar(mixed(1, 2, 2, 0.0), 1),
    "coupled": mixed(2, 3, 2, 1.0),
    "coupled, n = 12": mixed(5, 4, 4, 0.5),
    "coupled, rotated": rotated(mixed(6, 3, 3, 1.0), 6),
    "coupled, skew coordinates": similar(mixed(7, 2, 3, 0.3), 7),
    "one real, five pairs": mixed(8, 1, 5, 0.2),
    "ten reals, one pair": mixed(9, 10, 1, 0.2),
    "states in units 1e6 apart": np.diag([1e3, 1.0, 1e-3, 1.0, 1e3])
    @ mixed(10, 1, 2, 1.0)
    @ np.diag([1e-3, 1.0, 1e3, 1.0, 1e-3]),
    "companion, n = 6": companion(1.0, 3.0, 6.0, 7.0, 6.0, 3.0),
}
JORDAN = {
    "jordan 2": jordan(2, -1.0),
    "jordan 4": jordan(4, -0.7),
    "jordan 8": jordan(8, -1.5),
    "jordan, skew coordinates": similar(jordan(3, -1.0), 5),
    "jordan 5, rotated": rotated(jordan(5, -0.5), 5),
    "two jordan blocks": block_diag(jordan(3, -1.0), jordan(2, -1.0)),
    "jordan of pairs": jordan_of_pairs(-0.2, 1.5, 2),
    "jordan of three pairs": jordan_of_pairs(-0.4, 1.0, 3),
}
UNSTABLE = {
    "unstable real": np.diag([0.4, -1.0]),
    "unstable pair": block_diag(pair(0.3, 2.0), [[-1.0]]),
    "unstable jordan": jordan(3, 0.2),
    "unstable, coupled": mixed(11, 2, 2, 1.0, shift=0.6),
    "unstable, skew coordinates": similar(mixed(12, 3, 1, 0.0, shift=0.5), 12),
    "inverted pendulum": np.array([[0.0, 1.0], [2.0, -0.1]]),
}
ZERO = {
    "integrator": np.zeros((1, 1)),
    "double integrator": jordan(2, 0.0),
    "five integrators in a chain": jordan(5, 0.0),
    "four integrators beside each other": np.zeros((4, 4)),
    "integrator and decay": np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -2.0]]),
    "integrator of an oscillator": block_diag([[0.0]], pair(0.0, 2.0)) + np.eye(3, k=1) * [0.0, 1.0, 0.0],
    "kernel, rotated": rotated(np.diag([0.0, 0.0, -1.0, -3.0]), 8),
}
STIFF = {
    "stiff reals": np.diag([-1e6, -1.0, -1e3]),
    "stiff pair": block_diag(pair(-1.0, 1e3), [[-1e-3]], [[-1e6]]),
    "stiff and coupled": np.array([[-1.0, 2.0, 0.5], [0.0, -1e3, 1.0], [0.0, 0.0, -1e6]]),
    "stiff triangle": np.diag([-1.0, -1e2, -1e4, -1e6]) + np.triu(np.ones((4, 4)), 1),
    "stiff pair and slow pair": block_diag(pair(-1e6, 1e5), pair(-0.1, 1.0)),
    "fast oscillation": block_diag(pair(-1.0, 1e6), [[-1.0]]),
    "overdamped": np.array([[0.0, 1.0], [-1e6, -1e6]]),
    "stiff chain": np.diag([-1.0, -1e2, -1e4, -1e6]) + np.diag([1.0, 1e2, 1e4], -1),
}
SMALL_SYSTEMS = REAL | COMPLEX | MIXED | JORDAN | UNSTABLE | ZERO | STIFF

# Beyond what a decomposition in double precision can keep to 1e-13; they have bounds of their own.
HIDDEN_SCALES = {
    "stiff, rotated": rotated(np.diag([-1.0, -1e2, -1e4, -1e6]), 9),
    "stiff pair and slow pair, rotated": rotated(block_diag(pair(-1e6, 1e5), pair(-0.1, 1.0)), 10),
}
