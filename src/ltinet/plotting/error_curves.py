"""Error curves on logarithmic axes: errors of simulations over time with their bounds, and errors over training steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.colours import add_side_legend, line_styles
from ltinet.plotting.figures import add_grid, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_MARKERS = 14  # along each bound
_HIDDEN_SHARE = 0.05  # of the errors of a run that may fall below the axis


def draw_errors_and_bounds(
    t: ArrayLike, runs: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the error `(T,)` of each run as a line and its bound `(T,)` as a lighter line with markers, on a log axis.

    Errors of zero, as at the start, are omitted. The smallest twentieth of the errors may lie below the axis, so that
    first steps with errors of 1e-22 do not compress the rest.
    """
    times = np.asarray(t, dtype=np.float64)
    pairs = {name: tuple(np.asarray(values, dtype=np.float64) for values in run) for name, run in runs.items()}
    for name, values in pairs.items():
        if [array.shape for array in values] != [times.shape] * 2:
            raise PlottingError(
                f"{name} must have an error and a bound of the shape of t, {times.shape}, got "
                f"{[array.shape for array in values]}"
            )
    from matplotlib.lines import Line2D

    axes = get_axes(ax)
    every = max(1, len(times) // _N_MARKERS)
    handles = []
    for number, ((name, (error, bound)), (colour, _)) in enumerate(
        zip(pairs.items(), line_styles(len(pairs)), strict=True)
    ):
        # The bound is drawn below and its markers above, so that both are visible where they coincide.
        axes.plot(times, _positive_or_nan(bound), color=colour, linewidth=4.0, alpha=0.3)
        axes.plot(times, _positive_or_nan(error), color=colour, linewidth=1.3)
        axes.plot(times, _positive_or_nan(bound), linestyle="none", marker="v", markersize=5.0, markerfacecolor="white",
                  markeredgecolor=colour, markevery=(number * every // max(len(pairs), 1), every))  # fmt: skip
        handles.append(Line2D([], [], color=colour, label=name))
    handles += [
        Line2D([], [], color="0.4", linewidth=1.3, label="error"),
        Line2D([], [], color="0.7", linewidth=4.0, marker="v", markersize=5.0, markerfacecolor="white",
               markeredgecolor="0.4", label="bound"),
    ]  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("time")
    axes.set_ylabel("largest error of an output")
    add_side_legend(axes, handles, title="")
    axes.margins(x=0.01)
    add_grid(axes, axis="y")
    _set_lower_limit(axes, [error for error, _ in pairs.values()])
    return axes


def _positive_or_nan(values: Array) -> Array:
    return np.where(values > 0.0, values, np.nan)


def _set_lower_limit(axes: "Axes", errors: Sequence[Array]) -> None:
    """Set the lower end of the axis below all but the smallest errors of each run."""
    lows = [float(np.quantile(error[error > 0.0], _HIDDEN_SHARE)) for error in errors if np.any(error > 0.0)]
    if lows and 0.3 * min(lows) > axes.get_ylim()[0]:
        axes.set_ylim(bottom=0.3 * min(lows))


def draw_learning_curve(
    steps: ArrayLike,
    train: ArrayLike,
    validation: ArrayLike | None = None,
    *,
    best_step: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw errors against steps on a logarithmic axis; `best_step` marks the step whose parameters were selected."""
    points, errors = np.asarray(steps, dtype=np.float64), np.asarray(train, dtype=np.float64)
    if points.ndim != 1 or points.shape != errors.shape or not len(points):
        raise PlottingError(
            f"steps and train must be lists of equal length, got shapes {points.shape} and {errors.shape}"
        )
    axes = get_axes(ax)
    axes.set_yscale("log")
    axes.plot(points, errors, color="#015c9f", linewidth=1.3, label="training")
    if validation is not None:
        axes.plot(points, np.asarray(validation, dtype=np.float64), color="#f13264", linewidth=1.3, label="validation")
    if best_step is not None:
        axes.axvline(best_step, color="0.4", linestyle=":", linewidth=1.2, label=f"kept: step {best_step}")
    axes.set_xlabel("step")
    axes.set_ylabel("error, relative to the output")
    add_grid(axes, axis="y")
    axes.legend(fontsize="small")
    return axes
