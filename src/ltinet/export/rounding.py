"""Bounds on the rounding error of exported networks, per step and after many steps.

The reference is the exact solution of the network's equations in the engine's coordinates from the exported initial
state. Operations are counted as they are written in the exported kernel; every rounding is assumed to be of the largest
size and the worst sign. For scalars, with ρ = |P|, δ the relative error of one product and its table, and
g = |Γ| max|u|,

    |z_k| ≤ ρᵏ|z₀| + g (1 − ρᵏ)/(1 − ρ)            |e_{k+1}| ≤ ρ(1 + δ) |e_k| + δ ρ |z_k| + c g,

where the error of the table counts as rounding. In increments, z ← z + ((P − 1) z + Γ u), δ ρ becomes δ |P − 1|, and
the remainder of compensated summation is of second order. Dense blocks use sums of |Pᵏ| by repeated doubling,
|Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|, and modal coordinates where the eigenvectors are well conditioned.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.extended_precision import extended_exponentials
from ltinet.export.step_model import BlockStep, StepModel

_MAX_SCALAR_EXPONENT = 700.0  # of a number that is finite
_NEGLIGIBLE_STATE = 1e-100  # of a state after one step, below which quotients with it may overflow


class StateErrors(NamedTuple):
    """For each state how large it may be, what one step adds to its error, and the error after all steps."""

    size: Array
    per_step: Array
    drift: Array


class ScalarRounding(NamedTuple):
    """What rounding does in one step: relative to what is left of a state, and to what inputs add."""

    of_state: Array
    """δ ρ, or for increments what stands in its place."""
    of_inputs: float
    smallest: float
    """What underflow may add."""


def scalar_errors(
    exponents: Array, rounding: ScalarRounding, *, driven: Array, start: Array, n_steps: float
) -> StateErrors:
    """Of scalars with Re λh, g, |z₀| and the error of z₀ from its table, after n steps (∞ for ever)."""
    decay = np.exp(np.minimum(exponents, _MAX_SCALAR_EXPONENT))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        faded = decay < _NEGLIGIBLE_STATE
        disturbed = exponents + np.log1p(rounding.of_state / np.where(faded, 1.0, decay))
        disturbed = np.where(faded, np.log(decay + rounding.of_state), disturbed)
        sums, reach = _sum_of_powers(exponents, n_steps), _largest_power(exponents, n_steps)
        size = reach * start + _scale_sums(driven, sums)
        added = rounding.of_inputs * driven + rounding.smallest
        local = rounding.of_state * size + added
        drift = _scale_sums(local, _sum_of_powers(disturbed, n_steps))
        # Where a state grows it was smaller before: all steps together count as often as there are steps, not more.
        grown = start + _scale_sums(driven, _sum_of_powers(-exponents, n_steps))
        while_growing = rounding.of_state * grown * n_steps * _largest_power(disturbed, n_steps)
        while_growing = while_growing + _scale_sums(added, _sum_of_powers(disturbed, n_steps))
        drift = np.where(exponents > 0.0, np.fmin(drift, while_growing), drift)
    return StateErrors(size, local, drift)


def _largest_power(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """The largest of ρ⁰ … ρⁿ."""
    growing = np.where(exponents > 0.0, exponents, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(growing > 0.0, np.exp(np.minimum(growing * n_steps, _MAX_SCALAR_EXPONENT + 10.0)), 1.0)


def _sum_of_powers(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """1 + ρ + … + ρⁿ⁻¹."""
    safe = np.where(exponents == 0.0, 1.0, exponents)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(exponents == 0.0, n_steps, np.expm1(safe * n_steps) / np.expm1(safe))


def _scale_sums(amount: Array, sums: Array) -> Array:
    """Nothing times for ever is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(amount == 0.0, 0.0, amount * sums)


_MAX_COMPARED_COLUMNS = 200  # states and inputs: beyond, tables are not compared with exponentials to twice the digits
_MAX_EXPONENT = 709.0  # of a number that is finite
_BOUND_MARGIN = 1.001  # for what rounding does to bounds themselves
_MAX_EIGENVECTOR_CONDITION = 1e10  # condition of eigenvectors up to which their inverse is right to the spare
_MAX_DOUBLINGS = 60  # doublings: 2⁶⁰ steps last longer than anything


