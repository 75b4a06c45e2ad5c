"""What stands behind `net.plot` and `form.plot`: one line for every drawing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ltinet.listing import listed_without
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.canvas import figure_or_new
from ltinet.plotting.conditioning import draw_condition
from ltinet.plotting.drawn import DrawnForm, DrawnNetwork
from ltinet.plotting.sparsity import draw_sparsity
from ltinet.plotting.spectrum import draw_spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@final
@dataclass(frozen=True)
class NetworkPlots:
    """Drawings of a network; each takes the Axes to draw on, or makes a new figure, and returns the Axes."""

    network: DrawnNetwork

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
        count, n = sum(len(layer.edges) for layer in layers), sum(layer.n_neurons for layer in layers)
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

    def __dir__(self) -> list[str]:
        return listed_without(self, "network")


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
