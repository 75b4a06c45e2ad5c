"""How much work each neuron and each layer is: evaluations of right-hand sides that an ODE solver asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new, count_whole_numbers, write_instead
from ltinet.plotting.colours import add_layer_key, layer_colours
from ltinet.plotting.points import scatter_by_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Counts = NDArray[np.float64]
_COST = "one evaluation of a neuron: a few numbers; one of the full system: an n × n product"


def draw_evaluations_per_neuron(
    evaluations: Sequence[ArrayLike], *, full_system: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the evaluations of every neuron, given per layer as in `sol.stats["evaluations"]`.

    `full_system` draws the evaluations that the same solver needs for the system in one piece.
    """
    layers = _checked(evaluations, full_system)
    axes = axes_or_new(ax)
    sizes = [len(own) for own in layers]
    layer_of = np.repeat(np.arange(len(layers)), sizes)
    counts = np.concatenate([*layers, np.empty(0)])
    scatter_by_layer(axes, np.arange(len(counts)), counts, layer_of=layer_of, n_layers=len(layers))
    alone = max(sizes, default=0) <= 1
    axes.set_xlabel("neuron, each a layer of its own" if alone else "neuron, layer after layer")
    axes.set_ylabel("function evaluations")
    if not alone:
        add_layer_key(axes, len(layers))
    _finish(axes, counts, full_system)
    return axes


def draw_evaluations_per_layer(
    evaluations: Sequence[ArrayLike], *, full_system: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the evaluations of each layer, averaged over its neurons; arguments as in `draw_evaluations_per_neuron`."""
    layers = _checked(evaluations, full_system)
    axes = axes_or_new(ax)
    means = np.array([np.mean(own) if len(own) else 0.0 for own in layers])
    width = 0.8 if len(layers) <= 40 else 1.0  # many thin bars with gaps between would flicker
    colours = list(layer_colours(len(layers)))  # matplotlib 3.8.0 takes a tuple of two for a colour and its opacity
    axes.bar(np.arange(len(layers)), means, width=width, color=colours)
    axes.set_xlabel("layer")
    axes.set_ylabel("function evaluations, mean over neurons")
    _finish(axes, means, full_system)
    if 0 < len(layers) <= 20:
        axes.set_xticks(range(len(layers)))
    return axes


def _checked(evaluations: Sequence[ArrayLike], full_system: int | None) -> list[Counts]:
    try:
        layers = [np.asarray(own, dtype=np.float64) for own in evaluations]
    except (TypeError, ValueError):
        layers = [np.empty((0, 0))]
    if any(own.ndim != 1 for own in layers):
        raise PlottingError('evaluations must be one list of counts per layer, such as sol.stats["evaluations"]')
    if any(np.any(~np.isfinite(own) | (own < 0.0)) for own in layers):
        raise PlottingError("evaluations hold numbers that are no counts; give finite numbers, zero or more")
    if full_system is not None and not 0 <= full_system < np.inf:
        raise PlottingError(f"full_system is {full_system}; give the number of its evaluations")
    return layers


def _finish(axes: "Axes", counts: Counts, full_system: int | None) -> None:
    """From zero, so that heights compare, with room for the line of the full system and its legend."""
    if len(counts) == 0:
        write_instead(axes, "no neurons: a static gain")
        return
    highest = max(float(np.max(counts)), 1.0)
    if full_system is not None:
        label = f"full system: {full_system}"
        axes.axhline(full_system, color="0.25", linestyle="--", linewidth=1.2, label=label)
        highest = max(highest, full_system)
        axes.set_title(_COST, fontsize="small", color="0.25")
        layer_key = axes.get_legend()
        axes.legend(fontsize="small", loc="upper right")
        if layer_key is not None:  # axes have one legend; the first stays as an ordinary artist
            axes.add_artist(layer_key)
            layer_key.set_clip_on(False)  # what is clipped to the axes gets no room beside them
    axes.set_ylim(0.0, 1.18 * highest if full_system is not None else 1.06 * highest)
    count_whole_numbers(axes.xaxis)
