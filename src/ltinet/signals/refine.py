"""A function as samples on straight lines, fine enough for a stated tolerance."""

import math

import numpy as np

from ltinet.errors import SimulationError
from ltinet.signals.arrays import Times
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import SampledSignal, even_step

_MOST_SAMPLES = 2_000_000
_SLACK = 0.125  # in case the error falls faster at first
_PROBES = (0.5, 0.2360679775, 0.7071067812)  # the middle, and irrational shares that no period has in common


def sample_function(signal: FunctionSignal, t: Times, *, tolerance: float) -> tuple[SampledSignal, int]:
    """Samples of a function over t whose straight lines are within `tolerance` of it, and their number per interval.

    Every interval between output times and knots is cut into the same number of parts, doubled until the function is
    within tolerance · max |u| of the lines at all midpoints, where lines are farthest from a smooth function, and at
    places beside them, so that a function with a period of the samples is not taken for a constant.

    Raises:
        SimulationError: that takes more samples than reasonable; a kink that is not among the knots is the usual cause.
    """
    base = np.unique(t)
    inner = signal.knots[(signal.knots > base[0]) & (signal.knots < base[-1])]
    base = np.union1d(base, inner)
    parts = 1
    while True:
        times = _cut(base, parts)
        left, right = signal.value(times[:-1]), signal.value_before(times[1:])
        error = 0.0
        for share in _PROBES:
            inside = signal.value((1.0 - share) * times[:-1] + share * times[1:])
            error = max(error, float(np.max(np.abs(inside - (1.0 - share) * left - share * right), initial=0.0)))
        allowed = tolerance * float(np.max(np.abs(left), initial=0.0))
        if error <= allowed or len(times) == 1:
            return _with_jumps(signal, times, left, right, inner), parts
        parts *= 2
        # Twice the samples leave a quarter of the error at best: what cannot succeed ends early.
        if len(base) * parts * max(1.0, _SLACK * math.sqrt(error / allowed) if allowed else 1.0) > _MOST_SAMPLES:
            raise SimulationError(
                f"u as a function is not within {tolerance:g} of straight lines on {len(times)} samples; if it has "
                "kinks or jumps name them, FunctionSignal(u, n_inputs=…, knots=[…]), or raise input_tolerance, or use "
                'engine="neurons"'
            )


def _cut(base: Times, parts: int) -> Times:
    """Each interval in equal parts; evenly spaced times stay even to rounding."""
    step = even_step(base)
    if step is not None:
        return np.asarray(base[0] + (step / parts) * np.arange((len(base) - 1) * parts + 1))
    share = np.arange(parts) / parts
    inside = base[:-1, None] + np.diff(base)[:, None] * share
    return np.asarray(np.append(inside.ravel(), base[-1]))


def _with_jumps(signal: FunctionSignal, times: Times, left: Times, right: Times, knots: Times) -> SampledSignal:
    """Samples at all times, twice at knots where the function jumps."""
    last = signal.value(times[-1:])
    values = np.vstack([left, last])
    jumping = [k for k in np.searchsorted(times, knots).tolist() if not np.array_equal(right[k - 1], values[k])]
    if not jumping:
        return SampledSignal(times, values)
    return SampledSignal(
        np.insert(times, jumping, times[jumping]), np.insert(values, jumping, right[np.array(jumping) - 1], axis=0)
    )
