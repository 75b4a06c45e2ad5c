"""Colours, markers and line styles.

A layer has the same colour in every drawing of a network, distinguishable in greyscale as well. Up to ten layers
have colours of their own, made in CIE LCh with lightness L* from 14 to 82, at least 6 apart from each other and 28
from that of the next layer, and markers of their own. More layers follow viridis, whose lightness rises evenly.

Lines that do not stand for layers have the colours of Okabe and Ito (2008) without yellow, which is too pale on
white: they can be distinguished with any kind of colour vision. Dashes are the second cue.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MERGED ltinet.plotting.colours
# One colour per layer, the same in every drawing of a network, told apart also in greyscale; and colours of lines.
#
# Up to ten layers have colours of their own, made in CIE LCh with lightness L* from 14 to 82, at least 6 apart from each
# other and 28 from the next layer's, and markers of their own. More layers follow viridis, whose lightness rises evenly.
#
# Lines that are no layers have the colours of Okabe and Ito (2008) less yellow, which is too pale on white: those with
# normal vision and those without red, green or blue cones tell them apart. Dashes are the second cue.

LAYER_COLOURS = (
    "#015c9f", "#f68e34", "#023e1c", "#f13264", "#dbd030", "#632b8a", "#15a5b7", "#351e18", "#f5a2ce", "#4b7925",
)  # fmt: skip
LAYER_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
Dashes = Literal["-", "--", "-.", ":"]
LINE_STYLES: tuple[Dashes, ...] = ("-", "--", "-.", ":")
LINE_COLOURS = ("#0072b2", "#d55e00", "#000000", "#56b4e9", "#cc79a7", "#009e73", "#e69f00")
"""In this order lines of the same dashes, four or eight apart, are those that differ most."""
_LIGHTEST = 0.92  # of viridis: the rest is too pale on white


def layer_colour(index: int, *, n_layers: int) -> str:
    """The colour of one layer of a network as "#rrggbb"."""
    return layer_colours(n_layers)[index]


def layer_colours(n_layers: int) -> tuple[str, ...]:
    """The colours of all layers of a network."""
    if n_layers <= len(LAYER_COLOURS):
        return LAYER_COLOURS[:n_layers]
    return _sample_colour_map("viridis", np.linspace(0.0, _LIGHTEST, n_layers))


def layer_marker(index: int, *, n_layers: int) -> str:
    """The marker of one layer of a network: its own up to ten layers, balls beyond."""
    return LAYER_MARKERS[index] if n_layers <= len(LAYER_MARKERS) else "o"


def line_styles(count: int) -> tuple[tuple[str, Dashes], ...]:
    """(colour, dashes) of lines that are no layers; no two of the first 28 are the same, and neighbours never."""
    return tuple(
        (LINE_COLOURS[index % len(LINE_COLOURS)], LINE_STYLES[index % len(LINE_STYLES)]) for index in range(count)
    )


def add_layer_key(axes: "Axes", n_layers: int) -> None:
    """Say beside the axes which colour is which layer: a legend up to ten layers, a colour bar beyond."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.lines import Line2D

    if n_layers <= 1:
        return
    colours = layer_colours(n_layers)
    if n_layers > len(LAYER_COLOURS):
        scale = ScalarMappable(Normalize(-0.5, n_layers - 0.5), ListedColormap(colours))
        axes.figure.colorbar(scale, ax=axes, label="layer", pad=0.02, fraction=0.05, shrink=0.8)
        return
    balls = [
        Line2D([], [], linestyle="none", marker=layer_marker(index, n_layers=n_layers), color=colour, label=str(index))
        for index, colour in enumerate(colours)
    ]
    add_side_legend(axes, balls, title="layer")


def add_side_legend(axes: "Axes", handles: list[Any], *, title: str) -> None:
    """A narrow legend at the right of the axes, where it hides nothing."""
    axes.legend(
        handles=handles, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small",
        title_fontsize="small", handlelength=1.8, borderaxespad=0.4,
    )  # fmt: skip


def _sample_colour_map(name: str, places: NDArray[np.float64]) -> tuple[str, ...]:
    import matplotlib
    from matplotlib.colors import to_hex

    return tuple(to_hex(colour) for colour in matplotlib.colormaps[name](places))
