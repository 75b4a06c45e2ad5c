"""Bode, Nyquist, step and impulse plots of a system or a network from its own response methods.

`ResponsePlotter` chooses frequencies and inputs and calls the drawing functions. The functions `bode`, `nyquist`,
`step` and `impulse` become methods of the plot classes (`bode = system_response.bode`), which must have the property
`_answers`. Of systems with very many inputs only a few evenly spread ones are simulated, since all responses would
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

# MERGED ltinet.plotting.system_response
# How a system answers, drawn from what it says of itself: Bode and Nyquist plots, step and impulse responses.

OptionalNames = Sequence[str] | None
ChannelChoice = int | str | None
"""An input or an output by its number, counted from 0, or by its name; None for all."""
_FINE = 0.02  # of the extent of a curve: longer straight pieces of it would be seen
_ROUNDS = 10
_VALUES, _FEWEST = 4_000_000, 60  # values of H that are computed for a drawing, frequencies whatever their number
_INPUTS, _SHOWN = 12, 4  # inputs whose responses are all computed, and how many are of more


class ResponseFunction(Protocol):
    """A kind of response: of all outputs to all inputs, or of one of them."""

    def __call__(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Outputs over time."""
        ...


@final
@dataclass(frozen=True)
class ResponsePlotter:
    """A system, the frequencies that show it, and the names of its outputs and inputs."""

    system: PlottableSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def at(self, omega: ArrayLike | None) -> tuple[Array, Complex]:
        """Frequencies, those given or those that suit the system, and H there."""
        if omega is None:
            chosen = self.frequencies()
            most = max(_VALUES // max(self.system.n_inputs * self.system.n_outputs, 1), _FEWEST)
            chosen = chosen[:: math.ceil(len(chosen) / most)]
        else:
            chosen = np.asarray(omega, dtype=np.float64)
        return chosen, self.system.frequency_response(chosen)

    def draw_bode(
        self, omega: ArrayLike | None, *, pairs: Sequence[Pair] | None, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Magnitude and phase."""
        chosen, H = self.at(omega)
        return draw_bode(
            chosen, H, pairs=pairs, names=self.names, input_names=self.input_names, delays=self.delays, figure=figure
        )

    @property
    def delays(self) -> Array | None:
        """Dead times from every input to every output `(p, m)`, where the system has some."""
        late = np.asarray(getattr(self.system, "output_delay", 0.0))[..., None] + getattr(
            self.system, "input_delay", 0.0
        )
        return late if late.any() else None

    def draw_nyquist(
        self, omega: ArrayLike | None, *, pairs: Sequence[Pair] | None, limit: float | None, ax: "Axes | None"
    ) -> "Axes":
        """H in the complex plane; where frequencies are chosen, so many that curves look round."""
        chosen, H = self.at(omega)
        if omega is None:
            H = refine_curve(self.system.frequency_response, chosen, H)
        return draw_nyquist(H, pairs=pairs, names=self.names, input_names=self.input_names, limit=limit, ax=ax)

    def draw_step(
        self, t: ArrayLike | None, *, input: ChannelChoice, output: ChannelChoice, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Step responses and the gains at rest that they come to."""
        own = self._only(input, output)
        return own.draw(self.system.step_response, t, final=self.system.dcgain(), figure=figure)

    def draw_impulse(
        self, t: ArrayLike | None, *, input: ChannelChoice, output: ChannelChoice, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Impulse responses."""
        shape = (self.system.n_outputs, self.system.n_inputs)
        own = self._only(input, output)
        return own.draw(self.system.impulse_response, t, final=np.full(shape, np.nan), figure=figure)

    def steps_of(self, pairs: Sequence[tuple[int, int]]) -> tuple[Array, list[Array]]:
        """Times, and the step response of each of these pairs (output, input)."""
        if self.system.n_inputs <= _INPUTS:
            every = self.system.step_response()
            return every.t, [every.y[column, :, output] for output, column in pairs]
        columns = list(dict.fromkeys(column for _, column in pairs))
        times, y, _ = _simulate_inputs_separately(self.system.step_response, None, columns)
        return times, [y[columns.index(column), :, output] for output, column in pairs]

    def _only(self, input: ChannelChoice, output: ChannelChoice) -> "ResponseSelection":
        """The responses that are asked for."""
        outputs = ChannelLabels(self.system.n_outputs, self.names, noun="output")
        inputs = ChannelLabels(self.system.n_inputs, self.input_names, noun="input")
        return ResponseSelection(
            outputs,
            inputs,
            None if output is None else outputs.place(output, argument="output"),
            None if input is None else inputs.place(input, argument="input"),
        )


@final
@dataclass(frozen=True)
class ResponseSelection:
    """Which responses are drawn: of all outputs to all inputs, or of one of them."""

    outputs: ChannelLabels
    inputs: ChannelLabels
    output: int | None
    input: int | None

    def draw(
        self, respond: ResponseFunction, t: ArrayLike | None, *, final: Array, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Draw a kind of response; of very many inputs some."""
        rows = range(self.outputs.count) if self.output is None else [self.output]
        told: tuple[str, ...] = ()
        if self.input is not None:
            columns = [self.input]
        elif self.inputs.count <= _INPUTS:
            columns = list(range(self.inputs.count))
        else:  # The responses to hundreds of inputs would take gigabytes, of which a picture shows four.
            columns = np.linspace(0, self.inputs.count - 1, _SHOWN).round().astype(int).tolist()
            told = (f"{_SHOWN} of {self.inputs.count} inputs, evenly spread over all",)
        if self.input is None and not told:
            response = respond(t, output=self.output)
            times, y, notes = response.t, response.y, response.notes
        else:
            times, y, notes = _simulate_inputs_separately(respond, t, columns, self.output)
        return draw_responses(
            times, y, final=final[np.ix_(rows, columns)], names=self.outputs.names_of(rows),
            input_names=self.inputs.names_of(columns), notes=(*told, *notes), figure=figure,
        )  # fmt: skip


def _simulate_inputs_separately(
    respond: ResponseFunction, t: ArrayLike | None, columns: Sequence[int], output: int | None = None
) -> tuple[Array, Array, tuple[str, ...]]:  # fmt: skip
    """Times, responses `(inputs, T, outputs)` and notes, at times that suit the first of the inputs."""
    first = respond(t, input=columns[0], output=output)
    rest = [respond(first.t, input=column, output=output).y for column in columns[1:]]
    return first.t, np.stack([first.y, *rest]), first.notes


def refine_curve(response: Callable[[Array], Complex], omega: Array, H: Complex) -> Complex:
    """H also at frequencies between those given, where two of them lie far apart in the complex plane."""
    for _ in range(_ROUNDS):
        sizes = np.abs(H)
        extent = np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            far = np.any(np.abs(np.diff(H, axis=0)) > _FINE * np.maximum(extent, np.finfo(float).tiny), axis=(1, 2))
        if not far.any():
            break
        between = np.sqrt(omega[:-1][far] * omega[1:][far])
        order = np.argsort(np.concatenate([omega, between]), kind="stable")
        omega = np.concatenate([omega, between])[order]
        H = np.concatenate([H, response(between)])[order]
    return H


# MERGED ltinet.plotting.system_response
# The drawings of how something answers, as systems and networks alike have them: one function for both doors.
#
# A class takes a function of this file as its method, `bode = doors.bode`; what it needs for that is `_answers`.


class HasResponsePlotter(Protocol):
    """What can say how it answers."""

    @property
    def _answers(self) -> ResponsePlotter: ...


def bode(
    self: HasResponsePlotter,
    omega: ArrayLike | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw magnitude and phase of H(jω), of all pairs (output, input) or of those given; two Axes come back.

    A pair is two numbers, counted from 0, or two names. Without omega frequencies are chosen from poles and zeros.
    """
    return self._answers.draw_bode(omega, pairs=pairs, figure=figure)


def nyquist(
    self: HasResponsePlotter,
    omega: ArrayLike | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    limit: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw H(jω) in the complex plane, with −1; what is larger than `limit` is cut (see `draw_nyquist`)."""
    return self._answers.draw_nyquist(omega, pairs=pairs, limit=limit, ax=ax)


def step(
    self: HasResponsePlotter,
    t: ArrayLike | None = None,
    *,
    input: ChannelChoice = None,
    output: ChannelChoice = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw the response of every output to a step of every input, and the value it comes to, on a grid of Axes.

    `input` and `output` choose one of them, by number from 0 on or by name, as in `step_response`.
    """
    return self._answers.draw_step(t, input=input, output=output, figure=figure)


def impulse(
    self: HasResponsePlotter,
    t: ArrayLike | None = None,
    *,
    input: ChannelChoice = None,
    output: ChannelChoice = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw the response of every output to an impulse of every input on a grid of Axes; chosen as in `step`."""
    return self._answers.draw_impulse(t, input=input, output=output, figure=figure)
