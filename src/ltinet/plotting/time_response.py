"""Outputs over time: trajectories on one pair of axes, simulations with their inputs, and grids of responses.

`draw_outputs` draws outputs as lines with optional error bands, and large batches as median and range.
`draw_solution` distributes outputs of different scale or unit over several panels and draws the inputs below.
`draw_responses` draws the response of every output (rows) to every input (columns). Times that grow geometrically,
as responses choose them for systems with fast and slow poles, get a logarithmic axis.
"""

import math
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import PlottingError
from ltinet.plotting.channels import MAX_LETTERS, ChannelLabels, escape_label
from ltinet.plotting.colours import LINE_STYLES, Dashes, add_side_key, legend_title, line_styles
from ltinet.plotting.figures import add_grid, draw_placeholder, get_axes, get_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Grids of responses.

_MAX_ROWS, _MAX_COLUMNS = 4, 4  # readable on one page
_ROW_LETTERS = 18  # of a label beside one of several rows, which is 1.5 inches high
_SCALE_RATIO = 30.0  # peaks that differ by more have separate scales
_MOVED_SHARE = 1e-3  # of the peak of a response: change from which on a logarithmic axis shows it
_MAX_TURNS = 100  # of a line in a panel of 250 pixels, with five pixels for each period
_SHOWN_TURNS = 50  # of a line that has more
_VISIBLE_SWING = 0.02  # of the range of a line: five pixels
_UNEVEN_RATIO = 30.0  # longest over median time step from which on the time axis is logarithmic


