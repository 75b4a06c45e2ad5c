"""From x[k+1] = A_d x[k] + B_d u[k] to the x' = A x + B u that it may have been sampled from."""

import warnings

import numpy as np
from scipy import linalg

from ltinet.decompose.balance import balance
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.sampling.methods import SamplingMethod
from ltinet.sampling.solving import solved
from ltinet.sampling.to_discrete import step_of
from ltinet.tolerances import rounding

# Relative to A_d: what may be missing after logarithm and exponential. Defective eigenvalues cost half of all digits.
_LOST = 1e-8
_WAY_OUT = 'method="tustin" has a result, with another meaning; or identify the system from its data'


def to_continuous(system: SystemMatrices, *, method: SamplingMethod) -> SystemMatrices:
    """The continuous-time system behind a model in discrete time, as `ltinet.StateSpace.to_continuous` says.

    Raises:
        InvalidSystemError: there is none by this method, or the system is continuous already.
    """
    if system.dt is None:
        raise InvalidSystemError(
            "the system is continuous in time already; to_continuous is for systems with a time step, "
            "StateSpace(A, B, C, D, dt=0.1)"
        )
    if method == "tustin":
        return _from_trapezoids(system, system.dt).named(system.names.of_ends)
    A = _logarithm(system.A, system.dt) / system.dt
    # Of an input that is held B_d = H B with H = dt φ₁(A dt); of lines B_d = H² B/dt and D_d = D + C Q₁.
    P, begin, end = step_of(A, np.eye(system.n_states), system.dt)
    _require_digits(P, system.A)
    told = f"no input matrix gives this B: the system aliases at dt = {system.dt:g}; {_WAY_OUT}"
    B = solved(begin + end, system.B, told)
    if method == "zoh":
        return SystemMatrices(A, B, system.C, system.D, names=system.names)
    B = system.dt * solved(begin + end, B, told)
    return SystemMatrices(A, B, system.C, system.D - system.C @ (end @ B), names=system.names.of_ends)


def _logarithm(A: Matrix, dt: float) -> Matrix:
    """The real logarithm whose eigenvalues have imaginary parts between −π and π, in units that suit A."""
    units = balance(A)
    matrix = units.matrix * units.factor
    _require_logarithm(matrix, dt)
    if not len(A):
        return A
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of is measured afterwards, and told as an error
        logarithm = linalg.logm(matrix)
    real = np.asarray(logarithm.real, dtype=np.float64)
    return np.asarray(real * units.scaling[:, None] / units.scaling)


def _require_logarithm(A: Matrix, dt: float) -> None:
    """Refuse what no continuous-time system becomes when it is sampled."""
    values = np.linalg.eigvals(A)
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    is_zero = np.abs(values) <= rounding(len(A), size)
    if is_zero.any():
        raise InvalidSystemError(
            f"A has {int(is_zero.sum())} eigenvalues that are zero to working precision: a delay of some steps, or "
            f"something so fast that nothing of it is left after dt = {dt:g}; e^{{s dt}} is never 0, and there is no "
            f"continuous-time system by zoh or foh; {_WAY_OUT}"
        )
    negative = values[(values.imag == 0.0) & (values.real < 0.0)].real
    if len(negative):
        raise InvalidSystemError(
            f"A has the negative real eigenvalue {negative[0]:.6g}: it changes sign from step to step, and e^{{s dt}} "
            "of a single real pole is always positive. Sampled from continuous time it would be one of a pair at half "
            "the sampling frequency, whose other state is missing here. There is no continuous-time system of these "
            f"states by zoh or foh; {_WAY_OUT}"
        )


def _require_digits(P: Matrix, A: Matrix) -> None:
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    distance = float(np.linalg.norm(P - A, 1)) if len(A) else 0.0
    if not distance <= _LOST * size:
        raise InvalidSystemError(
            f"the logarithm of A is known to few digits only: its exponential is off by {distance / size:.1e} of A, "
            f"which is nearly singular or has nearly equal eigenvalues; {_WAY_OUT}"
        )


def _from_trapezoids(system: SystemMatrices, dt: float) -> SystemMatrices:
    """From z = (1 + s dt/2)/(1 − s dt/2) back to s: with L = (A_d + I)⁻¹, A = (2/dt)(A_d − I)L, C = 2 C_d L."""
    n = system.n_states
    shifted = system.A + np.eye(n)
    told = "A has the eigenvalue −1, which tustin takes to infinity; no continuous-time system has such a pole"
    columns = solved(shifted, np.hstack([system.A - np.eye(n), system.B]), told)
    C = 2.0 * solved(shifted.T, system.C.T, told).T
    D = system.D - 0.5 * C @ system.B
    return SystemMatrices((2.0 / dt) * columns[:, :n], (2.0 / dt) * columns[:, n:], C, D)
