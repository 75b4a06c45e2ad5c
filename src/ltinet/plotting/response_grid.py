"""Responses of every output to every input on a grid: outputs from top to bottom, inputs from left to right."""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, figure_or_new
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.names import Channels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_ROWS, _COLUMNS = 4, 4  # that can be read on one page
_APART = 30.0  # peaks in a row that differ by more have scales of their own
_STILL = 1e-3  # of the peak of a response: where it has moved by less, a logarithmic axis need not begin
_UNEVEN = 30.0  # longest over median step of the times: beyond, they were chosen for a logarithmic axis


def draw_responses(
    t: ArrayLike,
    y: ArrayLike,
    *,
    final: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    remarks: Sequence[str] = (),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw responses y `(m, T, p)`, `y[j, :, i]` that of output i to input j, over the times t `(T,)`.

    `(T, p)` is the response to a single input. `final` `(p, m)` draws the value that each comes to, where that is
    finite. Up to four outputs and four inputs are drawn, of more those with the largest responses, and the title says
    so, and what `remarks` say. Times that grow as they go, as responses choose them for fast and slow poles, have a
    logarithmic axis. The Axes come as (outputs, inputs).
    """
    times, values = _checked(t, y)
    n_inputs, _, n_outputs = values.shape
    goals = _checked_final(final, (n_outputs, n_inputs))
    outputs, inputs = Channels(n_outputs, names, noun="output"), Channels(n_inputs, input_names, noun="input")
    peaks = np.max(np.abs(values), axis=1, initial=0.0).T
    rows, columns = _largest(peaks.max(axis=1), _ROWS), _largest(peaks.max(axis=0), _COLUMNS)
    size = (max(6.4, 2.6 * len(columns)), 3.6 if len(rows) == 1 else 1.0 + 1.7 * len(rows))
    canvas = figure_or_new(figure, width=size[0], height=size[1])
    panels = canvas.subplots(len(rows), len(columns), sharex=True, squeeze=False)
    logarithmic = is_logarithmic(times)
    for row, output in zip(panels, rows, strict=True):
        for axes, column in zip(row, columns, strict=True):
            draw_response(axes, times, values[column, :, output], goals[output, column], logarithmic=logarithmic)
        _share_scale(row, peaks[output, list(columns)])
        row[0].set_ylabel(outputs.full(output))
    for axes, column in zip(panels[0], columns, strict=True):
        if n_inputs > 1 or input_names is not None:
            axes.set_title(f"from {inputs.full(column)}", fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel(time_label(logarithmic=logarithmic))
    if logarithmic:
        shown = values[np.ix_(columns, range(len(times)), rows)]
        panels[0, 0].set_xlim(left=first_shown(times, np.moveaxis(shown, 1, 2)))
    some = len(rows) < n_outputs or len(columns) < n_inputs
    left_out = f"{len(rows)} of {n_outputs} outputs, {len(columns)} of {n_inputs} inputs: the largest responses"
    say(canvas, [*([left_out] if some else []), *remarks])
    canvas.align_ylabels(panels[:, 0])
    return np.asarray(panels)


def draw_response(axes: "Axes", times: Array, values: Array, goal: float, *, logarithmic: bool) -> None:
    """One response, and a dashed line at the value that it comes to."""
    shown = slice(1, None) if logarithmic else slice(None)  # zero has no place on a logarithmic axis
    if np.isfinite(goal):
        axes.axhline(goal, color="0.5", linestyle="--", linewidth=0.9)
    axes.plot(times[shown], values[shown], color=LINE_COLOURS[0], linewidth=1.4)
    set_time_axis(axes, logarithmic=logarithmic)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)


def set_time_axis(axes: "Axes", *, logarithmic: bool) -> None:
    """The axis of time of a response."""
    if logarithmic:
        axes.set_xscale("log")
    axes.margins(x=0.01)


def first_shown(times: Array, values: Array) -> float:
    """Where a logarithmic axis of time begins: well before the first of the responses `(…, T)` begins to move."""
    curves = values.reshape(-1, len(times))
    moved = np.abs(curves - curves[:, :1]) > _STILL * np.max(np.abs(curves), axis=1, initial=0.0)[:, None]
    first = int(np.argmax(moved.any(axis=0))) if moved.any() else 1
    return max(float(times[max(first, 1)]) / 3.0, float(times[1]))


def time_label(*, logarithmic: bool) -> str:
    """What is written along it."""
    return "time (logarithmic)" if logarithmic else "time"


def is_logarithmic(times: Array) -> bool:
    """Whether times grow as they go, and begin at zero, as those of responses to fast and slow poles."""
    steps = np.diff(times)
    if len(steps) < 3 or times[0] != 0.0 or not np.all(steps > 0.0):
        return False
    return float(np.max(steps)) > _UNEVEN * float(np.median(steps))


def _largest(sizes: Array, most: int) -> tuple[int, ...]:
    return tuple(np.sort(np.argsort(-sizes, kind="stable")[:most]).tolist())


def _share_scale(row: NDArray[Any], peaks: Array) -> None:
    """One scale for the responses of an output, unless some would be lines along the axis on it."""
    some = peaks[peaks > 0.0]
    if len(row) < 2 or (len(some) and float(some.max()) > _APART * float(some.min())):
        return
    limits = np.array([axes.get_ylim() for axes in row])
    for axes in row:
        axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        axes.label_outer()


def say(canvas: "Figure | SubFigure", sentences: Sequence[str]) -> None:
    """What is to be known of all panels, above them."""
    if sentences:
        width = int(13.0 * canvas.bbox.width / canvas.figure.dpi)  # letters that fit side by side
        text = "\n".join(line for sentence in sentences for line in wrap(sentence, width))
        canvas.suptitle(text, fontsize="small", color="0.25")


def _checked(t: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    try:
        times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlottingError("t and y must be arrays of real numbers, such as those of net.step_response()") from None
    values = values[None] if values.ndim == 2 else values
    if times.ndim != 1 or values.ndim != 3 or values.shape[1] != len(times) or values.size == 0:
        raise PlottingError(
            f"t has shape {times.shape} and y {values.shape}; give (T,) and (inputs, T, outputs), none of them empty"
        )
    return times, values


def _checked_final(final: ArrayLike | None, shape: tuple[int, int]) -> Array:
    goals = np.full(shape, np.nan) if final is None else np.asarray(final, dtype=np.float64)
    if goals.shape != shape:
        raise PlottingError(f"final has shape {goals.shape}; give one value for each output and input, {shape}")
    return goals
