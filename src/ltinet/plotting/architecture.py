"""Network diagrams as in the paper: inputs at the left, neurons in horizontal layers, outputs at the right.

A solid ball stands for a first-order neuron, a yin-yang ball for a second-order one, and a cross in a circle, in a band
below the layers, for a product neuron. `arrange_layers` computes
positions only and is shared with the page of the explorer. Up to twelve layers have a row each. Of more, the largest
coupled layers have a row each, and layers of one neuron stand side by side on a grid, one ball for each layer.
Layers and neurons that do not fit are counted in a text, never omitted silently.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ltinet._util.floating_point import EPS
from ltinet._util.text import format_count
from ltinet.plotting.colours import layer_colours
from ltinet.plotting.figures import get_axes
from ltinet.plotting.protocols import PlottableNetwork, PlottableProducts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# Glyphs of neurons.

BALL_RADIUS = 0.38
_EYE = 0.15  # radius of the dots, relative to the ball
_OUTLINE = "0.15"


def add_neuron_glyphs(
    axes: "Axes", positions: Sequence[tuple[float, float]], *, second_order: Sequence[bool], colours: Sequence[str]
) -> None:
    """Draw one ball for each neuron at its place, in the units of the axes."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    ball, teardrop = Path.unit_circle(), _teardrop()
    lower_eye, upper_eye = Path.circle((0.0, -0.5), _EYE), Path.circle((0.0, 0.5), _EYE)
    discs = [_translated_path(ball, x, y) for x, y in positions]
    faces = ["white" if is_second else colour for is_second, colour in zip(second_order, colours, strict=True)]
    centers = [position for position, is_second in zip(positions, second_order, strict=True) if is_second]
    dark = [_translated_path(part, x, y) for x, y in centers for part in (teardrop, upper_eye)]
    dark_colours = np.repeat([colour for colour, second in zip(colours, second_order, strict=True) if second], 2)
    light = [_translated_path(lower_eye, x, y) for x, y in centers]
    axes.add_collection(PathCollection(discs, facecolors=faces, edgecolors="none", zorder=3))
    axes.add_collection(PathCollection(dark, facecolors=dark_colours.tolist(), edgecolors="none", zorder=4))
    axes.add_collection(PathCollection(light, facecolors="white", edgecolors="none", zorder=5))
    axes.add_collection(PathCollection(discs, facecolors="none", edgecolors=_OUTLINE, linewidths=0.6, zorder=6))


def _add_product_glyphs(axes: "Axes", positions: Sequence[tuple[float, float]]) -> None:
    """Draw a cross in a circle for each product neuron."""
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.path import Path

    discs = [_translated_path(Path.unit_circle(), x, y) for x, y in positions]
    axes.add_collection(PathCollection(discs, facecolors="white", edgecolors=_OUTLINE, linewidths=0.8, zorder=4))
    arm = 0.6 * BALL_RADIUS
    lines = [[(x - arm, y - sign * arm), (x + arm, y + sign * arm)] for x, y in positions for sign in (1.0, -1.0)]
    axes.add_collection(LineCollection(lines, colors=_OUTLINE, linewidths=0.8, zorder=5))


def _teardrop() -> "Path":
    """The dark half of a yin-yang of radius one: a half circle, less the upper small disc and with the lower one."""
    from matplotlib.path import Path

    left, right = Path.arc(90.0, 270.0), Path.arc(-90.0, 90.0)
    outside = np.asarray(left.vertices)
    lower = 0.5 * np.asarray(right.vertices) + (0.0, -0.5)
    upper = 0.5 * np.asarray(left.vertices)[::-1] + (0.0, 0.5)
    curves = [Path.CURVE4] * (len(outside) - 1)
    codes = [Path.MOVETO, *curves, Path.LINETO, *[Path.CURVE4] * (len(lower) - 1), Path.LINETO, *curves]
    return Path(np.vstack([outside, lower, upper]), codes)


def _translated_path(path: "Path", x: float, y: float) -> "Path":
    from matplotlib.path import Path

    return Path(BALL_RADIUS * np.asarray(path.vertices) + (x, y), path.codes)


