"""Drawings of a model reduction: error over frequency with its bound, and Hankel singular values."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.figures import add_grid, draw_placeholder, get_axes, use_integer_ticks

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
    """Draw ‖G − G_r‖ and ‖G‖ over frequency, and the bound, or the estimate if there is no bound, as a line.

    Raises:
        PlottingError: the shapes differ.
    """
    omega, errors, gains = (np.asarray(values, dtype=np.float64) for values in (omega, errors, gains))
    if omega.ndim != 1 or errors.shape != omega.shape or gains.shape != omega.shape:
        raise PlottingError(
            f"omega, errors and gains must be lists of equal length, got shapes {omega.shape}, {errors.shape} and {gains.shape}"
        )
    axes = get_axes(ax)
    axes.set(xlabel="angular frequency", ylabel="largest singular value")
    if not (gains > 0.0).any() and not (errors > 0.0).any():
        draw_placeholder(axes, "no gain at these frequencies")
        return axes
    axes.set(xscale="log", yscale="log")
    positive = omega > 0.0
    axes.plot(omega[positive], gains[positive], color="0.65", linewidth=1.2, label="system")
    axes.plot(omega[positive], errors[positive], color=LINE_COLOURS[0], linewidth=1.4, label="error")
    if bound is not None:
        axes.axhline(bound, color=LINE_COLOURS[1], linestyle="--", linewidth=1.2, label=f"bound {bound:.2g}")
    else:
        axes.axhline(estimate, color="0.4", linestyle=":", linewidth=1.2, label=f"estimate {estimate:.2g}")
    add_grid(axes)
    axes.legend(fontsize="small")
    return axes


def draw_hankel_values(values: ArrayLike | None, *, order: int, ax: "Axes | None" = None) -> "Axes":
    """Draw Hankel singular values in two colors, up to the order and beyond."""
    axes = get_axes(ax)
    axes.set(xlabel="state", ylabel="Hankel singular value")
    sizes = np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    if not (sizes > 0.0).any():
        draw_placeholder(axes, "no Hankel values are known")
        return axes
    draw_singular_values(axes, sizes, order, label=f"{order} kept", markersize=4.0)
    use_integer_ticks(axes.xaxis)
    add_grid(axes)
    return axes


def draw_singular_values(axes: "Axes", values: Array, order: int, *, label: str, markersize: float) -> None:
    """Draw the positive singular values as dots on a logarithmic axis, in two colors: up to the order and beyond."""
    axes.set_yscale("log")
    indices = np.arange(1, len(values) + 1)
    for group, colour, name in ((indices <= order, LINE_COLOURS[0], label), (indices > order, "0.6", "left out")):
        mask = group & (values > 0.0)
        axes.plot(indices[mask], values[mask], "o", markersize=markersize, color=colour, label=name)
    axes.legend(fontsize="small")
