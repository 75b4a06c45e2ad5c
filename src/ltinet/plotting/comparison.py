"""Simulations compared with a reference: outputs, errors with their bounds, errors over training, snapshots of fields.

`draw_comparison` draws a column per simulation with outputs, absolute and relative errors on common scales.
`draw_errors_and_bounds` and `draw_learning_curve` draw errors on a logarithmic axis. `draw_snapshots` draws images of
fields at several times, with rows of absolute errors on a colour scale of their own.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.channels import ChannelLabels
from ltinet.plotting.colours import add_side_legend, line_styles
from ltinet.plotting.figures import add_grid, draw_placeholder, get_axes, get_figure
from ltinet.plotting.time_response import add_output_key, select_outputs, validate_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Outputs and errors.


def draw_comparison(
    t: ArrayLike,
    solutions: Mapping[str, ArrayLike],
    *,
    reference: ArrayLike,
    reference_name: str = "reference",
    outputs: Sequence[int | str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw one column for each of the named solutions `(T, p)`, all to the same scales; return the Axes `(3, columns)`.

    The relative error is |y − reference| / |reference| of each output at each time, and undefined where the reference
    is zero. Error axes are logarithmic: zeros are omitted, and the smallest percent may lie below the axes.
    """
    times, expected = validate_outputs(t, reference)
    results = {name: validate_outputs(t, y)[1] for name, y in solutions.items()}
    _validate_results(results, expected)
    channels = ChannelLabels(expected.shape[-1], None, noun="output")
    chosen = select_outputs(channels, outputs)
    canvas = get_figure(figure, width=3.6 * len(results) + 1.2, height=6.6)
    from matplotlib.lines import Line2D

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
    add_output_key(panels[1, -1], chosen, channels)
    circle = Line2D([], [], linestyle="none", marker="o", markersize=4.0, markerfacecolor="white",
                    markeredgecolor="0.1", label=reference_name)  # fmt: skip
    panels[0, 0].legend(handles=[circle], fontsize="small", loc="best", handlelength=1.0)
    return np.asarray(panels)


def _validate_results(results: Mapping[str, Array], expected: Array) -> None:
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
            draw_placeholder(axes, "zero everywhere")
            continue
        for own, (colour, dashes) in zip(error.T, line_styles(error.shape[1]), strict=True):
            axes.plot(times, _positive_or_nan(own), color=colour, linestyle=dashes, linewidth=1.0)
    positive = np.concatenate([error[error > 0.0] for error in errors])
    if len(positive):  # errors of 1e-24 at first steps would compress the rest
        row[0].set_ylim(bottom=0.5 * float(np.quantile(positive, 0.01)))


# Fields.

Fields = NDArray[np.float64]
Extent = tuple[float, float, float, float]
_FIELD_MAP, _ERROR_MAP = "viridis", "magma"  # both rise evenly in lightness


