"""Characteristics of responses: bandwidth, rise time, settling time, overshoot, undershoot and peak.

Step responses are curves that are sampled closely enough to resolve every turn. Their slope is the impulse response,
apart from D, and both are computed at the same times. Between two samples the cubic through values and slopes shows
where the curve turns; whatever such an estimate decides is recomputed on the exact dense output. Crossings are
located by multisection: six rounds of 129 points narrow an interval to 2⁻⁴² of its length.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.display import displayed_rows, html_table, omission_row, text_table
from ltinet._util.floating_point import Array, rounding_tolerance
from ltinet._util.text import sanitize
from ltinet.analysis.dc_gain import dc_gain
from ltinet.analysis.response_times import Modes, TimeSpan, deviation_reference, select_time_span, settling_time_bound
from ltinet.analysis.responses import Channel, excited_modes, impulse_response, resolve_index, step_response
from ltinet.errors import SimulationError
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_names import Names
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.characteristics
# The first place of an interval at which something holds, to 2⁻⁴² of it, from many places asked at once.

_POINTS, _ROUNDS = 129, 6  # 128⁶ = 2⁴² steps of the interval


def find_first_true(holds: Callable[[Array], NDArray[np.bool_]], start: float, stop: float) -> float:
    """The first place of an interval at which something holds that holds at its end."""
    for _ in range(_ROUNDS):
        points = np.linspace(start, stop, _POINTS)
        places = np.flatnonzero(holds(points[1:]))
        first = int(places[0]) if len(places) else _POINTS - 2
        start, stop = float(points[first]), float(points[first + 1])
        if not start < stop:
            break
    return stop


# MERGED ltinet.analysis.characteristics
# Up to which frequency a system follows: where its gain first falls below that at rest by 3 dB.

FrequencyFunction = Callable[[Array], NDArray[np.complex128]]
Predicate = Callable[[Array], NDArray[np.bool_]]


def compute_bandwidth(response: FrequencyFunction, at_rest: Array, frequencies: Array, *, drop: float) -> Array:
    """The first frequency at which |H_ij| is `drop` decibels below |H_ij(0)|, p×m.

    Infinite where it never falls so far up to the last of the frequencies, NaN where the gain at rest is zero or
    infinite.
    """
    limit = np.abs(at_rest) * 10.0 ** (-drop / 20.0)
    result = np.full(at_rest.shape, np.nan)
    usable = np.isfinite(limit) & (limit > 0.0)
    if not usable.any():
        return result
    # An octave apart down to where nothing has happened yet.
    slower = frequencies[0] * np.exp2(np.arange(-20.0, 0.0))
    grid = np.concatenate([slower, frequencies])
    gains = np.abs(response(grid))
    for i, j in np.argwhere(usable).tolist():
        below = np.flatnonzero(gains[:, i, j] < limit[i, j])
        if not len(below):
            result[i, j] = np.inf
            continue
        first = int(below[0])
        start = grid[first - 1] if first else 0.0
        result[i, j] = find_first_true(_falls_below(response, (i, j), float(limit[i, j])), start, float(grid[first]))
    return result


def _falls_below(response: FrequencyFunction, pair: tuple[int, int], limit: float) -> Predicate:
    return lambda omega: np.abs(response(omega)[:, *pair]) < limit


# MERGED ltinet.analysis.characteristics
# A step response as a curve: sampled closely enough to see every turn, its slope known, exact wherever one looks.
#
# The slope of a step response is the impulse response, D apart, so both are run at the same times. Between two samples a
# cubic through values and slopes tells where the curve turns; what is decided by such an estimate is computed exactly.

_PER_RADIAN = 3.0  # samples of the fastest mode that is still there: nineteen in a period
_MODE_CUTOFF = 1e-7  # of the reference: what a mode may be below and still be overlooked
_TAIL_CUTOFF = 1e-7  # of the reference: what all modes together may be below where nobody looks any more
# By how much a cubic may miss the height of a turn, of the largest |y|: (1/3)⁴/384 of a mode is 3e-5.
_CUBIC_ERROR = 1e-3
_MOST_PER_PIECE = 200_000
_MOST_TRIES = 12


@dataclass(frozen=True, eq=False)
class StepCurve:
    """One output: nodes between which it goes one way only, samples and estimated turns, `(nodes,)` each."""

    t: Array
    y: Array
    is_turn: NDArray[np.bool_]
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    span: TimeSpan

    def largest(self, sign: float) -> tuple[float, float]:
        """Where sign·y is largest, and how large; at least 0, which it was before the step."""
        heights = sign * self.y
        top = float(heights.max(initial=0.0))
        if top <= 0.0:
            return 0.0, 0.0
        close = np.flatnonzero(heights >= top - _CUBIC_ERROR * float(np.abs(self.y).max()))
        best = (0.0, -np.inf)
        for place in close[np.argsort(-heights[close])][:12].tolist():
            time = self._turn(place) if self.is_turn[place] else float(self.t[place])
            height = sign * float(self.value(np.array([time]))[0])
            best = max(best, (time, height), key=lambda own: own[1])
        return best

    def first_reaching(self, level: float) -> float:
        """The first time at which y goes through a level, seen from 0."""
        sign = math.copysign(1.0, level)
        doubt = _CUBIC_ERROR * float(np.abs(self.y).max())
        for place in np.flatnonzero(sign * self.y >= abs(level) - doubt).tolist():
            time, height = self._node(place, doubt=abs(sign * self.y[place] - abs(level)) < doubt)
            if sign * height >= abs(level):
                start = float(self.t[place - 1]) if place else 0.0
                return find_first_true(lambda t: sign * self.value(t) >= abs(level), start, time) if place else 0.0
        return math.nan

    def settling_time(self, final: float, band: float) -> float:
        """The last time at which y is further from its final value than a band."""
        distance = np.abs(self.y - final)
        doubt = _CUBIC_ERROR * float(np.abs(self.y).max())
        for place in np.flatnonzero(distance > band - doubt)[::-1].tolist():
            time, height = self._node(place, doubt=abs(distance[place] - band) < doubt)
            if abs(height - final) > band:
                if place + 1 == len(self.t):
                    return math.nan
                return find_first_true(lambda t: np.abs(self.value(t) - final) <= band, time, float(self.t[place + 1]))
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
        return find_first_true(lambda t: np.sign(self.slope(t)) != before, start, stop)


def step_curves(
    prepared: SimulationContext, system: SystemMatrices, j: int, final: Array, *, band: float
) -> Iterator[StepCurve]:
    """The step responses of all outputs to one input, as far as they take to settle within a band."""
    modes = excited_modes(prepared, system, j, None, to_step=True)
    span = select_time_span(modes, final[:, None])
    step = _run_until_settled(
        lambda times: step_response(prepared, system, times, input=j, output=None), modes, final, span, band
    )
    impulse = impulse_response(prepared, system, step.t, input=j, output=None)
    for i in range(system.n_outputs):
        yield _build_curve(step, impulse, i, span)


def _run_until_settled(
    run: Callable[[Array], Solution], modes: Modes, final: Array, span: TimeSpan, band: float
) -> Solution:
    """A step response until it stays in its band, and until nothing that follows could be its peak."""
    end = span.end
    if not span.settles:
        fading = modes.rates.real < 0.0
        if span.returns:  # and goes through a whole period after all else has gone
            rest = modes.those(fading & ~modes.is_integrator)
            reference = deviation_reference(final[:, None], modes.amplitudes.max(axis=0, initial=0.0))
            end += settling_time_bound(rest, reference, share=_TAIL_CUTOFF)
        return run(dense_times(modes, final[:, None], end))
    for _ in range(_MOST_TRIES):
        step = run(dense_times(modes, final[:, None], end))
        reference = deviation_reference(final, np.abs(step.y).max(axis=0))
        late = step.y[step.t >= 0.7 * end]
        if not bool((np.abs(late - final) <= 0.5 * band * reference).all()):
            end *= 1.5
            continue
        beyond = (np.sign(final) * step.y).max(axis=0) - np.abs(final)
        hidden = bool((beyond < 2.0 * np.abs(late - final).max(axis=0)).any())  # the largest may still come
        needed = settling_time_bound(modes, reference[:, None], share=_TAIL_CUTOFF if hidden else 0.5 * band)
        if needed <= end:
            break
        end = needed
    return step


def dense_times(modes: Modes, final: Array, end: float) -> Array:
    """Times that follow the fastest mode that is still there, in pieces that double in length."""
    reference = deviation_reference(final, modes.amplitudes.max(axis=0, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.nan_to_num(modes.amplitudes / (_MODE_CUTOFF * reference), nan=0.0, posinf=0.0).max(
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


def _build_curve(step: Solution, impulse: Solution, i: int, span: TimeSpan) -> StepCurve:
    t, y, slope = step.t, step.y[:, i], impulse.y[:, i]
    turning = np.flatnonzero(np.sign(slope[:-1]) * np.sign(slope[1:]) < 0.0)
    at, height = _cubic_turns(t, y, slope, turning)
    nodes = np.concatenate([t, at])
    order = np.argsort(nodes, kind="stable")
    values = np.concatenate([y, height])[order]
    is_turn = np.concatenate([np.zeros(len(t), bool), np.ones(len(at), bool)])[order]
    return StepCurve(nodes[order], values, is_turn, lambda own: step(own)[:, i], lambda own: impulse(own)[:, i], span)


def _cubic_turns(t: Array, y: Array, slope: Array, cells: NDArray[np.intp]) -> tuple[Array, Array]:
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


# MERGED ltinet.analysis.characteristics
# Rise time, settling time, overshoot and peak of step responses, from the exact curve and not from samples of it.

_FIELDS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")
_OVERSHOOT_ROUNDING = 1e-9  # of the final value: what lies closer to it is rounding of a curve that never goes beyond


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepInfo:
    """What one reads off the step response from every input to every output, each p×m; prints as a table.

    NaN stands for what does not exist: where the final value is zero or infinite there is nothing to rise to, and
    nothing to settle at.
    """

    final_value: Array
    """The gain at rest."""
    rise_time: Array
    """From first reaching 10 % of the final value to first reaching 90 %."""
    settling_time: Array
    """After which the response stays within 2 % of the final value."""
    overshoot: Array
    """By how much it goes beyond the final value, in percent of it."""
    undershoot: Array
    """By how much it goes in the other direction, in percent of the final value."""
    peak: Array
    """The largest |y|, or what |y| tends to if that is more; NaN for several oscillations that are not damped."""
    peak_time: Array
    """When that is; infinite if it is never reached."""
    dead_time: Array = field(kw_only=True)
    """Delay before the response begins; settling and peak times include it."""
    input_names: Names = field(kw_only=True)
    """How the inputs are called, along the last axis."""
    output_names: Names = field(kw_only=True)
    """How the outputs are called, along the first axis."""

    def __repr__(self) -> str:
        p, m = self.final_value.shape
        return f"StepInfo({p} × {m} step responses)"

    def delayed(self, dead_time: Array) -> "StepInfo":
        """Return the same for responses that begin later by a dead time from each input to each output `(p, m)`."""
        return replace(
            self,
            dead_time=dead_time,
            settling_time=self.settling_time + dead_time,
            peak_time=self.peak_time + dead_time,
        )

    def __str__(self) -> str:
        return text_table(self._headings, self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._headings, self._rows())

    @property
    def _shown(self) -> tuple[str, ...]:
        """What is shown: the dead time where there is one."""
        return ("dead time", *_FIELDS) if np.any(self.dead_time) else _FIELDS

    @property
    def _headings(self) -> tuple[str, ...]:
        return ("input", "output", *self._shown)

    def _rows(self) -> list[list[str]]:
        values = [getattr(self, name.replace(" ", "_")) for name in self._shown]
        inputs, outputs = ([sanitize(name) for name in names] for names in (self.input_names, self.output_names))
        pairs = [(j, i) for j in range(len(inputs)) for i in range(len(outputs))]
        rows = []
        for place in displayed_rows(len(pairs)):
            if place is None:
                rows.append(omission_row(len(pairs), len(self._headings)))
                continue
            j, i = pairs[place]
            rows.append([inputs[j], outputs[i], *(f"{value[i, j]:.5g}" for value in values)])
        return rows


def step_info(
    prepared: SimulationContext, system: SystemMatrices, *, input: Channel, output: Channel, settling: Any, rise: Any
) -> StepInfo:
    """Facts of step responses; times are found on the dense output by narrowing down, to about twelve digits."""
    band, (low, high) = _fraction(settling, "settling"), _two_fractions(rise)
    chosen = resolve_index(input, system.input_names, "input")
    own = resolve_index(output, system.output_names, "output")
    inputs = range(system.n_inputs) if chosen is None else [chosen]
    outputs = range(system.n_outputs) if own is None else [own]
    final = dc_gain(system)
    facts = np.full((len(_FIELDS), len(outputs), len(inputs)), np.nan)
    facts[0] = final[np.ix_(outputs, inputs)]
    for column, j in enumerate(inputs):
        curves = list(step_curves(prepared, system, j, final[:, j], band=band))
        for row, i in enumerate(outputs):
            facts[1:, row, column] = _measure(curves[i], float(final[i, j]), band, low, high)
    _clear_rounded_undershoot(facts, rounding_tolerance(system.n_states))
    return StepInfo(
        *facts,
        dead_time=np.zeros(facts.shape[1:]),
        input_names=tuple(system.input_names[j] for j in inputs),
        output_names=tuple(system.output_names[i] for i in outputs),
    )


def _clear_rounded_undershoot(facts: Array, share: float) -> None:
    """No undershoot where the curve goes the other way by rounding of its peak only."""
    final, undershoot, peak = (facts[_FIELDS.index(name)] for name in ("final value", "undershoot", "peak"))
    with np.errstate(invalid="ignore"):
        undershoot[undershoot * np.abs(final) <= 100.0 * share * peak] = 0.0


def _measure(curve: StepCurve, final: float, band: float, low: float, high: float) -> tuple[float, ...]:
    """Rise time, settling time, overshoot, undershoot, peak and its time."""
    if not np.isfinite(final):
        return (np.nan, np.nan, np.nan, np.nan, np.inf, np.inf)
    top_time, top = curve.largest(1.0)
    bottom_time, bottom = curve.largest(-1.0)
    time, peak = (top_time, top) if top >= bottom else (bottom_time, bottom)
    settles = curve.span.settles
    if settles and abs(final) * (1.0 + _OVERSHOOT_ROUNDING) >= peak:
        time, peak = np.inf, abs(final)
    if not settles and not curve.span.returns:
        time, peak = (np.nan, np.nan) if curve.span.is_bounded else (np.inf, np.inf)
    if final == 0.0 or not settles:
        return (np.nan, np.nan, np.nan, np.nan, peak, time)
    beyond, against = (top, bottom) if final > 0.0 else (bottom, top)
    size = abs(final)
    return (
        curve.first_reaching(high * final) - curve.first_reaching(low * final),
        curve.settling_time(final, band * size),
        100.0 * (beyond - size) / size if beyond > size * (1.0 + _OVERSHOOT_ROUNDING) else 0.0,
        100.0 * max(0.0, against / size),
        peak,
        time,
    )


def _fraction(value: Any, name: str) -> float:
    number = float(value) if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool) else np.nan
    if not 0.0 < number < 1.0:
        raise SimulationError(f"{name} is {sanitize(repr(value))}; give a share of the final value, between 0 and 1")
    return number


def _two_fractions(rise: Any) -> tuple[float, float]:
    try:
        low, high = rise
    except (TypeError, ValueError):
        raise SimulationError(
            f"rise is {sanitize(repr(rise))}; give two shares of the final value, as (0.1, 0.9)"
        ) from None
    low, high = _fraction(low, "rise[0]"), _fraction(high, "rise[1]")
    if not low < high:
        raise SimulationError(f"rise is {sanitize(repr(rise))}; the first share must be below the second")
    return low, high
