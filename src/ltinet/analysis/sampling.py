"""Conversion between continuous and discrete time: zero-order hold, first-order hold, Tustin.

Inputs that are held: A_d = e^{A dt}, B_d = ∫₀^dt e^{Aτ} dτ B. Inputs along straight lines: with x[k+1] = P x[k] + Q₀
u[k] + Q₁ u[k+1] the state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]. Tustin substitutes s = (2/dt)(z − 1)/(z + 1).
Conversion to continuous time uses the real matrix logarithm, whose eigenvalues have imaginary parts between −π and
π; systems without one are refused.
"""

import warnings
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import rounding_tolerance
from ltinet._util.text import sanitize
from ltinet.blockdiag.schur import balance_matrix
from ltinet.errors import InvalidSystemError
from ltinet.simulation.propagators import StepMatrices, matrix_steps
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time, validate_time_step

SamplingMethod: TypeAlias = Literal["zoh", "foh", "tustin"]
"""Zero-order hold, first-order hold (straight lines between samples), and the trapezoidal rule."""


def validate_method(method: Any) -> SamplingMethod:
    """Return the method.

    Raises:
        InvalidSystemError: the method is unknown.
    """
    known = get_args(SamplingMethod)
    if method not in known:
        raise InvalidSystemError(f"method is {sanitize(repr(method))}; known are {', '.join(map(repr, known))}")
    chosen: SamplingMethod = method
    return chosen


def solve_or_raise(matrix: Matrix, right_hand_side: Matrix, message: str) -> Matrix:
    """Return matrix⁻¹ times a right-hand side, with rows and columns scaled first.

    Raises:
        InvalidSystemError: the matrix is singular to working precision; the message is `message`.
    """
    try:
        return eliminate_descriptor(np.ascontiguousarray(matrix), right_hand_side)
    except InvalidSystemError:
        raise InvalidSystemError(message) from None


def to_discrete(system: SystemMatrices, dt: float, *, method: SamplingMethod) -> SystemMatrices:
    """Sample a system with time step dt (see `ltinet.StateSpace.to_discrete`).

    Raises:
        InvalidSystemError: the system is discrete already, dt is not positive, tustin meets a pole at 2/dt, or the
            result overflows.
    """
    require_continuous_time(system, "system.to_discrete(dt)")
    step = validate_time_step(dt)
    if step is None:
        raise InvalidSystemError(f"dt must be positive, the time between samples, got {dt}")
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an error below
        parts = _by_trapezoids(system, step) if method == "tustin" else _by_exponentials(system, step, method)
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidSystemError(f"states of this system overflow after dt = {step:g}; pass a shorter dt")
    # Names of states hold for zoh only; other methods mix states with inputs.
    return SystemMatrices(*parts, dt=step, names=system.names if method == "zoh" else system.names.without_states)


def compute_step_matrices(A: Matrix, B: Matrix, dt: float) -> StepMatrices:
    """Return P = e^{A dt} and the matrices Q₀, Q₁ of both ends of a linear input, computed in units that balance A."""
    units = balance_matrix(A)
    F, G = units.matrix * units.factor, B / units.scaling[:, None]
    P, begin, end = (matrices[0] for matrices in matrix_steps(F, G, np.array([dt]), linear=True))
    rows = units.scaling[:, None]
    return StepMatrices(P * rows / units.scaling, begin * rows, end * rows)


def _by_exponentials(system: SystemMatrices, dt: float, method: SamplingMethod) -> tuple[Matrix, ...]:
    """Sample exactly for held (zoh) or linearly interpolated (foh) inputs.

    For foh x[k+1] = P x[k] + Q₀ u[k] + Q₁ u[k+1]. The state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]:
    x̃[k+1] = P x̃[k] + (Q₀ + P Q₁) u[k], y[k] = C x̃[k] + (D + C Q₁) u[k].
    """
    P, begin, end = compute_step_matrices(system.A, system.B, dt)
    if method == "zoh":
        return P, begin + end, system.C, system.D
    return P, begin + P @ end, system.C, system.D + system.C @ end


def _by_trapezoids(system: SystemMatrices, dt: float) -> tuple[Matrix, ...]:
    """Substitute s = (2/dt)(z − 1)/(z + 1): with K = (I − A dt/2)⁻¹, A_d = K (I + A dt/2), B_d = K B dt, C_d = C K, and D."""
    n = system.n_states
    half = 0.5 * dt * system.A
    shifted = np.eye(n) - half
    message = f"the system has a pole at 2/dt = {2.0 / dt:g}, which tustin maps to infinity; pass another dt"
    columns = solve_or_raise(shifted, np.hstack([np.eye(n) + half, dt * system.B]), message)
    C = solve_or_raise(shifted.T, system.C.T, message).T
    return columns[:, :n], columns[:, n:], C, system.D + 0.5 * C @ (dt * system.B)


