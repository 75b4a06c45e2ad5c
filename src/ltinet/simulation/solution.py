"""Solution of a simulation: outputs at the requested times, dense output, states and error bounds on demand.

A `Trajectory` evaluates outputs and states between the first and the last time and bounds its own error; each engine
provides one. Where an input jumps and a time is given twice, the first output is the value before the jump and the
second the value after it: states do not jump, D u does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import EPS, Array
from ltinet._util.text import format_count, format_first_names, sanitize
from ltinet.error_bounds.output_bounds import OutputErrors, ReductionError
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.plotting.figures import figure_of
from ltinet.plotting.time_response import draw_as_samples, draw_outputs, draw_solution
from ltinet.signals.arrays import all_finite
from ltinet.signals.signal import PiecewiseSmooth
from ltinet.signals.times import as_real_times, as_times
from ltinet.systems.signal_names import UNNAMED, SignalNames, names_or_defaults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_LISTED_OUTPUTS = 5  # outputs whose numbers are listed in one line
_CHEAP_BOUND_TIMES = 20_000  # times up to which the error bound takes about as long as drawing them (empirical)


def outputs_at_jumps(y: Array, t: Array, signal: PiecewiseSmooth, D: Array) -> Array:
    """Return outputs at times t, with those before a jump at the first of two equal times, from outputs y after it."""
    first = np.flatnonzero(t[1:] == t[:-1])
    if not len(first):
        return y
    y = y.copy()
    y[..., first, :] -= (signal.value(t[first]) - signal.value_before(t[first])) @ D.T
    return y


class ErrorBound(Protocol):
    """Bound on the error of a solution, as a sum of named parts."""

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(..., len(t), p)` each."""

    def overall(self) -> dict[str, Array]:
        """Return the parts over all times, `(..., p)` each."""


class Trajectory(Protocol):
    """Solution between its first and last time."""

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times, `(..., len(t), p)`."""

    def user_states(self, t: Array) -> Array:
        """Return states x at any times, `(..., len(t), n)`, in the coordinates of the system given to `construct`."""

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇ of second-order neurons) of layer after layer, `(..., len(t), n)`."""

    def error_bound(self, start: float, stop: float) -> ErrorBound:
        """Return a bound on the error of outputs between two times."""


