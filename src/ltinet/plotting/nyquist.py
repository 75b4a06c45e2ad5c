"""Frequency responses in the complex plane, with the point −1 that decides on stability in a loop."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Complex
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, axes_or_new
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.pairs import Pair, checked_responses, pairs_of, peaks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR = 20.0  # largest over usual |H|: beyond, the curve runs away to a pole and would press all else together
_CUT = 10.0  # times the usual |H|, or 1: where it is cut then
_NEAR = 0.2  # |H| everywhere below: −1 would leave a dot of the curve
_POINT = "#f13264"
_SIZE = (6.4, 4.8)  # inches, of a figure of its own


def draw_nyquist(
    H: ArrayLike,
    *,
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    limit: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw H `(K, p, m)` at ascending frequencies in the complex plane, and its conjugate, faint: negative frequencies.

    Arrows point to higher frequencies. −1 is marked, unless |H| stays so small that it lies far outside; the title
    says so. What is larger than `limit` is cut; without one, a curve that runs 20 times farther than half of it lies,
    or than 1, is cut at 10 times that, and the title says so. `pairs` chooses as for `draw_bode`;
    without it at most seven are drawn, which colours alone tell apart.
    """
    values = checked_responses(H)
    if limit is not None and not 0.0 < limit < np.inf:
        raise PlottingError(f"limit is {limit}; give a positive number, or leave it out")
    if values.size == 0:
        raise PlottingError(f"H has shape {values.shape}; there is nothing to draw")
    # By colour alone: dashes say here that frequencies are negative.
    shown = pairs_of(peaks_of(values), pairs, names=names, input_names=input_names, most=len(LINE_COLOURS))
    curves = [values[:, output, input] for output, input in shown.chosen]
    reach = _reach(np.concatenate(curves), limit)
    below = 0.0 if ax is not None else shown.height_below(_SIZE[0])
    axes = axes_or_new(ax, width=_SIZE[0], height=_SIZE[1] + below)
    for curve, (colour, _) in zip(curves, shown.styles, strict=True):
        seen = np.where(np.isfinite(curve) & (np.abs(curve) <= reach), curve, np.nan)
        axes.plot(seen.real, seen.imag, color=colour, linewidth=1.4)
        axes.plot(seen.real, -seen.imag, color=colour, linewidth=0.9, alpha=0.45, linestyle="--")
        _add_arrow(axes, seen, colour)
    _finish(axes, np.concatenate(curves), reach)
    if shown.count > 1:
        shown = replace(shown, dashed=False)
        if below:
            shown.add_key_below(axes.figure)
        else:
            shown.add_key(axes)
    return axes


def _reach(values: Complex, limit: float | None) -> float:
    """The |H| beyond which nothing is drawn."""
    if limit is not None:
        return limit
    sizes = np.abs(values[np.isfinite(values)])
    usual = max(1.0, float(np.median(sizes))) if len(sizes) else 1.0
    return _CUT * usual if not np.all(np.isfinite(values)) or np.max(sizes) > _FAR * usual else np.inf


def _finish(axes: "Axes", values: Complex, reach: float) -> None:
    """Both axes to one scale, the origin, and −1 where it can be shown."""
    sizes = np.abs(values[np.isfinite(values)])
    largest = float(np.max(sizes, initial=0.0))
    axes.axhline(0.0, color="0.75", linewidth=0.8, zorder=0)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    told = [f"cut at |H| = {reach:.3g}"] if len(sizes) < len(values) or largest > reach else []
    if largest >= _NEAR or largest == 0.0:
        axes.plot([-1.0], [0.0], linestyle="none", marker="+", color=_POINT, markersize=11, markeredgewidth=1.8)
        axes.annotate("−1", (-1.0, 0.0), xytext=(-4, 5), textcoords="offset points", color=_POINT, ha="right")
    else:
        told.append(f"−1 lies far outside: |H| ≤ {largest:.2g}")
    if told:
        axes.set_title(", ".join(told), fontsize="small", color="0.25")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("real part")
    axes.set_ylabel("imaginary part")
    for axis in ("x", "y"):
        axes.ticklabel_format(axis=axis, style="sci", scilimits=(-3, 4), useMathText=True)
    axes.margins(0.08)
    add_grid(axes)


def _add_arrow(axes: "Axes", curve: NDArray[np.complex128], colour: str) -> None:
    """An arrow half way along the curve, towards higher frequencies."""
    steps = np.abs(np.diff(curve))
    way = np.cumsum(np.nan_to_num(steps))
    if len(way) == 0 or way[-1] == 0.0:
        return
    place = int(np.searchsorted(way, 0.5 * way[-1]))
    while place < len(steps) and not steps[place] > 0.0:
        place += 1
    start, end = curve[place], curve[place + 1]
    axes.annotate(
        "", xy=(end.real, end.imag), xytext=(start.real, start.imag), annotation_clip=False,
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 0.0, "mutation_scale": 13, "shrinkA": 0.0,
                    "shrinkB": 0.0},
    )  # fmt: skip
