"""How a system answers, drawn from what it says of itself: Bode and Nyquist plots, step and impulse responses."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array, Complex
from ltinet.plotting.bode import draw_bode
from ltinet.plotting.drawn import DrawnResponse, DrawnSystem
from ltinet.plotting.names import Channels
from ltinet.plotting.nyquist import draw_nyquist
from ltinet.plotting.pairs import Pair
from ltinet.plotting.response_grid import draw_responses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Names = Sequence[str] | None
Chosen = int | str | None
"""An input or an output by its number, counted from 0, or by its name; None for all."""
_FINE = 0.02  # of the extent of a curve: longer straight pieces of it would be seen
_ROUNDS = 10
_VALUES, _FEWEST = 4_000_000, 60  # values of H that are computed for a drawing, frequencies whatever their number
_INPUTS, _SHOWN = 12, 4  # inputs whose responses are all computed, and how many are of more


class Respond(Protocol):
    """A kind of response: of all outputs to all inputs, or of one of them."""

    def __call__(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> DrawnResponse:
        """Outputs over time."""
        ...


@final
@dataclass(frozen=True)
class Answers:
    """A system, the frequencies that show it, and the names of its outputs and inputs."""

    system: DrawnSystem
    frequencies: Callable[[], Array]
    names: Names = None
    input_names: Names = None

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
            H = refined(self.system.frequency_response, chosen, H)
        return draw_nyquist(H, pairs=pairs, names=self.names, input_names=self.input_names, limit=limit, ax=ax)

    def draw_step(
        self, t: ArrayLike | None, *, input: Chosen, output: Chosen, figure: "Figure | SubFigure | None"
    ) -> NDArray[Any]:
        """Step responses and the gains at rest that they come to."""
        own = self._only(input, output)
        return own.draw(self.system.step_response, t, final=self.system.dcgain(), figure=figure)

    def draw_impulse(
        self, t: ArrayLike | None, *, input: Chosen, output: Chosen, figure: "Figure | SubFigure | None"
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
        times, y, _ = _one_by_one(self.system.step_response, None, columns)
        return times, [y[columns.index(column), :, output] for output, column in pairs]

    def _only(self, input: Chosen, output: Chosen) -> "Responses":
        """The responses that are asked for."""
        outputs = Channels(self.system.n_outputs, self.names, noun="output")
        inputs = Channels(self.system.n_inputs, self.input_names, noun="input")
        return Responses(
            outputs,
            inputs,
            None if output is None else outputs.place(output, argument="output"),
            None if input is None else inputs.place(input, argument="input"),
        )


@final
@dataclass(frozen=True)
class Responses:
    """Which responses are drawn: of all outputs to all inputs, or of one of them."""

    outputs: Channels
    inputs: Channels
    output: int | None
    input: int | None

    def draw(
        self, respond: Respond, t: ArrayLike | None, *, final: Array, figure: "Figure | SubFigure | None"
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
            times, y, remarks = response.t, response.y, response.remarks
        else:
            times, y, remarks = _one_by_one(respond, t, columns, self.output)
        return draw_responses(
            times, y, final=final[np.ix_(rows, columns)], names=self.outputs.names_of(rows),
            input_names=self.inputs.names_of(columns), remarks=(*told, *remarks), figure=figure,
        )  # fmt: skip


def _one_by_one(
    respond: Respond, t: ArrayLike | None, columns: Sequence[int], output: int | None = None
) -> tuple[Array, Array, tuple[str, ...]]:  # fmt: skip
    """Times, responses `(inputs, T, outputs)` and remarks, at times that suit the first of the inputs."""
    first = respond(t, input=columns[0], output=output)
    rest = [respond(first.t, input=column, output=output).y for column in columns[1:]]
    return first.t, np.stack([first.y, *rest]), first.remarks


def refined(response: Callable[[Array], Complex], omega: Array, H: Complex) -> Complex:
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
