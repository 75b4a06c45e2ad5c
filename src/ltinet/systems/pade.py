"""Padé approximants of delays: rational models of e^{−sτ} at low frequencies.

The diagonal approximant of order N, in σ = sτ,

    e^{−σ} ≈ p(−σ)/p(σ),    p(σ) = Σ_{k=0}^{N} (2N − k)! N! / ((2N)! k! (N − k)!) σᵏ,

is an all-pass of gain 1 (coefficients: Golub & Van Loan, Matrix Computations, §11.3.1). Its phase follows −ωτ up to
about ωτ = N and stays at −Nπ beyond.
"""

import math
from typing import Any

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.converters import series
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_MAX_ORDER = 20  # of higher orders the coefficients are inaccurate in double precision
_QUADRATURE_NODES, _QUADRATURE_PIECES = 20, 16  # of the phase error

StateSpaceArrays = tuple[Matrix, Matrix, Matrix, Matrix]
"""Matrices A, B, C and D."""


def pade_delay(tau: float, order: int) -> StateSpaceArrays:
    """Return (A, B, C, D) of the Padé approximant of e^{−sτ}, in controller form of σ = sτ."""
    N = order
    p = [math.factorial(2 * N - k) / (math.factorial(k) * math.factorial(N - k)) for k in range(N + 1)]
    den = np.array(p) / p[N]  # ascending powers, monic
    sign = (-1.0) ** N
    num = den * (-1.0) ** np.arange(N + 1)
    C = (num[:N] - sign * den[:N])[None]
    A = np.diag(np.ones(N - 1), 1)
    A[-1] = -den[:N]
    B = np.zeros((N, 1))
    B[-1] = 1.0
    return A / tau, B / tau, C, np.array([[sign]])


def validate_order(order: Any) -> int:
    """Return the order; raise InvalidSystemError if it is not an integer from 1 to 20."""
    is_count = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
    if not is_count or not 1 <= order <= _MAX_ORDER:
        raise InvalidSystemError(f"pade must be an integer between 1 and {_MAX_ORDER}, got {sanitize(repr(order))}")
    return int(order)


def pade_phase_error(angle: Array, order: Any) -> Array:
    """Return by how much the phase of the approximant differs from −ωτ, for angles ωτ; it is at least 0 and grows.

    With σ = jx the approximant is p(−jx)/p(jx) = e^{−2j arg p(jx)}, so that the difference is x − 2 arg p(jx). Its
    derivative is 1 − 2 Re(p′/p), which is positive: from the identity p(σ)p(−σ) − p′(σ)p(−σ) − p(σ)p′(−σ) = c²(−σ²)^N,

        1 − 2 Re(p′/p) = c² x^{2N}/|p(jx)|²,    c the leading coefficient of p.

    Monic polynomials have c = 1. The integral of this positive function from 0 to x, by Gauss–Legendre
    quadrature, has no cancellation where the error is small.
    """
    N = validate_order(order)
    p = np.array([math.factorial(2 * N - k) / (math.factorial(k) * math.factorial(N - k)) for k in range(N + 1)])
    monic = (p / p[N])[::-1]
    x = np.asarray(angle, dtype=np.float64)
    nodes, weights = np.polynomial.legendre.leggauss(_QUADRATURE_NODES)
    total = np.zeros(x.shape)
    for piece in range(_QUADRATURE_PIECES):
        points = x[..., None] * ((piece + 0.5 + 0.5 * nodes) / _QUADRATURE_PIECES)
        ratio = points**N / np.abs(np.polyval(monic, 1j * points))
        total += x / (2 * _QUADRATURE_PIECES) * ((ratio * ratio) @ weights)
    return total


def approximate_delays(system: SystemMatrices, settings: SignalSettings, order: Any) -> SystemMatrices:
    """Return the system in series with Padé approximants of its input and output delays.

    Raises InvalidSystemError if the order is not an integer from 1 to 20, or the system is in discrete time.
    """
    order = validate_order(order)
    if system.dt is not None:
        raise InvalidSystemError(
            "Padé approximants require a system in continuous time; convert it with to_continuous()"
        )
    before = _parallel(settings.array("input_delay", system.n_inputs), order)
    after = _parallel(settings.array("output_delay", system.n_outputs), order)
    dense = SystemMatrices(system.A, system.B, system.C, system.D)
    return series(series(before, dense), after).with_names(system.names.without_states)


def _parallel(delays: Array, order: int) -> SystemMatrices:
    """Return the diagonal system of one approximant for each channel."""
    static = np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.array([[1.0]])
    parts = [pade_delay(delay, order) if delay else static for delay in delays.tolist()]
    A, B, C, D = (linalg.block_diag(*(part[index] for part in parts)) for index in range(4))
    n = sum(len(part[0]) for part in parts)
    m = len(delays)
    return SystemMatrices(A.reshape(n, n), B.reshape(n, m), C.reshape(m, n), D.reshape(m, m))
