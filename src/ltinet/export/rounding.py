"""Bounds on the rounding error of exported networks, per step and after many steps.

The reference is the exact solution of the network's equations in the engine's coordinates from the exported initial
state. Operations are counted as they are written in the exported kernel; every rounding is assumed to be of the largest
size and the worst sign. In discrete time `decomposition_error` bounds the distance to the system itself. For scalars, with
ρ = |P|, δ the relative error of one product and its table, and g = |Γ| max|u|,

    |z_k| ≤ ρᵏ|z₀| + g (1 − ρᵏ)/(1 − ρ)            |e_{k+1}| ≤ ρ(1 + δ) |e_k| + δ ρ |z_k| + c g,

where the error of the table counts as rounding. In increments, z ← z + ((P − 1) z + Γ u), δ ρ becomes δ |P − 1|, and
the remainder of compensated summation is of second order. Dense blocks use sums of |Pᵏ| by repeated doubling,
|Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|, and modal coordinates where the eigenvectors are well conditioned.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.double_double_exponentials import double_double_matrix_exponentials
from ltinet.export.step_model import BlockStep, StepModel

# ρ below which log(ρ + δ ρ) is computed as it stands: ρ (1 + δ ρ / ρ) may overflow there. Both are equal, so that any limit
# between 1e-290, where quotients begin to overflow, and 1e-16, where the sum begins to lose digits, gives equal bounds.
_NEGLIGIBLE_STATE = 1e-100


class StateErrors(NamedTuple):
    """For each state a bound on its size, the error that one step adds, and the error after all steps."""

    size: Array
    per_step: Array
    drift: Array


class ScalarRounding(NamedTuple):
    """Rounding errors of one step, relative to the state and to the inputs' contribution."""

    of_state: Array
    """δ ρ, or δ |P − 1| for increments."""
    of_inputs: float
    smallest: float
    """Absolute error by underflow."""


def scalar_errors(
    exponents: Array, rounding: ScalarRounding, *, driven: Array, start: Array, n_steps: float
) -> StateErrors:
    """Return the errors of scalars after n steps (∞ allowed) from Re λh, g = `driven`, |z₀| = `start`."""
    decay = np.exp(exponents)  # finite, as the tables of P are
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        faded = decay < _NEGLIGIBLE_STATE
        disturbed = exponents + np.log1p(rounding.of_state / np.where(faded, 1.0, decay))
        disturbed = np.where(faded, np.log(decay + rounding.of_state), disturbed)
        sums, reach = _sum_of_powers(exponents, n_steps), _largest_power(exponents, n_steps)
        size = reach * start + _scale_sums(driven, sums)
        added = rounding.of_inputs * driven + rounding.smallest
        local = rounding.of_state * size + added
        drift = _scale_sums(local, _sum_of_powers(disturbed, n_steps))
        # A growing state was smaller before, so an error of step k has grown by ρ^{n−k} only: n δ ρⁿ bounds the sum.
        grown = start + _scale_sums(driven, _sum_of_powers(-exponents, n_steps))
        while_growing = rounding.of_state * grown * n_steps * _largest_power(disturbed, n_steps)
        while_growing = while_growing + _scale_sums(added, _sum_of_powers(disturbed, n_steps))
        drift = np.where(exponents > 0.0, np.fmin(drift, while_growing), drift)
    return StateErrors(size, local, drift)


