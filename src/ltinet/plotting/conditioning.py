"""What sparsity costs: condition number and weights against the number of layers."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new, count_whole_numbers
from ltinet.shown import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]
_INK = "0.25"


def draw_condition(
    points: ArrayLike, *, budget: float | None = None, chosen: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw cond(T) against the number of layers on a logarithmic axis; `points` are pairs such as `form.tradeoff`.

    `budget` draws the bound on cond(T), `chosen` marks the number of layers that was taken.
    """
    return _draw_growth(points, "condition number of T", budget=budget, chosen=chosen, ax=ax)


def draw_weight_norm(points: ArrayLike, *, chosen: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the norm of all weights against the number of layers on a logarithmic axis; `points` are pairs."""
    return _draw_growth(points, "norm of all weights", budget=None, chosen=chosen, ax=ax)


def _draw_growth(
    points: ArrayLike, label: str, *, budget: float | None, chosen: int | None, ax: "Axes | None"
) -> "Axes":
    pairs = _checked(points, budget, chosen)
    axes = axes_or_new(ax)
    axes.set_yscale("log")
    axes.plot(pairs[:, 0], pairs[:, 1], color=_INK, marker="o", markersize=4.5, linewidth=1.2)
    if chosen is not None:
        value = float(np.min(pairs[pairs[:, 0] == chosen, 1]))
        name = f"{count_of(chosen, 'layer')}: {value:.3g}"
        axes.plot(chosen, value, "D", markersize=9, markerfacecolor="none", color="#f13264", label=name)
    if budget is not None:
        axes.axhline(budget, color="#015c9f", linestyle="--", linewidth=1.2, label=f"budget {budget:g}")
    _set_limits(axes, pairs, budget)
    axes.set_xlabel("number of layers")
    axes.set_ylabel(label)
    add_grid(axes, axis="y")
    if budget is not None or chosen is not None:
        axes.legend(fontsize="small")
    return axes


def _checked(points: ArrayLike, budget: float | None, chosen: int | None) -> Points:
    try:
        pairs = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise PlottingError("points must be pairs (number of layers, value), at least one, such as form.tradeoff")
    if not np.all(np.isfinite(pairs)) or np.any(pairs[:, 1] <= 0.0):
        raise PlottingError("points have values that are not positive and finite; a logarithmic axis cannot show them")
    if budget is not None and not 0.0 < budget < np.inf:
        raise PlottingError(f"budget is {budget}; give a positive number")
    if chosen is not None and chosen not in pairs[:, 0]:
        raise PlottingError(f"chosen is {chosen}, but no point has that number of layers")
    return pairs[np.argsort(pairs[:, 0])]


def _set_limits(axes: "Axes", pairs: Points, budget: float | None) -> None:
    """At least one power of ten, so that a flat curve looks flat, and whole numbers of layers."""
    shown = np.append(pairs[:, 1], [] if budget is None else [budget])
    low, high = float(np.min(shown)), float(np.max(shown))
    high = max(high, 10.0 * low)
    margin = (high / low) ** 0.06
    axes.set_ylim(low / margin, high * margin)
    first, last = float(pairs[0, 0]), float(pairs[-1, 0])
    margin = max(0.04 * (last - first), 0.5 if last - first >= 3.0 else 1.5)
    axes.set_xlim(first - margin, last + margin)
    count_whole_numbers(axes.xaxis)
