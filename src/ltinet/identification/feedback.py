"""Whether inputs follow what a model leaves over: the mark of a loop that was closed while records were taken.

Residuals, made white, are explained by inputs through the same filter: those before and at their own time, which take
all that the model misses, and those after it. In an open loop the later ones explain nothing: how much they add is an F
ratio, for any inputs, sweeps and periods among them, since these count as given (Caines and Chan 1975). Correlations
alone do not tell: what a model misses comes back at negative lags wherever inputs repeat themselves.
"""

import numpy as np
from scipy import linalg, special

from ltinet.arrays import Array
from ltinet.identification.whitening import autoregression
from ltinet.model.matrices import Matrix

_BEFORE, _AFTER = 25, 10  # lags of inputs
_AT_ONCE = 2**22  # numbers of the regression: longer records are looked at in part
_KNOWN = 1e-8  # of a column: what is left of one that the others tell to half of the digits


def chance_of_feedback(residuals: list[Array], inputs: list[Array]) -> Array:
    """For every output, how often an open loop would show as much as this: `(p,)`, 1 where records are too short."""
    p = residuals[0].shape[1]
    return np.array([_chance([own[:, [output]] for own in residuals], inputs) for output in range(p)])


def _chance(residuals: list[Array], inputs: list[Array]) -> float:
    coefficients = autoregression(residuals)
    m = inputs[0].shape[1]
    n_columns = 1 + m * (_BEFORE + 1 + _AFTER)
    stacked = [
        _rows(_through(e, coefficients), _through(u, coefficients))[: max(1, _AT_ONCE // n_columns)]
        for e, u in zip(residuals, inputs, strict=True)
        if len(e) > len(coefficients) + _BEFORE + _AFTER
    ]
    rows = np.vstack(stacked) if stacked else np.zeros((0, n_columns + 1))
    if len(rows) <= 2 * n_columns:
        return 1.0
    R = np.asarray(linalg.qr(rows, mode="r", check_finite=False)[0][: n_columns + 1])
    told = np.abs(R.diagonal()[:-1]) > _KNOWN * np.linalg.norm(R[:, :-1], axis=0)
    added = told & (np.arange(n_columns) >= n_columns - m * _AFTER)
    # What columns told by others would explain of the side belongs to what is left.
    left = float(R[-1, -1] ** 2 + (R[:-1, -1][~told] ** 2).sum())
    freedom = len(rows) - int(told.sum())
    if not added.any() or not left > 0.0:
        return 1.0
    ratio = float((R[:-1, -1][added] ** 2).sum()) / int(added.sum()) / (left / freedom)
    return float(special.fdtrc(int(added.sum()), freedom, ratio))


def _rows(e: Array, u: Array) -> Matrix:
    """A constant, inputs at lags 25, …, 0 and those after, and the residual, a row for every sample."""
    last = len(e) - _AFTER
    before = [u[_BEFORE - lag : last - lag] for lag in range(_BEFORE + 1)]
    after = [u[_BEFORE + lag : last + lag] for lag in range(1, _AFTER + 1)]
    return np.hstack([np.ones((last - _BEFORE, 1)), *before, *after, e[_BEFORE:last]])


def _through(series: Array, coefficients: Array) -> Array:
    centred = series - series.mean(axis=0)
    lost, n = len(coefficients) - 1, len(series) - len(coefficients) + 1
    return np.asarray(sum(c * centred[lost - k : lost - k + n] for k, c in enumerate(coefficients.tolist())))
