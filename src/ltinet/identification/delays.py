"""By how many samples each input comes late: the first of its responses that stands out of their uncertainty.

Responses over some lags are estimated by least squares with past outputs beside them (an autoregressive model of high
order with inputs), which leaves white residuals, so that the usual uncertainty of least squares holds.
"""

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.record import Record

_LAGS = 20  # of inputs and outputs, where records are long enough
_STANDS_OUT = 4.5  # standard deviations: one false alarm in 10⁵ lags
_AT_MOST = 2**17  # samples that are looked at


def found_delays(records: tuple[Record, ...], *, most: int) -> tuple[int, ...]:
    """For every input the samples before the first one whose output it moves, of a system without a direct path.

    0 where the output moves at the next sample or at once, and where nothing stands out.
    """
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    lags = min(_LAGS, max(most + 2, 2), sum(map(len, records)) // (4 * (m + p)))
    if lags < 2:
        return tuple([0] * m)
    sizes = np.zeros((lags, m))
    columns, outputs = _stacked(records, lags)
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
    first = [np.flatnonzero(sizes[:, j] > _STANDS_OUT) for j in range(m)]
    return tuple(max(int(own[0]) - 1, 0) if len(own) else 0 for own in first)


def _stacked(records: tuple[Record, ...], lags: int) -> tuple[Array, Array]:
    """Inputs at lags 0, 1, …, outputs at lags 1, 2, …, a constant; and outputs, a row for every sample."""
    columns, outputs = [], []
    for own in records:
        n = min(len(own), _AT_MOST)
        if n <= lags:
            continue
        u = [own.u[lags - k : n - k] for k in range(lags)]
        y = [own.y[lags - k : n - k] for k in range(1, lags + 1)]
        columns.append(np.hstack([*u, *y, np.ones((n - lags, 1))]))
        outputs.append(own.y[lags:n])
    if not columns:
        return np.zeros((0, 1)), np.zeros((0, 1))
    return np.vstack(columns), np.vstack(outputs)
