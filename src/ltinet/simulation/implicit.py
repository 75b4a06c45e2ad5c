"""Simulation of large sparse models E x' = A x + B u by an implicit method, with an error estimate by step doubling.

Two integrations run side by side, one with steps of half the length; their difference estimates the error of the
coarser one. Between knots of the input the steps are the distance of the knots divided by a power of two, so that few
lengths and few factorizations occur. The embedded method chooses the step lengths. The whole integration is repeated
with a smaller local tolerance until both agree to the requested tolerance.

Outputs are q + D u, with q = C x interpolated by cubics from q and q' = C E⁻¹(A x + B u) at the steps of the finer
integration. The error is an estimate, not a bound.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.progress import ProgressReport
from ltinet.error_bounds.output_bounds import UnknownBound
from ltinet.errors import SimulationError
from ltinet.signals.arrays import as_real_array, broadcast_states
from ltinet.signals.sampled import Hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis, as_real_times
from ltinet.simulation.delays import model_input, solution_from_core
from ltinet.simulation.options import validate_positive
from ltinet.simulation.sdirk import NODES, SDIRKStepper
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

_MIN_TOLERANCE, _MAX_TOLERANCE = 1e-9, 0.1  # below, rounding of stiff states is felt; above, the estimate is unreliable
_MAX_INTEGRATIONS = 4  # with tighter tolerances each; an error where the estimate is still too large
_SAFETY = 0.3  # on the local tolerance of the next integration
_FIRST_TOLERANCE = 10.0  # of the first integration over the requested one: half steps have 1/16 of the error
_MAX_HALVINGS = 40  # of the time between two knots: shorter steps are below rounding of times
_LENGTHEN_BELOW = 1.0 / 50.0  # of the tolerance: doubling a step multiplies its error by 16, with a margin of 3
_ORDER = 4.0  # of the local difference of the two methods in h
_LEVEL_TOLERANCE = 1e-9  # of a number of halvings: rounding of a ratio of two lengths
_LENGTH_DIGITS = 12  # digits to which distances of knots are rounded, so that even spacings agree


def simulate_implicit(  # noqa: PLR0913, RUF100
    system: SystemMatrices,
    descriptor: SparseDescriptor,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None,
    hold: Hold,
    tolerance: float,
    settings: SignalSettings,
    report: ProgressReport,
) -> Solution:
    """Return outputs at the times t whose estimated errors are below `tolerance` of the largest |y| of each.

    Raises
    ------
    InvalidSignalError
        u, t or x0 do not fit.
    SimulationError
        E is singular, the states overflow, or the tolerance is not reached.
    """
    tolerance = validate_positive(tolerance, "tolerance")
    if not _MIN_TOLERANCE <= tolerance <= _MAX_TOLERANCE:
        raise SimulationError(f"tolerance must be from {_MIN_TOLERANCE:g} to {_MAX_TOLERANCE:g}, got {tolerance:g}.")
    axis = TimeAxis.of(as_real_times(t, "t"))
    given = model_input(u, axis, n_inputs=system.n_inputs, names=system.names.inputs, hold=hold, settings=settings)
    signal = given.of_core
    states = np.zeros(system.n_states) if x0 is None else as_real_array(x0, "x0")
    start = np.ascontiguousarray(broadcast_states(states, system.n_states, signal.batch_shape).T)
    with explain_memory_error(descriptor.n_states, descriptor.n_nonzeros):
        trajectory, stats = _refine_until_agreement(system, descriptor, signal, axis.t, start, tolerance, report)
    stats["hold"] = getattr(given.signal, "hold", None)
    solution = Solution(axis.t, trajectory.outputs(axis.t), trajectory, stats, system.names)
    if settings.shifts_signals:
        solution = solution_from_core(solution, settings, given=given, context=None, D=system.D, x0=x0)
    return solution


def _refine_until_agreement(
    system: SystemMatrices,
    descriptor: SparseDescriptor,
    signal: Signal,
    t: Array,
    x0: Array,
    tolerance: float,
    report: ProgressReport,
) -> tuple["ImplicitTrajectory", dict[str, Any]]:
    """Integrate with smaller and smaller local tolerances until the error estimate is within the tolerance."""
    try:
        outputs = OutputMap(descriptor, system.C)
    except SingularMatrixError:
        raise SimulationError(
            "E is singular: the model has algebraic equations, which ltinet.reduce(system, tolerance=1e-6) eliminates "
            "where they are of index 1"
        ) from None
    inside = np.unique(signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])])
    knots = np.concatenate([t[:1], inside, t[-1:] if t[-1] > t[0] else t[:0]])
    local_tolerance = _FIRST_TOLERANCE * tolerance
    for number in range(_MAX_INTEGRATIONS):
        stepper = SDIRKStepper(descriptor)
        integration = _StepDoubling(stepper, outputs, signal, float(knots[0]), x0, local_tolerance)
        for start, stop in pairwise(knots.tolist()):
            integration.integrate(start, stop)
            report((stop - knots[0]) / (knots[-1] - knots[0]), f"integration {number + 1}")
        coarse, fine = (recorder.curve for recorder in integration.recorders)
        trajectory = ImplicitTrajectory(coarse, fine, signal, system.D, signal.batch_shape)
        times = np.union1d(t, coarse.t)
        estimate = trajectory.error_estimate(times).max(axis=-2)
        peak = np.abs(trajectory.outputs(times)).max(axis=-2)
        excess = float(np.max(estimate / np.where(peak > 0.0, tolerance * peak, np.inf), initial=0.0))
        if excess <= 1.0:
            worst = float(estimate.max(initial=0.0))
            return trajectory, {
                "engine": "implicit",
                "error_estimate": estimate,
                "n_steps": len(coarse.t) - 1,
                "n_factorizations": stepper.n_factorizations,
                "n_solves": stepper.n_solves,
                "step_tolerance": local_tolerance,
                "notes": (f"outputs err by about {worst:.1e} or less, estimated by halving all steps: no bound",),
            }
        local_tolerance *= _SAFETY / excess
        if local_tolerance < 1e-3 * _MIN_TOLERANCE:
            break
    raise SimulationError(
        f"the tolerance {tolerance:g} is not reached: integrations with whole and halved steps differ by "
        f"{excess * tolerance:.1e} of the largest output. Use a larger tolerance."
    )


# Step doubling


class OutputMap:
    """Map to q = C x and q' = Wᵀ(A x + B u) with Wᵀ = C E⁻¹: p numbers per step instead of n."""

    def __init__(self, descriptor: SparseDescriptor, C: Array) -> None:
        self.C = C
        if descriptor.mass is None:
            W = C.T
        else:
            factors = SparseLU(descriptor.mass, has_symmetric_pattern=has_symmetric_pattern(descriptor.mass))
            W = factors.solve(C.T, transposed=True)
        self.of_state, self.of_input = np.asarray(descriptor.state.T @ W).T, W.T @ descriptor.B

    def at(self, x: Array, u: Array) -> tuple[Array, Array]:
        """Return q and its derivative q', (p, batch) each."""
        return self.C @ x, self.of_state @ x + self.of_input @ u


