"""Correlations of what a model leaves over, with itself and with the inputs, and the bands of chance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, figure_or_new
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.names import Channels
from ltinet.plotting.trajectory import chosen_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_INPUTS = 4  # columns that can be read


def draw_correlations(
    lags: ArrayLike,
    autocorrelation: ArrayLike,
    cross_correlation: ArrayLike,
    *,
    band: float,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    outputs: Sequence[int | str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw correlations `(p, lags)` and `(p, m, lags)`, a row for each output; the Axes come as (rows, 1 + inputs).

    `band` is half the width of the band that holds 99 % of those of chance. Values outside are marked. At most four
    inputs are drawn, and ten outputs unless `outputs` chooses.
    """
    places, alone, cross = _checked(lags, autocorrelation, cross_correlation)
    named = Channels(len(alone), names, noun="output")
    chosen = chosen_outputs(named, outputs)
    driving = Channels(cross.shape[1], input_names, noun="input")
    n_inputs = min(cross.shape[1], _INPUTS)
    canvas = figure_or_new(figure, width=1.0 + 3.4 * (1 + n_inputs), height=0.7 + 2.1 * len(chosen))
    panels = canvas.subplots(len(chosen), 1 + n_inputs, sharex="col", squeeze=False)
    after = places > 0  # before 0 an autocorrelation says the same again, and at 0 it is 1
    for row, index in zip(panels, chosen, strict=True):
        _draw(row[0], places[after], alone[index, after], band)
        row[0].set_ylabel(named.short(index))
        for column in range(n_inputs):
            _draw(row[1 + column], places, cross[index, column], band)
            row[1 + column].axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    panels[0, 0].set_title("residuals with themselves", fontsize="medium")
    for column in range(n_inputs):
        panels[0, 1 + column].set_title(f"residuals after {driving.short(column)}", fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel("lag (samples)")
    return np.asarray(panels)


def _checked(lags: ArrayLike, autocorrelation: ArrayLike, cross_correlation: ArrayLike) -> tuple[Array, Array, Array]:
    places, alone, cross = (np.asarray(own, dtype=np.float64) for own in (lags, autocorrelation, cross_correlation))
    if (
        places.ndim != 1
        or alone.shape[1:] != places.shape
        or cross.ndim != 3
        or (cross.shape[0], cross.shape[2]) != alone.shape
    ):
        raise PlottingError(
            f"lags, autocorrelation and cross_correlation have shapes {places.shape}, {alone.shape} and {cross.shape}; "
            "give (L,), (p, L) and (p, m, L)"
        )
    return places, alone, cross


def _draw(axes: "Axes", lags: Array, values: Array, band: float) -> None:
    outside = np.abs(values) > band
    axes.axhspan(-band, band, color="0.9", linewidth=0.0, zorder=0)
    axes.vlines(lags, 0.0, values, color=np.where(outside, LINE_COLOURS[1], LINE_COLOURS[0]).tolist(), linewidth=1.6)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    reach = 1.25 * max(1.6 * band, float(np.abs(values).max(initial=0.0)))
    axes.set_ylim(-reach, reach)
    add_grid(axes, axis="y")
    count = int(outside.sum())
    axes.text(0.98, 0.95, f"{count} of {len(lags)} outside 99 %", transform=axes.transAxes, ha="right", va="top",
              fontsize="small", color="0.25")  # fmt: skip
