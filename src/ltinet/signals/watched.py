"""A function while lines are laid through it: how large it was seen to be, where, and how often it was asked."""

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import SimulationError
from ltinet.signals.arrays import Times, Values
from ltinet.signals.signal import Smooth
from ltinet.tolerances import EPS

FIRST_LOOK = 4096
"""Places all over the span where a function is looked at first; what is narrower than their distance may be missed."""
_GROWTH = 2.0**8  # a jump does not grow, nor much a peak that the first look has met; a pole grows at every halving
_VALUES = 8.0  # units in the last place of the largest input: what functions are rounded by


class Watched:
    """An input that is asked for its values, with the largest values seen so far."""

    def __init__(self, signal: Smooth, base: Times, *, tolerance: float) -> None:
        self.tolerance = tolerance
        self.signal = signal
        self._largest = np.zeros(signal.n_inputs)
        self._allowed: Values | None = None
        self._seen = first_look(float(base[0]), float(base[-1])) if len(base) else base
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
        return np.maximum(self.tolerance * self._largest, _VALUES * EPS * np.max(self._largest, initial=0.0))

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
        if np.max(self._largest, initial=0.0) > _GROWTH * self._start:
            raise SimulationError(
                f"u as a function was at most {self._start:g} at first, and is {np.max(self._largest):g} between: "
                "it seems to grow without bound, and lines have no distance from that; leave its pole out of the "
                "times, or name a narrow peak: FunctionSignal(u, n_inputs=…, knots=[…])"
            )


def too_rough(where: str, tolerance: float) -> SimulationError:
    """What to tell of a function that straight lines do not follow."""
    return SimulationError(
        f"u as a function is not within {tolerance:g} of straight lines {where}; if it has kinks or "
        "jumps name them, FunctionSignal(u, n_inputs=…, knots=[…]), or raise input_tolerance, or use "
        'engine="neurons"'
    )


def first_look(start: float, stop: float) -> Times:
    """Times in a span, one in each of `FIRST_LOOK` equal parts, at irrational places that share no period."""
    if not stop > start:
        return np.empty(0)
    part = np.arange(FIRST_LOOK)
    golden = part * 0.6180339887498949
    return np.unique(start + (stop - start) * ((part + golden % 1.0) / FIRST_LOOK))
