"""Plot objects behind `net.plot`, `system.plot` and `form.plot`, and their overviews on one 16:9 page.

Every method takes the axes, or for several panels the empty figure, to draw on, makes new ones if there are none,
and returns the axes. Calling the object draws the overview.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ltinet._util.display import dir_without
from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.plotting import system_response
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.channels import PairSelection, select_pairs
from ltinet.plotting.figures import add_grid, draw_placeholder, get_figure
from ltinet.plotting.frequency_response import draw_bode, draw_magnitude, peak_gains
from ltinet.plotting.layers import draw_network_sparsity, draw_network_spectrum, draw_sparsity, draw_spectrum
from ltinet.plotting.protocols import PlottableForm, PlottableNetwork, PlottableNetworkSystem, PlottableSystem
from ltinet.plotting.system_response import OptionalNames, ResponsePlotter
from ltinet.plotting.time_response import first_visible_time, needs_log_axis, set_time_axis, time_label
from ltinet.plotting.tradeoff import draw_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Overviews on one page.

SLIDE_SIZE = (40.0 / 3.0, 7.5)
"""Width and height in inches: 16:9, as slides are."""
_MAX_PANEL_LINES = 5  # of a panel of an overview


def draw_network_overview(network: PlottableNetwork, plotter: ResponsePlotter, page: "Figure | SubFigure") -> None:
    """Draw neurons in their layers at the left, and poles, connections, step response and gain at the right."""
    left, right = page.subfigures(1, 2, width_ratios=(1.0, 1.15), squeeze=False)[0]
    n_neurons, n_layers = sum(layer.n_neurons for layer in network.layers), len(network.layers)
    ends = f"{format_count(network.n_inputs, 'input')} → {format_count(network.n_outputs, 'output')}"
    page.suptitle(
        f"{ends} through {format_count(n_neurons, 'neuron')} in {format_count(n_layers, 'layer')}", fontsize="large"
    )
    draw_architecture(network, ax=left.subplots())
    panels = right.subplots(2, 2, gridspec_kw={"hspace": 0.06, "wspace": 0.06})
    draw_network_spectrum(network, key=False, ax=panels[0, 0])
    panels[0, 0].set_title("poles", fontsize="medium")
    draw_network_sparsity(network, key=False, ax=panels[0, 1])
    if not _has_channels(plotter):
        for axes in panels[1]:
            draw_placeholder(axes, "no inputs or no outputs")
        return
    omega, H = plotter.at(None)
    selection = _pairs(peak_gains(H), plotter)
    _draw_steps(panels[1, 0], plotter, selection)
    panels[1, 1].set_title("gain", fontsize="medium")
    panels[1, 1].set_xlabel("frequency (rad/time)")
    draw_magnitude(panels[1, 1], omega, H, selection)
    selection.add_key_below(right)


def draw_system_overview(plotter: ResponsePlotter, page: "Figure | SubFigure") -> None:
    """Draw magnitude and phase at the left, and step response and poles at the right."""
    left, right = page.subfigures(1, 2, width_ratios=(1.1, 1.0), squeeze=False)[0]
    system = plotter.system
    poles = system.poles()
    ends = f"{format_count(system.n_inputs, 'input')} → {format_count(system.n_outputs, 'output')}"
    page.suptitle(f"{ends}, {format_count(len(poles), 'pole')}", fontsize="large")
    upper, lower = right.subplots(2, 1)
    draw_spectrum([poles], key=False, ax=lower)
    lower.set_title("poles", fontsize="medium")
    if not _has_channels(plotter):
        for axes in (left.subplots(), upper):
            draw_placeholder(axes, "no inputs or no outputs")
        return
    omega, H = plotter.at(None)
    selection = _pairs(peak_gains(H), plotter)
    draw_bode(
        omega, H, pairs=selection.chosen, names=plotter.names, input_names=plotter.input_names, delays=plotter.delays,
        figure=left,
    )  # fmt: skip
    _draw_steps(upper, plotter, selection)


def _draw_steps(axes: "Axes", plotter: ResponsePlotter, selection: PairSelection) -> None:
    """Draw step responses and DC gains on one pair of axes."""
    gains = plotter.system.dcgain()
    times, responses = plotter.steps_of(selection.chosen)
    logarithmic = needs_log_axis(times)
    visible = slice(1 if logarithmic else 0, None)  # a logarithmic axis cannot show 0
    for (output, column), values, (colour, dashes) in zip(selection.chosen, responses, selection.styles, strict=True):
        if np.isfinite(gains[output, column]):
            axes.axhline(gains[output, column], color="0.7", linestyle="--", linewidth=0.8)
        axes.plot(times[visible], values[visible], color=colour, linestyle=dashes, linewidth=1.4)
    set_time_axis(axes, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xlim(left=first_visible_time(times, np.stack(responses)))
    axes.set_title("step response", fontsize="medium")
    axes.set_ylabel("output")
    axes.set_xlabel(time_label(logarithmic=logarithmic))
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)


def _pairs(sizes: Array, plotter: ResponsePlotter) -> PairSelection:
    return select_pairs(sizes, names=plotter.names, input_names=plotter.input_names, max_pairs=_MAX_PANEL_LINES)


def _has_channels(plotter: ResponsePlotter) -> bool:
    return plotter.system.n_inputs > 0 and plotter.system.n_outputs > 0


# Plot objects.


@final
@dataclass(frozen=True)
class NetworkPlots:
    """Plots of a network; `net.plot()` draws an overview on one 16:9 page.

    Parameters
    ----------
    network : DynamicNetwork
        Network to draw.
    frequencies : callable
        Function that returns default frequencies.
    names, input_names : sequence of str, optional
        Names of outputs and inputs.
    """

    network: PlottableNetworkSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw neurons, poles, connections, step response and gain on one 16:9 page."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
        draw_network_overview(self.network, self._plotter, page)
        return page

    def overview(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
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

    def architecture(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw inputs, neurons in their horizontal layers, and outputs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_architecture(self.network, ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles of all neurons, colored by layer.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_network_spectrum(self.network, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw neurons as dots and connections as squares; the title counts nonzero weights.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_network_sparsity(self.network, ax=ax)

    bode, nyquist, step, impulse = (
        system_response.bode,
        system_response.nyquist,
        system_response.step,
        system_response.impulse,
    )

    @property
    def _plotter(self) -> ResponsePlotter:
        return ResponsePlotter(self.network, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return dir_without(self, "network", "frequencies", "names", "input_names")


@final
@dataclass(frozen=True)
class SystemPlots:
    """Plots of a system; `system.plot()` draws an overview on one 16:9 page.

    Parameters
    ----------
    system : StateSpace
        System to draw.
    frequencies : callable
        Function that returns default frequencies.
    names, input_names : sequence of str, optional
        Names of outputs and inputs.
    """

    system: PlottableSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw magnitude, phase, step response and poles on one 16:9 page."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
        draw_system_overview(self._plotter, page)
        return page

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_spectrum([self.system.poles()], ax=ax)

    bode, nyquist, step, impulse = (
        system_response.bode,
        system_response.nyquist,
        system_response.step,
        system_response.impulse,
    )

    @property
    def _plotter(self) -> ResponsePlotter:
        return ResponsePlotter(self.system, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return dir_without(self, "system", "frequencies", "names", "input_names")


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

    def tradeoff(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw cond(T) against the number of layers for all partitions of the search, and the selected form.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        finite = [pair for pair in self.form.tradeoff if np.isfinite(pair[1])]  # cond(T) is infinite for a singular T
        budget = self.form.budget if self.form.budget is not None and np.isfinite(self.form.budget) else None
        return draw_condition(finite, budget=budget, chosen=len(self.form.block_sizes), ax=ax)

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the eigenvalues, colored by block.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return draw_spectrum(self.form.eigenvalues, ax=ax)

    def sparsity(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the nonzero entries of the block-diagonal matrix.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        blocks = [self.form.block(index) != 0.0 for index in range(len(self.form.block_sizes))]
        axes = draw_sparsity([block | np.eye(len(block), dtype=bool) for block in blocks], unit="state", ax=ax)
        count = sum(int(np.count_nonzero(block)) for block in blocks)
        axes.set_title(f"{count} of {sum(self.form.block_sizes) ** 2} entries are not zero", fontsize="medium")
        return axes

    def __dir__(self) -> list[str]:
        return dir_without(self, "form")
