"""The gain at rest, H(0), also where there are integrators: infinite with a sign, unless nobody sees or moves them.

Near s = 0 every entry is H_ij(s) = R_k/s^k + … + R_1/s + R_0 + O(s). The first of these that is not zero tells: R_0
itself, or infinity with the sign that H_ij takes as s falls to 0. Integrators that an input cannot reach or an output
does not see leave no R_k behind. In discrete time all of this happens at z = 1.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.decompose.balance import balance
from ltinet.errors import InvalidSystemError
from ltinet.model.descriptor import eliminate_descriptor
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.threads import threads_for
from ltinet.tolerances import EPS, rounding, sum_rounding


def dc_gain(system: SystemMatrices) -> Array:
    """H(0) of a system, H(1) in discrete time, p×m, with ±inf where there is an integrator between input and output.

    Without integrators D − C A⁻¹ B, from A and B as they were given: E does not matter at rest.
    """
    with threads_for(system.n_states):
        descriptor = system.descriptor
        A, B = (system.A, system.B) if descriptor is None else (descriptor.A, descriptor.B)
        E = np.eye(len(A)) if descriptor is None else descriptor.E
        at_rest = A if system.dt is None else A - E
        try:
            return _at_rest(at_rest, B, system.C, system.D)
        except InvalidSystemError:  # it is singular: there are integrators
            pass
        own = system.A if system.dt is None else system.A - np.eye(system.n_states)
        return _with_integrators(own, system)


def _at_rest(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> Array:
    """D − C A⁻¹B, zero where rounding could not tell it from that: a velocity at rest is 0, not 6e-20.

    Rounding of X = A⁻¹B moves C X by up to |C A⁻¹| (|A||X| + |B|) units.
    """
    X = eliminate_descriptor(A, B)
    gain = D - C @ X
    left = np.abs(eliminate_descriptor(np.ascontiguousarray(A.T), C.T)).T
    terms = np.abs(D) + np.abs(C) @ np.abs(X) + left @ (np.abs(A) @ np.abs(X) + np.abs(B))
    return np.where(np.abs(gain) <= sum_rounding(len(A)) * terms, 0.0, gain)


def _with_integrators(A: Matrix, system: SystemMatrices) -> Array:
    parts = _at_zero(A)
    n_zero, T, T_inv = parts.n_zero, parts.T, parts.T_inv
    B, C = T_inv @ system.B, system.C @ T
    sizes_B, sizes_C = parts.sizes_inv @ np.abs(system.B), np.abs(system.C) @ parts.sizes
    rest = parts.A[n_zero:, n_zero:]
    gain = _at_rest(rest, B[n_zero:], C[:, n_zero:], system.D)
    N, chain, sizes = parts.A[:n_zero, :n_zero], B[:n_zero], sizes_B[:n_zero]
    for _ in range(n_zero):  # R_1, R_2, …: the highest order that is there decides
        residue, size = C[:, :n_zero] @ chain, sizes_C[:, :n_zero] @ sizes
        is_there = np.abs(residue) > 100.0 * rounding(len(A)) * size
        gain[is_there] = np.copysign(np.inf, residue[is_there])
        chain, sizes = N @ chain, np.abs(N) @ sizes
    return gain


class _AtZero(NamedTuple):
    """A = T diag(N, A₂) T⁻¹ with N nilpotent and A₂ regular; `sizes` bound the terms that T and T⁻¹ are made of."""

    n_zero: int
    A: Matrix
    T: Matrix
    T_inv: Matrix
    sizes: Array
    sizes_inv: Array


def _at_zero(A: Matrix) -> _AtZero:
    """Split off the eigenvalue zero, chains of integrators included, by null spaces of null spaces.

    Eigenvalues would not do: a double integrator that was rounded has two of the size of √eps.
    """
    units = balance(A)
    M, n = units.matrix, len(A)
    Q, n_zero = np.eye(n), 0
    below: list[tuple[int, int]] = []
    while n_zero < n:
        magnitude = np.abs(Q[:, n_zero:])
        noise = rounding(n) * (magnitude.T @ np.abs(M) @ magnitude)
        vectors = _null_space(Q[:, n_zero:].T @ M @ Q[:, n_zero:], noise if n_zero else EPS * np.abs(M))
        if not vectors.shape[1]:
            break
        turn, _ = np.linalg.qr(vectors, mode="complete")
        turn[np.abs(turn) <= rounding(n)] = 0.0
        Q[:, n_zero:] = Q[:, n_zero:] @ turn
        below.append((n_zero, n_zero + vectors.shape[1]))
        n_zero = below[-1][1]
    R = Q.T @ M @ Q
    for start, stop in below:  # what null spaces of null spaces leave there is rounding
        R[start:, start:stop] = 0.0
    X = _decoupling(R, n_zero)
    decoupled = np.array(R)
    decoupled[:n_zero, n_zero:] = 0.0
    into, out_of = np.eye(n), np.eye(n)
    into[:n_zero, n_zero:], out_of[:n_zero, n_zero:] = X, -X
    rows, columns = units.scaling[:, None], units.scaling
    return _AtZero(
        n_zero,
        decoupled * units.factor,
        rows * (Q @ into),
        (out_of @ Q.T) / columns,
        rows * (np.abs(Q) @ np.abs(into)),
        (np.abs(out_of) @ np.abs(Q).T) / columns,
    )


def _decoupling(R: Matrix, n_zero: int) -> Matrix:
    """X with N X − X A₂ = −R₁₂."""
    if n_zero in (0, len(R)):
        return np.zeros((n_zero, len(R) - n_zero))
    N, rest = R[:n_zero, :n_zero], R[n_zero:, n_zero:]
    return np.asarray(linalg.solve_sylvester(N, -rest, -R[:n_zero, n_zero:]), dtype=np.float64)


def _null_space(M: Matrix, noise: Matrix) -> Matrix:
    """Orthonormal columns that M takes to zero, entries below their noise being none.

    The rank is looked for after rows and columns are brought to one size, which changes no rank: beside −1e9 the
    eigenvalue −1e-9 is no zero.
    """
    cleaned = np.where(np.abs(M) <= noise, 0.0, M)
    rows, columns = _sizes(cleaned, axis=1), _sizes(cleaned, axis=0)
    for _ in range(3):  # rows change columns
        rows = rows * _sizes(cleaned / rows[:, None] / columns, axis=1)
        columns = columns * _sizes(cleaned / rows[:, None] / columns, axis=0)
    scaled = cleaned / rows[:, None] / columns
    _, values, Vt = np.linalg.svd(scaled)
    limit = max(rounding(len(M), float(values[0])), float(np.linalg.norm(noise / rows[:, None] / columns)))
    vectors = Vt[values <= limit].T / columns[:, None]
    vectors[np.abs(vectors) <= rounding(len(M)) * np.abs(vectors).max(axis=0, initial=0.0)] = 0.0
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


def _sizes(matrix: Matrix, *, axis: int) -> Array:
    largest = np.abs(matrix).max(axis=axis, initial=0.0)
    return np.where(largest > 0.0, np.exp2(np.round(np.log2(np.where(largest > 0.0, largest, 1.0)))), 1.0)
