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
from ltinet.plotting import system_response as doors
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.channels import PairSelection, peak_gains, select_pairs
from ltinet.plotting.figures import add_grid, draw_placeholder, get_figure
from ltinet.plotting.frequency_response import draw_bode, draw_magnitude
from ltinet.plotting.layers import draw_network_sparsity, draw_network_spectrum, draw_sparsity, draw_spectrum
from ltinet.plotting.protocols import PlottableForm, PlottableNetwork, PlottableNetworkSystem, PlottableSystem
from ltinet.plotting.system_response import OptionalNames, ResponsePlotter
from ltinet.plotting.time_response import first_visible_time, needs_log_axis, set_time_axis, time_label
from ltinet.plotting.tradeoff import draw_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# MERGED ltinet.plotting.plots
# A network or a system on one slide of 16:9.

SLIDE_SIZE = (40.0 / 3.0, 7.5)
"""Width and height in inches: 16:9, as slides are."""
_MAX_PANEL_LINES = 5  # of a panel on a slide


def draw_network_overview(network: PlottableNetwork, answers: ResponsePlotter, page: "Figure | SubFigure") -> None:
    """Neurons in their layers at the left; at the right poles, connections, step response and gain."""
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
    if not _has_ends(answers):
        for axes in panels[1]:
            draw_placeholder(axes, "no inputs or no outputs")
        return
    omega, H = answers.at(None)
    shown = _pairs(peak_gains(H), answers)
    _draw_steps(panels[1, 0], answers, shown)
    panels[1, 1].set_title("gain", fontsize="medium")
    panels[1, 1].set_xlabel("frequency (rad/time)")
    draw_magnitude(panels[1, 1], omega, H, shown)
    shown.add_key_below(right)


def draw_system_overview(answers: ResponsePlotter, page: "Figure | SubFigure") -> None:
    """Magnitude and phase at the left; step response and poles at the right."""
    left, right = page.subfigures(1, 2, width_ratios=(1.1, 1.0), squeeze=False)[0]
    system = answers.system
    poles = system.poles()
    ends = f"{format_count(system.n_inputs, 'input')} → {format_count(system.n_outputs, 'output')}"
    page.suptitle(f"{ends}, {format_count(len(poles), 'pole')}", fontsize="large")
    upper, lower = right.subplots(2, 1)
    draw_spectrum([poles], key=False, ax=lower)
    lower.set_title("poles", fontsize="medium")
    if not _has_ends(answers):
        for axes in (left.subplots(), upper):
            draw_placeholder(axes, "no inputs or no outputs")
        return
    omega, H = answers.at(None)
    shown = _pairs(peak_gains(H), answers)
    draw_bode(
        omega, H, pairs=shown.chosen, names=answers.names, input_names=answers.input_names, delays=answers.delays,
        figure=left,
    )  # fmt: skip
    _draw_steps(upper, answers, shown)


def _draw_steps(axes: "Axes", answers: ResponsePlotter, shown: PairSelection) -> None:
    """Step responses on one pair of axes, and the gains at rest."""
    gains = answers.system.dcgain()
    times, responses = answers.steps_of(shown.chosen)
    logarithmic = needs_log_axis(times)
    kept = slice(1 if logarithmic else 0, None)
    for (output, column), values, (colour, dashes) in zip(shown.chosen, responses, shown.styles, strict=True):
        if np.isfinite(gains[output, column]):
            axes.axhline(gains[output, column], color="0.7", linestyle="--", linewidth=0.8)
        axes.plot(times[kept], values[kept], color=colour, linestyle=dashes, linewidth=1.4)
    set_time_axis(axes, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xlim(left=first_visible_time(times, np.stack(responses)))
    axes.set_title("step response", fontsize="medium")
    axes.set_ylabel("output")
    axes.set_xlabel(time_label(logarithmic=logarithmic))
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)


def _pairs(sizes: Array, answers: ResponsePlotter) -> PairSelection:
    return select_pairs(sizes, names=answers.names, input_names=answers.input_names, most=_MAX_PANEL_LINES)


def _has_ends(answers: ResponsePlotter) -> bool:
    return answers.system.n_inputs > 0 and answers.system.n_outputs > 0


# MERGED ltinet.plotting.plots
# What stands behind `net.plot`, `system.plot` and `form.plot`: one line for every drawing.


@final
@dataclass(frozen=True)
class NetworkPlots:
    """Drawings of a network: `net.plot()` is an overview, fit for a slide, and each of these a drawing alone.

    They take the Axes, or those of several panels the empty Figure, to draw on, or make a new one, and return the Axes.
    """

    network: PlottableNetworkSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw neurons, poles, connections, step response and gain on one slide of 16:9, and return its figure."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
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
    def _answers(self) -> ResponsePlotter:
        return ResponsePlotter(self.network, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return dir_without(self, "network", "frequencies", "names", "input_names")


@final
@dataclass(frozen=True)
class SystemPlots:
    """Drawings of a system: `system.plot()` is an overview, fit for a slide, and each of these a drawing alone."""

    system: PlottableSystem
    frequencies: Callable[[], Array]
    names: OptionalNames = None
    input_names: OptionalNames = None

    def __call__(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
        """Draw magnitude, phase, step response and poles on one slide of 16:9, and return its figure."""
        page = get_figure(figure, width=SLIDE_SIZE[0], height=SLIDE_SIZE[1])
        draw_system_overview(self._answers, page)
        return page

    def spectrum(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles."""
        return draw_spectrum([self.system.poles()], ax=ax)

    bode, nyquist, step, impulse = doors.bode, doors.nyquist, doors.step, doors.impulse

    @property
    def _answers(self) -> ResponsePlotter:
        return ResponsePlotter(self.system, self.frequencies, self.names, self.input_names)

    def __dir__(self) -> list[str]:
        return dir_without(self, "system", "frequencies", "names", "input_names")


@final
@dataclass(frozen=True)
class BlockDiagonalPlots:
    """Drawings of a block-diagonal form; each takes the Axes to draw on, or makes a figure, and returns the Axes."""

    form: PlottableForm

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
        return dir_without(self, "form")