def _largest_power(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """Return the largest of ρ⁰ … ρⁿ."""
    growing = np.where(exponents > 0.0, exponents, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(growing > 0.0, np.exp(growing * n_steps), 1.0)


def _sum_of_powers(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """Return 1 + ρ + … + ρⁿ⁻¹."""
    safe = np.where(exponents == 0.0, 1.0, exponents)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(exponents == 0.0, n_steps, np.expm1(safe * n_steps) / np.expm1(safe))


def _scale_sums(amount: Array, sums: Array) -> Array:
    """Return amount · sums, with 0 · ∞ = 0."""
    with np.errstate(invalid="ignore"):
        return np.where(amount == 0.0, 0.0, amount * sums)


_MAX_COMPARED_COLUMNS = 200  # states and inputs, up to which tables are compared with double-double exponentials
# Factor for rounding errors of the bounds themselves: sums of n terms err by n eps, and V⁻¹ by n eps cond(V), which is
# tested against the margin. Larger margins make all bounds larger by as much.
_BOUND_MARGIN = 1.001
_MAX_DOUBLINGS = 60  # 2⁶⁰ steps, 30 million years at 1 kHz, stand for infinitely many


def dense_errors(
    P: Array, rounding: Array, *, driven: Array, added: Array, start: Array, start_error: Array, n_steps: float
) -> StateErrors:
    """Bound the errors with |e_{k+1}| ≤ |P e_k| + rounding (|z_k| + |e_k|) + added; infinite where no bound is found.

    Sums of |Pᵏ| depend on coordinates: the smaller of the bounds in states and in modal coordinates is returned.
    """
    with np.errstate(all="ignore"):
        recurrence = _Recurrence(P, rounding, driven + start, added + start_error)
        bounds = [_smallest_errors(recurrence, n_steps)]
        modal = _modal_recurrence(recurrence)
        if modal is not None:
            modes, back = modal
            size, drift = _smallest_errors(modes, n_steps)
            bounds.append((back @ size, back @ drift))
        size, drift = (np.fmin.reduce(candidates) for candidates in zip(*bounds, strict=True))
        return StateErrors(size, rounding @ size + added, drift)


class _Recurrence(NamedTuple):
    """The recurrence of errors in one set of coordinates."""

    P: NDArray[Any]
    rounding: Array
    driven: Array
    """Largest contribution of inputs in a step, plus the start."""
    added: Array
    """Errors that do not depend on the state."""


def _smallest_errors(recurrence: _Recurrence, n_steps: float) -> tuple[Array, Array]:
    """Return bounds on sizes and errors, the smallest over several assumed growth rates, each of which is valid."""
    n = len(recurrence.P)
    size = drift = np.full(n, np.inf)
    radius = float(np.abs(np.linalg.eigvals(recurrence.P)).max(initial=0.0))
    for assumed in (0.0, *(2.0 ** np.arange(10))) if math.isfinite(n_steps) else (0.0,):
        before = drift
        for growth in {1.0, max(1.0, radius)}:
            rate = growth * math.exp(assumed / n_steps)
            sums = _sum_of_power_moduli(recurrence.P / rate, n_steps)
            sizes = sums @ recurrence.driven
            added = sums @ (recurrence.rounding @ sizes + recurrence.added)
            errors = _feedback_bound(sums @ recurrence.rounding / rate, added)
            factor = _growth_factor(rate, n_steps)
            size, drift = np.fmin(size, factor * sizes), np.fmin(drift, factor * errors)
        if np.isfinite(before).all():
            break
    return size, drift


def _growth_factor(rate: float, n_steps: float) -> float:
    """Return ρⁿ for ρ ≥ 1."""
    with np.errstate(over="ignore"):
        return float(np.exp(n_steps * math.log(rate))) if rate > 1.0 else 1.0


def _feedback_bound(feedback: Array, added: Array) -> Array:
    """Return some x ≥ feedback x + added, which bounds the error: a first larger error would need an earlier one."""
    infinite = np.full(len(added), np.inf)
    if not (np.isfinite(feedback).all() and np.isfinite(added).all()):
        return infinite
    try:
        x = np.linalg.solve(np.eye(len(added)) - _BOUND_MARGIN * feedback, _BOUND_MARGIN * added)
    except np.linalg.LinAlgError:
        return infinite
    return np.asarray(x) if np.all(x >= 0.0) and np.all(feedback @ x + added <= x) else infinite


def _modal_recurrence(recurrence: _Recurrence) -> tuple[_Recurrence, Array] | None:
    """Return the recurrence of m = V⁻¹ z with the eigenvectors of P and |V|, or None if V is ill-conditioned."""
    _, V = np.linalg.eig(recurrence.P)
    if not len(V) or not len(V) * EPS * np.linalg.cond(V) < _BOUND_MARGIN - 1.0:
        return None
    inverse = np.linalg.inv(V)
    forward, back = np.abs(inverse), _BOUND_MARGIN * np.abs(V)
    rounding = forward @ (recurrence.rounding + 2.0 * len(V) * EPS * np.abs(recurrence.P)) @ back
    driven, added = (_BOUND_MARGIN * forward @ values for values in (recurrence.driven, recurrence.added))
    return _Recurrence(inverse @ recurrence.P @ V, rounding, driven, added), back


def table_errors(
    block: BlockStep, Gamma: Array, dt: float, *, linear: bool, by_increments: bool
) -> tuple[Array, Array]:
    """Return the errors of the tables of P, or P − 1, and Γ = (Γ₀, Γ₁) of a block, entry by entry.

    exp of [[F, G, 0], [0, 0, 1], [0, 0, 0]] h has P, h φ₁ G and h² φ₂ G in its first row.
    """
    n, m = block.G.shape
    size = n + 2 * m
    if size > _MAX_COMPARED_COLUMNS:
        norm = float(np.linalg.norm(block.P_minus_1 if by_increments else block.P, 2))
        return np.full((n, n), n * EPS * norm), np.full(Gamma.shape, n * EPS * float(np.linalg.norm(Gamma)))
    augmented = np.zeros((size, size))
    augmented[:n, :n], augmented[:n, n : n + m], augmented[n : n + m, n + m :] = block.F, block.G, np.eye(m)
    exact = double_double_matrix_exponentials(augmented, dt, 0)[0]
    first, second = exact.high[:n, n : n + m], exact.high[:n, n + m :]
    ends = second / dt
    expected = np.hstack([first - ends, ends]) if linear else np.hstack([first, np.zeros_like(first)])
    table, high = (block.P_minus_1, exact.high[:n, :n] - np.eye(n)) if by_increments else (block.P, exact.high[:n, :n])
    of_P = np.abs((table - high) - exact.low[:n, :n])
    return of_P, np.abs(Gamma - expected) + 2.0 * EPS * (np.abs(np.hstack([first, first])) + np.abs(expected))


def _sum_of_power_moduli(P: NDArray[Any], n_steps: float) -> Array:
    """Return a bound on Σ |Pᵏ| for k < n by doubling: |Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|."""
    doublings = _MAX_DOUBLINGS if math.isinf(n_steps) else max(0, math.ceil(math.log2(max(n_steps, 1.0))))
    sums, power = np.eye(len(P)), P
    for _ in range(doublings):
        sums = sums + np.abs(power) @ sums
        power = power @ power
        if not power.any():
            break
    return sums


# Relative error of exponentials and φ-functions in double precision, and of a product of two of them. Empirical: each is
# at most 2.2 eps (tests/unit/export/test_table_errors.py); rounding into Γ and C adds one eps to each.
TABLE_ERROR = 8.0 * EPS
_SQRT2 = float(np.sqrt(2.0))


class RoundingBound(NamedTuple):
    """Bounds for each output `(p,)`: the error that one step adds, and the error after all steps."""

    per_step: Array
    drift: Array
    size: Array
    """Bound on the size of the output."""


def rounding_bound(
    model: StepModel,
    precision: type[np.floating[Any]],
    *,
    n_steps: float,
    peak: Array | float = 1.0,
    samples_at_once: int = 1,
) -> RoundingBound:
    """Return bounds for inputs with |u_j| ≤ peak_j over n steps (∞ allowed) from the exported initial state.

    `samples_at_once` is the number of samples in one sum: longer sums occur that many times less often.
    """
    peaks = np.broadcast_to(np.asarray(peak, dtype=np.float64), (model.n_inputs,))
    arithmetic = _Arithmetic.of(precision, terms=model.n_inputs * (2 if model.hold == "linear" else 1))
    with np.errstate(over="ignore", invalid="ignore"):
        errors = _state_errors(model, arithmetic, peaks, n_steps)
        weights = _mode_moduli(model.C, model)
        size = _weighted_sum(weights, errors.size) + np.abs(model.D) @ peaks
        n_sums = model.n_states + samples_at_once * model.n_inputs + 2
        in_sum = (arithmetic.gamma(n_sums) + arithmetic.table + arithmetic.unit) * size
        in_sum = in_sum + n_sums * arithmetic.smallest
        per_step = _weighted_sum(weights, errors.per_step) + in_sum
        return RoundingBound(per_step, _weighted_sum(weights, errors.drift) + in_sum, size)


def decomposition_error(model: StepModel, *, n_steps: float, x0: Array | None) -> Array:
    """Return a bound `(p,)` on the difference of the outputs of a system and of its network, both exact, in discrete time.

    With x = X z the difference equation of the system is z[k+1] = (P + ΔP) z + (Γ + ΔΓ) u and y = (C + ΔC) z + D u, with
    residuals that are known to all digits (`EngineArrays.residuals`). The difference d of the states satisfies
    d[k+1] = (P + ΔP) d + ΔP z + ΔΓ u, so that with S = Σ|Pᵏ|

        |d| ≤ S (|ΔP| (|z| + |d|) + |ΔΓ| |u| + |d₀|)        |Δy| ≤ |C| |d| + |ΔC| (|z| + |d|).

    for inputs up to 1. States count by modes: the moduli of pairs, reals, states of dense blocks. The bound is infinite
    where none is found, and where T is an operator.
    """
    context, at = model.context, model.positions
    if context.has_operator:
        return np.full(model.n_outputs, np.inf)
    arrays = context.arrays
    residuals, start = arrays.residuals, np.zeros(model.n_states)
    if x0 is not None:
        z0 = context.system.packed_from_blocks(context.initial_state(x0, ()))
        start = arrays.packed(arrays.start_errors(x0[None], z0)[0][0])
    with np.errstate(all="ignore"):
        size = _state_errors(
            model, _Arithmetic.of(np.float64, terms=model.n_inputs), np.ones(model.n_inputs), n_steps
        ).size
        sums = _sums_of_powers(model, n_steps)
        of_outputs = _mode_moduli(residuals.in_output[:, at], model)
        of_states = _mode_moduli(_mode_moduli(residuals.per_state[np.ix_(at, at)], model).T, model).T
        others = _mode_moduli((residuals.per_input.sum(axis=1) + start)[None, at], model)[0]
        difference = _feedback_bound(sums @ of_states, sums @ (of_states @ size + others))
        bound = _weighted_sum(_mode_moduli(model.C, model), difference) + _weighted_sum(of_outputs, size + difference)
    return np.where(np.isnan(bound), np.inf, bound)


def _sums_of_powers(model: StepModel, n_steps: float) -> Array:
    """Return a bound on Σ|Pᵏ| for k < n, by modes; of dense blocks the smaller of the bounds in states and in modes."""
    parts = [np.diag(_sum_of_powers(model.rates.real * model.dt, n_steps))]
    for block in model.blocks:
        sums = _sum_of_power_moduli(block.P, n_steps)
        values, V = np.linalg.eig(block.P)
        if len(V) * EPS * np.linalg.cond(V) < _BOUND_MARGIN - 1.0:
            by_modes = _sum_of_powers(np.log(np.abs(values)), n_steps)
            sums = np.fmin(sums, _BOUND_MARGIN * (np.abs(V) * by_modes) @ np.abs(np.linalg.inv(V)))
        parts.append(sums)
    return np.asarray(linalg.block_diag(*parts))


class _Arithmetic(NamedTuple):
    """Constants of the arithmetic in one precision."""

    unit: float
    table: float
    """Relative error of an entry of a table, beyond that of double precision."""
    smallest: float
    terms: int
    """Number of products with inputs in the sum of a state."""

    @classmethod
    def of(cls, precision: type[np.floating[Any]], *, terms: int) -> "_Arithmetic":
        info = np.finfo(precision)
        unit = float(info.eps) / 2.0
        table = unit if precision is np.float32 else 0.0
        return cls(unit, table, float(info.smallest_subnormal) * (terms + 4), terms)

    def gamma(self, count: int) -> float:
        """Return the relative error of a sum of `count` products (Higham 2002, Lemma 3.1)."""
        return count * self.unit / (1.0 - count * self.unit)


def _state_errors(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> StateErrors:
    """Return the errors of all modes: moduli of pairs, reals, states of dense blocks."""
    parts = [_scalar_states(model, arithmetic, peaks, n_steps), *_dense_states(model, arithmetic, peaks, n_steps)]
    return StateErrors(*(np.concatenate(kind) for kind in zip(*parts, strict=True)))


def _scalar_states(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> StateErrors:
    """Return the errors of pairs, by their moduli, then of reals."""
    pairs = model.n_pairs
    driven = _scalar_moduli((np.abs(model.Gamma0) + np.abs(model.Gamma1)) @ peaks, model)
    start = _scalar_moduli(np.abs(model.start), model)
    slow = np.zeros(len(model.rates), dtype=bool)
    slow[pairs - model.slow_pairs : pairs] = True
    slow[len(slow) - model.slow_reals :] = model.slow_reals > 0
    turning = np.where(np.arange(len(slow)) < pairs, _SQRT2, 1.0)
    # The table of a difference equation is the model itself; P − 1 is a difference that is rounded once.
    table_error = EPS if model.is_discrete else TABLE_ERROR
    products = arithmetic.gamma(arithmetic.terms + 3) * turning + arithmetic.table + table_error
    moved = np.where(slow, np.abs(model.P_minus_1), np.abs(model.P))
    # The remainder of compensated summation takes no part in products, and is rounded when it is added.
    remainder = np.where(slow, arithmetic.unit * moved + 4.0 * arithmetic.unit**2, 0.0)
    of_inputs = arithmetic.gamma(arithmetic.terms + 3) + arithmetic.table + 2.0 * table_error
    rounding = ScalarRounding(products * moved + remainder, of_inputs, arithmetic.smallest)
    errors = scalar_errors(model.rates.real * model.dt, rounding, driven=driven, start=start, n_steps=n_steps)
    growth = np.exp(np.maximum(model.rates.real * model.dt * n_steps, 0.0)) if n_steps < np.inf else 1.0
    return errors._replace(drift=errors.drift + arithmetic.table * start * growth)


def _dense_states(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> list[StateErrors]:
    errors, first = [], len(model.rates) + model.n_pairs
    n_fast = len(model.blocks) - model.slow_blocks
    both = np.concatenate([peaks, peaks])
    linear = model.hold == "linear"
    for index, block in enumerate(model.blocks):
        size, by_increments = len(block.F), index >= n_fast
        rows = slice(first, first + size)
        first = rows.stop
        Gamma = np.hstack([model.Gamma0[rows], model.Gamma1[rows]])
        if model.is_discrete:  # the tables are the model itself; P − 1 is rounded once
            of_P = EPS * np.abs(block.P_minus_1) if by_increments else np.zeros_like(block.P)
            of_Gamma = np.zeros_like(Gamma)
        elif model.tapped:  # columns of Γ belong to fractions of a step, so that one exponential cannot verify them
            undriven = block._replace(G=block.G[:, :0])
            of_P, _ = table_errors(undriven, Gamma[:, :0], model.dt, linear=linear, by_increments=by_increments)
            of_Gamma = np.full(Gamma.shape, size * EPS * float(np.linalg.norm(Gamma)))
        else:
            of_P, of_Gamma = table_errors(block, Gamma, model.dt, linear=linear, by_increments=by_increments)
        moduli = np.abs(block.P_minus_1 if by_increments else block.P)
        relative = arithmetic.gamma(size + arithmetic.terms + 2) + arithmetic.table
        rounding = relative * moduli + of_P
        if by_increments:
            rounding = rounding + arithmetic.unit * moduli + 4.0 * arithmetic.unit**2 * np.eye(size)
        added = (relative * np.abs(Gamma) + of_Gamma) @ both + arithmetic.smallest * size
        start = np.abs(model.start[rows])
        initial = {"start": start, "start_error": arithmetic.table * start}
        driven = np.abs(Gamma) @ both
        errors.append(dense_errors(block.P, rounding, driven=driven, added=added, n_steps=n_steps, **initial))
    return errors


def _scalar_moduli(values: Array, model: StepModel) -> Array:
    """Return the moduli of pairs, then of reals, from states `(n,)`."""
    pairs, n_scalars = model.n_pairs, len(model.rates) + model.n_pairs
    moduli = np.hypot(values[:pairs], values[pairs : 2 * pairs])
    return np.concatenate([moduli, values[2 * pairs : n_scalars]])


def _mode_moduli(rows: Array, model: StepModel) -> Array:
    """Return |rows| by modes, (k × modes), from rows of weights of states, (k × n)."""
    n_scalars = len(model.rates) + model.n_pairs
    none = np.zeros((0, len(model.rates) + model.n_states - n_scalars))
    sizes = [np.concatenate([_scalar_moduli(np.abs(row), model), np.abs(row[n_scalars:])])[None] for row in rows]
    return np.concatenate([none, *sizes])


def _weighted_sum(weights: Array, errors: Array) -> Array:
    """Return weights times errors with 0 · ∞ = 0, since unobserved states may be unbounded."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights == 0.0, 0.0, weights * errors).sum(axis=1))
