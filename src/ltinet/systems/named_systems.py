"""Named systems defined by formula: `named_system("penzl", n_real=500)`.

The systems are those of the paper's four examples (appendix B, with its errata applied and random choices seeded),
benchmarks of the literature on model reduction (heat rod, mass-spring-damper chain, Penzl's example), HiPPO systems,
which remember the history of their input, and sparse heat and convection-diffusion equations on a square plate. Each
function documents its equation, inputs and outputs; `named_system()` lists them. Size parameters are validated before
anything is built.
"""

import inspect
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import block_diag

from ltinet._util.floating_point import Array
from ltinet.errors import InvalidSystemError
from ltinet.systems.hippo import fout_matrices, legs_matrices, legt_matrices
from ltinet.systems.matrices import Matrix, SparseMatrix
from ltinet.systems.system_matrices import SystemMatrices


def validate_count(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`; floats are refused."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidSystemError(f"{name} must be an integer ≥ {minimum}, got {value!r}") from None
    if count < minimum:
        raise InvalidSystemError(f"{name} must be an integer ≥ {minimum}, got {count}")
    return count


def validate_finite(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidSystemError(f"{name} must be a number, got {value!r}") from None
    if not np.isfinite(number):
        raise InvalidSystemError(f"{name} must be finite, got {number}")
    return number


def validate_positive(value: Any, name: str) -> float:
    """Return `value` as a positive float."""
    number = validate_finite(value, name)
    if number <= 0.0:
        raise InvalidSystemError(f"{name} must be greater than 0, got {number}")
    return number


def validate_nonnegative(value: Any, name: str) -> float:
    """Return `value` as a float ≥ 0."""
    number = validate_finite(value, name)
    if number < 0.0:
        raise InvalidSystemError(f"{name} must not be negative, got {number}")
    return number


# Benchmarks of the literature on model reduction.


def heat_rod(n_states: int = 200, *, diffusivity: float = 0.01) -> SystemMatrices:
    """Build the heat equation on a rod of length 1 with both ends at zero, by second-order finite differences.

    A = diffusivity/h²·tridiag(1, −2, 1) with h = 1/(n + 1) is symmetric, with the eigenvalues
    −4·diffusivity/h²·sin²(kπh/2), k = 1..n. The input heats point n//3 (counted from 0), at one third of the rod; the
    output reads point 2·(n//3), near two thirds. The default values give SLICOT's benchmark `heat-cont` (Chahlaoui &
    Van Dooren 2002).
    """
    n = validate_count(n_states, "n_states")
    A = validate_positive(diffusivity, "diffusivity") * (n + 1) ** 2 * _second_difference(n)
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
    n = validate_count(n_masses, "n_masses")
    mass = validate_positive(mass, "mass")
    gaps = _second_difference(n)
    K = validate_nonnegative(stiffness, "stiffness") / mass * gaps
    D = validate_nonnegative(damping, "damping") / mass * gaps
    A = np.block([[np.zeros((n, n)), np.eye(n)], [K, D]])
    B, C = np.zeros((2 * n, 1)), np.zeros((1, 2 * n))
    B[n, 0] = 1.0 / mass
    C[0, n - 1] = 1.0
    return SystemMatrices(A, B, C)


def penzl(n_real: int = 1000) -> SystemMatrices:
    """Build Penzl's example: three resonances at 100, 200 and 400 rad/s over the real eigenvalues −1, −2, …, −n_real.

    A is block diagonal and normal, B = Cᵀ = (10, …, 10, 1, …, 1) with six tens; 1006 states with the default value
    (Penzl 2006, "Algorithms for model reduction of large dynamical systems"; SLICOT calls it FOM).
    """
    n_real = validate_count(n_real, "n_real", minimum=0)
    resonances = [np.array([[-1.0, omega], [-omega, -1.0]]) for omega in (100.0, 200.0, 400.0)]
    A = block_diag(*resonances, np.diag(-np.arange(1.0, n_real + 1.0)))
    B = np.concatenate([np.full(6, 10.0), np.ones(n_real)])
    return SystemMatrices(A, B, B)


# Histories in orthogonal bases; `hippo.py` has the derivations.


def hippo_legs(n_states: int = 16) -> SystemMatrices:
    """Build HiPPO-LegS: Legendre coefficients of the input's history under an exponentially decaying weight.

    A_nk = −√((2n+1)(2k+1)) for n > k, −(n+1) for n = k and 0 for n < k; B_n = √(2n+1); C = I (Gu et al. 2020, 2022).
    """
    n = validate_count(n_states, "n_states")
    return SystemMatrices(*legs_matrices(n), np.eye(n))


def hippo_legt(n_states: int = 16, *, window: float = 1.0) -> SystemMatrices:
    """Build HiPPO-LegT: Legendre coefficients of the input in a sliding window.

    A_nk = −√((2n+1)(2k+1))/window · (1 for n ≥ k, (−1)ⁿ⁻ᵏ for n < k); B_n = √(2n+1)/window; C = I (Gu et al. 2020).
    """
    n, length = validate_count(n_states, "n_states"), validate_positive(window, "window")
    A, B = legt_matrices(n)
    return SystemMatrices(A / length, B / length, np.eye(n))


def hippo_fout(n_states: int = 17, *, window: float = 1.0) -> SystemMatrices:
    """Build HiPPO-FouT: Fourier coefficients of the input in a sliding window.

    State 0 is the mean, states 2m − 1 and 2m are the coefficients of √2 cos and √2 sin of frequency m/window.
    A = (R − 2 p pᵀ)/window and B = 2 p/window with p = (1, √2, 0, √2, 0, …) and rotations R by 2πm; C = I (Gu et al. 2022).
    n_states is odd.
    """
    n, length = validate_count(n_states, "n_states"), validate_positive(window, "window")
    if n % 2 == 0:
        raise InvalidSystemError(
            f"n_states must be odd for hippo_fout, which has a mean and pairs of cosine and sine, got {n}; give {n - 1} or "
            f"{n + 1}."
        )
    A, B = fout_matrices(n)
    return SystemMatrices(A / length, B / length, np.eye(n))


def _second_difference(n: int) -> Matrix:
    """Return tridiag(1, −2, 1), the second difference with zeros beyond both ends."""
    return np.asarray(np.eye(n, k=-1) - 2.0 * np.eye(n) + np.eye(n, k=1), dtype=np.float64)


# Examples of the paper (appendix B), with its errata applied and random choices seeded.

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
    points = validate_count(points, "points")
    h = validate_positive(length, "length") / points
    line = _periodic_shift(points) + _periodic_shift(points).T - 2.0 * np.eye(points)
    identity = np.eye(points)
    A = validate_positive(diffusivity, "diffusivity") / h**2 * (np.kron(identity, line) + np.kron(line, identity))
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
    derivatives are second-order central differences. The points of the top and the bottom row are states that depend on
    the input only (zero rows of A). B = C = I, point (i, j) is state j·points + i.
    """
    points = validate_count(points, "points", minimum=2)
    h = validate_positive(length, "length") / points
    D = validate_positive(diffusivity, "diffusivity") / h**2
    drift_x = validate_finite(velocity_x, "velocity_x") / (2.0 * h)
    drift_y = validate_finite(velocity_y, "velocity_y") / (2.0 * h)
    ahead, identity = _periodic_shift(points), np.eye(points)
    along_x = D * (ahead + ahead.T - 2.0 * identity) - drift_x * (ahead - ahead.T)
    up, down = np.eye(points, k=1), np.eye(points, k=-1)
    along_y = D * (up + down - 2.0 * identity) - drift_y * (up - down)
    inside = np.diag(np.r_[0.0, np.ones(points - 2), 0.0])
    A = np.kron(inside, along_x) + np.kron(inside @ along_y, identity)
    return SystemMatrices(A, np.eye(points**2), np.eye(points**2))


def triangular(n_states: int = 10, *, seed: int = 0) -> SystemMatrices:
    """Build Example 3.2: A upper triangular with the eigenvalues −4 + 2.5⁻ᵏ, k = 0..n−1, that cluster at −4.

    The paper counts k from 1, which does not reproduce its condition numbers. Entries above the diagonal are drawn
    from U[0, 0.1), those of B and C (n×n) from U[0, 0.5) and those of D from U[−0.5, 0), in this order.
    """
    n = validate_count(n_states, "n_states")
    draw = np.random.default_rng(validate_count(seed, "seed", minimum=0)).uniform
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
    generator = np.random.default_rng(validate_count(seed, "seed", minimum=0))
    pairs = np.concatenate([_sunflower(complex(re, im), n_pairs) for re, im, _, n_pairs in BLOBS])
    reals = np.concatenate([np.linspace(re - BLOB_RADIUS, re + BLOB_RADIUS, n_reals) for re, _, n_reals, _ in BLOBS])
    n, first = 2 * len(pairs) + len(reals), 2 * np.arange(len(pairs))
    A = np.triu(generator.uniform(-0.5, 0.0, (n, n)), 1)
    A[np.arange(n), np.arange(n)] = np.concatenate([np.repeat(pairs.real, 2), reals])
    A[first, first + 1], A[first + 1, first] = -pairs.imag, pairs.imag
    B, C = generator.uniform(0.0, 1.0, (n, 10)), generator.uniform(0.0, 1.0, (4, n))
    D = generator.uniform(-1.0, 0.0, (4, 10))
    # Haar distribution: QR of a Gaussian matrix with fixed signs (Stewart 1980).
    Q, triangle = np.linalg.qr(generator.standard_normal((n, n)))
    R = Q * np.sign(np.diag(triangle))
    return SystemMatrices(R.T @ A @ R, R.T @ B, C @ R, D)


def _periodic_shift(points: int) -> Matrix:
    """Return the cyclic shift: each point takes the value of the next one, the last that of the first."""
    return np.roll(np.eye(points), 1, axis=1)


def _sunflower(centre: complex, count: int) -> NDArray[np.complex128]:
    """Spread `count` points evenly over the disc of `BLOB_RADIUS` about `centre`, by the golden angle."""
    k = np.arange(count)
    directions = np.exp(1j * np.pi * (3.0 - np.sqrt(5.0)) * k)
    return np.asarray(centre + BLOB_RADIUS * np.sqrt((k + 0.5) / max(count, 1)) * directions, dtype=np.complex128)


# Heat and transport on a square plate: sparse systems of any size.


def heat_plate(n: int = 400) -> SystemMatrices:
    """Build the heat equation w' = Δw on the unit square with its edges at zero, by five-point differences.

    The grid has g×g inner points with g = round(√n), so g² states: 99,856 for n = 10⁵. With h = 1/(g + 1), the point
    (i, j) at x = (i + 1) h, y = (j + 1) h is state i + g j, counted from 0.
    A = I ⊗ L + L ⊗ I with L = tridiag(1, −2, 1)/h² is sparse and symmetric.

    Input 1 heats the lower left quarter, x, y < 1/2, evenly: 1 at each of its points. Input 2 is one point, the one at
    or below (0.7, 0.6): 1 at this state. Output 1 is the mean over the upper right quarter, x, y > 1/2; output 2 the
    state at or below (0.3, 0.8).
    """
    g = _points_per_edge(n)
    return SystemMatrices(_laplacian(g), *_plate_inputs_and_outputs(g))


def convection_diffusion_plate(n: int = 400, *, V: float = 10.0) -> SystemMatrices:
    """Build w' = Δw − v·∇w on the unit square with its edges at zero, turned by the vortex of a stream function.

    v = (∂ψ/∂y, −∂ψ/∂x) with ψ = V sin πx sin πy/π: |v| is at most V. Grid, inputs and outputs are those of
    `heat_plate`. The transport is written as half the sum of v·∇w and ∇·(v w), by central differences, so that it is
    skew-symmetric: the symmetric part of A is the heat plate's, whatever V. A is sparse and not symmetric.
    """
    g, speed = _points_per_edge(n), validate_finite(V, "V")
    h = 1.0 / (g + 1)
    along = np.pi * h * np.arange(1, g + 1)
    v_x = speed * np.outer(np.cos(along), np.sin(along))  # (y, x)
    v_y = -speed * np.outer(np.sin(along), np.cos(along))
    transport = _skew_transport(v_x, h, axis=1) + _skew_transport(v_y, h, axis=0)
    return SystemMatrices(sparse.csr_array(_laplacian(g) - transport), *_plate_inputs_and_outputs(g))


def _points_per_edge(n: int) -> int:
    """Return the number of points along an edge for about n states."""
    return max(round(math.sqrt(validate_count(n, "n"))), 1)


def _laplacian(g: int) -> SparseMatrix:
    inverse_h2 = float((g + 1) ** 2)
    L = inverse_h2 * sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(g, g))
    identity = sparse.eye_array(g)
    return sparse.csr_array(sparse.kron(identity, L) + sparse.kron(L, identity))


def _skew_transport(v: Array, h: float, *, axis: int) -> SparseMatrix:
    """Discretize (v ∂ + ∂ v)/2 along one axis: ±(v_i + v_j)/(4h) between neighbors."""
    g = len(v)
    states = np.arange(g * g).reshape(g, g)  # (y, x): state i + g j
    first, second = (np.take(states, range(start, start + g - 1), axis=axis).ravel() for start in (0, 1))
    weight = (v.ravel()[first] + v.ravel()[second]) / (4.0 * h)
    upper = sparse.coo_array((weight, (first, second)), shape=(g * g, g * g))
    return sparse.csr_array(upper - upper.T)


def _plate_inputs_and_outputs(g: int) -> tuple[Array, Array]:
    """Return B, g²×2, and C, 2×g²."""
    positions = np.arange(1, g + 1) / (g + 1)
    B, C = np.zeros((g * g, 2)), np.zeros((2, g * g))
    low, high = positions < 0.5, positions > 0.5
    B[_quarter_mask(low), 0], B[_state_index(g, 0.7, 0.6), 1] = 1.0, 1.0
    C[0, _quarter_mask(high)], C[1, _state_index(g, 0.3, 0.8)] = 1.0 / max(int(high.sum()) ** 2, 1), 1.0
    return B, C


def _quarter_mask(is_inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.logical_and.outer(is_inside, is_inside)).ravel()


def _state_index(g: int, x: float, y: float) -> int:
    """Return the state of the point at or below (x, y); the first point inside the edge if there is no such point."""
    i, j = (max(math.floor(position * (g + 1)) - 1, 0) for position in (x, y))
    return i + g * j


NAMED_SYSTEMS: Mapping[str, Callable[..., SystemMatrices]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            blobs,
            convection_diffusion,
            convection_diffusion_plate,
            diffusion,
            heat_plate,
            heat_rod,
            hippo_fout,
            hippo_legs,
            hippo_legt,
            mass_spring_damper,
            penzl,
            triangular,
        )
    }
)
"""Functions that build the named systems; all their parameters have default values."""


def describe_systems() -> dict[str, str]:
    """Return for each name the parameters of the system with their default values, as `n_states=200, seed=0`."""
    return {
        name: ", ".join(
            f"{key}={parameter.default:g}" for key, parameter in inspect.signature(function).parameters.items()
        )
        for name, function in NAMED_SYSTEMS.items()
    }


def build_system(name: str, parameters: Mapping[str, Any]) -> SystemMatrices:
    """Build the system called `name`; raise InvalidSystemError for unknown names and invalid parameters."""
    if name not in NAMED_SYSTEMS:
        raise InvalidSystemError(f"unknown system {name!r}; known are {', '.join(NAMED_SYSTEMS)}")
    function = NAMED_SYSTEMS[name]
    known = inspect.signature(function).parameters
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise InvalidSystemError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(known)}")
    return function(**parameters)
