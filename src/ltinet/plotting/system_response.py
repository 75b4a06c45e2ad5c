"""Bode, Nyquist, step and impulse plots of a system or a network from its own response methods.

`ResponsePlots` is the base class of the plot objects: it chooses frequencies and inputs and calls the drawing functions.
Of systems with very many inputs only a few evenly spread ones are simulated, since all responses would take gigabytes.
The frequencies of a Nyquist plot are refined until no straight piece is longer than 2 % of the part that is shown.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.floating_point import Array, Complex
from ltinet.errors import InvalidSystemError
from ltinet.plotting.channels import ChannelLabels, Pair, PairSelection, select_pairs
from ltinet.plotting.figures import figure_of
from ltinet.plotting.frequency_response import (
    ResponseError,
    draw_bode,
    draw_nyquist,
    nyquist_radius,
    peak_gains,
)
from ltinet.plotting.layers import draw_pole_zero_map
from ltinet.plotting.protocols import PlottableResponse, PlottableSystem
from ltinet.plotting.time_response import draw_as_samples, draw_responses, draw_time_lines, resolved_end, set_time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

OptionalNames = Sequence[str] | None
ChannelChoice = int | str | None
"""Index, counted from 0, or name of an input or an output; None for all."""
_MAX_PANEL_LINES = 5  # of a panel of an overview
_MAX_SEGMENT = 0.02  # of the largest |H| that is shown: longer straight pieces would be visible
_MAX_REFINEMENTS = 10
_MAX_VALUES, _MIN_FREQUENCIES = 4_000_000, 60  # values of H computed for a plot, and least number of frequencies
_N_TIMES = 2001  # of a step response that is drawn again up to an earlier end
_MAX_INPUTS, _N_SAMPLED_INPUTS = 12, 4  # inputs that are all simulated, and the number simulated if there are more


ResponseFunction = Callable[..., PlottableResponse]
"""Step or impulse response of all outputs to all inputs, or of one of them."""


class DrawnSystem(NamedTuple):
    """System that is drawn, with the error of its frequency response if it is the reduced model of a large one."""

    system: PlottableSystem
    frequencies: Callable[[], Array]
    error: ResponseError | None


@dataclass(frozen=True)
class ResponsePlots:
    """Plots of a system from its own responses: the base class of the plots of systems and networks."""

    system: PlottableSystem
    frequencies: Callable[[], Array]
    """Function that returns default frequencies."""
    names: OptionalNames = None
    """Names of the outputs."""
    input_names: OptionalNames = None
    error: ResponseError | None = None
    """Error of the frequency response, if the system is a reduced model that stands for a larger one."""
    reduce: Callable[[], DrawnSystem | None] | None = None
    """Function that reduces a system that is too large; it is called when something is drawn."""

    @cached_property
    def _drawn(self) -> DrawnSystem:
        """System that is drawn: the reduced model of a large one."""
        reduced = None if self.reduce is None else self.reduce()
        return DrawnSystem(self.system, self.frequencies, self.error) if reduced is None else reduced

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw magnitude and phase of H(jω).

        A large sparse system is drawn by its reduced model, with its error as a band.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from poles and zeros.
        pairs : sequence of tuple, optional
            Pairs (output, input) by index, counted from 0, or by name; by default the largest.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
            Figure; its `axes` are those of magnitude and phase.
        """
        chosen, H = self._frequency_response(omega)
        panels = draw_bode(
            chosen, H, pairs=pairs, names=self.names, input_names=self.input_names, delays=self._delays,
            error=self._drawn.error, figure=figure,
        )  # fmt: skip
        return figure_of(panels)

    def nyquist(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        limit: float | None = None,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draw H(jω) in the complex plane, with the point −1.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from poles and zeros, and refined.
        pairs : sequence of tuple, optional
            Pairs (output, input) by index, counted from 0, or by name; by default the largest.
        limit : float, optional
            Largest |H| that is drawn. By default curves of loops that run beyond 5, such as those of integrators, are cut
            at 3, so that the surroundings of −1 are seen; the title says so.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        chosen, H = self._frequency_response(omega)
        if omega is None:
            H = refine_curve(
                self._drawn.system.frequency_response, chosen, H, nyquist_radius(H) if limit is None else limit
            )
        axes = draw_nyquist(H, pairs=pairs, names=self.names, input_names=self.input_names, limit=limit, ax=ax)
        return figure_of(self._titled(axes))

    def pzmap(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw poles (×) and zeros (○) in the complex plane, with the unit circle in discrete time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        is_discrete = getattr(self.system, "dt", None) is not None
        axes = draw_pole_zero_map(
            self._drawn.system.poles(), self._drawn.system.zeros(), is_discrete=is_discrete, ax=ax
        )
        return figure_of(self._titled(axes))

    def step(
        self,
        t: ArrayLike | None = None,
        *,
        input: ChannelChoice = None,
        output: ChannelChoice = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw the response of every output to a step of every input on a grid of Axes.

        Parameters
        ----------
        t : array_like, optional
            Times; by default chosen until the response has settled.
        input, output : int or str, optional
            Index, counted from 0, or name of one input or output; by default all.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
            Figure; its `axes` are those of the first output for all inputs, of the second, and so on.
        """
        try:
            final = self._drawn.system.dcgain()
        except InvalidSystemError:  # a large model that integrates: the gain is infinite or unknown
            final = np.full((self.system.n_outputs, self.system.n_inputs), np.nan)
        return self._draw_grid(self._drawn.system.step_response, t, input, output, final=final, figure=figure)

    def impulse(
        self,
        t: ArrayLike | None = None,
        *,
        input: ChannelChoice = None,
        output: ChannelChoice = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw the response of every output to an impulse of every input on a grid of Axes.

        Parameters
        ----------
        t : array_like, optional
            Times; by default chosen until the response has settled.
        input, output : int or str, optional
            Index, counted from 0, or name of one input or output; by default all.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
            Figure; its `axes` are those of the first output for all inputs, of the second, and so on.
        """
        no_final_values = np.full((self.system.n_outputs, self.system.n_inputs), np.nan)
        return self._draw_grid(
            self._drawn.system.impulse_response, t, input, output, final=no_final_values, figure=figure
        )

    def _titled(self, axes: "Axes") -> "Axes":
        """Add the error of a reduced model to the title."""
        if self._drawn.error is not None:
            axes.set_title(f"reduced model, {self._drawn.error.description}", fontsize="medium", color="0.25")
        return axes

    def _frequency_response(self, omega: ArrayLike | None) -> tuple[Array, Complex]:
        """Return given or default frequencies, and H there."""
        if omega is None:
            chosen = self._drawn.frequencies()
            most = max(_MAX_VALUES // max(self.system.n_inputs * self.system.n_outputs, 1), _MIN_FREQUENCIES)
            chosen = chosen[:: math.ceil(len(chosen) / most)]
        else:
            chosen = np.asarray(omega, dtype=np.float64)
        return chosen, self._drawn.system.frequency_response(chosen)

    @property
    def _delays(self) -> Array | None:
        """Dead times from every input to every output `(p, m)`; None if there are none."""
        output_delay = np.asarray(getattr(self.system, "output_delay", 0.0))
        delays = output_delay[..., None] + getattr(self.system, "input_delay", 0.0)
        return delays if delays.any() else None

    @property
    def _has_channels(self) -> bool:
        return self.system.n_inputs > 0 and self.system.n_outputs > 0

    def _largest_pairs(self, H: Complex) -> PairSelection:
        """Return the pairs of output and input that a panel of an overview shows."""
        return select_pairs(peak_gains(H), names=self.names, input_names=self.input_names, max_pairs=_MAX_PANEL_LINES)

    def _draw_steps(self, axes: "Axes", shown: PairSelection) -> None:
        """Draw step responses and DC gains on one pair of axes."""
        gains, chosen = self._drawn.system.dcgain(), shown.chosen
        if self.system.n_inputs <= _MAX_INPUTS:
            response = self._drawn.system.step_response()
            times, responses = response.t, [response.y[column, :, output] for output, column in chosen]
        else:
            columns = list(dict.fromkeys(column for _, column in chosen))
            times, y, _ = _simulate_inputs_separately(self._drawn.system.step_response, None, columns)
            responses = [y[columns.index(column), :, output] for output, column in chosen]
        title = "step response"
        end = resolved_end(times, np.stack(responses))
        if end is not None:
            title = f"step response, first {end:g} of {float(f'{times[-1]:.3g}'):g}"
            times = self._first_times(times, end)
            by_input = {column: self._drawn.system.step_response(times, input=column).y for _, column in chosen}
            responses = [by_input[column][:, output] for output, column in chosen]
        draw_time_lines(axes, times, responses, shown.styles, [gains[pair] for pair in chosen])
        set_time_axis(axes, times, np.stack(responses))
        if self.system.dt is not None:
            draw_as_samples(axes.lines)
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel(shown.outputs.together(sorted({output for output, _ in chosen})))

    def _first_times(self, times: Array, end: float) -> Array:
        """Return times up to an end that draw a smooth line; in discrete time they are samples."""
        return np.linspace(0.0, end, _N_TIMES) if self.system.dt is None else times[times <= end]

    def _draw_grid(
        self, respond: ResponseFunction, t: ArrayLike | None, input: ChannelChoice, output: ChannelChoice, *,
        final: Array, figure: "Figure | SubFigure | None",
    ) -> "Figure":  # fmt: skip
        """Draw responses of all outputs to all inputs, or of one of them; of very many inputs, some evenly spread."""
        outputs = ChannelLabels(self.system.n_outputs, self.names, noun="output")
        inputs = ChannelLabels(self.system.n_inputs, self.input_names, noun="input")
        row = None if output is None else outputs.index(output, argument="output")
        rows = range(outputs.count) if row is None else [row]
        sampling: tuple[str, ...] = ()
        if input is not None:
            columns = [inputs.index(input, argument="input")]
        elif inputs.count <= _MAX_INPUTS:
            columns = list(range(inputs.count))
        else:  # responses to hundreds of inputs would take gigabytes, and a plot shows four
            columns = np.linspace(0, inputs.count - 1, _N_SAMPLED_INPUTS).round().astype(int).tolist()
            sampling = (f"{_N_SAMPLED_INPUTS} of {inputs.count} inputs, evenly spread over all",)
        if input is None and not sampling:
            response = respond(t, output=row)
            times, y, notes = response.t, response.y, response.notes
        else:
            times, y, notes = _simulate_inputs_separately(respond, t, columns, row)
        end = None if t is not None else resolved_end(times, np.moveaxis(y, 1, 2))
        if end is not None:
            notes = (
                *notes,
                f"oscillates too often to be drawn: t=np.linspace(0, {end:g}, {_N_TIMES}) shows the beginning",
            )
        panels = draw_responses(
            times, y, final=final[np.ix_(rows, columns)], names=outputs.names_of(rows),
            input_names=inputs.names_of(columns), notes=(*sampling, *notes), figure=figure,
        )  # fmt: skip
        if self.system.dt is not None:
            draw_as_samples(line for axes in panels.flat for line in axes.lines)
        return figure_of(panels)

    def __dir__(self) -> list[str]:
        return dir_without(self, "system", "frequencies", "names", "input_names", "error", "reduce")


def _simulate_inputs_separately(
    respond: ResponseFunction, t: ArrayLike | None, columns: Sequence[int], output: int | None = None
) -> tuple[Array, Array, tuple[str, ...]]:  # fmt: skip
    """Return times chosen for the first input, responses `(inputs, T, outputs)` and notes."""
    first = respond(t, input=columns[0], output=output)
    rest = [respond(first.t, input=column, output=output).y for column in columns[1:]]
    return first.t, np.stack([first.y, *rest]), first.notes


def refine_curve(response: Callable[[Array], Complex], omega: Array, H: Complex, radius: float = np.inf) -> Complex:
    """Return H with further frequencies between those whose values are far apart in the complex plane, up to |H| = radius."""
    for _ in range(_MAX_REFINEMENTS):
        longest = _MAX_SEGMENT * np.clip(peak_gains(H), np.finfo(float).tiny, radius)
        with np.errstate(invalid="ignore"):
            is_shown = np.minimum(np.abs(H[1:]), np.abs(H[:-1])) <= radius
            far = np.any((np.abs(np.diff(H, axis=0)) > longest) & is_shown, axis=(1, 2))
        if not far.any():
            break
        between = np.sqrt(omega[:-1][far] * omega[1:][far])
        order = np.argsort(np.concatenate([omega, between]), kind="stable")
        omega = np.concatenate([omega, between])[order]
        H = np.concatenate([H, response(between)])[order]
    return H
