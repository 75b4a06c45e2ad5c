"""Simulation of large sparse models E x' = A x + B u by an implicit method, with an error estimate by step doubling.

Two integrations run side by side, one with steps of half the length; their difference estimates the error of the
coarser one. Between knots of the input the steps are the distance of the knots divided by a power of two, so that few
lengths and few factorisations occur. The embedded method chooses the step lengths. The whole integration is repeated
with a smaller local tolerance until both agree to the requested tolerance.

Outputs are q + D u, with q = C x interpolated by cubics from q and q' = C E⁻¹(A x + B u) at the steps of the finer
integration. The error is an estimate, not a bound.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.error_bounds.output_bounds import UnknownBound
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.signals.arrays import as_real_array, validate_state
from ltinet.signals.conversion import as_signal, order_inputs
from ltinet.signals.sampled import Hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis, as_real_times
from ltinet.simulation.delays import core_input, operating_point_input, solution_from_core
from ltinet.simulation.options import validate_positive
from ltinet.simulation.sdirk import NODES, SDIRKStepper
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_names import names_or_defaults
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.simulation.implicit
# Two walks of a model side by side, one with steps of half the length: how far they are apart is the error, estimated.
#
# Between knots of the input steps are the distance of the knots divided by a power of two, so that few lengths occur, and
# few factorisations. How long they are is decided by the embedded method; that both walks agree is seen at the end.

_MAX_HALVINGS = 40  # halvings of the time between two knots: less is no time
_LENGTHEN_BELOW = 1.0 / 50.0  # of the tolerance: a step twice as long has an error 16 times as large, and some room
_ORDER = 4.0  # of the local difference of the two methods
_LEVEL_TOLERANCE = 1e-9  # of a level: what rounding makes of a ratio of two lengths
_LENGTH_DIGITS = 12  # digits in which even spacings agree


class OutputMap:
    """Wᵀ = C E⁻¹: q = C x and q' = Wᵀ(A x + B u), p numbers a step instead of n."""

    def __init__(self, pencil: SparseDescriptor, C: Array) -> None:
        self.C = C
        if pencil.mass is None:
            W = C.T
        else:
            factors = SparseLU(pencil.mass, has_symmetric_pattern=has_symmetric_pattern(pencil.mass))
            W = factors.solve(C.T, transposed=True)
        self.of_state, self.of_input = np.asarray(pencil.state.T @ W).T, W.T @ pencil.B

    def at(self, x: Array, u: Array) -> tuple[Array, Array]:
        """The curve q and its derivative q', (p, batch) each."""
        return self.C @ x, self.of_state @ x + self.of_input @ u


class OutputCurve(NamedTuple):
    """q at the ends of all steps, and its derivative after and before them, (steps + 1, p, batch)."""

    t: Array
    q: Array
    after: Array
    before: Array


class StepDoublingResult(NamedTuple):
    """Both curves, and what they cost."""

    coarse: OutputCurve
    fine: OutputCurve
    n_factorisations: int
    n_solves: int


def integrate_with_step_doubling(
    stepping: SDIRKStepper, outputs: OutputMap, signal: Signal, knots: Array, *, x0: Array, tolerance: float
) -> StepDoublingResult:
    """From x0, (n, batch), at the first knot to the last; `tolerance` is of a step, relative to the largest state.

    Raises:
        SimulationError: steps become too short, or the states overflow.
    """
    walkers = _StepDoubling(stepping, outputs, signal, x0, tolerance)
    walkers.begin(float(knots[0]))
    for start, stop in zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True):
        walkers.cross(start, stop)
    coarse, fine = (notes.curve for notes in walkers.notes)
    return StepDoublingResult(coarse, fine, stepping.n_factorisations, stepping.n_solves)


