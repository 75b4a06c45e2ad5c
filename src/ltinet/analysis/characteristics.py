"""Characteristics of responses: bandwidth, rise time, settling time, overshoot, undershoot and peak.

Step responses are curves that are sampled closely enough to resolve every turn. Their slope is the impulse response,
apart from D, and both are computed at the same times. Between two samples the cubic through values and slopes shows
where the curve turns; results that depend on such an estimate are recomputed on the exact dense output. Crossings are
located by multisection: six rounds of 129 points narrow an interval to 2⁻⁴² of its length.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.display import displayed_rows, html_table, omission_row, text_table
from ltinet._util.floating_point import Array, rounding_tolerance
from ltinet._util.text import sanitize
from ltinet.analysis.dc_gain import dc_gain
from ltinet.analysis.response_times import (
    ROUNDING_OF_PEAK,
    Modes,
    TimeSpan,
    deviation_reference,
    select_time_span,
    settling_time_bound,
)
from ltinet.analysis.responses import (
    MAX_EXTENSIONS,
    Channel,
    excited_modes,
    impulse_response,
    resolve_index,
    step_response,
)
from ltinet.errors import SimulationError
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_names import Names
from ltinet.systems.system_matrices import SystemMatrices

# Crossings.

_POINTS, _ROUNDS = 129, 6  # 128⁶ = 2⁴² steps of the interval


def find_first_true(holds: Callable[[Array], NDArray[np.bool_]], start: float, stop: float) -> float:
    """Return the first point of an interval at which a condition holds, given that it holds at the end."""
    for _ in range(_ROUNDS):
        points = np.linspace(start, stop, _POINTS)
        indices = np.flatnonzero(holds(points[1:]))
        first = int(indices[0]) if len(indices) else _POINTS - 2
        start, stop = float(points[first]), float(points[first + 1])
        if not start < stop:
            break
    return stop


# Bandwidth.

FrequencyFunction = Callable[[Array], NDArray[np.complex128]]


def compute_bandwidth(response: FrequencyFunction, at_rest: Array, frequencies: Array, *, drop: float) -> Array:
    """Return the first frequency at which |H_ij| is `drop` decibels below |H_ij(0)|, p×m.

    It is infinite if |H_ij| does not fall that far up to the last of the frequencies, and NaN if the DC gain is zero
    or infinite.
    """
    limit = np.abs(at_rest) * 10.0 ** (-drop / 20.0)
    result = np.full(at_rest.shape, np.nan)
    usable = np.isfinite(limit) & (limit > 0.0)
    if not np.isfinite(limit).all():
        i, j = np.argwhere(~np.isfinite(limit))[0].tolist()
        warnings.warn(
            f"the DC gain from input {j} to output {i} is infinite, so that there is no bandwidth (NaN). That of the closed "
            "loop is ltinet.feedback(L).bandwidth(); margin() has the gain crossover of an open loop",
            UserWarning,
            stacklevel=3,
        )
    if not usable.any():
        return result
    # Octaves below the first frequency, in case the gain falls there already.
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

        def is_below(omega: Array, pair: tuple[int, int] = (i, j)) -> NDArray[np.bool_]:
            return np.asarray(np.abs(response(omega)[:, *pair]) < limit[pair])

        result[i, j] = find_first_true(is_below, start, float(grid[first]))
    return result


# Step responses as curves.

_SAMPLES_PER_RADIAN = 3.0  # of the fastest remaining mode: nineteen in a period
# Of the reference: amplitude of one mode that needs no samples of its own, or of all together, at which a response may
# end. Times are read to 1e-4 of a band of 1e-3.
_NEGLIGIBLE_AMPLITUDE = 1e-7
# Bound on the error of a cubic at a turn, relative to the largest |y|: (1/3)⁴/384 of a mode is 3e-5.
_CUBIC_ERROR = 1e-3
_MAX_SAMPLES_PER_PIECE = 200_000


@dataclass(frozen=True, eq=False)
class StepCurve:
    """One output: nodes (samples and estimated turns, `(nodes,)`) between which it is monotonic."""

    t: Array
    y: Array
    is_turn: NDArray[np.bool_]
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    span: TimeSpan

    def largest(self, sign: float) -> tuple[float, float]:
        """Return the time and value of the largest sign·y; at least 0, the value before the step."""
        heights = sign * self.y
        top = float(heights.max(initial=0.0))
        if top <= 0.0:
            return 0.0, 0.0
        close = np.flatnonzero(heights >= top - _CUBIC_ERROR * float(np.abs(self.y).max()))
        best = (0.0, -np.inf)
        for node in close[np.argsort(-heights[close])][:12].tolist():
            time = self._turn_time(node) if self.is_turn[node] else float(self.t[node])
            height = sign * float(self.value(np.array([time]))[0])
            best = max(best, (time, height), key=lambda candidate: candidate[1])
        return best

    def first_reaching(self, level: float) -> float:
        """Return the first time at which y, starting from 0, reaches a level; NaN if it does not."""
        sign = math.copysign(1.0, level)
        error = _CUBIC_ERROR * float(np.abs(self.y).max())
        for node in np.flatnonzero(sign * self.y >= abs(level) - error).tolist():
            time, height = self._node(node, exact=abs(sign * self.y[node] - abs(level)) < error)
            if sign * height >= abs(level):
                start = float(self.t[node - 1]) if node else 0.0
                return find_first_true(lambda t: sign * self.value(t) >= abs(level), start, time) if node else 0.0
        return math.nan

    def settling_time(self, final: float, band: float) -> float:
        """Return the last time at which y is outside a band around its final value; NaN if that is the last node."""
        distance = np.abs(self.y - final)
        error = _CUBIC_ERROR * float(np.abs(self.y).max())
        for node in np.flatnonzero(distance > band - error)[::-1].tolist():
            time, height = self._node(node, exact=abs(distance[node] - band) < error)
            if abs(height - final) > band:
                if node + 1 == len(self.t):
                    return math.nan
                return find_first_true(lambda t: np.abs(self.value(t) - final) <= band, time, float(self.t[node + 1]))
        return 0.0

    def _node(self, node: int, *, exact: bool) -> tuple[float, float]:
        """Return time and value of a node, recomputing an estimated turn if `exact`."""
        if not (exact and self.is_turn[node]):
            return float(self.t[node]), float(self.y[node])
        time = self._turn_time(node)
        return time, float(self.value(np.array([time]))[0])

    def _turn_time(self, node: int) -> float:
        """Return the exact time at which the slope changes its sign near an estimated turn."""
        start, stop = float(self.t[node - 1]), float(self.t[node + 1])
        before = float(np.sign(self.slope(np.array([start]))[0]))
        return find_first_true(lambda t: np.sign(self.slope(t)) != before, start, stop)


def step_curves(
    prepared: SimulationContext, system: SystemMatrices, j: int, final: Array, *, band: float
) -> Iterator[StepCurve]:
    """Yield the step responses of all outputs to input j, until they have settled within a band."""
    modes = excited_modes(prepared, system, j, None, of_step=True)
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
    """Run a step response until it stays in its band, and until no later value could be its peak."""
    end = span.end
    reference = deviation_reference(final[:, None], modes.amplitudes.max(axis=0, initial=0.0))
    fading = modes if span.settles else modes.select((modes.rates.real < 0.0) & ~modes.is_integrator)
    tail = settling_time_bound(fading, reference, share=_NEGLIGIBLE_AMPLITUDE)
    if not span.settles:  # periodic in the end: a whole period after all other modes have faded
        return run(dense_times(modes, final[:, None], end + tail if span.returns else end))
    end = max(end, tail)
    for _ in range(MAX_EXTENSIONS):  # amplitudes of coupled modes are estimates
        step = run(dense_times(modes, final[:, None], end))
        deviation = np.abs(step.y[step.t >= 0.7 * end] - final)
        if (deviation <= 0.5 * band * deviation_reference(final, np.abs(step.y).max(axis=0))).all():
            break
        end *= 1.5
    return step


def dense_times(modes: Modes, final: Array, end: float) -> Array:
    """Return times that resolve the fastest mode that has not faded, in pieces that double in length."""
    reference = deviation_reference(final, modes.amplitudes.max(axis=0, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.nan_to_num(modes.amplitudes / (_NEGLIGIBLE_AMPLITUDE * reference), nan=0.0, posinf=0.0).max(
            axis=(1, 2), initial=0.0
        )
        fade_times = np.where(modes.rates.real < 0.0, np.log(strength) / -modes.rates.real, np.inf)
    fade_times[strength <= 0.0] = 0.0
    pieces, start = [np.zeros(1)], 0.0
    stop = min(end, 10.0 / modes.fastest) if modes.fastest > 0.0 else end
    while start < end:
        fastest = float(np.abs(modes.rates[fade_times > start]).max(initial=1.0 / end))
        count = int(np.clip(math.ceil(_SAMPLES_PER_RADIAN * fastest * (stop - start)), 20, _MAX_SAMPLES_PER_PIECE))
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
    return StepCurve(nodes[order], values, is_turn, lambda t: step(t)[:, i], lambda t: impulse(t)[:, i], span)


def _cubic_turns(t: Array, y: Array, slope: Array, cells: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return time and value of the turn of the cubic through values and slopes at both ends of each cell."""
    h = t[cells + 1] - t[cells]
    rise, before, after = y[cells + 1] - y[cells], h * slope[cells], h * slope[cells + 1]
    # y(x) = y₀ + before x + b x² + a x³ on 0 ≤ x ≤ 1.
    a, b = before + after - 2.0 * rise, 3.0 * rise - 2.0 * before - after
    root = np.sqrt(np.maximum(b * b - 3.0 * a * before, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        larger = -(b + np.copysign(root, b))
        candidates = np.stack([larger / (3.0 * a), before / larger])
    inside = (candidates > 0.0) & (candidates < 1.0)
    middle = before / (before - after)  # for a linear slope, if the cubic coefficients are rounding
    x = np.where(inside[0], candidates[0], np.where(inside[1], candidates[1], middle))
    return t[cells] + x * h, y[cells] + ((a * x + b) * x + before) * x


# Characteristics of step responses.

_FIELDS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepInfo:
    """Characteristics of the step response from every input to every output, each p×m; prints as a table.

    Rise time, settling time, overshoot and undershoot are NaN where the final value is zero or infinite.

    Parameters
    ----------
    final_value : ndarray
        DC gain.
    rise_time : ndarray
        Time from first reaching 10 % of the final value to first reaching 90 %.
    settling_time : ndarray
        Time after which the response stays within 2 % of the final value.
    overshoot : ndarray
        Largest excess over the final value, in percent of it.
    undershoot : ndarray
        Largest excursion in the opposite direction, in percent of the final value.
    peak : ndarray
        Largest |y|, or the limit of |y| if that is larger; NaN for several undamped oscillations.
    peak_time : ndarray
        Time of the peak; infinite if it is never reached.
    dead_time : ndarray
        Delay before the response begins; settling and peak times include it.
    input_names : tuple of str
        Names of the inputs, along the last axis.
    output_names : tuple of str
        Names of the outputs, along the first axis.
    """

    final_value: Array
    rise_time: Array
    settling_time: Array
    overshoot: Array
    undershoot: Array
    peak: Array
    peak_time: Array
    dead_time: Array = field(kw_only=True)
    input_names: Names = field(kw_only=True)
    output_names: Names = field(kw_only=True)

    def __repr__(self) -> str:
        p, m = self.final_value.shape
        return f"StepInfo({p} × {m} step responses)"

    def delayed(self, dead_time: Array) -> "StepInfo":
        """Return the characteristics of responses that are delayed by a dead time.

        Parameters
        ----------
        dead_time : ndarray
            Dead time from each input to each output, `(p, m)`.

        Returns
        -------
        StepInfo
        """
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
        """Columns of the table: the dead time only if there is one."""
        return ("dead time", *_FIELDS) if np.any(self.dead_time) else _FIELDS

    @property
    def _headings(self) -> tuple[str, ...]:
        percentages = ("overshoot", "undershoot")
        return ("input", "output", *(f"{name} %" if name in percentages else name for name in self._shown))

    def _rows(self) -> list[list[str]]:
        values = [getattr(self, name.replace(" ", "_")) for name in self._shown]
        inputs, outputs = ([sanitize(name) for name in names] for names in (self.input_names, self.output_names))
        pairs = [(j, i) for j in range(len(inputs)) for i in range(len(outputs))]
        rows = []
        for index in displayed_rows(len(pairs)):
            if index is None:
                rows.append(omission_row(len(pairs), len(self._headings)))
                continue
            j, i = pairs[index]
            rows.append([inputs[j], outputs[i], *(f"{value[i, j]:.5g}" for value in values)])
        return rows


def step_info(
    prepared: SimulationContext, system: SystemMatrices, *, input: Channel, output: Channel, settling: Any, rise: Any
) -> StepInfo:
    """Compute characteristics of step responses; times are located on the dense output to about twelve digits."""
    band, (low, high) = validate_levels(settling, rise)
    j, i = resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")
    inputs = range(system.n_inputs) if j is None else [j]
    outputs = range(system.n_outputs) if i is None else [i]
    final = dc_gain(system)
    values = np.full((len(_FIELDS), len(outputs), len(inputs)), np.nan)
    values[0] = final[np.ix_(outputs, inputs)]
    for column, j in enumerate(inputs):
        curves = list(step_curves(prepared, system, j, final[:, j], band=band))
        for row, i in enumerate(outputs):
            values[1:, row, column] = _measure(curves[i], float(final[i, j]), band, low, high)
    undershoot, peak = (values[_FIELDS.index(name)] for name in ("undershoot", "peak"))
    with np.errstate(invalid="ignore"):  # an undershoot of the size of the rounding of the peak does not count
        limit = 100.0 * rounding_tolerance(system.n_states) * peak
        undershoot[undershoot * np.abs(values[0]) <= limit] = 0.0
    return StepInfo(
        *values,
        dead_time=np.zeros(values.shape[1:]),
        input_names=tuple(system.input_names[j] for j in inputs),
        output_names=tuple(system.output_names[i] for i in outputs),
    )


def _measure(curve: StepCurve, final: float, band: float, low: float, high: float) -> tuple[float, ...]:
    """Return rise time, settling time, overshoot, undershoot, peak and its time."""
    if not np.isfinite(final):
        return (np.nan, np.nan, np.nan, np.nan, np.inf, np.inf)
    top_time, top = curve.largest(1.0)
    bottom_time, bottom = curve.largest(-1.0)
    time, peak = (top_time, top) if top >= bottom else (bottom_time, bottom)
    settles = curve.span.settles
    if settles and abs(final) * (1.0 + ROUNDING_OF_PEAK) >= peak:
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
        100.0 * (beyond - size) / size if beyond > size * (1.0 + ROUNDING_OF_PEAK) else 0.0,
        100.0 * max(0.0, against / size),
        peak,
        time,
    )


def validate_levels(settling: Any, rise: Any) -> tuple[float, tuple[float, float]]:
    """Return the settling band and the levels of the rise time; raise SimulationError if one is not a share."""
    return _fraction(settling, "settling"), _two_fractions(rise)


def _fraction(value: Any, name: str) -> float:
    number = float(value) if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool) else np.nan
    if not 0.0 < number < 1.0:
        raise SimulationError(f"{name} must be a share of the final value between 0 and 1, got {sanitize(repr(value))}")
    return number


def _two_fractions(rise: Any) -> tuple[float, float]:
    try:
        low, high = rise
    except (TypeError, ValueError):
        raise SimulationError(
            f"rise must be two shares of the final value, such as (0.1, 0.9), got {sanitize(repr(rise))}"
        ) from None
    low, high = _fraction(low, "rise[0]"), _fraction(high, "rise[1]")
    if not low < high:
        raise SimulationError(f"the first share of rise must be below the second, got {sanitize(repr(rise))}")
    return low, high
