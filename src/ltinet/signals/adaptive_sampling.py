"""Adaptive piecewise-linear sampling of a function of time to a stated tolerance.

Every interval between output times and knots is divided into the same number of parts, doubled until the function is
within tolerance · max |u| of its linear interpolant at all probe positions: the midpoint, where the error of a smooth
function is largest, and irrational positions, so that a function with the period of the samples is not taken for a
constant. Initial samples over the whole span are checked as well. If only few intervals violate the tolerance, they
contain kinks or jumps that are not among the knots; these are located by bisection. A function that grows without bound
is rejected.
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

# Monitor of the function

N_INITIAL_SAMPLES = 4096
"""Number of initial samples over the span; features narrower than their distance may be missed."""
# Growth of max |u| during bisection beyond which u is considered unbounded. From 4096 samples to adjacent numbers a
# distance shrinks by 2⁻³⁸ at least, so that |t − t₀|^−a grows by 2^{38a}: poles with a ≥ 0.21 are found, those of square
# roots included. At a jump max |u| does not grow, and at a Gaussian peak by less where a sample is within 3.3 σ of it.
_MAX_GROWTH = 2.0**8
_VALUE_ROUNDING = 8.0  # rounding error of u in units in the last place of the largest input


class InterpolationMonitor:
    """Signal with the largest values evaluated so far, its initial samples, and the tolerated interpolation error."""

    def __init__(self, signal: PiecewiseSmooth, base: Times, *, tolerance: float) -> None:
        self.tolerance = tolerance
        self.signal = signal
        self._largest = np.zeros(signal.n_inputs)
        self._allowed: Values | None = None
        self._initial_times = initial_sample_times(float(base[0]), float(base[-1])) if len(base) else base
        self._initial_values = self.value(self._initial_times)

    def value(self, t: Times) -> Values:
        """Return u(t), and update the largest values."""
        values = self.signal.value(t)
        self._largest = np.maximum(self._largest, np.max(np.abs(values), axis=0, initial=0.0))
        return values

    @property
    def allowed(self) -> Values:
        """Tolerated error of each input: the tolerance times its largest value, but at least its rounding error."""
        if self._allowed is not None:
            return self._allowed
        return np.maximum(self.tolerance * self._largest, _VALUE_ROUNDING * EPS * np.max(self._largest, initial=0.0))

    def line_error(self, u: Values, t: Times, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
        """Return the distance of u at times t from the lines of their intervals, in units of the tolerated error.

        Fractions of an interval are computed from the rounded times, so that a large offset of all times does not
        matter.
        """
        fraction = ((t - ends[0]) / (ends[1] - ends[0]))[:, None]
        distance = np.abs(u - (1.0 - fraction) * values[0] - fraction * values[1])
        allowed = self.allowed
        # An input that is zero at all times has no error.
        return np.asarray(np.max(distance / np.where(allowed > 0.0, allowed, 1.0), axis=1, initial=0.0))

    def initial_samples_within(self, left: Times, right: Times) -> tuple[NDArray[np.intp], Times, Values]:
        """Return the initial samples inside ascending intervals: index of the interval, time, and u."""
        # −1, the last interval, for times before the first one: not inside.
        interval = np.searchsorted(left, self._initial_times, side="right") - 1
        inside = (self._initial_times > left[interval]) & (self._initial_times < right[interval])
        return interval[inside], self._initial_times[inside], self._initial_values[inside]

    def freeze_tolerance(self) -> None:
        """Keep the tolerated error at its present value, which a pole would otherwise increase as it is approached."""
        self._allowed, self._initial_largest = self.allowed, float(np.max(self._largest, initial=0.0))

    def reject_growth(self) -> None:
        """Raise SimulationError if the function has grown beyond the values before the bisection."""
        if np.max(self._largest, initial=0.0) > _MAX_GROWTH * self._initial_largest:
            raise SimulationError(
                f"u is at most {self._initial_largest:g} at the initial samples and reaches {np.max(self._largest):g} "
                "between them: it seems to grow without bound. Exclude its pole from the times, or declare a narrow peak "
                "by FunctionSignal(u, n_inputs=…, knots=[…])"
            )


def resolution_error(where: str, tolerance: float) -> SimulationError:
    """Return an error for a function that linear interpolation does not resolve."""
    return SimulationError(
        f"u as a function is not within {tolerance:g} of straight lines {where}; if it has kinks or "
        "jumps declare them, FunctionSignal(u, n_inputs=…, knots=[…]), or raise input_tolerance, or use "
        'engine="per_neuron"'
    )


def initial_sample_times(start: float, stop: float) -> Times:
    """Return times in a span, one in each of `N_INITIAL_SAMPLES` equal parts, at irrational positions without a period."""
    if not stop > start:
        return np.empty(0)
    part = np.arange(N_INITIAL_SAMPLES)
    golden = part * 0.6180339887498949
    return np.unique(start + (stop - start) * ((part + golden % 1.0) / N_INITIAL_SAMPLES))


# Sampling

_MAX_SAMPLES = 2_000_000  # 16 MB for each input; an error beyond
_SLACK = 0.125  # on the predicted number of samples, as errors may fall faster at first
_PROBE_POSITIONS = (0.5, 0.2360679775, 0.7071067812)  # the midpoint, and irrational positions without a common period
_LOCAL_FRACTION = 0.2  # fraction of intervals up to which kinks are assumed and only these intervals are bisected
# Ratio of errors for twice the samples above which a kink or jump is assumed: it is 1/4 for a smooth function, 1/2 at a
# kink, 1 at a jump.
_KINK_RATIO = 0.4


def sample_function(signal: PiecewiseSmooth, t: Times, *, tolerance: float) -> tuple[SampledSignal, int]:
    """Return samples of a function over t with a linear interpolant within `tolerance`, and their number per interval.

    Raises SimulationError if that requires more samples or calls than the limits, or the function grows without bound.
    """
    base = np.unique(t)
    inner = signal.knots[(signal.knots > base[0]) & (signal.knots < base[-1])]
    base = np.union1d(base, inner)
    monitor = InterpolationMonitor(signal, base, tolerance=tolerance)
    parts, before = 1, np.inf
    while True:
        times = _subdivide(base, parts)
        left, right = _one_sided_values(monitor, times, inner)
        errors = _interpolation_errors(monitor, (times[:-1], times[1:]), values=(left[:-1], right))
        worst, rough = float(np.max(errors, initial=0.0)), errors > 1.0
        if not np.any(rough):
            return _with_jumps(times, left, right, inner), parts
        if np.mean(rough) <= _LOCAL_FRACTION and worst > _KINK_RATIO * before:
            ends, values = _select((times[:-1], times[1:]), rough), _select((left[:-1], right), rough)
            times = np.union1d(times, _bisect_kinks(monitor, ends, values=values))
            return _with_jumps(times, *_one_sided_values(monitor, times, inner), inner), 1
        parts, before = 2 * parts, worst
        # Twice the samples leave a quarter of the error at best: stop early if the limit will be exceeded.
        typical = float(np.quantile(errors, 1.0 - _LOCAL_FRACTION))
        if len(base) * parts * max(1.0, _SLACK * math.sqrt(typical)) > _MAX_SAMPLES:
            raise resolution_error(f"on {len(times)} samples", tolerance)


def _one_sided_values(monitor: InterpolationMonitor, times: Times, knots: Times) -> tuple[Values, Values]:
    """Return the values at all times, and at the ends of the intervals between them; they differ at jumps."""
    values = monitor.value(times)
    right = values[1:].copy()
    at = np.searchsorted(times, knots)
    right[at - 1] = monitor.signal.value_before(times[at])
    return values, right


def _interpolation_errors(
    monitor: InterpolationMonitor, ends: tuple[Times, Times], *, values: tuple[Values, Values]
) -> Times:
    """Return for each interval the distance of the function from its line, in units of the tolerated error."""
    left, right = ends
    errors = np.zeros(len(left))
    for position in _PROBE_POSITIONS:
        probes = (1.0 - position) * left + position * right
        between: Any = (probes > left) & (probes < right)  # the ends may be adjacent numbers in double precision
        between = slice(None) if between.all() else between
        times = probes[between]
        distances = monitor.line_error(
            monitor.value(times), times, _select(ends, between), values=_select(values, between)
        )
        errors[between] = np.maximum(errors[between], distances)
    within, times, known = monitor.initial_samples_within(left, right)
    np.maximum.at(
        errors, within, monitor.line_error(known, times, _select(ends, within), values=_select(values, within))
    )
    return errors


def _bisect_kinks(monitor: InterpolationMonitor, ends: tuple[Times, Times], *, values: tuple[Values, Values]) -> Times:
    """Return times that bisect intervals until the error is tolerated, or the ends are the two sides of a jump."""
    resolution = 4.0 * np.spacing(max(abs(ends[0][0]), abs(ends[1][-1])))
    midpoints, n_midpoints = [np.empty(0)], 0
    monitor.freeze_tolerance()
    while True:
        is_wide = ends[1] - ends[0] > resolution
        (left, right), (first, last) = _select(ends, is_wide), _select(values, is_wide)
        if not len(left):
            return np.concatenate(midpoints)
        middle = 0.5 * (left + right)
        n_midpoints += len(middle)
        if n_midpoints > _MAX_SAMPLES:
            raise resolution_error(f"on {_MAX_SAMPLES} samples", monitor.tolerance)
        midpoints.append(middle)
        between = monitor.value(middle)
        ends = _interleave(left, middle), _interleave(middle, right)
        values = _interleave(first, between), _interleave(between, last)
        rough = _interpolation_errors(monitor, ends, values=values) > 1.0
        ends, values = _select(ends, rough), _select(values, rough)
        monitor.reject_growth()


def _interleave(one: Values, other: Values) -> Values:
    """Return the rows of two arrays in turn, such as the halves of ascending intervals."""
    return np.stack([one, other], axis=1).reshape(2 * len(one), *one.shape[1:])


def _select(both: tuple[Values, Values], which: Any) -> tuple[Values, Values]:
    """Return the selected rows of two arrays."""
    return both[0][which], both[1][which]


def _subdivide(base: Times, parts: int) -> Times:
    """Return times with each interval divided into equal parts, ascending strictly; uniform times stay uniform."""
    step = uniform_step(base)
    if step is not None:
        times = np.asarray(base[0] + (step / parts) * np.arange((len(base) - 1) * parts + 1))
        times[::parts] = base  # exactly: a knot one unit in the last place beside its jump would miss it
    else:
        fraction = np.arange(parts) / parts
        inside = base[:-1, None] + np.diff(base)[:, None] * fraction
        times = np.asarray(np.append(inside.ravel(), base[-1]))
    return times if np.all(times[1:] > times[:-1]) else np.unique(times)


def _with_jumps(times: Times, values: Values, right: Values, knots: Times) -> SampledSignal:
    """Return samples at all times, twice at knots where the function jumps."""
    jumping = [k for k in np.searchsorted(times, knots).tolist() if not np.array_equal(right[k - 1], values[k])]
    if not jumping:
        return SampledSignal(times, values)
    return SampledSignal(
        np.insert(times, jumping, times[jumping]), np.insert(values, jumping, right[np.array(jumping) - 1], axis=0)
    )
