"""Drawings of an identified model: fit, residual correlations, order selection, and uncertain poles.

Confidence regions are those of a normal distribution at 99 %: ±2.576 standard deviations for a real pole, and for a
complex pair the ellipse zᵀ P⁻¹ z ≤ 9.210, the 99 % quantile of χ² with two degrees of freedom, where P is the
covariance of real and imaginary part.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.channels import ChannelLabels
from ltinet.plotting.colours import LAYER_MARKERS, LINE_COLOURS
from ltinet.plotting.figures import add_grid, draw_placeholder, get_figure, use_integer_ticks
from ltinet.plotting.frequency_response import NORMAL_RADIUS
from ltinet.plotting.layers import draw_spectrum
from ltinet.plotting.reduction import draw_singular_values
from ltinet.plotting.time_response import select_outputs, time_label, validate_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Measured and simulated outputs.

_MEASURED_LINE_COLOUR = "0.55"


def draw_measured(  # noqa: PLR0913 - one keyword for each option
    t: ArrayLike,
    measured: ArrayLike,
    modelled: ArrayLike,
    *,
    fits: Sequence[float],
    names: Sequence[str] | None = None,
    outputs: Sequence[int | str] | None = None,
    seams: Sequence[float] = (),
    time_unit: str | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw measured and simulated outputs `(T, p)`, one panel for each; return the Axes `(p,)`.

    `fits` in % are shown in the legends; without `outputs` at most ten are drawn. `seams` are times at which another
    experiment begins; NaN separates lines there. `time_unit` stands beside the time axis.
    """
    times, expected = validate_outputs(t, measured)
    _, simulated = validate_outputs(t, modelled)
    if expected.ndim != 2 or simulated.shape != expected.shape or len(fits) != expected.shape[1]:
        raise PlottingError(
            f"measured, modelled and fits have {expected.shape}, {simulated.shape} and {len(fits)} entries; give "
            "(T, p), (T, p) and p of them"
        )
    channels = ChannelLabels(expected.shape[1], names, noun="output")
    chosen = select_outputs(channels, outputs)
    canvas = get_figure(figure, width=8.0, height=0.9 + 2.2 * len(chosen))
    panels = canvas.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for axes, index in zip(panels, chosen, strict=True):
        axes.plot(times, expected[:, index], color=_MEASURED_LINE_COLOUR, linewidth=1.6, label="measured")
        label = f"model, fit {float(fits[index]):.1f} %"
        axes.plot(times, simulated[:, index], color=LINE_COLOURS[0], linewidth=0.9, label=label)
        axes.margins(x=0.01)
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
        add_grid(axes)
        axes.legend(
            fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0
        )
        axes.set_ylabel(channels.short(index))
        for seam in seams:
            axes.axvline(seam, color="0.75", linewidth=0.8, linestyle=":")
    panels[-1].set_xlabel(time_label(time_unit))
    return np.asarray(panels)


# Correlations of residuals.

