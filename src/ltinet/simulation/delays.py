"""Simulation of models with input and output delays and an operating point.

The core (A, B, C, D) of a model runs with v_j(t) = u_j(t − τ_j) − u0_j (`signals.delayed`). Its outputs w are known
between samples in closed form, so that y_i(t) = w_i(t − σ_i) + y0_i is as exact as w; before t0 + σ_i nothing has
arrived, and y_i = y0_i. States are those of the core at t.

Rounding of the shifted times and of the sums is bounded by the gains of the core. With h_ij its impulse response and
an input that is off by at most ε_j, and by an integral of at most m_j beside jumps,

    |Δw_i| ≤ Σ_j ( ∫|h_ij| + |D_ij| ) ε_j + sup |h_ij| m_j ,

and reading w_i at a time that is off by δ changes it as an input and an initial state do that are late by δ.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.floating_point import EPS, Array, two_sum
from ltinet.error_bounds.propagation import propagator_chain
from ltinet.signals.delayed import DelayedInput, delayed_input, snap_to_targets
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal, polyline_points
from ltinet.signals.times import TimeAxis
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import ErrorBound, Solution, Trajectory, outputs_at_jumps
from ltinet.systems.signal_settings import SignalSettings

# MERGED ltinet.simulation.delays
# Runs of models with delays and an operating point: the same run of (A, B, C, D), its signals moved.
#
# The core of a model runs with v_j(t) = u_j(t − τ_j) − u0_j (`signals.delayed`). Its outputs w are known between samples
# in closed form, so that y_i(t) = w_i(t − σ_i) + y0_i is as exact as w is; before t0 + σ_i nothing has arrived, and
# y_i = y0_i. States are those of the core at t.
#
# What rounding of the moved times and of the sums does to outputs is bounded by the gains of the core. With h_ij its
# impulse response and an input that is off by at most ε_j, and by an integral of at most m_j beside jumps,
#
#     |Δw_i| ≤ Σ_j ( ∫|h_ij| + |D_ij| ) ε_j + sup |h_ij| m_j ,
#
# and reading w_i at a time that is off by δ changes it as an input and an initial state do that are as much late.


class ResponseBounds(NamedTuple):
    """Bounds on sup |h_ij| and ∫|h_ij| over a run, `(p, k)` each."""

    peak: Array
    integral: Array


def core_input(signal: Signal, axis: TimeAxis, settings: SignalSettings) -> DelayedInput:
    """Return what the core of a model sees of an input."""
    m = signal.n_inputs
    return delayed_input(signal, axis, delays=settings.array("input_delay", m), offsets=settings.array("u0", m))


def operating_point_input(signal: Signal, axis: TimeAxis, settings: SignalSettings) -> SampledSignal:
    """Return an input that stays at the operating point."""
    u0 = settings.array("u0", signal.n_inputs)
    return SampledSignal(axis, np.broadcast_to(u0, (len(axis.t), len(u0))))


def solution_from_core(
    solution: Solution,
    settings: SignalSettings,
    *,
    given: Signal,
    seen: DelayedInput,
    prepared: SimulationContext | None,
    D: Array,
    x0: Any,
) -> Solution:
    """Return the solution of a model from that of its core; without `prepared` rounding is not bounded."""
    p = solution.y.shape[-1]
    delays = np.broadcast_to(settings.array("output_delay", p), solution.y[..., 0, :].shape)
    trajectory = DelayedTrajectory(
        core=solution.trajectory,
        t=solution.t,
        delays=delays,
        y0=settings.array("y0", p),
        given=given,
        seen=seen,
        D=D,
        prepared=prepared,
        x0=x0,
    )
    y = solution.y + trajectory.y0 if not delays.any() else trajectory.outputs(solution.t, at_times=solution.y)
    return replace(solution, y=y, trajectory=trajectory)


@dataclass(frozen=True, eq=False)
class DelayedTrajectory:
    """A run of a model with delays and an operating point."""

    core: Trajectory
    t: Array
    delays: Array
    """Output delays, `(..., p)`."""
    y0: Array
    given: Signal | None
    seen: DelayedInput | None
    D: Array
    prepared: SimulationContext | None
    x0: Any = None
    """The user's state at the first time."""
    state_delays: Array | None = None
    """Delays of all states of the members of a batch, `(...)`, where each is another input's response."""
    one_output: int | None = None
    """Which output of the core this is, where it is one alone."""

    def outputs(self, t: Array, *, at_times: Array | None = None) -> Array:
        """Return outputs y at any times; `at_times` are those of the core at `self.t`, if they are known already."""
        y = np.zeros((*self.delays.shape[:-1], len(t), self.delays.shape[-1]))
        for delay in np.unique(self.delays).tolist():
            now, source, _ = self.source(t, delay)
            if not now.any():
                continue
            w = self._core_outputs(source, at_times)
            here = np.broadcast_to((self.delays == delay)[..., None, :], (*y.shape[:-2], len(source), y.shape[-1]))
            y[..., now, :] = np.where(here, w, y[..., now, :])
        return np.asarray(y + self.y0)

    def source(self, t: Array, delay: float) -> tuple[Any, Array, Array]:
        """Return which times lie after t0 + delay, the times t − delay there, and by how far rounding moved these."""
        if not delay:
            return np.ones(len(t), dtype=bool), t, np.zeros(len(t))
        times, lost = two_sum(t, np.array([-delay]))
        times, by = snap_to_targets(times, lost, np.unique(self.t))
        now = times >= self.t[0]
        return now, times[now], by[now]

    def _core_outputs(self, t: Array, at_times: Array | None) -> Array:
        if at_times is not None:
            # Times given twice stand before and after a jump; any other has one place.
            places = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1)
            doubled = np.flatnonzero(t[1:] == t[:-1])
            places[doubled] = np.searchsorted(self.t, t[doubled], side="left")
            # The value before a jump is known where the run has this time twice as well.
            if np.array_equal(self.t[places], t) and np.all(places[doubled] < places[doubled + 1]):
                return at_times[..., places, :]
        y = self.core.outputs(t)
        return y if self.seen is None else outputs_at_jumps(y, t, self.seen.signal, self.D)

    def user_states(self, t: Array) -> Array:
        """Return states x of the core at any times."""
        return self._moved_states(t, self.core.user_states)

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) of the core at any times."""
        return self._moved_states(t, self.core.neuron_states)

    def _moved_states(self, t: Array, read: Any) -> Array:
        if self.state_delays is None:
            return np.asarray(read(t))
        shape = read(self.t[:1]).shape
        found = np.zeros((*shape[:-2], len(t), shape[-1]))
        for delay in np.unique(self.state_delays).tolist():
            now, source, _ = self.source(t, delay)
            if now.any():
                here = (self.state_delays == delay)[..., None, None]
                found[..., now, :] = np.where(here, read(source), found[..., now, :])
        return found

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return the input as it was given, at the times t and at knots between them."""
        if self.given is None:
            return t, np.zeros((len(t), 0))
        return polyline_points(self.given, t)

    def error_bound(self, start: float, stop: float) -> "DelayedErrorBound":
        """Return how far outputs between two times may be off."""
        return DelayedErrorBound(self, self.core.error_bound(start, stop), self._rounding())

    def _rounding(self) -> Array:
        """Return what moved times and sums do to outputs, apart from the last sum, `(..., p)`."""
        shape = self.delays.shape
        if self.prepared is None or self.prepared.has_operator:
            return np.full(shape, np.inf if self.seen is not None else 0.0)
        horizon = float(self.t[-1] - self.t[0])
        total = np.zeros(shape)
        read_late = np.zeros(shape)
        for delay in np.unique(self.delays).tolist():
            by = self.source(self.t, delay)[2]
            # Between the times asked for a difference of two numbers is rounded by half a unit of either.
            most = max(float(by.max(initial=0.0)), EPS * float(np.abs(self.t).max())) if delay else 0.0
            read_late = np.where(self.delays == delay, most, read_late)
        if self.seen is not None and (np.any(self.seen.error) or np.any(self.seen.jump_error)):
            gains = self._gains(horizon)
            total += self.seen.error @ (gains.integral + np.abs(self.D)).T + self.seen.jump_error @ gains.peak.T
        if read_late.any():
            speed = self._speed(horizon)
            total += read_late * (speed if self.one_output is None else speed[..., self.one_output, None])
        return total

    def _gains(self, horizon: float) -> ResponseBounds:
        prepared: Any = self.prepared
        packed = prepared.system.packed_from_blocks(prepared.blocks.B.T)
        return bound_free_responses(prepared, packed, horizon)

    def _speed(self, horizon: float) -> Array:
        """Return a bound on |ẇ_i| between jumps: from the variation of the input, and from the initial state."""
        prepared: Any = self.prepared
        p = prepared.system.n_outputs
        samples = getattr(self.seen.signal if self.seen is not None else None, "u", None)
        speed = np.zeros((*self.delays.shape[:-1], p))
        if samples is not None:
            variation = np.abs(samples[..., 0, :]) + np.abs(np.diff(samples, axis=-2)).sum(axis=-2)
            speed = speed + self._driven_speed(variation, np.abs(samples).max(axis=-2, initial=0.0), horizon)
            speed = speed + self._slopes(samples) @ np.abs(prepared.system.D).T
        elif self.seen is not None:
            times = np.unique(self.t)  # a function is known where it was asked: twice what it was seen to vary there
            values = self.seen.signal.value(times)
            rises = 2.0 * np.abs(np.diff(values, axis=-2))
            variation = 2.0 * np.abs(values[..., 0, :]) + rises.sum(axis=-2)
            speed = speed + self._driven_speed(variation, 2.0 * np.abs(values).max(axis=-2, initial=0.0), horizon)
            slopes = (rises / np.diff(times)[:, None]).max(axis=-2, initial=0.0)
            speed = speed + slopes @ np.abs(prepared.system.D).T
        if self.x0 is not None and np.any(self.x0):
            batch = self.delays.shape[:-1]
            start = prepared.system.packed_from_blocks(prepared.initial_state(self.x0, batch))
            moving = bound_free_responses(prepared, _derivative(prepared, start), horizon).peak.T
            speed = speed + moving.reshape(*batch, p)
        return np.asarray(speed)

    def _driven_speed(self, variation: Array, size: Array, horizon: float) -> Array:
        """Return a bound on |C x'| from rest: sup |h|·variation of v, or (∫|ḣ| + |h(0)|)·max |v| where that is less."""
        prepared: Any = self.prepared
        packed = prepared.system.packed_from_blocks(prepared.blocks.B.T)
        peak = self._gains(horizon).peak
        moving = bound_free_responses(prepared, _derivative(prepared, packed), horizon).integral
        with np.errstate(invalid="ignore"):
            found = np.fmin(variation @ peak.T, size @ (moving + peak).T)
        return np.nan_to_num(found, nan=np.inf)

    def _slopes(self, samples: Array) -> Array:
        signal: Any = self.seen.signal if self.seen is not None else None
        if signal.hold != "linear" or len(signal.t) < 2:
            return np.zeros(samples[..., 0, :].shape)
        widths = np.diff(signal.t)
        rises = np.abs(np.diff(samples, axis=-2)) / np.where(widths > 0.0, widths, np.inf)[:, None]
        return np.asarray(rises.max(axis=-2))