# Conversion to continuous time.

# Relative to A_d: largest error of exp(log(A_d)) that is accepted. Defective eigenvalues cost half of all digits.
_MAX_LOGARITHM_ERROR = 1e-8
_TUSTIN_ADVICE = 'use method="tustin", which has another meaning, or identify the system from its data'


def to_continuous(system: SystemMatrices, *, method: SamplingMethod) -> SystemMatrices:
    """Return the continuous-time system of a sampled model (see `ltinet.StateSpace.to_continuous`).

    Raises:
        InvalidSystemError: the system does not exist for this method, or the model is in continuous time already.
    """
    if system.dt is None:
        raise InvalidSystemError(
            "the system is in continuous time already; to_continuous requires a system with a time step, such as "
            "StateSpace(A, B, C, D, dt=0.1)"
        )
    if method == "tustin":
        return _from_trapezoids(system, system.dt).with_names(system.names.without_states)
    A = _logarithm(system.A, system.dt) / system.dt
    # For zoh B_d = H B with H = dt φ₁(A dt); for foh B_d = H² B/dt and D_d = D + C Q₁.
    P, begin, end = compute_step_matrices(A, np.eye(system.n_states), system.dt)
    _require_accurate_logarithm(P, system.A)
    message = f"no input matrix gives this B: the system aliases at dt = {system.dt:g}; {_TUSTIN_ADVICE}"
    B = solve_or_raise(begin + end, system.B, message)
    if method == "zoh":
        return SystemMatrices(A, B, system.C, system.D, names=system.names)
    B = system.dt * solve_or_raise(begin + end, B, message)
    return SystemMatrices(A, B, system.C, system.D - system.C @ (end @ B), names=system.names.without_states)


def _logarithm(A: Matrix, dt: float) -> Matrix:
    """Return the real logarithm with eigenvalues of imaginary parts between −π and π, in units that balance A."""
    units = balance_matrix(A)
    matrix = units.matrix * units.factor
    _require_logarithm(matrix, dt)
    if not len(A):
        return A
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inaccuracy is measured by the caller and raised as an error
        logarithm = linalg.logm(matrix)
    real = np.asarray(logarithm.real, dtype=np.float64)
    return np.asarray(real * units.scaling[:, None] / units.scaling)


def _require_logarithm(A: Matrix, dt: float) -> None:
    """Refuse matrices without a real logarithm."""
    values = np.linalg.eigvals(A)
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    is_zero = np.abs(values) <= rounding_tolerance(len(A), size)
    if is_zero.any():
        raise InvalidSystemError(
            f"A has {int(is_zero.sum())} eigenvalues that are zero to working precision, from a delay or from modes that "
            f"decay completely within dt = {dt:g}, so that no continuous-time system exists for zoh or foh; {_TUSTIN_ADVICE}"
        )
    negative = values[(values.imag == 0.0) & (values.real < 0.0)].real
    if len(negative):
        raise InvalidSystemError(
            f"A has the negative real eigenvalue {negative[0]:.6g}, but e^{{s dt}} of a real pole is positive. It stems from "
            "a pair at half the sampling frequency, whose other state is missing, so that no continuous-time system of "
            f"these states exists for zoh or foh; {_TUSTIN_ADVICE}"
        )


def _require_accurate_logarithm(P: Matrix, A: Matrix) -> None:
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    distance = float(np.linalg.norm(P - A, 1)) if len(A) else 0.0
    if not distance <= _MAX_LOGARITHM_ERROR * size:
        raise InvalidSystemError(
            f"the logarithm of A is inaccurate: its exponential differs by {distance / size:.1e} of A, "
            f"which is nearly singular or has nearly equal eigenvalues; {_TUSTIN_ADVICE}"
        )


def _from_trapezoids(system: SystemMatrices, dt: float) -> SystemMatrices:
    """Substitute z = (1 + s dt/2)/(1 − s dt/2): with L = (A_d + I)⁻¹, A = (2/dt)(A_d − I)L, C = 2 C_d L."""
    n = system.n_states
    shifted = system.A + np.eye(n)
    message = "A has the eigenvalue −1, which tustin maps to infinity; no continuous-time system has such a pole"
    columns = solve_or_raise(shifted, np.hstack([system.A - np.eye(n), system.B]), message)
    C = 2.0 * solve_or_raise(shifted.T, system.C.T, message).T
    D = system.D - 0.5 * C @ system.B
    return SystemMatrices((2.0 / dt) * columns[:, :n], (2.0 / dt) * columns[:, n:], C, D)