@runtime_checkable
class HasInput(Protocol):
    """Trajectory that knows its input."""

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return times `(K,)` and inputs `(..., K, m)`, before and after each of the times t and knot between them."""


@runtime_checkable
class EstimatesError(Protocol):
    """Trajectory that estimates its error on demand."""

    def estimate_error(self) -> Array:
        """Return the largest estimated error of each output, `(..., p)`."""


@runtime_checkable
class KnowsOutputErrors(Protocol):
    """Trajectory that computes the errors of its outputs with their signs."""

    def output_errors(self, t: Array) -> OutputErrors:
        """Return the errors of the outputs at times t, `(..., len(t), p)`."""


@final
@dataclass(frozen=True, eq=False)
class CorrectedOutputs:
    """Outputs of a simulation, corrected by their errors as far as these are known.

    Parameters
    ----------
    t : ndarray
        Times, `(T,)`.
    y : ndarray
        Corrected outputs, `(..., T, p)`.
    error_bound : ndarray
        Bound on |y − exact outputs|, `(..., T, p)`; with few exceptions the rounding of y to double precision.
    """

    t: Array
    y: Array
    error_bound: Array


@final
@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Outputs of a simulation, with dense output, states and error bounds.

    `sol(times)` evaluates the outputs anywhere between the first and the last time.

    Parameters
    ----------
    t : ndarray
        Times, `(T,)`.
    y : ndarray
        Outputs, `(..., T, p)`.
    trajectory : Trajectory
        Solution between the times.
    stats : mapping
        Engine and its choices; for solver engines evaluations, steps and seconds per neuron.
    signal_names : SignalNames, optional
        Names of inputs and outputs.
    reduction : ReductionError, optional
        Error of the model reduction that preceded the simulation; None without one.
    """

    t: Array
    y: Array
    trajectory: Trajectory = field(repr=False)
    stats: Mapping[str, Any]
    signal_names: SignalNames = UNNAMED
    reduction: ReductionError | None = field(default=None, repr=False)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; y1, y2, … by default."""
        return names_or_defaults(self.signal_names.outputs, "outputs", self.y.shape[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the result: why a response ends where it does, what is not shown."""
        return tuple(self.stats.get("notes", ()))

    @property
    def error_estimate(self) -> Array | None:
        """Estimated error of each output, `(..., p)`, of engines without an error bound; None for all others.

        It is the largest one at the times t; between them, where the solution is interpolated, errors may be larger. Networks
        with product neurons compute it by a second run on first use.
        """
        core = getattr(self.trajectory, "core", self.trajectory)
        return core.estimate_error() if isinstance(core, EstimatesError) else self.stats.get("error_estimate")

    def __call__(self, t: ArrayLike) -> Array:
        """Return y at any times of the simulated span, `(..., len(t), p)`; a single time gives `(..., p)`."""
        times = as_real_times(t, "t")
        result = self.trajectory.outputs(self._validated_times(times))
        return result[..., 0, :] if times.ndim == 0 else result

    @cached_property
    def states(self) -> Array:
        """States x at the times t, `(..., T, n)`, in the user's own coordinates."""
        if self.stats.get("is_reduced"):
            raise SimulationError(
                "the outputs were computed by a reduced model, whose states are not those of the system. Integrate all states "
                "with system.simulate(u, t, tolerance=1e-6), or reconstruct them with lift of the result of ltinet.reduce."
            )
        return self.trajectory.user_states(self.t)

    @cached_property
    def neuron_states(self) -> Array:
        """ξ of every neuron and ξ̇ of second-order ones, layer after layer, at the times t, `(..., T, n)`."""
        return self.trajectory.neuron_states(self.t)

    def error_bound(self, t: ArrayLike | None = None) -> Array:
        """Return a bound on |y − exact outputs of the system given to `construct`|.

        It is the sum of `error_parts`, some of which are estimates. With the exact engine it is computed from the defect
        of the states, and close to the error.

        Parameters
        ----------
        t : array_like, optional
            Times, for the values `sol(t)`; without them the largest bound of the outputs `y`, at the times of the solution.
            Solver engines bound the error at all times of the simulated span.

        Returns
        -------
        ndarray
            `(..., p)` without times or for a single time, else `(..., len(t), p)`.
        """
        return np.asarray(sum(self.error_parts(t).values()))

    def error_parts(self, t: ArrayLike | None = None) -> dict[str, Array]:
        """Return the parts of `error_bound` by name.

        "solver" is the error of ODE solvers, "rounding" contains all rounding, and for solver engines "decomposition" the
        residuals of the block-diagonalization. "rounding" of the exact engine contains these as well, and the distance of
        times from an even grid. "input" is the distance of a function u from the straight lines that replace it in the
        exact engine, "reduction" the error of a model reduction, and "delays and operating point" the rounding of delayed
        times and of sums with the operating point.

        "input" is an estimate, since a function is compared with its lines at some times, and so is "delays and operating
        point" for coupled blocks, whose responses are evaluated at some lags only.

        Parameters
        ----------
        t : array_like, optional
            Times; without them the parts are those of the largest bound.

        Returns
        -------
        dict of str to ndarray
            Parts of the shape of `error_bound`.
        """
        if 0 in self.y.shape[:-2]:  # an empty batch has no errors
            return {"rounding": np.zeros((*self.y.shape[:-2], *(() if t is None else np.shape(t)), self.y.shape[-1]))}
        if t is None:
            more = {} if self.reduction is None else {"reduction": self.reduction.overall()}
            return {**self._error.overall(), **more}
        times = as_real_times(t, "t")
        parts = self._error.at(self._validated_times(times))
        if self.reduction is not None:
            parts = {**parts, "reduction": self.reduction.at(np.atleast_1d(times))}
        return {name: part[..., 0, :] for name, part in parts.items()} if times.ndim == 0 else parts

    def corrected(self) -> CorrectedOutputs:
        """Return the outputs corrected by their errors, which the exact engine computes with their signs.

        Returns
        -------
        CorrectedOutputs
            Outputs at the times t, and a bound on their errors.

        Raises
        ------
        SimulationError
            The errors are not known with their signs: for solver engines, and models with output delays.
        """
        if not isinstance(self.trajectory, KnowsOutputErrors):
            raise SimulationError(
                'only the exact engine computes errors with their signs. Simulate with engine="exact", or use '
                "error_bound()."
            )
        errors = self.trajectory.output_errors(self.t)
        y = self.y + errors.correction
        others = sum(part for name, part in self.error_parts(self.t).items() if name != "rounding")
        bound = errors.remainder + others + np.spacing(np.abs(y)) + 4.0 * EPS * np.abs(errors.correction)
        return CorrectedOutputs(self.t, y, np.where(np.isfinite(bound), bound, np.inf))

    def plot(
        self,
        *,
        outputs: Sequence[int | str] | None = None,
        names: Sequence[str] | None = None,
        input_names: Sequence[str] | None = None,
        bound: bool | None = None,
        time_unit: str | None = None,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draw the outputs over time, and the input below, on a new figure; needs matplotlib.

        Outputs of different units, or with peaks more than 30 times apart, have axes of their own.

        Parameters
        ----------
        outputs : sequence of int or str, optional
            Outputs by number or name; by default at most ten, evenly spread over all.
        names, input_names : sequence of str, optional
            Names of all outputs and of all inputs instead of those of the system, with units in parentheses at their
            end: "Force (N)".
        bound : bool, optional
            Whether to draw a band of the width of `error_bound`, which costs more than the simulation; by default for
            up to 20,000 times. Most bands are thinner than the line.
        time_unit : str, optional
            Unit of the times, such as "s", beside the time axis; by default that of the `Table` that was the input.
        ax : Axes, optional
            Axes on which to draw all outputs, without the input.

        Returns
        -------
        matplotlib.figure.Figure
            Figure; its `axes` are those of the outputs, and of the input last.
        """
        with_bound = math.prod(self.y.shape[:-1]) <= _CHEAP_BOUND_TIMES if bound is None else bound
        errors = self.error_bound(self.t) if with_bound and self.y.size else None
        names = self.signal_names.outputs if names is None else names
        input_names = self.signal_names.inputs if input_names is None else input_names
        time_unit = self.stats.get("time_unit") if time_unit is None else time_unit
        is_discrete = self.stats.get("grid") == "discrete"
        if ax is not None:
            n_before = len(ax.lines)
            draw_outputs(
                self.t, self.y, outputs=outputs, names=names, bound=errors, notes=self.notes, time_unit=time_unit, ax=ax
            )
            draw_as_samples(ax.lines[n_before:] if is_discrete else ())
            return figure_of(ax)
        panels = draw_solution(
            self.t, self.y, outputs=outputs, names=names, bound=errors, inputs=self._drawn_input,
            input_names=input_names, notes=self.notes, time_unit=time_unit,
        )  # fmt: skip
        draw_as_samples(line for panel in panels for line in panel.lines if is_discrete)
        return figure_of(panels)

    @property
    def _drawn_input(self) -> tuple[Array, Array] | None:
        """Input where it is known and not zero."""
        if not isinstance(self.trajectory, HasInput) or not len(self.t):
            return None
        times, values = self.trajectory.input_corners(self.t)
        return (times, values) if np.any(values) else None

    def to_frame(self) -> Any:
        """Return the outputs as a pandas DataFrame; needs pandas.

        Returns
        -------
        DataFrame
            Times as index, and a column for each output.
        """
        from ltinet.tables.table import to_data_frame  # imported late: few solutions become frames

        return to_data_frame(self.t, self.y, self.output_names)

    @cached_property
    def _error(self) -> ErrorBound:
        return self.trajectory.error_bound(float(self.t[0]), float(self.t[-1]))

    def _validated_times(self, times: Array) -> Array:
        """Return the times as a vector within the span."""
        times = np.atleast_1d(times)
        if times.ndim != 1 or not len(times) or not all_finite(times):
            as_times(times, "t")  # raises an error that names the fault
        first, last = float(times.min()), float(times.max())
        if first < self.t[0] or last > self.t[-1]:
            raise InvalidSignalError(
                f"times must be within the solution, {self.t[0]:g} to {self.t[-1]:g}, got {first:g} to {last:g}."
            )
        return times

    def __dir__(self) -> list[str]:
        return dir_without(self, "trajectory", "signal_names", "reduction")

    def _repr_html_(self) -> str:
        return html_properties(f"solution of {format_count(self.y.shape[-1], 'output')}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        """Return times, outputs with their peaks, the error bound where it is cheap, and notes."""
        names, shape = self.output_names, self.y.shape
        span = f"{len(self.t)}, from {self.t[0]:g} to {self.t[-1]:g}" if len(self.t) else "none"
        rows = [("engine", str(self.stats.get("engine"))), ("times", span), ("outputs", format_first_names(names))]
        if self.stats.get("hold") is not None:
            rows.append(("hold", str(self.stats["hold"])))
        if len(shape) > 2:
            rows.append(("runs", f"{math.prod(shape[:-2])}, y has shape {shape}"))
        if self.y.size:
            rows.append(("largest |y|", _format_outputs(names, np.abs(self.y).max(axis=tuple(range(len(shape) - 1))))))
        if self.y.size and math.prod(shape[:-1]) <= _CHEAP_BOUND_TIMES:
            bound = self.error_bound().reshape(-1, shape[-1]).max(axis=0)
            rows.append(("error bound", _format_outputs(names, bound)))
        return [*rows, *(("note", note) for note in self.notes)]

    def __repr__(self) -> str:
        n_times, n_outputs = self.y.shape[-2:]
        hold = "" if self.stats.get("hold") is None else f", hold={self.stats['hold']!r}"
        return f"Solution(n_times={n_times}, n_outputs={n_outputs}, engine={self.stats.get('engine')!r}{hold})"


def _format_outputs(names: Sequence[str], values: Array) -> str:
    """Return a number for each output, or for the first few."""
    if len(names) == 1:
        return f"{values[0]:.5g}"
    first = [
        f"{sanitize(name)}: {value:.5g}"
        for name, value in zip(names[:_MAX_LISTED_OUTPUTS], values[:_MAX_LISTED_OUTPUTS].tolist(), strict=True)
    ]
    more = [f"… ({len(names)} in all)"] if len(names) > _MAX_LISTED_OUTPUTS else []
    return ", ".join([*first, *more])


def of_reduced_model(solution: Solution, note: str) -> Solution:
    """Return the solution of a reduced model as that of its system: it has no states of the system."""
    return with_notes(replace(solution, stats={**solution.stats, "is_reduced": True}), (note,))


def with_notes(solution: Solution, notes: tuple[str, ...]) -> Solution:
    """Return the solution with more notes, each of them once."""
    if not set(notes) - set(solution.notes):
        return solution
    return replace(solution, stats={**solution.stats, "notes": tuple(dict.fromkeys((*solution.notes, *notes)))})


def with_time_unit(solution: Solution, u: Any, t: Any) -> Solution:
    """Return the solution with the unit of the times of a table u, unless other times t were given."""
    unit = getattr(u, "time_unit", None)
    if unit is None or not (t is None or t is u.t):
        return solution
    return replace(solution, stats={**solution.stats, "time_unit": unit})
