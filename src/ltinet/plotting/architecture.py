"""The network as the paper draws it: inputs at the left, neurons in their horizontal layers, outputs at the right."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ltinet.plotting.arrangement import Arrangement, Band, arrange
from ltinet.plotting.canvas import axes_or_new
from ltinet.plotting.colours import layer_colours
from ltinet.plotting.drawn import DrawnNetwork
from ltinet.plotting.glyphs import RADIUS, add_balls
from ltinet.shown import count_of
from ltinet.tolerances import EPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NODES = 5  # inputs or outputs drawn one by one
_BOX = 0.22  # half the side of the square that stands for an input or an output
_RAMP = 3.0  # length of the strip of colours that stands for all layers
_WIRE = "0.72"
_INK = "0.25"
_KEY, _PATH = 1.6, 0.9  # heights kept free under the layers for the key and, where there is one, the direct path
_ABOVE = 1.0  # and over them for the names of inputs and outputs
_BESIDE = 1.9  # width kept free beside inputs and outputs for their names
_ASPECT = 0.62  # height over width of the layers on a figure of their own
_WIDTH, _HEIGHTS = 6.4, (2.0, 7.0)  # of that figure, in inches


def draw_architecture(network: DrawnNetwork, *, ax: "Axes | None" = None) -> "Axes":
    """Draw solid balls for first-order neurons and yin-yang balls for second-order ones, a row for every layer.

    Neurons stand in the order of solution, so that signals run from left to right; lines join neurons whose weight is
    not zero. Every neuron sees the inputs and is seen by the outputs: a line to its layer stands for that. The dashed
    line is the direct path Ψ u. Networks of more than twelve layers are condensed as `arrangement` says.
    """
    arrangement = arrange(
        [layer.n_neurons for layer in network.layers],
        connected=[bool(layer.edges) for layer in network.layers],
        aspect=_ASPECT if ax is None else _aspect_of(axes_or_new(ax)),
    )
    has_path = _has_direct_path(network)
    width = arrangement.width + 2.0 * _BESIDE
    below = _KEY + (_PATH if has_path else 0.0)
    height = arrangement.height + _ABOVE + below
    axes = axes_or_new(ax, width=_WIDTH, height=float(np.clip(_WIDTH * height / width, *_HEIGHTS)))
    colours = layer_colours(len(network.layers))
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-_BESIDE, arrangement.width + _BESIDE)
    axes.set_ylim(-below, arrangement.height + _ABOVE)
    scale = _points_per_unit(axes)
    font = float(np.clip(0.55 * scale, 6.5, 9.0))  # names fit into the places that the arrangement keeps for them
    for band in arrangement.bands:
        _draw_band(axes, band, arrangement, colours=colours, font=font)
        if band.layer is not None:
            shown = {ball.neuron: ball.x for ball in band.balls}
            edges = [edge for edge in network.layers[band.layer].edges if shown.keys() >= set(edge)]
            _draw_connections(axes, edges, shown, band=band, colour=colours[band.layer])
    _draw_neurons(axes, network, arrangement, colours)
    _draw_ends(axes, network, arrangement, has_path=has_path, font=font)
    place = (arrangement.width / 2.0, 0.5 * _KEY - below)
    _draw_key(axes, network, place, ramp=colours if arrangement.is_condensed else (), font=font, scale=scale)
    return axes


def _aspect_of(axes: "Axes") -> float:
    """Height over width that the layers may take; what stands below and above takes the rest."""
    box = axes.get_window_extent()
    return 0.8 * float(box.height / box.width)


def _points_per_unit(axes: "Axes") -> float:
    """The scale of the drawing once it fits into its axes."""
    box, (left, right), (low, high) = axes.get_window_extent(), axes.get_xlim(), axes.get_ylim()
    pixels = min(box.width / (right - left), box.height / (high - low))
    return float(pixels) * 72.0 / axes.figure.dpi


def _draw_band(axes: "Axes", band: Band, arrangement: Arrangement, *, colours: Sequence[str], font: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = "0.5" if band.layer is None else colours[band.layer]
    size = (arrangement.right - arrangement.left, band.top - band.bottom)
    style = "round,pad=0,rounding_size=0.3"
    shade = FancyBboxPatch((arrangement.left, band.bottom), *size, boxstyle=style, color=colour, alpha=0.1, linewidth=0)
    axes.add_patch(shade)
    label = band.label
    axes.text(label.x, label.y, label.text, fontsize=font, va="center", ha="left", color=_INK)
    for words in band.words:
        axes.text(words.x, words.y, words.text, fontsize=font, va="center", ha="center", color=_INK)


def _draw_connections(
    axes: "Axes", edges: Sequence[tuple[int, int]], shown: dict[int, float], *, band: Band, colour: str
) -> None:
    """Arrows between neighbours, arcs above the balls between others, higher the farther they reach."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.path import Path

    if not edges:
        return
    y = band.balls[0].y
    longest = max(shown[i] - shown[j] for i, j in edges)
    curves: list[Path] = []
    heads = []
    for i, j in edges:
        start, end = shown[j], shown[i]
        if end - start < 1.5:
            tip = end - RADIUS
            curves.append(Path([(start + RADIUS, y), (tip - 0.1, y)]))
            heads.append([(tip, y), (tip - 0.16, y + 0.09), (tip - 0.16, y - 0.09)])
        else:
            peak = y + RADIUS + 1.8 * band.room * (end - start) / longest
            path = [(start, y + RADIUS), ((start + end) / 2.0, peak), (end, y + RADIUS)]
            curves.append(Path(path, [Path.MOVETO, Path.CURVE3, Path.CURVE3]))
    strength = 0.8 if len(edges) <= 45 else 0.45
    axes.add_collection(
        PathCollection(curves, facecolors="none", edgecolors=colour, linewidths=0.7, alpha=strength, zorder=2)
    )
    axes.add_collection(PolyCollection(heads, facecolors=colour, edgecolors="none", zorder=2))


