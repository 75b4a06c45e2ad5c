"""Solution of a simulation: outputs at the requested times, dense output, states and error bounds on demand.

A `Trajectory` evaluates outputs and states between the first and the last time and bounds its own error; each engine
provides one. Where an input jumps and a time is given twice, the first output is the value before the jump and the
second the value after it: states do not jump, D u does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_first_names, sanitize
from ltinet.errors import InvalidSignalError
from ltinet.plotting.time_response import draw_outputs, draw_solution
from ltinet.signals.arrays import all_finite
from ltinet.signals.signal import PiecewiseSmooth
from ltinet.signals.times import as_real_times, as_times
from ltinet.systems.signal_names import UNNAMED, SignalNames, names_or_defaults

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MERGED ltinet.simulation.solution
# Outputs where the input jumps: of a time given twice the first is before the jump, the second after it.


def outputs_at_jumps(y: Array, t: Array, signal: PiecewiseSmooth, D: Array) -> Array:
    """Outputs at times t with those before jumps in place, from outputs y after them: states do not jump, D u does."""
    first = np.flatnonzero(t[1:] == t[:-1])
    if not len(first):
        return y
    y = y.copy()
    y[..., first, :] -= (signal.value(t[first]) - signal.value_before(t[first])) @ D.T
    return y


# MERGED ltinet.simulation.solution
# What a simulation returns: outputs at the times asked for, and on request outputs and states at any other.

_MAX_LISTED_OUTPUTS = 5  # outputs whose numbers stand in one line
_CHEAP_BOUND_TIMES = 20_000  # times in all: the bound of so many takes about as long as drawing them


class ErrorBound(Protocol):
    """A bound on the error of a solution, as the sum of named parts."""

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(..., len(t), p)` each."""
        ...

    def overall(self) -> dict[str, Array]:
        """The parts over all times, `(..., p)` each."""
        ...


class AdditionalError(Protocol):
    """What else outputs may be off by, beside what a run made of them."""

    def at(self, t: Array) -> Array:
        """At any times, `(..., len(t), p)`."""
        ...

    def overall(self) -> Array:
        """Over all times, `(..., p)`."""
        ...


class Trajectory(Protocol):
    """A solution between its first and last time."""

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times, `(..., len(t), p)`."""
        ...

    def user_states(self, t: Array) -> Array:
        """States x at any times, `(..., len(t), n)`, in the coordinates of the system that was given to `construct`."""
        ...

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇ of second-order neurons) of layer after layer, `(..., len(t), n)`."""
        ...

    def error_bound(self, start: float, stop: float) -> ErrorBound:
        """How far outputs between two times may be off."""
        ...