class _StepDoubling:
    """Both walks as they go: the states, the largest state so far, and the length of the last step."""

    def __init__(self, stepping: SDIRKStepper, outputs: OutputMap, signal: Signal, x0: Array, tolerance: float) -> None:
        self.stepping, self.signal, self.tolerance = stepping, signal, tolerance
        self.coarse = self.fine = x0
        self.largest, self.length = float(np.linalg.norm(x0)), math.inf
        self.notes = _CurveRecorder(outputs, signal), _CurveRecorder(outputs, signal)

    def begin(self, t: float) -> None:
        """Write down where both walks start."""
        for notes in self.notes:
            notes.begin(t, self.coarse)

    def cross(self, start: float, stop: float) -> None:
        """From one knot to the next, in steps of their distance divided by powers of two."""
        span = float(f"{stop - start:.{_LENGTH_DIGITS}e}")
        level = max(math.ceil(math.log2(span / self.length) - _LEVEL_TOLERANCE), 0) if self.length < span else 0
        place = 0  # in steps of the present level
        while place < 2**level:
            h, t = span / 2**level, _place_between(start, stop, place, level)
            end = _place_between(start, stop, place + 1, level)
            error = self._try(h, t, end)
            if error > self.tolerance:
                deeper = max(math.ceil(math.log2(error / self.tolerance) / _ORDER), 1)
                level, place = level + deeper, place * 2**deeper
                if level > _MAX_HALVINGS:
                    raise SimulationError(f"steps at t = {t:g} became too short; allow a larger tolerance")
                continue
            place, self.length = place + 1, h
            if error <= _LENGTHEN_BELOW * self.tolerance and level and place % 2 == 0:
                level, place, self.length = level - 1, place // 2, 2.0 * h

    def _try(self, h: float, t: float, end: float) -> float:
        """The error of a step of the coarse walk; both walks go on where it is small enough."""
        tried = self.stepping.step(self.coarse, h, _inputs(self.signal, t, end))
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.linalg.norm(tried.state))
        if not math.isfinite(size):
            raise SimulationError(f"the states overflow at t = {t:g}; the model is unstable, or its units too small")
        largest = max(self.largest, size)
        # The first step must resolve what is fastest: a long one would damp an unstable state as it does a stiff one.
        difference = tried.difference if self.length == math.inf else tried.filtered
        error = float(np.linalg.norm(difference)) / largest if largest else 0.0
        if error <= self.tolerance:
            middle = 0.5 * (t + end)
            for first, last in ((t, middle), (middle, end)):
                self.fine = self.stepping.step(self.fine, 0.5 * h, _inputs(self.signal, first, last)).state
                self.notes[1].add(last, self.fine)
            self.coarse, self.largest = tried.state, largest
            self.notes[0].add(end, self.coarse)
        return error


def _place_between(start: float, stop: float, place: int, level: int) -> float:
    """A place between two knots, which it meets exactly."""
    return stop if place == 2**level else start + (stop - start) * place / 2**level


class _CurveRecorder:
    """What is written down on a walk."""

    def __init__(self, outputs: OutputMap, signal: Signal) -> None:
        self._outputs, self._signal = outputs, signal
        self._rows: list[tuple[float, Array, Array, Array]] = []

    def begin(self, t: float, x: Array) -> None:
        q, rate = self._outputs.at(x, _value(self._signal, t))
        self._rows.append((t, q, rate, rate))

    def add(self, t: float, x: Array) -> None:
        q, before = self._outputs.at(x, _value_before(self._signal, t))
        after = before if t >= self._signal.stop else self._outputs.at(x, _value(self._signal, t))[1]
        self._rows.append((t, q, after, before))

    @property
    def curve(self) -> OutputCurve:
        t, q, after, before = zip(*self._rows, strict=True)
        return OutputCurve(np.array(t), np.array(q), np.array(after), np.array(before))


def _inputs(signal: Signal, start: float, stop: float) -> Array:
    """The input at the nodes of a step, (5, m, batch); at its end the value before a jump."""
    t = start + NODES * (stop - start)
    values = np.concatenate([signal.value(t[:-1]), signal.value_before(np.array([stop]))], axis=-2)
    return _last_batch(values)


def _value(signal: Signal, t: float) -> Array:
    return np.asarray(_last_batch(signal.value(np.array([t])))[0])


def _value_before(signal: Signal, t: float) -> Array:
    return np.asarray(_last_batch(signal.value_before(np.array([t])))[0])


def _last_batch(values: Array) -> Array:
    """(batch, T, m) as (T, m, batch)."""
    flat = values.reshape(-1, *values.shape[-2:])
    return np.ascontiguousarray(flat.transpose(1, 2, 0))


