"""The distance between the transfer functions of a network and of its system, in units of the bound that it must keep.

The bound is 100·n·eps·cond(T)·(‖C‖‖(jω − A)⁻¹‖‖B‖ + ‖D‖). The oracle for H(jω) = C(jω − A)⁻¹B + D is mpmath with 50
digits up to 20 states. For larger systems it is LU in balanced coordinates (powers of two, exact) with iterative
refinement, the solution and the residuals in extended precision: what remains is n·eps_x·cond(jω − A) relative to
‖C‖‖(jω − A)⁻¹‖‖B‖ (Higham, Accuracy and Stability, Theorem 12.1), and it is asserted to be below a tenth of the bound.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import linalg

from network_examples import rounded, system_response

EPS = float(np.finfo(float).eps)
EXTENDED_EPS = float(np.finfo(np.longdouble).eps)
SMALL = 20


class Reference(NamedTuple):
    """H(jω), the unit 100·n·eps·(‖C‖‖(jω − A)⁻¹‖‖B‖ + ‖D‖), and ‖A‖‖(jω − A)⁻¹‖."""

    H: np.ndarray
    unit: float
    sensitivity: float


def six_decades(A, count=13):
    """Frequencies from 1e-3 to 1e3 times the geometric middle of the spectrum; eigenvalues at zero set no scale."""
    sizes = np.abs(np.linalg.eigvals(A))
    sizes = sizes[sizes > 1e-8 * np.max(sizes, initial=0.0)]
    middle = np.sqrt(np.min(sizes)) * np.sqrt(np.max(sizes)) if len(sizes) else 1.0
    return middle * np.geomspace(1e-3, 1e3, count)


def worst_ratio(net, system, omega, *, spectrum_known_to=None):
    """Largest |H_net − H| in units of 100·n·eps·(‖C‖‖(jω − A)⁻¹‖‖B‖ + ‖D‖), without cond(T).

    A backward stable decomposition knows A to a multiple of eps·‖A‖ only, which moves H by as much times
    ‖(jω − A)⁻¹‖. The unit leaves room for ‖A‖‖(jω − A)⁻¹‖ ≤ 100; `spectrum_known_to` = 100 grants it where that is
    exceeded, at frequencies far below ‖A‖ near a pole.
    """
    worst = 0.0
    for found, reference in zip(net.frequency_response(omega), references(system, omega.tolist()), strict=True):
        excess = 1.0 if spectrum_known_to is None else max(1.0, reference.sensitivity / spectrum_known_to)
        worst = max(worst, float(np.linalg.norm(found - reference.H, 2)) / (reference.unit * excess))
    return worst


def references(system, omegas):
    """The oracle at each frequency."""
    n = system.n_states
    A_norm, B_norm, C_norm, D_norm = (
        np.linalg.norm(X, 2) if X.size else 0.0 for X in (system.A, system.B, system.C, system.D)
    )
    balanced, (scale, _) = linalg.matrix_balance(system.A, permute=False, separate=True) if n else (system.A, ([], 0))
    for omega in omegas:
        if n == 0:
            yield Reference(system.D.astype(complex), 100 * EPS * D_norm, 0.0)
            continue
        resolvent = resolvent_norm(linalg.lu_factor(1j * omega * np.eye(n) - system.A), n)
        unit = 100 * n * EPS * (C_norm * resolvent * B_norm + D_norm)
        if n <= SMALL:
            H = rounded(system_response(system, complex(0.0, omega)))
        else:
            H, own_error = refined_response(balanced, system.B / scale[:, None], system.C * scale, omega)
            assert own_error <= 0.1 * unit
            H = (H + system.D).astype(complex)
        yield Reference(H, unit, A_norm * resolvent)


def resolvent_norm(factors, n):
    """‖(jω − A)⁻¹‖₂ from below, by power iteration: too small a norm makes the bound only stricter."""
    x = np.random.default_rng(0).standard_normal(n).astype(complex)
    norm = 0.0
    for _ in range(6):
        x = linalg.lu_solve(factors, x / np.linalg.norm(x))
        norm = max(norm, float(np.linalg.norm(x)))
        x = linalg.lu_solve(factors, x, trans=2)
    return norm


def refined_response(A, B, C, omega):
    """C(jω − A)⁻¹B to more digits than a double holds and its error, or a skip where long double has none more."""
    if EXTENDED_EPS > EPS / 1000:
        pytest.skip("long double is no longer than double here")
    shifted = 1j * omega * np.eye(len(A)) - A
    factors = linalg.lu_factor(shifted)
    A_x, w = A.astype(np.longdouble), np.longdouble(omega)
    real, imag = np.zeros(B.shape, dtype=np.longdouble), np.zeros(B.shape, dtype=np.longdouble)
    for _ in range(8):
        residual = (B + w * imag + A_x @ real).astype(float) + 1j * (A_x @ imag - w * real).astype(float)
        step = linalg.lu_solve(factors, residual)
        real, imag = real + step.real, imag + step.imag
        size = np.hypot(np.linalg.norm(real.astype(float)), np.linalg.norm(imag.astype(float)))
        if np.linalg.norm(step) <= EXTENDED_EPS * size:
            break
    C_x = C.astype(np.longdouble)
    norm = np.sqrt(np.linalg.norm(shifted, 1) * np.linalg.norm(shifted, np.inf))  # not below the 2-norm
    own_error = len(A) * EXTENDED_EPS * norm * resolvent_norm(factors, len(A)) * size * np.linalg.norm(C, 2)
    return C_x @ real + np.clongdouble(1j) * (C_x @ imag), own_error