def draw_snapshots(
    times: ArrayLike,
    solutions: Mapping[str, ArrayLike],
    *,
    reference: ArrayLike | None = None,
    reference_name: str = "reference",
    extent: Extent | None = None,
    quantity: str = "value",
    axis_names: tuple[str, str] = ("x", "y"),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw named fields `(k, ny, nx)` at k times, `[:, 0, 0]` at the lower left; return the Axes `(rows, k)`.

    All fields share one colour bar. With a `reference` its row follows, and one row of |field − reference| for each
    solution, with a colour bar of its own. `extent` is (left, right, bottom, top) in the units of the grid.
    `quantity` is the label of the colors, `axis_names` are those of the grid.
    """
    moments = np.asarray(times, dtype=np.float64)
    if moments.ndim != 1 or len(moments) == 0:
        raise PlottingError(f"times must be a list of at least one time, got shape {moments.shape}")
    fields = {name: _validate_field(name, field, len(moments)) for name, field in solutions.items()}
    if not fields:
        raise PlottingError('solutions is empty; give at least one, such as {"network": fields}')
    errors: dict[str, Fields] = {}
    if reference is not None:
        expected = _validate_field(reference_name, reference, len(moments))
        for name, field in fields.items():
            if field.shape != expected.shape:
                raise PlottingError(f"{name!r} has shape {field.shape} but the reference {expected.shape}")
        errors = {f"|error|\n{name}": np.abs(field - expected) for name, field in fields.items()}
        fields = {**fields, reference_name: expected}
    n_rows = len(fields) + len(errors)
    canvas = get_figure(figure, width=1.6 * len(moments) + 1.4, height=1.6 * n_rows + 0.5)
    panels = canvas.subplots(n_rows, len(moments), squeeze=False)  # shared axes would draw at half the speed
    limits = min(map(np.min, fields.values())), max(map(np.max, fields.values()))
    for row, field in zip(panels, fields.values(), strict=False):
        image = _draw_row(row, field, limits=limits, colours=_FIELD_MAP, extent=extent)
    canvas.colorbar(image, ax=panels[: len(fields)], label=quantity, pad=0.02)
    for row, error in zip(panels[len(fields) :], errors.values(), strict=True):
        # A bar of one colour would hide that the error is zero.
        top = max(float(np.max(error)), np.finfo(float).tiny)
        image = _draw_row(row, error, limits=(0.0, top), colours=_ERROR_MAP, extent=extent)
        canvas.colorbar(image, ax=row, label="|error|", pad=0.02, format=_power_of_ten)
    for axes, name in zip(panels[:, 0], (*fields, *errors), strict=True):
        axes.set_ylabel(f"{name}\n{axis_names[1]}")
    for axes in panels[-1]:
        axes.set_xlabel(axis_names[0])
    for axes, moment in zip(panels[0], moments, strict=True):
        axes.set_title(f"time {moment:g}", fontsize="medium")
    return np.asarray(panels)


def _validate_field(name: str, field: ArrayLike, n_times: int) -> Fields:
    values = np.asarray(field, dtype=np.float64)
    if values.ndim != 3 or len(values) != n_times or values.size == 0:
        raise PlottingError(f"{name!r} has shape {values.shape}; with {n_times} times it must be ({n_times}, ny, nx)")
    if not np.all(np.isfinite(values)):
        raise PlottingError(f"{name!r} must be finite everywhere; replace NaN and infinity")
    return values


def _draw_row(
    row: NDArray[Any], field: Fields, *, limits: tuple[float, float], colours: str, extent: Extent | None
) -> Any:
    for axes, values in zip(row, field, strict=True):
        image = axes.imshow(values, origin="lower", vmin=limits[0], vmax=limits[1], cmap=colours, extent=extent)
        axes.tick_params(labelsize="x-small")
        axes.label_outer(remove_inner_ticks=True)
        axes.locator_params(nbins=3)
        if extent is None:
            axes.set(xticks=[], yticks=[])
    return image


def _power_of_ten(value: float, _: int) -> str:
    return "0" if value == 0.0 else f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")


# Error curves.

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
    for number, (name, (error, bound)) in enumerate(pairs.items()):
        colour, _ = line_styles(len(pairs))[number]
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
    axes.set(xlabel="time", ylabel="largest error of an output", yscale="log")
    add_side_legend(axes, handles, title="")
    axes.margins(x=0.01)
    add_grid(axes, axis="y")
    errors = [error[error > 0.0] for error, _ in pairs.values()]
    lows = [0.3 * float(np.quantile(error, _HIDDEN_SHARE)) for error in errors if len(error)]
    if lows and min(lows) > axes.get_ylim()[0]:
        axes.set_ylim(bottom=min(lows))
    return axes


def _positive_or_nan(values: Array) -> Array:
    return np.where(values > 0.0, values, np.nan)


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
    axes.set(xlabel="step", ylabel="error, relative to the output")
    add_grid(axes, axis="y")
    axes.legend(fontsize="small")
    return axes
