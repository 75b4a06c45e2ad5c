"""Drawings of an identified model: fit, residual correlations, order selection, and uncertain poles.

Confidence regions are those of a normal distribution at 99 %: ±2.576 standard deviations for a real pole, and for a
complex pair the ellipse zᵀ P⁻¹ z ≤ 9.210, the 99 % quantile of χ² with two degrees of freedom, where P is the
covariance of real and imaginary part. `IdentificationPlotData` holds the callables that compute what a drawing needs
when it is drawn, and `IdentificationPlots` is the object behind `result.plot`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.display import dir_without
from ltinet._util.floating_point import Array
from ltinet.errors import PlottingError
from ltinet.plotting.channels import ChannelLabels, Pair
from ltinet.plotting.colours import LAYER_MARKERS, LINE_COLOURS
from ltinet.plotting.figures import add_grid, draw_placeholder, get_figure, use_integer_ticks
from ltinet.plotting.frequency_response import draw_measured_response, draw_uncertain_bode
from ltinet.plotting.layers import draw_spectrum
from ltinet.plotting.time_response import select_outputs, validate_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# MERGED ltinet.plotting.identification
# Measured outputs beside those that a model simulates.

_MEASURED_LINE_COLOUR = "0.55"


def draw_measured(
    t: ArrayLike,
    measured: ArrayLike,
    modelled: ArrayLike,
    *,
    fits: Sequence[float],
    names: Sequence[str] | None = None,
    outputs: Sequence[int | str] | None = None,
    seams: Sequence[float] = (),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw outputs `(T, p)` as they were measured and as a model has them, one panel for each; the Axes come as (p,).

    `fits` in % go to the legends; without `outputs` at most ten are drawn. `seams` are times at which another
    experiment begins; NaN parts lines there.
    """
    times, expected = validate_outputs(t, measured)
    _, simulated = validate_outputs(t, modelled)
    if expected.ndim != 2 or simulated.shape != expected.shape or len(fits) != expected.shape[1]:
        raise PlottingError(
            f"measured, modelled and fits have {expected.shape}, {simulated.shape} and {len(fits)} entries; give "
            "(T, p), (T, p) and p of them"
        )
    channels = ChannelLabels(expected.shape[1], names, noun="output")
    chosen = select_outputs(channels, outputs)
    canvas = get_figure(figure, width=8.0, height=0.9 + 2.2 * len(chosen))
    panels = canvas.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for axes, index in zip(panels, chosen, strict=True):
        _draw_measured_panel(axes, times, expected[:, index], simulated[:, index], fit=float(fits[index]))
        axes.set_ylabel(channels.short(index))
        for seam in seams:
            axes.axvline(seam, color="0.75", linewidth=0.8, linestyle=":")
    panels[-1].set_xlabel("time")
    return np.asarray(panels)


def _draw_measured_panel(axes: "Axes", times: Array, expected: Array, simulated: Array, *, fit: float) -> None:
    axes.plot(times, expected, color=_MEASURED_LINE_COLOUR, linewidth=1.6, label="measured")
    axes.plot(times, simulated, color=LINE_COLOURS[0], linewidth=0.9, label=f"model, fit {fit:.1f} %")
    axes.margins(x=0.01)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
    add_grid(axes)
    axes.legend(fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0)


# MERGED ltinet.plotting.identification
# Correlations of what a model leaves over, with itself and with the inputs, and the bands of chance.

_MAX_INPUTS = 4  # columns that can be read


