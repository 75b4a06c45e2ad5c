"""Bode, Nyquist, step and impulse plots of a system or a network from its own response methods.

`ResponsePlotter` chooses frequencies and inputs and calls the drawing functions. The functions `bode`, `nyquist`,
`step` and `impulse` become methods of the plot classes (`bode = system_response.bode`), which must have the property
`_plotter`. Of systems with very many inputs only a few evenly spread ones are simulated, since all responses would
take gigabytes. The frequencies of a Nyquist plot are refined until no straight piece is longer than 2 % of the
extent of its curve.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array, Complex
from ltinet.plotting.channels import ChannelLabels, Pair
from ltinet.plotting.frequency_response import draw_bode, draw_nyquist
from ltinet.plotting.protocols import PlottableResponse, PlottableSystem
from ltinet.plotting.time_response import draw_responses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

OptionalNames = Sequence[str] | None
ChannelChoice = int | str | None
"""Index, counted from 0, or name of an input or an output; None for all."""
_MAX_SEGMENT = 0.02  # of the extent of a curve: longer straight pieces would be visible
_MAX_REFINEMENTS = 10
_MAX_VALUES, _MIN_FREQUENCIES = 4_000_000, 60  # values of H computed for a plot, and least number of frequencies
_MAX_INPUTS, _N_SAMPLED_INPUTS = 12, 4  # inputs that are all simulated, and the number simulated if there are more


class ResponseFunction(Protocol):
    """Step or impulse response of all outputs to all inputs, or of one of them."""

    def __call__(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Return outputs over time."""


