"""Preparation of records: channel units, detrending, input delays and prewhitening.

Units are powers of two near the spread of the channels, so that products neither overflow nor underflow. Delays are
estimated from an autoregressive model of high order with inputs (ARX), whose residuals are white, so that the usual
uncertainty of least squares holds: the delay of an input is the lag of its first coefficient that exceeds its
uncertainty. Detrending removes a line from every channel before a subspace method is applied, which would otherwise
spend a state at 1 on it.

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


# Input delays.

_MIN_LAGS = 20  # of inputs and outputs, where records are long enough
_SIGNIFICANCE = 4.5  # standard deviations: one false alarm in 10⁵ lags
_MIN_PIVOT = 1e-10  # of the largest: rounding of N rows is N eps = 2e-11 for 10⁵ samples
_MAX_SAMPLES = 2**16  # samples of a record that are used


def estimate_delays(records: tuple[Record, ...]) -> tuple[int, ...]:
    """Return for every input the number of samples that it is delayed by.

    0 where the output moves at once or at the next sample, as in a system without feedthrough, and where no
    coefficient exceeds its uncertainty.

    With white noise on the outputs the ARX model that is exact has infinitely many lags, and what is cut off appears in other
    coefficients where inputs are held for several samples. The number of lags grows as N^⅓ with the number of samples N, as for
    consistent estimates (Ljung and Wahlberg 1992), so that this error stays below the uncertainty.
    """
    m, p = int(records[0].u.shape[1]), int(records[0].y.shape[1])
    n_samples = sum(min(len(record), _MAX_SAMPLES) for record in records)
    lags = min(max(_MIN_LAGS, round(n_samples ** (1.0 / 3.0))), n_samples // (4 * (m + p)))
    none = (0,) * m
    if lags < 2:
        return none
    columns, outputs = _arx_regression(records, lags)
    if len(columns) <= 2 * columns.shape[1]:
        return none
    Q, R = linalg.qr(columns, mode="economic", check_finite=False)
    diagonal = np.abs(R.diagonal())
    if not np.all(diagonal > _MIN_PIVOT * diagonal.max(initial=0.0)):
        return none  # columns of noise-free records are dependent; a delay then appears as poles at 0
    inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
    row_norms = np.linalg.norm(inverse, axis=1)
    ratios = np.zeros((lags, m))
    for output in range(p):
        weights = inverse @ (Q.T @ outputs[:, output])
        residuals = outputs[:, output] - columns @ weights
        deviation = np.sqrt(residuals @ residuals / (len(residuals) - len(R))) * row_norms
        ratio = np.abs(weights) / np.where(deviation > 0.0, deviation, np.inf)
        ratios = np.maximum(ratios, ratio[: lags * m].reshape(lags, m))
    significant = [np.flatnonzero(ratios[:, j] > _SIGNIFICANCE) for j in range(m)]
    return tuple(max(int(lags[0]) - 1, 0) if len(lags) else 0 for lags in significant)


def _arx_regression(records: tuple[Record, ...], lags: int) -> tuple[Array, Array]:
    """Return columns (inputs at lags 0, 1, …, outputs at lags 1, 2, …, a constant) and outputs, a row per sample."""
    columns, outputs = [], []
    for record in records:
        n = min(len(record), _MAX_SAMPLES)
        if n <= lags:
            continue
        u = [record.u[lags - k : n - k] for k in range(lags)]
        y = [record.y[lags - k : n - k] for k in range(1, lags + 1)]
        columns.append(np.hstack([*u, *y, np.ones((n - lags, 1))]))
        outputs.append(record.y[lags:n])
    if not columns:
        return np.zeros((0, 1)), np.zeros((0, 1))
    return np.vstack(columns), np.vstack(outputs)
