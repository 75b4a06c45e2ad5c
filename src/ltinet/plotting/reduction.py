"""What a reduction left out: its error over frequency with the bound, and the Hankel values that it kept."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new, count_whole_numbers, write_instead
from ltinet.plotting.colours import LINE_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_reduction_error(
    omega: ArrayLike,
    errors: ArrayLike,
    gains: ArrayLike,
    *,
    bound: float | None,
    estimate: float,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw ‖G − G_r‖ and ‖G‖ over frequency, and the bound, or where there is none the estimate, as a line.

    Raises:
        PlottingError: there are not as many values as frequencies.
    """
    omega, errors, gains = (np.asarray(own, dtype=np.float64) for own in (omega, errors, gains))
    if omega.ndim != 1 or errors.shape != omega.shape or gains.shape != omega.shape:
        raise PlottingError(f"omega is {omega.shape}, errors {errors.shape}, gains {gains.shape}; give one of each")
    axes = axes_or_new(ax)
    axes.set_xlabel("angular frequency")
    axes.set_ylabel("largest singular value")
    if not (gains > 0.0).any() and not (errors > 0.0).any():
        write_instead(axes, "no gain at these frequencies")
        return axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    shown = omega > 0.0
    axes.plot(omega[shown], gains[shown], color="0.65", linewidth=1.2, label="system")
    axes.plot(omega[shown], errors[shown], color=LINE_COLOURS[0], linewidth=1.4, label="error")
    if bound is not None:
        axes.axhline(bound, color=LINE_COLOURS[1], linestyle="--", linewidth=1.2, label=f"bound {bound:.2g}")
    else:
        axes.axhline(estimate, color="0.4", linestyle=":", linewidth=1.2, label=f"estimate {estimate:.2g}")
    add_grid(axes)
    axes.legend(fontsize="small")
    return axes


def draw_hankel_values(values: ArrayLike | None, *, order: int, ax: "Axes | None" = None) -> "Axes":
    """Draw Hankel singular values, those that were kept in another colour than those left out."""
    axes = axes_or_new(ax)
    axes.set_xlabel("state")
    axes.set_ylabel("Hankel singular value")
    sizes = np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    positive = sizes > 0.0
    if not positive.any():
        write_instead(axes, "no Hankel values are known")
        return axes
    axes.set_yscale("log")
    places = np.arange(1, len(sizes) + 1)
    kept = places <= order
    for which, colour, label in ((kept, LINE_COLOURS[0], f"{order} kept"), (~kept, "0.6", "left out")):
        own = which & positive
        axes.plot(places[own], sizes[own], linestyle="none", marker="o", markersize=4.0, color=colour, label=label)
    count_whole_numbers(axes.xaxis)
    add_grid(axes)
    axes.legend(fontsize="small")
    return axes
