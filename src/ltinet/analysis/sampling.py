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

# MERGED ltinet.analysis.sampling
# The ways in which a model in discrete time may stand for one in continuous time, by the names in use.

SamplingMethod: TypeAlias = Literal["zoh", "foh", "tustin"]
"""An input held between samples, one that goes along straight lines, and the trapezoidal rule."""


def validate_method(method: Any) -> SamplingMethod:
    """The method, if it is one.

    Raises:
        InvalidSystemError: it is not.
    """
    known: tuple[SamplingMethod, ...] = get_args(SamplingMethod)
    for name in known:
        if method == name:
            return name
    raise InvalidSystemError(f"method is {sanitize(repr(method))}; known are {', '.join(map(repr, known))}")


# MERGED ltinet.analysis.sampling
# Linear equations that have no answer where a conversion has none, told in the words of the conversion.


def solve_or_raise(matrix: Matrix, right_hand_side: Matrix, told: str) -> Matrix:
    """matrix⁻¹ times a right-hand side, rows and columns scaled first.

    Raises:
        InvalidSystemError: the matrix is singular to working precision; the message is `told`.
    """
    try:
        return eliminate_descriptor(np.ascontiguousarray(matrix), right_hand_side)
    except InvalidSystemError:
        raise InvalidSystemError(told) from None


# MERGED ltinet.analysis.sampling
# From x' = A x + B u to x[k+1] = A_d x[k] + B_d u[k], at the times k dt.


def to_discrete(system: SystemMatrices, dt: float, *, method: SamplingMethod) -> SystemMatrices:
    """The model of a system at times dt apart, as `ltinet.StateSpace.to_discrete` says.

    Raises:
        InvalidSystemError: the system is discrete already, dt is not positive, tustin meets a pole at 2/dt, or the
            result overflows.
    """
    require_continuous_time(system, "system.to_discrete(dt)")
    step = validate_time_step(dt)
    if step is None:
        raise InvalidSystemError(f"dt is {dt}; give the time between samples, a positive number")
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is told below
        parts = _by_trapezoids(system, step) if method == "tustin" else _by_exponentials(system, step, method)
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidSystemError(
            f"after dt = {step:g} states of this system are beyond the largest number; give a shorter dt"
        )
    # Only by zoh the states stay what they are; the others mix them with inputs.
    return SystemMatrices(*parts, dt=step, names=system.names if method == "zoh" else system.names.without_states)


def compute_step_matrices(A: Matrix, B: Matrix, dt: float) -> StepMatrices:
    """P = e^{A dt}, and what an input that goes along a line adds from its two ends, in units that suit A."""
    units = balance_matrix(A)
    F, G = units.matrix * units.factor, B / units.scaling[:, None]
    P, begin, end = (own[0] for own in matrix_steps(F, G, np.array([dt]), linear=True))
    rows = units.scaling[:, None]
    return StepMatrices(P * rows / units.scaling, begin * rows, end * rows)


def _by_exponentials(system: SystemMatrices, dt: float, method: SamplingMethod) -> tuple[Matrix, ...]:
    """Exact for inputs that are held (zoh) or go along lines (foh).

    With lines x[k+1] = P x[k] + Q₀ u[k] + Q₁ u[k+1]; the state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]:
    x̃[k+1] = P x̃[k] + (Q₀ + P Q₁) u[k], y[k] = C x̃[k] + (D + C Q₁) u[k].
    """
    P, begin, end = compute_step_matrices(system.A, system.B, dt)
    if method == "zoh":
        return P, begin + end, system.C, system.D
    return P, begin + P @ end, system.C, system.D + system.C @ end


def _by_trapezoids(system: SystemMatrices, dt: float) -> tuple[Matrix, ...]:
    """Put s = (2/dt)(z − 1)/(z + 1): with K = (I − A dt/2)⁻¹, A_d = K (I + A dt/2), B_d = K B dt, C_d = C K, and D."""
    n = system.n_states
    half = 0.5 * dt * system.A
    shifted = np.eye(n) - half
    told = f"the system has a pole at 2/dt = {2.0 / dt:g}, where s = (2/dt)(z − 1)/(z + 1) has none; give another dt"
    columns = solve_or_raise(shifted, np.hstack([np.eye(n) + half, dt * system.B]), told)
    C = solve_or_raise(shifted.T, system.C.T, told).T
    return columns[:, :n], columns[:, n:], C, system.D + 0.5 * C @ (dt * system.B)


