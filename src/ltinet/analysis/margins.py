"""Stability margins of a feedback loop: gain, phase, delay and modulus margins, and the disk margin.

A loop L closed by negative feedback is stable as long as its Nyquist curve does not pass −1. It does so if L is multiplied
by a gain 1/|L| where L is real and negative, by a phase where |L| = 1, by a delay there, or if a disk around −1 (or around
the segment of simultaneous changes of gain and phase) is left. Crossings are located in two steps:

1. Samples: poles and zeros, resonances, and the generalised eigenvalues of two pencils near the axis, whose eigenvalues
   on it are the crossings without delay (`stability.axis_candidates`); with a delay enough to resolve its phase.
2. Each change of sign of log|L| or of Im L/|L| between samples is a crossing and is narrowed down to rounding. Samples
   within rounding of a crossing have no sign; one between samples of equal signs is a curve that touches.

Responses are accurate relative to |L| (`refined_evaluator`), so that crossings at gains of 1e-9 are right as well. Modulus
and disk margin are reciprocal peaks of S = (I + L)⁻¹ and S − T = (I − L)(I + L)⁻¹, found by branch and bound over the
phase of the closed-loop poles (`norms.find_peak`); with delays or several channels they are found on samples.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.display import html_table, text_table
from ltinet._util.floating_point import Array, Complex
from ltinet.analysis.frequency_response import apply_delays, evaluation_points, frequencies_for, refined_evaluator
from ltinet.analysis.norms import FLAT_PEAK, find_peak
from ltinet.analysis.poles import compute_poles
from ltinet.analysis.stability import (
    axis_candidates,
    closed_loop,
    closed_loop_is_stable,
    pole_regions,
    validate_loop,
)
from ltinet.analysis.zeros import invariant_zeros
from ltinet.errors import InvalidSystemError
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices


@final
@dataclass(frozen=True, eq=False, repr=False)
class Margins:
    """Stability margins of a loop; prints as a table, and unpacks as `gm, pm, wcg, wcp = margins`.

    Margins without a crossing are infinite, with frequency NaN. They are distances to instability if the closed loop is
    stable, and changes that make it marginal otherwise.

    Parameters
    ----------
    gain_margin : float
        Factor on the gain that makes the loop marginal, the closest to 1; below 1 if the gain must not fall.
    gain_margin_frequency : float
        Angular frequency at which L = −1/gain_margin.
    phase_margin : float
        Phase in degrees, from −180 to 180, by which L is ahead of −180° where |L| = 1; the one of smallest size.
    phase_margin_frequency : float
        Angular frequency of that crossing.
    delay_margin : float
        Smallest further delay, in units of time, that makes the loop marginal.
    delay_margin_frequency : float
        Angular frequency of that crossing.
    modulus_margin : float
        Distance of the Nyquist curve from −1, 1/‖S‖∞.
    modulus_margin_frequency : float
        Angular frequency of the closest point; infinite for a limit.
    is_stable : bool
        True if the closed loop is stable.
    gain_margins, phase_crossovers : ndarray
        All gain margins, and the angular frequencies at which L is real and negative.
    phase_margins, gain_crossovers, delay_margins : ndarray
        All phase margins, the angular frequencies at which |L| = 1, and the delay margins there.
    notes : tuple of str
        Remarks, such as the frequency at which a list of crossings ends.
    """

    gain_margin: float
    gain_margin_frequency: float
    phase_margin: float
    phase_margin_frequency: float
    delay_margin: float
    delay_margin_frequency: float
    modulus_margin: float
    modulus_margin_frequency: float
    is_stable: bool
    gain_margins: Array
    phase_crossovers: Array
    phase_margins: Array
    gain_crossovers: Array
    delay_margins: Array
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[float]:
        return iter((self.gain_margin, self.phase_margin, self.gain_margin_frequency, self.phase_margin_frequency))

    def __repr__(self) -> str:
        verdict = "stable" if self.is_stable else "not stable"
        return (
            f"Margins(closed loop {verdict}, gain {self.gain_margin:.5g}, phase {self.phase_margin:.5g}°, "
            f"delay {self.delay_margin:.5g}, modulus {self.modulus_margin:.5g})"
        )

    def __str__(self) -> str:
        return "\n".join([self._verdict, text_table(self._headings, self._rows()), *self.notes])

    def _repr_html_(self) -> str:
        lines = [f"<p>{escape(line)}</p>" for line in (self._verdict, *self.notes)]
        return lines[0] + html_table(self._headings, self._rows()) + "".join(lines[1:])

    @property
    def _verdict(self) -> str:
        if self.is_stable:
            return "closed loop: stable"
        return "closed loop: not stable; it has no margins, these changes would take it to the boundary of stability"

    @property
    def _headings(self) -> tuple[str, str, str]:
        return ("margin" if self.is_stable else "change", "value", "frequency (rad/time)")

    def _rows(self) -> list[list[str]]:
        rows = [
            ("gain", _format_gain(self.gain_margin), self.gain_margin_frequency),
            (
                "phase",
                f"{self.phase_margin:.5g}°" if self.phase_margin < math.inf else "inf",
                self.phase_margin_frequency,
            ),
            (
                "delay",
                f"{self.delay_margin:.5g} time units" if self.delay_margin < math.inf else "inf",
                self.delay_margin_frequency,
            ),
            (
                "modulus" if self.is_stable else "distance from −1",
                f"{self.modulus_margin:.5g}",
                self.modulus_margin_frequency,
            ),
        ]
        gains = zip(self.gain_margins.tolist(), self.phase_crossovers.tolist(), strict=True)
        phases = zip(self.phase_margins.tolist(), self.gain_crossovers.tolist(), strict=True)
        more = [("further gain", _format_gain(value), omega) for value, omega in gains if omega != rows[0][2]]
        more += [("further phase", f"{value:.5g}°", omega) for value, omega in phases if omega != rows[1][2]]
        if len(more) > _MAX_ROWS:
            more = [*more[:_MAX_ROWS], (f"{len(more) - _MAX_ROWS} more", "", math.nan)]
        return [[name, text, "–" if math.isnan(omega) else f"{omega:.5g}"] for name, text, omega in [*rows, *more]]


_MAX_ROWS = 4  # of further crossings in a printed table


def _format_gain(gain: float) -> str:
    return f"{gain:.5g} ({20.0 * math.log10(gain):.4g} dB)" if 0.0 < gain < math.inf else f"{gain:.5g}"


@final
@dataclass(frozen=True)
class DiskMargin:
    """Disk margin of a loop: simultaneous changes of gain and phase in all channels that keep it stable.

    Parameters
    ----------
    margin : float
        Disk margin α = 2/max μ(S − T), from 0 to 2 for a loop that vanishes at high frequencies; 0 if the closed loop
        is not stable.
    frequency : float
        Angular frequency of the peak of S − T.
    gain_range : tuple of float
        Factors (low, high) = ((2 − α)/(2 + α), (2 + α)/(2 − α)) between which all gains may vary.
    phase : float
        Phase in degrees, ± 2 arctan(α/2), by which all channels may vary.
    """

    margin: float
    frequency: float
    gain_range: tuple[float, float]
    phase: float

    def __str__(self) -> str:
        if self.margin == 0.0:
            return "disk margin: 0, the closed loop is not stable"
        low, high = self.gain_range
        return (
            f"disk margin: {self.margin:.5g}, gain from {low:.4g} to {high:.4g} and phase ± {self.phase:.4g}° together"
        )


# Crossings.

_NO_SIGN = 1e-10  # of log|L| and of Im L/|L|: smaller values may be rounding
_DELAY_STEP = 0.5  # rad of ωτ between neighbouring samples
_MAX_SAMPLES = 200_000  # some seconds; a note says up to which frequency crossings are listed
_LEAST_GAIN = 0.01  # of L with a delay: crossings at lower gains are not listed after the first turn of the delay
_MAX_EXTENSION = 1e3  # beyond poles and zeros: candidates farther away are infinite eigenvalues


class _Loop(NamedTuple):
    """Response of a single loop: without and with its delay, at angular frequencies."""

    rational: Callable[[Array], Complex]
    response: Callable[[Array], Complex]
    samples: Array
    end: float
    delay: float
    note: tuple[str, ...]


def _build_loop(system: SystemMatrices, delay: float) -> _Loop:
    evaluate = refined_evaluator(system)

    def rational(omega: Array) -> Complex:
        return np.asarray(evaluate(evaluation_points(omega, system.dt))[:, 0, 0])

    def response(omega: Array) -> Complex:
        H = rational(omega)
        return H if delay == 0.0 else apply_delays(H[:, None, None], omega, np.full((1, 1), delay))[:, 0, 0]

    grid = frequencies_for(compute_poles(system), invariant_zeros(system), dt=system.dt)
    candidates = np.concatenate(axis_candidates(system))
    end = math.inf if system.dt is None else math.pi / system.dt
    low, high = grid[0] / _MAX_EXTENSION, min(grid[-1] * _MAX_EXTENSION, end)
    candidates = candidates[(candidates > low) & (candidates < high)]
    omega = np.unique(np.concatenate([grid, candidates, [low, high]]))
    omega = np.unique(np.concatenate([omega, np.sqrt(omega[1:] * omega[:-1])]))
    note: tuple[str, ...] = ()
    if delay > 0.0:
        gains = np.abs(rational(omega))
        large = np.flatnonzero(gains >= _LEAST_GAIN)
        stop = max(float(omega[large[-1]]) if len(large) else 0.0, 2.0 * math.pi / delay)
        if np.abs(system.D[0, 0]) >= _LEAST_GAIN:
            stop = max(float(grid[-1]), 2.0 * math.pi / delay)
        stop = min(stop, end)
        if stop * delay / _DELAY_STEP > _MAX_SAMPLES:
            stop = _MAX_SAMPLES * _DELAY_STEP / delay
        if stop < end:
            note = (
                f"gain margins are listed up to ω = {stop:.5g}; beyond, where |L| is smaller, the delay adds larger ones",
            )
        n_samples = math.ceil(stop * delay / _DELAY_STEP) + 1
        omega = np.unique(np.concatenate([omega[omega <= stop], np.linspace(0.0, stop, n_samples + 1)[1:]]))
    return _Loop(rational, response, omega, end, delay, note)


def _crossings(function: Callable[[Array], Array], omega: Array, values: Array) -> Array:
    """Return the frequencies at which a function changes its sign, or touches zero, between samples."""
    is_known = np.isfinite(values) & (np.abs(values) > _NO_SIGN)
    known = np.flatnonzero(is_known)
    if len(known) < 2:
        return np.empty(0)
    before, after = known[:-1], known[1:]
    changes = np.sign(values[before]) != np.sign(values[after])
    roots = _bisect(function, omega[before[changes]], omega[after[changes]], np.sign(values[before[changes]]))
    touches = [
        float(omega[i + 1 + int(np.argmin(np.abs(values[i + 1 : j])))])
        for i, j in zip(before[~changes].tolist(), after[~changes].tolist(), strict=True)
        if j > i + 1 and np.isfinite(values[i + 1 : j]).all() and omega[j - 1] <= _CONTACT * omega[i + 1]
    ]
    return np.sort(np.concatenate([roots, touches]))


# Ratio of frequencies without a sign that are one point of contact: log|L| ≈ −δ² falls to 1e-10 at δ = 1e-5. A wider
# interval is one on which |L| = 1 or L is real.
_CONTACT = 1.001


def _bisect(function: Callable[[Array], Array], low: Array, high: Array, sign: Array) -> Array:
    """Return roots in many brackets at once: secant and bisection steps in turn."""
    low, high = low.copy(), high.copy()
    f_low, f_high = function(low), function(high)
    for step in range(200):
        open_ = high - low > 4.0 * np.spacing(high)
        if not open_.any():
            break
        middle = 0.5 * (low + high)
        if step % 3 != 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = low - f_low * (high - low) / (f_high - f_low)
            # Stay a little inside, so that both ends of the bracket move.
            margin = 0.5 * np.minimum(1e-3 * (high - low), np.maximum(4.0 * np.spacing(high), 1e-13 * high))
            secant = np.where(step % 3 == 0, secant - margin, secant + margin)
            middle = np.where((secant > low) & (secant < high), secant, middle)
        active = np.flatnonzero(open_)
        values = function(middle[active])
        left = (np.sign(values) == sign[active]) & np.isfinite(values)
        low[active[left]], f_low[active[left]] = middle[active[left]], values[left]
        high[active[~left]], f_high[active[~left]] = middle[active[~left]], values[~left]
    return 0.5 * (low + high)


def _log_gain(response: Callable[[Array], Complex]) -> Callable[[Array], Array]:
    def function(omega: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.abs(response(omega))))

    return function


def _sine(response: Callable[[Array], Complex]) -> Callable[[Array], Array]:
    def function(omega: Array) -> Array:
        L = response(omega)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(L.imag / np.abs(L))

    return function


_CROSSING_TOLERANCE = 1e-6  # rad: larger angles at a change of sign are the jump of a pole or zero on the axis


def _phase_crossings(system: SystemMatrices, loop: _Loop) -> tuple[Array, Array]:
    """Return the frequencies at which L is real and negative, and L there."""
    sine = _sine(loop.response)
    omega = _crossings(sine, loop.samples, sine(loop.samples))
    values = loop.response(omega)
    with np.errstate(invalid="ignore", divide="ignore"):
        crosses = (values.real < 0.0) & (np.abs(values.imag) <= _CROSSING_TOLERANCE * np.abs(values))
    omega, real = omega[crosses], values.real[crosses]
    ends = [0.0] if math.isinf(loop.end) else [0.0, loop.end]
    at_ends = loop.response(np.array(ends))
    keep = np.isfinite(at_ends) & (at_ends.real < 0.0) & (np.abs(at_ends.imag) <= _CROSSING_TOLERANCE * np.abs(at_ends))
    omega, real = np.concatenate([omega, np.array(ends)[keep]]), np.concatenate([real, at_ends.real[keep]])
    direct = float(system.D[0, 0])
    if math.isinf(loop.end) and (direct < 0.0 or (loop.delay > 0.0 and direct != 0.0)):
        omega, real = np.append(omega, math.inf), np.append(real, -abs(direct))
    order = np.argsort(omega, kind="stable")
    return omega[order], real[order]


def _gain_crossings(loop: _Loop) -> Array:
    """Return the frequencies at which |L| = 1."""
    log_gain = _log_gain(loop.rational)
    samples = loop.samples
    return _crossings(log_gain, samples, log_gain(samples))


def loop_margins(system: SystemMatrices, settings: SignalSettings) -> Margins:
    """Return the margins of a loop with one input and one output, its delays included.

    Raises:
        InvalidSystemError: the loop has several channels, or is not well-posed.
    """
    if (system.n_outputs, system.n_inputs) != (1, 1):
        raise InvalidSystemError(
            f"margin needs a loop with one input and one output, got {system.n_outputs} outputs and {system.n_inputs} "
            "inputs; use disk_margin() for changes in all channels of a square loop, or select one channel"
        )
    delay = float(settings.total_delay(1, 1)[0, 0])
    loop = _build_loop(system, delay)
    phase_crossovers, real = _phase_crossings(system, loop)
    gain_crossovers = _gain_crossings(loop)
    with np.errstate(divide="ignore"):
        gain_margins = 1.0 / np.abs(real)
        angles = np.angle(loop.response(gain_crossovers))
        phase = angles + np.pi  # in [0, 2π]: 0 for −180°
        is_critical = np.minimum(phase, 2.0 * np.pi - phase) <= _NO_SIGN  # L = −1 but for rounding
        delays = np.where(is_critical, 0.0, phase) / gain_crossovers
        distance = np.abs(np.log(gain_margins))
    phase_margins = np.rad2deg(np.where(phase > np.pi, phase - 2.0 * np.pi, phase))
    nearest_gain, nearest_phase = _smallest(distance), _smallest(np.abs(phase_margins))
    nearest_delay = _smallest(delays)
    modulus, modulus_frequency = _modulus_margin(system, loop)
    is_well_posed = loop.delay > 0.0 or system.D[0, 0] != -1.0
    stable = is_well_posed and closed_loop_is_stable(system, settings)
    return Margins(
        *_pick(gain_margins, phase_crossovers, nearest_gain), *_pick(phase_margins, gain_crossovers, nearest_phase),
        *_pick(delays, gain_crossovers, nearest_delay), modulus, modulus_frequency, stable,
        gain_margins, phase_crossovers, phase_margins, gain_crossovers, delays, loop.note,
    )  # fmt: skip


def _smallest(values: Array) -> int | None:
    return int(np.argmin(values)) if len(values) else None


def _pick(values: Array, omega: Array, index: int | None) -> tuple[float, float]:
    return (math.inf, math.nan) if index is None else (float(values[index]), float(omega[index]))


# Modulus and disk margins: peaks of closed-loop functions.


def _modulus_margin(system: SystemMatrices, loop: _Loop) -> tuple[float, float]:
    """Return the distance of L from −1 and its frequency."""
    if loop.delay == 0.0:
        direct = abs(1.0 + float(system.D[0, 0]))
        if direct == 0.0:
            return 0.0, math.inf

        def sensitivity(omega: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                L = loop.rational(omega)
                return np.where(np.isfinite(L), 1.0 / np.abs(1.0 + L), 0.0)

        peak, omega = _peak_with_poles(system, sensitivity, 1.0 / direct)
        return 1.0 / peak if peak > 0.0 else math.inf, omega

    def distance(omega: Array) -> Array:
        L = loop.response(omega)
        return np.where(np.isfinite(L), np.abs(1.0 + L), np.inf)

    smallest, omega = _minimum_on_samples(distance, loop.samples, loop.end)
    # Beyond the last sample the curve turns about the origin on a circle of radius |D|.
    at_infinity = abs(1.0 - abs(float(system.D[0, 0]))) if math.isinf(loop.end) else math.inf
    return (smallest, omega) if smallest <= at_infinity else (at_infinity, math.inf)


def _peak_with_poles(
    system: SystemMatrices, function: Callable[[Array], Array], at_infinity: float
) -> tuple[float, float]:
    """Return the peak over frequencies of a closed-loop function; infinite if a closed-loop pole is on the boundary."""
    closed = closed_loop(system)
    on_boundary = pole_regions(closed).on_boundary
    poles = compute_poles(closed)
    if len(on_boundary):
        s = on_boundary if system.dt is None else np.log(on_boundary) / system.dt
        return math.inf, float(np.abs(s.imag).min())
    dt = system.dt
    if dt is not None:
        poles, at_infinity = (poles - 1.0) / (poles + 1.0), float(function(np.array([math.pi / dt]))[0])
    poles = poles[np.isfinite(poles) & (poles.real != 0.0)]

    def evaluate(omega: Array) -> tuple[Array, Array]:
        return function(omega if dt is None else 2.0 * np.arctan(omega) / dt), np.zeros(len(omega))

    peak = find_peak(evaluate, poles, at_infinity)
    frequency = peak.omega if dt is None else 2.0 * math.atan(peak.omega) / dt
    return peak.lower, frequency


def _minimum_on_samples(function: Callable[[Array], Array], samples: Array, end: float) -> tuple[float, float]:
    """Return the smallest value of a function at samples and near its local minima, and its frequency."""
    omega = np.unique(np.concatenate([[0.0], samples, [end] if math.isfinite(end) else []]))
    values = function(omega)
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]) & np.isfinite(values))
    minima = minima[np.argsort(values[minima])][:_MAX_MINIMA]
    low, high = omega[np.maximum(minima - 1, 0)], omega[np.minimum(minima + 1, len(omega) - 1)]
    smallest, best = float(values[minima[0]]), float(omega[minima[0]])
    for _ in range(10):
        points = low + (high - low) * np.linspace(0.0, 1.0, 17)[:, None]
        heights = function(points.ravel()).reshape(points.shape)
        index = heights.argmin(axis=0)
        if heights.min() < smallest * (1.0 - FLAT_PEAK):
            row, column = np.unravel_index(int(heights.argmin()), heights.shape)
            smallest, best = float(heights[row, column]), float(points[row, column])
        low, high = (np.take_along_axis(points, np.clip(index + side, 0, 16)[None], axis=0)[0] for side in (-1, 1))
    return smallest, best


_MAX_MINIMA = 20  # local minima on samples that are refined


def disk_margin(system: SystemMatrices, settings: SignalSettings) -> DiskMargin:
    """Return the symmetric disk margin (skew 0) of a square loop: 2/max μ((I + L)⁻¹(I − L)) (Seiler, Packard & Gahinet 2020).

    Channels vary independently: μ is the structured singular value for diagonal perturbations, for one channel the gain. For
    several it is bounded by min_D σ_max(D M D⁻¹), which is μ for up to three channels.

    Raises:
        InvalidSystemError: the loop is not square or not well-posed.
    """
    validate_loop(system, "disk_margin")
    if not closed_loop_is_stable(system, settings):
        return DiskMargin(0.0, math.nan, (1.0, 1.0), 0.0)
    evaluate, identity, dt = refined_evaluator(system), np.eye(system.n_inputs), system.dt
    delays = settings.total_delay(system.n_outputs, system.n_inputs)

    def difference(omega: Array) -> Array:
        L = evaluate(evaluation_points(omega, dt))
        L = apply_delays(L, omega, delays) if settings.has_delays else L
        finite = np.isfinite(L).all(axis=(1, 2))
        values = np.ones(len(omega))  # S − T is −I at a pole of all channels
        values[finite] = _diagonal_mu(np.linalg.solve(identity + L[finite], identity - L[finite]))
        return values

    at_infinity = 0.0
    if dt is None:
        direct = system.D if not settings.has_delays else -np.abs(system.D)  # the worst phase of a single channel
        at_infinity = float(_diagonal_mu(np.linalg.solve(identity + direct, identity - direct)[None])[0])
    if settings.has_delays or system.n_inputs > 1:
        end = math.inf if dt is None else math.pi / dt
        samples = _loop_samples(system, float(delays.max()), end)
        smallest, frequency = _minimum_on_samples(
            lambda omega: 1.0 / np.maximum(difference(omega), _TINY), samples, end
        )
        peak, frequency = (1.0 / smallest, frequency) if 1.0 / smallest >= at_infinity else (at_infinity, math.inf)
    else:
        peak, frequency = _peak_with_poles(system, difference, at_infinity)
    alpha = 2.0 / peak
    high = (2.0 + alpha) / (2.0 - alpha) if alpha < 2.0 else math.inf
    low = (2.0 - alpha) / (2.0 + alpha) if alpha < 2.0 else 0.0
    return DiskMargin(alpha, frequency, (low, high), math.degrees(2.0 * math.atan(0.5 * min(alpha, 2.0))))


_TINY = float(np.finfo(np.float64).tiny)
_SCALING_RANGE = 10.0  # of log d around the balanced scaling
_SWEEPS, _SECTIONS = 3, 30  # over channels, and of an interval, 0.618³⁰ = 5e-7 of it; any scaling gives a bound
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def _diagonal_mu(matrices: NDArray[Any]) -> Array:
    """Return min_D σ_max(D M D⁻¹) over positive diagonal D for many M `(K, m, m)`; the minimum is that of a convex function.

    The logarithms of D are minimized one by one by golden sections; what is returned is never below μ.
    """
    count, m = matrices.shape[:2]
    scaling = np.zeros((count, m))

    def norms(logarithms: Array) -> Array:
        d = np.exp(logarithms)
        return np.asarray(np.linalg.norm(matrices * d[:, :, None] / d[:, None, :], 2, axis=(1, 2)))

    best = norms(scaling)
    for sweep in range(_SWEEPS if m > 2 else 1) if m > 1 else ():
        for channel in range(1, m):
            reach = _SCALING_RANGE / 4.0**sweep
            low, high = scaling[:, channel] - reach, scaling[:, channel] + reach
            trial = scaling.copy()
            for _ in range(_SECTIONS):
                inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
                values = []
                for position in inner:
                    trial[:, channel] = position
                    values.append(norms(trial))
                left = values[0] <= values[1]
                low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
            trial[:, channel] = 0.5 * (low + high)
            found = norms(trial)
            better = found < best
            scaling[better], best = trial[better], np.minimum(best, found)
    return best


def _loop_samples(system: SystemMatrices, delay: float, end: float) -> NDArray[np.float64]:
    """Return frequencies that resolve open and closed loop and their delay, up to where the loop has faded."""
    grid = frequencies_for(compute_poles(system), invariant_zeros(system), dt=system.dt)
    if delay == 0.0:
        return np.unique(np.concatenate([grid, frequencies_for(compute_poles(closed_loop(system)), dt=system.dt)]))
    stop = min(max(float(grid[-1]), 2.0 * math.pi / delay), end, _MAX_SAMPLES * _DELAY_STEP / delay)
    dense = np.linspace(0.0, stop, math.ceil(stop * delay / _DELAY_STEP) + 2)[1:]
    return np.unique(np.concatenate([grid[grid <= stop], dense]))
