"""Drawings by layer: eigenvalues in the complex plane, sparsity pattern, and evaluations of right-hand sides.

Every layer has its own colour and marker. The functions take one array per layer; `draw_network_spectrum` and
`draw_network_sparsity` take them from a network. Axes of the complex plane become symmetric logarithmic where
eigenvalues of different size would lie on top of each other on linear ones.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.text import format_count
from ltinet.errors import PlottingError
from ltinet.plotting.colours import LAYER_COLOURS, add_layer_key, layer_colours, layer_marker
from ltinet.plotting.figures import draw_placeholder, get_axes, use_integer_ticks
from ltinet.plotting.protocols import PlottableNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scatter_by_layer(
    axes: "Axes", x: NDArray[Any], y: NDArray[Any], *, layer_of: NDArray[np.intp], n_layers: int
) -> None:  # fmt: skip
    """Draw the points (x, y), of which number i belongs to layer `layer_of[i]`."""
    colours = np.array(layer_colours(n_layers))[layer_of]
    markers = np.array([layer_marker(index, n_layers=n_layers) for index in range(n_layers)])[layer_of]
    size = float(np.clip(3000.0 / max(len(x), 1), 14.0, 42.0))  # in square points
    outline = 0.4 if n_layers <= len(LAYER_COLOURS) else 0.0  # outlines would hide the colors of small points
    for marker in dict.fromkeys(markers.tolist()):
        mask = markers == marker
        axes.scatter(x[mask], y[mask], s=size, c=colours[mask], marker=marker, edgecolors="0.2", linewidths=outline)


# Eigenvalues.

Eigenvalues = NDArray[np.complex128]
EigenvalueParts = NDArray[np.float64]
_WIDE = 15.0  # largest over median: beyond, the axis is logarithmic on both sides of zero
_NEAR = 0.25  # of the width of the spectrum
_SQUARE = 4.0  # spans that differ by less than this factor are drawn to one scale


def draw_spectrum(eigenvalues: Sequence[ArrayLike], *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Draw the eigenvalues of each layer, given as one sequence of complex numbers per layer.

    `key=False` omits the legend of the layers. For a real spectrum of several layers the vertical axis is the layer.
    """
    layers = _validate_eigenvalues(eigenvalues)
    axes = get_axes(ax)
    values = np.concatenate([*layers, np.empty(0, complex)])
    axes.set(xlabel="real part (1/time)", ylabel="imaginary part (1/time)")
    if len(values) == 0:
        draw_placeholder(axes, "no eigenvalues: a static gain")
        return axes
    is_real = not np.any(values.imag)
    _set_scales(axes, values)
    layer_of = np.repeat(np.arange(len(layers)), [len(values) for values in layers])
    scatter_by_layer(axes, values.real, layer_of if is_real else values.imag, layer_of=layer_of, n_layers=len(layers))
    _show_origin(axes, values)
    if is_real and len(layers) > 1:
        margin = 0.6 + 0.02 * len(layers)
        axes.set(ylabel="layer", ylim=(len(layers) - 1 + margin, -margin))  # the first layer on top, as in the diagram
        use_integer_ticks(axes.yaxis)
        return axes
    if is_real:
        axes.set_ylim(-1.0, 1.0)
    if key:
        add_layer_key(axes, len(layers))
    return axes