def dense_errors(
    P: Array, rounding: Array, *, driven: Array, added: Array, start: Array, start_error: Array, n_steps: float
) -> StateErrors:
    """Errors with |e_{k+1}| ≤ |P e_k| + rounding (|z_k| + |e_k|) + added; infinite where they grow beyond numbers.

    Sums of |Pᵏ| depend on coordinates. Each of those that are tried gives a bound, and the smallest counts.
    """
    with np.errstate(all="ignore"):
        facts = _Recurrence(P, rounding, driven + start, added + start_error)
        found = [_smallest_errors(facts, n_steps)]
        turned = _modal_errors(facts)
        if turned is not None:
            modes, back = turned
            size, drift = _smallest_errors(modes, n_steps)
            found.append((back @ size, back @ drift))
        size, drift = (np.fmin.reduce(ways) for ways in zip(*found, strict=True))
        return StateErrors(size, rounding @ size + added, drift)


class _Recurrence(NamedTuple):
    P: NDArray[Any]
    rounding: Array
    driven: Array
    """What inputs add in a step at most, and the start."""
    added: Array
    """Errors that do not depend on the state."""


def _smallest_errors(facts: _Recurrence, n_steps: float) -> tuple[Array, Array]:
    """Sizes and errors: of all growths ρ that are assumed, the smallest; one of them bounds any finite run."""
    n = len(facts.P)
    size = drift = np.full(n, np.inf)
    own = float(np.abs(np.linalg.eigvals(facts.P)).max(initial=0.0))
    for assumed in (0.0, *(2.0 ** np.arange(10))) if math.isfinite(n_steps) else (0.0,):
        before = drift
        for slowest in {1.0, max(1.0, own)}:
            rate = slowest * math.exp(assumed / n_steps)
            sums = _sum_of_power_moduli(facts.P / rate, n_steps)
            sizes = sums @ facts.driven
            errors = _feedback_bound(sums @ facts.rounding / rate, sums @ (facts.rounding @ sizes + facts.added))
            size, drift = (
                np.fmin(size, _growth_factor(rate, n_steps) * sizes),
                np.fmin(drift, _growth_factor(rate, n_steps) * errors),
            )
        if np.isfinite(before).all():
            break
    return size, drift


def _growth_factor(rate: float, n_steps: float) -> float:
    """ρⁿ for ρ ≥ 1."""
    exponent = n_steps * math.log(rate) if rate > 1.0 else 0.0
    return math.exp(exponent) if exponent < _MAX_EXPONENT else math.inf


def _feedback_bound(feedback: Array, added: Array) -> Array:
    """Some x ≥ feedback x + added, which no error can pass: the first that did would have come from smaller ones."""
    infinite = np.full(len(added), np.inf)
    if not (np.isfinite(feedback).all() and np.isfinite(added).all()):
        return infinite
    try:
        x = np.linalg.solve(np.eye(len(added)) - _BOUND_MARGIN * feedback, _BOUND_MARGIN * added)
    except np.linalg.LinAlgError:
        return infinite
    return np.asarray(x) if np.all(x >= 0.0) and np.all(feedback @ x + added <= x) else infinite


def _modal_errors(facts: _Recurrence) -> tuple[_Recurrence, Array] | None:
    """The same for m = V⁻¹ z with the eigenvectors of P, where these are known well, and what leads back to |z|."""
    _, V = np.linalg.eig(facts.P)
    if not len(V) or not np.linalg.cond(V) < _MAX_EIGENVECTOR_CONDITION:
        return None
    inverse = np.linalg.inv(V)
    there, back = np.abs(inverse), _BOUND_MARGIN * np.abs(V)
    rounded = there @ (facts.rounding + 2.0 * len(V) * EPS * np.abs(facts.P)) @ back
    modes = _Recurrence(
        inverse @ facts.P @ V, rounded, _BOUND_MARGIN * there @ facts.driven, _BOUND_MARGIN * there @ facts.added
    )
    return modes, back


