"""Errors over time beside what bounds them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new
from ltinet.plotting.colours import add_side_legend, line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_errors_and_bounds(
    t: ArrayLike, runs: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw for each run its error `(T,)`, a solid line, and the bound of it `(T,)`, a dashed one, on a log axis.

    Errors of zero, as at the start, have no place on that axis and are left out.
    """
    times = np.asarray(t, dtype=np.float64)
    pairs = {name: tuple(np.asarray(values, dtype=np.float64) for values in run) for name, run in runs.items()}
    for name, values in pairs.items():
        if [array.shape for array in values] != [times.shape] * 2:
            raise PlottingError(
                f"{name} has arrays of shapes {[array.shape for array in values]}; give an error and a bound, each of "
                f"shape {times.shape} as t is"
            )
    from matplotlib.lines import Line2D

    axes = axes_or_new(ax)
    handles = []
    for (name, values), (colour, _) in zip(pairs.items(), line_styles(len(pairs)), strict=True):
        for array, dashes in zip(values, ("-", "--"), strict=True):
            axes.plot(times, np.where(array > 0.0, array, np.nan), color=colour, linestyle=dashes)
        handles.append(Line2D([], [], color=colour, label=name))
    handles += [Line2D([], [], color="0.4", label="error"), Line2D([], [], color="0.4", linestyle="--", label="bound")]
    axes.set_yscale("log")
    axes.set_xlabel("time")
    axes.set_ylabel("largest error of an output")
    add_side_legend(axes, handles, title="")
    axes.margins(x=0.01)
    return axes