# Positions of neurons.

_ROWS = 12  # layers that have a row each
_COUPLED = 5  # rows of coupled layers where there are more layers than that
_COLUMNS = 24  # balls side by side that remain distinguishable
_PRODUCT_COLUMNS = 12  # product neurons side by side
_GRID_ROWS = 18
_GAP = 3  # columns that the text for omitted neurons takes
_LABEL = 2.6  # width kept free for the name of a layer
_SIDE = 2.6  # distance between inputs or outputs and the layers, where lines fan out
_SHORT_SIDE = 1.4  # the same for a single band
_LEAST_COLUMNS = 3  # of a grid
_BETWEEN = 0.3  # between bands
_MIN_ARC_HEIGHT = 0.7  # of the space above a row for the arcs of its connections
PRODUCTS = -1
"""Number of the band of product neurons, in place of that of a layer."""


@dataclass(frozen=True)
class Ball:
    """Neuron of a layer with its position."""

    layer: int
    neuron: int
    x: float
    y: float


@dataclass(frozen=True)
class TextLabel:
    """Text with its position."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class LayerBand:
    """Box around the neurons of one layer, around many layers of one neuron each, or around the product neurons."""

    layer: int | None
    label: TextLabel
    balls: tuple[Ball, ...]
    words: tuple[TextLabel, ...]
    bottom: float
    top: float
    arc_height: float
    """Height above the balls for the arcs of connections."""


@dataclass(frozen=True)
class Arrangement:
    """Bands from top to bottom between x = `left` and `right`; inputs stand at x = 0, outputs at x = `width`."""

    bands: tuple[LayerBand, ...]
    left: float
    right: float
    width: float
    height: float

    @property
    def is_condensed(self) -> bool:
        """True if layers share a band, so that not every layer is labelled."""
        return any(band.layer is None for band in self.bands)


@dataclass(frozen=True)
class _Plan:
    """Contents of a band before it is placed: rows of (layer, neuron), or texts."""

    layer: int | None
    label: str
    rows: tuple[tuple[tuple[int, int] | str, ...], ...]
    has_arcs: bool = False

    @property
    def columns(self) -> int:
        return max((sum(_width(cell) for cell in row) for row in self.rows), default=0)

    @property
    def height(self) -> float:
        """Height of rows of balls and of the label above a grid, without arcs."""
        return len(self.rows) + (0.2 if _is_labelled_beside(self.layer) else 1.1)


def arrange_layers(
    sizes: Sequence[int], *, connected: Sequence[bool], aspect: float, products: dict[str, int] | None = None
) -> Arrangement:
    """Place the neurons of layers of these sizes, with height over width as near to `aspect` as possible.

    `connected` marks layers whose neurons feed each other: arcs need space above those. `products` has the number of
    product neurons by the kind of their factors.
    """
    layers = [_layer_plan(layer, size, connected=connected[layer]) for layer, size in enumerate(sizes)]
    plans = layers if len(layers) <= _ROWS else _condensed(layers, sizes, aspect=aspect)
    if products and any(products.values()):
        plans = [*plans, _products_plan(products)]
    columns = max((plan.columns for plan in plans), default=0)
    side = _SIDE if len(plans) > 1 else _SHORT_SIDE
    width = 2.0 * side + _LABEL + max(columns, 3) + 0.4
    fixed = sum(plan.height + _BETWEEN for plan in plans)
    arcs = sum(plan.has_arcs for plan in plans)
    arc_height = min(max((aspect * width - fixed) / max(arcs, 1), _MIN_ARC_HEIGHT), max(0.3 * columns, _MIN_ARC_HEIGHT))
    height = fixed + arcs * arc_height
    width = max(width, height / aspect)
    left, right = side, width - side
    bands, top = [], height
    for plan in plans:
        band = _place_band(plan, left=left, right=right, top=top, arc_height=arc_height if plan.has_arcs else 0.0)
        bands.append(band)
        top = band.bottom - _BETWEEN
    return Arrangement(tuple(bands), left, right, width, height)


def _layer_plan(layer: int, size: int, *, connected: bool) -> _Plan:
    """Return one row in reverse order of solution, so that signals run from left to right."""
    row = _shortened([(layer, neuron) for neuron in range(size - 1, -1, -1)], _COLUMNS)
    return _Plan(layer, f"layer {layer}", (row,), has_arcs=connected and size > 2)


def _products_plan(counts: dict[str, int]) -> _Plan:
    """Return one row of product neurons, with the kinds of their factors above it."""
    row = _shortened([(PRODUCTS, index) for index in range(sum(counts.values()))], _PRODUCT_COLUMNS)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return _Plan(PRODUCTS, f"products: {kinds}", (row,))


def _shortened(cells: list[tuple[int, int]], columns: int) -> tuple[tuple[int, int] | str, ...]:
    """Return the first and the last cells of a row, with a text for those between them, if there are too many."""
    if len(cells) <= columns:
        return tuple(cells)
    kept = (columns - _GAP) // 2
    return (*cells[:kept], f"… {len(cells) - 2 * kept} …", *cells[-kept:])


def _is_labelled_beside(layer: int | None) -> bool:
    """Return whether the label of a band stands beside its neurons and not above them."""
    return layer is not None and layer != PRODUCTS


def _condensed(layers: Sequence[_Plan], sizes: Sequence[int], *, aspect: float) -> list[_Plan]:
    coupled = [layer for layer, size in enumerate(sizes) if size > 1]
    singles = [layer for layer, size in enumerate(sizes) if size == 1]
    largest = sorted(sorted(coupled, key=lambda layer: -sizes[layer])[:_COUPLED])
    plans = [layers[layer] for layer in largest]
    rest = [sizes[layer] for layer in coupled if layer not in largest]
    if rest:
        between = f"{min(rest)} to {max(rest)}" if min(rest) < max(rest) else f"{min(rest)}"
        plans.append(_Plan(None, f"… and {format_count(len(rest), 'more layer')} of {between} neurons each", ()))
    if singles:
        above = sum(plan.height + _BETWEEN for plan in plans)
        least = max((plan.columns for plan in plans), default=_LEAST_COLUMNS)
        plans.append(_grid_plan(singles, columns=_grid_columns(len(singles), least, above=above, aspect=aspect)))
    return plans


def _grid_columns(count: int, min_columns: int, *, above: float, aspect: float) -> int:
    """Return the number of columns that fits the aspect ratio best, below bands of height `above`."""
    side = _SIDE if above else _SHORT_SIDE

    def distance(columns: int) -> float:
        rows = min(math.ceil(count / columns), _GRID_ROWS)
        return abs(math.log((above + rows + 0.9) / (2.0 * side + _LABEL + columns + 0.4) / aspect))

    min_columns = min(max(min_columns, math.ceil(count / _GRID_ROWS)), _COLUMNS)
    return min(range(min_columns, _COLUMNS + 1), key=distance)


def _grid_plan(singles: Sequence[int], *, columns: int) -> _Plan:
    """Return layers of one neuron in reading order; if there are too many, the first and the last."""
    cells: list[tuple[int, int]] = [(layer, 0) for layer in singles]
    rows: list[tuple[tuple[int, int] | str, ...]] = [
        tuple(cells[start : start + columns]) for start in range(0, len(cells), columns)
    ]
    if len(rows) > _GRID_ROWS:
        half = _GRID_ROWS // 2
        shown = columns * half + sum(map(len, rows[-half:]))
        rows = [*rows[:half], (f"… {len(singles) - shown} more layers of one neuron …",), *rows[-half:]]
    return _Plan(None, f"{format_count(len(singles), 'layer')} of one neuron each", tuple(rows))


def _place_band(plan: _Plan, *, left: float, right: float, top: float, arc_height: float) -> LayerBand:
    bottom = top - plan.height - arc_height
    is_beside = _is_labelled_beside(plan.layer)
    start = left + (_LABEL if is_beside else 0.0)
    y = top - (arc_height + 0.1 if is_beside else 0.9) - 0.5
    label = TextLabel(plan.label, left + 0.25, y if is_beside else top - 0.55)
    balls, words = [], []
    first = (start + right - plan.columns) / 2.0
    for row in plan.rows:
        x = first
        for cell in row:
            middle = x + _width(cell) / 2.0
            if isinstance(cell, str):
                words.append(TextLabel(cell, (start + right) / 2.0 if len(row) == 1 else middle, y))
            else:
                balls.append(Ball(*cell, middle, y))
            x += _width(cell)
        y -= 1.0
    return LayerBand(plan.layer, label, tuple(balls), tuple(words), bottom, top, arc_height)


def _width(cell: tuple[int, int] | str) -> int:
    return _GAP if isinstance(cell, str) else 1


# Drawing.

_NODES = 5  # inputs or outputs drawn one by one
_BOX = 0.22  # half the side of the square that stands for an input or an output
_RAMP = 3.0  # length of the strip of colours that stands for all layers
_LETTER = 0.55  # width of a letter over the font size
_WIRE = "0.72"
_INK = "0.25"
_BUS = 0.5  # distance of the lines between layers and products from the bands
_KEY, _PATH = 1.6, 0.9  # heights kept free under the layers for the key and, where there is one, the direct path
_ABOVE = 1.0  # and over them for the names of inputs and outputs
_BESIDE = 1.5  # width kept free beside inputs and outputs for their names
_ASPECT = 0.62  # height over width of the layers on a figure of their own
_WIDTH, _HEIGHTS = 6.4, (2.0, 7.0)  # of that figure, in inches


def draw_architecture(
    network: PlottableNetwork, *, products: PlottableProducts | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw solid balls for first-order neurons and yin-yang balls for second-order ones, a row for every layer.

    Neurons stand in the order of solution, so that signals run from left to right; lines join neurons whose weight is
    not zero. Every neuron sees the inputs and is seen by the outputs: a line to its layer stands for that. The dashed
    line is the direct path Ψ u. Networks of more than twelve layers are condensed as `arrangement` says.

    Product neurons have a band of their own below the layers. They see the states of the layers at the right and feed the
    layers at the left; scheduling signals are white squares, which feed products only.
    """
    counts = None if products is None else products.counts()
    arrangement = arrange_layers(
        [layer.n_neurons for layer in network.layers],
        connected=[bool(layer.edges) for layer in network.layers],
        aspect=_ASPECT if ax is None else _aspect_of(get_axes(ax)),
        products=counts,
    )
    has_path = _has_direct_path(network)
    width = arrangement.width + 2.0 * _BESIDE
    below = _KEY + (_PATH if has_path else 0.0)
    height = arrangement.height + _ABOVE + below
    axes = get_axes(ax, width=_WIDTH, height=float(np.clip(_WIDTH * height / width, *_HEIGHTS)))
    colours = layer_colours(len(network.layers))
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(-_BESIDE, arrangement.width + _BESIDE), ylim=(-below, arrangement.height + _ABOVE))
    scale = _points_per_unit(axes)
    font = float(np.clip(0.55 * scale, 6.5, 9.0))  # names fit into the places that the arrangement keeps for them
    for band in arrangement.bands:
        _draw_band(axes, band, arrangement, colours=colours, font=font, scale=scale)
        if band.layer is not None and band.layer != PRODUCTS:
            shown = {ball.neuron: ball.x for ball in band.balls}
            edges = [edge for edge in network.layers[band.layer].edges if shown.keys() >= set(edge)]
            _draw_connections(axes, edges, shown, band=band, colour=colours[band.layer])
    balls = [ball for band in arrangement.bands if band.layer != PRODUCTS for ball in band.balls]
    add_neuron_glyphs(
        axes,
        [(ball.x, ball.y) for ball in balls],
        second_order=[bool(network.layers[ball.layer].is_second_order[ball.neuron]) for ball in balls],
        colours=[colours[ball.layer] for ball in balls],
    )
    _draw_ends(axes, network, arrangement, products=products, has_path=has_path, font=font)
    _draw_products(axes, arrangement, products)
    center = (arrangement.width / 2.0, 0.5 * _KEY - below)
    _draw_key(axes, network, center, ramp=colours if arrangement.is_condensed else (), font=font, scale=scale)
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