_MAX_INPUTS = 4  # columns that remain readable


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
    """Draw correlations `(p, lags)` and `(p, m, lags)`, a row for each output; return the Axes `(rows, 1 + inputs)`.

    `band` is half the width of the band that contains 99 % of random values. Values outside are marked. At most four
    inputs are drawn, and ten outputs unless `outputs` chooses.
    """
    lags, auto, cross = _validate_correlations(lags, autocorrelation, cross_correlation)
    output_labels = ChannelLabels(len(auto), names, noun="output")
    chosen = select_outputs(output_labels, outputs)
    input_labels = ChannelLabels(cross.shape[1], input_names, noun="input")
    n_inputs = min(cross.shape[1], _MAX_INPUTS)
    canvas = get_figure(figure, width=1.0 + 3.4 * (1 + n_inputs), height=0.7 + 2.1 * len(chosen))
    panels = canvas.subplots(len(chosen), 1 + n_inputs, sharex="col", squeeze=False)
    positive = lags > 0  # an autocorrelation is symmetric, and 1 at lag 0
    for row, index in zip(panels, chosen, strict=True):
        _draw_correlation_panel(row[0], lags[positive], auto[index, positive], band)
        row[0].set_ylabel(f"correlation, {output_labels.short(index)}")
        for column in range(n_inputs):
            _draw_correlation_panel(row[1 + column], lags, cross[index, column], band)
            row[1 + column].axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    panels[0, 0].set_title("residuals with themselves", fontsize="medium")
    for column in range(n_inputs):
        panels[0, 1 + column].set_title(f"residuals after {input_labels.short(column)}", fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel("lag (samples)")
    return np.asarray(panels)


def _validate_correlations(
    lags: ArrayLike, autocorrelation: ArrayLike, cross_correlation: ArrayLike
) -> tuple[Array, Array, Array]:
    arrays = (lags, autocorrelation, cross_correlation)
    places, alone, cross = (np.asarray(values, dtype=np.float64) for values in arrays)
    matches = cross.ndim == 3 and (cross.shape[0], cross.shape[2]) == alone.shape
    if places.ndim != 1 or alone.shape[1:] != places.shape or not matches:
        raise PlottingError(
            f"lags, autocorrelation and cross_correlation have shapes {places.shape}, {alone.shape} and {cross.shape}; "
            "give (L,), (p, L) and (p, m, L)"
        )
    return places, alone, cross


def _draw_correlation_panel(axes: "Axes", lags: Array, values: Array, band: float) -> None:
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


# Selection of the order.

_MAX_VALUES = 40  # singular values that are drawn: the others are noise


def draw_orders(
    singular_values: ArrayLike,
    errors: Mapping[str, Mapping[int, float]],
    *,
    chosen: int,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw singular values, and beside them relative errors by order for each kind of model; return both Axes.

    `chosen` marks the selected order.
    """
    values = np.asarray(singular_values, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise PlottingError(f"singular values have shape {values.shape}; give a list of finite numbers")
    canvas = get_figure(figure, width=9.0, height=3.8)
    panels = canvas.subplots(1, 2)
    _draw_values(panels[0], values[: max(_MAX_VALUES, chosen + 1)], chosen)
    _draw_errors(panels[1], errors, chosen)
    for axes in panels:
        use_integer_ticks(axes.xaxis)
        add_grid(axes)
    return np.asarray(panels)


def _draw_values(axes: "Axes", values: Array, chosen: int) -> None:
    axes.set(xlabel="number of the singular value", ylabel="singular value")
    if not (values > 0.0).any():
        draw_placeholder(axes, "no singular values")
        return
    draw_singular_values(axes, values, chosen, label=f"order {chosen}", markersize=4.5)


def _draw_errors(axes: "Axes", errors: Mapping[str, Mapping[int, float]], chosen: int) -> None:
    axes.set(xlabel="order", ylabel="error on unseen samples / outputs")
    curves = [(kind, by_order) for kind, by_order in errors.items() if by_order]
    if not curves:
        draw_placeholder(axes, "no models were compared")
        return
    axes.set_yscale("log")
    axes.axvline(chosen, color="0.8", linewidth=5.0, zorder=0)
    for index, (kind, by_order) in enumerate(curves):
        orders = sorted(by_order)
        axes.plot(orders, [by_order[order] for order in orders], color=LINE_COLOURS[index % len(LINE_COLOURS)],
                  marker=LAYER_MARKERS[index % len(LAYER_MARKERS)], markersize=4.5, linewidth=1.0, label=kind)  # fmt: skip
    orders = sorted({order for _, by_order in curves for order in by_order})
    axes.set_xlim(orders[0] - 1.0, orders[-1] + 1.0)  # integer ticks need two integers
    axes.legend(fontsize="small")


# Uncertain poles.

# Square root of the 99 % quantile of the χ² distribution with two degrees of freedom, whose tail is e^{−x/2}.
_PAIR_RADIUS = math.sqrt(-2.0 * math.log(0.01))
_MIN_RELATIVE_WIDTH = 0.5  # width of the axes in units of the largest pole
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 181)


def draw_uncertain_poles(
    poles: ArrayLike, regions: Sequence[tuple[complex, ArrayLike]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw poles and their 99 % confidence regions.

    A region is a pole and its covariance: `(1, 1)` for a real pole, drawn as a line, or `(2, 2)` of real and imaginary
    part for a pair, drawn as two ellipses.
    """
    values = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    axes = draw_spectrum([values], ax=ax)
    for pole, values_of_covariance in regions:
        covariance = np.asarray(values_of_covariance, dtype=np.float64)
        if covariance.shape not in ((1, 1), (2, 2)):
            raise PlottingError(f"the covariance of {pole:.4g} has shape {covariance.shape}; give (1, 1) or (2, 2)")
        if not np.all(np.isfinite(covariance)):
            continue
        if len(covariance) == 1:
            half = NORMAL_RADIUS * float(np.sqrt(max(covariance[0, 0], 0.0)))
            axes.plot([pole.real - half, pole.real + half], [0.0, 0.0], color=LINE_COLOURS[1], linewidth=3.0,
                      alpha=0.6, solid_capstyle="butt", zorder=3)  # fmt: skip
            continue
        outline = _ellipse(covariance)
        for side in (1.0, -1.0):
            axes.fill(pole.real + outline[0], side * (pole.imag + outline[1]), facecolor="none",
                      edgecolor=LINE_COLOURS[1], linewidth=1.6, zorder=3)  # fmt: skip
    if np.any(values.imag):
        add_grid(axes)
    low, high = axes.get_xlim()
    least = _MIN_RELATIVE_WIDTH * float(np.abs(values).max(initial=0.0))
    if axes.get_xscale() == "linear" and high - low < least:  # the axes would show rounding around a single pole
        axes.set_xlim(0.5 * (low + high - least), 0.5 * (low + high + least))
    axes.set_title("99 % regions" if regions else "the uncertainty is unknown", fontsize="medium", color="0.25")
    return axes


def _ellipse(covariance: Array) -> Array:
    """Return the outline of the ellipse around 0, `(2, angles)`."""
    sizes, directions = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    return np.asarray(_PAIR_RADIUS * directions @ (np.sqrt(np.maximum(sizes, 0.0))[:, None] * circle))
