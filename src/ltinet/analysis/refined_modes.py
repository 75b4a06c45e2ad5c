"""Modal form of a system with eigenvectors in twice the precision, and bounds on what it lacks.

LAPACK's eigenvalues have errors of eps‖A‖cond, which a pole at −1e-10 beside others at −1 notices in its fifth digit.
Two steps of Newton's method on A X = E X F, with residuals in double-double arithmetic, square this error: with
G = (E X)⁻¹(A X − E X F) in complex coordinates

    λ_i ← λ_i + G_ii,    X ← X (I + Δ),    Δ_ij = G_ij/(λ_j − λ_i).

The matrices F, B and C of the form are then rounded to doubles; `state_error`, `input_error` and `output_error` bound entry
by entry what they lack, rounding and last residual included. Bounds on responses follow from the resolvent of F, which is
known: |(jω − F)⁻¹| ≤ 1/|Re λ| within the block of a pole, in discrete time 1/(1 − |λ|).

A system whose eigenvectors are too ill-conditioned has no such form.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.double_double import commutator, product_difference, product_terms, sum_matrices, two_sum
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.blockdiag.schur import balance_matrix
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

_NEWTON_STEPS = 2  # errors of eps·cond(T) become their squares, and these again: below eps up to cond(T) = 1e12
_MAX_STEP = 0.1  # of Δ_ij: pairs of eigenvalues that are closer stay coupled, and the coupling is part of the error
_ENTRYWISE_ORDER = 32  # as in `_util.double_double`


class ModalForm(NamedTuple):
    """System in complex modal coordinates, and its distance from the system that it was computed from.

    Parameters
    ----------
    poles : ndarray
        Eigenvalues, exact; the conjugate of a pair follows it.
    B, C, D : ndarray
        Rows of inputs, columns of outputs, and feedthrough.
    dt : float or None
        Time step in discrete time.
    hinf_error, h2_error : float
        Bounds on the H∞ and H₂ norms of the difference.
    """

    poles: Complex
    B: Complex
    C: Complex
    D: Matrix
    dt: float | None
    hinf_error: float
    h2_error: float


def refined_modes(system: SystemMatrices) -> ModalForm | None:
    """Return the modal form of a stable system; None if it cannot be certified."""
    n, dt = system.n_states, system.dt
    if n == 0:
        empty = np.zeros(0, dtype=np.complex128)
        return ModalForm(empty, np.zeros((0, system.n_inputs), complex), np.zeros((system.n_outputs, 0), complex),
                         system.D, dt, 0.0, 0.0)  # fmt: skip
    units = balance_matrix(system.A)
    scaling = units.scaling
    if system.descriptor is None:
        E, A, B = None, units.matrix * units.factor, system.B / scaling[:, None]
    else:
        E, A, B = system.descriptor.E * scaling, system.descriptor.A * scaling, system.descriptor.B
    C = system.C * scaling
    try:
        with np.errstate(all="ignore"):
            return _refine(A, B, C, E, system, units.matrix * units.factor)
    except np.linalg.LinAlgError:
        return None


def _refine(
    A: Matrix, B: Matrix, C: Matrix, E: Matrix | None, system: SystemMatrices, start: Matrix
) -> ModalForm | None:
    n, dt = len(A), system.dt
    values, vectors = np.linalg.eig(start)
    keep = values.imag >= 0.0
    values, vectors = values[keep].astype(np.complex128), vectors[:, keep]
    first = np.cumsum(np.concatenate([[0], np.where(values.imag > 0.0, 2, 1)]))
    if first[-1] != n:
        return None
    first, is_pair = first[:-1], values.imag > 0.0
    X, X_low = np.empty((n, n)), np.zeros((n, n))
    X[:, first], X[:, first[is_pair] + 1] = vectors.real, vectors.imag[:, is_pair]
    a, b = (np.array(part) for part in (values.real, values.imag))
    a_low, b_low = np.zeros_like(a), np.zeros_like(b)
    U, U_inv = _complex_coordinates(n, first[is_pair])

    def times(M: Matrix) -> Matrix:
        """Return E M."""
        return M if E is None else E @ M

    for _ in range(_NEWTON_STEPS):
        F, F_low = (_blocks(n, first, is_pair, *parts) for parts in ((a, b), (a_low, b_low)))
        residual = commutator(A, X, F, E=E) + (A @ X_low - times(X_low @ F)) - times(X @ F_low)
        G = U_inv @ _solve(times(X), residual) @ U
        poles = _all_poles(n, first, is_pair, a, b)
        gaps = poles - poles[:, None]
        step = np.where(np.abs(G) <= _MAX_STEP * np.abs(gaps), G / np.where(gaps == 0.0, 1.0, gaps), 0.0)
        np.fill_diagonal(step, 0.0)
        X, X_low = two_sum(X, X_low + X @ (U @ step @ U_inv).real)
        change = G.diagonal()[first]
        a, a_low = two_sum(a, a_low + change.real)
        b, b_low = two_sum(b, b_low + np.where(is_pair, change.imag, 0.0))
    if not (np.isfinite(X).all() and np.isfinite(a).all()) or np.any(is_pair & (b <= 0.0)):
        return None
    F, F_low = (_blocks(n, first, is_pair, *parts) for parts in ((a, b), (a_low, b_low)))
    inverse = _Inverse.of(times(X), times(X_low), n, len(B.T) + 1)
    if inverse is None:
        return None
    # Errors of F, B and C: what the low parts hold, and residuals with bounds on their own rounding.
    rounding, tail = EPS * (n + 8), _tail(n)
    size_X, size_F, size_E = np.abs(X), np.abs(F), np.eye(n) if E is None else np.abs(E)
    low = np.abs(A) @ np.abs(X_low) + size_E @ (np.abs(X_low) @ (size_F + np.abs(F_low)) + size_X @ np.abs(F_low))
    residual = commutator(A, X, F, E=E) + (A @ X_low - times(X_low @ F)) - times(X @ F_low)
    limit = np.abs(residual) * (1.0 + 8.0 * EPS) + 2.0 * rounding * low + size_E @ (np.abs(X_low) @ np.abs(F_low))
    limit += tail * (_outer(A, X) + _outer(size_E @ size_X, F))
    state_error = inverse.times(limit) + np.abs(F_low)
    modal_B, input_error = _input_matrix(times(X), B, X, X_low, E, inverse)
    modal_C, C_low = sum_matrices(product_terms(C, X))
    modal_C, C_low = two_sum(modal_C, C_low + C @ X_low)
    output_error = np.abs(C_low) + tail * _outer(C, X) + rounding * (np.abs(C) @ np.abs(X_low))
    distance = -a if dt is None else 1.0 - np.hypot(a, b) * (1.0 + 4.0 * EPS) - 4.0 * EPS
    errors = _response_errors(
        np.repeat(distance, np.where(is_pair, 2, 1)), first[is_pair], dt, modal_B, modal_C, state_error, input_error,
        output_error,
    )  # fmt: skip
    if errors is None:
        return None
    return ModalForm(_all_poles(n, first, is_pair, a, b), U_inv @ modal_B, modal_C @ U, system.D, dt, *errors)


def _input_matrix(
    EX: Matrix, B: Matrix, X: Matrix, X_low: Matrix, E: Matrix | None, inverse: "_Inverse"
) -> tuple[Matrix, Matrix]:
    """Return (E X)⁻¹ B, refined once and rounded, and a bound on its error."""
    size_E = np.eye(len(X)) if E is None else np.abs(E)

    def times(M: Matrix) -> Matrix:
        return M if E is None else E @ M

    high = _solve(EX, B)
    low = _solve(EX, product_difference(B, X, high, E=E) - times(X_low @ high))
    high, low = two_sum(high, low)
    rest = product_difference(B, X, high, E=E) - times(X_low @ high + X @ low)
    small = size_E @ (np.abs(X_low) @ (np.abs(high) + np.abs(low)) + np.abs(X) @ np.abs(low))
    limit = np.abs(rest) * (1.0 + 8.0 * EPS) + 2.0 * EPS * (len(X) + 8) * small
    limit += size_E @ (np.abs(X_low) @ np.abs(low)) + _tail(len(X)) * (_outer(size_E @ np.abs(X), high) + np.abs(B))
    return high, inverse.times(limit) + np.abs(low)


def _solve(M: Matrix, right: Matrix) -> Matrix:
    return np.asarray(np.linalg.solve(M, right), dtype=np.float64)


def _tail(n: int) -> float:
    """Return a bound on the error of sums of `product_terms`, as a share of n times the largest entries of row and column."""
    if n <= _ENTRYWISE_ORDER:
        return (n + 10) * 2.0**-96
    bits = (53 - math.ceil(math.log2(2 * n))) // 2
    return 64.0 * 2.0 ** (-4 * bits)


def _outer(left: Matrix, right: Matrix) -> Matrix:
    """Return n times the largest entry of each row of `left` times that of each column of `right`."""
    rows, columns = np.abs(left).max(axis=1, initial=0.0), np.abs(right).max(axis=0, initial=0.0)
    return np.asarray(left.shape[1] * rows[:, None] * columns)


def _blocks(n: int, first: Any, is_pair: Any, a: Array, b: Array) -> Matrix:
    F = np.zeros((n, n))
    pairs = first[is_pair]
    F[first, first] = a
    F[pairs + 1, pairs + 1] = a[is_pair]
    F[pairs, pairs + 1], F[pairs + 1, pairs] = b[is_pair], -b[is_pair]
    return F


def _all_poles(n: int, first: Any, is_pair: Any, a: Array, b: Array) -> Complex:
    poles = np.empty(n, dtype=np.complex128)
    poles[first] = a + 1j * b
    poles[first[is_pair] + 1] = a[is_pair] - 1j * b[is_pair]
    return poles


def _complex_coordinates(n: int, pairs: Any) -> tuple[Complex, Complex]:
    """Return U and U⁻¹ with X U complex eigenvectors: columns x₁ ± i x₂ of a pair."""
    U, U_inv = np.eye(n, dtype=np.complex128), np.eye(n, dtype=np.complex128)
    U[pairs, pairs], U[pairs, pairs + 1], U[pairs + 1, pairs], U[pairs + 1, pairs + 1] = 1.0, 1.0, 1j, -1j
    U_inv[pairs, pairs], U_inv[pairs, pairs + 1] = 0.5, -0.5j
    U_inv[pairs + 1, pairs], U_inv[pairs + 1, pairs + 1] = 0.5, 0.5j
    return U, U_inv


class _Inverse(NamedTuple):
    """Bound on |M⁻¹| times matrices, from an approximate inverse Y: M⁻¹ = (I − D)⁻¹ Y with D = I − Y M."""

    Y: Matrix
    defect: float
    """‖D‖∞/(1 − ‖D‖∞)."""

    @classmethod
    def of(cls, M: Matrix, M_low: Matrix, n: int, width: int) -> "_Inverse | None":
        Y = np.linalg.inv(M)
        rounding = EPS * (n + width + 8)
        D = np.abs(np.eye(n) - Y @ M) + np.abs(Y) @ (np.abs(M_low) + 2.0 * rounding * np.abs(M))
        defect = float(D.sum(axis=1).max())
        return cls(np.abs(Y), defect / (1.0 - defect)) if defect < 0.5 else None

    def times(self, limit: Matrix) -> Matrix:
        """Return a bound on |M⁻¹ R| for |R| ≤ limit."""
        product = self.Y @ limit * (1.0 + 1e-12)
        return np.asarray(product + self.defect * product.max(axis=0, initial=0.0))


def _response_errors(
    distance: Array, pairs: Any, dt: float | None, B: Matrix, C: Matrix, *errors: Matrix
) -> tuple[float, float] | None:
    """Return bounds on the H∞ and H₂ norms of the difference; None if the poles might be unstable.

    |R| ≤ K₀ on the boundary, entry by entry, and the resolvent of F + ΔF is bounded by (I − K₀|ΔF|)⁻¹ K₀.
    """
    state_error, input_error, output_error = errors
    n = len(distance)
    if not np.all(distance > 0.0):
        return None

    def blockwise(values: Array) -> Matrix:
        K = np.diag(values)
        K[pairs, pairs + 1] = K[pairs + 1, pairs] = values[pairs]
        return K

    sup = blockwise(1.0 / distance)
    root = blockwise(1.0 / np.sqrt(2.0 * distance if dt is None else distance))
    K = sup @ state_error
    if not float(K.sum(axis=1).max(initial=0.0)) < 0.5:
        return None
    amplify = np.linalg.inv(np.eye(n) - K) * (1.0 + 1e-9)
    norm_B, error_B = np.linalg.norm(B, axis=1), np.linalg.norm(input_error, axis=1)
    norm_C, error_C = np.linalg.norm(C, axis=0), np.linalg.norm(output_error, axis=0)
    y = norm_C @ sup
    results = []
    for weights in (sup, root):
        x, dx = amplify @ (weights @ (norm_B + error_B)), amplify @ (weights @ error_B)
        results.append(float(y @ (state_error @ x) + norm_C @ dx + error_C @ x) * (1.0 + 1e-6))
    return (results[0], results[1]) if np.isfinite(results).all() else None
