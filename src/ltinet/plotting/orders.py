"""What speaks for the order of an identified system: singular values, and errors on samples that nobody had seen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, count_whole_numbers, figure_or_new, write_instead
from ltinet.plotting.colours import LINE_COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_SHOWN = 40  # singular values: beyond, there is noise


def draw_orders(
    singular_values: ArrayLike,
    errors: Mapping[str, Mapping[int, float]],
    *,
    chosen: int,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw singular values, and beside them relative errors by order for each kind of model; two Axes come back.

    `chosen` marks the order that was taken.
    """
    values = np.asarray(singular_values, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise PlottingError(f"singular values have shape {values.shape}; give a list of finite numbers")
    canvas = figure_or_new(figure, width=9.0, height=3.8)
    panels = canvas.subplots(1, 2)
    _draw_values(panels[0], values[: max(_SHOWN, chosen + 1)], chosen)
    _draw_errors(panels[1], errors, chosen)
    for axes in panels:
        count_whole_numbers(axes.xaxis)
        add_grid(axes)
    return np.asarray(panels)


def _draw_values(axes: "Axes", values: Array, chosen: int) -> None:
    axes.set_xlabel("number of the singular value")
    axes.set_ylabel("singular value")
    positive = values > 0.0
    if not positive.any():
        write_instead(axes, "no singular values")
        return
    axes.set_yscale("log")
    places = np.arange(1, len(values) + 1)
    for taken, colour, label in (
        (places <= chosen, LINE_COLOURS[0], f"order {chosen}"),
        (places > chosen, "0.6", "left out"),
    ):
        own = taken & positive
        axes.plot(places[own], values[own], linestyle="none", marker="o", markersize=4.5, color=colour, label=label)
    axes.legend(fontsize="small")


def _draw_errors(axes: "Axes", errors: Mapping[str, Mapping[int, float]], chosen: int) -> None:
    axes.set_xlabel("order")
    axes.set_ylabel("error on unseen samples / outputs")
    found = [(kind, own) for kind, own in errors.items() if own]
    if not found:
        write_instead(axes, "no models were compared")
        return
    axes.axvline(chosen, color="0.8", linewidth=5.0, zorder=0)
    axes.set_yscale("log")
    for place, (kind, own) in enumerate(found):
        orders = sorted(own)
        axes.plot(orders, [own[order] for order in orders], color=LINE_COLOURS[place % len(LINE_COLOURS)],
                  marker=MARKERS[place % len(MARKERS)], markersize=4.5, linewidth=1.0, label=kind)  # fmt: skip
    orders = sorted({order for _, own in found for order in own})
    axes.set_xlim(orders[0] - 1.0, orders[-1] + 1.0)  # ticks at whole numbers need two of them
    axes.legend(fontsize="small")