# MERGED ltinet.analysis.sampling
# From x[k+1] = A_d x[k] + B_d u[k] to the x' = A x + B u that it may have been sampled from.

# Relative to A_d: what may be missing after logarithm and exponential. Defective eigenvalues cost half of all digits.
_MAX_LOGARITHM_ERROR = 1e-8
_TUSTIN_ADVICE = 'method="tustin" has a result, with another meaning; or identify the system from its data'


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
        return _from_trapezoids(system, system.dt).with_names(system.names.without_states)
    A = _logarithm(system.A, system.dt) / system.dt
    # Of an input that is held B_d = H B with H = dt φ₁(A dt); of lines B_d = H² B/dt and D_d = D + C Q₁.
    P, begin, end = compute_step_matrices(A, np.eye(system.n_states), system.dt)
    _require_digits(P, system.A)
    told = f"no input matrix gives this B: the system aliases at dt = {system.dt:g}; {_TUSTIN_ADVICE}"
    B = solve_or_raise(begin + end, system.B, told)
    if method == "zoh":
        return SystemMatrices(A, B, system.C, system.D, names=system.names)
    B = system.dt * solve_or_raise(begin + end, B, told)
    return SystemMatrices(A, B, system.C, system.D - system.C @ (end @ B), names=system.names.without_states)


def _logarithm(A: Matrix, dt: float) -> Matrix:
    """The real logarithm whose eigenvalues have imaginary parts between −π and π, in units that suit A."""
    units = balance_matrix(A)
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
    is_zero = np.abs(values) <= rounding_tolerance(len(A), size)
    if is_zero.any():
        raise InvalidSystemError(
            f"A has {int(is_zero.sum())} eigenvalues that are zero to working precision: a delay of some steps, or "
            f"something so fast that nothing of it is left after dt = {dt:g}; e^{{s dt}} is never 0, and there is no "
            f"continuous-time system by zoh or foh; {_TUSTIN_ADVICE}"
        )
    negative = values[(values.imag == 0.0) & (values.real < 0.0)].real
    if len(negative):
        raise InvalidSystemError(
            f"A has the negative real eigenvalue {negative[0]:.6g}: it changes sign from step to step, and e^{{s dt}} "
            "of a single real pole is always positive. Sampled from continuous time it would be one of a pair at half "
            "the sampling frequency, whose other state is missing here. There is no continuous-time system of these "
            f"states by zoh or foh; {_TUSTIN_ADVICE}"
        )


def _require_digits(P: Matrix, A: Matrix) -> None:
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    distance = float(np.linalg.norm(P - A, 1)) if len(A) else 0.0
    if not distance <= _MAX_LOGARITHM_ERROR * size:
        raise InvalidSystemError(
            f"the logarithm of A is known to few digits only: its exponential is off by {distance / size:.1e} of A, "
            f"which is nearly singular or has nearly equal eigenvalues; {_TUSTIN_ADVICE}"
        )


def _from_trapezoids(system: SystemMatrices, dt: float) -> SystemMatrices:
    """From z = (1 + s dt/2)/(1 − s dt/2) back to s: with L = (A_d + I)⁻¹, A = (2/dt)(A_d − I)L, C = 2 C_d L."""
    n = system.n_states
    shifted = system.A + np.eye(n)
    told = "A has the eigenvalue −1, which tustin takes to infinity; no continuous-time system has such a pole"
    columns = solve_or_raise(shifted, np.hstack([system.A - np.eye(n), system.B]), told)
    C = 2.0 * solve_or_raise(shifted.T, system.C.T, told).T
    D = system.D - 0.5 * C @ system.B
    return SystemMatrices((2.0 / dt) * columns[:, :n], (2.0 / dt) * columns[:, n:], C, D)
