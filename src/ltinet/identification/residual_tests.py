"""What a model leaves over: whether it is noise of its own, still knows the inputs, or inputs know it.

Correlations of two series with nothing in common have the variance 1/N only if one of them is white. Inputs and
residuals therefore go, each by itself, through the filters that whiten them before they are compared. Such filters look
into the past only, so that a correlation stays on its side of lag 0: at positive lags residuals follow inputs, and the
model misses something; at negative lags inputs follow residuals, and somebody was feeding outputs back.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ltinet.arrays import Array
from ltinet.identification.confidence import DEVIATIONS_99
from ltinet.identification.feedback import chance_of_feedback
from ltinet.identification.whitening import autoregression

LAGS = 25
_SAMPLES_A_LAG = 8  # at least, so that the bands mean something
_HARDLY = 1e-8  # a chance that needs no digits
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
        often = f"{100.0 * chance:.2g} %" if chance > _HARDLY else f"less than {100.0 * _HARDLY:g} %"
        return (
            f"inputs follow what the model leaves over of output {output + 1}, as they would by chance in "
            f"{often} of open loops: the records seem to come from a closed loop, where poles "
            "and gain may be those of the loop rather than of the plant"
        )


def examined(residuals: list[Array], inputs: list[Array], *, lags: int = LAGS) -> ResidualTests:
    """The tests of residuals `(T, p)` and inputs `(T, m)` of some records."""
    p, m = residuals[0].shape[1], inputs[0].shape[1]
    n = sum(len(own) for own in residuals)
    most = max(0, min(lags, min(len(own) for own in residuals) // _SAMPLES_A_LAG))
    around = np.arange(-most, most + 1)
    alone = np.array([_correlation(*2 * (_column(residuals, i),), most) for i in range(p)])
    white_e = [_whitened(_column(residuals, i)) for i in range(p)]
    white_u = [_whitened(_column(inputs, j)) for j in range(m)]
    cross = np.array([[_correlation(_cut(u, e), _cut(e, u), most) for u in white_u] for e in white_e])
    after = alone[:, most + 1 :]
    statistic = n * (n + 2.0) * (after**2 / (n - np.arange(1, most + 1))).sum(axis=1)
    is_white = statistic <= special.chdtri(most, 0.01) if most else np.ones(p, dtype=bool)
    band = DEVIATIONS_99 / np.sqrt(max(n, 1))
    chance = chance_of_feedback(residuals, inputs)
    return ResidualTests(tuple(residuals), around, alone, cross, band, np.asarray(is_white), chance)


def _column(values: list[Array], number: int) -> list[Array]:
    return [own[:, number] - own[:, number].mean() for own in values]


def _whitened(series: list[Array]) -> list[Array]:
    """Without the samples at the beginning that lack others before them."""
    coefficients = autoregression([own[:, None] for own in series])
    return [np.convolve(own, coefficients, mode="valid") for own in series]


def _cut(series: list[Array], other: list[Array]) -> list[Array]:
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