def knots_between(signal: Signal, t: Array) -> Iterator[float]:
    """The first time, the knots of the input after it, and the last time."""
    yield float(t[0])
    inside = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
    yield from np.unique(inside).tolist()
    if t[-1] > t[0]:
        yield float(t[-1])


# MERGED ltinet.simulation.implicit
# The outputs of an implicit run at any time, and how far they may be off: an estimate, never a bound.


@final
@dataclass(frozen=True, eq=False)
class ImplicitTrajectory:
    """y = q + D u, q by cubics between the steps of the finer walk."""

    walked: StepDoublingResult
    signal: Signal
    D: Array
    batch_shape: tuple[int, ...]

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times, `(..., len(t), p)`."""
        q = self._shaped(_interpolated(self.walked.fine, t))
        return np.asarray(q + self.signal.value(t) @ self.D.T)

    def error_estimate(self, t: Array) -> Array:
        """How far both walks are apart at any times, `(..., len(t), p)`: what the coarser one errs, about."""
        difference = _interpolated(self.walked.fine, t) - _interpolated(self.walked.coarse, t)
        return self._shaped(np.abs(difference))

    def user_states(self, t: Array) -> NoReturn:  # noqa: ARG002 - every trajectory is asked for times
        """No states are kept: n numbers a step would fill the memory.

        Raises:
            SimulationError: always.
        """
        raise SimulationError(
            "states of a large sparse model are not kept; make those that you need outputs: rows of C"
        )

    def neuron_states(self, t: Array) -> NoReturn:  # noqa: ARG002
        """There are no neurons.

        Raises:
            SimulationError: always.
        """
        raise SimulationError("the model was run as it is and has no neurons; construct(system, tolerance=1e-6) has")

    def error_bound(self, start: float, stop: float) -> UnknownBound:  # noqa: ARG002
        """Not known, so infinite."""
        return UnknownBound(self.batch_shape, len(self.D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Times and inputs before and after each of the times t and each knot between them."""
        knots = self.signal.knots
        times = np.unique(np.concatenate([t, knots[(knots > t[0]) & (knots < t[-1])]]))
        both = np.stack([self.signal.value_before(times), self.signal.value(times)], axis=-2)
        return np.repeat(times, 2), both.reshape(*both.shape[:-3], -1, both.shape[-1])

    def _shaped(self, values: Array) -> Array:
        """(T, p, batch) as (..., T, p)."""
        return np.ascontiguousarray(values.transpose(2, 0, 1)).reshape(*self.batch_shape, *values.shape[:2])


def _interpolated(curve: OutputCurve, t: Array) -> Array:
    """Cubic polynomials through values and derivatives, (len(t), p, batch)."""
    if len(curve.t) == 1:
        return np.repeat(curve.q, len(t), axis=0)
    at = np.clip(np.searchsorted(curve.t, t, side="right") - 1, 0, len(curve.t) - 2)
    h = (curve.t[at + 1] - curve.t[at])[:, None, None]
    s = (t - curve.t[at])[:, None, None] / h
    rise = curve.q[at + 1] - curve.q[at]
    bend_left, bend_right = h * curve.after[at] - rise, rise - h * curve.before[at + 1]
    return np.asarray(curve.q[at] + s * rise + s * (1.0 - s) * ((1.0 - s) * bend_left + s * bend_right))


# MERGED ltinet.simulation.implicit
# A run of a sparse model as it is: walked again with shorter steps until both walks agree as well as was asked for.

_SMALLEST, _LARGEST = 1e-9, 0.1  # tolerances: below, rounding of stiff states is felt; above, nothing is told
_MAX_INTEGRATIONS = 4
_SAFETY = 0.3  # of what is missing, for the next walk
_FIRST_TOLERANCE = (
    10.0  # times what is wanted, for a step of the first walk: steps of half the length err 16 times less
)