@dataclass(frozen=True, eq=False)
class DelayedErrorBound:
    """The bound of the core at the times that outputs are read at, and what moving signals added."""

    run: DelayedTrajectory
    core: ErrorBound
    rounding: Array

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(..., len(t), p)` each."""
        run = self.run
        found: dict[str, Array] = {}
        for delay in np.unique(run.delays).tolist():
            now, source, _ = run.source(t, delay)
            if not now.any():
                continue
            here = (run.delays == delay)[..., None, :]
            for name, part in self.core.at(source).items():
                own = found.setdefault(name, np.zeros((*part.shape[:-2], len(t), part.shape[-1])))
                own[..., now, :] = np.where(here, part, own[..., now, :])
        last_sum = 0.5 * EPS * np.abs(run.outputs(t)) * (run.y0 != 0.0)
        found["delays and operating point"] = self.rounding[..., None, :] + last_sum
        return found

    def overall(self) -> dict[str, Array]:
        """Return the parts over all times, `(..., p)` each."""
        run = self.run
        largest = np.abs(run.outputs(run.t)).max(axis=-2, initial=0.0) + np.abs(run.y0)
        parts = self.core.overall()
        parts["delays and operating point"] = self.rounding + EPS * largest * (run.y0 != 0.0)
        return parts


def bound_free_responses(prepared: SimulationContext, packed: Array, horizon: float) -> ResponseBounds:
    """Return bounds on sup |C e^{At} z| and ∫|C e^{At} z| over 0 ≤ t ≤ horizon for packed states z `(k, n)`.

    Modes that are scalars count with the modulus of their weight: |c e^{λt} v| ≤ |c||v| e^{Re λ t}. Coupled blocks count
    with the entries of |e^{Ft}| that `propagator_chain` bounds.
    """
    system = prepared.system
    n_pairs, n_scalars = system.n_pairs, len(system.rates)
    pairs = packed[:, : 2 * n_pairs : 2] + 1j * packed[:, 1 : 2 * n_pairs : 2]
    modes = np.abs(np.concatenate([pairs, packed[:, 2 * n_pairs : n_pairs + n_scalars]], axis=1))
    growth = system.rates.real
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.exp(np.maximum(growth, 0.0) * horizon)
        product = growth * horizon
        small = np.abs(product) < 1e-8
        total = horizon * np.where(
            small, 1.0 + np.maximum(product, 0.0), np.expm1(product) / np.where(small, 1.0, product)
        )
        weights = np.abs(system.C)
        peak, integral = weights @ (modes * largest).T, weights @ (modes * total).T
        place = n_pairs + n_scalars
        for block in system.blocks:
            own = np.abs(packed[:, place : place + len(block.F)]).T
            place += len(block.F)
            chain = propagator_chain(block.F, horizon)
            peak = peak + np.abs(block.C) @ (chain.peak @ own)
            integral = integral + np.abs(block.C) @ (chain.integral @ own)
    return ResponseBounds(np.nan_to_num(peak, nan=np.inf), np.nan_to_num(integral, nan=np.inf))


def _derivative(prepared: SimulationContext, packed: Array) -> Array:
    """Return ż of packed states `(k, n)` without input."""
    system = prepared.system
    n_pairs, n_scalars = system.n_pairs, len(system.rates)
    moving = np.zeros_like(packed)
    pairs = (packed[:, : 2 * n_pairs : 2] + 1j * packed[:, 1 : 2 * n_pairs : 2]) * system.rates[:n_pairs]
    moving[:, : 2 * n_pairs : 2], moving[:, 1 : 2 * n_pairs : 2] = pairs.real, pairs.imag
    reals = slice(2 * n_pairs, n_pairs + n_scalars)
    moving[:, reals] = packed[:, reals] * system.rates[n_pairs:].real
    place = n_pairs + n_scalars
    for block in system.blocks:
        own = slice(place, place + len(block.F))
        moving[:, own] = packed[:, own] @ block.F.T
        place += len(block.F)
    return moving
