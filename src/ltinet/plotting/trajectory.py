"""Outputs over time on one pair of axes."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new, write_instead
from ltinet.plotting.colours import Dashes, add_side_legend, line_styles
from ltinet.plotting.names import Channels
from ltinet.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = tuple[str, Dashes]
_OUTPUTS = 10  # lines that can be told apart
_MEMBERS = 12  # of a batch, drawn one by one
_VISIBLE = 0.003  # of the height of the axes: half the width of a line, which hides a band that is thinner


def draw_outputs(
    t: ArrayLike,
    y: ArrayLike,
    *,
    outputs: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    bound: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw outputs y `(..., T, p)` over the times t `(T,)`.

    `outputs` chooses by number or name; without it at most ten are drawn, evenly spread over all. `names` has one for
    each of the p outputs. `bound` on the errors, of the shape of y or `(..., p)`, is a band around each line. Of a
    batch of more than twelve each output is drawn as its median and the range of all.
    """
    times, values = checked_outputs(t, y)
    channels = Channels(values.shape[-1], names, noun="output")
    chosen = chosen_outputs(channels, outputs)
    errors = checked_bound(bound, values)
    axes = axes_or_new(ax)
    axes.set_xlabel("time")
    axes.set_ylabel(channels.together(chosen))
    if 0 in values.shape or not chosen:
        write_instead(axes, "nothing to draw: no times, no outputs or an empty batch")
        return axes
    draw_lines(axes, times, values, chosen=chosen, styles=line_styles(len(chosen)), bound=errors)
    title_of(axes, n_members=math.prod(values.shape[:-2]), bound=errors, chosen=chosen)
    add_output_key(axes, chosen, n_outputs=values.shape[-1], channels=channels)
    return axes


def draw_lines(
    axes: "Axes", times: Array, values: Array, *, chosen: Sequence[int], styles: Sequence[Style], bound: Array | None
) -> None:
    """A line for each of the chosen channels and each member of a batch, or a line in the range of a large batch."""
    members = values.reshape(-1, *values.shape[-2:])
    bands = None if bound is None else np.broadcast_to(bound, values.shape).reshape(members.shape)
    for index, (colour, dashes) in zip(chosen, styles, strict=True):
        own = members[..., index]
        if len(members) > _MEMBERS:
            axes.fill_between(times, own.min(axis=0), own.max(axis=0), color=colour, alpha=0.2, linewidth=0.0)
            axes.plot(times, np.median(own, axis=0), color=colour, linestyle=dashes)
        else:
            width = 1.5 if len(members) == 1 else 0.9
            axes.plot(times, own.T, color=colour, linestyle=dashes, linewidth=width)
    axes.margins(x=0.01)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)
    if bands is not None and len(members) <= _MEMBERS:
        _draw_bands(axes, times, members[..., list(chosen)], bands[..., list(chosen)], colours=[c for c, _ in styles])


def _draw_bands(axes: "Axes", times: Array, members: Array, bands: Array, *, colours: Sequence[str]) -> None:
    """Bands where they would be seen; they widen the axes by no more than the height that the lines have."""
    low, high = axes.get_ylim()
    height = high - low
    reach = np.minimum(np.nan_to_num(bands, nan=np.inf), 2.0 * height)  # one without limits goes beyond the picture
    for own, width in zip(members, reach, strict=True):
        for index, colour in enumerate(colours):
            if width[:, index].max() > _VISIBLE * height:
                below, above = own[:, index] - width[:, index], own[:, index] + width[:, index]
                axes.fill_between(times, below, above, color=colour, alpha=0.25, linewidth=0.0)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - height), min(top, high + height))


def title_of(
    axes: "Axes", *, n_members: int, bound: Array | None, chosen: Sequence[int], left_out: str | None = None
) -> None:
    """Say how many simulations there are, and how large the error may be, which hardly any picture could show."""
    parts = [] if left_out is None else [left_out]
    parts += [f"median and range of {n_members} simulations"] if n_members > _MEMBERS else []
    if bound is not None:
        largest = float(np.max(bound[..., list(chosen)]))
        parts.append(f"errors below {largest:.2g}" if math.isfinite(largest) else "no bound on the errors is known")
    if parts:
        axes.set_title(", ".join(parts), fontsize="medium" if bound is None else "small", color="0.25")


def checked_outputs(t: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Times and outputs of matching shapes; a single output may come as `(T,)`."""
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


def checked_bound(bound: ArrayLike | None, values: Array) -> Array | None:
    """A bound for every value, from one for each or one for each output."""
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


def chosen_outputs(channels: Channels, outputs: Sequence[int | str] | None) -> tuple[int, ...]:
    """The outputs asked for, by number or by name, or up to ten spread evenly over all."""
    if outputs is None:
        count = min(channels.count, _OUTPUTS)
        return tuple(np.linspace(0, max(channels.count - 1, 0), count).round().astype(int).tolist())
    wanted = [outputs] if isinstance(outputs, str) or np.ndim(outputs) == 0 else list(outputs)
    if not wanted:
        raise PlottingError(f"outputs is {shown(repr(outputs))}; give numbers or names, such as [0, 2]")
    return tuple(channels.place(own, argument="outputs") for own in wanted)


def add_output_key(
    axes: "Axes", chosen: Sequence[int], *, n_outputs: int, channels: Channels | None = None
) -> None:  # fmt: skip
    """Say which line is which output, unless there is but one."""
    if n_outputs == 1:
        return
    channels = channels or Channels(n_outputs, None, noun="output")
    add_line_key(axes, chosen, styles=line_styles(len(chosen)), channels=channels)


def add_line_key(
    axes: "Axes", chosen: Sequence[int], *, styles: Sequence[Style], channels: Channels, left_out: bool = True
) -> None:
    """Say beside the axes which line is which, and, unless it is said elsewhere, how many are left out."""
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color=colour, linestyle=dashes, label=channels.short(index))
        for index, (colour, dashes) in zip(chosen, styles, strict=True)
    ]
    some = left_out and len(chosen) < channels.count
    count = f"\n({len(chosen)} of {channels.count})" if some else ""
    add_side_legend(axes, lines, title=f"{channels.noun}{count}")
