"""Estimation of input delays.

First bound. In an autoregressive model of high order with inputs (ARX) residuals are white, so that the usual
uncertainty of least squares holds, and the first coefficient of an input that exceeds its uncertainty bounds the delay
from above. For a smooth response it comes late: behind two lags the first coefficients are tiny.

Search. Models without feedthrough, refined by output error, tell delays apart much better, since all samples of the
response decide. For each order a pattern search below the bound finds the delays with the smallest simulation error, and
the Bayesian information criterion chooses among the orders: a delay that is too short needs
another state, one that is too long leaves an error. One more state explains a part of the delay of a smaller model, so
that each order begins at the delays of the order before, or at the bound if that is better there. Records are
prewhitened, so that errors of models with different delays can be compared by their likelihoods; delays are not
distinguishable where twice the difference of log-likelihoods is below the 99 % quantile of χ² with one degree of
freedom. The estimate is the middle of their range, since errors within it differ by chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import DrivenModel, simulate_record
from ltinet.identification.order_selection import EstimationSettings, fit_driven_model, refine_model, subspace_models
from ltinet.identification.preprocessing import fit_autoregression, whiten
from ltinet.identification.records import Record, n_samples

_MIN_LAGS = 40  # of inputs and outputs, where records are long enough: the largest delay that is found in short ones
_SIGNIFICANCE = 4.5  # standard deviations: one false alarm in 10⁵ lags
_MIN_PIVOT = 1e-10  # of the largest: rounding of N rows is N eps = 2e-11 for 10⁵ samples
_MAX_SAMPLES = 2**16  # samples of a record that are used for the bound
_MAX_SEARCHED = 2**14  # samples of all records that are used for the search
_MAX_RECORDS = 10  # records that are used for the search, the longest ones
# Samples of a record beyond the bound that the search needs: block rows, whitening filter and start leave enough of them.
_MIN_LENGTH = 100
_BLOCK_ROWS = (15, 25)  # of the models from which refinement starts
_MAX_ORDER = 8  # larger systems keep the bound
_N_WORSE_ORDERS = 2  # in a row that end the search, since a pair counts two states
_FIRST_STEP = 4  # samples
_TOLERANCE = 1e-6  # of refinements: 2 log likelihood of N = 16,384 samples is then right to 0.02
_INDISTINGUISHABLE = 6.63  # 99 % quantile of χ² with one degree of freedom


class DelayEstimate(NamedTuple):
    """Delays of the inputs in samples."""

    samples: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...] = ()
    """Delays of each input, first and last, that are not distinguishable; empty where they are not known."""


def estimate_delays(records: tuple[Record, ...], settings: EstimationSettings) -> DelayEstimate:
    """Return for every input the number of samples that it is delayed by, from records around their means.

    A delay of 0 moves the output at the next sample, or at once.
    """
    bounds = bound_delays(records, linear=settings.linear)
    if bounds is None or not any(bound is None or bound for bound in bounds):
        return DelayEstimate((0,) * records[0].u.shape[1])
    known = tuple(bound or 0 for bound in bounds)
    reach = _n_lags(records) if None in bounds else max(known)
    longest = sorted(records, key=len, reverse=True)[:_MAX_RECORDS]
    share = _MAX_SEARCHED // len(longest)
    usable = tuple(record.part(slice(0, share)) for record in longest if min(len(record), share) > reach + _MIN_LENGTH)
    best = None
    if usable:
        best = _DelaySearch(usable, replace(settings, feedthrough=False, stable=True), reach).search(bounds)
    return best or DelayEstimate(known)


# Bound from the first significant coefficients.


def bound_delays(records: tuple[Record, ...], *, linear: bool = False) -> tuple[int | None, ...] | None:
    """Return the delay of each input by its first significant coefficient, None for inputs without one.

    None instead of all of them where the records are too short, or so free of noise that regressors are dependent.

    With white noise on the outputs the ARX model that is exact has infinitely many lags, and what is cut off appears in
    other coefficients where inputs are held for several samples. The number of lags grows as N^⅓ with the number of
    samples N, as for consistent estimates (Ljung and Wahlberg 1992), so that this error stays below the uncertainty.
    """
    m, p = int(records[0].u.shape[1]), int(records[0].y.shape[1])
    lags = _n_lags(records)
    if lags < 2:
        return None
    columns, outputs = _arx_regression(records, lags)
    if len(columns) <= 2 * columns.shape[1]:
        return None
    Q, R = linalg.qr(columns, mode="economic", check_finite=False)
    diagonal = np.abs(R.diagonal())
    if not np.all(diagonal > _MIN_PIVOT * diagonal.max(initial=0.0)):
        return None  # columns of noise-free records are dependent; a delay then appears as poles at 0
    inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
    row_norms = np.linalg.norm(inverse, axis=1)
    ratios = np.zeros((lags, m))
    for output in range(p):
        weights = inverse @ (Q.T @ outputs[:, output])
        residuals = outputs[:, output] - columns @ weights
        deviation = np.sqrt(residuals @ residuals / (len(residuals) - len(R))) * row_norms
        ratio = np.abs(weights) / np.where(deviation > 0.0, deviation, np.inf)
        ratios = np.maximum(ratios, ratio[: lags * m].reshape(lags, m))
    # With zero hold an input without a delay moves the output one sample later.
    bounds: list[int | None] = []
    for j in range(m):
        significant = np.flatnonzero(ratios[:, j] > _SIGNIFICANCE)
        bounds.append(max(int(significant[0]) - (0 if linear else 1), 0) if len(significant) else None)
    return tuple(bounds)


def _n_lags(records: tuple[Record, ...]) -> int:
    """Return the number of lags of the ARX model."""
    n_channels = int(records[0].u.shape[1] + records[0].y.shape[1])
    count = sum(min(len(record), _MAX_SAMPLES) for record in records)
    return min(max(_MIN_LAGS, round(float(np.cbrt(count)))), count // (4 * n_channels))


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


# Search with refined models.


@dataclass(frozen=True, eq=False)
class _Delayed:
    """Refined model for given delays, with −2 log likelihood."""

    driven: DrivenModel
    delays: tuple[int, ...]
    cost: float


def _middle(ends: tuple[int, int], best: int) -> int:
    """Return the middle of a range, of two that are equally near the one towards the best delay."""
    return sum(ends) // 2 + int(sum(ends) % 2 == 1 and best > sum(ends) // 2)


class _DelaySearch:
    """Search over orders and delays up to `reach`, with outputs of the same samples for all delays."""

    def __init__(self, records: tuple[Record, ...], settings: EstimationSettings, reach: int) -> None:
        self._records, self._settings, self._reach = records, settings, reach

    def search(self, bounds: Sequence[int | None]) -> DelayEstimate | None:
        """Return the delays of the order with the smallest criterion; None where more states than considered help."""
        upper = self._upper_delays(bounds)
        models = dict(self._starting_models(upper))
        if not models:
            return None
        n, (m, p) = n_samples(self._shifted(upper)), (len(bounds), self._settings.scale.size)
        penalty = (m + p) * np.log(n * p)
        leader = min(models.values(), key=lambda it: n * np.log(it.errors).sum() + penalty * it.model.order)
        residuals = [
            record.y - simulate_record(leader.model, record, start)
            for record, start in zip(self._shifted(upper), leader.starts, strict=True)
        ]
        self._records = whiten(self._records, fit_autoregression(residuals))
        best, previous, least, n_worse = None, upper, np.inf, 0
        for order, driven in models.items():
            starts = [self._refined(driven, delays) for delays in dict.fromkeys((upper, previous))]
            found = min((it for it in starts if it is not None), key=lambda it: it.cost, default=None)
            if found is None:
                continue
            found = self._minimized(found, upper)
            previous = found.delays
            if found.cost + penalty * order < least:
                best, least, n_worse = found, found.cost + penalty * order, 0
            else:
                n_worse += 1
                if n_worse == _N_WORSE_ORDERS:
                    break
        if best is None or n_worse < _N_WORSE_ORDERS:
            return None
        ranges = tuple(self._range(best, j) for j in range(m))
        return DelayEstimate(tuple(map(_middle, ranges, best.delays)), ranges)

    def _upper_delays(self, bounds: Sequence[int | None]) -> tuple[int, ...]:
        """Return the bounds; of inputs without one the delays of the best model of two states, after one of one."""
        upper = tuple(bound or 0 for bound in bounds)
        if None not in bounds:
            return upper
        limits = tuple(self._reach if bound is None else bound for bound in bounds)
        for order in (1, 2):
            driven = dict(self._starting_models(upper)).get(order)
            start = None if driven is None else self._refined(driven, upper)
            upper = upper if start is None else self._minimized(start, limits).delays
        return upper

    def _starting_models(self, delays: tuple[int, ...]) -> Iterator[tuple[int, DrivenModel]]:
        """Yield the best subspace model of every order."""
        records = self._shifted(delays)
        best: dict[int, DrivenModel] = {}
        for order, _, _, A, C in subspace_models(
            records, _BLOCK_ROWS, ("moesp",), range(1, _MAX_ORDER + 1), self._settings.trend
        ):
            driven = fit_driven_model(A, C, records, self._settings)
            if driven is not None and (order not in best or driven.errors.sum() < best[order].errors.sum()):
                best[order] = driven
        yield from sorted(best.items())

    def _shifted(self, delays: tuple[int, ...]) -> tuple[Record, ...]:
        first = self._reach
        return tuple(
            Record(
                np.stack([record.u[first - d : len(record) - d, j] for j, d in enumerate(delays)], axis=1),
                record.y[first:],
            )
            for record in self._records
        )

    def _refined(self, driven: DrivenModel, delays: tuple[int, ...]) -> _Delayed | None:
        """Return the model refined for these delays."""
        records = self._shifted(delays)
        refined = refine_model(driven, records, self._settings, tolerance=_TOLERANCE)
        if refined is None:
            return None
        return _Delayed(refined, delays, float(n_samples(records) * np.log(refined.errors).sum()))

    def _neighbors(self, start: _Delayed, j: int, step: int) -> Iterator[_Delayed]:
        """Yield models with one delay changed step by step."""
        here: _Delayed | None = start
        while here is not None and 0 <= here.delays[j] + step <= self._reach:
            delays = tuple(d + step * (k == j) for k, d in enumerate(here.delays))
            here = self._refined(here.driven, delays)
            if here is not None:
                yield here

    def _minimized(self, best: _Delayed, limits: Sequence[int]) -> _Delayed:
        """Return the best model by steps of one delay at a time, which are halved where they do not help."""
        step, seen = _FIRST_STEP, {best.delays}
        while step:
            before = best.delays
            for j, limit in enumerate(limits):
                for signed in (-step, step):
                    trial = best
                    while 0 <= trial.delays[j] + signed <= limit:
                        delays = tuple(d + signed * (k == j) for k, d in enumerate(trial.delays))
                        moved = None if delays in seen else self._refined(best.driven, delays)
                        seen.add(delays)
                        if moved is None or moved.cost >= best.cost:
                            break
                        trial = best = moved
            if best.delays == before:
                step //= 2
        return best

    def _range(self, best: _Delayed, j: int) -> tuple[int, int]:
        """Return the first and the last delay of one input that are not distinguishable from the best one."""
        ends = [best.delays[j], best.delays[j]]
        for end, step in enumerate((-1, 1)):
            for here in self._neighbors(best, j, step):
                if here.cost > best.cost + _INDISTINGUISHABLE:
                    break
                ends[end] = here.delays[j]
        return ends[0], ends[1]
