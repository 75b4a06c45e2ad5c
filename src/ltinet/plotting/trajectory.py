"""Outputs over time."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new, write_instead
from ltinet.plotting.colours import add_side_legend, line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OUTPUTS = 10  # lines that can be told apart
_MEMBERS = 12  # of a batch, drawn one by one


def draw_outputs(
    t: ArrayLike, y: ArrayLike, *, outputs: Sequence[int] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw outputs y `(..., T, p)` over the times t `(T,)`.

    `outputs` chooses by index; without it at most ten are drawn, evenly spread over all. Of a batch of more than
    twelve each output is drawn as its median and the range of all.
    """
    times, values = checked_outputs(t, y)
    chosen = chosen_outputs(values.shape[-1], outputs)
    axes = axes_or_new(ax)
    axes.set_xlabel("time")
    axes.set_ylabel(f"output {chosen[0]}" if len(chosen) == 1 else "output")
    members = values.reshape(math.prod(values.shape[:-2]), *values.shape[-2:])
    if len(times) == 0 or len(chosen) == 0 or len(members) == 0:
        write_instead(axes, "nothing to draw: no times, no outputs or an empty batch")
        return axes
    for index, (colour, dashes) in zip(chosen, line_styles(len(chosen)), strict=True):
        if len(members) > _MEMBERS:
            low, high = np.min(members[..., index], axis=0), np.max(members[..., index], axis=0)
            axes.fill_between(times, low, high, color=colour, alpha=0.2, linewidth=0.0)
            axes.plot(times, np.median(members[..., index], axis=0), color=colour, linestyle=dashes)
        else:
            width = 1.5 if len(members) == 1 else 0.9
            axes.plot(times, members[..., index].T, color=colour, linestyle=dashes, linewidth=width)
    if len(members) > _MEMBERS:
        axes.set_title(f"median and range of {len(members)} simulations", fontsize="medium")
    add_output_key(axes, chosen, n_outputs=values.shape[-1])
    axes.margins(x=0.01)
    return axes


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


def chosen_outputs(n_outputs: int, outputs: Sequence[int] | None) -> tuple[int, ...]:
    """The outputs asked for, or up to ten spread evenly over all."""
    if outputs is None:
        count = min(n_outputs, _OUTPUTS)
        return tuple(np.linspace(0, max(n_outputs - 1, 0), count).round().astype(int).tolist())
    indices = np.atleast_1d(np.asarray(outputs))
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer) or len(indices) == 0:
        raise PlottingError(f"outputs is {outputs!r}; give indices, such as [0, 2]")
    if np.any((indices < 0) | (indices >= n_outputs)):
        raise PlottingError(f"outputs is {outputs!r}, but there are {n_outputs} outputs, counted from 0")
    return tuple(indices.tolist())


def add_output_key(axes: "Axes", chosen: Sequence[int], *, n_outputs: int) -> None:
    """Say which line is which output, unless there is but one."""
    from matplotlib.lines import Line2D

    if n_outputs == 1:
        return
    lines = [
        Line2D([], [], color=colour, linestyle=dashes, label=str(index))
        for index, (colour, dashes) in zip(chosen, line_styles(len(chosen)), strict=True)
    ]
    title = "output" if len(chosen) == n_outputs else f"output\n({len(chosen)} of {n_outputs})"
    add_side_legend(axes, lines, title=title)
