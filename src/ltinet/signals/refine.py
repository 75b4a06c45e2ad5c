"""A function as samples on straight lines, fine enough for a stated tolerance."""

import math

import numpy as np

from ltinet.errors import SimulationError
from ltinet.signals.arrays import Times, Values
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.times import even_step

_MOST_SAMPLES = 2_000_000
_SLACK = 0.125  # in case the error falls faster at first
_PROBES = (0.5, 0.2360679775, 0.7071067812)  # the middle, and irrational shares that no period has in common
_FEW = 0.2  # share of intervals up to which only those are cut further
_STUCK = 0.4  # twice the samples leave a quarter of the error of a smooth function, half of it at a kink, all at a jump


def sample_function(signal: FunctionSignal, t: Times, *, tolerance: float) -> tuple[SampledSignal, int]:
    """Samples of a function over t whose straight lines are within `tolerance` of it, and their number per interval.

    Every interval between output times and knots is cut into the same number of parts, doubled until the function is
    within tolerance · max |u| of the lines at all midpoints, where lines are farthest from a smooth function, and at
    places beside them, so that a function with a period of the samples is not taken for a constant. Where a few
    intervals alone resist, they hold kinks or jumps that are not among the knots: those are closed in by bisection.

    Raises:
        SimulationError: that takes more samples than reasonable.
    """
    base = np.unique(t)
    inner = signal.knots[(signal.knots > base[0]) & (signal.knots < base[-1])]
    base = np.union1d(base, inner)
    parts, before = 1, np.inf
    while True:
        times = _cut(base, parts)
        left, right = _sides(signal, times, inner)
        errors = _errors(signal, (times[:-1], times[1:]), (left[:-1], right))
        allowed, worst = tolerance * float(np.max(np.abs(left), initial=0.0)), float(np.max(errors, initial=0.0))
        rough = errors > allowed
        if not np.any(rough):
            return _with_jumps(times, left, right, inner), parts
        if np.mean(rough) <= _FEW and worst > _STUCK * before:
            ends = times[:-1][rough], times[1:][rough]
            times = np.union1d(times, _closed_in(signal, *ends, allowed=allowed, tolerance=tolerance))
            return _with_jumps(times, *_sides(signal, times, inner), inner), 1
        parts, before = 2 * parts, worst
        # Twice the samples leave a quarter of the error at best: what cannot succeed ends early.
        typical = float(np.quantile(errors, 1.0 - _FEW))
        if len(base) * parts * max(1.0, _SLACK * math.sqrt(typical / allowed) if allowed else 1.0) > _MOST_SAMPLES:
            raise _too_rough(len(times), tolerance)


def _sides(signal: FunctionSignal, times: Times, knots: Times) -> tuple[Values, Values]:
    """The function at all times, and at the ends of the intervals between them: they differ at knots where it jumps."""
    values = signal.value(times)
    right = values[1:].copy()
    at = np.searchsorted(times, knots)
    right[at - 1] = signal.value_before(times[at])
    return values, right


def _errors(signal: FunctionSignal, ends: tuple[Times, Times], values: tuple[Values, Values]) -> Times:
    """For each interval, how far the function is from the line between its ends."""
    errors = np.zeros(len(ends[0]))
    for share in _PROBES:
        inside = signal.value((1.0 - share) * ends[0] + share * ends[1])
        away = np.abs(inside - (1.0 - share) * values[0] - share * values[1])
        errors = np.maximum(errors, np.max(away, axis=1, initial=0.0))
    return errors


def _closed_in(signal: FunctionSignal, left: Times, right: Times, *, allowed: float, tolerance: float) -> Times:
    """Times that cut intervals in halves until lines are close enough, or their ends are the two sides of a jump."""
    resolution = 4.0 * np.spacing(max(abs(left[0]), abs(right[-1])))
    found = [np.empty(0)]
    while len(left):
        apart = right - left > resolution
        left, right = left[apart], right[apart]
        middle = 0.5 * (left + right)
        found.append(middle)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        rough = _errors(signal, (left, right), (signal.value(left), signal.value_before(right))) > allowed
        left, right = left[rough], right[rough]
        if sum(map(len, found)) + len(left) > _MOST_SAMPLES:
            raise _too_rough(_MOST_SAMPLES, tolerance)
    return np.concatenate(found)


def _too_rough(n_samples: int, tolerance: float) -> SimulationError:
    return SimulationError(
        f"u as a function is not within {tolerance:g} of straight lines on {n_samples} samples; if it has kinks or "
        "jumps name them, FunctionSignal(u, n_inputs=…, knots=[…]), or raise input_tolerance, or use "
        'engine="neurons"'
    )


def _cut(base: Times, parts: int) -> Times:
    """Each interval in equal parts; evenly spaced times stay even to rounding."""
    step = even_step(base)
    if step is not None:
        times = np.asarray(base[0] + (step / parts) * np.arange((len(base) - 1) * parts + 1))
        times[::parts] = base  # to the bit: a knot a unit in the last place beside its jump would be no knot
        return times
    share = np.arange(parts) / parts
    inside = base[:-1, None] + np.diff(base)[:, None] * share
    return np.asarray(np.append(inside.ravel(), base[-1]))


def _with_jumps(times: Times, values: Values, right: Values, knots: Times) -> SampledSignal:
    """Samples at all times, twice at knots where the function jumps."""
    jumping = [k for k in np.searchsorted(times, knots).tolist() if not np.array_equal(right[k - 1], values[k])]
    if not jumping:
        return SampledSignal(times, values)
    return SampledSignal(
        np.insert(times, jumping, times[jumping]), np.insert(values, jumping, right[np.array(jumping) - 1], axis=0)
    )
