"""Simulation of networks with product neurons: choice of the method, trajectory, and error estimate.

The method follows from the model and its signals alone, by the first rule that applies:

1. no products: the exact engine of linear networks;
2. no products of two states, all signals held between samples, at most 500 states: exact steps (`exact_steps`);
3. at most 500 states and blocks of at most 32 states: exponential collocation (`exponential_collocation`); from a time on
   at which its iteration would need more than 4,096 steps for the run and 16 for each distance of knots, LSODA;
4. at most 500 states, or a Jacobian with few diagonals: SciPy's LSODA, otherwise its BDF with a sparse Jacobian,
   restarted at every knot.

The error of exact steps is rounding, for which there is a bound. For the other methods it is estimated by a second run,
which starts from the same state and is more accurate: windows of the collocation with halved steps and a hundredth of
the tolerance, and SciPy's solvers with a thirtieth of it. The difference of both is the error of the first up to that of the
second; it contains the defect of every step and its transport by the equations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, sanitize
from ltinet.error_bounds.output_bounds import UnknownBound
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.nonlinear.exact_steps import ExactPiece
from ltinet.nonlinear.exponential_collocation import (
    CollocationSystem,
    StiffProductsError,
    Window,
    halved,
    integrate,
)
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.scipy_solvers import METHODS, SolverPiece, bandwidths
from ltinet.nonlinear.signal_values import RunSignals
from ltinet.signals.arrays import as_real_array
from ltinet.signals.conversion import as_signal, is_piecewise_polynomial, order_inputs, suggest_swapped_arguments
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.signal import Signal, polyline_points
from ltinet.signals.times import TimeAxis, as_real_times
from ltinet.simulation.api import resolve_hold, resolve_times
from ltinet.simulation.delays import ModelInput, model_input, solution_from_core
from ltinet.simulation.options import validate_positive
from ltinet.simulation.solution import Solution

_MAX_DENSE = 500  # states up to which products with dense T and exponentials are faster than sparse solvers (empirical)
_MAX_BLOCK = 32  # states of a block: tables of a step have (8 b)² numbers
_MIN_TOLERANCE, _MAX_TOLERANCE = 1e-11, 1e-2  # below, rounding of the tables is felt; above, estimates are unreliable
_FINER_COLLOCATION, _FINER_SOLVER = 0.01, 1.0 / 30.0  # of the tolerance: second run of the error estimate
_NO_BOUND = {
    "collocation": "error_bound() is infinite: no bound is known for collocation; error_estimate is an estimate at the times t",
    "solver": "error_bound() is infinite: no bound is known for solvers of SciPy; error_estimate is an estimate at the times t",
    "shifted": "error_bound() is infinite or leaves out the rounding of delays and of sums with the operating point",
}
OWN_METHODS = ("exact_steps", "collocation")


class Piece(Protocol):
    """Solution over a part of a run."""

    def states_at(self, t: Array) -> Array:
        """Return states `(M, T, n)`."""


class Preparation(NamedTuple):
    """Prepared network, which all runs share."""

    model: NonlinearModel
    system: CollocationSystem
    units: Array
    """Units in which the states are of similar size."""
    neurons_from_user: Callable[[Array, Array], Array]
    """Function of states x `(…, n)` and inputs v that returns (ξ, ξ̇)."""


def choose_method(model: NonlinearModel, *, largest_block: int, is_piecewise_constant: bool) -> str:
    """Return the method for a model and its signals by the rules of this module."""
    n = model.n_states
    if n == 0 or (is_piecewise_constant and not is_quadratic(model) and n <= _MAX_DENSE):
        return "exact_steps"
    if n <= _MAX_DENSE:
        return "collocation" if largest_block <= _MAX_BLOCK else "LSODA"
    return "BDF" if bandwidths(model) is None else "LSODA"


def is_quadratic(model: NonlinearModel) -> bool:
    """Return whether a model has products of two states."""
    return model.terms.H is not None and model.terms.H.S.nnz > 0


def simulate_products(
    prepared: Preparation,
    u: Any,
    *,
    t: ArrayLike | None,
    p: Any,
    x0: ArrayLike | None,
    hold: Hold | None,
    tol: float,
    method: str | None,
) -> Solution:
    """Validate all arguments and run a method; the arguments are those of `NonlinearNetwork.simulate`."""
    model, settings = prepared.model, prepared.model.linear.signal_settings
    tol = validate_positive(tol, "tol")
    if not _MIN_TOLERANCE <= tol <= _MAX_TOLERANCE:
        raise SimulationError(f"tol must be from {_MIN_TOLERANCE:g} to {_MAX_TOLERANCE:g}, got {tol:g}.")
    hold = resolve_hold(hold, settings)
    axis, given, scheduling = read_signals(model, u, t, p, hold)
    x = np.zeros(model.n_states) if x0 is None else as_real_array(x0, "x0")
    signals, start = _broadcast(model, given.of_core, scheduling, x)
    chosen = choose_method(
        model,
        largest_block=prepared.system.largest_block,
        is_piecewise_constant=signals.is_piecewise_constant,
    )
    method = chosen if method is None else _validate_method(method, model, signals)
    run = _Run(prepared, signals, axis.t, start, tol, method)
    with limit_blas_threads(model.n_states), np.errstate(over="ignore", invalid="ignore"):  # states that are not finite
        pieces = run.solve()  # end the run with an error
    trajectory = ProductTrajectory(run, pieces)
    stats = {"engine": "products", "method": run.method_text(pieces), "tol": tol, **run.counts}
    if method != "exact_steps":
        stats["notes"] = (_NO_BOUND["collocation" if method == "collocation" else "solver"],)
    solution = Solution(axis.t, trajectory.outputs_at_jumps(axis.t), trajectory, stats, model.linear.matrices.names)
    if settings.shifts_signals:
        stats["notes"] = (*stats.get("notes", ()), _NO_BOUND["shifted"])
        solution = solution_from_core(solution, settings, given=given, context=None, D=model.D, x0=x0)
    stats["hold"] = getattr(given.signal, "hold", None)
    return solution


def read_signals(
    model: NonlinearModel, u: Any, t: ArrayLike | None, p: Any, hold: Hold
) -> tuple[TimeAxis, ModelInput, Signal | None]:
    """Return the times, the input and the scheduling signals of a run."""
    t = resolve_times(t, u)
    if t is None:
        raise suggest_swapped_arguments(InvalidSignalError("t is missing; pass simulate(u, t)"), u)
    try:
        axis = TimeAxis.of(as_real_times(t, "t"))
    except InvalidSignalError as error:
        raise suggest_swapped_arguments(error, u) from None
    settings, names = model.linear.signal_settings, model.linear.matrices.names.inputs
    given = model_input(u, axis, n_inputs=model.n_inputs, names=names, hold=hold, settings=settings)
    if not model.n_scheduling:
        if p is not None:
            raise InvalidSignalError(f"p was given, but {type(model).__name__} has no scheduling signals. Omit p.")
        return axis, given, None
    if p is None:
        raise InvalidSignalError(
            f"p is missing; the model has the scheduling signals {', '.join(model.scheduling_names)}. Pass their samples at "
            "the times t or a function, simulate(u, t, p=p)."
        )
    return axis, given, _scheduling_signal(p, axis, model.scheduling_names, hold)


def _scheduling_signal(p: Any, axis: TimeAxis, names: tuple[str, ...], hold: Hold) -> Signal:
    """Return the scheduling signals from numbers, samples, a function, or any other form of an input."""
    if isinstance(p, Mapping) and set(p) != set(names):
        raise InvalidSignalError(
            f"p has the names {sanitize(', '.join(map(str, p)))}; it must have those of the scheduling signals, "
            f"{', '.join(names)}"
        )
    try:
        p = order_inputs(p, names, are_given=True, n_times=len(axis.t))
        if isinstance(p, Signal) or is_piecewise_polynomial(p):
            return as_signal(p, axis, n_inputs=len(names), hold=hold)
    except InvalidSignalError as error:
        raise InvalidSignalError(f"p, read like an input u: {error}") from None
    if callable(p):
        return FunctionSignal(_SchedulingFunction(p, len(names)), n_inputs=len(names))
    values, n_times, count = as_real_array(p, "p"), len(axis.t), len(names)
    if values.ndim == 0 or values.shape == (count,):
        values = np.broadcast_to(values, (n_times, count))
    elif values.ndim == 1 and count == 1:
        values = values[:, None]
    if values.ndim < 2 or values.shape[-2:] != (n_times, count):
        raise InvalidSignalError(
            f"p has shape {np.shape(p)}, but there are {format_count(n_times, 'time')} and "
            f"{format_count(count, 'scheduling signal')}; give samples of shape ({n_times}, {count}), or "
            f"{format_count(count, 'number')} for constant signals"
        )
    if not np.isfinite(values).all():
        raise InvalidSignalError("p has entries that are not finite; replace NaN and infinities")
    return SampledSignal(axis, values, hold=hold)


@dataclass(frozen=True)
class _SchedulingFunction:
    """Function of time for scheduling signals, with errors that name p."""

    function: Callable[[Any], Any]
    count: int

    def __call__(self, t: Any) -> Any:
        """Return the values at one time, checked, or at many times, which `FunctionSignal` compares with these."""
        try:
            value = self.function(t)
        except ArithmeticError as error:
            raise InvalidSignalError(f"p is not finite at t = {t!r}: {error}") from error
        if np.ndim(t) == 0:
            numbers = as_real_array(value, f"p at t = {t!r}")
            if numbers.shape != (self.count,) and not (self.count == 1 and numbers.ndim == 0):
                raise InvalidSignalError(
                    f"p returned shape {numbers.shape} at t = {t!r}; it must return one number per scheduling signal, "
                    f"{self.count} of them"
                )
            if not np.isfinite(numbers).all():
                raise InvalidSignalError(f"p is not finite at t = {t!r}")
        return value


def _broadcast(model: NonlinearModel, inputs: Signal, scheduling: Signal | None, x: Array) -> tuple[RunSignals, Array]:
    """Return the signals with the batch of all arguments, and a state for each of its members."""
    n = model.n_states
    if x.ndim == 0 or x.shape[-1] != n:
        raise InvalidSignalError(f"x0 has shape {x.shape}; its last axis must have {n} entries, one per state")
    if not np.isfinite(x).all():
        raise InvalidSignalError("x0 has entries that are not finite; each must be a number")
    shapes = [inputs.batch_shape, x.shape[:-1]] + ([] if scheduling is None else [scheduling.batch_shape])
    try:
        batch_shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidSignalError(
            f"u, x0 and p are batches of the shapes {', '.join(map(str, shapes))}, which do not fit; give one value for all "
            "members, or one for each"
        ) from None
    signals = RunSignals(inputs, scheduling, batch_shape)
    start = np.broadcast_to(x, (*batch_shape, n)).reshape(signals.n_members, n)
    return signals, np.ascontiguousarray(start)


def _validate_method(method: Any, model: NonlinearModel, signals: RunSignals) -> str:
    known = (*OWN_METHODS, *METHODS)
    if method not in known:
        raise SimulationError(f"method must be one of {', '.join(known)}, got {sanitize(repr(method))}.")
    if method == "exact_steps" and (is_quadratic(model) or not signals.is_piecewise_constant):
        raise SimulationError(
            'method="exact_steps" is for bilinear and LPV models whose signals are all held between samples. Pass '
            'hold="zero", or omit the method.'
        )
    return str(method)


# Runs


@dataclass(eq=False)
class _Run:
    """One call of `simulate` after validation."""

    prepared: Preparation
    signals: RunSignals
    t: Array
    x0: Array
    tolerance: float
    method: str
    counts: dict[str, Any] = field(default_factory=dict)

    @property
    def knots(self) -> Array:
        return self.signals.knots(float(self.t[0]), float(self.t[-1]))

    def solve(self) -> list[tuple[float, Piece]]:
        """Return pieces with the times from which on they are valid."""
        model, knots = self.prepared.model, self.knots
        if self.method == "exact_steps" or len(knots) == 1 or not self.x0.size:
            times = np.union1d(knots, self.t)
            piece = ExactPiece.solve(model, self.signals, self.x0, times)
            self.counts |= {"n_steps": len(times) - 1, "n_exponentials": len(piece.grid.exponentials)}
            return [(float(knots[0]), piece)]
        if self.method == "collocation":
            return self._collocate(knots)
        return [(float(knots[0]), self._solver_piece(self.x0, knots, self.tolerance))]

    def _solver_piece(self, x0: Array, knots: Array, tolerance: float) -> SolverPiece:
        method = "LSODA" if self.method == "collocation" else self.method
        return SolverPiece.solve(
            self.prepared.model, self.signals, x0, knots, units=self.prepared.units, method=method, tolerance=tolerance
        )

    def _collocate(self, knots: Array) -> list[tuple[float, Piece]]:
        system = self.prepared.system
        t = np.unique(self.t)
        windows: list[Window] = []
        values, n_steps, n_iterations = [], 0, 0
        z = system.T_inv @ self.x0.T
        piece = CollocationPiece(system, self.signals, windows, self.tolerance, t)
        pieces: list[tuple[float, Piece]] = [(float(knots[0]), piece)]
        try:
            for window, solution in integrate(system, self.signals, z, knots, self.tolerance):
                windows.append(window)
                inside = t[(t >= window.times[0]) & (t < window.times[-1] if window.times[-1] < t[-1] else True)]
                values.append(system.evaluate(window, solution, inside))
                n_steps += len(window.times) - 1
                n_iterations += solution.n_iterations
        except StiffProductsError as stiff:
            rest = np.concatenate([[stiff.t], knots[knots > stiff.t]])
            x = np.ascontiguousarray((system.T @ stiff.z).T)
            pieces.append((stiff.t, self._solver_piece(x, rest, self.tolerance)))
            pieces = pieces if windows else pieces[1:]
        piece.values = np.concatenate(values, axis=1) if values else None
        self.counts |= {"n_steps": n_steps, "n_windows": len(windows), "n_iterations": n_iterations}
        return pieces

    def method_text(self, pieces: list[tuple[float, Piece]]) -> str:
        """Return the method, and the one that it handed over to."""
        if self.method != "collocation" or not isinstance(pieces[-1][1], SolverPiece):
            return self.method
        return "LSODA" if len(pieces) == 1 else f"collocation, from t = {pieces[-1][0]:.6g} on LSODA"

    def refine(self, pieces: list[tuple[float, Piece]]) -> list[tuple[float, Piece]] | None:
        """Return a more accurate solution; None if it does not exist."""
        finer: list[tuple[float, Piece]] = []
        x = self.x0
        for start, piece in pieces:
            if isinstance(piece, SolverPiece):
                finer.append((start, self._solver_piece(x, piece.knots, _FINER_SOLVER * self.tolerance)))
                continue
            refined = piece.halved(x) if isinstance(piece, CollocationPiece) else None
            if refined is None:
                return None
            finer.append((start, refined))
            x = refined.last_state
        return finer


@dataclass(eq=False)
class CollocationPiece:
    """Solution by collocation: windows that are solved again where states are needed between the requested times."""

    system: CollocationSystem
    signals: RunSignals
    windows: list[Window]
    tolerance: float
    t: Array
    """Times at which the states are known."""
    values: Array | None = None
    """States z at these times, `(n, T, M)`."""
    end: Any = None

    def states_at(self, t: Array) -> Array:
        """Return states `(M, T, n)`."""
        known = self.values
        at = np.searchsorted(self.t, t)
        if known is not None and np.all(at < known.shape[1]) and np.array_equal(self.t[at], t):
            z = known[:, at]
        else:
            z = self._solve_again(t)
        return self._user(z)

    def _user(self, z: Array) -> Array:
        return np.ascontiguousarray((self.system.T @ z.reshape(len(z), -1)).reshape(z.shape).transpose(2, 1, 0))

    def _solve_again(self, t: Array) -> Array:
        firsts = np.array([window.times[0] for window in self.windows])
        index = np.clip(np.searchsorted(firsts, t, side="right") - 1, 0, None)
        z = np.empty((self.system.n_states, len(t), self.windows[0].z.shape[-1]))
        for number in np.unique(index).tolist():
            window = self.windows[number]
            solution = self.system.solve(window, self.signals, self.tolerance)
            if solution is None:  # it was solved before, from the same numbers, unless another BLAS is used now
                raise SimulationError(
                    f"the iteration at t = {window.times[0]:.6g} does not converge again; simulate again"
                )
            z[:, index == number] = self.system.evaluate(window, solution, t[index == number])
        return z

    @property
    def last_state(self) -> Array:
        """States `(M, n)` at the end."""
        return np.ascontiguousarray((self.system.T @ self.end).T)

    def halved(self, x0: Array) -> "CollocationPiece | None":
        """Return the solution with halved steps and a smaller tolerance; None if its iteration does not converge."""
        system, tolerance = self.system, _FINER_COLLOCATION * self.tolerance
        z = system.T_inv @ x0.T
        windows, values = [], []
        for window in self.windows:
            for half in halved(window, z):
                part = half._replace(z=z)
                solution = system.solve(part, self.signals, tolerance)
                if solution is None:
                    return None
                is_last = window is self.windows[-1] and half.times[-1] == window.times[-1]
                inside = (self.t >= half.times[0]) & (
                    (self.t <= half.times[-1]) if is_last else self.t < half.times[-1]
                )
                values.append(system.evaluate(part, solution, self.t[inside]))
                windows.append(part)
                z = np.ascontiguousarray(solution.ends[:, -1])
        return CollocationPiece(system, self.signals, windows, tolerance, self.t, np.concatenate(values, axis=1), z)


# Trajectory


@dataclass(frozen=True, eq=False)
class ProductTrajectory:
    """Solution of a model with products between its first and last time."""

    run: _Run
    pieces: list[tuple[float, Piece]]

    def _states(self, t: Array, pieces: list[tuple[float, Piece]]) -> Array:
        """Return states `(M, T, n)`."""
        starts = np.array([start for start, _ in pieces])
        index = np.clip(np.searchsorted(starts, t, side="right") - 1, 0, None)
        x = np.empty((len(self.run.x0), len(t), self.run.x0.shape[1]))
        for number in np.unique(index).tolist():
            x[:, index == number] = pieces[number][1].states_at(t[index == number])
        return x

    def _outputs(self, x: Array, values: Array) -> Array:
        """Return y `(…, T, p)` from states `(M, T, n)` and (v, p) `(m + l, T, M or 1)`."""
        model, level = self.run.prepared.model, values.transpose(2, 1, 0)
        v, p = level[..., : model.n_inputs], level[..., model.n_inputs :]
        y = x @ model.C.T + v @ model.D.T
        for index, (C, D) in enumerate(zip(model.terms.C_p, model.terms.D_p, strict=True)):
            if C.any() or D.any():
                y = y + p[..., [index]] * (x @ C.T + v @ D.T)
        return y.reshape(*self.run.signals.batch_shape, *y.shape[1:])

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times, `(..., len(t), p)`."""
        return self._outputs(self._states(t, self.pieces), self.run.signals.after(t))

    def outputs_at_jumps(self, t: Array) -> Array:
        """Return outputs at times t, those before a jump at the first of two equal times."""
        x, values = self._states(t, self.pieces), self.run.signals.after(t)
        first = np.flatnonzero(t[1:] == t[:-1])
        if len(first):
            values = values.copy()
            values[:, first] = self.run.signals.at_jumps(t[first])
        return self._outputs(x, values)

    def user_states(self, t: Array) -> Array:
        """Return states x at any times, `(..., len(t), n)`."""
        x = self._states(t, self.pieces)
        return x.reshape(*self.run.signals.batch_shape, *x.shape[1:])

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) of the layers, `(..., len(t), n)`."""
        x, values = self._states(t, self.pieces), self.run.signals.after(t)
        v = values[: self.run.prepared.model.n_inputs].transpose(2, 1, 0)
        states = self.run.prepared.neurons_from_user(x, np.broadcast_to(v, (*x.shape[:2], v.shape[-1])))
        return states.reshape(*self.run.signals.batch_shape, *x.shape[1:])

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return times and inputs, before and after each of the times t and each knot between them."""
        return polyline_points(self.run.signals.inputs, t)

    def estimate_error(self) -> Array:
        """Return the largest estimated error of each output at the times of the run, `(..., p)`; computed once."""
        return self._estimate

    @cached_property
    def _estimate(self) -> Array:
        """Largest estimated error of each output at the times of the run, `(..., p)`."""
        shape = (*self.run.signals.batch_shape, self.run.prepared.model.n_outputs)
        if 0 in shape:  # an empty batch has no errors
            return np.zeros(shape)
        if isinstance(self.pieces[0][1], ExactPiece):
            return np.asarray(self.error_bound(0.0, 0.0).overall()["rounding"]).reshape(shape)
        with limit_blas_threads(self.run.prepared.model.n_states), np.errstate(over="ignore", invalid="ignore"):
            finer = self.run.refine(self.pieces)
            if finer is None:
                return np.full(shape, np.inf)
            t = np.unique(self.run.t)
            values = self.run.signals.after(t)
            difference = self._outputs(self._states(t, finer), values) - self._outputs(
                self._states(t, self.pieces), values
            )
        return np.asarray(np.abs(difference).max(axis=-2))

    def error_bound(self, start: float, stop: float) -> Any:  # noqa: ARG002 - bounds hold at the times of the run
        """Return a bound on the error at the times of the run: rounding for exact steps, infinity for other methods."""
        signals, n_outputs = self.run.signals, self.run.prepared.model.n_outputs
        piece = self.pieces[0][1]
        if not isinstance(piece, ExactPiece):
            return UnknownBound(signals.batch_shape, n_outputs)
        return RoundingBound(self.run, piece)


@dataclass(frozen=True, eq=False)
class RoundingBound:
    """Bound on the rounding of exact steps, at single times."""

    run: _Run
    piece: ExactPiece

    def at(self, t: Array) -> dict[str, Array]:
        """Return the part "rounding" at any times, `(..., len(t), p)`."""
        errors = self.piece.output_errors(t)
        return {"rounding": errors.reshape(*self.run.signals.batch_shape, *errors.shape[1:])}

    def overall(self) -> dict[str, Array]:
        """Return the part at all times of the run, `(..., p)`."""
        return {"rounding": self.at(np.unique(self.run.t))["rounding"].max(axis=-2)}
