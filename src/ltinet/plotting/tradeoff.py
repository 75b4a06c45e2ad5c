"""Trade-off between sparsity and conditioning: cond(T) against layers or connections, and weights against layers."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.text import format_count
from ltinet.errors import PlottingError
from ltinet.plotting.figures import add_grid, get_axes, use_integer_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]
_INK = "0.25"


def draw_condition(
    points: ArrayLike, *, budget: float | None = None, chosen: int | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw cond(T) against the number of layers on a logarithmic axis; `points` are pairs such as `form.tradeoff`.

    `budget` draws the limit on cond(T), `chosen` marks the selected number of layers.
    """
    return _draw_against_layers(points, "condition number of T", budget=budget, chosen=chosen, ax=ax)


def draw_weight_norm(points: ArrayLike, *, chosen: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the norm of all weights against the number of layers on a logarithmic axis; `points` are pairs."""
    return _draw_against_layers(points, "norm of all weights", budget=None, chosen=chosen, ax=ax)


def _draw_against_layers(
    points: ArrayLike, label: str, *, budget: float | None, chosen: int | None, ax: "Axes | None"
) -> "Axes":
    pairs = _validate_layer_points(points, budget, chosen)
    axes = get_axes(ax)
    axes.set_yscale("log")
    axes.plot(pairs[:, 0], pairs[:, 1], color=_INK, marker="o", markersize=4.5, linewidth=1.2)
    if chosen is not None:
        value = float(np.min(pairs[pairs[:, 0] == chosen, 1]))
        _mark_point(axes, chosen, value, f"{format_count(chosen, 'layer')}: {value:.3g}")
    if budget is not None:
        _draw_budget(axes, budget)
    _set_limits(axes, pairs, budget)
    axes.set(xlabel="number of layers", ylabel=label)
    add_grid(axes, axis="y")
    if budget is not None or chosen is not None:
        axes.legend(fontsize="small")
    return axes


def _validate_layer_points(points: ArrayLike, budget: float | None, chosen: int | None) -> Points:
    pairs = _validate_pairs(points, "(number of layers, value), at least one, such as form.tradeoff")
    if budget is not None and not 0.0 < budget < np.inf:
        raise PlottingError(f"budget must be a positive number, got {budget}")
    if chosen is not None and chosen not in pairs[:, 0]:
        raise PlottingError(f"chosen must be the number of layers of a point, got {chosen}")
    return pairs[np.argsort(pairs[:, 0])]


def _set_limits(axes: "Axes", pairs: Points, budget: float | None) -> None:
    """Show at least one decade, so that a flat curve looks flat, and integer numbers of layers."""
    values = np.append(pairs[:, 1], [] if budget is None else [budget])
    low, high = float(np.min(values)), float(np.max(values))
    high = max(high, 10.0 * low)
    margin = (high / low) ** 0.06
    axes.set_ylim(low / margin, high * margin)
    first, last = float(pairs[0, 0]), float(pairs[-1, 0])
    margin = max(0.04 * (last - first), 0.5 if last - first >= 3.0 else 1.5)
    axes.set_xlim(first - margin, last + margin)
    use_integer_ticks(axes.xaxis)


# Connections.


def draw_tradeoff(points: ArrayLike, *, budget: float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw pairs (connections, cond(T)) with cond(T) on a logarithmic axis; `budget` marks the sparsest form within it.

    The line between two forms is a step, because the selected form changes only where the next one fits.

    Raises:
        PlottingError: there are no pairs, or values are not positive and finite.
    """
    pairs = _validate_connection_points(points, budget)
    axes = get_axes(ax)
    axes.set_yscale("log")
    axes.step(pairs[:, 0], pairs[:, 1], where="post", color="0.75", linewidth=1.0)
    axes.plot(pairs[:, 0], pairs[:, 1], "o", color=_INK, markersize=4.0)
    if budget is not None:
        connections, condition = pairs[pairs[:, 1] <= budget][0]
        name = f"{format_count(round(connections), 'connection')}, cond(T) = {condition:.3g}"
        _draw_budget(axes, budget)
        _mark_point(axes, connections, condition, name)
        axes.legend(fontsize="small")
    top = max(float(pairs[:, 1].max()), budget or 1.0, 10.0)
    axes.set(xlabel="connections", ylabel="condition number of T", ylim=(1.0 / top**0.06, top * top**0.06))
    add_grid(axes, axis="y")
    use_integer_ticks(axes.xaxis)
    return axes


def _validate_connection_points(points: ArrayLike, budget: float | None) -> NDArray[np.float64]:
    """Return the pairs by rising number of connections."""
    pairs = _validate_pairs(points, "(connections, cond(T)), at least one")
    if budget is not None and not budget >= float(pairs[:, 1].min()):
        raise PlottingError(
            f"budget is {budget}, but every form has a larger cond(T); pass at least {float(pairs[:, 1].min()):g}"
        )
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


def _draw_budget(axes: "Axes", budget: float) -> None:
    axes.axhline(budget, color="#015c9f", linestyle="--", linewidth=1.2, label=f"budget {budget:g}")


def _mark_point(axes: "Axes", x: float, y: float, label: str) -> None:
    axes.plot(x, y, "D", markersize=9, markerfacecolor="none", color="#f13264", label=label)


def _validate_pairs(points: ArrayLike, expected: str) -> Points:
    try:
        pairs = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise PlottingError(f"points must be pairs {expected}")
    if not np.all(np.isfinite(pairs)) or np.any(pairs[:, 1] <= 0.0):
        raise PlottingError("points have values that are not positive and finite; a logarithmic axis cannot show them")
    return pairs
