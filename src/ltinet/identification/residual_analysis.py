"""Residual analysis: whiteness, correlation with the inputs, and detection of feedback.

Correlations of two unrelated series have the variance 1/N only if one of them is white. Inputs and residuals are
therefore whitened separately before they are compared. The filters are causal, so that a correlation stays on its
side of lag 0: at positive lags residuals follow inputs, and the model misses dynamics; at negative lags inputs follow
residuals, and the records were taken in a closed loop.

Feedback test. Whitened residuals are regressed on inputs sent through the same filter, at past and present lags,
which take all that the model misses, and at future lags. In an open loop the future inputs explain nothing: their
contribution is an F ratio, for any inputs, since these count as given (Caines and Chan 1975). Correlations alone do
not suffice: what a model misses comes back at negative lags wherever inputs are periodic.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from ltinet._util.floating_point import EPS, Array
from ltinet.identification.linear_parameters import DrivenModel
from ltinet.identification.output_error import record_residuals
from ltinet.identification.preprocessing import apply_filter, fit_autoregression
from ltinet.identification.records import Record
from ltinet.identification.uncertainty import NORMAL_QUANTILE_99
from ltinet.systems.matrices import Matrix

LAGS = 25
"""Largest lag of the correlations."""
_SAMPLES_PER_LAG = 8  # lower limit of N/lags: the variance of a correlation is (N − lag)/N², 12 % below 1/N at most
_SMALLEST_CHANCE = 1e-8  # smaller probabilities are reported as such; text only
_FALSE_ALARM = 0.01  # probability of the warning in an open loop, over all outputs
# Lags of the inputs in the feedback test: the past as long as the correlations shown; a controller that acts within ten
# samples is found. Fewer future lags give the F ratio more power per lag.
_N_PAST, _N_FUTURE = LAGS, 10
_MAX_NUMBERS = 2**22  # numbers of the regression; of longer records the beginning is used
_HALF_PRECISION = np.sqrt(EPS)  # a pivot by its column, or a residual by its output, that half of the digits determine


@final
@dataclass(frozen=True, eq=False)
class ResidualTests:
    """Residuals of a model with their correlations, and bands that hold 99 % of those of white residuals.

    Parameters
    ----------
    residuals
        Measured less simulated outputs of every record, `(T, p)`.
    lags
        Lags from −L to L.
    autocorrelation
        Correlation of every output's residuals with themselves, `(p, 2L + 1)`.
    cross_correlation
        Correlation `(p, m, 2L + 1)` of inputs at k with residuals at k + lag, both whitened.
    band
        Half the width of the 99 % band.
    is_white
        Result of the Ljung–Box test of every output over all lags, at 99 %.
    chance_of_feedback
        Probability that an open loop shows inputs which follow residuals as much as here, for every output, `(p,)`.

    """

    residuals: tuple[Array, ...]
    lags: NDArray[np.intp]
    autocorrelation: Array
    cross_correlation: Array
    band: float
    is_white: NDArray[np.bool_]
    chance_of_feedback: Array

    @property
    def feedback(self) -> str | None:
        """Warning of a closed loop, given in one of a hundred open loops too; None without signs of one."""
        output = int(np.argmin(self.chance_of_feedback))
        chance = float(self.chance_of_feedback[output])
        if chance * len(self.chance_of_feedback) >= _FALSE_ALARM:
            return None
        often = f"{100.0 * chance:.2g} %" if chance > _SMALLEST_CHANCE else f"less than {100.0 * _SMALLEST_CHANCE:g} %"
        return (
            f"inputs follow the residuals of output {output + 1}, as they would by chance in "
            f"{often} of open loops: the records seem to come from a closed loop, where poles "
            "and gain may be those of the loop rather than of the plant (or inputs and outputs are exchanged)"
        )


def feedback_warning(driven: DrivenModel, records: tuple[Record, ...]) -> tuple[str, ...]:
    """Return a warning where the inputs of the records follow the residuals; outputs with rounding only are left out."""
    residuals = [part.residuals for part in record_residuals(driven, records)]
    size = np.concatenate([record.y[: len(e)] for record, e in zip(records, residuals, strict=True)]).std(axis=0)
    significant = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0)) > _HALF_PRECISION * size
    if not significant.any():
        return ()
    inputs = [record.u[: len(e)] for record, e in zip(records, residuals, strict=True)]
    tests = analyze_residuals([np.where(significant, e, 0.0) for e in residuals], inputs)
    return (tests.feedback,) if tests.feedback else ()


# Correlations.


def analyze_residuals(residuals: list[Array], inputs: list[Array]) -> ResidualTests:
    """Return the tests of residuals `(T, p)` and inputs `(T, m)` of records."""
    p, m = residuals[0].shape[1], inputs[0].shape[1]
    n = sum(map(len, residuals))
    max_lag = max(0, min(LAGS, min(map(len, residuals)) // _SAMPLES_PER_LAG))
    e, u = (
        [[series[:, k] - series[:, k].mean() for series in values] for k in range(count)]
        for values, count in ((residuals, p), (inputs, m))
    )
    auto = np.array([_correlation(series, series, max_lag) for series in e])
    white_e, white_u = ([_whiten_series(series) for series in channels] for channels in (e, u))
    cross = np.array([[_correlation(_common_end(b, a), _common_end(a, b), max_lag) for b in white_u] for a in white_e])
    # Ljung–Box statistic, χ² with one degree of freedom for each lag.
    statistic = n * (n + 2.0) * (auto[:, max_lag + 1 :] ** 2 / (n - np.arange(1, max_lag + 1))).sum(axis=1)
    is_white = statistic <= special.chdtri(max_lag, 0.01) if max_lag else np.ones(p, dtype=bool)
    band = NORMAL_QUANTILE_99 / np.sqrt(max(n, 1))
    chance = chance_of_feedback(residuals, inputs)
    return ResidualTests(
        tuple(residuals), np.arange(-max_lag, max_lag + 1), auto, cross, band, np.asarray(is_white), chance
    )


def _whiten_series(series: list[Array]) -> list[Array]:
    """Filter series by the autoregressive model of all of them, without the first samples."""
    coefficients = fit_autoregression([values[:, None] for values in series])
    return [apply_filter(values, coefficients) for values in series]


def _common_end(series: list[Array], other: list[Array]) -> list[Array]:
    """Return the ends of series for which the other ones have samples."""
    return [a[-min(len(a), len(b)) :] for a, b in zip(series, other, strict=True)]


def _correlation(first: list[Array], second: list[Array], max_lag: int) -> Array:
    """Return the correlation of the first at k with the second at k + lag, lags −max_lag to max_lag; 0 if either is 0."""
    total = np.zeros(2 * max_lag + 1)
    for a, b in zip(first, second, strict=True):
        n = len(a)
        total += [
            float(a[max(0, -k) : n - max(0, k)] @ b[max(0, k) : n - max(0, -k)]) for k in range(-max_lag, max_lag + 1)
        ]
    size = np.sqrt(sum(float(a @ a) for a in first) * sum(float(b @ b) for b in second))
    return total / size if size > 0.0 else total


# Feedback test.


def chance_of_feedback(residuals: list[Array], inputs: list[Array]) -> Array:
    """Return the p-value of the feedback test for every output, `(p,)`; 1 where records are too short."""
    p = residuals[0].shape[1]
    return np.array([_feedback_p_value([e[:, [output]] for e in residuals], inputs) for output in range(p)])


def _feedback_p_value(residuals: list[Array], inputs: list[Array]) -> float:
    coefficients = fit_autoregression(residuals)
    m = inputs[0].shape[1]
    n_columns = 1 + m * (_N_PAST + 1 + _N_FUTURE)
    parts = [
        _regression_rows(*(apply_filter(values - values.mean(axis=0), coefficients) for values in (e, u)))
        for e, u in zip(residuals, inputs, strict=True)
        if len(e) > len(coefficients) + _N_PAST + _N_FUTURE
    ]
    rows = np.vstack([part[: max(1, _MAX_NUMBERS // n_columns)] for part in parts] or [np.zeros((0, n_columns + 1))])
    if len(rows) <= 2 * n_columns:
        return 1.0
    R = np.asarray(linalg.qr(rows, mode="r", check_finite=False)[0][: n_columns + 1])
    rhs = R[:-1, -1]
    independent = np.abs(R.diagonal()[:-1]) > _HALF_PRECISION * np.linalg.norm(R[:, :-1], axis=0)
    future = independent & (np.arange(n_columns) >= n_columns - m * _N_FUTURE)
    # The contribution of dependent columns counts as unexplained.
    unexplained = float(R[-1, -1] ** 2 + (rhs[~independent] ** 2).sum())
    freedom = len(rows) - int(independent.sum())
    if not future.any() or not unexplained > 0.0:
        return 1.0
    ratio = float((rhs[future] ** 2).sum()) / int(future.sum()) / (unexplained / freedom)
    return float(special.fdtrc(int(future.sum()), freedom, ratio))


def _regression_rows(e: Array, u: Array) -> Matrix:
    """Return a constant, inputs at past and present lags, at future ones, and the residual, a row for every sample."""
    last = len(e) - _N_FUTURE
    past = [u[_N_PAST - lag : last - lag] for lag in range(_N_PAST + 1)]
    future = [u[_N_PAST + lag : last + lag] for lag in range(1, _N_FUTURE + 1)]
    return np.hstack([np.ones((last - _N_PAST, 1)), *past, *future, e[_N_PAST:last]])
