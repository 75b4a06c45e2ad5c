"""Colours, markers and line styles.

A layer has the same colour in every drawing of a network, distinguishable in greyscale as well. Up to ten layers
have colours of their own, made in CIE LCh with lightness L* from 14 to 82, at least 6 apart from each other and 28
from that of the next layer, and markers of their own. More layers follow viridis, whose lightness rises evenly.

Up to eight lines that do not stand for layers have the colours of Okabe and Ito (2008) without yellow, which is too
pale on white: they can be distinguished with any kind of colour vision. Dashes are the second cue. More lines follow
viridis in their order, and a colour bar with their names replaces the legend.
"""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

LAYER_COLOURS = (
    "#015c9f", "#f68e34", "#023e1c", "#f13264", "#dbd030", "#632b8a", "#15a5b7", "#351e18", "#f5a2ce", "#4b7925",
)  # fmt: skip
LAYER_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
Dashes = Literal["-", "--", "-.", ":"]
LINE_STYLES: tuple[Dashes, ...] = ("-", "--", "-.", ":")
LINE_COLOURS = ("#0072b2", "#d55e00", "#000000", "#56b4e9", "#cc79a7", "#009e73", "#e69f00")
"""Colors of lines; in this order those with equal dashes, four or eight apart, differ most."""
MAX_LEGEND_LINES = 8
"""Lines that a legend can tell apart; more have a colour bar."""
_MAX_NAMED_COLOURS = 12  # names beside a colour bar
_VIRIDIS_END = 0.92  # the rest of viridis is too pale on white


def layer_colour(index: int, *, n_layers: int) -> str:
    """Return the color of one layer of a network as "#rrggbb"."""
    return layer_colours(n_layers)[index]


def layer_colours(n_layers: int) -> tuple[str, ...]:
    """Return the colors of all layers of a network."""
    return LAYER_COLOURS[:n_layers] if n_layers <= len(LAYER_COLOURS) else _viridis(n_layers)


def _viridis(count: int) -> tuple[str, ...]:
    import matplotlib
    from matplotlib.colors import to_hex

    points = np.linspace(0.0, _VIRIDIS_END, count)
    return tuple(to_hex(colour) for colour in matplotlib.colormaps["viridis"](points))


def layer_marker(index: int, *, n_layers: int) -> str:
    """Return the marker of one layer of a network: distinct markers up to ten layers, circles beyond."""
    return LAYER_MARKERS[index] if n_layers <= len(LAYER_MARKERS) else "o"


def line_styles(count: int) -> tuple[tuple[str, Dashes], ...]:
    """Return (color, dashes) of lines that do not stand for layers; more than eight are solid, with colors in order."""
    if count > MAX_LEGEND_LINES:
        return tuple((colour, "-") for colour in _viridis(count))
    return tuple(islice(zip(cycle(LINE_COLOURS), cycle(LINE_STYLES), strict=False), count))


def add_layer_key(axes: "Axes", n_layers: int) -> None:
    """Add a legend of the layers beside the axes, or a color bar for more than ten layers."""
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
    markers = [
        Line2D([], [], linestyle="none", marker=layer_marker(index, n_layers=n_layers), color=colour, label=str(index))
        for index, colour in enumerate(colours)
    ]
    add_side_legend(axes, markers, title="layer")


def line_handles(styles: Sequence[tuple[str, Dashes]], labels: Sequence[str]) -> list["Line2D"]:
    """Return handles of a legend of lines."""
    from matplotlib.lines import Line2D

    pairs = zip(styles, labels, strict=True)
    return [Line2D([], [], color=colour, linestyle=dashes, label=label) for (colour, dashes), label in pairs]


def add_side_key(axes: "Axes", styles: Sequence[tuple[str, Dashes]], labels: Sequence[str], *, title: str) -> None:
    """Add a legend of lines at the right of the axes, or for more than eight lines a color bar with their names.

    The bar is part of the axes, not one of the axes of the figure. Of many names some are written, evenly spread.
    """
    if len(labels) <= MAX_LEGEND_LINES:
        add_side_legend(axes, line_handles(styles, labels), title=title)
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    scale = ScalarMappable(Normalize(-0.5, len(labels) - 0.5), ListedColormap([colour for colour, _ in styles]))
    bar = axes.inset_axes((1.03, 0.0, 0.03, 1.0))
    axes.figure.colorbar(scale, cax=bar)
    named = range(0, len(labels), -(-len(labels) // _MAX_NAMED_COLOURS))
    bar.set_yticks(list(named), [labels[index] for index in named], fontsize="small")
    bar.invert_yaxis()  # the first line on top, as in a legend
    bar.set_title(title, fontsize="small", loc="left")


def legend_title(noun: str, n_shown: int, n_all: int, *, separator: str = "\n") -> str:
    """Return the title of a legend, with the numbers of lines if some are not drawn."""
    return f"{noun}{separator}({n_shown} of {n_all})" if n_shown < n_all else noun


def add_side_legend(axes: "Axes", handles: list[Any], *, title: str) -> None:
    """Add a narrow legend at the right of the axes, where it covers nothing."""
    axes.legend(
        handles=handles, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small",
        title_fontsize="small", handlelength=1.8, borderaxespad=0.4,
    )  # fmt: skip
