"""Preparation of records: channel units, detrending, input delays and prewhitening.

Units are powers of two near the spread of the channels, so that products neither overflow nor underflow. Delays are
estimated from an autoregressive model of high order with inputs (ARX), whose residuals are white: the delay of an
input is the lag of its first coefficient that exceeds its uncertainty. Detrending removes a line from every channel
before a subspace method is applied, which would otherwise spend a state at 1 on it.

Prewhitening. Lasting noise, for example AR(1) with 0.95, looks like a slow state, and hold-out errors say little
because neighbouring ones are correlated. Inputs and outputs of a linear system may be sent through one common filter;
with that of an autoregressive model of the residuals, the remaining noise is white.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import DrivenModel, InitialCondition, Trend
from ltinet.identification.records import Record

# MERGED ltinet.identification.preprocessing
# Records through a filter that makes what a model leaves over white; the system between inputs and outputs stays.
#
# Noise that lasts, AR(1) with 0.95 say, looks like a slow state of the system: methods spend an order on it, and errors
# on a hold-out say little, since neighbouring ones are the same accident. Inputs and outputs of a linear system may be
# sent through one common filter. With that of an autoregressive model of the residuals, what is left is white.

N_COEFFICIENTS = 20
_RIDGE = 1e-9  # of the variance: residuals that are one sine have no inverse otherwise


def fit_autoregression(residuals: list[Array], n_coefficients: int = N_COEFFICIENTS) -> Array:
    """1, −a₁, −a₂, …: the filter that whitens residuals `(T, p)` of some records, outputs in units of their size."""
    n = min(n_coefficients, max(0, min(len(own) for own in residuals) // 4))
    covariances = np.zeros(n + 1)
    for output in range(residuals[0].shape[1]):
        of_output = [own[:, output] - own[:, output].mean() for own in residuals]
        lags = np.array([sum(float(e[: len(e) - k] @ e[k:]) for e in of_output) for k in range(n + 1)])
        covariances += lags / lags[0] if lags[0] > 0.0 else 0.0
    if not n or not covariances[0] > 0.0:
        return np.ones(1)
    column = covariances[:n].copy()
    column[0] *= 1.0 + _RIDGE
    return np.concatenate([[1.0], -linalg.solve_toeplitz(column, covariances[1:])])


def whiten(record: Record, coefficients: Array) -> Record:
    """A record through the filter, without the samples at its beginning that lack others before them."""
    lost = len(coefficients) - 1
    n = len(record) - lost
    u, y = (
        np.asarray(sum(c * own[lost - k : lost - k + n] for k, c in enumerate(coefficients.tolist())))
        for own in (record.u, record.y)
    )
    return Record(u, y)


# MERGED ltinet.identification.preprocessing
# By how many samples each input comes late: the first of its responses that stands out of their uncertainty.
#
# Responses over some lags are estimated by least squares with past outputs beside them (an autoregressive model of high
# order with inputs), which leaves white residuals, so that the usual uncertainty of least squares holds.

_LAGS = 20  # of inputs and outputs, where records are long enough
_SIGNIFICANCE = 4.5  # standard deviations: one false alarm in 10⁵ lags
_MAX_SAMPLES = 2**17  # samples that are looked at


def estimate_delays(records: tuple[Record, ...], *, most: int) -> tuple[int, ...]:
    """For every input the samples before the first one whose output it moves, of a system without a direct path.

    0 where the output moves at the next sample or at once, and where nothing stands out.
    """
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    lags = min(_LAGS, max(most + 2, 2), sum(map(len, records)) // (4 * (m + p)))
    if lags < 2:
        return tuple([0] * m)
    sizes = np.zeros((lags, m))
    columns, outputs = _arx_regression(records, lags)
    if len(columns) <= 2 * columns.shape[1]:
        return tuple([0] * m)
    Q, R = linalg.qr(columns, mode="economic", check_finite=False)
    diagonal = np.abs(R.diagonal())
    if not np.all(diagonal > 1e-10 * diagonal.max(initial=0.0)):
        return tuple([0] * m)  # clean records explain each other: a delay is found as poles at zero
    inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
    spread = np.linalg.norm(inverse, axis=1)
    for output in range(p):
        weights = inverse @ (Q.T @ outputs[:, output])
        left = outputs[:, output] - columns @ weights
        deviation = np.sqrt(left @ left / (len(left) - len(R))) * spread
        ratio = np.abs(weights) / np.where(deviation > 0.0, deviation, np.inf)
        sizes = np.maximum(sizes, ratio[: lags * m].reshape(lags, m))
    first = [np.flatnonzero(sizes[:, j] > _SIGNIFICANCE) for j in range(m)]
    return tuple(max(int(own[0]) - 1, 0) if len(own) else 0 for own in first)


def _arx_regression(records: tuple[Record, ...], lags: int) -> tuple[Array, Array]:
    """Inputs at lags 0, 1, …, outputs at lags 1, 2, …, a constant; and outputs, a row for every sample."""
    columns, outputs = [], []
    for own in records:
        n = min(len(own), _MAX_SAMPLES)
        if n <= lags:
            continue
        u = [own.u[lags - k : n - k] for k in range(lags)]
        y = [own.y[lags - k : n - k] for k in range(1, lags + 1)]
        columns.append(np.hstack([*u, *y, np.ones((n - lags, 1))]))
        outputs.append(own.y[lags:n])
    if not columns:
        return np.zeros((0, 1)), np.zeros((0, 1))
    return np.vstack(columns), np.vstack(outputs)


# MERGED ltinet.identification.preprocessing
# Lines taken out of records before a subspace method sees them, where slopes are asked for.


def detrend(records: tuple[Record, ...], trend: Trend) -> tuple[Record, ...]:
    """Records without the line of every channel, inputs and outputs, if the trend is one; as they are otherwise.

    A drift of outputs is a state at 1 to a subspace method, and takes the place of one of the system. A line of an
    input gives a line of the output, so that both go; the least squares that follow see records as they are.
    """
    return (
        tuple(Record(_detrend_values(own.u), _detrend_values(own.y)) for own in records)
        if trend == "linear"
        else records
    )


def _detrend_values(values: Array) -> Array:
    ramp = np.linspace(-1.0, 1.0, len(values))
    return np.asarray(values - values.mean(axis=0) - np.outer(ramp, ramp @ values) / max(float(ramp @ ramp), 1.0))


# MERGED ltinet.identification.preprocessing
# Channels in units in which all are about 1: products of numbers of 1e200 or 1e-200 are none.

_MAX_EXPONENT_SPREAD = 10  # powers of two


class ChannelUnits(NamedTuple):
    """Powers of two, which cost no digit, for every input `(m,)` and output `(p,)`."""

    inputs: Array
    outputs: Array

    @property
    def gain(self) -> Array:
        """Of what is given by what is scaled, `(p, m)`."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.outputs[:, None] / self.inputs)

    def scaled(self, record: Record) -> Record:
        """A record in these units."""
        return Record(record.u / self.inputs, record.y / self.outputs)

    def restored(self, linear: DrivenModel) -> DrivenModel:
        """A model of scaled records as one of those that were given."""
        model = linear.model
        own = replace(
            model,
            B=model.B / self.inputs,
            C=model.C * self.outputs[:, None],
            D=model.D * self.outputs[:, None] / self.inputs,
        )
        starts = tuple(InitialCondition(start.states, start.trends * self.outputs[:, None]) for start in linear.starts)
        with np.errstate(over="ignore", under="ignore"):  # fits are told in scaled units
            return DrivenModel(own, starts, linear.errors * self.outputs**2)


def choose_units(records: tuple[Record, ...]) -> ChannelUnits:
    """Units near the spread of every channel."""
    return ChannelUnits(
        *(_power_of_two_units(np.max([np.ptp(getattr(own, name), axis=0) for own in records], axis=0)) for name in "uy")
    )


def _power_of_two_units(size: Array) -> Array:
    """One unit for all channels, since units weigh them against each other; own ones where they are far apart."""
    exponents = np.frexp(size)[1]
    together = exponents.max()
    return np.asarray(np.ldexp(1.0, np.where(exponents > together - _MAX_EXPONENT_SPREAD, together, exponents)))
