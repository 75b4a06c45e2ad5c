"""Rounding in scalars z ← P z + Γ u, real or complex, over many steps: geometric sums.

With ρ = |P|, δ the relative error of one product and its table, and g = |Γ| max|u|:

    |z_k| ≤ ρᵏ|z₀| + g (1 − ρᵏ)/(1 − ρ)            |e_{k+1}| ≤ ρ(1 + δ) |e_k| + δ ρ |z_k| + c g

where the error of the table counts as rounding. In increments, z ← z + ((P − 1) z + Γ u), δ ρ becomes δ |P − 1|, and
what compensated summation leaves of the sum itself is of second order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array

_LARGEST_EXPONENT = 700.0  # of a number that is finite
_FADED = 1e-100  # of a state after one step, below which quotients with it may overflow


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
    decay = np.exp(np.minimum(exponents, _LARGEST_EXPONENT))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        faded = decay < _FADED
        disturbed = exponents + np.log1p(rounding.of_state / np.where(faded, 1.0, decay))
        disturbed = np.where(faded, np.log(decay + rounding.of_state), disturbed)
        sums, reach = _sum_of_powers(exponents, n_steps), _power(exponents, n_steps)
        size = reach * start + _times(driven, sums)
        added = rounding.of_inputs * driven + rounding.smallest
        local = rounding.of_state * size + added
        drift = _times(local, _sum_of_powers(disturbed, n_steps))
        # Where a state grows it was smaller before: all steps together count as often as there are steps, not more.
        grown = start + _times(driven, _sum_of_powers(-exponents, n_steps))
        while_growing = rounding.of_state * grown * n_steps * _power(disturbed, n_steps)
        while_growing = while_growing + _times(added, _sum_of_powers(disturbed, n_steps))
        drift = np.where(exponents > 0.0, np.fmin(drift, while_growing), drift)
    return StateErrors(size, local, drift)


def _power(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """The largest of ρ⁰ … ρⁿ."""
    growing = np.where(exponents > 0.0, exponents, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(growing > 0.0, np.exp(np.minimum(growing * n_steps, _LARGEST_EXPONENT + 10.0)), 1.0)


def _sum_of_powers(exponents: Array, n_steps: float) -> NDArray[np.float64]:
    """1 + ρ + … + ρⁿ⁻¹."""
    safe = np.where(exponents == 0.0, 1.0, exponents)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(exponents == 0.0, n_steps, np.expm1(safe * n_steps) / np.expm1(safe))


def _times(amount: Array, sums: Array) -> Array:
    """Nothing times for ever is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(amount == 0.0, 0.0, amount * sums)