def draw_correlations(
    lags: ArrayLike,
    autocorrelation: ArrayLike,
    cross_correlation: ArrayLike,
    *,
    band: float,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    outputs: Sequence[int | str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw correlations `(p, lags)` and `(p, m, lags)`, a row for each output; the Axes come as (rows, 1 + inputs).

    `band` is half the width of the band that holds 99 % of those of chance. Values outside are marked. At most four
    inputs are drawn, and ten outputs unless `outputs` chooses.
    """
    places, alone, cross = _validate_correlations(lags, autocorrelation, cross_correlation)
    named = ChannelLabels(len(alone), names, noun="output")
    chosen = select_outputs(named, outputs)
    driving = ChannelLabels(cross.shape[1], input_names, noun="input")
    n_inputs = min(cross.shape[1], _MAX_INPUTS)
    canvas = get_figure(figure, width=1.0 + 3.4 * (1 + n_inputs), height=0.7 + 2.1 * len(chosen))
    panels = canvas.subplots(len(chosen), 1 + n_inputs, sharex="col", squeeze=False)
    after = places > 0  # before 0 an autocorrelation says the same again, and at 0 it is 1
    for row, index in zip(panels, chosen, strict=True):
        _draw_correlation_panel(row[0], places[after], alone[index, after], band)
        row[0].set_ylabel(named.short(index))
        for column in range(n_inputs):
            _draw_correlation_panel(row[1 + column], places, cross[index, column], band)
            row[1 + column].axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    panels[0, 0].set_title("residuals with themselves", fontsize="medium")
    for column in range(n_inputs):
        panels[0, 1 + column].set_title(f"residuals after {driving.short(column)}", fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel("lag (samples)")
    return np.asarray(panels)


def _validate_correlations(
    lags: ArrayLike, autocorrelation: ArrayLike, cross_correlation: ArrayLike
) -> tuple[Array, Array, Array]:
    places, alone, cross = (np.asarray(own, dtype=np.float64) for own in (lags, autocorrelation, cross_correlation))
    if (
        places.ndim != 1
        or alone.shape[1:] != places.shape
        or cross.ndim != 3
        or (cross.shape[0], cross.shape[2]) != alone.shape
    ):
        raise PlottingError(
            f"lags, autocorrelation and cross_correlation have shapes {places.shape}, {alone.shape} and {cross.shape}; "
            "give (L,), (p, L) and (p, m, L)"
        )
    return places, alone, cross


def _draw_correlation_panel(axes: "Axes", lags: Array, values: Array, band: float) -> None:
    outside = np.abs(values) > band
    axes.axhspan(-band, band, color="0.9", linewidth=0.0, zorder=0)
    axes.vlines(lags, 0.0, values, color=np.where(outside, LINE_COLOURS[1], LINE_COLOURS[0]).tolist(), linewidth=1.6)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    reach = 1.25 * max(1.6 * band, float(np.abs(values).max(initial=0.0)))
    axes.set_ylim(-reach, reach)
    add_grid(axes, axis="y")
    count = int(outside.sum())
    axes.text(0.98, 0.95, f"{count} of {len(lags)} outside 99 %", transform=axes.transAxes, ha="right", va="top",
              fontsize="small", color="0.25")  # fmt: skip


# MERGED ltinet.plotting.identification
# What speaks for the order of an identified system: singular values, and errors on samples that nobody had seen.

_SHOWN = 40  # singular values: beyond, there is noise


def draw_orders(
    singular_values: ArrayLike,
    errors: Mapping[str, Mapping[int, float]],
    *,
    chosen: int,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw singular values, and beside them relative errors by order for each kind of model; two Axes come back.

    `chosen` marks the order that was taken.
    """
    values = np.asarray(singular_values, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise PlottingError(f"singular values have shape {values.shape}; give a list of finite numbers")
    canvas = get_figure(figure, width=9.0, height=3.8)
    panels = canvas.subplots(1, 2)
    _draw_values(panels[0], values[: max(_SHOWN, chosen + 1)], chosen)
    _draw_errors(panels[1], errors, chosen)
    for axes in panels:
        use_integer_ticks(axes.xaxis)
        add_grid(axes)
    return np.asarray(panels)


def _draw_values(axes: "Axes", values: Array, chosen: int) -> None:
    axes.set_xlabel("number of the singular value")
    axes.set_ylabel("singular value")
    positive = values > 0.0
    if not positive.any():
        draw_placeholder(axes, "no singular values")
        return
    axes.set_yscale("log")
    places = np.arange(1, len(values) + 1)
    for taken, colour, label in (
        (places <= chosen, LINE_COLOURS[0], f"order {chosen}"),
        (places > chosen, "0.6", "left out"),
    ):
        own = taken & positive
        axes.plot(places[own], values[own], linestyle="none", marker="o", markersize=4.5, color=colour, label=label)
    axes.legend(fontsize="small")


def _draw_errors(axes: "Axes", errors: Mapping[str, Mapping[int, float]], chosen: int) -> None:
    axes.set_xlabel("order")
    axes.set_ylabel("error on unseen samples / outputs")
    found = [(kind, own) for kind, own in errors.items() if own]
    if not found:
        draw_placeholder(axes, "no models were compared")
        return
    axes.axvline(chosen, color="0.8", linewidth=5.0, zorder=0)
    axes.set_yscale("log")
    for place, (kind, own) in enumerate(found):
        orders = sorted(own)
        axes.plot(orders, [own[order] for order in orders], color=LINE_COLOURS[place % len(LINE_COLOURS)],
                  marker=LAYER_MARKERS[place % len(LAYER_MARKERS)], markersize=4.5, linewidth=1.0, label=kind)  # fmt: skip
    orders = sorted({order for _, own in found for order in own})
    axes.set_xlim(orders[0] - 1.0, orders[-1] + 1.0)  # ticks at whole numbers need two of them
    axes.legend(fontsize="small")


# MERGED ltinet.plotting.identification
# Poles with the regions that hold the true ones.

# Of the χ² distribution with one and with two degrees of freedom, the root of the value that 99 % stay below.
_CONFIDENCE_RADII = {1: 2.5758293035489004, 2: 3.0348542587702927}
_MIN_RELATIVE_WIDTH = 0.5  # width of the picture, in units of the largest pole
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 181)


def draw_uncertain_poles(
    poles: ArrayLike, regions: Sequence[tuple[complex, ArrayLike]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw poles and, around those with a covariance, the region that holds the true one at 99 %.

    A region is a pole and its covariance: `(1, 1)` of a real one, a line; `(2, 2)` of the real and the imaginary part
    of a pair, an ellipse around each of both.
    """
    values = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    axes = draw_spectrum([values], ax=ax)
    is_real = not np.any(values.imag)
    for pole, given in regions:
        covariance = np.asarray(given, dtype=np.float64)
        if covariance.shape not in ((1, 1), (2, 2)):
            raise PlottingError(f"the covariance of {pole:.4g} has shape {covariance.shape}; give (1, 1) or (2, 2)")
        if not np.all(np.isfinite(covariance)):
            continue
        if len(covariance) == 1:
            half = _CONFIDENCE_RADII[1] * float(np.sqrt(max(covariance[0, 0], 0.0)))
            axes.plot([pole.real - half, pole.real + half], [0.0, 0.0], color=LINE_COLOURS[1], linewidth=3.0,
                      alpha=0.6, solid_capstyle="butt", zorder=3)  # fmt: skip
            continue
        outline = _ellipse(covariance)
        for side in (1.0, -1.0):
            axes.fill(pole.real + outline[0], side * (pole.imag + outline[1]), facecolor="none",
                      edgecolor=LINE_COLOURS[1], linewidth=1.6, zorder=3)  # fmt: skip
    if not is_real:
        add_grid(axes)
    _enforce_min_width(axes, _MIN_RELATIVE_WIDTH * float(np.abs(values).max(initial=0.0)))
    axes.set_title("99 % regions" if regions else "how certain they are is not known", fontsize="medium", color="0.25")
    return axes


def _enforce_min_width(axes: "Axes", least: float) -> None:
    """A single pole would fill the picture with its last digits."""
    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear" and high - low < least:
        axes.set_xlim(0.5 * (low + high - least), 0.5 * (low + high + least))


def _ellipse(covariance: Array) -> Array:
    """The outline around 0, `(2, angles)`."""
    sizes, directions = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    return np.asarray(_CONFIDENCE_RADII[2] * directions @ (np.sqrt(np.maximum(sizes, 0.0))[:, None] * circle))


# MERGED ltinet.plotting.identification
# What stands behind `found.plot` of an identified system: one line for every drawing.


class PlottableTrial(Protocol):
    """A model on the way, as far as it is drawn."""

    @property
    def order(self) -> int:
        """Number of states."""
        ...

    @property
    def refined(self) -> bool:
        """Whether by output error."""
        ...

    @property
    def method(self) -> str:
        """Its subspace method."""
        ...

    @property
    def error(self) -> float:
        """On unseen samples, relative to the outputs."""
        ...


class PlottableCorrelations(Protocol):
    """Correlations of residuals, as far as they are drawn."""

    @property
    def lags(self) -> NDArray[np.intp]:
        """From −L to L."""
        ...

    @property
    def autocorrelation(self) -> Array:
        """Of every output `(p, 2L + 1)`."""
        ...

    @property
    def cross_correlation(self) -> Array:
        """Of outputs with inputs `(p, m, 2L + 1)`."""
        ...

    @property
    def band(self) -> float:
        """Half the width of the 99 % band."""
        ...


class PlottablePoleRegion(Protocol):
    """A pole and how certain it is, as far as it is drawn."""

    @property
    def pole(self) -> complex:
        """Of a pair the one with positive imaginary part."""
        ...

    @property
    def covariance(self) -> Array:
        """Of the real part, for pairs of both parts."""
        ...


class PlottableFrequencyBand(Protocol):
    """A frequency response and how certain it is, as far as it is drawn."""

    @property
    def response(self) -> NDArray[np.complex128]:
        """H(jω), `(K, p, m)`."""
        ...

    @property
    def magnitude_deviation(self) -> Array:
        """In decibels."""
        ...

    @property
    def phase_deviation(self) -> Array:
        """In radians."""
        ...


@dataclass(frozen=True)
class IdentificationPlotData:
    """What was found, as far as it is drawn; computed where a drawing asks for it."""

    poles: Callable[[], NDArray[np.complex128]]
    regions: Callable[[], Sequence[PlottablePoleRegion]]
    compared: Callable[[Any, Any], Sequence[tuple[Array, NDArray[Any], NDArray[Any]]]]
    fit: Callable[[Any, Any], Array]
    residuals: Callable[[Any, Any], PlottableCorrelations]
    band: Callable[[ArrayLike], PlottableFrequencyBand]
    frequencies: Callable[[], Array]
    candidates: Sequence[PlottableTrial]
    singular_values: Array
    order: int
    dt: float | None
    """None of what was found in a frequency response."""
    names: Sequence[str]
    input_names: Sequence[str]


@final
@dataclass(frozen=True)
class IdentificationPlots:
    """Drawings of an identified system; they need matplotlib.

    They take the Axes, or those of several panels the empty Figure, to draw on, or make a new one, and return the Axes.
    """

    found: IdentificationPlotData

    def compare(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw measured outputs and those of the model, with its fit: of other records, or of those it was found in.

        Only the states at the first sample are fitted. Experiments follow each other, with a dotted line between. Of
        what was found in a frequency response, omega and H take the places of u and y, and a Bode plot is drawn.
        """
        parts = self.found.compared(u, y)
        fits = self.found.fit(u, y).tolist()
        if self.found.dt is None:
            return self._compare_response(*parts[0], fits, outputs, figure)
        times, measured, modelled, seams = _concatenate_records(parts, self.found.dt)
        return draw_measured(
            times, measured, modelled, fits=fits, names=self.found.names, outputs=outputs, seams=seams, figure=figure
        )

    def _compare_response(
        self,
        omega: Array,
        measured: NDArray[Any],
        modelled: NDArray[Any],
        fits: Sequence[float],
        outputs: Sequence[int | str] | None,
        figure: "Figure | SubFigure | None",
    ) -> NDArray[Any]:
        inputs = range(len(self.found.input_names))
        pairs = None if outputs is None else [(output, j) for output in outputs for j in inputs]
        drawn = omega > 0.0
        return draw_measured_response(
            omega[drawn], measured[drawn], modelled[drawn], fits=fits, pairs=pairs, names=self.found.names,
            input_names=self.found.input_names, figure=figure,
        )  # fmt: skip

    def residuals(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw how residuals depend on themselves and on inputs, with 99 % bands.

        Residuals with themselves outside of the band: noise that is not white. After an input, at positive lags: the
        model misses something. At negative lags: the input follows the outputs, a closed loop.
        """
        tests = self.found.residuals(u, y)
        return draw_correlations(
            tests.lags, tests.autocorrelation, tests.cross_correlation, band=tests.band, names=self.found.names,
            input_names=self.found.input_names, outputs=outputs, figure=figure,
        )  # fmt: skip

    def orders(self, *, figure: "Figure | SubFigure | None" = None) -> NDArray[Any]:
        """Draw singular values, and the errors of models on unseen samples by their order; two Axes come back."""
        errors: dict[str, dict[int, float]] = {}
        for own in self.found.candidates:
            best = errors.setdefault(f"{own.method}, refined" if own.refined else own.method, {})
            best[own.order] = min(own.error, best.get(own.order, np.inf))
        return draw_orders(self.found.singular_values, errors, chosen=self.found.order, figure=figure)

    def poles(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles of continuous time with the regions that hold the true ones at 99 %, where they are known."""
        regions = [(own.pole, own.covariance) for own in self.found.regions()]
        return draw_uncertain_poles(self.found.poles(), regions, ax=ax)

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw magnitude and phase of H(jω), without the delay, with 99 % bands; two Axes come back.

        Without omega frequencies are chosen from poles and zeros, up to half of the sampling frequency.
        """
        if omega is None:
            shown = self.found.frequencies()
            omega = shown if self.found.dt is None else shown[shown <= np.pi / self.found.dt]
        own = self.found.band(omega)
        return draw_uncertain_bode(
            omega, own.response, decibels=own.magnitude_deviation, degrees=np.rad2deg(own.phase_deviation),
            pairs=pairs, names=self.found.names, input_names=self.found.input_names, figure=figure,
        )  # fmt: skip

    def __dir__(self) -> list[str]:
        return dir_without(self, "found")


def _concatenate_records(
    parts: Sequence[tuple[Array, NDArray[Any], NDArray[Any]]], dt: float
) -> tuple[Array, Array, Array, list[float]]:
    """Experiments one after the other, parted by NaN; times from 0 on, and those at which another one begins."""
    gap = np.full((1, parts[0][1].shape[1]), np.nan)
    measured = np.concatenate([part for _, own, _ in parts for part in (own, gap)][:-1])
    modelled = np.concatenate([part for _, _, own in parts for part in (own, gap)][:-1])
    ends = np.cumsum([len(own) + 1 for _, own, _ in parts])
    times = np.asarray(dt * np.arange(len(measured)), dtype=np.float64)
    return times, measured, modelled, [dt * float(end - 1) for end in ends[:-1]]