@runtime_checkable
class HasInput(Protocol):
    """A trajectory that can show the input which it was driven by."""

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Times `(K,)` and inputs `(..., K, m)`, before and after each of the times t and each knot between them."""
        ...


@final
@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Outputs y `(..., T, p)` at times t; `sol(times)` gives them anywhere between the first and the last."""

    t: Array
    y: Array
    trajectory: Trajectory = field(repr=False)
    stats: Mapping[str, Any]
    """How it was computed: the engine and its choices; for solver engines evaluations, steps and seconds per neuron."""
    signal_names: SignalNames = UNNAMED
    reduction: AdditionalError | None = field(default=None, repr=False)
    """What a reduction left out of the system that was run; None where nothing was."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """How the outputs are called; y1, y2, … where nobody gave names."""
        return names_or_defaults(self.signal_names.outputs, "outputs", self.y.shape[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """What one might not expect: why a response ends where it does, what is not shown."""
        return tuple(self.stats.get("notes", ()))

    @property
    def error_estimate(self) -> Array | None:
        """How wrong each output may be, `(..., p)`, where that is estimated and not bounded; None elsewhere."""
        return self.stats.get("error_estimate")

    def __call__(self, t: ArrayLike) -> Array:
        """Dense output: y at any times of the simulated span, `(..., len(t), p)`; a single time gives `(..., p)`."""
        times = as_real_times(t, "t")
        result = self.trajectory.outputs(self._within(np.atleast_1d(times)))
        return result[..., 0, :] if times.ndim == 0 else result

    @cached_property
    def states(self) -> Array:
        """States x at the times t, `(..., T, n)`, in the user's own coordinates."""
        return self.trajectory.user_states(self.t)

    @cached_property
    def neuron_states(self) -> Array:
        """ξ of every neuron and ξ̇ of second-order ones, layer after layer, at the times t, `(..., T, n)`."""
        return self.trajectory.neuron_states(self.t)

    def error_bound(self, t: ArrayLike | None = None) -> Array:
        """How wrong the outputs may be: a bound on |y − exact outputs of the system that was given to `construct`|.

        Without t one number per output, `(..., p)`, that holds at all times of the simulated span; with times a bound
        for each, `(..., len(t), p)`, a single time gives `(..., p)`.
        """
        return np.asarray(sum(self.error_parts(t).values()))

    def error_parts(self, t: ArrayLike | None = None) -> dict[str, Array]:
        """The parts that `error_bound` is the sum of, by name.

        "solver" is the error of the solvers, followed through the network; "rounding" holds what could not be followed
        and all rounding; "decomposition" what the decomposition of the system left; "input" the distance of a function
        u from the straight lines that the exact engine puts in its place; "times" that of even times from their grid;
        "reduction" what a reduction left out, where the network stands for a larger system; "delays and operating
        point" what rounding of delayed times and of sums with the operating point adds.
        """
        if 0 in self.y.shape[:-2]:  # a batch of nothing has no errors
            return {"rounding": np.zeros((*self.y.shape[:-2], *(() if t is None else np.shape(t)), self.y.shape[-1]))}
        if t is None:
            more = {} if self.reduction is None else {"reduction": self.reduction.overall()}
            return {**self._error.overall(), **more}
        times = as_real_times(t, "t")
        parts = self._error.at(self._within(np.atleast_1d(times)))
        if self.reduction is not None:
            parts = {**parts, "reduction": self.reduction.at(np.atleast_1d(times))}
        return {name: own[..., 0, :] for name, own in parts.items()} if times.ndim == 0 else parts

    def plot(
        self,
        *,
        outputs: Sequence[int | str] | None = None,
        names: Sequence[str] | None = None,
        input_names: Sequence[str] | None = None,
        bound: bool | None = None,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Draw the outputs over time, and the input below, on a new figure, and return the topmost Axes.

        Outputs of other units, or of peaks more than 30 times apart, have axes of their own; `ax` draws outputs alone,
        all on these. `outputs` chooses by number or name; without it at most ten are drawn, evenly spread over all.
        `names` are those of all outputs, `input_names` of all inputs, instead of those that the system gave them; units
        stand in brackets at their end, "Force (N)".

        `bound=True` draws a band of the width of `error_bound`, and says how large that is: most bands are thinner than
        the line. It costs more than the simulation did, so without a word it is drawn of up to 20,000 times alone.
        Needs matplotlib.
        """
        wanted = math.prod(self.y.shape[:-1]) <= _CHEAP_BOUND_TIMES if bound is None else bound
        errors = self.error_bound(self.t) if wanted and self.y.size else None
        names = self.signal_names.outputs if names is None else names
        input_names = self.signal_names.inputs if input_names is None else input_names
        if ax is not None:
            return draw_outputs(self.t, self.y, outputs=outputs, names=names, bound=errors, ax=ax)
        axes: Axes = draw_solution(
            self.t, self.y, outputs=outputs, names=names, bound=errors, inputs=self._drawn_input,
            input_names=input_names,
        )[0]  # fmt: skip
        return axes

    @property
    def _drawn_input(self) -> tuple[Array, Array] | None:
        """The input, where it is known and more than zero."""
        if not isinstance(self.trajectory, HasInput) or not len(self.t):
            return None
        times, values = self.trajectory.input_corners(self.t)
        return (times, values) if np.any(values) else None

    def to_frame(self) -> Any:
        """The outputs as a pandas DataFrame: the times as its index, a column for each output; needs pandas."""
        from ltinet.tables.table import to_data_frame  # here, because few solutions become frames

        return to_data_frame(self.t, self.y, self.output_names)

    @cached_property
    def _error(self) -> ErrorBound:
        return self.trajectory.error_bound(float(self.t[0]), float(self.t[-1]))

    def _within(self, times: Array) -> Array:
        if times.ndim != 1 or not len(times) or not all_finite(times):
            as_times(times, "t")  # says which of these it is
        first, last = float(times.min()), float(times.max())
        if first < self.t[0] or last > self.t[-1]:
            raise InvalidSignalError(
                f"times from {first:g} to {last:g} were asked for, but the solution goes from "
                f"{self.t[0]:g} to {self.t[-1]:g}"
            )
        return times

    def __dir__(self) -> list[str]:
        return dir_without(self, "trajectory", "judge", "signal_names", "reduction")

    def _repr_html_(self) -> str:
        return html_properties(f"solution of {format_count(self.y.shape[-1], 'output')}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        """Times, outputs with their peaks, the error bound where it is cheap, and notes."""
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
    """A number for each output, of many for the first."""
    if len(names) == 1:
        return f"{values[0]:.5g}"
    first = [
        f"{sanitize(name)}: {value:.5g}"
        for name, value in zip(names[:_MAX_LISTED_OUTPUTS], values[:_MAX_LISTED_OUTPUTS].tolist(), strict=True)
    ]
    more = [f"… ({len(names)} in all)"] if len(names) > _MAX_LISTED_OUTPUTS else []
    return ", ".join([*first, *more])