def simulate_implicit(  # noqa: PLR0913, RUF100
    system: SystemMatrices,
    pencil: SparseDescriptor,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None,
    hold: Hold,
    tolerance: float,
    settings: SignalSettings,
) -> Solution:
    """Outputs at the times t; their error, estimated by halving all steps, is below `tolerance` of each largest |y|.

    Raises:
        InvalidSignalError: u, t or x0 do not fit.
        SimulationError: E is singular, the states overflow, or the tolerance is not reached.
    """
    tolerance = validate_positive(tolerance, "tolerance")
    if not _SMALLEST <= tolerance <= _LARGEST:
        raise SimulationError(f"tolerance is {tolerance:g}; give one from {_SMALLEST:g} to {_LARGEST:g}")
    axis = TimeAxis.of(as_real_times(t, "t"))
    names = names_or_defaults(system.names.inputs, "inputs", system.n_inputs)
    if not isinstance(u, np.ndarray):
        u = order_inputs(u, names, are_given=system.names.inputs is not None, n_times=len(axis.t))
    signal = given = as_signal(u, axis, n_inputs=system.n_inputs, hold=hold)
    if settings.shifts_signals:
        given = operating_point_input(signal, axis, settings) if u is None else signal
        seen = core_input(given, axis, settings)
        signal = seen.signal
    start = _initial_columns(x0, system.n_states, signal.batch_shape)
    with explain_memory_error(pencil.n_states, pencil.n_nonzeros):
        outputs = _outputs_of(pencil, system.C)
        trajectory, stats = _refine_until_agreement(system, pencil, outputs, signal, axis.t, start, tolerance)
    stats["hold"] = getattr(given, "hold", None)
    solution = Solution(axis.t, trajectory.outputs(axis.t), trajectory, stats, system.names)
    if settings.shifts_signals:
        solution = solution_from_core(solution, settings, given=given, seen=seen, prepared=None, D=system.D, x0=x0)
    return solution


def _outputs_of(pencil: SparseDescriptor, C: Array) -> OutputMap:
    try:
        return OutputMap(pencil, C)
    except SingularMatrixError:
        raise SimulationError(
            "E is singular: the model has algebraic equations, which ltinet.reduce(system, tolerance=1e-6) eliminates "
            "where they are of index 1"
        ) from None


def _refine_until_agreement(
    system: SystemMatrices,
    pencil: SparseDescriptor,
    outputs: OutputMap,
    signal: Signal,
    t: Array,
    x0: Array,
    wanted: float,
) -> tuple[ImplicitTrajectory, dict[str, Any]]:
    """Walks with smaller and smaller local tolerances."""
    knots, local = np.array(list(knots_between(signal, t))), _FIRST_TOLERANCE * wanted
    for _ in range(_MAX_INTEGRATIONS):
        walked = integrate_with_step_doubling(SDIRKStepper(pencil), outputs, signal, knots, x0=x0, tolerance=local)
        trajectory = ImplicitTrajectory(walked, signal, system.D, signal.batch_shape)
        times = np.union1d(t, walked.coarse.t)
        estimate = trajectory.error_estimate(times).max(axis=-2)
        peak = np.abs(trajectory.outputs(times)).max(axis=-2)
        missing = float(np.max(estimate / np.where(peak > 0.0, wanted * peak, np.inf), initial=0.0))
        if missing <= 1.0:
            return trajectory, _statistics(walked, estimate, local)
        local *= _SAFETY / missing
        if local < 1e-3 * _SMALLEST:
            break
    raise SimulationError(
        f"walks with whole and halved steps are {missing * wanted:.1e} of the largest output apart, and shorter steps "
        f"do not help; allow a larger tolerance than {wanted:g}"
    )


def _statistics(walked: Any, estimate: Array, local: float) -> dict[str, Any]:
    worst = float(estimate.max(initial=0.0))
    return {
        "engine": "implicit",
        "error_estimate": estimate,
        "n_steps": len(walked.coarse.t) - 1,
        "n_factorisations": walked.n_factorisations,
        "n_solves": walked.n_solves,
        "step_tolerance": local,
        "notes": (f"outputs err by about {worst:.1e} or less, estimated by halving all steps: no bound",),
    }


def _initial_columns(x0: ArrayLike | None, n: int, batch_shape: tuple[int, ...]) -> Array:
    """x0 as columns, (n, batch)."""
    size = int(np.prod(batch_shape, dtype=int))
    if x0 is None:
        return np.zeros((n, size))
    x = as_real_array(x0, "x0")
    validate_state(x, n)
    try:
        return np.ascontiguousarray(np.broadcast_to(x, (*batch_shape, n)).reshape(size, n).T)
    except ValueError:
        raise InvalidSignalError(
            f"x0 has shape {x.shape} but the inputs come in a batch of shape {batch_shape}; give one, or one for each"
        ) from None
