"""Which neurons feed which: the pattern of a network's weights, coloured by layer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new, count_whole_numbers, write_instead
from ltinet.plotting.colours import add_layer_key, layer_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pattern = NDArray[np.bool_]
Corner = tuple[float, float]


def draw_sparsity(patterns: Sequence[ArrayLike], *, unit: str = "neuron", ax: "Axes | None" = None) -> "Axes":
    """Draw the block-diagonal pattern of one square matrix per layer; entry (i, j) says whether j feeds i."""
    layers = _checked(patterns)
    axes = axes_or_new(ax)
    from matplotlib.collections import PolyCollection

    axes.set_xlabel(f"from {unit}")
    axes.set_ylabel(f"to {unit}")
    total = sum(len(pattern) for pattern in layers)
    if total == 0:
        write_instead(axes, f"no {unit}s: a static gain")
        return axes
    starts = np.cumsum([0, *map(len, layers)])
    runs = [_runs(pattern, int(start)) for pattern, start in zip(layers, starts, strict=False)]
    colours = np.repeat(layer_colours(len(layers)), list(map(len, runs))).tolist()
    # The outline keeps single neurons visible where a neuron is thinner than a pixel.
    axes.add_collection(
        PolyCollection([box for own in runs for box in own], facecolors=colours, edgecolors=colours, linewidths=1.0)
    )
    axes.set_xlim(-0.9, total - 0.1)
    axes.set_ylim(total - 0.1, -0.9)
    axes.set_aspect("equal", adjustable="box")
    for axis in (axes.xaxis, axes.yaxis):
        count_whole_numbers(axis)
    add_layer_key(axes, len(layers))
    return axes


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
