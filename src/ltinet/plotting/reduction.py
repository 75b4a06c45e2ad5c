"""Drawings of a model reduction: error over frequency with its bound, and Hankel singular values.

`ReductionPlotData` holds what is drawn, computed when it is needed; `ReductionPlots` is the object behind
`result.plot`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.display import dir_without
from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.figures import add_grid, draw_placeholder, get_axes, use_integer_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MERGED ltinet.plotting.reduction
# What a reduction left out: its error over frequency with the bound, and the Hankel values that it kept.


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
    axes = get_axes(ax)
    axes.set_xlabel("angular frequency")
    axes.set_ylabel("largest singular value")
    if not (gains > 0.0).any() and not (errors > 0.0).any():
        draw_placeholder(axes, "no gain at these frequencies")
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
    axes = get_axes(ax)
    axes.set_xlabel("state")
    axes.set_ylabel("Hankel singular value")
    sizes = np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    positive = sizes > 0.0
    if not positive.any():
        draw_placeholder(axes, "no Hankel values are known")
        return axes
    axes.set_yscale("log")
    places = np.arange(1, len(sizes) + 1)
    kept = places <= order
    for which, colour, label in ((kept, LINE_COLOURS[0], f"{order} kept"), (~kept, "0.6", "left out")):
        own = which & positive
        axes.plot(places[own], sizes[own], linestyle="none", marker="o", markersize=4.0, color=colour, label=label)
    use_integer_ticks(axes.xaxis)
    add_grid(axes)
    axes.legend(fontsize="small")
    return axes


# MERGED ltinet.plotting.reduction
# The drawings of a reduction as its users call them: `result.plot.error(omega)`.


@dataclass(frozen=True)
class ReductionPlotData:
    """What was found, as far as it is drawn; computed where a drawing asks for it."""

    errors: Callable[[ArrayLike], tuple[Array, Array]]
    frequencies: Callable[[], Array]
    bound: float | None
    estimate: float
    hankel_values: Array | None
    n_kept: int


@final
@dataclass(frozen=True)
class ReductionPlots:
    """Drawings of a reduction; they need matplotlib, take the Axes to draw on or make new ones, and return them."""

    found: ReductionPlotData

    def error(self, omega: ArrayLike | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw ‖G − G_r‖ over frequency below ‖G‖, with the bound; without omega around the reduced system's poles.

        Both systems are solved at every frequency: a large one takes a factorisation for each.
        """
        omega = self.found.frequencies() if omega is None else omega
        errors, gains = self.found.errors(omega)
        return draw_reduction_error(omega, errors, gains, bound=self.found.bound, estimate=self.found.estimate, ax=ax)

    def hankel(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the Hankel singular values that were kept and those that were left out."""
        return draw_hankel_values(self.found.hankel_values, order=self.found.n_kept, ax=ax)

    def __dir__(self) -> list[str]:
        return dir_without(self, "found")
