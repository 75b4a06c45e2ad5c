"""Frequency responses with the bands that hold the true ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.bode import draw_bode
from ltinet.plotting.pairs import Pair, checked_responses, pairs_of, peaks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_DEVIATIONS = 2.5758293035489004  # of a normal number: 99 % lie within


def draw_uncertain_bode(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    decibels: ArrayLike,
    degrees: ArrayLike,
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw H `(K, p, m)` as `draw_bode` does, with 99 % bands around magnitude and phase; two Axes come back.

    `decibels` and `degrees` are standard deviations of the shape of H. The axes stay as wide as the lines need them:
    a band that goes beyond leaves the picture.
    """
    values = checked_responses(H)
    widths = [_DEVIATIONS * np.asarray(own, dtype=np.float64) for own in (decibels, degrees)]
    if any(own.shape != values.shape for own in widths):
        raise PlottingError(
            f"H, decibels and degrees have shapes {values.shape}, {widths[0].shape} and {widths[1].shape}; give one "
            "deviation for each entry of H"
        )
    panels = draw_bode(omega, H, pairs=pairs, names=names, input_names=input_names, figure=figure)
    shown = pairs_of(peaks_of(values), pairs, names=names, input_names=input_names)
    for axes, width in zip(panels, widths, strict=True):
        lines = axes.get_lines()[: len(shown.chosen)]
        limits = axes.get_ylim()
        for line, (output, channel) in zip(lines, shown.chosen, strict=False):
            _draw_band(axes, line, width[:, output, channel])
        axes.set_ylim(limits)
    panels[0].set_title("bands hold 99 %", fontsize="medium", color="0.25")
    return panels


def _draw_band(axes: "Axes", line: Any, width: Array) -> None:
    frequencies, middle = (np.asarray(own, dtype=np.float64) for own in line.get_data())
    known = np.isfinite(middle) & np.isfinite(width)
    below, above = np.where(known, middle - width, np.nan), np.where(known, middle + width, np.nan)
    axes.fill_between(frequencies, below, above, color=line.get_color(), alpha=0.25, linewidth=0.0)