def draw_pole_zero_map(
    poles: ArrayLike, zeros: ArrayLike = (), *, is_discrete: bool = False, ax: "Axes | None" = None
) -> "Axes":
    """Draw poles as crosses and zeros as circles, with the unit circle if they are those of a discrete-time system."""
    groups = _validate_eigenvalues([poles, zeros])
    axes = get_axes(ax)
    unit = "" if is_discrete else " (1/time)"
    axes.set(xlabel=f"real part{unit}", ylabel=f"imaginary part{unit}")
    values = np.concatenate(groups)
    if is_discrete:
        angle = np.linspace(0.0, 2.0 * np.pi, 361)
        axes.plot(np.cos(angle), np.sin(angle), color="0.75", linewidth=0.8, zorder=0)
        axes.set_aspect("equal", adjustable="datalim")
    if len(values) == 0:
        draw_placeholder(axes, "neither poles nor zeros: a static gain")
        return axes
    if not is_discrete:
        _set_scales(axes, values)
    for group, marker, name, colour in zip(groups, ("x", "o"), ("poles", "zeros"), LAYER_COLOURS, strict=False):
        if len(group):
            filling = {"facecolors": "none", "edgecolors": colour} if marker == "o" else {"c": [colour]}
            axes.scatter(group.real, group.imag, s=42.0, marker=marker, linewidths=1.5, label=name, **filling)
    _show_origin(axes, values)
    if not np.any(values.imag) and not is_discrete:
        axes.set_ylim(-1.0, 1.0)
    axes.legend(fontsize="small")
    return axes


def _validate_eigenvalues(eigenvalues: Sequence[ArrayLike]) -> list[Eigenvalues]:
    try:
        layers = [np.atleast_1d(np.asarray(values, dtype=np.complex128)) for values in eigenvalues]
    except (TypeError, ValueError):
        layers = []
    if (len(layers) == 0 and len(eigenvalues)) or any(values.ndim != 1 for values in layers):
        raise PlottingError("eigenvalues must be one list of complex numbers per layer, such as form.eigenvalues")
    if not all(np.all(np.isfinite(values)) for values in layers):
        raise PlottingError("eigenvalues are not all finite; draw those of a form or of a network")
    return layers


def _show_origin(axes: "Axes", values: Eigenvalues) -> None:
    """Draw the imaginary axis unless it is far from the eigenvalues, and the real axis."""
    low, high = float(np.min(values.real)), float(np.max(values.real))
    margin = _NEAR * (high - low)
    if low - margin <= 0.0 <= high + margin:
        axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    if np.any(values.imag):
        axes.axhline(0.0, color="0.75", linewidth=0.8, zorder=0)


def _set_scales(axes: "Axes", values: Eigenvalues) -> None:
    """Set equal scales if that is readable, and logarithmic ones where values differ too much."""
    wide = _is_wide(values.real), _is_wide(values.imag)
    if wide[0]:
        axes.set_xscale("symlog", linthresh=_linear_part(values.real))
    if wide[1]:
        axes.set_yscale("symlog", linthresh=_linear_part(values.imag))
    width, height = np.ptp(values.real), np.ptp(values.imag)
    if not any(wide) and height > 0.0 and 1.0 / _SQUARE < width / height < _SQUARE:
        axes.set_aspect("equal", adjustable="datalim")


def _is_wide(parts: EigenvalueParts) -> bool:
    """Return whether half of the values would be indistinguishable from zero on a linear axis."""
    sizes = np.abs(parts[parts != 0.0])
    return bool(len(sizes)) and float(np.max(sizes)) > _WIDE * float(np.median(sizes))


def _linear_part(parts: EigenvalueParts) -> float:
    """Return the linear range of a symmetric logarithmic axis, which shows at most four decades."""
    sizes = np.abs(parts[parts != 0.0])
    smallest = max(float(np.min(sizes)), 1e-4 * float(np.max(sizes)))
    return float(10.0 ** np.floor(np.log10(smallest)))


# Sparsity.

Pattern = NDArray[np.bool_]
Corner = tuple[float, float]
_DOT = 0.5  # diameter of a neuron, in places


