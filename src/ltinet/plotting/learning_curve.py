"""How an error fell while a model learnt."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_learning_curve(
    steps: ArrayLike,
    train: ArrayLike,
    validation: ArrayLike | None = None,
    *,
    best_step: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw errors against steps on a logarithmic axis; `best_step` marks the step whose parameters were kept."""
    places, errors = np.asarray(steps, dtype=np.float64), np.asarray(train, dtype=np.float64)
    if places.ndim != 1 or places.shape != errors.shape or not len(places):
        raise PlottingError(f"{places.shape} steps and {errors.shape} errors came; give one error for each step")
    axes = axes_or_new(ax)
    axes.set_yscale("log")
    axes.plot(places, errors, color="#015c9f", linewidth=1.3, label="training")
    if validation is not None:
        axes.plot(places, np.asarray(validation, dtype=np.float64), color="#f13264", linewidth=1.3, label="validation")
    if best_step is not None:
        axes.axvline(best_step, color="0.4", linestyle=":", linewidth=1.2, label=f"kept: step {best_step}")
    axes.set_xlabel("step")
    axes.set_ylabel("error, relative to the output")
    add_grid(axes, axis="y")
    axes.legend(fontsize="small")
    return axes
