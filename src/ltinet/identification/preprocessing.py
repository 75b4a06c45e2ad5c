"""Preparation of records: channel units, detrending and prewhitening.

Units are powers of two near the spread of the channels, so that products neither overflow nor underflow.
Detrending removes a line from every channel before a subspace method is applied, which would otherwise spend a state at
1 on it.

Prewhitening. Lasting noise, for example AR(1) with 0.95, looks like a slow state, and hold-out errors say little
because neighboring ones are correlated. Inputs and outputs of a linear system may be sent through one common filter;
with that of an autoregressive model of the residuals, the remaining noise is white.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import DrivenModel, InitialCondition, Trend
from ltinet.identification.records import Record

# Units of the channels.

_MAX_EXPONENT_SPREAD = 10  # powers of two between channels that share a unit


class ChannelUnits(NamedTuple):
    """Powers of two, so that scaling is exact, for every input `(m,)` and output `(p,)`."""

    inputs: Array
    outputs: Array

    @property
    def gain(self) -> Array:
        """Ratios of unscaled and scaled gains, `(p, m)`."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.outputs[:, None] / self.inputs)

    def scaled(self, record: Record) -> Record:
        """Return a record in these units."""
        return Record(record.u / self.inputs, record.y / self.outputs)

    def restored(self, driven: DrivenModel) -> DrivenModel:
        """Return a model of scaled records as one of the original records."""
        model, to_outputs = driven.model, self.outputs[:, None]
        model = replace(model, B=model.B / self.inputs, C=model.C * to_outputs, D=model.D * to_outputs / self.inputs)
        starts = tuple(InitialCondition(start.states, start.trends * to_outputs) for start in driven.starts)
        with np.errstate(over="ignore", under="ignore"):  # fits are computed in scaled units
            return DrivenModel(model, starts, driven.errors * self.outputs**2)


def choose_units(records: tuple[Record, ...], *, equal: bool) -> ChannelUnits:
    """Return units near the spread of every channel, which weight channels against each other.

    With `equal` all channels have the same weight. Otherwise inputs, and outputs, share one unit, as in the records,
    and channels that are smaller by more than 2^10 have units of their own.
    """
    units = []
    for name in "uy":
        if equal:
            values = np.concatenate([getattr(record, name) for record in records])
            units.append(np.ldexp(1.0, np.frexp(np.abs(values - values.mean(axis=0)).mean(axis=0))[1]))
            continue
        exponents = np.frexp(np.max([np.ptp(getattr(record, name), axis=0) for record in records], axis=0))[1]
        common = exponents.max()
        units.append(np.ldexp(1.0, np.where(exponents > common - _MAX_EXPONENT_SPREAD, common, exponents)))
    return ChannelUnits(*units)


def detrend(records: tuple[Record, ...], trend: Trend) -> tuple[Record, ...]:
    """Remove a line from every channel if the trend is linear.

    A drift of outputs is a state at 1 to a subspace method, and takes the place of one of the system. A line of an
    input gives a line of the output, so that both are removed; the least squares that follow use unchanged records.
    """
    if trend != "linear":
        return records
    return tuple(Record(_detrend_values(record.u), _detrend_values(record.y)) for record in records)


def _detrend_values(values: Array) -> Array:
    ramp = np.linspace(-1.0, 1.0, len(values))
    return np.asarray(values - values.mean(axis=0) - np.outer(ramp, ramp @ values) / max(float(ramp @ ramp), 1.0))


# Prewhitening.

_N_COEFFICIENTS = 20  # order of the autoregressive models of residuals, where records are long enough
# Of the variance: without it the equations of residuals that are one sine are singular. Above the rounding of the
# lags, N eps = 2e-10 for a million samples.
_RIDGE = 1e-9


def fit_autoregression(residuals: list[Array]) -> Array:
    """Return 1, −a₁, −a₂, …: the filter that whitens residuals `(T, p)` of records, each output in units of its size.

    The coefficients solve the Yule–Walker equations by Levinson's recursion.
    """
    n = min(_N_COEFFICIENTS, max(0, min(map(len, residuals)) // 4))
    covariances = np.zeros(n + 1)
    for output in range(residuals[0].shape[1]):
        series = [values[:, output] - values[:, output].mean() for values in residuals]
        lags = np.array([sum(float(e[: len(e) - k] @ e[k:]) for e in series) for k in range(n + 1)])
        covariances += lags / lags[0] if lags[0] > 0.0 else 0.0
    if not n or not covariances[0] > 0.0:
        return np.ones(1)
    column = covariances[:n].copy()
    column[0] *= 1.0 + _RIDGE
    return np.concatenate([[1.0], -linalg.solve_toeplitz(column, covariances[1:])])


def apply_filter(values: Array, coefficients: Array) -> Array:
    """Filter the rows of `values`, without the first ones, which lack samples before them."""
    lost = len(coefficients) - 1
    n = len(values) - lost
    return np.asarray(sum(c * values[lost - k : lost - k + n] for k, c in enumerate(coefficients.tolist())))


def whiten(records: tuple[Record, ...], coefficients: Array) -> tuple[Record, ...]:
    """Send inputs and outputs of records through the filter; those that are shorter than the filter are left out."""
    usable = [record for record in records if len(record) >= len(coefficients)]
    return tuple(
        Record(apply_filter(record.u, coefficients), apply_filter(record.y, coefficients)) for record in usable
    )
