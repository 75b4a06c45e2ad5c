"""Frequency responses: magnitude in decibels above, phase below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array, Complex
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid, figure_or_new, makes_room, write_instead
from ltinet.plotting.pairs import Pair, Pairs, checked_responses, pairs_of, peaks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_DEEPEST = 160.0  # dB below the highest point: what is deeper is cut, and would press all else together
_KNOWN = 1e-12  # of the peak of a pair: frequency responses are known to so much, and what is less is rounding
_DEGREES = (15.0, 30.0, 45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 3600.0)  # between ticks of phase
_TICKS = 7
_SIZE = (6.4, 4.8)  # inches, of a figure of its own


def draw_bode(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    delays: ArrayLike | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw |H| in decibels and the phase of H `(K, p, m)` over angular frequencies omega `(K,)`; two Axes come back.

    `pairs` chooses (output, input); without it all are drawn, of more than ten those that reach the largest gain. The
    phase begins between −180° and 180° and is continuous from there; where H is not finite, at a pole, lines break.
    `delays` `(p, m)` are dead times that H contains: phases follow them however far apart frequencies are.

    Raises:
        PlottingError: omega is not positive and ascending, or H has another shape.
    """
    frequencies, values = _checked(omega, H)
    shown = pairs_of(peaks_of(values), pairs, names=names, input_names=input_names)
    canvas = figure_or_new(figure, width=_SIZE[0], height=_SIZE[1] + shown.height_below(_SIZE[0]))
    above, below = canvas.subplots(2, 1, sharex=True, height_ratios=(1.25, 1.0))
    draw_magnitude(above, frequencies, values, shown)
    if makes_room(canvas) and shown.rows_below(canvas.bbox.width / canvas.figure.dpi):
        shown.add_key_below(canvas)
    else:
        shown.add_key(above)
    late = np.zeros(values.shape[1:]) if delays is None else np.asarray(delays, dtype=np.float64)
    _draw_phase(below, frequencies, values, shown, late)
    below.set_xlabel("frequency (rad/time)")
    canvas.align_ylabels([above, below])
    return np.asarray([above, below])


def draw_magnitude(axes: "Axes", frequencies: Array, H: Complex, shown: Pairs) -> None:
    """|H| in decibels, a line for each pair."""
    axes.set_xscale("log")
    axes.set_ylabel("magnitude (dB)")
    add_grid(axes)
    lines = [_decibels(H[:, output, input]) for output, input in shown.chosen]
    if not any(np.any(np.isfinite(line)) for line in lines):
        write_instead(axes, "zero everywhere")
        return
    for line, (colour, dashes) in zip(lines, shown.styles, strict=True):
        axes.plot(frequencies, line, color=colour, linestyle=dashes, linewidth=1.4)
    axes.margins(x=0.01)
    top = axes.get_ylim()[1]
    axes.set_ylim(bottom=max(axes.get_ylim()[0], top - _DEEPEST))
    if np.ptp(axes.get_ylim()) < 1.0:  # a gain: its rounding is no ripple
        middle = float(np.mean(axes.get_ylim()))
        axes.set_ylim(middle - 10.0, middle + 10.0)


def _draw_phase(axes: "Axes", frequencies: Array, H: Complex, shown: Pairs, delays: Array) -> None:
    axes.set_xscale("log")
    axes.set_ylabel("phase (degrees)")
    add_grid(axes)
    for (output, input), (colour, dashes) in zip(shown.chosen, shown.styles, strict=True):
        phase = unwrapped_phase(H[:, output, input], frequencies * delays[output, input])
        axes.plot(frequencies, phase, color=colour, linestyle=dashes, linewidth=1.4)
    axes.margins(x=0.01)
    _set_degrees(axes)


def unwrapped_phase(H: Complex, late: Array | float = 0.0) -> Array:
    """The phase in degrees, continuous, from a start in [−180, 180); NaN where H is zero, rounding or not finite.

    `late` are the angles ωτ of a delay that H contains: what is left without them is made continuous.
    """
    known = _known(H)
    phase = np.full(len(H), np.nan)
    angles = np.broadcast_to(late, H.shape)[known]
    phase[known] = np.rad2deg(np.unwrap(np.angle(H[known] * np.exp(1j * angles))) - angles)
    if known.any() and phase[known][0] > 180.0 - 1e-6:  # a negative real number has 180 or −180 by chance of rounding
        phase -= 360.0
    return phase


def _decibels(H: Complex) -> Array:
    known = _known(H)
    return np.where(known, 20.0 * np.log10(np.where(known, np.abs(H), 1.0)), np.nan)


def _known(H: Complex) -> NDArray[np.bool_]:
    """Where H is finite and more than rounding."""
    sizes = np.abs(H)
    finite = np.isfinite(sizes)
    return np.asarray(finite & (sizes > _KNOWN * np.max(sizes[finite], initial=0.0)))


def _set_degrees(axes: "Axes") -> None:
    """Ticks at parts of a full turn, and at least 90 degrees of it."""
    from matplotlib.ticker import MultipleLocator

    low, high = axes.get_ylim() if axes.lines else (-90.0, 0.0)
    if high - low < 90.0:
        middle = 45.0 * round((low + high) / 90.0)
        low, high = min(low, middle - 50.0), max(high, middle + 50.0)
        axes.set_ylim(low, high)
    step = next((step for step in _DEGREES if (high - low) / step <= _TICKS), _DEGREES[-1])
    if (high - low) / step <= 4 * _TICKS:
        axes.yaxis.set_major_locator(MultipleLocator(step))


def _checked(omega: ArrayLike, H: ArrayLike) -> tuple[Array, Complex]:
    values = checked_responses(H)
    frequencies = np.asarray(omega, dtype=np.float64)
    if frequencies.shape != values.shape[:1] or len(frequencies) == 0 or values.size == 0:
        raise PlottingError(
            f"omega has shape {frequencies.shape} and H {values.shape}; give (K,) and (K, outputs, inputs), none of "
            "them empty"
        )
    if not np.all(np.isfinite(frequencies)) or frequencies[0] <= 0.0 or np.any(np.diff(frequencies) <= 0.0):
        raise PlottingError("omega must be positive and ascending for a logarithmic axis; leave out 0, and sort it")
    return frequencies, values