def draw_sparsity(
    patterns: Sequence[ArrayLike],
    *,
    unit: str = "neuron",
    diagonal: Literal["squares", "dots"] = "squares",
    key: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the block-diagonal pattern of one square matrix per layer; entry (i, j) says whether j feeds i.

    With `diagonal="dots"` the places (i, i) are small balls, also where the pattern is zero: neurons, which are no
    connections. `key=False` omits the legend of the layers.
    """
    layers = _validate_patterns(patterns)
    axes = get_axes(ax)
    axes.set(xlabel=f"from {unit}", ylabel=f"to {unit}")
    total = sum(len(pattern) for pattern in layers)
    if total == 0:
        draw_placeholder(axes, f"no {unit}s: a static gain")
        return axes
    starts = np.cumsum([0, *map(len, layers)])[:-1]
    squares = layers if diagonal == "squares" else [pattern & ~np.eye(len(pattern), dtype=bool) for pattern in layers]
    _draw_squares(axes, squares, starts)
    if diagonal == "dots":
        _draw_dots(axes, list(map(len, layers)))
    axes.set(xlim=(-0.9, total - 0.1), ylim=(total - 0.1, -0.9))
    axes.set_aspect("equal", adjustable="box")
    for axis in (axes.xaxis, axes.yaxis):
        use_integer_ticks(axis)
        if total == 1:
            axis.set_ticks([0])
    if key:
        add_layer_key(axes, len(layers))
    return axes


def _draw_squares(axes: "Axes", patterns: Sequence[Pattern], starts: NDArray[np.intp]) -> None:
    from matplotlib.collections import PolyCollection

    runs = [_row_rectangles(pattern, int(start)) for pattern, start in zip(patterns, starts, strict=True)]
    colours = np.repeat(layer_colours(len(patterns)), list(map(len, runs))).tolist()
    # The outline keeps single entries visible where one is thinner than a pixel.
    boxes = [box for run in runs for box in run]
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors=colours, linewidths=1.0))


def _draw_dots(axes: "Axes", sizes: Sequence[int]) -> None:
    from matplotlib.collections import EllipseCollection

    colours, n = np.repeat(layer_colours(len(sizes)), sizes).tolist(), sum(sizes)
    diameter = _DOT * max(1.0, n / 100.0)  # balls that can be seen
    sides, centers = np.full(n, min(diameter, n / 4.0)), np.column_stack([np.arange(n)] * 2)
    axes.add_collection(
        EllipseCollection(sides, sides, np.zeros(n), units="x", offsets=centers, offset_transform=axes.transData,
                          facecolors=colours, edgecolors="none")
    )  # fmt: skip


def _validate_patterns(patterns: Sequence[ArrayLike]) -> list[Pattern]:
    layers = [np.asarray(pattern) != 0 for pattern in patterns]
    for index, pattern in enumerate(layers):
        if pattern.ndim != 2 or pattern.shape[0] != pattern.shape[1]:
            raise PlottingError(
                f"the pattern of layer {index} has shape {pattern.shape}; give one square matrix per layer"
            )
    return layers


def row_runs(pattern: Pattern) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return row, first column and end of each run of nonzero entries in a row."""
    edges = np.diff(np.pad(pattern.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, begins = np.nonzero(edges == 1)
    return rows, begins, np.nonzero(edges == -1)[1]


def _row_rectangles(pattern: Pattern, start: int) -> list[list[Corner]]:
    """Return rectangles over runs of nonzero entries in every row."""
    rows, begins, ends = row_runs(pattern)
    top, left, right = rows + start - 0.5, begins + start - 0.5, ends + start - 0.5
    return [[(x0, y), (x1, y), (x1, y + 1.0), (x0, y + 1.0)] for x0, x1, y in zip(left, right, top, strict=True)]


# Networks.


def draw_network_spectrum(network: PlottableNetwork, *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Draw the poles of all neurons, colored by layer."""
    poles = [[pole for neuron in layer.neurons for pole in neuron.poles] for layer in network.layers]
    return draw_spectrum(poles, key=key, ax=ax)


def draw_network_sparsity(network: PlottableNetwork, *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Draw neurons as dots and connections as squares; the title counts nonzero weights."""
    layers = network.layers
    patterns = [(layer.C != 0.0) | (layer.K != 0.0) | (layer.M != 0.0) for layer in layers]
    axes = draw_sparsity(patterns, diagonal="dots", key=key, ax=ax)
    count, n = sum(len(layer.edges) for layer in layers), sum(layer.n_neurons for layer in layers)
    possible = f"{count} of {n * (n - 1) // 2} possible connections"
    axes.set_title(f"{format_count(n, 'neuron')}, {possible}" if key else possible, fontsize="medium")
    return axes


# Evaluations of right-hand sides.

Counts = NDArray[np.float64]
_COST = "one evaluation of a neuron: a few numbers; one of the full system: an n × n product"


def draw_evaluations_per_neuron(
    evaluations: Sequence[ArrayLike], *, full_system: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the evaluations of every neuron, given per layer as in `sol.stats["evaluations"]`.

    `full_system` draws the evaluations that the same solver needs for the system in one piece.
    """
    layers = _validate_counts(evaluations, full_system)
    axes = get_axes(ax)
    sizes = [len(values) for values in layers]
    layer_of = np.repeat(np.arange(len(layers)), sizes)
    counts = np.concatenate([*layers, np.empty(0)])
    scatter_by_layer(axes, np.arange(len(counts)), counts, layer_of=layer_of, n_layers=len(layers))
    alone = max(sizes, default=0) <= 1
    neurons = "neuron, each a layer of its own" if alone else "neuron, layer after layer"
    axes.set(xlabel=neurons, ylabel="function evaluations")
    if not alone:
        add_layer_key(axes, len(layers))
    _finish_count_axes(axes, counts, full_system)
    return axes


def draw_evaluations_per_layer(
    evaluations: Sequence[ArrayLike], *, full_system: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the evaluations of each layer, averaged over its neurons; arguments as in `draw_evaluations_per_neuron`."""
    layers = _validate_counts(evaluations, full_system)
    axes = get_axes(ax)
    means = np.array([np.mean(values) if len(values) else 0.0 for values in layers])
    width = 0.8 if len(layers) <= 40 else 1.0  # many thin bars with gaps between would flicker
    colours = list(layer_colours(len(layers)))  # matplotlib 3.8.0 takes a tuple of two for a colour and its opacity
    axes.bar(np.arange(len(layers)), means, width=width, color=colours)
    axes.set(xlabel="layer", ylabel="function evaluations, mean over neurons")
    _finish_count_axes(axes, means, full_system)
    if 0 < len(layers) <= 20:
        axes.set_xticks(range(len(layers)))
    return axes


def _validate_counts(evaluations: Sequence[ArrayLike], full_system: int | None) -> list[Counts]:
    try:
        layers = [np.asarray(values, dtype=np.float64) for values in evaluations]
    except (TypeError, ValueError):
        layers = [np.empty((0, 0))]
    if any(values.ndim != 1 for values in layers):
        raise PlottingError('evaluations must be one list of counts per layer, such as sol.stats["evaluations"]')
    if any(np.any(~np.isfinite(values) | (values < 0.0)) for values in layers):
        raise PlottingError("evaluations must be finite numbers, zero or more")
    if full_system is not None and not 0 <= full_system < np.inf:
        raise PlottingError(f"full_system must be a number of evaluations, got {full_system}")
    return layers


def _finish_count_axes(axes: "Axes", counts: Counts, full_system: int | None) -> None:
    """Start the axis at zero, with space for the line of the full system and its legend."""
    if len(counts) == 0:
        draw_placeholder(axes, "no neurons: a static gain")
        return
    highest = max(float(np.max(counts)), 1.0)
    if full_system is not None:
        axes.axhline(full_system, color="0.25", linestyle="--", linewidth=1.2, label=f"full system: {full_system}")
        highest = max(highest, full_system)
        axes.set_title(_COST, fontsize="small", color="0.25")
        layer_key = axes.get_legend()
        axes.legend(fontsize="small", loc="upper right")
        if layer_key is not None:  # axes have one legend; the first is added as an artist
            axes.add_artist(layer_key)
            layer_key.set_clip_on(False)  # clipped artists get no space beside the axes
    axes.set_ylim(0.0, 1.18 * highest if full_system is not None else 1.06 * highest)
    use_integer_ticks(axes.xaxis)
