"""What each connection less costs: cond(T) of every form against its connections, as steps that budgets climb."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new, count_whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK, _MARK = "0.25", "#f13264"


def draw_ladder(points: ArrayLike, *, budget: float | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw pairs (connections, cond(T)) with cond(T) on a logarithmic axis; `budget` marks the form that it buys.

    Between two forms the line runs as budgets do: nothing changes until the next form fits.

    Raises:
        PlottingError: there are no pairs, or some that a logarithmic axis cannot show.
    """
    pairs = _checked(points, budget)
    axes = axes_or_new(ax)
    axes.set_yscale("log")
    axes.step(pairs[:, 0], pairs[:, 1], where="post", color="0.75", linewidth=1.0)
    axes.plot(pairs[:, 0], pairs[:, 1], "o", color=_INK, markersize=4.0)
    if budget is not None:
        connections, condition = pairs[pairs[:, 1] <= budget][0]
        name = f"{connections:.0f} connection{'' if connections == 1 else 's'}, cond(T) = {condition:.3g}"
        axes.axhline(budget, color="#015c9f", linestyle="--", linewidth=1.2, label=f"budget {budget:g}")
        axes.plot(connections, condition, "D", markersize=9, markerfacecolor="none", color=_MARK, label=name)
        axes.legend(fontsize="small")
    top = max(float(pairs[:, 1].max()), budget or 1.0, 10.0)
    axes.set_ylim(1.0 / top**0.06, top * top**0.06)
    axes.set_xlabel("connections")
    axes.set_ylabel("condition number of T")
    add_grid(axes, axis="y")
    count_whole_numbers(axes.xaxis)
    return axes


def _checked(points: ArrayLike, budget: float | None) -> NDArray[np.float64]:
    """Pairs by rising connections."""
    pairs = np.asarray(points, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise PlottingError("points must be pairs (connections, cond(T)), at least one")
    if not np.all(np.isfinite(pairs)) or np.any(pairs[:, 1] <= 0.0):
        raise PlottingError("points have values that are not positive and finite; a logarithmic axis cannot show them")
    if budget is not None and not budget >= float(pairs[:, 1].min()):
        raise PlottingError(f"budget is {budget}; no form has so small a cond(T)")
    return pairs[np.argsort(pairs[:, 0], kind="stable")]
