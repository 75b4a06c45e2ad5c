"""Bode and Nyquist plots.

Bode plots show 20 log₁₀|H| above and the unwrapped phase below, optionally with 99 % confidence bands around an
identified model or with measured values as dots. Nyquist plots show H(jω) and its conjugate with the point −1 and the unit
circle, cut off where |H| is so large that the rest would not be visible. A phase is drawn only where H is finite and
larger than rounding; dead times are removed before unwrapping and added again, and their last turns are cut.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array, Complex
from ltinet.errors import PlottingError
from ltinet.plotting.channels import Pair, PairSelection, select_pairs
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.figures import add_grid, draw_placeholder, get_axes, get_figure, has_layout_engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Bode plots.

_MAX_DEPTH = 160.0  # dB below the highest point: deeper values are cut
_SIGNIFICANT = 1e-12  # of the peak of a pair: smaller values are rounding
_DEGREES = (15.0, 30.0, 45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 3600.0)  # between ticks of phase
_TICKS = 7
_MAX_DELAY_TURN = 360.0  # degrees shown below the phase without dead time: −ωτ falls without limit
_SIZE = (6.4, 4.8)  # inches, of a figure of its own


def draw_bode(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    delays: ArrayLike | None = None,
    error: "ResponseError | None" = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw |H| in decibels and the phase of H `(K, p, m)` over angular frequencies omega `(K,)`; return both Axes.

    `pairs` chooses (output, input); without it all are drawn, or the eight with the largest gains; more
    than eight have a colour bar instead of a legend. The phase begins between −180° and 180° and is continuous from
    there; where H is not finite, at a pole, lines break.
    `delays` `(p, m)` are dead times that H contains; phases are exact however far apart the frequencies are. The axis
    ends 360° below the phase without them, and a text in the axes says so. `error` of H is
    drawn as bands around the lines.

    Raises:
        PlottingError: omega is not positive and ascending, or H has another shape.
    """
    frequencies, values = _validate_response(omega, H)
    selection = select_pairs(peak_gains(values), pairs, names=names, input_names=input_names)
    canvas = get_figure(figure, width=_SIZE[0], height=_SIZE[1] + selection.height_below(_SIZE[0]))
    above, below = canvas.subplots(2, 1, sharex=True, height_ratios=(1.25, 1.0))
    draw_magnitude(above, frequencies, values, selection)
    if has_layout_engine(canvas) and selection.rows_below(canvas.bbox.width / canvas.figure.dpi):
        selection.add_key_below(canvas)
    else:
        selection.add_key(above)
    dead_times = np.zeros(values.shape[1:]) if delays is None else np.asarray(delays, dtype=np.float64)
    _draw_phase(below, frequencies, values, selection, dead_times)
    below.set_xlabel("frequency (rad/time)")
    if error is not None:
        _draw_error_bands([above, below], values, selection.chosen, error)
    canvas.align_ylabels([above, below])
    return np.asarray([above, below])


def draw_magnitude(axes: "Axes", frequencies: Array, H: Complex, selection: PairSelection) -> None:
    """Draw |H| in decibels, a line for each pair."""
    axes.set(xscale="log", ylabel="magnitude (dB)")
    add_grid(axes)
    lines = [_decibels(H[:, output, input]) for output, input in selection.chosen]
    if not any(np.any(np.isfinite(line)) for line in lines):
        draw_placeholder(axes, "zero everywhere")
        return
    for line, (colour, dashes) in zip(lines, selection.styles, strict=True):
        axes.plot(frequencies, line, color=colour, linestyle=dashes, linewidth=1.4)
    axes.margins(x=0.01)
    top = axes.get_ylim()[1]
    axes.set_ylim(bottom=max(axes.get_ylim()[0], top - _MAX_DEPTH))
    if np.ptp(axes.get_ylim()) < 1.0:  # a constant gain: do not magnify rounding
        middle = float(np.mean(axes.get_ylim()))
        axes.set_ylim(middle - 10.0, middle + 10.0)


