"""Error bound of runs in discrete time, from the defect of their states; it does not depend on the algorithm of the run.

For any states x̃ with the defect r[k] = A x̃[k] + B u[k] − x̃[k+1] the exact states differ by e[k+1] = A e[k] + r[k], e[0] = 0,
so that for the outputs ỹ of the run

    |ỹ[k] − y[k]| ≤ |ỹ[k] − C x̃[k] − D u[k]| + Σ_j |C A^j| |r[k − 1 − j]| .

Defects are computed in double precision and enlarged by a bound on the rounding of their own sums. Of the sum over j the
largest defect of each of some cells of time counts, with the sum of |C A^j| over all lags between two cells. The powers of
A are rounded, which is of second order and not bounded; beyond their overflow the bound is infinite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.floating_point import EPS, Array
from ltinet.network.realization import to_state_space
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.exact_run import ExactRun
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

_MAX_CELLS = 64  # cells of time
_PARAMETER_ROUNDINGS = 16.0  # eps: rounding of a state equation that is computed from neuron parameters


@dataclass(frozen=True, eq=False)
class DiscreteErrorBound:
    """Bound on the error of the outputs at samples."""

    bound: Array
    """`(..., T, p)`."""
    sample_index: Callable[[Array], NDArray[np.intp]]

    def at(self, t: Array) -> dict[str, Array]:
        """Return the bound at times of samples, `(..., len(t), p)`."""
        return {"rounding": self.bound[..., self.sample_index(t), :]}

    def overall(self) -> dict[str, Array]:
        """Return the bound over all samples, `(..., p)`."""
        return {"rounding": self.bound.max(axis=-2)}


class _StateEquation(NamedTuple):
    """E x[k+1] = A x[k] + B u[k], y = C x + D u, with |E⁻¹|, or E = I; `roundings` is the relative error of A and B."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    E: Matrix | None
    inverse_size: Matrix | None
    step: Matrix
    """E⁻¹ A."""
    roundings: float


def _state_equation(run: ExactRun) -> _StateEquation:
    origin: SystemMatrices | None = run.realization.origin
    roundings = 0.0
    if origin is None:  # a network that stands for itself
        context = run.network
        if not isinstance(context, SimulationContext):
            raise TypeError("a network in block coordinates is expected")
        origin, roundings = to_state_space(context.network), _PARAMETER_ROUNDINGS * EPS
    if origin.descriptor is None:
        return _StateEquation(origin.A, origin.B, origin.C, origin.D, None, None, origin.A, roundings)
    E, A, B = origin.descriptor
    return _StateEquation(A, B, origin.C, origin.D, E, np.abs(np.linalg.inv(E)), origin.A, roundings)


def bound_discrete_run(run: ExactRun, outputs: Array, *, input_is_rounded: bool) -> Array:
    """Return a bound on the errors of the outputs `(..., T, p)` of a run; `input_is_rounded` if u − u0 was rounded."""
    equation, u = _state_equation(run), run.samples.u
    n, m = equation.B.shape
    with limit_blas_threads_for_work(run.n_multiplications * n), np.errstate(over="ignore", invalid="ignore"):
        x = run.user_states(run.samples.t)
        of_input = (EPS if input_is_rounded else 0.0) * np.abs(u)
        local = np.abs(outputs - x @ equation.C.T - u @ equation.D.T)
        local += (n + m + 4) * EPS * (np.abs(x) @ np.abs(equation.C).T + np.abs(u) @ np.abs(equation.D).T)
        local += of_input @ np.abs(equation.D).T
        defects = _defects(equation, x, u) + of_input[..., :-1, :] @ _input_size(equation).T
        bound = local + _propagated(equation, defects)
    return np.asarray(np.where(np.isfinite(bound), bound, np.inf))


def _input_size(equation: _StateEquation) -> Matrix:
    size = np.abs(equation.B)
    return size if equation.inverse_size is None else equation.inverse_size @ size


def _defects(equation: _StateEquation, x: Array, u: Array) -> Array:
    """Return bounds on |E⁻¹(A x[k] + B u[k] − E x[k+1])|, `(..., T − 1, n)`."""
    before, after, now = x[..., :-1, :], x[..., 1:, :], u[..., :-1, :]
    A, B, E = equation.A, equation.B, equation.E
    terms = np.abs(before) @ np.abs(A).T + np.abs(now) @ np.abs(B).T
    rounding = (len(A) + B.shape[1] + 4) * EPS
    if E is None:
        defect = np.abs(before @ A.T + now @ B.T - after)
        return np.asarray(defect + rounding * (terms + np.abs(after)) + equation.roundings * terms)
    defect = np.abs(before @ A.T + now @ B.T - after @ E.T)
    defect += rounding * (terms + np.abs(after) @ np.abs(E).T)
    return np.asarray((1.0 + 1e-6) * defect @ np.asarray(equation.inverse_size).T)  # |E⁻¹| has rounding errors too


def _propagated(equation: _StateEquation, defects: Array) -> Array:
    """Return Σ_j |C A^j| r[k − 1 − j] for all samples, `(..., T, p)`, with the largest defect of each cell."""
    *batch, n_steps, n = defects.shape
    p = len(equation.C)
    result = np.zeros((*batch, n_steps + 1, p))
    if not n_steps or not n:
        return result
    length = -(-n_steps // _MAX_CELLS)
    n_cells = -(-n_steps // length)
    padded = np.zeros((*batch, n_cells * length, n))
    padded[..., :n_steps, :] = defects
    largest = padded.reshape(*batch, n_cells, length, n).max(axis=-2)
    sums = _sums_of_responses(equation, length, n_cells)
    errors = np.zeros((*batch, n_cells, p))
    for lag in range(n_cells):
        # Between a sample of a cell and the defects of the cell `lag` before lie less than (lag + 1) · length steps.
        weights = sums[lag] + (sums[lag - 1] if lag else 0.0)
        errors[..., lag:, :] += largest[..., : n_cells - lag, :] @ weights.T
    result[..., 1:, :] = np.repeat(errors, length, axis=-2)[..., :n_steps, :]
    return result


def _sums_of_responses(equation: _StateEquation, length: int, count: int) -> Array:
    """Return Σ |C A^j| over `length` lags j each, `(count, p, n)`."""
    rows = np.empty((length, *equation.C.shape))
    rows[0] = equation.C
    for index in range(1, length):
        rows[index] = rows[index - 1] @ equation.step
    over_cell = np.linalg.matrix_power(equation.step, length)
    sums = np.empty((count, *equation.C.shape))
    for index in range(count):
        sums[index] = np.abs(rows).sum(axis=0)
        if index + 1 < count:
            rows = rows @ over_cell
    return sums