class OutputCurve(NamedTuple):
    """Values of q at the ends of all steps, and its derivatives after and before them, (steps + 1, p, batch)."""

    t: Array
    q: Array
    after: Array
    before: Array


class _StepDoubling:
    """Two integrations from x0 `(n, batch)`: their states, the largest state so far, and the length of the last step.

    `tolerance` is that of a step, relative to the largest state.
    """

    def __init__(
        self, stepper: SDIRKStepper, outputs: OutputMap, signal: Signal, t0: float, x0: Array, tolerance: float
    ) -> None:
        self.stepper, self.signal, self.tolerance = stepper, signal, tolerance
        self.coarse = self.fine = x0
        self.largest, self.length = float(np.linalg.norm(x0)), math.inf
        self.recorders = tuple(_CurveRecorder(outputs, signal, t0, x0) for _ in range(2))

    def integrate(self, start: float, stop: float) -> None:
        """Integrate from one knot to the next, in steps of their distance divided by powers of two."""
        span = float(f"{stop - start:.{_LENGTH_DIGITS}e}")
        level = max(math.ceil(math.log2(span / self.length) - _LEVEL_TOLERANCE), 0) if self.length < span else 0
        n_done = 0  # number of steps of the present level since the start
        while n_done < 2**level:
            h, t = span / 2**level, _time_between(start, stop, n_done, level)
            end = _time_between(start, stop, n_done + 1, level)
            error = self._try_step(h, t, end)
            if error > self.tolerance:
                halvings = max(math.ceil(math.log2(error / self.tolerance) / _ORDER), 1)
                level, n_done = level + halvings, n_done * 2**halvings
                if level > _MAX_HALVINGS:
                    raise SimulationError(f"steps at t = {t:g} become too short. Use a larger tolerance.")
                continue
            n_done, self.length = n_done + 1, h
            if error <= _LENGTHEN_BELOW * self.tolerance and level and n_done % 2 == 0:
                level, n_done, self.length = level - 1, n_done // 2, 2.0 * h

    def _try_step(self, h: float, t: float, end: float) -> float:
        """Return the error of a step of the coarse integration; both integrations take it if it is small enough."""
        step = self.stepper.step(self.coarse, h, _inputs(self.signal, t, end))
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.linalg.norm(step.state))
        if not math.isfinite(size):
            raise SimulationError(f"the states overflow at t = {t:g}; the model is unstable, or its units too small")
        largest = max(self.largest, size)
        # The first step must resolve the fastest states: a long one would damp an unstable state like a stiff one.
        difference = step.difference if self.length == math.inf else step.filtered
        error = float(np.linalg.norm(difference)) / largest if largest else 0.0
        if error <= self.tolerance:
            middle = 0.5 * (t + end)
            for first, last in ((t, middle), (middle, end)):
                self.fine = self.stepper.step(self.fine, 0.5 * h, _inputs(self.signal, first, last)).state
                self.recorders[1].add(last, self.fine)
            self.coarse, self.largest = step.state, largest
            self.recorders[0].add(end, self.coarse)
        return error