def table_errors(
    block: BlockStep, Gamma: Array, dt: float, *, linear: bool, by_increments: bool
) -> tuple[Array, Array]:
    """How far P, or P − 1, and Γ = (Γ₀, Γ₁) of a block are from what they stand for, entry by entry.

    exp of [[F, G, 0], [0, 0, 1], [0, 0, 0]] h has P, h φ₁ G and h² φ₂ G in its first row.
    """
    n, m = block.G.shape
    size = n + 2 * m
    if size > _MAX_COMPARED_COLUMNS:
        norm = float(np.linalg.norm(block.less_one if by_increments else block.P, 2))
        return np.full((n, n), n * EPS * norm), np.full(Gamma.shape, n * EPS * float(np.linalg.norm(Gamma)))
    whole = np.zeros((size, size))
    whole[:n, :n], whole[:n, n : n + m], whole[n : n + m, n + m :] = block.F, block.G, np.eye(m)
    exact = extended_exponentials(whole, dt, 0)[0]
    first, second = (exact.high[:n, own] for own in (slice(n, n + m), slice(n + m, None)))
    ends = second / dt
    expected = np.hstack([first - ends, ends]) if linear else np.hstack([first, np.zeros_like(first)])
    own = exact.high[:n, :n] - np.eye(n) if by_increments else exact.high[:n, :n]
    of_P = np.abs(((block.less_one if by_increments else block.P) - own) - exact.low[:n, :n])
    return of_P, np.abs(Gamma - expected) + 2.0 * EPS * (np.abs(np.hstack([first, first])) + np.abs(expected))


def _sum_of_power_moduli(P: NDArray[Any], n_steps: float) -> Array:
    """A bound on Σ |Pᵏ| for k < n: |Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|."""
    doublings = _MAX_DOUBLINGS if math.isinf(n_steps) else max(0, math.ceil(math.log2(max(n_steps, 1.0))))
    sums, power = np.eye(len(P)), P
    for _ in range(doublings):
        sums = sums + np.abs(power) @ sums
        power = power @ power
        if not power.any():
            break
    return sums


_TABLE_ERROR = 8.0 * EPS  # exponentials and φ-functions in double precision are right to a few units
_SQRT2 = float(np.sqrt(2.0))


class RoundingBound(NamedTuple):
    """For each output `(p,)`: what one step may add to its error, and the error after all steps."""

    per_step: Array
    drift: Array
    size: Array
    """How large the output may be."""


def rounding_bound(
    model: StepModel,
    precision: type[np.floating[Any]],
    *,
    n_steps: float,
    peak: Array | float = 1.0,
    samples_at_once: int = 1,
) -> RoundingBound:
    """Bounds for inputs with |u_j| ≤ peak_j over n steps (∞ for ever) from the exported initial state.

    Where sums run over several samples at once they are longer, and as many times fewer.
    """
    peaks = np.broadcast_to(np.asarray(peak, dtype=np.float64), (model.n_inputs,))
    arithmetic = _Arithmetic.of(precision, terms=model.n_inputs * (2 if model.hold == "linear" else 1))
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [_scalar_states(model, arithmetic, peaks, n_steps), *_dense_states(model, arithmetic, peaks, n_steps)]
        errors = StateErrors(*(np.concatenate(own) for own in zip(*parts, strict=True)))
        weights = _output_moduli(model)
        size = _weighted_sum(weights, errors.size) + np.abs(model.D) @ peaks
        n_sums = model.n_states + samples_at_once * model.n_inputs + 2
        in_sum = (arithmetic.gamma(n_sums) + arithmetic.table + arithmetic.unit) * size
        in_sum = in_sum + n_sums * arithmetic.smallest
        per_step = _weighted_sum(weights, errors.per_step) + in_sum
        return RoundingBound(per_step, _weighted_sum(weights, errors.drift) + in_sum, size)


class _Arithmetic(NamedTuple):
    unit: float
    table: float
    """Relative error of an entry of a table, beyond that of double precision."""
    smallest: float
    terms: int
    """Products with inputs in the sum of a state."""

    @classmethod
    def of(cls, precision: type[np.floating[Any]], *, terms: int) -> "_Arithmetic":
        info = np.finfo(precision)
        unit = float(info.eps) / 2.0
        table = unit if precision is np.float32 else 0.0
        return cls(unit, table, float(info.smallest_subnormal) * (terms + 4), terms)

    def gamma(self, count: int) -> float:
        """A sum of so many products is off by this times the sum of their sizes (Higham 2002, Lemma 3.1)."""
        return count * self.unit / (1.0 - count * self.unit)


