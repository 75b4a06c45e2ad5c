"""Adaptive piecewise-linear sampling of a function of time to a stated tolerance.

Every interval between output times and knots is cut into the same number of parts, doubled until the function is within
tolerance · max |u| of the lines at all probe positions: the midpoint, where lines are farthest from a smooth function,
and irrational positions, so that a function with the period of the samples is not taken for a constant. Initial samples
over the whole span are kept in mind as well. Where few intervals resist, they contain kinks or jumps that are not among
the knots; these are located by bisection. A function that grows without bound is rejected.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS
from ltinet.errors import SimulationError
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import PiecewiseSmooth
from ltinet.signals.times import uniform_step

# MERGED ltinet.signals.adaptive_sampling
# A function while lines are laid through it: how large it was seen to be, where, and how often it was asked.

N_INITIAL_SAMPLES = 4096
"""Places all over the span where a function is looked at first; what is narrower than their distance may be missed."""
_MAX_GROWTH = 2.0**8  # a jump does not grow, nor much a peak that the first look has met; a pole grows at every halving
_VALUE_ROUNDING = 8.0  # units in the last place of the largest input: what functions are rounded by


class InterpolationMonitor:
    """An input that is asked for its values, with the largest values seen so far."""

    def __init__(self, signal: PiecewiseSmooth, base: Times, *, tolerance: float) -> None:
        self.tolerance = tolerance
        self.signal = signal
        self._largest = np.zeros(signal.n_inputs)
        self._allowed: Values | None = None
        self._seen = initial_sample_times(float(base[0]), float(base[-1])) if len(base) else base
        self._seen_values = self.value(self._seen)

    def value(self, t: Times) -> Values:
        """u(t)."""
        values = self.signal.value(t)
        self._largest = np.maximum(self._largest, np.max(np.abs(values), axis=0, initial=0.0))
        return values

    @property
    def allowed(self) -> Values:
        """How far lines may be from each input: the tolerance times its largest value, but no less than rounding."""
        if self._allowed is not None:
            return self._allowed
        return np.maximum(self.tolerance * self._largest, _VALUE_ROUNDING * EPS * np.max(self._largest, initial=0.0))

    def off_line(self, u: Values, t: Times, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
        """How far u at times t is from the lines between the ends of intervals, in units of what is allowed.

        Shares of an interval are those of the rounded times, so that an offset of all times does not spoil them.
        """
        share = ((t - ends[0]) / (ends[1] - ends[0]))[:, None]
        away = np.abs(u - (1.0 - share) * values[0] - share * values[1])
        allowed = self.allowed
        # Where an input is zero wherever it was asked, nothing is off.
        return np.asarray(np.max(away / np.where(allowed > 0.0, allowed, 1.0), axis=1, initial=0.0))

    def seen_within(self, left: Times, right: Times) -> tuple[NDArray[np.intp], Times, Values]:
        """The places of the first look that lie within ascending intervals: which interval, when, and u there."""
        place = np.searchsorted(left, self._seen, side="right") - 1  # −1, the last, before the first: not within
        inside = (self._seen > left[place]) & (self._seen < right[place])
        return place[inside], self._seen[inside], self._seen_values[inside]

    def allow_no_more(self) -> None:
        """Stay with what is allowed now: a pole would else allow more and more as it is approached."""
        self._allowed, self._start = self.allowed, float(np.max(self._largest, initial=0.0))

    def refuse_growth(self) -> None:
        """Refuse a function that has grown beyond all that was seen before intervals were closed in.

        Raises:
            SimulationError: it has.
        """
        if np.max(self._largest, initial=0.0) > _MAX_GROWTH * self._start:
            raise SimulationError(
                f"u as a function was at most {self._start:g} at first, and is {np.max(self._largest):g} between: "
                "it seems to grow without bound, and lines have no distance from that; leave its pole out of the "
                "times, or name a narrow peak: FunctionSignal(u, n_inputs=…, knots=[…])"
            )


def resolution_error(where: str, tolerance: float) -> SimulationError:
    """What to tell of a function that straight lines do not follow."""
    return SimulationError(
        f"u as a function is not within {tolerance:g} of straight lines {where}; if it has kinks or "
        "jumps name them, FunctionSignal(u, n_inputs=…, knots=[…]), or raise input_tolerance, or use "
        'engine="per_neuron"'
    )


def initial_sample_times(start: float, stop: float) -> Times:
    """Times in a span, one in each of `N_INITIAL_SAMPLES` equal parts, at irrational places that share no period."""
    if not stop > start:
        return np.empty(0)
    part = np.arange(N_INITIAL_SAMPLES)
    golden = part * 0.6180339887498949
    return np.unique(start + (stop - start) * ((part + golden % 1.0) / N_INITIAL_SAMPLES))


# MERGED ltinet.signals.adaptive_sampling
# A function as samples on straight lines, fine enough for a stated tolerance.

_MAX_SAMPLES = 2_000_000
_SLACK = 0.125  # in case the error falls faster at first
_PROBE_POSITIONS = (0.5, 0.2360679775, 0.7071067812)  # the middle, and irrational shares that no period has in common
_LOCAL_SHARE = 0.2  # share of intervals up to which only those are cut further
_KINK_RATIO = (
    0.4  # twice the samples leave a quarter of the error of a smooth function, half of it at a kink, all at a jump
)


def sample_function(signal: PiecewiseSmooth, t: Times, *, tolerance: float) -> tuple[SampledSignal, int]:
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
    watched = InterpolationMonitor(signal, base, tolerance=tolerance)
    parts, before = 1, np.inf
    while True:
        times = _subdivide(base, parts)
        left, right = _one_sided_values(watched, times, inner)
        errors = _interpolation_errors(watched, (times[:-1], times[1:]), values=(left[:-1], right))
        worst, rough = float(np.max(errors, initial=0.0)), errors > 1.0
        if not np.any(rough):
            return _with_jumps(times, left, right, inner), parts
        if np.mean(rough) <= _LOCAL_SHARE and worst > _KINK_RATIO * before:
            ends, values = _select((times[:-1], times[1:]), rough), _select((left[:-1], right), rough)
            times = np.union1d(times, _bisect_kinks(watched, ends, values=values))
            return _with_jumps(times, *_one_sided_values(watched, times, inner), inner), 1
        parts, before = 2 * parts, worst
        # Twice the samples leave a quarter of the error at best: what cannot succeed ends early.
        typical = float(np.quantile(errors, 1.0 - _LOCAL_SHARE))
        if len(base) * parts * max(1.0, _SLACK * math.sqrt(typical)) > _MAX_SAMPLES:
            raise resolution_error(f"on {len(times)} samples", tolerance)


def _one_sided_values(watched: InterpolationMonitor, times: Times, knots: Times) -> tuple[Values, Values]:
    """The function at all times, and at the ends of the intervals between them: they differ at knots where it jumps."""
    values = watched.value(times)
    right = values[1:].copy()
    at = np.searchsorted(times, knots)
    right[at - 1] = watched.signal.value_before(times[at])
    return values, right


def _interpolation_errors(
    watched: InterpolationMonitor, ends: tuple[Times, Times], *, values: tuple[Values, Values]
) -> Times:
    """For each interval, how far the function is from the line between its ends, in units of what is allowed."""
    left, right = ends
    errors = np.zeros(len(left))
    for share in _PROBE_POSITIONS:
        inside = (1.0 - share) * left + share * right
        between: Any = (inside > left) & (inside < right)  # the ends may be neighbours in double precision
        between = slice(None) if between.all() else between
        places = inside[between]
        away = watched.off_line(watched.value(places), places, _select(ends, between), values=_select(values, between))
        errors[between] = np.maximum(errors[between], away)
    within, places, known = watched.seen_within(left, right)
    np.maximum.at(
        errors, within, watched.off_line(known, places, _select(ends, within), values=_select(values, within))
    )
    return errors


def _bisect_kinks(watched: InterpolationMonitor, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
    """Times that cut intervals in halves until lines are close enough, or their ends are the two sides of a jump."""
    resolution = 4.0 * np.spacing(max(abs(ends[0][0]), abs(ends[1][-1])))
    found, n_found = [np.empty(0)], 0
    watched.allow_no_more()
    while True:
        apart = ends[1] - ends[0] > resolution
        (left, right), (first, last) = _select(ends, apart), _select(values, apart)
        if not len(left):
            return np.concatenate(found)
        middle = 0.5 * (left + right)
        n_found += len(middle)
        if n_found > _MAX_SAMPLES:
            raise resolution_error(f"on {_MAX_SAMPLES} samples", watched.tolerance)
        found.append(middle)
        between = watched.value(middle)
        ends, values = (
            (_interleave(left, middle), _interleave(middle, right)),
            (_interleave(first, between), _interleave(between, last)),
        )
        rough = _interpolation_errors(watched, ends, values=values) > 1.0
        ends, values = _select(ends, rough), _select(values, rough)
        watched.refuse_growth()


def _interleave(one: Values, other: Values) -> Values:
    """Rows of both in turn: halves of intervals that ascend, ascending."""
    return np.stack([one, other], axis=1).reshape(2 * len(one), *one.shape[1:])


def _select(both: tuple[Values, Values], which: Any) -> tuple[Values, Values]:
    return both[0][which], both[1][which]


def _subdivide(base: Times, parts: int) -> Times:
    """Each interval in equal parts; evenly spaced times stay even to rounding, and none comes twice."""
    step = uniform_step(base)
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