def draw_responses(
    t: ArrayLike,
    y: ArrayLike,
    *,
    final: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw responses y `(m, T, p)`, `y[j, :, i]` that of output i to input j, over the times t `(T,)`.

    `(T, p)` is the response to a single input. `final` `(p, m)` draws the value that each comes to, where that is
    finite. Up to four outputs and four inputs are drawn, of more those with the largest responses, and the title says
    so, and what `notes` say. Times that grow as they go, as responses choose them for fast and slow poles, have a
    logarithmic axis. Return the Axes `(outputs, inputs)`.
    """
    times, values = _validate_responses(t, y)
    n_inputs, _, n_outputs = values.shape
    shape = (n_outputs, n_inputs)
    goals = np.full(shape, np.nan) if final is None else np.asarray(final, dtype=np.float64)
    if goals.shape != shape:
        raise PlottingError(f"final has shape {goals.shape}; give one value for each output and input, {shape}")
    outputs, inputs = ChannelLabels(n_outputs, names, noun="output"), ChannelLabels(n_inputs, input_names, noun="input")
    peaks = np.max(np.abs(values), axis=1, initial=0.0).T
    rows = _indices_of_largest(peaks.max(axis=1), _MAX_ROWS)
    columns = _indices_of_largest(peaks.max(axis=0), _MAX_COLUMNS)
    height = 3.6 if len(rows) == 1 else 1.0 + 1.7 * len(rows)
    canvas = get_figure(figure, width=max(6.4, 2.6 * len(columns)), height=height)
    panels = canvas.subplots(len(rows), len(columns), sharex=True, squeeze=False)
    for row, output in zip(panels, rows, strict=True):
        for axes, column in zip(row, columns, strict=True):
            draw_time_lines(axes, times, [values[column, :, output]], line_styles(1), [goals[output, column]])
        _share_scale(row, peaks[output, list(columns)])
        row[0].set_ylabel(outputs.full(output) if len(rows) == 1 else outputs.full(output, _ROW_LETTERS))
    for axes, column in zip(panels[0], columns, strict=True):
        if n_inputs > 1 or input_names is not None:
            axes.set_title(f"from {inputs.full(column)}", fontsize="medium")
    shown = values[np.ix_(columns, range(len(times)), rows)]
    for axes in panels[-1]:
        set_time_axis(axes, times, np.moveaxis(shown, 1, 2))
    is_partial = len(rows) < n_outputs or len(columns) < n_inputs
    left_out = f"{len(rows)} of {n_outputs} outputs, {len(columns)} of {n_inputs} inputs: the largest responses"
    add_notes(canvas, [*([left_out] if is_partial else []), *notes])
    canvas.align_ylabels(panels[:, 0])
    return np.asarray(panels)


def draw_as_samples(lines: Iterable[Any]) -> None:
    """Draw lines as stairs, for values that exist at samples only."""
    for line in lines:
        line.set_drawstyle("steps-post")


def draw_time_lines(
    axes: "Axes", times: Array, responses: Sequence[Array], styles: "Sequence[Style]", goals: Sequence[float]
) -> None:
    """Draw responses, and faint dashed lines at their final values."""
    shown = slice(1, None) if needs_log_axis(times) else slice(None)  # a logarithmic axis cannot show 0
    for values, (colour, dashes), goal in zip(responses, styles, goals, strict=True):
        if np.isfinite(goal):
            axes.axhline(goal, color="0.6", linestyle="--", linewidth=0.8)
        axes.plot(times[shown], values[shown], color=colour, linestyle=dashes, linewidth=1.4)
    axes.margins(x=0.01)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)


def set_time_axis(axes: "Axes", times: Array, curves: Array, unit: str | None = None) -> None:
    """Label the time axis; for times that grow geometrically it is logarithmic, and begins as `curves` `(…, T)` do."""
    logarithmic = needs_log_axis(times)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(left=first_visible_time(times, curves))
    axes.set_xlabel(time_label(unit, *(["logarithmic"] if logarithmic else [])))


def time_label(unit: str | None, *remarks: str) -> str:
    """Return the label of a time axis with the unit of the times and remarks."""
    parts = [*([] if unit is None else [escape_label(unit)]), *remarks]
    return f"time ({', '.join(parts)})" if parts else "time"


def first_visible_time(times: Array, values: Array) -> float:
    """Return the start of a logarithmic time axis, well before the first of the responses `(…, T)` changes."""
    curves = values.reshape(-1, len(times))
    moved = np.abs(curves - curves[:, :1]) > _MOVED_SHARE * np.max(np.abs(curves), axis=1, initial=0.0)[:, None]
    first = int(np.argmax(moved.any(axis=0))) if moved.any() else 1
    return max(float(times[max(first, 1)]) / 3.0, float(times[1]))


def resolved_end(times: Array, curves: Array) -> float | None:
    """Return the time up to which curves `(…, T)` that oscillate too often to be resolved are drawn; None without any."""
    ends = []
    for curve in curves.reshape(-1, len(times)):
        extremes = np.flatnonzero(np.diff(np.sign(np.diff(curve)))) + 1
        swings = np.abs(np.diff(curve[extremes]))
        turns = extremes[1:][swings > _VISIBLE_SWING * np.ptp(curve)]
        if len(turns) > _MAX_TURNS:
            ends.append(float(times[turns[_SHOWN_TURNS]]))
    return float(f"{min(ends):.3g}") if ends else None


def needs_log_axis(times: Array) -> bool:
    """Return whether times begin at zero and grow geometrically, as for systems with fast and slow poles."""
    steps = np.diff(times)
    if len(steps) < 3 or times[0] != 0.0 or not np.all(steps > 0.0):
        return False
    return float(np.max(steps)) > _UNEVEN_RATIO * float(np.median(steps))


def _indices_of_largest(sizes: Array, count: int) -> tuple[int, ...]:
    return tuple(np.sort(np.argsort(-sizes, kind="stable")[:count]).tolist())


def _share_scale(row: NDArray[Any], peaks: Array) -> None:
    """Give the responses of an output one scale, unless some would be invisible on it."""
    nonzero = peaks[peaks > 0.0]
    if len(row) < 2 or (len(nonzero) and float(nonzero.max()) > _SCALE_RATIO * float(nonzero.min())):
        return
    limits = np.array([axes.get_ylim() for axes in row])
    for axes in row:
        axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        axes.label_outer()


def add_notes(canvas: "Figure | SubFigure", sentences: Sequence[str]) -> None:
    """Write notes above all panels."""
    if sentences:
        canvas.suptitle(_wrapped(canvas, sentences), fontsize="small", color="0.25")


def _wrapped(place: "Axes | Figure | SubFigure", sentences: Sequence[str]) -> str:
    """Return sentences in lines of small letters that fit into a figure or axes."""
    figure: Any = place.figure
    width = int(13.0 * place.bbox.width / figure.dpi)  # letters that fit side by side
    return "\n".join(line for sentence in sentences for line in wrap(sentence, max(width, 20)))


def _validate_responses(t: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
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


# Outputs on one pair of axes.

Style = tuple[str, Dashes]
_MAX_OUTPUTS = 10  # lines that remain distinguishable
_MAX_BATCH_LINES = 12  # members of a batch that are drawn one by one
_VISIBLE_WIDTH = 0.003  # of the height of the axes: half a line width, which hides thinner bands


def draw_outputs(
    t: ArrayLike,
    y: ArrayLike,
    *,
    outputs: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    bound: ArrayLike | None = None,
    notes: Sequence[str] = (),
    time_unit: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw outputs y `(..., T, p)` over the times t `(T,)`.

    `outputs` chooses by number or name; without it at most ten are drawn, evenly spread over all. More than eight
    have a colour bar instead of a legend. `names` has one for each of the p outputs. `bound` on the errors, of the
    shape of y or `(..., p)`, is a band around each line. Of a batch of more than twelve each output is drawn as its
    median and the range of all. `notes` stand in the title, `time_unit` beside the time axis.
    """
    times, values = validate_outputs(t, y)
    channels = ChannelLabels(values.shape[-1], names, noun="output")
    chosen = select_outputs(channels, outputs)
    errors = validate_bound(bound, values)
    axes = get_axes(ax)
    axes.set(xlabel=time_label(time_unit))
    axes.set_ylabel(channels.together(chosen))
    if 0 in values.shape or not chosen:
        draw_placeholder(axes, "nothing to draw: no times, no outputs or an empty batch")
        return axes
    draw_lines(axes, times, values, chosen=chosen, styles=line_styles(len(chosen)), bound=errors)
    set_run_title(axes, n_members=math.prod(values.shape[:-2]), bound=errors, chosen=chosen, notes=notes)
    add_output_key(axes, chosen, channels)
    return axes


def draw_lines(
    axes: "Axes", times: Array, values: Array, *, chosen: Sequence[int], styles: Sequence[Style], bound: Array | None
) -> None:
    """Draw a line for each chosen channel and member of a batch, or median and range of a large batch."""
    members = values.reshape(-1, *values.shape[-2:])
    bands = None if bound is None else np.broadcast_to(bound, values.shape).reshape(members.shape)
    for index, (colour, dashes) in zip(chosen, styles, strict=True):
        curves = members[..., index]
        if len(members) > _MAX_BATCH_LINES:
            axes.fill_between(times, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.2, linewidth=0.0)
            axes.plot(times, np.median(curves, axis=0), color=colour, linestyle=dashes)
        else:
            width = 1.5 if len(members) == 1 else 0.9
            axes.plot(times, curves.T, color=colour, linestyle=dashes, linewidth=width)
    axes.margins(x=0.01)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)
    if bands is not None and len(members) <= _MAX_BATCH_LINES:
        _draw_bands(axes, times, members[..., list(chosen)], bands[..., list(chosen)], colours=[c for c, _ in styles])