@final
@dataclass(frozen=True)
class ResponsePlotter:
    """Responses of a system with default frequencies and names of outputs and inputs."""

    system: PlottableSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def at(self, omega: ArrayLike | None) -> tuple[Array, Complex]:
        """Return given or default frequencies, and H there."""
        if omega is None:
            chosen = self.frequencies()
            most = max(_MAX_VALUES // max(self.system.n_inputs * self.system.n_outputs, 1), _MIN_FREQUENCIES)
            chosen = chosen[:: math.ceil(len(chosen) / most)]
        else:
            chosen = np.asarray(omega, dtype=np.float64)
        return chosen, self.system.frequency_response(chosen)

    def draw_bode(
        self, omega: ArrayLike | None, *, pairs: Sequence[Pair] | None, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Draw magnitude and phase."""
        chosen, H = self.at(omega)
        return draw_bode(
            chosen, H, pairs=pairs, names=self.names, input_names=self.input_names, delays=self.delays, figure=figure
        )

    @property
    def delays(self) -> Array | None:
        """Dead times from every input to every output `(p, m)`; None if there are none."""
        delays = np.asarray(getattr(self.system, "output_delay", 0.0))[..., None] + getattr(
            self.system, "input_delay", 0.0
        )
        return delays if delays.any() else None

    def draw_nyquist(
        self, omega: ArrayLike | None, *, pairs: Sequence[Pair] | None, limit: float | None, ax: "Axes | None"
    ) -> "Axes":
        """Draw H in the complex plane; default frequencies are refined until curves look smooth."""
        chosen, H = self.at(omega)
        if omega is None:
            H = refine_curve(self.system.frequency_response, chosen, H)
        return draw_nyquist(H, pairs=pairs, names=self.names, input_names=self.input_names, limit=limit, ax=ax)

    def draw_step(
        self, t: ArrayLike | None, *, input: ChannelChoice, output: ChannelChoice, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Draw step responses and their final values."""
        return self._select(input, output).draw(self.system.step_response, t, final=self.system.dcgain(), figure=figure)

    def draw_impulse(
        self, t: ArrayLike | None, *, input: ChannelChoice, output: ChannelChoice, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Draw impulse responses."""
        shape = (self.system.n_outputs, self.system.n_inputs)
        return self._select(input, output).draw(
            self.system.impulse_response, t, final=np.full(shape, np.nan), figure=figure
        )

    def steps_of(self, pairs: Sequence[tuple[int, int]]) -> tuple[Array, list[Array]]:
        """Return times, and the step response of each of the pairs (output, input)."""
        if self.system.n_inputs <= _MAX_INPUTS:
            response = self.system.step_response()
            return response.t, [response.y[column, :, output] for output, column in pairs]
        columns = list(dict.fromkeys(column for _, column in pairs))
        times, y, _ = _simulate_inputs_separately(self.system.step_response, None, columns)
        return times, [y[columns.index(column), :, output] for output, column in pairs]

    def _select(self, input: ChannelChoice, output: ChannelChoice) -> "ResponseSelection":
        """Return the selection of responses."""
        outputs = ChannelLabels(self.system.n_outputs, self.names, noun="output")
        inputs = ChannelLabels(self.system.n_inputs, self.input_names, noun="input")
        return ResponseSelection(
            outputs,
            inputs,
            None if output is None else outputs.index(output, argument="output"),
            None if input is None else inputs.index(input, argument="input"),
        )


@final
@dataclass(frozen=True)
class ResponseSelection:
    """Selection of responses: of all outputs to all inputs, or of one of them."""

    outputs: ChannelLabels
    inputs: ChannelLabels
    output: int | None
    input: int | None

    def draw(
        self, respond: ResponseFunction, t: ArrayLike | None, *, final: Array, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Draw responses; for very many inputs, some of them evenly spread."""
        rows = range(self.outputs.count) if self.output is None else [self.output]
        sampling: tuple[str, ...] = ()
        if self.input is not None:
            columns = [self.input]
        elif self.inputs.count <= _MAX_INPUTS:
            columns = list(range(self.inputs.count))
        else:  # responses to hundreds of inputs would take gigabytes, and a plot shows four
            columns = np.linspace(0, self.inputs.count - 1, _N_SAMPLED_INPUTS).round().astype(int).tolist()
            sampling = (f"{_N_SAMPLED_INPUTS} of {self.inputs.count} inputs, evenly spread over all",)
        if self.input is None and not sampling:
            response = respond(t, output=self.output)
            times, y, notes = response.t, response.y, response.notes
        else:
            times, y, notes = _simulate_inputs_separately(respond, t, columns, self.output)
        return draw_responses(
            times, y, final=final[np.ix_(rows, columns)], names=self.outputs.names_of(rows),
            input_names=self.inputs.names_of(columns), notes=(*sampling, *notes), figure=figure,
        )  # fmt: skip


def _simulate_inputs_separately(
    respond: ResponseFunction, t: ArrayLike | None, columns: Sequence[int], output: int | None = None
) -> tuple[Array, Array, tuple[str, ...]]:  # fmt: skip
    """Return times chosen for the first input, responses `(inputs, T, outputs)` and notes."""
    first = respond(t, input=columns[0], output=output)
    rest = [respond(first.t, input=column, output=output).y for column in columns[1:]]
    return first.t, np.stack([first.y, *rest]), first.notes


def refine_curve(response: Callable[[Array], Complex], omega: Array, H: Complex) -> Complex:
    """Return H with further frequencies between those whose values are far apart in the complex plane."""
    for _ in range(_MAX_REFINEMENTS):
        sizes = np.abs(H)
        extent = np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            far = np.any(
                np.abs(np.diff(H, axis=0)) > _MAX_SEGMENT * np.maximum(extent, np.finfo(float).tiny), axis=(1, 2)
            )
        if not far.any():
            break
        between = np.sqrt(omega[:-1][far] * omega[1:][far])
        order = np.argsort(np.concatenate([omega, between]), kind="stable")
        omega = np.concatenate([omega, between])[order]
        H = np.concatenate([H, response(between)])[order]
    return H


# Methods of plot classes.


class HasResponsePlotter(Protocol):
    """Object with a `ResponsePlotter`."""

    @property
    def _plotter(self) -> ResponsePlotter: ...


def bode(  # noqa: D417 - becomes a method
    self: HasResponsePlotter,
    omega: ArrayLike | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw magnitude and phase of H(jω).

    Parameters
    ----------
    omega : array_like, optional
        Angular frequencies; by default chosen from poles and zeros.
    pairs : sequence of tuple, optional
        Pairs (output, input) by index, counted from 0, or by name; by default all of them.
    figure : matplotlib.figure.Figure, optional
        Empty figure to draw on; by default a new one.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Axes of magnitude and phase.
    """
    return self._plotter.draw_bode(omega, pairs=pairs, figure=figure)


def nyquist(  # noqa: D417 - becomes a method
    self: HasResponsePlotter,
    omega: ArrayLike | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    limit: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw H(jω) in the complex plane, with the point −1.

    Parameters
    ----------
    omega : array_like, optional
        Angular frequencies; by default chosen from poles and zeros, and refined.
    pairs : sequence of tuple, optional
        Pairs (output, input) by index, counted from 0, or by name; by default all of them.
    limit : float, optional
        Largest |H| that is drawn; by default curves are cut near poles (see `draw_nyquist`).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    return self._plotter.draw_nyquist(omega, pairs=pairs, limit=limit, ax=ax)


def step(  # noqa: D417 - becomes a method
    self: HasResponsePlotter,
    t: ArrayLike | None = None,
    *,
    input: ChannelChoice = None,
    output: ChannelChoice = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
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
    ndarray of matplotlib.axes.Axes
        Axes, `(outputs, inputs)`.
    """
    return self._plotter.draw_step(t, input=input, output=output, figure=figure)


def impulse(  # noqa: D417 - becomes a method
    self: HasResponsePlotter,
    t: ArrayLike | None = None,
    *,
    input: ChannelChoice = None,
    output: ChannelChoice = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
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
    ndarray of matplotlib.axes.Axes
        Axes, `(outputs, inputs)`.
    """
    return self._plotter.draw_impulse(t, input=input, output=output, figure=figure)
