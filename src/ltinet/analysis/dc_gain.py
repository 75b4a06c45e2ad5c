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
from ltinet._util.floating_point import EPS, RANK_CHAIN_GROWTH, Array, rounding_tolerance, summation_tolerance
from ltinet.analysis.resolvent import SparseResolvent
from ltinet.blockdiag.schur import balance_matrix
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

_NEGLIGIBLE_ENTRY = 4.0 * EPS  # entries of unit vectors up to this are set to zero


def dc_gain(system: SystemMatrices) -> Array:
    """Return H(0), in discrete time H(1), p×m, with ±inf where there is an integrator between input and output.

    Without integrators it is D − C A⁻¹ B for A and B as given, which E does not affect. Large sparse models with
    integrators are refused.
    """
    if system.sparse is not None and system.sparse.is_large:
        return SparseResolvent(system, system.sparse).dc_gain()
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
    """Count the poles at zero, in discrete time at one, including poles moved by rounding and hidden modes."""
    with limit_blas_threads(system.n_states):
        A, E = (system.A, None) if system.descriptor is None else (system.descriptor.A, system.descriptor.E)
        at_rest = system.A
        if system.dt is not None:
            identity = np.eye(system.n_states)
            A, at_rest = A - (identity if E is None else E), system.A - identity
        is_regular = _regular_gain(A, np.zeros((len(A), 1)), np.zeros((0, len(A))), np.zeros((0, 1))) is not None
        return 0 if is_regular else _split_zero_eigenvalue(at_rest).n_zero


def _regular_gain(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> Array | None:
    """Return D − C A⁻¹B, zero where it is rounding of its terms; None if A is singular to working precision.

    Rows and columns of A are scaled and X is refined, so that the result is exact for an A whose entries have relative
    perturbations of the size of rounding (Skeel 1980): a velocity at rest is 0, not 6e-20.
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
    if gain is None:  # further eigenvalues are within rounding of zero: the gain is unknown
        gain = np.full(system.D.shape, np.nan)
    N, sizes_N, chain, sizes = parts.A[:n_zero, :n_zero], parts.nilpotent_sizes, B[:n_zero], sizes_B[:n_zero]
    for _ in range(n_zero):  # R_1, R_2, …: the highest order that is not zero decides
        residue, size = C[:, :n_zero] @ chain, sizes_C[:, :n_zero] @ sizes
        is_nonzero = np.abs(residue) > RANK_CHAIN_GROWTH * rounding_tolerance(len(A)) * size
        gain[is_nonzero] = np.copysign(np.inf, residue[is_nonzero])
        # Entries of N are sums as well: one that should be zero is rounding of its terms.
        chain, sizes = N @ chain, np.abs(N) @ sizes + sizes_N @ np.abs(chain)
    return gain


class _ZeroEigenspace(NamedTuple):
    """Splitting A = T diag(N, A₂) T⁻¹ with N nilpotent and A₂ regular; `sizes` bound the terms of T, T⁻¹ and N."""

    n_zero: int
    A: Matrix
    T: Matrix
    T_inv: Matrix
    sizes: Array
    sizes_inv: Array
    nilpotent_sizes: Array


def _split_zero_eigenvalue(A: Matrix) -> _ZeroEigenspace:
    """Split off the eigenvalue zero, chains of integrators included, by null spaces of null spaces.

    Eigenvalues do not serve: those of a rounded double integrator are of the size of √eps.
    """
    units = balance_matrix(A)
    M, n = units.matrix, len(A)
    Q, n_zero = np.eye(n), 0
    blocks: list[tuple[int, int]] = []
    while n_zero < n:
        is_exact = bool((np.count_nonzero(Q, axis=0) == 1).all())
        vectors = _null_space(Q[:, n_zero:].T @ M @ Q[:, n_zero:], rescale=is_exact)
        if not vectors.shape[1]:
            break
        rotation, _ = np.linalg.qr(vectors, mode="complete")
        Q[:, n_zero:] = Q[:, n_zero:] @ rotation
        Q[np.abs(Q) <= _NEGLIGIBLE_ENTRY] = 0.0
        blocks.append((n_zero, n_zero + vectors.shape[1]))
        n_zero = blocks[-1][1]
    # In a column that was rotated all entries have rounding errors of the size of one.
    sizes = np.abs(Q) + np.where(np.count_nonzero(Q, axis=0) == 1, 0.0, 1.0)
    R, sizes_R = Q.T @ M @ Q, sizes.T @ np.abs(M) @ sizes
    for start, stop in blocks:  # exact zeros; computed values are rounding
        R[start:, start:stop] = sizes_R[start:, start:stop] = 0.0
    X = np.zeros((n_zero, n - n_zero))
    if 0 < n_zero < n:  # N X − X A₂ = −R₁₂
        X = np.asarray(linalg.solve_sylvester(R[:n_zero, :n_zero], -R[n_zero:, n_zero:], -R[:n_zero, n_zero:]))
    decoupled = np.array(R)
    decoupled[:n_zero, n_zero:] = 0.0
    to_coupled, to_decoupled = np.eye(n), np.eye(n)
    to_coupled[:n_zero, n_zero:], to_decoupled[:n_zero, n_zero:] = X, -X
    rows, columns = units.scaling[:, None], units.scaling
    return _ZeroEigenspace(
        n_zero,
        decoupled * units.factor,
        rows * (Q @ to_coupled),
        (to_decoupled @ Q.T) / columns,
        rows * (sizes @ np.abs(to_coupled)),
        (np.abs(to_decoupled) @ sizes.T) / columns,
        sizes_R[:n_zero, :n_zero] * units.factor,
    )


def _null_space(M: Matrix, *, rescale: bool) -> Matrix:
    """Return a basis of the null space of M, columns of unit length.

    For exact entries the rank is decided after rows and columns are scaled to one size, which preserves it: beside
    −1e9 an eigenvalue −1e-9 is not zero. After a rotation the scaling would only amplify rounding.
    """
    rows, columns = np.ones(len(M)), np.ones(len(M))
    for _ in range(3 if rescale else 0):  # rows change columns
        rows = rows * _powers_of_two(M / rows[:, None] / columns, axis=1)
        columns = columns * _powers_of_two(M / rows[:, None] / columns, axis=0)
    _, values, Vt = np.linalg.svd(M / rows[:, None] / columns)
    limit = (1.0 if rescale else RANK_CHAIN_GROWTH) * rounding_tolerance(len(M), float(values[0]))
    vectors = Vt[values <= limit].T / columns[:, None]
    vectors /= np.linalg.norm(vectors, axis=0)
    vectors[np.abs(vectors) <= _NEGLIGIBLE_ENTRY] = 0.0
    return np.asarray(vectors)


def _powers_of_two(matrix: Matrix, *, axis: int) -> Array:
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.where(largest > 0.0, np.exp2(np.round(np.log2(np.where(largest > 0.0, largest, 1.0)))), 1.0)