def _decibels(H: Complex) -> Array:
    """Return 20 log₁₀|H|; NaN where H is zero, rounding or not finite."""
    known = _is_significant(H)
    return np.where(known, 20.0 * np.log10(np.where(known, np.abs(H), 1.0)), np.nan)


def _draw_phase(axes: "Axes", frequencies: Array, H: Complex, selection: PairSelection, delays: Array) -> None:
    axes.set(xscale="log", ylabel="phase (degrees)")
    add_grid(axes)
    bottom = np.inf
    for (output, input), (colour, dashes) in zip(selection.chosen, selection.styles, strict=True):
        turn = frequencies * delays[output, input]
        phase = unwrapped_phase(H[:, output, input], turn)
        axes.plot(frequencies, phase, color=colour, linestyle=dashes, linewidth=1.4)
        bottom = min(bottom, float(np.fmin.reduce(phase + np.rad2deg(turn), initial=np.inf)) - _MAX_DELAY_TURN)
    axes.margins(x=0.01)
    if delays.any() and bottom > axes.get_ylim()[0] and np.isfinite(bottom):
        top = max(float(np.nanmax(line.get_ydata())) for line in axes.lines)
        axes.set_ylim(bottom, top + 0.05 * (top - bottom))
        axes.annotate(
            f"dead time: below {bottom:.0f}° the phase is cut".replace("-", "−"), (0.02, 0.05), xycoords="axes fraction",
            fontsize="small", color="0.25",
        )  # fmt: skip
    _set_degrees(axes)


def unwrapped_phase(H: Complex, delay_angles: Array | float = 0.0) -> Array:
    """Return the continuous phase in degrees, starting in [−180, 180); NaN where H is zero, rounding or not finite.

    `delay_angles` are the angles ωτ of a delay that H contains; they are removed before unwrapping.
    """
    significant = _is_significant(H)
    phase = np.full(len(H), np.nan)
    angles = np.broadcast_to(delay_angles, H.shape)[significant]
    phase[significant] = np.rad2deg(np.unwrap(np.angle(H[significant] * np.exp(1j * angles))) - angles)
    # Rounding decides between 180 and −180 for negative real numbers.
    if significant.any() and phase[significant][0] > 180.0 - 1e-6:
        phase -= 360.0
    return phase


def _is_significant(H: Complex) -> NDArray[np.bool_]:
    """Return where H is finite and larger than rounding."""
    sizes = np.abs(H)
    finite = np.isfinite(sizes)
    return np.asarray(finite & (sizes > _SIGNIFICANT * np.max(sizes[finite], initial=0.0)))


def _set_degrees(axes: "Axes") -> None:
    """Set ticks at fractions of 360 degrees, and show at least 90 degrees."""
    from matplotlib.ticker import MultipleLocator

    low, high = axes.get_ylim() if axes.lines else (-90.0, 0.0)
    if high - low < 90.0:
        middle = 45.0 * round((low + high) / 90.0)
        low, high = min(low, middle - 50.0), max(high, middle + 50.0)
        axes.set_ylim(low, high)
    step = next((step for step in _DEGREES if (high - low) / step <= _TICKS), _DEGREES[-1])
    if (high - low) / step <= 4 * _TICKS:
        axes.yaxis.set_major_locator(MultipleLocator(step))


def peak_gains(H: Complex) -> Array:
    """Return the largest finite |H| of every pair, 0 if no value is finite."""
    sizes = np.abs(H)
    return np.asarray(np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0, initial=0.0))


def _validate_values(H: ArrayLike) -> Complex:
    """Return frequency responses `(K, p, m)`; a single one may be given as `(K,)`."""
    try:
        values = np.asarray(H, dtype=np.complex128)
    except (TypeError, ValueError):
        raise PlottingError("H must be an array of complex numbers, such as net.frequency_response(omega)") from None
    values = values[:, None, None] if values.ndim == 1 else values
    if values.ndim != 3:
        raise PlottingError(f"H must have the shape (frequencies, outputs, inputs), got {values.shape}")
    return values