def _draw_neurons(axes: "Axes", network: DrawnNetwork, arrangement: Arrangement, colours: Sequence[str]) -> None:
    balls = [ball for band in arrangement.bands for ball in band.balls]
    second = [bool(network.layers[ball.layer].is_second_order[ball.neuron]) for ball in balls]
    places = [(ball.x, ball.y) for ball in balls]
    add_balls(axes, places, second_order=second, colours=[colours[ball.layer] for ball in balls])


def _draw_ends(axes: "Axes", network: DrawnNetwork, arrangement: Arrangement, *, has_path: bool, font: float) -> None:
    """Inputs, outputs, and the lines between them and the layers."""
    from matplotlib.collections import LineCollection

    middles = [(band.bottom + band.top) / 2.0 for band in arrangement.bands]
    inputs = _draw_nodes(axes, network.n_inputs, "input", x=0.0, middles=middles, font=font)
    outputs = _draw_nodes(axes, network.n_outputs, "output", x=arrangement.width, middles=middles, font=font)
    wires = [[(_BOX, y), (arrangement.left, middle)] for y in inputs for middle in middles]
    wires += [[(arrangement.right, middle), (arrangement.width - _BOX, y)] for y in outputs for middle in middles]
    axes.add_collection(LineCollection(wires, colors=_WIRE, linewidths=0.6, zorder=1))
    if inputs and outputs and has_path:
        x = [0.0, 0.0, arrangement.width, arrangement.width]
        y = [min(inputs) - _BOX, -0.5, -0.5, min(outputs) - _BOX]
        axes.plot(x, y, color=_INK, linewidth=0.8, linestyle="--", zorder=1)
        axes.text(arrangement.width / 2.0, -0.5, "direct path Ψ u", fontsize=font, color=_INK, ha="center", va="center",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip


def _has_direct_path(network: DrawnNetwork) -> bool:
    """Whether Ψ is more than rounding: Ψ = D − φ̇ V, where V is what is left of inputs of the size E/√k (m = 1)."""
    level, n_states = 0.0, 0
    for layer, phi in zip(network.layers, network.Phi, strict=True):
        second = layer.is_second_order
        frequency = np.sqrt(np.abs(layer.K.diagonal()[second]))[:, None]
        inputs = np.abs(layer.V[second]) + np.abs(layer.E[second]) / np.where(frequency > 0.0, frequency, 1.0)
        level += float(np.max(np.abs(phi[:, layer.n_neurons :]) @ inputs, initial=0.0))
        n_states += phi.shape[1]
    return bool(np.max(np.abs(network.Psi), initial=0.0) > n_states * EPS * level)


def _draw_nodes(axes: "Axes", count: int, noun: str, *, x: float, middles: Sequence[float], font: float) -> list[float]:
    """Up to five squares, of more the first two, dots and the last two; their name stands clear of all lines."""
    from matplotlib.patches import Rectangle

    highest, lowest = max(middles, default=1.0), min(middles, default=1.0)
    places = min(count, _NODES)
    step = min(max((highest - lowest + 1.5) / _NODES, 0.7), 2.0)
    heights = [(highest + lowest) / 2.0 + step * ((places - 1) / 2.0 - place) for place in range(places)]
    top = max([highest, *(y + _BOX for y in heights)]) + 0.25
    axes.text(x, top, count_of(count, noun), fontsize=font, color=_INK, ha="center", va="bottom")
    if count > _NODES:
        axes.text(x, heights.pop(2), "⋮", fontsize=1.3 * font, color=_INK, ha="center", va="center")
    for y in heights:
        axes.add_patch(
            Rectangle((x - _BOX, y - _BOX), 2.0 * _BOX, 2.0 * _BOX, facecolor="0.35", edgecolor="none", zorder=3)
        )
    return heights


def _draw_key(
    axes: "Axes",
    network: DrawnNetwork,
    place: tuple[float, float],
    *,
    ramp: Sequence[str],
    font: float,
    scale: float,
) -> None:
    """What the balls and, where rows do not name the layers, their colours mean, side by side around a place."""
    n_second = sum(int(np.count_nonzero(layer.is_second_order)) for layer in network.layers)
    n_first = sum(layer.n_neurons for layer in network.layers) - n_second
    kinds = [(n_first, False, "first-order neuron"), (n_second, True, "second-order neuron")]
    entries = [(count_of(n, name), second) for n, second, name in kinds if n]
    ends = ("layer 0", str(len(ramp) - 1)) if ramp else ("", "")
    n_letters = sum(len(text) for text, _ in entries) + sum(map(len, ends))
    fixed = 0.95 * len(entries) + (_RAMP + 0.6 if ramp else 0.0) + len(entries) - (not ramp)
    # Letters are about 0.55 em wide; a long key on a narrow drawing is written in smaller ones.
    letter = min(0.55 * font / scale, max(2.0 * place[0] + 2.0 * _BESIDE - fixed, 1.0) / max(n_letters, 1))
    font = letter * scale / 0.55
    widths = [0.95 + letter * len(text) for text, _ in entries]
    x, y = place[0] - (fixed + letter * n_letters) / 2.0, place[1]
    for (text, is_second), width in zip(entries, widths, strict=True):
        add_balls(axes, [(x + RADIUS, y)], second_order=[is_second], colours=["0.35"])
        axes.text(x + 0.95, y, text, fontsize=font, color=_INK, ha="left", va="center")
        x += width + 1.0
    if ramp:
        x += letter * len(ends[0])
        axes.text(x, y, ends[0], fontsize=font, color=_INK, ha="right", va="center")
        _draw_ramp(axes, ramp, left=x + 0.3, y=y)
        axes.text(x + _RAMP + 0.6, y, ends[1], fontsize=font, color=_INK, ha="left", va="center")


def _draw_ramp(axes: "Axes", colours: Sequence[str], *, left: float, y: float) -> None:
    """All colours side by side."""
    from matplotlib.collections import PolyCollection

    edges = left + np.linspace(0.0, _RAMP, len(colours) + 1)
    low, high = y - 0.6 * RADIUS, y + 0.6 * RADIUS
    boxes = [[(x0, low), (x1, low), (x1, high), (x0, high)] for x0, x1 in pairwise(edges)]
    axes.add_collection(PolyCollection(boxes, facecolors=list(colours), edgecolors=list(colours), linewidths=0.3))
