"""Residual analysis: whiteness, correlation with the inputs, and detection of feedback.

Correlations of two unrelated series have the variance 1/N only if one of them is white. Inputs and residuals are
therefore whitened separately before they are compared. The filters are causal, so that a correlation stays on its
side of lag 0: at positive lags residuals follow inputs, and the model misses dynamics; at negative lags inputs follow
residuals, and the records were taken in a closed loop.

Feedback test. Whitened residuals are regressed on inputs sent through the same filter, at past and present lags,
which take all that the model misses, and at future lags. In an open loop the future inputs explain nothing: their
contribution is an F ratio, for any inputs, since these count as given (Caines and Chan 1975).
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import (
    DrivenModel,
    Trend,
    compute_regressors,
    fit_initial_condition,
    simulated_outputs,
)
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.preprocessing import fit_autoregression
from ltinet.identification.records import Record
from ltinet.identification.sensitivities import record_residuals
from ltinet.identification.uncertainty import NORMAL_QUANTILE_99
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.residual_analysis
# Whether inputs follow what a model leaves over: the mark of a loop that was closed while records were taken.
#
# Residuals, made white, are explained by inputs through the same filter: those before and at their own time, which take
# all that the model misses, and those after it. In an open loop the later ones explain nothing: how much they add is an F
# ratio, for any inputs, sweeps and periods among them, since these count as given (Caines and Chan 1975). Correlations
# alone do not tell: what a model misses comes back at negative lags wherever inputs repeat themselves.

_BEFORE, _AFTER = 25, 10  # lags of inputs
_AT_ONCE = 2**22  # numbers of the regression: longer records are looked at in part
_DEPENDENT = 1e-8  # of a column: what is left of one that the others tell to half of the digits


def chance_of_feedback(residuals: list[Array], inputs: list[Array]) -> Array:
    """For every output, how often an open loop would show as much as this: `(p,)`, 1 where records are too short."""
    p = residuals[0].shape[1]
    return np.array([_feedback_p_value([own[:, [output]] for own in residuals], inputs) for output in range(p)])


def _feedback_p_value(residuals: list[Array], inputs: list[Array]) -> float:
    coefficients = fit_autoregression(residuals)
    m = inputs[0].shape[1]
    n_columns = 1 + m * (_BEFORE + 1 + _AFTER)
    stacked = [
        _regression_rows(_filtered(e, coefficients), _filtered(u, coefficients))[: max(1, _AT_ONCE // n_columns)]
        for e, u in zip(residuals, inputs, strict=True)
        if len(e) > len(coefficients) + _BEFORE + _AFTER
    ]
    rows = np.vstack(stacked) if stacked else np.zeros((0, n_columns + 1))
    if len(rows) <= 2 * n_columns:
        return 1.0
    R = np.asarray(linalg.qr(rows, mode="r", check_finite=False)[0][: n_columns + 1])
    told = np.abs(R.diagonal()[:-1]) > _DEPENDENT * np.linalg.norm(R[:, :-1], axis=0)
    added = told & (np.arange(n_columns) >= n_columns - m * _AFTER)
    # What columns told by others would explain of the side belongs to what is left.
    left = float(R[-1, -1] ** 2 + (R[:-1, -1][~told] ** 2).sum())
    freedom = len(rows) - int(told.sum())
    if not added.any() or not left > 0.0:
        return 1.0
    ratio = float((R[:-1, -1][added] ** 2).sum()) / int(added.sum()) / (left / freedom)
    return float(special.fdtrc(int(added.sum()), freedom, ratio))


def _regression_rows(e: Array, u: Array) -> Matrix:
    """A constant, inputs at lags 25, …, 0 and those after, and the residual, a row for every sample."""
    last = len(e) - _AFTER
    before = [u[_BEFORE - lag : last - lag] for lag in range(_BEFORE + 1)]
    after = [u[_BEFORE + lag : last + lag] for lag in range(1, _AFTER + 1)]
    return np.hstack([np.ones((last - _BEFORE, 1)), *before, *after, e[_BEFORE:last]])


def _filtered(series: Array, coefficients: Array) -> Array:
    centred = series - series.mean(axis=0)
    lost, n = len(coefficients) - 1, len(series) - len(coefficients) + 1
    return np.asarray(sum(c * centred[lost - k : lost - k + n] for k, c in enumerate(coefficients.tolist())))


# MERGED ltinet.identification.residual_analysis
# What a model leaves over: whether it is noise of its own, still knows the inputs, or inputs know it.
#
# Correlations of two series with nothing in common have the variance 1/N only if one of them is white. Inputs and
# residuals therefore go, each by itself, through the filters that whiten them before they are compared. Such filters look
# into the past only, so that a correlation stays on its side of lag 0: at positive lags residuals follow inputs, and the
# model misses something; at negative lags inputs follow residuals, and somebody was feeding outputs back.

LAGS = 25
_SAMPLES_PER_LAG = 8  # at least, so that the bands mean something
_SMALLEST_CHANCE = 1e-8  # a chance that needs no digits
_FALSE_ALARM = 0.01  # of the warning, over all outputs


@final
@dataclass(frozen=True, eq=False)
class ResidualTests:
    """Correlations of residuals, with bands that hold 99 % of those of white residuals that know no input."""

    residuals: tuple[Array, ...]
    """Measured less simulated outputs of every record, `(T, p)`."""
    lags: NDArray[np.intp]
    """From −L to L."""
    autocorrelation: Array
    """Of every output with itself, `(p, 2L + 1)`, as residuals are."""
    cross_correlation: Array
    """`(p, m, 2L + 1)`: of inputs at k with residuals at k + lag, both whitened."""
    band: float
    """Half the width of the 99 % band."""
    is_white: NDArray[np.bool_]
    """For every output, at 99 % over all lags together (Ljung and Box)."""

    chance_of_feedback: Array
    """For every output, how often an open loop would let inputs follow residuals as much as here, `(p,)`."""

    @property
    def feedback(self) -> str | None:
        """A warning where inputs follow residuals, in one of a hundred open loops too: a closed loop."""
        output = int(np.argmin(self.chance_of_feedback))
        chance = float(self.chance_of_feedback[output])
        if chance * len(self.chance_of_feedback) >= _FALSE_ALARM:
            return None
        often = f"{100.0 * chance:.2g} %" if chance > _SMALLEST_CHANCE else f"less than {100.0 * _SMALLEST_CHANCE:g} %"
        return (
            f"inputs follow what the model leaves over of output {output + 1}, as they would by chance in "
            f"{often} of open loops: the records seem to come from a closed loop, where poles "
            "and gain may be those of the loop rather than of the plant"
        )


def analyze_residuals(residuals: list[Array], inputs: list[Array], *, lags: int = LAGS) -> ResidualTests:
    """The tests of residuals `(T, p)` and inputs `(T, m)` of some records."""
    p, m = residuals[0].shape[1], inputs[0].shape[1]
    n = sum(len(own) for own in residuals)
    most = max(0, min(lags, min(len(own) for own in residuals) // _SAMPLES_PER_LAG))
    around = np.arange(-most, most + 1)
    alone = np.array([_correlation(*2 * (_column(residuals, i),), most) for i in range(p)])
    white_e = [_whiten_series(_column(residuals, i)) for i in range(p)]
    white_u = [_whiten_series(_column(inputs, j)) for j in range(m)]
    cross = np.array([[_correlation(_common_end(u, e), _common_end(e, u), most) for u in white_u] for e in white_e])
    after = alone[:, most + 1 :]
    statistic = n * (n + 2.0) * (after**2 / (n - np.arange(1, most + 1))).sum(axis=1)
    is_white = statistic <= special.chdtri(most, 0.01) if most else np.ones(p, dtype=bool)
    band = NORMAL_QUANTILE_99 / np.sqrt(max(n, 1))
    chance = chance_of_feedback(residuals, inputs)
    return ResidualTests(tuple(residuals), around, alone, cross, band, np.asarray(is_white), chance)


def _column(values: list[Array], number: int) -> list[Array]:
    return [own[:, number] - own[:, number].mean() for own in values]


def _whiten_series(series: list[Array]) -> list[Array]:
    """Without the samples at the beginning that lack others before them."""
    coefficients = fit_autoregression([own[:, None] for own in series])
    return [np.convolve(own, coefficients, mode="valid") for own in series]


def _common_end(series: list[Array], other: list[Array]) -> list[Array]:
    """The ends that both have."""
    return [own[-min(len(own), len(its)) :] for own, its in zip(series, other, strict=True)]


def _correlation(first: list[Array], second: list[Array], most: int) -> Array:
    """Of the first at k with the second at k + lag, lags from −most to most; 0 where one of them is 0."""
    total = np.zeros(2 * most + 1)
    for a, b in zip(first, second, strict=True):
        n = len(a)
        total += [float(a[max(0, -k) : n - max(0, k)] @ b[max(0, k) : n - max(0, -k)]) for k in range(-most, most + 1)]
    size = np.sqrt(sum(float(a @ a) for a in first) * sum(float(b @ b) for b in second))
    return total / size if size > 0.0 else total


# MERGED ltinet.identification.residual_analysis
# The residuals of a model over records: those it was found in, or others.

_ROUNDING_LEVEL = (
    1e-8  # of the outputs: residuals below are what arithmetic leaves over, about which there is nothing to say
)


def record_residual_tests(model: ModalModel, records: tuple[Record, ...], trend: Trend) -> ResidualTests:
    """The tests of a model on records whose starts and trends are fitted."""
    residuals = []
    for own in records:
        start, _ = fit_initial_condition(model, own, trend=trend, scale=np.ones(model.n_outputs))
        found = compute_regressors(model, own)
        residuals.append(found.outputs - simulated_outputs(found, model, start))
    return analyze_residuals(residuals, [own.u for own in records])


def record_fits(model: ModalModel, records: tuple[Record, ...]) -> Array:
    """100 (1 − ‖y − ŷ‖/‖y − mean‖) % of every output, with starts fitted as `record_fit` does."""
    errors = sum(fit_initial_condition(model, own, trend="none", scale=output_deviations(own))[1] for own in records)
    spread = sum(((own.y - own.y.mean(axis=0)) ** 2).sum(axis=0) for own in records)
    return np.asarray(100.0 * (1.0 - np.sqrt(errors / spread)))


def output_deviations(record: Record) -> Array:
    """Return ‖y − mean‖ of every output, in units of which starts are fitted; 1 where an output does not change."""
    found = np.linalg.norm(record.y - record.y.mean(axis=0), axis=0)
    return np.where(found > 0.0, found, 1.0)


def feedback_warning(linear: DrivenModel, records: tuple[Record, ...]) -> tuple[str, ...]:
    """A warning, or none, where the inputs of the records follow what the model leaves over."""
    parts = record_residuals(linear, records)
    residuals = [own.residuals for own in parts]
    size = np.concatenate([own.y[: len(e)] for own, e in zip(records, residuals, strict=True)]).std(axis=0)
    shown = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0)) > _ROUNDING_LEVEL * size
    if not shown.any():
        return ()
    tests = analyze_residuals(
        [np.where(shown, own, 0.0) for own in residuals],
        [own.u[: len(e)] for own, e in zip(records, residuals, strict=True)],
    )
    return (tests.feedback,) if tests.feedback else ()
