"""A function as samples on straight lines, fine enough for a stated tolerance."""

import math
from typing import Any

import numpy as np

from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Smooth
from ltinet.signals.times import even_step
from ltinet.signals.watched import Watched, too_rough

_MOST_SAMPLES = 2_000_000
_SLACK = 0.125  # in case the error falls faster at first
_PROBES = (0.5, 0.2360679775, 0.7071067812)  # the middle, and irrational shares that no period has in common
_FEW = 0.2  # share of intervals up to which only those are cut further
_STUCK = 0.4  # twice the samples leave a quarter of the error of a smooth function, half of it at a kink, all at a jump


def sample_function(signal: Smooth, t: Times, *, tolerance: float) -> tuple[SampledSignal, int]:
    """Samples of a function over t whose straight lines are within `tolerance` of it, and their number per interval.

    Every interval between output times and knots is cut into the same number of parts, doubled until each input is
    within tolerance · max |u| of its lines, the largest of that input, at all midpoints, where lines are farthest from
    a smooth function, and at places beside them, so that a function with a period of the samples is not taken for a
    constant. What a first look at places all over the span has shown is not forgotten either. Where a few intervals
    alone resist, they hold kinks or jumps that are not among the knots: those are closed in by bisection.

    Raises:
        SimulationError: that takes more samples or calls than reasonable, or the function grows without bound.
    """
    base = np.unique(t)
    inner = signal.knots[(signal.knots > base[0]) & (signal.knots < base[-1])]
    base = np.union1d(base, inner)
    watched = Watched(signal, base, tolerance=tolerance)
    parts, before = 1, np.inf
    while True:
        times = _cut(base, parts)
        left, right = _sides(watched, times, inner)
        errors = _errors(watched, (times[:-1], times[1:]), values=(left[:-1], right))
        worst, rough = float(np.max(errors, initial=0.0)), errors > 1.0
        if not np.any(rough):
            return _with_jumps(times, left, right, inner), parts
        if np.mean(rough) <= _FEW and worst > _STUCK * before:
            ends, values = _at((times[:-1], times[1:]), rough), _at((left[:-1], right), rough)
            times = np.union1d(times, _closed_in(watched, ends, values=values))
            return _with_jumps(times, *_sides(watched, times, inner), inner), 1
        parts, before = 2 * parts, worst
        # Twice the samples leave a quarter of the error at best: what cannot succeed ends early.
        typical = float(np.quantile(errors, 1.0 - _FEW))
        if len(base) * parts * max(1.0, _SLACK * math.sqrt(typical)) > _MOST_SAMPLES:
            raise too_rough(f"on {len(times)} samples", tolerance)


def _sides(watched: Watched, times: Times, knots: Times) -> tuple[Values, Values]:
    """The function at all times, and at the ends of the intervals between them: they differ at knots where it jumps."""
    values = watched.value(times)
    right = values[1:].copy()
    at = np.searchsorted(times, knots)
    right[at - 1] = watched.signal.value_before(times[at])
    return values, right


def _errors(watched: Watched, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
    """For each interval, how far the function is from the line between its ends, in units of what is allowed."""
    left, right = ends
    errors = np.zeros(len(left))
    for share in _PROBES:
        inside = (1.0 - share) * left + share * right
        between: Any = (inside > left) & (inside < right)  # the ends may be neighbours in double precision
        between = slice(None) if between.all() else between
        places = inside[between]
        away = watched.off_line(watched.value(places), places, _at(ends, between), values=_at(values, between))
        errors[between] = np.maximum(errors[between], away)
    within, places, known = watched.seen_within(left, right)
    np.maximum.at(errors, within, watched.off_line(known, places, _at(ends, within), values=_at(values, within)))
    return errors


def _closed_in(watched: Watched, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
    """Times that cut intervals in halves until lines are close enough, or their ends are the two sides of a jump."""
    resolution = 4.0 * np.spacing(max(abs(ends[0][0]), abs(ends[1][-1])))
    found, n_found = [np.empty(0)], 0
    watched.allow_no_more()
    while True:
        apart = ends[1] - ends[0] > resolution
        (left, right), (first, last) = _at(ends, apart), _at(values, apart)
        if not len(left):
            return np.concatenate(found)
        middle = 0.5 * (left + right)
        n_found += len(middle)
        if n_found > _MOST_SAMPLES:
            raise too_rough(f"on {_MOST_SAMPLES} samples", watched.tolerance)
        found.append(middle)
        between = watched.value(middle)
        ends, values = (_mixed(left, middle), _mixed(middle, right)), (_mixed(first, between), _mixed(between, last))
        rough = _errors(watched, ends, values=values) > 1.0
        ends, values = _at(ends, rough), _at(values, rough)
        watched.refuse_growth()


def _mixed(one: Values, other: Values) -> Values:
    """Rows of both in turn: halves of intervals that ascend, ascending."""
    return np.stack([one, other], axis=1).reshape(2 * len(one), *one.shape[1:])


def _at(both: tuple[Values, Values], which: Any) -> tuple[Values, Values]:
    return both[0][which], both[1][which]


def _cut(base: Times, parts: int) -> Times:
    """Each interval in equal parts; evenly spaced times stay even to rounding, and none comes twice."""
    step = even_step(base)
    if step is not None:
        times = np.asarray(base[0] + (step / parts) * np.arange((len(base) - 1) * parts + 1))
        times[::parts] = base  # to the bit: a knot a unit in the last place beside its jump would be no knot
    else:
        share = np.arange(parts) / parts
        inside = base[:-1, None] + np.diff(base)[:, None] * share
        times = np.asarray(np.append(inside.ravel(), base[-1]))
    return times if np.all(times[1:] > times[:-1]) else np.unique(times)


def _with_jumps(times: Times, values: Values, right: Values, knots: Times) -> SampledSignal:
    """Samples at all times, twice at knots where the function jumps."""
    jumping = [k for k in np.searchsorted(times, knots).tolist() if not np.array_equal(right[k - 1], values[k])]
    if not jumping:
        return SampledSignal(times, values)
    return SampledSignal(
        np.insert(times, jumping, times[jumping]), np.insert(values, jumping, right[np.array(jumping) - 1], axis=0)
    )
