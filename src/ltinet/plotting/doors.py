"""What stands behind `net.plot`, `form.plot` and `sol.plot`: one line for every drawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.network.network import Network
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.canvas import figure_or_new
from ltinet.plotting.conditioning import draw_condition
from ltinet.plotting.sparsity import draw_sparsity
from ltinet.plotting.spectrum import draw_spectrum
from ltinet.plotting.trajectory import draw_outputs
from ltinet.solve.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@final
@dataclass(frozen=True)
class NetworkPlots:
    """Drawings of a network; each takes the Axes to draw on, or makes a new figure, and returns the Axes."""

    network: Network

    def architecture(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw inputs, neurons in their horizontal layers, and outputs."""
        return draw_architecture(self.network, ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles of all neurons, coloured by layer."""
        poles = [[pole for neuron in layer.neurons for pole in neuron.poles] for layer in self.network.layers]
        return draw_spectrum(poles, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw which neurons feed which; the title counts the connections whose weights are not zero."""
        layers = self.network.layers
        axes = draw_sparsity([(layer.C != 0.0) | (layer.K != 0.0) | (layer.M != 0.0) for layer in layers], ax=ax)
        count, n = sum(len(layer.edges) for layer in layers), self.network.n_neurons
        axes.set_title(f"{count} of {n * (n - 1) // 2} possible connections carry weight", fontsize="medium")
        return axes

    def overview(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw architecture, spectrum and sparsity on one page, and return its figure."""
        page = figure_or_new(figure, width=12.0, height=7.0)
        left, right = page.subfigures(1, 2, width_ratios=(1.45, 1.0), squeeze=False)[0]
        upper, lower = right.subplots(2, 1, gridspec_kw={"hspace": 0.08})
        self.architecture(ax=left.subplots())
        self.spectrum(ax=upper)
        self.sparsity(ax=lower)
        return page


@final
@dataclass(frozen=True)
class FormPlots:
    """Drawings of a block-diagonal form; each takes the Axes to draw on, or makes a figure, and returns the Axes."""

    form: BlockDiagonalForm

    def tradeoff(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw cond(T) against the number of layers for all that the search met, and the form that it chose."""
        finite = [pair for pair in self.form.tradeoff if np.isfinite(pair[1])]  # T may be singular, which has no place
        budget = self.form.budget if self.form.budget is not None and np.isfinite(self.form.budget) else None
        return draw_condition(finite, budget=budget, chosen=self.form.n_blocks, ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the eigenvalues, coloured by block."""
        return draw_spectrum(self.form.eigenvalues, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw which entries of the block-diagonal matrix are not zero."""
        blocks = [self.form.block(index) != 0.0 for index in range(self.form.n_blocks)]
        axes = draw_sparsity([block | np.eye(len(block), dtype=bool) for block in blocks], unit="state", ax=ax)
        count = sum(int(np.count_nonzero(block)) for block in blocks)
        axes.set_title(f"{count} of {len(self.form.A) ** 2} entries are not zero", fontsize="medium")
        return axes


def plot_solution(sol: Solution, *, outputs: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the outputs over time on `ax`, or on a new figure, and return the Axes.

    `outputs` chooses by index; without it at most ten are drawn, evenly spread over all.
    """
    return draw_outputs(sol.t, sol.y, outputs=outputs, ax=ax)