def _validate_response(omega: ArrayLike, H: ArrayLike) -> tuple[Array, Complex]:
    values = _validate_values(H)
    frequencies = np.asarray(omega, dtype=np.float64)
    if frequencies.shape != values.shape[:1] or len(frequencies) == 0 or values.size == 0:
        raise PlottingError(
            f"omega has shape {frequencies.shape} and H {values.shape}; give (K,) and (K, outputs, inputs), none of "
            "them empty"
        )
    if not np.all(np.isfinite(frequencies)) or frequencies[0] <= 0.0 or np.any(np.diff(frequencies) <= 0.0):
        raise PlottingError("omega must be positive and ascending for a logarithmic axis; leave out 0, and sort it")
    return frequencies, values


# Bode plots of reduced models.


class ResponseError(NamedTuple):
    """Error of a frequency response at all frequencies, ‖G − H‖ ≤ size."""

    size: float
    is_proven: bool

    @property
    def description(self) -> str:
        """Description in words."""
        return (
            f"error ≤ {self.size:.1e} at all frequencies"
            if self.is_proven
            else f"error about {self.size:.1e}, not proven"
        )


def _draw_error_bands(
    panels: Sequence[Any], H: Complex, chosen: Sequence[tuple[int, int]], error: ResponseError
) -> None:
    """Shade the magnitudes and phases that are possible within the error, around the lines of a Bode plot.

    Where |H| is below the error, any smaller magnitude and any phase is possible, and all of the panel is shaded. Beyond
    such a frequency the phase is known up to multiples of 360 degrees.
    """
    for axes, is_magnitude in zip(panels, (True, False), strict=True):
        limits, lines = axes.get_ylim(), axes.get_lines()[: len(chosen)]
        for line, (output, channel) in zip(lines, chosen, strict=True):
            sizes = np.abs(H[:, output, channel])
            omega, middle = (np.asarray(data, dtype=np.float64) for data in line.get_data())
            if is_magnitude:
                with np.errstate(divide="ignore"):
                    below, above = (20.0 * np.log10(np.maximum(sizes + sign * error.size, 0.0)) for sign in (-1.0, 1.0))
                below = np.maximum(below, limits[0])
            else:
                with np.errstate(divide="ignore"):
                    width = np.rad2deg(np.arcsin(np.minimum(error.size / sizes, 1.0)))
                is_known = error.size < sizes
                below = np.where(is_known, middle - width, limits[0])
                above = np.where(is_known, middle + width, limits[1])
            axes.fill_between(omega, below, above, color=line.get_color(), alpha=0.25, linewidth=0.0)
        axes.set_ylim(limits)
    panels[0].set_title(f"reduced model, {error.description}", fontsize="medium", color="0.25")


# Bode plots with uncertainty.

NORMAL_RADIUS = NormalDist().inv_cdf(0.995)  # standard deviations: 99 % of normal values lie within


