"""DC gain H(0), in discrete time H(1), also of systems with integrators.

Near s = 0 every entry is H_ij(s) = R_k/s^k + … + R_1/s + R_0 + O(s). The first nonzero coefficient decides: R_0
itself, or infinity with the sign that H_ij takes as s falls to 0. Integrators that are uncontrollable from an input
or unobservable from an output leave no R_k behind. Without integrators the gain is D − C A⁻¹ B for A and B as given.
In discrete time the expansion is at z = 1.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import EPS, Array, rounding_tolerance, summation_tolerance
from ltinet.analysis.resolvent import SparseResolvent
from ltinet.blockdiag.schur import balance_matrix
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.dc_gain
# The gain at rest, H(0), also where there are integrators: infinite with a sign, unless nobody sees or moves them.
#
# Near s = 0 every entry is H_ij(s) = R_k/s^k + … + R_1/s + R_0 + O(s). The first of these that is not zero tells: R_0
# itself, or infinity with the sign that H_ij takes as s falls to 0. Integrators that an input cannot reach or an output
# does not see leave no R_k behind. In discrete time all of this happens at z = 1.

_ROUNDING_FACTOR = 1e3  # times rounding: what turning M before leaves of a zero, with room
_NEGLIGIBLE = 4.0 * EPS  # an entry of a unit vector that may as well be zero


def dc_gain(system: SystemMatrices) -> Array:
    """H(0) of a system, H(1) in discrete time, p×m, with ±inf where there is an integrator between input and output.

    Without integrators D − C A⁻¹ B, from A and B as they were given: E does not matter at rest. Of a large sparse model
    that is all there is; integrators are refused.
    """
    if system.sparse is not None and system.sparse.is_large:
        return SparseResolvent(system, system.sparse).at_rest()
    with limit_blas_threads(system.n_states):
        descriptor = system.descriptor
        A, B = (system.A, system.B) if descriptor is None else (descriptor.A, descriptor.B)
        E = np.eye(len(A)) if descriptor is None else descriptor.E
        at_rest = A if system.dt is None else A - E
        gain = _regular_gain(at_rest, B, system.C, system.D)
        if gain is not None:
            return gain
        return _with_integrators(system.A if system.dt is None else system.A - np.eye(system.n_states), system)


def count_integrators(system: SystemMatrices) -> int:
    """How many poles at zero a system in continuous time has, those that rounding moved and hidden ones included."""
    with limit_blas_threads(system.n_states):
        A = system.A if system.descriptor is None else system.descriptor.A
        is_regular = _regular_gain(A, np.zeros((len(A), 1)), np.zeros((0, len(A))), np.zeros((0, 1))) is not None
        return 0 if is_regular else _split_zero_eigenvalue(system.A).n_zero


def _regular_gain(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> Array | None:
    """D − C A⁻¹B, zero where it is rounding of its own terms; None where A is singular to working precision.

    Rows and columns of A are scaled and X refined, so that every entry is right for an A whose entries are moved by
    their own rounding (Skeel 1980): a velocity at rest is 0, not 6e-20.
    """
    if not len(A) or not B.shape[1]:
        return D + 0.0
    *_, X, reciprocal_condition, _, _, info = lapack.dgesvx(A, B, fact="E")
    if 0 < info <= len(A) or not reciprocal_condition > len(A) * EPS:
        return None
    gain = D - C @ X
    return np.where(np.abs(gain) <= summation_tolerance(len(A)) * (np.abs(D) + np.abs(C) @ np.abs(X)), 0.0, gain)


def _with_integrators(A: Matrix, system: SystemMatrices) -> Array:
    parts = _split_zero_eigenvalue(A)
    n_zero, T, T_inv = parts.n_zero, parts.T, parts.T_inv
    B, C = T_inv @ system.B, system.C @ T
    sizes_B, sizes_C = parts.sizes_inv @ np.abs(system.B), np.abs(system.C) @ parts.sizes
    rest = parts.A[n_zero:, n_zero:]
    gain = _regular_gain(rest, B[n_zero:], C[:, n_zero:], system.D)
    if gain is None:  # neither zero nor safely something else: nobody knows
        gain = np.full(system.D.shape, np.nan)
    N, sizes_N, chain, sizes = parts.A[:n_zero, :n_zero], parts.nilpotent_sizes, B[:n_zero], sizes_B[:n_zero]
    for _ in range(n_zero):  # R_1, R_2, …: the highest order that is there decides
        residue, size = C[:, :n_zero] @ chain, sizes_C[:, :n_zero] @ sizes
        is_there = np.abs(residue) > _ROUNDING_FACTOR * rounding_tolerance(len(A)) * size
        gain[is_there] = np.copysign(np.inf, residue[is_there])
        # Entries of N are sums, too: one that should be zero is rounding of its terms, not of itself.
        chain, sizes = N @ chain, np.abs(N) @ sizes + sizes_N @ np.abs(chain)
    return gain


class _ZeroEigenspace(NamedTuple):
    """A = T diag(N, A₂) T⁻¹ with N nilpotent and A₂ regular; `sizes` bound the terms that T, T⁻¹ and N are made of."""

    n_zero: int
    A: Matrix
    T: Matrix
    T_inv: Matrix
    sizes: Array
    sizes_inv: Array
    nilpotent_sizes: Array


def _split_zero_eigenvalue(A: Matrix) -> _ZeroEigenspace:
    """Split off the eigenvalue zero, chains of integrators included, by null spaces of null spaces.

    Eigenvalues would not do: a double integrator that was rounded has two of the size of √eps.
    """
    units = balance_matrix(A)
    M, n = units.matrix, len(A)
    Q, n_zero = np.eye(n), 0
    below: list[tuple[int, int]] = []
    while n_zero < n:
        is_exact = bool((np.count_nonzero(Q, axis=0) == 1).all())
        vectors = _null_space(Q[:, n_zero:].T @ M @ Q[:, n_zero:], rescale=is_exact)
        if not vectors.shape[1]:
            break
        turn, _ = np.linalg.qr(vectors, mode="complete")
        Q[:, n_zero:] = Q[:, n_zero:] @ turn
        Q[np.abs(Q) <= _NEGLIGIBLE] = 0.0
        below.append((n_zero, n_zero + vectors.shape[1]))
        n_zero = below[-1][1]
    # All entries of a column that was turned are blurred.
    sizes = np.abs(Q) + np.where(np.count_nonzero(Q, axis=0) == 1, 0.0, 1.0)
    R, sizes_R = Q.T @ M @ Q, sizes.T @ np.abs(M) @ sizes
    for start, stop in below:  # what null spaces of null spaces leave there is rounding
        R[start:, start:stop] = sizes_R[start:, start:stop] = 0.0
    X = _decoupling(R, n_zero)
    decoupled = np.array(R)
    decoupled[:n_zero, n_zero:] = 0.0
    into, out_of = np.eye(n), np.eye(n)
    into[:n_zero, n_zero:], out_of[:n_zero, n_zero:] = X, -X
    rows, columns = units.scaling[:, None], units.scaling
    return _ZeroEigenspace(
        n_zero,
        decoupled * units.factor,
        rows * (Q @ into),
        (out_of @ Q.T) / columns,
        rows * (sizes @ np.abs(into)),
        (np.abs(out_of) @ sizes.T) / columns,
        sizes_R[:n_zero, :n_zero] * units.factor,
    )


def _decoupling(R: Matrix, n_zero: int) -> Matrix:
    """X with N X − X A₂ = −R₁₂."""
    if n_zero in (0, len(R)):
        return np.zeros((n_zero, len(R) - n_zero))
    N, rest = R[:n_zero, :n_zero], R[n_zero:, n_zero:]
    return np.asarray(linalg.solve_sylvester(N, -rest, -R[:n_zero, n_zero:]), dtype=np.float64)


def _null_space(M: Matrix, *, rescale: bool) -> Matrix:
    """Orthonormal columns that M takes to zero.

    The rank of numbers that are exact is looked for after rows and columns are brought to one size, which changes no
    rank: beside −1e9 the eigenvalue −1e-9 is no zero. After a turn this would only enlarge rounding.
    """
    rows, columns = np.ones(len(M)), np.ones(len(M))
    for _ in range(3 if rescale else 0):  # rows change columns
        rows = rows * _sizes(M / rows[:, None] / columns, axis=1)
        columns = columns * _sizes(M / rows[:, None] / columns, axis=0)
    _, values, Vt = np.linalg.svd(M / rows[:, None] / columns)
    limit = (1.0 if rescale else _ROUNDING_FACTOR) * rounding_tolerance(len(M), float(values[0]))
    vectors = Vt[values <= limit].T / columns[:, None]
    vectors /= np.linalg.norm(vectors, axis=0)
    vectors[np.abs(vectors) <= _NEGLIGIBLE] = 0.0
    return np.asarray(vectors)


def _sizes(matrix: Matrix, *, axis: int) -> Array:
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.where(largest > 0.0, np.exp2(np.round(np.log2(np.where(largest > 0.0, largest, 1.0)))), 1.0)
