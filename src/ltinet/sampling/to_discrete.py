"""From x' = A x + B u to x[k+1] = A_d x[k] + B_d u[k], at the times k dt."""

import numpy as np

from ltinet.decompose.balance import balance
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import checked_time_step, require_continuous_time
from ltinet.sampling.methods import SamplingMethod
from ltinet.sampling.solving import solved
from ltinet.solve.steps.propagators import StepMatrices, matrix_steps


def to_discrete(system: SystemMatrices, dt: float, *, method: SamplingMethod) -> SystemMatrices:
    """The model of a system at times dt apart, as `ltinet.StateSpace.to_discrete` says.

    Raises:
        InvalidSystemError: the system is discrete already, dt is not positive, tustin meets a pole at 2/dt, or the
            result overflows.
    """
    require_continuous_time(system, "system.to_discrete(dt)")
    step = checked_time_step(dt)
    if step is None:
        raise InvalidSystemError(f"dt is {dt}; give the time between samples, a positive number")
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is told below
        parts = _by_trapezoids(system, step) if method == "tustin" else _by_exponentials(system, step, method)
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidSystemError(
            f"after dt = {step:g} states of this system are beyond the largest number; give a shorter dt"
        )
    # Only by zoh the states stay what they are; the others mix them with inputs.
    return SystemMatrices(*parts, dt=step, names=system.names if method == "zoh" else system.names.of_ends)


def step_of(A: Matrix, B: Matrix, dt: float) -> StepMatrices:
    """P = e^{A dt}, and what an input that goes along a line adds from its two ends, in units that suit A."""
    units = balance(A)
    F, G = units.matrix * units.factor, B / units.scaling[:, None]
    P, begin, end = (own[0] for own in matrix_steps(F, G, np.array([dt]), linear=True))
    rows = units.scaling[:, None]
    return StepMatrices(P * rows / units.scaling, begin * rows, end * rows)


def _by_exponentials(system: SystemMatrices, dt: float, method: SamplingMethod) -> tuple[Matrix, ...]:
    """Exact for inputs that are held (zoh) or go along lines (foh).

    With lines x[k+1] = P x[k] + Q₀ u[k] + Q₁ u[k+1]; the state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]:
    x̃[k+1] = P x̃[k] + (Q₀ + P Q₁) u[k], y[k] = C x̃[k] + (D + C Q₁) u[k].
    """
    P, begin, end = step_of(system.A, system.B, dt)
    if method == "zoh":
        return P, begin + end, system.C, system.D
    return P, begin + P @ end, system.C, system.D + system.C @ end


def _by_trapezoids(system: SystemMatrices, dt: float) -> tuple[Matrix, ...]:
    """Put s = (2/dt)(z − 1)/(z + 1): with K = (I − A dt/2)⁻¹, A_d = K (I + A dt/2), B_d = K B dt, C_d = C K, and D."""
    n = system.n_states
    half = 0.5 * dt * system.A
    shifted = np.eye(n) - half
    told = f"the system has a pole at 2/dt = {2.0 / dt:g}, where s = (2/dt)(z − 1)/(z + 1) has none; give another dt"
    columns = solved(shifted, np.hstack([np.eye(n) + half, dt * system.B]), told)
    C = solved(shifted.T, system.C.T, told).T
    return columns[:, :n], columns[:, n:], C, system.D + 0.5 * C @ (dt * system.B)
