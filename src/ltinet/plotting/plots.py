"""Plot objects behind `net.plot`, `system.plot` and `form.plot`, and their overviews on one 16:9 page.

Every method takes the axes, or for several panels the empty figure, to draw on, makes new ones if there are none,
and returns the matplotlib Figure, whose `axes` are the panels. Calling the object draws the overview.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, final

import numpy as np

from ltinet._util.display import dir_without
from ltinet._util.text import format_count
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.figures import draw_placeholder, figure_of, get_figure
from ltinet.plotting.frequency_response import draw_bode, draw_magnitude
from ltinet.plotting.layers import draw_network_sparsity, draw_network_spectrum, draw_sparsity, draw_spectrum
from ltinet.plotting.protocols import PlottableForm, PlottableNetworkSystem, PlottableProductNetwork
from ltinet.plotting.system_response import ResponsePlots
from ltinet.plotting.tradeoff import draw_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SLIDE_SIZE = (40.0 / 3.0, 7.5)
"""Width and height in inches: 16:9, as slides are."""


@final
@dataclass(frozen=True)
class NetworkPlots(ResponsePlots):
    """Plots of a network; `net.plot()` draws an overview on one 16:9 page.

    Parameters
    ----------
    system : DynamicNetwork
        Network to draw.
    frequencies : callable
        Function that returns default frequencies.
    names, input_names : sequence of str, optional
        Names of outputs and inputs.
    error : ResponseError, optional
        Error of the frequency response, if the system is a reduced model that stands for a larger one.
    reduce : callable, optional
        Function that reduces a system that is too large; it is called when something is drawn.
    """

    system: PlottableNetworkSystem

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw neurons, poles, connections, step response and gain on one 16:9 page."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
        network = self.system
        left, right = page.subfigures(1, 2, width_ratios=(1.0, 1.15), squeeze=False)[0]
        n_neurons, n_layers = sum(layer.n_neurons for layer in network.layers), len(network.layers)
        ends = f"{format_count(network.n_inputs, 'input')} → {format_count(network.n_outputs, 'output')}"
        title = f"{ends} through {format_count(n_neurons, 'neuron')} in {format_count(n_layers, 'layer')}"
        page.suptitle(title, fontsize="large")
        draw_architecture(network, ax=left.subplots())
        panels = right.subplots(2, 2, gridspec_kw={"hspace": 0.06, "wspace": 0.06})
        draw_network_spectrum(network, key=False, ax=panels[0, 0])
        panels[0, 0].set_title("poles", fontsize="medium")
        draw_network_sparsity(network, key=False, ax=panels[0, 1])
        if not self._has_channels:
            for axes in panels[1]:
                draw_placeholder(axes, "no inputs or no outputs")
            return page.canvas.figure
        omega, H = self._frequency_response(None)
        shown = self._largest_pairs(H)
        self._draw_steps(panels[1, 0], shown)
        panels[1, 1].set_title("gain", fontsize="medium")
        panels[1, 1].set_xlabel("frequency (rad/time)")
        draw_magnitude(panels[1, 1], omega, H, shown)
        shown.add_key_below(right)
        return page.canvas.figure

    def overview(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw the overview, as `net.plot()` does.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return self(figure=figure)

    def architecture(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw inputs, neurons in their horizontal layers, and outputs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(draw_architecture(self.system, ax=ax))

    def spectrum(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the poles of all neurons, colored by layer.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(draw_network_spectrum(self.system, ax=ax))

    def sparsity(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw neurons as dots and connections as squares; the title counts nonzero weights.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(draw_network_sparsity(self.system, ax=ax))


@final
@dataclass(frozen=True)
class ProductNetworkPlots:
    """Plots of a network with product neurons.

    Parameters
    ----------
    network : NonlinearNetwork
        Network to draw.
    """

    network: PlottableProductNetwork

    def __call__(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the architecture."""
        return self.architecture(ax=ax)

    def architecture(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw inputs, neurons in their horizontal layers, outputs, and the product neurons in a band below the layers.

        Lines with arrows lead from the states of the layers to the products, and from the products back to the layers.
        Scheduling signals are white squares.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(draw_architecture(self.network.linear, products=self.network.products, ax=ax))

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> NoReturn:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if hasattr(NetworkPlots, name) and not name.startswith("_"):
                text += (
                    f"; {name} is a property of linear networks: net.linear.plot.{name} leaves the products out, and "
                    f"ltinet.construct(model.linearize(x0, u0)).plot.{name} belongs to an equilibrium"
                )
            raise AttributeError(text, name=name, obj=self)


@final
@dataclass(frozen=True)
class SystemPlots(ResponsePlots):
    """Plots of a system; `system.plot()` draws an overview on one 16:9 page.

    Parameters
    ----------
    system : StateSpace
        System to draw.
    frequencies : callable
        Function that returns default frequencies.
    names, input_names : sequence of str, optional
        Names of outputs and inputs.
    error : ResponseError, optional
        Error of the frequency response, if the system is a reduced model that stands for a larger one.
    reduce : callable, optional
        Function that reduces a system that is too large; it is called when something is drawn.
    """

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw magnitude, phase, step response and poles on one 16:9 page."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
        left, right = page.subfigures(1, 2, width_ratios=(1.1, 1.0), squeeze=False)[0]
        system = self._drawn.system
        poles = system.poles()
        ends = f"{format_count(system.n_inputs, 'input')} → {format_count(system.n_outputs, 'output')}"
        page.suptitle(f"{ends}, {format_count(len(poles), 'pole')}", fontsize="large")
        upper, lower = right.subplots(2, 1)
        draw_spectrum([poles], key=False, ax=lower)
        lower.set_title("poles" if self._drawn.error is None else "poles of the reduced model", fontsize="medium")
        if not self._has_channels:
            for axes in (left.subplots(), upper):
                draw_placeholder(axes, "no inputs or no outputs")
            return page.canvas.figure
        omega, H = self._frequency_response(None)
        shown = self._largest_pairs(H)
        draw_bode(
            omega, H, pairs=shown.chosen, names=self.names, input_names=self.input_names, delays=self._delays,
            error=self._drawn.error, figure=left,
        )  # fmt: skip
        self._draw_steps(upper, shown)
        return page.canvas.figure

    def spectrum(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the poles.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(self._titled(draw_spectrum([self._drawn.system.poles()], ax=ax)))


@final
@dataclass(frozen=True)
class BlockDiagonalPlots:
    """Plots of a block-diagonal form.

    Parameters
    ----------
    form : BlockDiagonalForm
        Form to draw.
    """

    form: PlottableForm

    def tradeoff(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw cond(T) against the number of layers for all partitions of the search, and the selected form.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        finite = [pair for pair in self.form.tradeoff if np.isfinite(pair[1])]  # cond(T) is infinite for a singular T
        budget = self.form.budget if self.form.budget is not None and np.isfinite(self.form.budget) else None
        return figure_of(draw_condition(finite, budget=budget, chosen=len(self.form.block_sizes), ax=ax))

    def spectrum(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the eigenvalues, colored by block.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return figure_of(draw_spectrum(self.form.eigenvalues, ax=ax))

    def sparsity(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the nonzero entries of the block-diagonal matrix.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        blocks = [self.form.block(index) != 0.0 for index in range(len(self.form.block_sizes))]
        axes = draw_sparsity([block | np.eye(len(block), dtype=bool) for block in blocks], unit="state", ax=ax)
        count = sum(int(np.count_nonzero(block)) for block in blocks)
        axes.set_title(f"{count} of {sum(self.form.block_sizes) ** 2} entries are not zero", fontsize="medium")
        return figure_of(axes)

    def __dir__(self) -> list[str]:
        return dir_without(self, "form")
