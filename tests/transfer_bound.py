"""The distance between the transfer functions of a network and of its system, in units of the bound that it must keep.

The bound is 100·n·eps·cond(T)·(‖C‖‖(jω − A)⁻¹‖‖B‖ + ‖D‖). The oracle for H(jω) = C(jω − A)⁻¹B + D solves in complex
balls (Arb): it knows its own error, and takes more bits until that is far below what it decides about.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from flint import acb_mat, ctx
from scipy import linalg
from scipy.sparse.csgraph import connected_components

EPS = float(np.finfo(float).eps)
_MOST_BITS = 4096


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


def references(system, omegas) -> Iterator[Reference]:
    """The oracle at each frequency."""
    n = system.n_states
    A_norm, B_norm, C_norm, D_norm = (
        np.linalg.norm(X, 2) if X.size else 0.0 for X in (system.A, system.B, system.C, system.D)
    )
    for omega in omegas:
        if n == 0:
            yield Reference(system.D.astype(complex), 100 * EPS * D_norm, 0.0)
            continue
        resolvent = resolvent_norm(linalg.lu_factor(1j * omega * np.eye(n) - system.A), n)
        unit = 100 * n * EPS * (C_norm * resolvent * B_norm + D_norm)
        # Doubles next to the entries of H are off by eps/2 of it, which is 1/200·n of the unit at most.
        yield Reference(response_in_balls(system, omega, radius=0.005 * unit), unit, A_norm * resolvent)


def resolvent_norm(factors, n):
    """‖(jω − A)⁻¹‖₂ from below, by power iteration: too small a norm makes the bound only stricter."""
    x = np.random.default_rng(0).standard_normal(n).astype(complex)
    norm = 0.0
    for _ in range(6):
        x = linalg.lu_solve(factors, x / np.linalg.norm(x))
        norm = max(norm, float(np.linalg.norm(x)))
        x = linalg.lu_solve(factors, x, trans=2)
    return norm


def response_in_balls(system, omega, *, radius):
    """H(jω) as the doubles next to it, where the Frobenius norm of its radii is below the one asked for.

    States that are not connected are solved apart: n³/3 products of balls are dear. Cost: 2 s for 350 states.
    """
    bits = 128
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            H = _balls(system.D)
            _, part_of = connected_components(system.A != 0.0, directed=False)
            for part in range(part_of.max() + 1):
                own = np.flatnonzero(part_of == part)
                shifted = 1j * omega * np.eye(len(own)) - system.A[np.ix_(own, own)]
                try:
                    H += _balls(system.C[:, own]) * _balls(shifted).solve(_balls(system.B[own]), algorithm="lu")
                except ZeroDivisionError:  # singular for all that so few bits tell
                    break
            else:
                entries = H.entries()
                if np.linalg.norm([_radius(entry) for entry in entries]) <= radius:
                    return np.array([complex(entry) for entry in entries]).reshape(system.D.shape)
        bits *= 2
    raise ArithmeticError(f"{_MOST_BITS} bits do not tell H(jω) to {radius:.1e}")


def _balls(matrix):
    return acb_mat(*matrix.shape, np.asarray(matrix, dtype=complex).ravel().tolist())


def _radius(entry):
    return float(entry.real.rad()) + float(entry.imag.rad())