def _time_between(start: float, stop: float, n_done: int, level: int) -> float:
    """Return the time start + n_done/2^level of the distance, exactly the knots at both ends."""
    return stop if n_done == 2**level else start + (stop - start) * n_done / 2**level


class _CurveRecorder:
    """Recorder of the output curve of an integration."""

    def __init__(self, outputs: OutputMap, signal: Signal, t0: float, x0: Array) -> None:
        self._outputs, self._signal = outputs, signal
        q, slope = outputs.at(x0, _value(signal, t0))
        self._rows = [(t0, q, slope, slope)]

    def add(self, t: float, x: Array) -> None:
        q, before = self._outputs.at(x, _batch_last(self._signal.value_before(np.array([t])))[0])
        after = before if t >= self._signal.stop else self._outputs.at(x, _value(self._signal, t))[1]
        self._rows.append((t, q, after, before))

    @property
    def curve(self) -> OutputCurve:
        t, q, after, before = zip(*self._rows, strict=True)
        return OutputCurve(np.array(t), np.array(q), np.array(after), np.array(before))


def _inputs(signal: Signal, start: float, stop: float) -> Array:
    """Return the input at the nodes of a step, (5, m, batch); at its end the value before a jump."""
    t = start + NODES * (stop - start)
    values = np.concatenate([signal.value(t[:-1]), signal.value_before(np.array([stop]))], axis=-2)
    return _batch_last(values)


def _value(signal: Signal, t: float) -> Array:
    return np.asarray(_batch_last(signal.value(np.array([t])))[0])


def _batch_last(values: Array) -> Array:
    """Return (batch, T, m) as (T, m, batch)."""
    flat = values.reshape(-1, *values.shape[-2:])
    return np.ascontiguousarray(flat.transpose(1, 2, 0))


# Trajectory


@final
@dataclass(frozen=True, eq=False)
class ImplicitTrajectory:
    """Trajectory y = q + D u, with q from cubics between the steps of the finer integration."""

    coarse: OutputCurve
    fine: OutputCurve
    signal: Signal
    D: Array
    batch_shape: tuple[int, ...]

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times, `(..., len(t), p)`."""
        return np.asarray(self._batch_first(_interpolate(self.fine, t)) + self.signal.value(t) @ self.D.T)

    def error_estimate(self, t: Array) -> Array:
        """Return the difference of both integrations, `(..., len(t), p)`: about the error of the coarser one."""
        difference = _interpolate(self.fine, t) - _interpolate(self.coarse, t)
        return self._batch_first(np.abs(difference))

    def user_states(self, t: Array) -> NoReturn:  # noqa: ARG002 - required by the protocol
        """Raise an error: states are not stored, since n numbers per step would fill the memory.

        Raises
        ------
        SimulationError
            Always.
        """
        raise SimulationError(
            "states of a large sparse model are not stored. Add a row of C for each state that you need as an output."
        )

    def neuron_states(self, t: Array) -> NoReturn:  # noqa: ARG002
        """Raise an error: there are no neurons.

        Raises
        ------
        SimulationError
            Always.
        """
        raise SimulationError(
            "the model was simulated without a network and has no neurons. Use construct(system, tolerance=1e-6)."
        )

    def error_bound(self, start: float, stop: float) -> UnknownBound:  # noqa: ARG002
        """Return infinity: no bound is known."""
        return UnknownBound(self.batch_shape, len(self.D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return times and inputs before and after each of the times t and each knot between them."""
        knots = self.signal.knots
        times = np.unique(np.concatenate([t, knots[(knots > t[0]) & (knots < t[-1])]]))
        both = np.stack([self.signal.value_before(times), self.signal.value(times)], axis=-2)
        return np.repeat(times, 2), both.reshape(*both.shape[:-3], -1, both.shape[-1])

    def _batch_first(self, values: Array) -> Array:
        """Return (T, p, batch) as (..., T, p)."""
        return np.ascontiguousarray(values.transpose(2, 0, 1)).reshape(*self.batch_shape, *values.shape[:2])


def _interpolate(curve: OutputCurve, t: Array) -> Array:
    """Evaluate cubic polynomials through values and derivatives, (len(t), p, batch)."""
    if len(curve.t) == 1:
        return np.repeat(curve.q, len(t), axis=0)
    at = np.clip(np.searchsorted(curve.t, t, side="right") - 1, 0, len(curve.t) - 2)
    h = (curve.t[at + 1] - curve.t[at])[:, None, None]
    s = (t - curve.t[at])[:, None, None] / h
    rise = curve.q[at + 1] - curve.q[at]
    bend_left, bend_right = h * curve.after[at] - rise, rise - h * curve.before[at + 1]
    return np.asarray(curve.q[at] + s * rise + s * (1.0 - s) * ((1.0 - s) * bend_left + s * bend_right))
