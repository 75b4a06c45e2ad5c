"""The systems of the paper's four examples (appendix B), with its errata applied and its random choices seeded."""

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix
from ltinet.model.parameters import as_count, as_finite, as_positive
from ltinet.model.system_matrices import SystemMatrices

# Example 3.3 publishes its eigenvalues only as a picture. These six blobs reproduce what the text says about it: 44
# real eigenvalues and 45 pairs; layers of first order only, of second order only and mixed; cond(T) = 11.2 for the
# blobs and 7.6e6 for seven clusters. Measured with orthonormal block bases and K-means, seed 0: 10.58 and 3.4e6; seeds
# 0..7: 10.4 to 11.0 and 3e5 to 3e7.
BLOB_RADIUS = 0.1
BLOBS = (  # real and imaginary part of the centre, number of real eigenvalues, number of pairs
    (-1.0, 0.0, 16, 0),
    (-9.0, 0.0, 14, 0),
    (-3.0, 5.0, 0, 15),
    (-8.0, 6.0, 0, 15),
    (-5.0, 0.12, 7, 8),
    (-13.0, 0.12, 7, 7),
)


def diffusion(points: int = 20, *, length: float = 10.0, diffusivity: float = 0.8) -> SystemMatrices:
    """Build Example 3.1: ∂T/∂t = diffusivity·∇²T + u on a square periodic grid of points×points, h = length/points.

    B = C = I, point (i, j) is state j·points + i. A is symmetric with the eigenvalues
    −4·diffusivity/h²·(sin²(πk/points) + sin²(πl/points)), k, l = 0..points−1.
    """
    points = as_count(points, "points")
    h = as_positive(length, "length") / points
    line = _periodic_shift(points) + _periodic_shift(points).T - 2.0 * np.eye(points)
    identity = np.eye(points)
    A = as_positive(diffusivity, "diffusivity") / h**2 * (np.kron(identity, line) + np.kron(line, identity))
    return SystemMatrices(A, np.eye(points**2), np.eye(points**2))


def convection_diffusion(
    points: int = 20,
    *,
    length: float = 10.0,
    diffusivity: float = 1.4,
    velocity_x: float = 0.6,
    velocity_y: float = 0.0,
) -> SystemMatrices:
    """Build Example SM2.2: ∂T/∂t = diffusivity·∇²T − velocity·∇T + u, periodic in x, zero at the top and the bottom.

    The grid is points×points with h = length/points in both directions, so the domain is [0, length]×[0, length − h];
    derivatives are second-order central differences. The points of the top and the bottom row stay as states that
    nothing but the input moves (zero rows of A). B = C = I, point (i, j) is state j·points + i.
    """
    points = as_count(points, "points", minimum=2)
    h = as_positive(length, "length") / points
    D = as_positive(diffusivity, "diffusivity") / h**2
    drift_x, drift_y = as_finite(velocity_x, "velocity_x") / (2.0 * h), as_finite(velocity_y, "velocity_y") / (2.0 * h)
    ahead, identity = _periodic_shift(points), np.eye(points)
    along_x = D * (ahead + ahead.T - 2.0 * identity) - drift_x * (ahead - ahead.T)
    up, down = np.eye(points, k=1), np.eye(points, k=-1)
    along_y = D * (up + down - 2.0 * identity) - drift_y * (up - down)
    inside = np.diag(np.r_[0.0, np.ones(points - 2), 0.0])
    A = np.kron(inside, along_x) + np.kron(inside @ along_y, identity)
    return SystemMatrices(A, np.eye(points**2), np.eye(points**2))


def triangular(n_states: int = 10, *, seed: int = 0) -> SystemMatrices:
    """Build Example 3.2: A upper triangular with the eigenvalues −4 + 2.5⁻ᵏ, k = 0..n−1, that crowd towards −4.

    The paper counts k from 1, with which its own condition numbers cannot be had. Entries above the diagonal are drawn
    from U[0, 0.1), those of B and C (n×n) from U[0, 0.5) and those of D from U[−0.5, 0), in this order.
    """
    n = as_count(n_states, "n_states")
    draw = np.random.default_rng(as_count(seed, "seed", minimum=0)).uniform
    A = np.triu(draw(0.0, 0.1, (n, n)), 1) + np.diag(-4.0 + 2.5 ** -np.arange(n, dtype=np.float64))
    return SystemMatrices(A, draw(0.0, 0.5, (n, n)), draw(0.0, 0.5, (n, n)), draw(-0.5, 0.0, (n, n)))


def blobs(*, seed: int = 0) -> SystemMatrices:
    """Build Example 3.3: 134 states, ten inputs, four outputs, eigenvalues in the six `BLOBS`, hidden by a rotation.

    A is block upper triangular, the 45 pairs first as [[a, −b], [b, a]], then the 44 reals; entries above the blocks
    are drawn from U[−0.5, 0), B and C from U[0, 1), D from U[−1, 0). With a Haar-distributed orthogonal R the system is
    RᵀAR, RᵀB, CR and D. The eigenvalues are the same for every seed: a blob's reals lie evenly on a stretch of the real
    axis, its pairs in a sunflower pattern, no two closer than 0.013. A is far from normal: rounding in the rotation
    moves them by 1e-5 to 1e-3, and this spacing keeps reals real.
    """
    generator = np.random.default_rng(as_count(seed, "seed", minimum=0))
    pairs = np.concatenate([_sunflower(complex(re, im), n_pairs) for re, im, _, n_pairs in BLOBS])
    reals = np.concatenate([np.linspace(re - BLOB_RADIUS, re + BLOB_RADIUS, n_reals) for re, _, n_reals, _ in BLOBS])
    n, first = 2 * len(pairs) + len(reals), 2 * np.arange(len(pairs))
    A = np.triu(generator.uniform(-0.5, 0.0, (n, n)), 1)
    A[np.arange(n), np.arange(n)] = np.concatenate([np.repeat(pairs.real, 2), reals])
    A[first, first + 1], A[first + 1, first] = -pairs.imag, pairs.imag
    B, C = generator.uniform(0.0, 1.0, (n, 10)), generator.uniform(0.0, 1.0, (4, n))
    D = generator.uniform(-1.0, 0.0, (4, 10))
    R = _haar_orthogonal(generator, n)
    return SystemMatrices(R.T @ A @ R, R.T @ B, C @ R, D)


def _periodic_shift(points: int) -> Matrix:
    """Take each point's value from the next one, the last point's from the first."""
    return np.roll(np.eye(points), 1, axis=1)


def _sunflower(centre: complex, count: int) -> NDArray[np.complex128]:
    """Spread `count` points evenly over the disc of `BLOB_RADIUS` about `centre`, by the golden angle."""
    k = np.arange(count)
    directions = np.exp(1j * np.pi * (3.0 - np.sqrt(5.0)) * k)
    return np.asarray(centre + BLOB_RADIUS * np.sqrt((k + 0.5) / max(count, 1)) * directions, dtype=np.complex128)


def _haar_orthogonal(generator: np.random.Generator, n: int) -> Matrix:
    """QR of a Gaussian matrix, signs fixed so that the distribution is Haar's (Stewart 1980)."""
    Q, R = np.linalg.qr(generator.standard_normal((n, n)))
    return np.asarray(Q * np.sign(np.diag(R)), dtype=np.float64)
