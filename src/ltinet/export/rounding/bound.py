"""The bound of an exported network: each output per unit of its inputs, per step and after many of them.

The truth that it is a distance from is the exact solution of the network's own equations in the engine's coordinates,
from the initial state that was exported. Sums are counted as they are written in the exported kernel; every rounding is
taken to be as large as it can be and of the sign that hurts.
"""

from typing import Any, NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.export.rounding.dense import dense_errors, table_errors
from ltinet.export.rounding.scalars import ScalarRounding, StateErrors, scalar_errors
from ltinet.export.step_model import StepModel
from ltinet.tolerances import EPS

_TABLE = 8.0 * EPS  # exponentials and φ-functions in double precision are right to a few units
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
        parts = [_scalars(model, arithmetic, peaks, n_steps), *_dense(model, arithmetic, peaks, n_steps)]
        errors = StateErrors(*(np.concatenate(own) for own in zip(*parts, strict=True)))
        weights = _output_sizes(model)
        size = _weighted(weights, errors.size) + np.abs(model.D) @ peaks
        n_sums = model.n_states + samples_at_once * model.n_inputs + 2
        in_sum = (arithmetic.gamma(n_sums) + arithmetic.table + arithmetic.unit) * size
        in_sum = in_sum + n_sums * arithmetic.smallest
        per_step = _weighted(weights, errors.per_step) + in_sum
        return RoundingBound(per_step, _weighted(weights, errors.drift) + in_sum, size)


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


def _scalars(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> StateErrors:
    """Pairs by their moduli, then reals."""
    pairs = model.n_pairs
    driven = _modulus((np.abs(model.Gamma0) + np.abs(model.Gamma1)) @ peaks, model)
    start = _modulus(np.abs(model.start), model)
    slow = np.zeros(len(model.rates), dtype=bool)
    slow[pairs - model.slow_pairs : pairs] = True
    slow[len(slow) - model.slow_reals :] = model.slow_reals > 0
    turning = np.where(np.arange(len(slow)) < pairs, _SQRT2, 1.0)
    products = arithmetic.gamma(arithmetic.terms + 3) * turning + arithmetic.table + _TABLE
    moved = np.where(slow, np.abs(model.less_one), np.abs(model.P))
    # What compensation keeps aside takes no part in products, and is itself rounded when it is added.
    aside = np.where(slow, arithmetic.unit * moved + 4.0 * arithmetic.unit**2, 0.0)
    rounding = ScalarRounding(
        products * moved + aside,
        arithmetic.gamma(arithmetic.terms + 3) + arithmetic.table + 2.0 * _TABLE,
        arithmetic.smallest,
    )
    found = scalar_errors(model.rates.real * model.dt, rounding, driven=driven, start=start, n_steps=n_steps)
    kept = np.exp(np.maximum(model.rates.real * model.dt * n_steps, 0.0)) if n_steps < np.inf else 1.0
    return found._replace(drift=found.drift + arithmetic.table * start * kept)


def _dense(model: StepModel, arithmetic: _Arithmetic, peaks: Array, n_steps: float) -> list[StateErrors]:
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


def _modulus(values: Array, model: StepModel) -> Array:
    """Of states `(n,)` the scalars: pairs by their modulus, then reals."""
    pairs, n_scalars = model.n_pairs, len(model.rates) + model.n_pairs
    moduli = np.hypot(values[:pairs], values[pairs : 2 * pairs])
    return np.concatenate([moduli, values[2 * pairs : n_scalars]])


def _output_sizes(model: StepModel) -> Array:
    """|C| by scalars and states of dense blocks, (p × …)."""
    n_scalars = len(model.rates) + model.n_pairs
    none = np.zeros((0, len(model.rates) + model.n_states - n_scalars))
    sizes = [np.concatenate([_modulus(np.abs(row), model), np.abs(row[n_scalars:])])[None] for row in model.C]
    return np.concatenate([none, *sizes])


def _weighted(weights: Array, errors: Array) -> Array:
    """Sums in which what no output sees does not count, however large it is."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights == 0.0, 0.0, weights * errors).sum(axis=1))
