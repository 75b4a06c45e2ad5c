"""A simulation on one page: outputs on top, those of another scale or unit on axes of their own, the input below."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.plotting.canvas import figure_or_new, write_instead
from ltinet.plotting.colours import LINE_STYLES, line_styles
from ltinet.plotting.names import Channels
from ltinet.plotting.response_grid import first_shown, is_logarithmic, time_label
from ltinet.plotting.trajectory import (
    Style,
    add_line_key,
    checked_bound,
    checked_outputs,
    chosen_outputs,
    draw_lines,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Panel = tuple[int, ...]
_APART = 30.0  # peaks that differ by more: the smaller curve would be a line along the axis
_PANELS = 4  # that a page has room for
_GREYS = ("0.2", "0.35", "0.5", "0.65")
_INPUTS = len(_GREYS)  # that the lowest, low panel has room for


def draw_solution(
    t: ArrayLike,
    y: ArrayLike,
    *,
    outputs: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    bound: ArrayLike | None = None,
    inputs: tuple[ArrayLike, ArrayLike] | None = None,
    input_names: Sequence[str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw outputs y `(..., T, p)` over the times t, and `inputs`, (times, values `(..., T', m)`), below.

    Outputs whose units differ, or whose peaks differ by more than a factor of 30, have axes of their own, up to four.
    Straight lines join the inputs: a time given twice is a jump. The other arguments are those of `draw_outputs`.
    The Axes come from top to bottom; they share the axis of time, which is logarithmic for times that grow as they go.
    """
    times, values = checked_outputs(t, y)
    channels = Channels(values.shape[-1], names, noun="output")
    chosen = chosen_outputs(channels, outputs)
    errors = checked_bound(bound, values)
    driven = None if inputs is None else checked_outputs(*inputs)
    panels = panels_of(np.abs(values).reshape(-1, values.shape[-1]), chosen, channels) if values.size else [chosen]
    n_axes = len(panels) + (driven is not None)
    canvas = figure_or_new(figure, width=6.4, height=min(2.2 + 1.3 * len(panels) + 1.3 * (driven is not None), 8.0))
    rows = canvas.subplots(
        n_axes, 1, sharex=True, squeeze=False, height_ratios=_heights(panels, has_input=driven is not None)
    )[:, 0]
    styles = dict(zip(chosen, line_styles(len(chosen)), strict=True))
    for axes, panel in zip(rows, panels, strict=False):
        if values.size == 0:
            write_instead(axes, "nothing to draw: no times, no outputs or an empty batch")
            continue
        own: list[Style] = [styles[index] for index in panel] if len(panel) > 1 else [(styles[panel[0]][0], "-")]
        draw_lines(axes, times, values, chosen=panel, styles=own, bound=errors)
        _name(axes, panel, channels, own, left_out=len(panels) == 1)
    if values.size:
        told = len(chosen) == channels.count or len(panels) == 1
        left_out = None if told else f"{len(chosen)} of {channels.count} outputs"
        title_of(rows[0], n_members=math.prod(values.shape[:-2]), bound=errors, chosen=chosen, left_out=left_out)
    if driven is not None:
        _draw_inputs(rows[-1], *driven, names=input_names)
    logarithmic = is_logarithmic(times)
    if logarithmic:
        rows[-1].set_xscale("log")
        rows[-1].set_xlim(left=first_shown(times, np.moveaxis(values, -2, -1)))
    rows[-1].set_xlabel(time_label(logarithmic=logarithmic))
    canvas.align_ylabels(rows)
    return np.asarray(rows)


def panels_of(sizes: Array, chosen: Sequence[int], channels: Channels) -> list[Panel]:
    """Which outputs share axes: those of one unit whose peaks are within a factor of 30; `sizes` are |y| `(…, p)`."""
    peaks = {index: float(np.max(sizes[:, index])) for index in chosen}
    panels: list[list[int]] = []
    for index in sorted(dict.fromkeys(chosen), key=lambda index: -peaks[index]):
        unit = channels.unit(index)
        fitting = [panel for panel in panels if channels.unit(panel[0]) == unit]
        if fitting and (peaks[fitting[-1][0]] <= _APART * peaks[index] or peaks[index] == 0.0):
            fitting[-1].append(index)
        elif len(panels) < _PANELS:
            panels.append([index])
        else:
            panels[-1].append(index)
    place = {index: number for number, index in reversed(list(enumerate(chosen)))}
    ordered = [sorted(panel, key=lambda index: place[index]) for panel in panels]
    return [tuple(panel) for panel in sorted(ordered, key=lambda panel: place[panel[0]])]


def _heights(panels: Sequence[Panel], *, has_input: bool) -> list[float]:
    return [1.0 if len(panels) > 1 else 2.2] * len(panels) + [0.8] * has_input


def _name(axes: "Axes", panel: Panel, channels: Channels, styles: Sequence[Style], *, left_out: bool = True) -> None:
    axes.set_ylabel(channels.together(panel))
    if len(panel) > 1:
        add_line_key(axes, panel, styles=styles, channels=channels, left_out=left_out)


def _draw_inputs(axes: "Axes", times: Array, values: Array, *, names: Sequence[str] | None) -> None:
    """The first inputs in greys, which no output has."""
    channels = Channels(values.shape[-1], names, noun="input")
    if 0 in values.shape:
        write_instead(axes, "no input")
        return
    chosen = tuple(range(min(channels.count, _INPUTS)))
    styles: list[Style] = list(zip(_GREYS, LINE_STYLES, strict=True))[: len(chosen)]
    draw_lines(axes, times, values, chosen=chosen, styles=styles, bound=None)
    _name(axes, chosen, channels, styles)