def draw_uncertain_bode(  # noqa: PLR0913 - one keyword for each option
    omega: ArrayLike,
    H: ArrayLike,
    *,
    decibels: ArrayLike,
    degrees: ArrayLike,
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    delays: ArrayLike | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw H `(K, p, m)` as `draw_bode` does, with 99 % bands around magnitude and phase; return both Axes.

    `decibels` and `degrees` are standard deviations of the shape of H. The axes are scaled
    to the lines; wider bands are cut.
    """
    values = _validate_values(H)
    widths = [NORMAL_RADIUS * np.asarray(deviation, dtype=np.float64) for deviation in (decibels, degrees)]
    if any(deviation.shape != values.shape for deviation in widths):
        raise PlottingError(
            f"H, decibels and degrees have shapes {values.shape}, {widths[0].shape} and {widths[1].shape}; give one "
            "deviation for each entry of H"
        )
    panels = draw_bode(omega, H, pairs=pairs, names=names, input_names=input_names, delays=delays, figure=figure)
    selection = select_pairs(peak_gains(values), pairs, names=names, input_names=input_names)
    for axes, width in zip(panels, widths, strict=True):
        lines = axes.get_lines()[: len(selection.chosen)]
        limits = axes.get_ylim()
        for line, (output, channel) in zip(lines, selection.chosen, strict=False):
            _draw_band(axes, line, width[:, output, channel])
        axes.set_ylim(limits)
    panels[0].set_title("bands hold 99 %", fontsize="medium", color="0.25")
    return panels


def _draw_band(axes: "Axes", line: Any, width: Array) -> None:
    frequencies, middle = (np.asarray(data, dtype=np.float64) for data in line.get_data())
    finite = np.isfinite(middle) & np.isfinite(width)
    below, above = np.where(finite, middle - width, np.nan), np.where(finite, middle + width, np.nan)
    axes.fill_between(frequencies, below, above, color=line.get_color(), alpha=0.25, linewidth=0.0)


# Measured responses.

_MEASURED_POINT_COLOUR = "0.35"


def draw_measured_response(
    omega: ArrayLike,
    measured: ArrayLike,
    modelled: ArrayLike,
    *,
    fits: Sequence[float],
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw H `(K, p, m)` of a model as lines, as `draw_bode` does, and measured values as dots; return both Axes.

    `fits` in % of every output are shown in the title.
    """
    data, model = _validate_values(measured), _validate_values(modelled)
    if data.shape != model.shape or len(fits) != model.shape[1]:
        raise PlottingError(
            f"measured, modelled and fits have {data.shape}, {model.shape} and {len(fits)} entries; give (K, p, m), "
            "(K, p, m) and p of them"
        )
    frequencies = np.asarray(omega, dtype=np.float64)
    panels = draw_bode(frequencies, model, pairs=pairs, names=names, input_names=input_names, figure=figure)
    chosen = select_pairs(peak_gains(model), pairs, names=names, input_names=input_names).chosen
    for index, (output, channel) in enumerate(chosen):
        value = data[:, output, channel]
        with np.errstate(divide="ignore"):
            decibels = 20.0 * np.log10(np.abs(value))
        above, below = (axes.get_lines()[index] for axes in panels)
        # Within half a turn of the model's own phase, which is continuous.
        turned = np.rad2deg(np.angle(value / np.exp(1j * np.deg2rad(below.get_ydata()))))
        degrees = np.asarray(below.get_ydata()) + turned
        for axes, line, dots in zip(panels, (above, below), (decibels, degrees), strict=True):
            axes.plot(frequencies, dots, linestyle="none", marker=".", markersize=3.0, color=_MEASURED_POINT_COLOUR,
                      zorder=line.get_zorder() - 0.5)  # fmt: skip
    text = ", ".join(f"{value:.1f} %" for value in list(fits)[:4])
    panels[0].set_title(f"measured (dots) and model, fit {text}", fontsize="medium", color="0.25")
    return panels


# Nyquist plots.

_CUT_THRESHOLD = 5.0  # largest over usual |H|: beyond, the curve approaches a pole and would compress the rest
_CUT_RADIUS = 3.0  # times the usual |H|: where it is cut then
_NEAR = 0.2  # |H| below this everywhere: with −1 in view the curve would be a dot
_POINT = "#f13264"


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

    Arrows point to higher frequencies. −1 and the unit circle are marked, unless |H| stays so small that they lie far
    outside; the title says so. `limit` is the largest |H| that is drawn, by default that of `nyquist_radius`; the title
    says where a curve is cut. `pairs` chooses as for `draw_bode`; without it at most seven are drawn, which colours alone
    tell apart.
    """
    values = _validate_values(H)
    if limit is not None and not 0.0 < limit < np.inf:
        raise PlottingError(f"limit must be a positive number or None, got {limit}")
    if values.size == 0:
        raise PlottingError(f"H has shape {values.shape}; there is nothing to draw")
    # By colour alone: dashes say here that frequencies are negative.
    selection = select_pairs(
        peak_gains(values), pairs, names=names, input_names=input_names, max_pairs=len(LINE_COLOURS)
    )
    curves = [values[:, output, input] for output, input in selection.chosen]
    reach = nyquist_radius(np.concatenate(curves)) if limit is None else limit
    below = 0.0 if ax is not None else selection.height_below(_SIZE[0])
    axes = get_axes(ax, width=_SIZE[0], height=_SIZE[1] + below)
    for curve, (colour, _) in zip(curves, selection.styles, strict=True):
        visible = np.where(np.isfinite(curve) & (np.abs(curve) <= reach), curve, np.nan)
        axes.plot(visible.real, visible.imag, color=colour, linewidth=1.4)
        axes.plot(visible.real, -visible.imag, color=colour, linewidth=0.9, alpha=0.45, linestyle="--")
        _add_arrow(axes, visible, colour)
    _finish_nyquist_axes(axes, np.concatenate(curves), reach)
    if selection.count > 1:
        selection = replace(selection, dashed=False)
        if below:
            selection.add_key_below(axes.figure)
        else:
            selection.add_key(axes)
    return axes


def nyquist_radius(values: Complex) -> float:
    """Return the |H| beyond which a Nyquist curve is cut.

    Curves that run farther than 5 times their usual size, or to a pole, are cut at 3 times that. The usual size is 1 for
    curves that enter the unit circle, since −1 decides there, and the median of |H| for others.
    """
    sizes = np.abs(values[np.isfinite(values)])
    if not len(sizes):
        return _CUT_RADIUS
    usual = 1.0 if np.min(sizes) < 1.0 else float(np.median(sizes))
    return _CUT_RADIUS * usual if len(sizes) < values.size or np.max(sizes) > _CUT_THRESHOLD * usual else np.inf


def _finish_nyquist_axes(axes: "Axes", values: Complex, reach: float) -> None:
    """Set equal scales, and draw the origin and −1 if it is in view."""
    sizes = np.abs(values[np.isfinite(values)])
    largest = float(np.max(sizes, initial=0.0))
    axes.axhline(0.0, color="0.75", linewidth=0.8, zorder=0)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    remarks = [f"cut at |H| = {reach:.3g}"] if len(sizes) < len(values) or largest > reach else []
    if largest >= _NEAR or largest == 0.0:
        angle = np.linspace(0.0, 2.0 * np.pi, 181)
        axes.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=0.8, linestyle=":", zorder=0.5)
        axes.plot([-1.0], [0.0], linestyle="none", marker="+", color=_POINT, markersize=11, markeredgewidth=1.8)
        axes.annotate("−1", (-1.0, 0.0), xytext=(-4, 5), textcoords="offset points", color=_POINT, ha="right")
    else:
        remarks.append(f"−1 lies far outside: |H| ≤ {largest:.2g}")
    if remarks:
        axes.set_title(", ".join(remarks), fontsize="small", color="0.25")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="real part", ylabel="imaginary part")
    axes.ticklabel_format(axis="both", style="sci", scilimits=(-3, 4), useMathText=True)
    axes.margins(0.08)
    add_grid(axes)


def _add_arrow(axes: "Axes", curve: NDArray[np.complex128], colour: str) -> None:
    """Draw an arrow half way along the curve, towards higher frequencies."""
    steps = np.abs(np.diff(curve))
    arc_lengths = np.cumsum(np.nan_to_num(steps))
    if len(arc_lengths) == 0 or arc_lengths[-1] == 0.0:
        return
    index = int(np.searchsorted(arc_lengths, 0.5 * arc_lengths[-1]))
    while index < len(steps) and not steps[index] > 0.0:
        index += 1
    start, end = curve[index], curve[index + 1]
    axes.annotate(
        "", xy=(end.real, end.imag), xytext=(start.real, start.imag), annotation_clip=False,
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 0.0, "mutation_scale": 13, "shrinkA": 0.0,
                    "shrinkB": 0.0},
    )  # fmt: skip