def _draw_band(
    axes: "Axes", band: LayerBand, arrangement: Arrangement, *, colours: Sequence[str], font: float, scale: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = "0.5" if band.layer in (None, PRODUCTS) else colours[band.layer]
    size = (arrangement.right - arrangement.left, band.top - band.bottom)
    style = "round,pad=0,rounding_size=0.3"
    shade = FancyBboxPatch((arrangement.left, band.bottom), *size, boxstyle=style, color=colour, alpha=0.1, linewidth=0)
    axes.add_patch(shade)
    label = band.label
    fitting = (size[0] - 0.5) * scale / (_LETTER * len(label.text))  # a narrow grid has a long label
    axes.text(label.x, label.y, label.text, fontsize=min(font, fitting), va="center", ha="left", color=_INK)
    for words in band.words:
        axes.text(words.x, words.y, words.text, fontsize=font, va="center", ha="center", color=_INK)


def _draw_connections(
    axes: "Axes", edges: Sequence[tuple[int, int]], x_of_neuron: dict[int, float], *, band: LayerBand, colour: str
) -> None:
    """Draw arrows between neighbours and arcs between others, higher for longer distances."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.path import Path

    if not edges:
        return
    y = band.balls[0].y
    longest = max(x_of_neuron[i] - x_of_neuron[j] for i, j in edges)
    curves: list[Path] = []
    heads = []
    for i, j in edges:
        start, end = x_of_neuron[j], x_of_neuron[i]
        if end - start < 1.5:
            tip = end - BALL_RADIUS
            curves.append(Path([(start + BALL_RADIUS, y), (tip - 0.1, y)]))
            heads.append([(tip, y), (tip - 0.16, y + 0.09), (tip - 0.16, y - 0.09)])
        else:
            peak = y + BALL_RADIUS + 1.8 * band.arc_height * (end - start) / longest
            path = [(start, y + BALL_RADIUS), ((start + end) / 2.0, peak), (end, y + BALL_RADIUS)]
            curves.append(Path(path, [Path.MOVETO, Path.CURVE3, Path.CURVE3]))
    strength = 0.8 if len(edges) <= 45 else 0.45
    lines = PathCollection(curves, facecolors="none", edgecolors=colour, linewidths=0.7, alpha=strength, zorder=2)
    axes.add_collection(lines)
    axes.add_collection(PolyCollection(heads, facecolors=colour, edgecolors="none", zorder=2))


def _draw_products(axes: "Axes", arrangement: Arrangement, products: PlottableProducts | None) -> None:
    """Draw the product neurons, and the lines from the layers to their band and back, as arrows."""
    bands = [band for band in arrangement.bands if band.layer == PRODUCTS]
    if products is None or not bands:
        return
    band = bands[0]
    _add_product_glyphs(axes, [(ball.x, ball.y) for ball in band.balls])
    y, layers = (band.bottom + band.top) / 2.0, [(other.bottom + other.top) / 2.0 for other in arrangement.bands[:-1]]
    arrow = {
        "arrowstyle": "-|>",
        "color": _INK,
        "linewidth": 0.9,
        "shrinkA": 0.0,
        "shrinkB": 0.0,
        "mutation_scale": 7.0,
    }
    for edge, bus, is_used in (
        (arrangement.right, arrangement.right + _BUS, products.sees_states),
        (arrangement.left, arrangement.left - _BUS, products.feeds_states),
    ):
        if not is_used or not layers:
            continue
        axes.plot([bus, bus], [y, max(layers)], color=_INK, linewidth=0.9, zorder=2)
        is_right = edge == arrangement.right
        for middle in (*layers, y):
            begin, end = (edge, bus) if (middle == y) != is_right else (bus, edge)
            if end == bus:
                axes.plot([begin, end], [middle, middle], color=_INK, linewidth=0.9, zorder=2)
            else:
                axes.annotate("", (end, middle), (begin, middle), arrowprops=arrow, zorder=2)


def _draw_ends(
    axes: "Axes",
    network: PlottableNetwork,
    arrangement: Arrangement,
    *,
    products: PlottableProducts | None,
    has_path: bool,
    font: float,
) -> None:
    """Draw inputs, scheduling signals, outputs, and the lines between them, the layers and the products."""
    from matplotlib.collections import LineCollection

    middles = [(band.bottom + band.top) / 2.0 for band in arrangement.bands if band.layer != PRODUCTS]
    inputs = _draw_nodes(axes, network.n_inputs, "input", x=0.0, middles=middles, font=font)
    outputs = _draw_nodes(axes, network.n_outputs, "output", x=arrangement.width, middles=middles, font=font)
    wires = [[(_BOX, y), (arrangement.left, middle)] for y in inputs for middle in middles]
    wires += [[(arrangement.right, middle), (arrangement.width - _BOX, y)] for y in outputs for middle in middles]
    scheduling = None
    if products is not None and arrangement.bands and arrangement.bands[-1].layer == PRODUCTS:
        band = arrangement.bands[-1]
        y = (band.bottom + band.top) / 2.0
        half = 0.35 * (min(products.n_scheduling, _NODES) - 1)
        center = min([y, *(height - 0.8 - half for height in inputs)])
        scheduling = _draw_nodes(
            axes, products.n_scheduling, "scheduling\nsignal", x=0.0, middles=[center], font=font, is_scheduling=True
        )
        n_inputs = network.n_inputs
        drawn = range(n_inputs) if n_inputs <= _NODES else (0, 1, n_inputs - 2, n_inputs - 1)
        factors = [height for index, height in zip(drawn, inputs, strict=True) if index in products.input_factors]
        seen = [*factors, *scheduling]
        wires += [[(_BOX, height), (arrangement.left, y)] for height in seen]
        if products.feeds_outputs:
            wires += [[(arrangement.right, y), (arrangement.width - _BOX, height)] for height in outputs]
    axes.add_collection(LineCollection(wires, colors=_WIRE, linewidths=0.6, zorder=1))
    if inputs and outputs and has_path:
        first = 0.0 if scheduling is None else -2.0 * _BOX  # beside the squares of scheduling signals
        corners = [(first, -0.5), (arrangement.width, -0.5), (arrangement.width, min(outputs) - _BOX)]
        start = [(0.0, min(inputs) - _BOX)] if first == 0.0 else [(-_BOX, min(inputs)), (first, min(inputs))]
        axes.plot(*zip(*start, *corners, strict=True), color=_INK, linewidth=0.8, linestyle="--", zorder=1)
        axes.text(arrangement.width / 2.0, -0.5, "direct path Ψ u", fontsize=font, color=_INK, ha="center", va="center",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip


def _has_direct_path(network: PlottableNetwork) -> bool:
    """Return whether Ψ exceeds rounding: Ψ = D − φ̇ V, where V may be rounding of inputs of size E/√k (m = 1)."""
    level, n_states = 0.0, 0
    for layer, phi in zip(network.layers, network.Phi, strict=True):
        second = layer.is_second_order
        frequency = np.sqrt(np.abs(layer.K.diagonal()[second]))[:, None]
        inputs = np.abs(layer.V[second]) + np.abs(layer.E[second]) / np.where(frequency > 0.0, frequency, 1.0)
        level += float(np.max(np.abs(phi[:, layer.n_neurons :]) @ inputs, initial=0.0))
        n_states += phi.shape[1]
    return bool(np.max(np.abs(network.Psi), initial=0.0) > n_states * EPS * level)


def _draw_nodes(
    axes: "Axes",
    count: int,
    noun: str,
    *,
    x: float,
    middles: Sequence[float],
    font: float,
    is_scheduling: bool = False,
) -> list[float]:
    """Draw up to five squares, otherwise the first two, dots and the last two; return their heights.

    Squares of scheduling signals are white, and their number stands below them.
    """
    if is_scheduling and not count:
        return []
    from matplotlib.patches import Rectangle

    highest, lowest = max(middles, default=1.0), min(middles, default=1.0)
    n_drawn = min(count, _NODES)
    step = min(max((highest - lowest + 1.5) / _NODES, 0.7), 2.0)
    heights = [(highest + lowest) / 2.0 + step * ((n_drawn - 1) / 2.0 - row) for row in range(n_drawn)]
    if is_scheduling:
        axes.text(x, min(heights) - _BOX - 0.2, format_count(count, noun), fontsize=font, color=_INK, ha="center", va="top",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip
    else:
        top = max([highest, *(y + _BOX for y in heights)]) + 0.25
        axes.text(x, top, format_count(count, noun), fontsize=font, color=_INK, ha="center", va="bottom")
    if count > _NODES:
        axes.text(x, heights.pop(2), "⋮", fontsize=1.3 * font, color=_INK, ha="center", va="center")
    for y in heights:
        corner, side = (x - _BOX, y - _BOX), 2.0 * _BOX
        face = "white" if is_scheduling else "0.35"
        axes.add_patch(Rectangle(corner, side, side, facecolor=face, edgecolor="0.35", linewidth=0.8, zorder=3))
    return heights


def _draw_key(
    axes: "Axes",
    network: PlottableNetwork,
    center: tuple[float, float],
    *,
    ramp: Sequence[str],
    font: float,
    scale: float,
) -> None:
    """Draw a legend of the balls and, if layers are not labelled, of their colors, centered at `center`."""
    n_second = sum(int(np.count_nonzero(layer.is_second_order)) for layer in network.layers)
    n_first = sum(layer.n_neurons for layer in network.layers) - n_second
    kinds = [(n_first, False, "first-order neuron"), (n_second, True, "second-order neuron")]
    entries = [(format_count(n, name), second) for n, second, name in kinds if n]
    ends = ("layer 0", str(len(ramp) - 1)) if ramp else ("", "")
    n_letters = sum(len(text) for text, _ in entries) + sum(map(len, ends))
    fixed = 0.95 * len(entries) + (_RAMP + 0.6 if ramp else 0.0) + len(entries) - (not ramp)
    # A long key on a narrow drawing is written in smaller letters.
    letter = min(_LETTER * font / scale, max(2.0 * center[0] + 2.0 * _BESIDE - fixed, 1.0) / max(n_letters, 1))
    font = letter * scale / _LETTER
    widths = [0.95 + letter * len(text) for text, _ in entries]
    x, y = center[0] - (fixed + letter * n_letters) / 2.0, center[1]
    for (text, is_second), width in zip(entries, widths, strict=True):
        add_neuron_glyphs(axes, [(x + BALL_RADIUS, y)], second_order=[is_second], colours=["0.35"])
        axes.text(x + 0.95, y, text, fontsize=font, color=_INK, ha="left", va="center")
        x += width + 1.0
    if ramp:
        x += letter * len(ends[0])
        axes.text(x, y, ends[0], fontsize=font, color=_INK, ha="right", va="center")
        _draw_ramp(axes, ramp, left=x + 0.3, y=y)
        axes.text(x + _RAMP + 0.6, y, ends[1], fontsize=font, color=_INK, ha="left", va="center")


def _draw_ramp(axes: "Axes", colours: Sequence[str], *, left: float, y: float) -> None:
    """Draw all colors side by side."""
    from matplotlib.collections import PolyCollection

    edges = left + np.linspace(0.0, _RAMP, len(colours) + 1)
    low, high = y - 0.6 * BALL_RADIUS, y + 0.6 * BALL_RADIUS
    boxes = [[(x0, low), (x1, low), (x1, high), (x0, high)] for x0, x1 in pairwise(edges)]
    axes.add_collection(PolyCollection(boxes, facecolors=list(colours), edgecolors=list(colours), linewidths=0.3))
