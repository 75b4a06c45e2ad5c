"""A step response as a curve: sampled closely enough to see every turn, its slope known, exact wherever one looks.

The slope of a step response is the impulse response, D apart, so both are run at the same times. Between two samples a
cubic through values and slopes tells where the curve turns; what is decided by such an estimate is computed exactly.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.analysis.narrowing import narrowed
from ltinet.arrays import Array
from ltinet.model.system_matrices import SystemMatrices
from ltinet.responses.modes import Modes
from ltinet.responses.run import impulse_response, pushed_modes, step_response
from ltinet.responses.times import Span, reference_of, span_of, surely_settled
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution

_PER_RADIAN = 3.0  # samples of the fastest mode that is still there: nineteen in a period
_GONE = 1e-7  # of the reference: what a mode may be below and still be overlooked
_OVERLOOKED = 1e-7  # of the reference: what all modes together may be below where nobody looks any more
# By how much a cubic may miss the height of a turn, of the largest |y|: (1/3)⁴/384 of a mode is 3e-5.
_DOUBT = 1e-3
_MOST_PER_PIECE = 200_000
_MOST_TRIES = 12


@dataclass(frozen=True, eq=False)
class Curve:
    """One output: nodes between which it goes one way only, samples and estimated turns, `(nodes,)` each."""

    t: Array
    y: Array
    is_turn: NDArray[np.bool_]
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    span: Span

    def largest(self, sign: float) -> tuple[float, float]:
        """Where sign·y is largest, and how large; at least 0, which it was before the step."""
        heights = sign * self.y
        top = float(heights.max(initial=0.0))
        if top <= 0.0:
            return 0.0, 0.0
        close = np.flatnonzero(heights >= top - _DOUBT * float(np.abs(self.y).max()))
        best = (0.0, -np.inf)
        for place in close[np.argsort(-heights[close])][:12].tolist():
            time = self._turn(place) if self.is_turn[place] else float(self.t[place])
            height = sign * float(self.value(np.array([time]))[0])
            best = max(best, (time, height), key=lambda own: own[1])
        return best

    def first_reaching(self, level: float) -> float:
        """The first time at which y goes through a level, seen from 0."""
        sign = math.copysign(1.0, level)
        doubt = _DOUBT * float(np.abs(self.y).max())
        for place in np.flatnonzero(sign * self.y >= abs(level) - doubt).tolist():
            time, height = self._node(place, doubt=abs(sign * self.y[place] - abs(level)) < doubt)
            if sign * height >= abs(level):
                start = float(self.t[place - 1]) if place else 0.0
                return narrowed(lambda t: sign * self.value(t) >= abs(level), start, time) if place else 0.0
        return math.nan

    def settling_time(self, final: float, band: float) -> float:
        """The last time at which y is further from its final value than a band."""
        distance = np.abs(self.y - final)
        doubt = _DOUBT * float(np.abs(self.y).max())
        for place in np.flatnonzero(distance > band - doubt)[::-1].tolist():
            time, height = self._node(place, doubt=abs(distance[place] - band) < doubt)
            if abs(height - final) > band:
                if place + 1 == len(self.t):
                    return math.nan
                return narrowed(lambda t: np.abs(self.value(t) - final) <= band, time, float(self.t[place + 1]))
        return 0.0

    def _node(self, place: int, *, doubt: bool) -> tuple[float, float]:
        """A node, exactly where it matters."""
        if not (doubt and self.is_turn[place]):
            return float(self.t[place]), float(self.y[place])
        time = self._turn(place)
        return time, float(self.value(np.array([time]))[0])

    def _turn(self, place: int) -> float:
        """Where exactly the slope changes its sign between the samples beside an estimated turn."""
        start, stop = float(self.t[place - 1]), float(self.t[place + 1])
        before = float(np.sign(self.slope(np.array([start]))[0]))
        return narrowed(lambda t: np.sign(self.slope(t)) != before, start, stop)


def step_curves(
    prepared: PreparedNetwork, system: SystemMatrices, j: int, final: Array, *, band: float
) -> Iterator[Curve]:
    """The step responses of all outputs to one input, as far as they take to settle within a band."""
    modes = pushed_modes(prepared, system, j, None, to_step=True)
    span = span_of(modes, final[:, None])
    step = _as_far_as_needed(
        lambda times: step_response(prepared, system, times, input=j, output=None), modes, final, span, band
    )
    impulse = impulse_response(prepared, system, step.t, input=j, output=None)
    for i in range(system.n_outputs):
        yield _curve(step, impulse, i, span)


def _as_far_as_needed(
    run: Callable[[Array], Solution], modes: Modes, final: Array, span: Span, band: float
) -> Solution:
    """A step response until it stays in its band, and until nothing that follows could be its peak."""
    end = span.end
    if not span.settles:
        fading = modes.rates.real < 0.0
        if span.returns:  # and goes through a whole period after all else has gone
            rest = modes.those(fading & ~modes.is_integrator)
            reference = reference_of(final[:, None], modes.amplitudes.max(axis=0, initial=0.0))
            end += surely_settled(rest, reference, share=_OVERLOOKED)
        return run(close_times(modes, final[:, None], end))
    for _ in range(_MOST_TRIES):
        step = run(close_times(modes, final[:, None], end))
        reference = reference_of(final, np.abs(step.y).max(axis=0))
        late = step.y[step.t >= 0.7 * end]
        if not bool((np.abs(late - final) <= 0.5 * band * reference).all()):
            end *= 1.5
            continue
        beyond = (np.sign(final) * step.y).max(axis=0) - np.abs(final)
        hidden = bool((beyond < 2.0 * np.abs(late - final).max(axis=0)).any())  # the largest may still come
        needed = surely_settled(modes, reference[:, None], share=_OVERLOOKED if hidden else 0.5 * band)
        if needed <= end:
            break
        end = needed
    return step


def close_times(modes: Modes, final: Array, end: float) -> Array:
    """Times that follow the fastest mode that is still there, in pieces that double in length."""
    reference = reference_of(final, modes.amplitudes.max(axis=0, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.nan_to_num(modes.amplitudes / (_GONE * reference), nan=0.0, posinf=0.0).max(
            axis=(1, 2), initial=0.0
        )
        gone = np.where(modes.rates.real < 0.0, np.log(strength) / -modes.rates.real, np.inf)
    gone[strength <= 0.0] = 0.0
    pieces, start = [np.zeros(1)], 0.0
    stop = min(end, 10.0 / modes.fastest) if modes.fastest > 0.0 else end
    while start < end:
        fastest = float(np.abs(modes.rates[gone > start]).max(initial=1.0 / end))
        count = int(np.clip(math.ceil(_PER_RADIAN * fastest * (stop - start)), 20, _MOST_PER_PIECE))
        pieces.append(np.linspace(start, stop, count + 1)[1:])
        start, stop = stop, min(end, 2.0 * stop)
    return np.concatenate(pieces)


def _curve(step: Solution, impulse: Solution, i: int, span: Span) -> Curve:
    t, y, slope = step.t, step.y[:, i], impulse.y[:, i]
    turning = np.flatnonzero(np.sign(slope[:-1]) * np.sign(slope[1:]) < 0.0)
    at, height = _turns(t, y, slope, turning)
    nodes = np.concatenate([t, at])
    order = np.argsort(nodes, kind="stable")
    values = np.concatenate([y, height])[order]
    is_turn = np.concatenate([np.zeros(len(t), bool), np.ones(len(at), bool)])[order]
    return Curve(nodes[order], values, is_turn, lambda own: step(own)[:, i], lambda own: impulse(own)[:, i], span)


def _turns(t: Array, y: Array, slope: Array, cells: NDArray[np.intp]) -> tuple[Array, Array]:
    """Where the cubic through values and slopes at both ends of a cell turns, and how high it is there."""
    h = t[cells + 1] - t[cells]
    rise, before, after = y[cells + 1] - y[cells], h * slope[cells], h * slope[cells + 1]
    # y(x) = y₀ + before x + b x² + a x³ on 0 ≤ x ≤ 1.
    a, b = before + after - 2.0 * rise, 3.0 * rise - 2.0 * before - after
    root = np.sqrt(np.maximum(b * b - 3.0 * a * before, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        larger = -(b + np.copysign(root, b))
        candidates = np.stack([larger / (3.0 * a), before / larger])
    inside = (candidates > 0.0) & (candidates < 1.0)
    middle = before / (before - after)  # where a straight slope turns, for a cubic that has lost its digits
    x = np.where(inside[0], candidates[0], np.where(inside[1], candidates[1], middle))
    return t[cells] + x * h, y[cells] + ((a * x + b) * x + before) * x