def _scalar_states(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> StateErrors:
    """Pairs by their moduli, then reals."""
    pairs = model.n_pairs
    driven = _scalar_moduli((np.abs(model.Gamma0) + np.abs(model.Gamma1)) @ peaks, model)
    start = _scalar_moduli(np.abs(model.start), model)
    slow = np.zeros(len(model.rates), dtype=bool)
    slow[pairs - model.slow_pairs : pairs] = True
    slow[len(slow) - model.slow_reals :] = model.slow_reals > 0
    turning = np.where(np.arange(len(slow)) < pairs, _SQRT2, 1.0)
    products = arithmetic.gamma(arithmetic.terms + 3) * turning + arithmetic.table + _TABLE_ERROR
    moved = np.where(slow, np.abs(model.less_one), np.abs(model.P))
    # What compensation keeps aside takes no part in products, and is itself rounded when it is added.
    aside = np.where(slow, arithmetic.unit * moved + 4.0 * arithmetic.unit**2, 0.0)
    rounding = ScalarRounding(
        products * moved + aside,
        arithmetic.gamma(arithmetic.terms + 3) + arithmetic.table + 2.0 * _TABLE_ERROR,
        arithmetic.smallest,
    )
    found = scalar_errors(model.rates.real * model.dt, rounding, driven=driven, start=start, n_steps=n_steps)
    kept = np.exp(np.maximum(model.rates.real * model.dt * n_steps, 0.0)) if n_steps < np.inf else 1.0
    return found._replace(drift=found.drift + arithmetic.table * start * kept)


def _dense_states(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> list[StateErrors]:
    found, first = [], len(model.rates) + model.n_pairs
    n_fast = len(model.blocks) - model.slow_blocks
    both = np.concatenate([peaks, peaks])
    for place, block in enumerate(model.blocks):
        own = slice(first, first + len(block.F))
        first = own.stop
        Gamma = np.hstack([model.Gamma0[own], model.Gamma1[own]])
        by_increments = place >= n_fast
        own_inputs = (block._replace(G=block.G[:, :0]), Gamma[:, :0]) if model.tapped else (block, Gamma)
        of_P, of_Gamma = table_errors(*own_inputs, model.dt, linear=model.hold == "linear", by_increments=by_increments)
        if model.tapped:  # columns of parts of a step, which no exponential has at once
            of_Gamma = np.full(Gamma.shape, len(block.F) * EPS * float(np.linalg.norm(Gamma)))
        moved = np.abs(block.less_one if by_increments else block.P)
        share = arithmetic.gamma(len(block.F) + arithmetic.terms + 2) + arithmetic.table
        rounding = share * moved + of_P
        if by_increments:
            rounding = rounding + arithmetic.unit * moved + 4.0 * arithmetic.unit**2 * np.eye(len(moved))
        added = (share * np.abs(Gamma) + of_Gamma) @ both + arithmetic.smallest * len(moved)
        start = np.abs(model.start[own])
        found.append(
            dense_errors(
                block.P,
                rounding,
                driven=np.abs(Gamma) @ both,
                added=added,
                start=start,
                start_error=arithmetic.table * start,
                n_steps=n_steps,
            )
        )
    return found


def _scalar_moduli(values: Array, model: StepModel) -> Array:
    """Of states `(n,)` the scalars: pairs by their modulus, then reals."""
    pairs, n_scalars = model.n_pairs, len(model.rates) + model.n_pairs
    moduli = np.hypot(values[:pairs], values[pairs : 2 * pairs])
    return np.concatenate([moduli, values[2 * pairs : n_scalars]])


def _output_moduli(model: StepModel) -> Array:
    """|C| by scalars and states of dense blocks, (p × …)."""
    n_scalars = len(model.rates) + model.n_pairs
    none = np.zeros((0, len(model.rates) + model.n_states - n_scalars))
    sizes = [np.concatenate([_scalar_moduli(np.abs(row), model), np.abs(row[n_scalars:])])[None] for row in model.C]
    return np.concatenate([none, *sizes])


def _weighted_sum(weights: Array, errors: Array) -> Array:
    """Sums in which what no output sees does not count, however large it is."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights == 0.0, 0.0, weights * errors).sum(axis=1))
