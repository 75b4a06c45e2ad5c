"""A network or a system on one slide of 16:9."""

from typing import TYPE_CHECKING

import numpy as np

from ltinet.arrays import Array
from ltinet.plotting.answers import Answers
from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.bode import draw_bode, draw_magnitude
from ltinet.plotting.canvas import add_grid, write_instead
from ltinet.plotting.drawn import DrawnNetwork
from ltinet.plotting.network_pattern import draw_network_sparsity, draw_network_spectrum
from ltinet.plotting.pairs import Pairs, pairs_of, peaks_of
from ltinet.plotting.response_grid import first_shown, is_logarithmic, set_time_axis, time_label
from ltinet.plotting.spectrum import draw_spectrum
from ltinet.shown import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SLIDE = (40.0 / 3.0, 7.5)
"""Width and height in inches: 16:9, as slides are."""
_LINES = 5  # of a panel on a slide


def draw_network_overview(network: DrawnNetwork, answers: Answers, page: "Figure | SubFigure") -> None:
    """Neurons in their layers at the left; at the right poles, connections, step response and gain."""
    left, right = page.subfigures(1, 2, width_ratios=(1.0, 1.15), squeeze=False)[0]
    n_neurons, n_layers = sum(layer.n_neurons for layer in network.layers), len(network.layers)
    ends = f"{count_of(network.n_inputs, 'input')} → {count_of(network.n_outputs, 'output')}"
    page.suptitle(f"{ends} through {count_of(n_neurons, 'neuron')} in {count_of(n_layers, 'layer')}", fontsize="large")
    draw_architecture(network, ax=left.subplots())
    panels = right.subplots(2, 2, gridspec_kw={"hspace": 0.06, "wspace": 0.06})
    draw_network_spectrum(network, key=False, ax=panels[0, 0])
    panels[0, 0].set_title("poles", fontsize="medium")
    draw_network_sparsity(network, key=False, ax=panels[0, 1])
    if not _has_ends(answers):
        for axes in panels[1]:
            write_instead(axes, "no inputs or no outputs")
        return
    omega, H = answers.at(None)
    shown = _pairs(peaks_of(H), answers)
    _draw_steps(panels[1, 0], answers, shown)
    panels[1, 1].set_title("gain", fontsize="medium")
    panels[1, 1].set_xlabel("frequency (rad/time)")
    draw_magnitude(panels[1, 1], omega, H, shown)
    shown.add_key_below(right)


def draw_system_overview(answers: Answers, page: "Figure | SubFigure") -> None:
    """Magnitude and phase at the left; step response and poles at the right."""
    left, right = page.subfigures(1, 2, width_ratios=(1.1, 1.0), squeeze=False)[0]
    system = answers.system
    poles = system.poles()
    ends = f"{count_of(system.n_inputs, 'input')} → {count_of(system.n_outputs, 'output')}"
    page.suptitle(f"{ends}, {count_of(len(poles), 'pole')}", fontsize="large")
    upper, lower = right.subplots(2, 1)
    draw_spectrum([poles], key=False, ax=lower)
    lower.set_title("poles", fontsize="medium")
    if not _has_ends(answers):
        for axes in (left.subplots(), upper):
            write_instead(axes, "no inputs or no outputs")
        return
    omega, H = answers.at(None)
    shown = _pairs(peaks_of(H), answers)
    draw_bode(
        omega, H, pairs=shown.chosen, names=answers.names, input_names=answers.input_names, delays=answers.delays,
        figure=left,
    )  # fmt: skip
    _draw_steps(upper, answers, shown)


def _draw_steps(axes: "Axes", answers: Answers, shown: Pairs) -> None:
    """Step responses on one pair of axes, and the gains at rest."""
    gains = answers.system.dcgain()
    times, responses = answers.steps_of(shown.chosen)
    logarithmic = is_logarithmic(times)
    kept = slice(1 if logarithmic else 0, None)
    for (output, column), values, (colour, dashes) in zip(shown.chosen, responses, shown.styles, strict=True):
        if np.isfinite(gains[output, column]):
            axes.axhline(gains[output, column], color="0.7", linestyle="--", linewidth=0.8)
        axes.plot(times[kept], values[kept], color=colour, linestyle=dashes, linewidth=1.4)
    set_time_axis(axes, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xlim(left=first_shown(times, np.stack(responses)))
    axes.set_title("step response", fontsize="medium")
    axes.set_ylabel("output")
    axes.set_xlabel(time_label(logarithmic=logarithmic))
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)


def _pairs(sizes: Array, answers: Answers) -> Pairs:
    return pairs_of(sizes, names=answers.names, input_names=answers.input_names, most=_LINES)


def _has_ends(answers: Answers) -> bool:
    return answers.system.n_inputs > 0 and answers.system.n_outputs > 0
