"""The drawings of how something answers, as systems and networks alike have them: one function for both doors.

A class takes a function of this file as its method, `bode = doors.bode`; what it needs for that is `_answers`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import ArrayLike, NDArray

from ltinet.plotting.answers import Answers, Chosen
from ltinet.plotting.pairs import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Answering(Protocol):
    """What can say how it answers."""

    @property
    def _answers(self) -> Answers: ...


def bode(
    self: Answering,
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
    self: Answering,
    omega: ArrayLike | None = None,
    *,
    pairs: Sequence[Pair] | None = None,
    limit: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw H(jω) in the complex plane, with −1; what is larger than `limit` is cut (see `draw_nyquist`)."""
    return self._answers.draw_nyquist(omega, pairs=pairs, limit=limit, ax=ax)


def step(
    self: Answering,
    t: ArrayLike | None = None,
    *,
    input: Chosen = None,
    output: Chosen = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw the response of every output to a step of every input, and the value it comes to, on a grid of Axes.

    `input` and `output` choose one of them, by number from 0 on or by name, as in `step_response`.
    """
    return self._answers.draw_step(t, input=input, output=output, figure=figure)


def impulse(
    self: Answering,
    t: ArrayLike | None = None,
    *,
    input: Chosen = None,
    output: Chosen = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw the response of every output to an impulse of every input on a grid of Axes; chosen as in `step`."""
    return self._answers.draw_impulse(t, input=input, output=output, figure=figure)
