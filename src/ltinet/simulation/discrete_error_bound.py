"""Error bound of runs in discrete time, from the defect of their states; it does not depend on the algorithm of the run.

For any states x̃ with the defect r[k] = A x̃[k] + B u[k] − x̃[k+1] the exact states differ by e[k+1] = A e[k] + r[k], e[0] = 0,
and the outputs ỹ of the run by y − ỹ = q + C e with q = C x̃ + D u − ỹ. Defects are computed in double-double arithmetic, since
in double precision their own rounding would hide them. They are known with their signs, so that e is simulated as well,
in double precision: its states ẽ have a defect of their own, r̃[k] = A ẽ[k] + r[k] − ẽ[k+1], which is of second order, and

    |ỹ[k] − y[k]| ≤ |q[k] + C ẽ[k]| + Σ_j |C A^j| |r̃[k − 1 − j]| .

What has no known sign counts in r̃: rounding, and relative errors of parameters. Of the sum over j the largest defect of each
of some cells of time counts, with the sum of |C A^j| over all lags between two cells. The powers of A are rounded, which is
of third order and not bounded; beyond their overflow the bound is infinite. One rounding of the outputs is added, for
comparison with values in double precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.double_double import product_difference
from ltinet._util.floating_point import EPS, Array
from ltinet.network.realization import to_state_space
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.discrete_step import prepare_discrete_step
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.modal import single_block_system
from ltinet.simulation.step_model import prepare_single_steps
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

_MAX_CELLS = 64  # cells of time
# Rounding of a product of matrices in double-double arithmetic, per state and relative to the largest product. Four slices of
# (53 − log₂ 2n)/2 bits leave out 8 n 2⁻⁸⁰ of it for n ≤ 4000 (`product_terms`), in units that count twice at most.
_LOST = 2.0**-76
_MAX_PRODUCTS = 2**22  # products of numbers at a time in double-double arithmetic: some hundred megabytes
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
    A, B, C, D, E = equation[:5]
    n = len(A)
    of_input = EPS if input_is_rounded else 0.0
    with limit_blas_threads_for_work(run.n_multiplications * n), np.errstate(over="ignore", invalid="ignore"):
        x = run.user_states(run.samples.t)
        x, u = (np.broadcast_to(part, (*outputs.shape[:-1], part.shape[-1])) for part in (x, u))
        before, now, after = x[..., :-1, :], u[..., :-1, :], x[..., 1:, :]
        driven = np.abs(now) @ np.abs(B).T
        # Equations E x[k+1] = A x[k] + B u[k] and y = C x + D u, and how far the run is from them.
        defects, unknown = _difference([before, now], [A, B], after, E)
        unknown += equation.roundings * (np.abs(before) @ np.abs(A).T + driven) + of_input * driven
        errors = _simulated_errors(equation, defects)
        remainder = unknown + _second_defects(equation, errors, defects)
        if equation.inverse_size is not None:
            remainder = (1.0 + 1e-6) * remainder @ equation.inverse_size.T  # |E⁻¹| has rounding errors too
        local, of_outputs = _difference([x, u], [C, D], outputs, None)
        known = local + errors @ C.T
        of_outputs += (n + 4) * EPS * (np.abs(errors) @ np.abs(C).T + np.abs(known))
        of_outputs += of_input * (np.abs(u) @ np.abs(D).T) + np.spacing(np.abs(outputs))
        bound = np.abs(known) + of_outputs + _propagated(equation, remainder)
    return np.asarray(np.where(np.isfinite(bound), bound, np.inf))


def _difference(
    factors: list[Array], matrices: list[Matrix], subtracted: Array, E: Matrix | None
) -> tuple[Array, Array]:
    """Return Σ M v − E w for factors v `(..., K, ·)` and `subtracted` w, and a bound on its error, entry by entry.

    The error in double-double arithmetic is relative to the largest term at any time, with factors in units of their largest
    values; that in double precision to the terms themselves, and smaller where states begin to move: of both values the
    better one is returned.
    """
    if E is not None:
        factors, matrices, subtracted = [*factors, subtracted], [*matrices, -E], np.zeros_like(subtracted)
    both = np.concatenate(factors, axis=-1)
    rows, weights, minuend = (
        both.reshape(-1, both.shape[-1]),
        np.hstack(matrices).T,
        subtracted.reshape(-1, len(matrices[0])),
    )
    units = np.ldexp(1.0, np.frexp(np.abs(rows).max(axis=0, initial=0.0))[1])
    rows, weights = rows / units, weights * units[:, None]
    accurate, at_once = np.empty_like(minuend), max(1, _MAX_PRODUCTS // max(1, weights.size))
    for first in range(0, len(rows), at_once):
        piece = slice(first, first + at_once)
        accurate[piece] = -product_difference(minuend[piece], rows[piece], weights)
    largest = np.abs(rows).max(axis=1, initial=0.0)[:, None] * np.abs(weights).max(axis=0, initial=0.0)
    lost = len(weights) * _LOST * (largest + np.abs(minuend)) + EPS * np.abs(accurate)
    rounding = (len(weights) + 4) * EPS * (np.abs(rows) @ np.abs(weights) + np.abs(minuend))
    is_better = lost <= rounding
    values = np.where(is_better, accurate, rows @ weights - minuend)
    return values.reshape(subtracted.shape), np.where(is_better, lost, rounding).reshape(subtracted.shape)


def _simulated_errors(equation: _StateEquation, defects: Array) -> Array:
    """Return ẽ at all samples, `(..., T, n)`: E ẽ[k+1] = A ẽ[k] + defects[k] from zero, in double precision."""
    *batch, n_steps, n = defects.shape
    driven = defects if equation.E is None else np.linalg.solve(equation.E, defects[..., None])[..., 0]
    inputs = np.zeros((math.prod(batch), n_steps + 1, n))
    inputs[:, :-1] = driven.reshape(-1, n_steps, n)
    system = single_block_system(equation.step, np.eye(n), np.zeros((0, n)), np.zeros((0, n)))
    steps = prepare_single_steps(prepare_discrete_step(system, 1.0))
    states, _ = steps.states(inputs, np.zeros((len(inputs), n)))
    return np.asarray(states.reshape(*batch, n_steps + 1, n))


def _second_defects(equation: _StateEquation, errors: Array, defects: Array) -> Array:
    """Return a bound on |A ẽ[k] + defects[k] − E ẽ[k+1]|, which is computed in double precision."""
    A, E = equation.A, np.eye(len(equation.A)) if equation.E is None else equation.E
    before, after = errors[..., :-1, :], errors[..., 1:, :]
    terms = np.abs(before) @ np.abs(A).T + np.abs(defects) + np.abs(after) @ np.abs(E).T
    return np.asarray(np.abs(before @ A.T + defects - after @ E.T) + (len(A) + 4) * EPS * terms)


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
