"""Several simulations beside a reference: outputs on top, absolute and relative error below."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, figure_or_new, write_instead
from ltinet.plotting.colours import line_styles
from ltinet.plotting.names import Channels
from ltinet.plotting.trajectory import add_output_key, checked_outputs, chosen_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def draw_comparison(
    t: ArrayLike,
    solutions: Mapping[str, ArrayLike],
    *,
    reference: ArrayLike,
    reference_name: str = "reference",
    outputs: Sequence[int | str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw one column for each of the named solutions `(T, p)`, all to the same scales; the Axes come as (3, columns).

    The relative error is |y − reference| / |reference| of each output at each time; where the reference is zero there
    is none. The axes of errors are logarithmic: zero has no place there, and the least percent may fall below.
    """
    times, expected = checked_outputs(t, reference)
    results = {name: checked_outputs(t, y)[1] for name, y in solutions.items()}
    _check(results, expected)
    chosen = chosen_outputs(Channels(expected.shape[-1], None, noun="output"), outputs)
    canvas = figure_or_new(figure, width=3.6 * len(results) + 1.2, height=6.6)
    panels = canvas.subplots(3, len(results), sharex=True, sharey="row", squeeze=False)
    errors = {name: np.abs(y - expected)[:, chosen] for name, y in results.items()}
    relative = {name: _relative(error, np.abs(expected[:, chosen])) for name, error in errors.items()}
    for column, (name, y) in zip(panels.T, results.items(), strict=True):
        column[0].set_title(name, fontsize="medium")
        _draw_outputs(column[0], times, y[:, chosen], expected[:, chosen])
        column[2].set_xlabel("time")
    _draw_errors(panels[1], times, list(errors.values()))
    _draw_errors(panels[2], times, list(relative.values()))
    for axes, label in zip(panels[:, 0], ("output", "absolute error", "relative error"), strict=True):
        axes.set_ylabel(label)
    add_output_key(panels[1, -1], chosen, n_outputs=expected.shape[-1])
    _name_reference(panels[0, 0], reference_name)
    return np.asarray(panels)


def _check(results: Mapping[str, Array], expected: Array) -> None:
    if not results:
        raise PlottingError('solutions is empty; give at least one, such as {"exact": sol.y}')
    for name, y in results.items():
        if y.ndim != 2 or y.shape != expected.shape:
            raise PlottingError(
                f"solution {name!r} has shape {y.shape} and the reference {expected.shape}; both must be (T, p)"
            )


def _relative(error: Array, size: Array) -> Array:
    return np.divide(error, size, out=np.full_like(error, np.nan), where=size > 0.0)


def _draw_outputs(axes: "Axes", times: Array, y: Array, expected: Array) -> None:
    for own, exact, (colour, dashes) in zip(y.T, expected.T, line_styles(y.shape[1]), strict=True):
        axes.plot(times, own, color=colour, linestyle=dashes, linewidth=1.4)
        axes.plot(times, exact, linestyle="none", marker="o", markersize=2.6, markevery=max(1, len(times) // 16),
                  markerfacecolor="white", markeredgecolor="0.1", markeredgewidth=0.6)  # fmt: skip


def _draw_errors(row: NDArray[Any], times: Array, errors: Sequence[Array]) -> None:
    for axes, error in zip(row, errors, strict=True):
        axes.set_yscale("log")
        add_grid(axes, axis="y")
        if not np.any(error > 0.0):
            write_instead(axes, "zero everywhere")
            continue
        for own, (colour, dashes) in zip(error.T, line_styles(error.shape[1]), strict=True):
            axes.plot(times, np.where(own > 0.0, own, np.nan), color=colour, linestyle=dashes, linewidth=1.0)
    positive = np.concatenate([error[error > 0.0] for error in errors])
    if len(positive):  # the first step of a solver may be exact to 1e-24, and would press all else together
        row[0].set_ylim(bottom=0.5 * float(np.quantile(positive, 0.01)))


def _name_reference(axes: "Axes", name: str) -> None:
    from matplotlib.lines import Line2D

    circle = Line2D([], [], linestyle="none", marker="o", markersize=4.0, markerfacecolor="white",
                    markeredgecolor="0.1", label=name)  # fmt: skip
    axes.legend(handles=[circle], fontsize="small", loc="best", handlelength=1.0)
