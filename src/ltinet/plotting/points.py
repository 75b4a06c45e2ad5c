"""Points in the colour and with the marker of their layer."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltinet.plotting.colours import COLOURS, layer_colours, layer_marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scatter_by_layer(
    axes: "Axes", x: NDArray[Any], y: NDArray[Any], *, layer_of: NDArray[np.intp], n_layers: int
) -> None:  # fmt: skip
    """Draw the points (x, y), of which number i belongs to layer `layer_of[i]`."""
    colours = np.array(layer_colours(n_layers))[layer_of]
    markers = np.array([layer_marker(index, n_layers=n_layers) for index in range(n_layers)])[layer_of]
    size = float(np.clip(3000.0 / max(len(x), 1), 14.0, 42.0))  # square points: smaller in a crowd
    outline = 0.4 if n_layers <= len(COLOURS) else 0.0  # around many small points it would hide their colours
    for marker in dict.fromkeys(markers.tolist()):
        own = markers == marker
        axes.scatter(x[own], y[own], s=size, c=colours[own], marker=marker, edgecolors="0.2", linewidths=outline)
