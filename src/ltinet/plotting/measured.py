"""Measured outputs beside those that a model simulates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, figure_or_new
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.names import Channels
from ltinet.plotting.trajectory import checked_outputs, chosen_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_MEASURED = "0.55"


def draw_measured(
    t: ArrayLike,
    measured: ArrayLike,
    modelled: ArrayLike,
    *,
    fits: Sequence[float],
    names: Sequence[str] | None = None,
    outputs: Sequence[int | str] | None = None,
    seams: Sequence[float] = (),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw outputs `(T, p)` as they were measured and as a model has them, one panel for each; the Axes come as (p,).

    `fits` in % go to the legends; without `outputs` at most ten are drawn. `seams` are times at which another
    experiment begins; NaN parts lines there.
    """
    times, expected = checked_outputs(t, measured)
    _, simulated = checked_outputs(t, modelled)
    if expected.ndim != 2 or simulated.shape != expected.shape or len(fits) != expected.shape[1]:
        raise PlottingError(
            f"measured, modelled and fits have {expected.shape}, {simulated.shape} and {len(fits)} entries; give "
            "(T, p), (T, p) and p of them"
        )
    channels = Channels(expected.shape[1], names, noun="output")
    chosen = chosen_outputs(channels, outputs)
    canvas = figure_or_new(figure, width=8.0, height=0.9 + 2.2 * len(chosen))
    panels = canvas.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for axes, index in zip(panels, chosen, strict=True):
        _draw(axes, times, expected[:, index], simulated[:, index], fit=float(fits[index]))
        axes.set_ylabel(channels.short(index))
        for seam in seams:
            axes.axvline(seam, color="0.75", linewidth=0.8, linestyle=":")
    panels[-1].set_xlabel("time")
    return np.asarray(panels)


def _draw(axes: "Axes", times: Array, expected: Array, simulated: Array, *, fit: float) -> None:
    axes.plot(times, expected, color=_MEASURED, linewidth=1.6, label="measured")
    axes.plot(times, simulated, color=LINE_COLOURS[0], linewidth=0.9, label=f"model, fit {fit:.1f} %")
    axes.margins(x=0.01)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)
    axes.legend(fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0)