def _draw_bands(axes: "Axes", times: Array, members: Array, bands: Array, *, colours: Sequence[str]) -> None:
    """Draw bands that are visible; they widen the axes by at most the height of the lines."""
    low, high = axes.get_ylim()
    height = high - low
    widths = np.minimum(np.nan_to_num(bands, nan=np.inf), 2.0 * height)  # one without limits goes beyond the picture
    for curves, width in zip(members, widths, strict=True):
        for index, colour in enumerate(colours):
            if width[:, index].max() > _VISIBLE_WIDTH * height:
                below, above = curves[:, index] - width[:, index], curves[:, index] + width[:, index]
                axes.fill_between(times, below, above, color=colour, alpha=0.25, linewidth=0.0)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - height), min(top, high + height))


def set_run_title(
    axes: "Axes",
    *,
    n_members: int,
    bound: Array | None,
    chosen: Sequence[int],
    left_out: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write notes, the number of simulations and the error bound, which is rarely visible, into the title."""
    parts = [] if left_out is None else [left_out]
    parts += [f"median and range of {n_members} simulations"] if n_members > _MAX_BATCH_LINES else []
    if bound is not None:
        largest = float(np.max(bound[..., list(chosen)]))
        known = f"numerical errors below {largest:.2g}"
        parts.append(known if math.isfinite(largest) else "no bound on the errors is known")
    if parts or notes:
        size = "medium" if bound is None and not notes else "small"
        axes.set_title(_wrapped(axes, [*notes, ", ".join(parts)]), fontsize=size, color="0.25")


def validate_outputs(t: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return times and outputs of matching shapes; a single output may be given as `(T,)`."""
    try:
        times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlottingError("t and y must be arrays of real numbers, such as sol.t and sol.y") from None
    values = values[:, None] if values.ndim == 1 else values
    if times.ndim != 1 or values.ndim < 2 or values.shape[-2] != len(times):
        raise PlottingError(
            f"t has shape {times.shape} and y {values.shape}; give (T,) and (T, p), batches in front of T"
        )
    return times, values


def validate_bound(bound: ArrayLike | None, values: Array) -> Array | None:
    """Return a bound for every value, from one for each value or one for each output."""
    if bound is None:
        return None
    given = np.asarray(bound, dtype=np.float64)
    over_time = np.shape(given) == (*values.shape[:-2], values.shape[-1]) and given.shape != values.shape
    try:
        return np.broadcast_to(given[..., None, :] if over_time else given, values.shape)
    except ValueError:
        raise PlottingError(
            f"bound has shape {given.shape} and y {values.shape}; give that of y, or one number for each output"
        ) from None


def select_outputs(channels: ChannelLabels, outputs: Sequence[int | str] | None) -> tuple[int, ...]:
    """Return the indices of given outputs, or of up to ten that are spread evenly over all."""
    if outputs is None:
        count = min(channels.count, _MAX_OUTPUTS)
        return tuple(np.linspace(0, max(channels.count - 1, 0), count).round().astype(int).tolist())
    chosen = [outputs] if isinstance(outputs, str) or np.ndim(outputs) == 0 else list(outputs)
    if not chosen:
        raise PlottingError(f"outputs must be indices or names, such as [0, 2], got {sanitize(repr(outputs))}")
    return tuple(channels.index(output, argument="outputs") for output in chosen)


def add_output_key(axes: "Axes", chosen: Sequence[int], channels: ChannelLabels) -> None:
    """Add a legend of the outputs, unless there is only one."""
    if channels.count > 1:
        add_line_key(axes, chosen, styles=line_styles(len(chosen)), channels=channels)


def add_line_key(
    axes: "Axes", chosen: Sequence[int], *, styles: Sequence[Style], channels: ChannelLabels, left_out: bool = True
) -> None:
    """Add a key beside the axes, with the number of omitted channels if `left_out`."""
    n_all = channels.count if left_out else len(chosen)
    title = legend_title(channels.noun, len(chosen), n_all)
    add_side_key(axes, styles, [channels.short(index) for index in chosen], title=title)


# Simulations with their inputs.

Panel = tuple[int, ...]
_MAX_PANELS = 4  # on one page
_PANEL_LETTERS = 15  # of a label beside a panel of 1.2 inches
_GREYS = ("0.2", "0.35", "0.5", "0.65")
_MAX_INPUTS = len(_GREYS)  # in the lowest panel


def draw_solution(  # noqa: PLR0913 - one keyword for each option
    t: ArrayLike,
    y: ArrayLike,
    *,
    outputs: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    bound: ArrayLike | None = None,
    inputs: tuple[ArrayLike, ArrayLike] | None = None,
    input_names: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    time_unit: str | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw outputs y `(..., T, p)` over the times t, and `inputs`, (times, values `(..., T', m)`), below.

    Outputs whose units differ, or whose peaks differ by more than a factor of 30, have axes of their own, up to four.
    Straight lines join the inputs: a time given twice is a jump. The other arguments are those of `draw_outputs`.
    Return the Axes from top to bottom. They share the time axis, which is logarithmic for geometric times.
    """
    times, values = validate_outputs(t, y)
    channels = ChannelLabels(values.shape[-1], names, noun="output")
    chosen = select_outputs(channels, outputs)
    errors = validate_bound(bound, values)
    drive = None if inputs is None else validate_outputs(*inputs)
    panels = group_outputs(np.abs(values).reshape(-1, values.shape[-1]), chosen, channels) if values.size else [chosen]
    n_axes = len(panels) + (drive is not None)
    canvas = get_figure(figure, width=6.4, height=min(2.2 + 1.3 * len(panels) + 1.3 * (drive is not None), 8.0))
    heights = [1.0 if len(panels) > 1 else 2.2] * len(panels) + [0.8] * (drive is not None)
    rows = canvas.subplots(n_axes, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    styles = dict(zip(chosen, line_styles(len(chosen)), strict=True))
    for axes, panel in zip(rows, panels, strict=False):
        if values.size == 0:
            draw_placeholder(axes, "nothing to draw: no times, no outputs or an empty batch")
            continue
        own: list[Style] = [styles[index] for index in panel] if len(panel) > 1 else [(styles[panel[0]][0], "-")]
        draw_lines(axes, times, values, chosen=panel, styles=own, bound=errors)
        is_single = len(panels) == 1
        letters = MAX_LETTERS if is_single else _PANEL_LETTERS
        _label_panel(axes, panel, channels, own, letters=letters, left_out=is_single)
    if values.size:
        is_complete = len(chosen) == channels.count or len(panels) == 1  # or the legend has the count
        left_out = None if is_complete else f"{len(chosen)} of {channels.count} outputs"
        n_members = math.prod(values.shape[:-2])
        set_run_title(rows[0], n_members=n_members, bound=errors, chosen=chosen, left_out=left_out, notes=notes)
    if drive is not None:
        _draw_inputs(rows[-1], *drive, names=input_names)
    set_time_axis(rows[-1], times, np.moveaxis(values, -2, -1), time_unit)
    canvas.align_ylabels(rows)
    return np.asarray(rows)


def group_outputs(sizes: Array, chosen: Sequence[int], channels: ChannelLabels) -> list[Panel]:
    """Group outputs that share axes: equal units and peaks within a factor of 30; `sizes` are |y| `(…, p)`."""
    peaks = {index: float(np.max(sizes[:, index])) for index in chosen}
    panels: list[list[int]] = []
    for index in sorted(dict.fromkeys(chosen), key=lambda index: -peaks[index]):
        unit = channels.unit(index)
        fitting = [panel for panel in panels if channels.unit(panel[0]) == unit]
        if fitting and (peaks[fitting[-1][0]] <= _SCALE_RATIO * peaks[index] or peaks[index] == 0.0):
            fitting[-1].append(index)
        elif len(panels) < _MAX_PANELS:
            panels.append([index])
        else:
            panels[-1].append(index)
    rank = {index: number for number, index in reversed(list(enumerate(chosen)))}
    ordered = [sorted(panel, key=lambda index: rank[index]) for panel in panels]
    return [tuple(panel) for panel in sorted(ordered, key=lambda panel: rank[panel[0]])]


def _label_panel(
    axes: "Axes", panel: Panel, channels: ChannelLabels, styles: Sequence[Style], *, letters: int, left_out: bool = True
) -> None:
    axes.set_ylabel(channels.together(panel, letters))
    if len(panel) > 1:
        add_line_key(axes, panel, styles=styles, channels=channels, left_out=left_out)


def _draw_inputs(axes: "Axes", times: Array, values: Array, *, names: Sequence[str] | None) -> None:
    """Draw the first inputs in shades of gray, which outputs do not have."""
    channels = ChannelLabels(values.shape[-1], names, noun="input")
    if 0 in values.shape:
        draw_placeholder(axes, "no input")
        return
    chosen = tuple(range(min(channels.count, _MAX_INPUTS)))
    styles: list[Style] = list(zip(_GREYS, LINE_STYLES, strict=True))[: len(chosen)]
    draw_lines(axes, times, values, chosen=chosen, styles=styles, bound=None)
    _label_panel(axes, chosen, channels, styles, letters=_PANEL_LETTERS)
