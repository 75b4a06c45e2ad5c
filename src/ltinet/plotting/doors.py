"""What stands behind `net.plot`, `system.plot` and `form.plot`: one line for every drawing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ltinet.arrays import Array
from ltinet.listing import listed_without
from ltinet.plotting import answer_doors as doors
from ltinet.plotting.answers import Answers, Names
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.canvas import figure_or_new
from ltinet.plotting.conditioning import draw_condition
from ltinet.plotting.drawn import AnsweringNetwork, DrawnForm, DrawnSystem
from ltinet.plotting.network_pattern import draw_network_sparsity, draw_network_spectrum
from ltinet.plotting.overview import SLIDE, draw_network_overview, draw_system_overview
from ltinet.plotting.sparsity import draw_sparsity
from ltinet.plotting.spectrum import draw_spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@final
@dataclass(frozen=True)
class NetworkPlots:
    """Drawings of a network: `net.plot()` is an overview, fit for a slide, and each of these a drawing alone.

    They take the Axes, or those of several panels the empty Figure, to draw on, or make a new one, and return the Axes.
    """

    network: AnsweringNetwork
    frequencies: Callable[[], Array]
    names: Names = None
    input_names: Names = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw neurons, poles, connections, step response and gain on one slide of 16:9, and return its figure."""
        page = figure_or_new(figure, width=SLIDE[0], height=SLIDE[1])
        draw_network_overview(self.network, self._answers, page)
        return page

    def overview(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """The same as `net.plot()`."""
        return self(figure=figure)

    def architecture(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw inputs, neurons in their horizontal layers, and outputs."""
        return draw_architecture(self.network, ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles of all neurons, coloured by layer."""
        return draw_network_spectrum(self.network, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw neurons as dots and which feeds which as squares; the title counts the weights that are not zero."""
        return draw_network_sparsity(self.network, ax=ax)

    bode, nyquist, step, impulse = doors.bode, doors.nyquist, doors.step, doors.impulse

    @property
    def _answers(self) -> Answers:
        return Answers(self.network, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return listed_without(self, "network", "frequencies", "names", "input_names")


@final
@dataclass(frozen=True)
class SystemPlots:
    """Drawings of a system: `system.plot()` is an overview, fit for a slide, and each of these a drawing alone."""

    system: DrawnSystem
    frequencies: Callable[[], Array]
    names: Names = None
    input_names: Names = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw magnitude, phase, step response and poles on one slide of 16:9, and return its figure."""
        page = figure_or_new(figure, width=SLIDE[0], height=SLIDE[1])
        draw_system_overview(self._answers, page)
        return page

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles."""
        return draw_spectrum([self.system.poles()], ax=ax)

    bode, nyquist, step, impulse = doors.bode, doors.nyquist, doors.step, doors.impulse

    @property
    def _answers(self) -> Answers:
        return Answers(self.system, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return listed_without(self, "system", "frequencies", "names", "input_names")


@final
@dataclass(frozen=True)
class FormPlots:
    """Drawings of a block-diagonal form; each takes the Axes to draw on, or makes a figure, and returns the Axes."""

    form: DrawnForm

    def tradeoff(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw cond(T) against the number of layers for all that the search met, and the form that it chose."""
        finite = [pair for pair in self.form.tradeoff if np.isfinite(pair[1])]  # T may be singular, which has no place
        budget = self.form.budget if self.form.budget is not None and np.isfinite(self.form.budget) else None
        return draw_condition(finite, budget=budget, chosen=len(self.form.block_sizes), ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the eigenvalues, coloured by block."""
        return draw_spectrum(self.form.eigenvalues, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw which entries of the block-diagonal matrix are not zero."""
        blocks = [self.form.block(index) != 0.0 for index in range(len(self.form.block_sizes))]
        axes = draw_sparsity([block | np.eye(len(block), dtype=bool) for block in blocks], unit="state", ax=ax)
        count = sum(int(np.count_nonzero(block)) for block in blocks)
        axes.set_title(f"{count} of {sum(self.form.block_sizes) ** 2} entries are not zero", fontsize="medium")
        return axes

    def __dir__(self) -> list[str]:
        return listed_without(self, "form")
