"""Which neurons feed which: the pattern of a network's weights, coloured by layer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new, count_whole_numbers, write_instead
from ltinet.plotting.colours import add_layer_key, layer_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    With `diagonal="dots"` the places (i, i) are small balls, whatever the pattern has there: neurons, which are no
    connections. `key=False` leaves out which colour is which layer, where another drawing beside says it.
    """
    layers = _checked(patterns)
    axes = axes_or_new(ax)
    axes.set_xlabel(f"from {unit}")
    axes.set_ylabel(f"to {unit}")
    total = sum(len(pattern) for pattern in layers)
    if total == 0:
        write_instead(axes, f"no {unit}s: a static gain")
        return axes
    starts = np.cumsum([0, *map(len, layers)])[:-1]
    squares = layers if diagonal == "squares" else [pattern & ~np.eye(len(pattern), dtype=bool) for pattern in layers]
    _draw_squares(axes, squares, starts)
    if diagonal == "dots":
        _draw_dots(axes, list(map(len, layers)))
    axes.set_xlim(-0.9, total - 0.1)
    axes.set_ylim(total - 0.1, -0.9)
    axes.set_aspect("equal", adjustable="box")
    for axis in (axes.xaxis, axes.yaxis):
        count_whole_numbers(axis)
        if total == 1:
            axis.set_ticks([0])
    if key:
        add_layer_key(axes, len(layers))
    return axes


def _draw_squares(axes: "Axes", patterns: Sequence[Pattern], starts: NDArray[np.intp]) -> None:
    from matplotlib.collections import PolyCollection

    runs = [_runs(pattern, int(start)) for pattern, start in zip(patterns, starts, strict=True)]
    colours = np.repeat(layer_colours(len(patterns)), list(map(len, runs))).tolist()
    # The outline keeps single entries visible where one is thinner than a pixel.
    axes.add_collection(
        PolyCollection([box for own in runs for box in own], facecolors=colours, edgecolors=colours, linewidths=1.0)
    )


def _draw_dots(axes: "Axes", sizes: Sequence[int]) -> None:
    from matplotlib.collections import EllipseCollection

    colours, n = np.repeat(layer_colours(len(sizes)), sizes).tolist(), sum(sizes)
    diameter = _DOT * max(1.0, n / 100.0)  # balls that can be seen
    sides, places = np.full(n, min(diameter, n / 4.0)), np.column_stack([np.arange(n)] * 2)
    axes.add_collection(
        EllipseCollection(sides, sides, np.zeros(n), units="x", offsets=places, offset_transform=axes.transData,
                          facecolors=colours, edgecolors="none")
    )  # fmt: skip


def _checked(patterns: Sequence[ArrayLike]) -> list[Pattern]:
    layers = [np.asarray(pattern) != 0 for pattern in patterns]
    for index, pattern in enumerate(layers):
        if pattern.ndim != 2 or pattern.shape[0] != pattern.shape[1]:
            raise PlottingError(
                f"the pattern of layer {index} has shape {pattern.shape}; give one square matrix per layer"
            )
    return layers


def _runs(pattern: Pattern, start: int) -> list[list[Corner]]:
    """Rectangles over the filled places of every row, neighbours joined: few shapes for many places."""
    edges = np.diff(np.pad(pattern.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, begins = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    top, left, right = rows + start - 0.5, begins + start - 0.5, ends + start - 0.5
    return [[(x0, y), (x1, y), (x1, y + 1.0), (x0, y + 1.0)] for x0, x1, y in zip(left, right, top, strict=True)]
