"""Matrices that break careless decompositions, each by a formula and the same on every call."""

import numpy as np
from scipy import linalg


def haar(n, seed=0):
    """A random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def rotated(A, seed=0):
    """An orthogonally similar matrix."""
    Q = haar(len(A), seed)
    return Q @ A @ Q.T


def jordan(n, value):
    """One Jordan block."""
    return value * np.eye(n) + np.eye(n, k=1)


def pair(a, omega):
    """A normal 2×2 block with the eigenvalues a ± iω."""
    return np.array([[a, omega], [-omega, a]])


def wilkinson_companion():
    """The companion matrix of (x − 1)(x − 2) ⋯ (x − 20)."""
    return linalg.companion(np.poly(np.arange(1.0, 21.0)))


def hippo_legs(n=64):
    """HiPPO-LegS (Gu et al. 2020): lower triangular, eigenvalues −1, …, −n, eigenvectors of condition ~2ⁿ."""
    k = np.arange(n)
    root = np.sqrt(2.0 * k + 1.0)
    return -(np.tril(np.outer(root, root), -1) + np.diag(k + 1.0))


def upwind_chain(n=80):
    """Transport by upwind differences: one Jordan block of order n but for scaling."""
    return (n - 1.0) * (np.eye(n, k=-1) - np.eye(n))


def nearly_real_pairs(omega=1e-9):
    """Two pairs with imaginary part ω, once normal and once nearly defective, coupled to each other and to reals."""
    rng = np.random.default_rng(4)
    coupling = np.triu(rng.standard_normal((8, 8)), 1)
    coupling[[0, 2, 4, 6], [1, 3, 5, 7]] = 0.0
    lopsided = np.array([[-5.0, 1.0], [-(omega**2), -5.0]])
    return linalg.block_diag(pair(-1.0, omega), pair(-3.0, omega), lopsided, np.diag([-7.0, -9.0])) + coupling


def repeated_pairs(*, similar=False):
    """−1 ± 2i three times, semisimple; `similar` hides it by a general similarity."""
    A = linalg.block_diag(pair(-1.0, 2.0), pair(-1.0, 2.0), pair(-1.0, 2.0))
    if not similar:
        return A
    V = np.random.default_rng(5).standard_normal((6, 6))
    return V @ A @ np.linalg.inv(V)


def defective_pairs():
    """One Jordan chain of −1 ± 2i, three long."""
    return np.kron(np.eye(3), pair(-1.0, 2.0)) + np.kron(np.eye(3, k=1), np.eye(2))


def random_dense(n, seed=0):
    """Independent normal entries."""
    return np.random.default_rng(seed).standard_normal((n, n))


def clusters_in_triangle(n=24, seed=0, coupling=0.7):
    """Eigenvalues in four clusters of radius 0.05, strictly upper couplings, hidden by a rotation."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(centre, 0.05, n // 4) for centre in (-1.0, -3.0, -6.0, -6.5)])
    return rotated(np.diag(values) + np.triu(coupling * rng.standard_normal((n, n)), 1), seed)


def skew_symmetric(n=30):
    """A real normal matrix with imaginary eigenvalues."""
    S = random_dense(n, 2)
    return S - S.T


HARD = {
    "jordan_20": jordan(20, 1.0),
    "jordan_20_rotated": rotated(jordan(20, 1.0)),
    "nilpotent_jordan_20": jordan(20, 0.0),
    "three_jordan_5": linalg.block_diag(*[jordan(5, -2.0)] * 3),
    "three_jordan_5_rotated": rotated(linalg.block_diag(*[jordan(5, -2.0)] * 3), 1),
    "jordan_3_rotated": rotated(jordan(3, 2.0), 3),
    "wilkinson_companion": wilkinson_companion(),
    "hippo_legs_64": hippo_legs(64),
    "upwind_chain_80": upwind_chain(80),
    "zero": np.zeros((7, 7)),
    "identity": np.eye(7),
    "one_by_one": np.array([[3.0]]),
    "zero_by_zero": np.zeros((0, 0)),
    "skew_symmetric": skew_symmetric(),
    "orthogonal": haar(31, 3),
    "circulant": linalg.circulant(np.random.default_rng(6).standard_normal(24)),
    "repeated_pairs": repeated_pairs(),
    "repeated_pairs_similar": repeated_pairs(similar=True),
    "defective_pairs": defective_pairs(),
    "defective_pairs_rotated": rotated(defective_pairs(), 2),
    "nearly_real_pairs": nearly_real_pairs(),
    "nearly_real_pairs_rotated": rotated(nearly_real_pairs(), 7),
    "strictly_triangular": np.triu(random_dense(15, 8), 1),
    "rank_one": np.outer(random_dense(10, 9)[0], random_dense(10, 10)[0]),
    "graded": np.diag(10.0 ** np.arange(12)) @ random_dense(12, 11),
    "grcar": np.triu(np.tril(np.ones((60, 60)), 3)) - np.eye(60, k=-1),
    "kahan": np.diag(0.9 ** np.arange(30.0)) @ (np.eye(30) - 0.4 * np.triu(np.ones((30, 30)), 1)),
    "clusters_in_triangle": clusters_in_triangle(),
    "random_50": random_dense(50),
    "random_200": random_dense(200),
}
