"""Result of identification: a continuous-time system with its diagnostics.

The covariance of the parameters, residual tests, confidence regions of poles and bands of the responses are computed on
first use from the data that are kept with the result. `report` writes one HTML page, and `IdentificationPlots` is the
object behind `result.plot`.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.floating_point import Array, Complex
from ltinet._util.other_names import missing_attribute
from ltinet._util.text import format_count, format_path, sanitize
from ltinet._version import __version__
from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.identification.diagnostics import CandidateSummary, Diagnostics, compute_fits
from ltinet.identification.estimation import validate_points
from ltinet.identification.innovations import InnovationModel
from ltinet.identification.linear_parameters import Trend
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.order_selection import Family
from ltinet.identification.records import parse_experiments, require_channels
from ltinet.identification.report import ReportFigure, ReportPage, format_delays, format_gains, format_poles
from ltinet.identification.residual_analysis import ResidualTests
from ltinet.identification.uncertainty import (
    NORMAL_QUANTILE_99,
    FrequencyBand,
    ParameterCovariance,
    PoleUncertainty,
    StepBand,
    delayed_frequency_band,
    delayed_step_band,
    frequency_band,
    pole_uncertainties,
)
from ltinet.plotting.channels import Pair
from ltinet.plotting.figures import figure_of
from ltinet.plotting.frequency_response import draw_measured_response, draw_uncertain_bode
from ltinet.plotting.identification import draw_correlations, draw_measured, draw_orders, draw_uncertain_poles
from ltinet.signals.arrays import as_real_array
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_FITTED_TO: dict[Family, str] = {
    "simulation": "simulated outputs",
    "filtered": "simulated outputs of records after a noise filter",
    "predictor": "predictions one step ahead",
}
_NO_COVARIANCE = (
    "the data do not determine the covariance: the records are free of noise, or the model has too many parameters (with "
    "the initial states of all records), or some without effect on the outputs"
)
_MAX_PLOTTED_SAMPLES = 2000  # samples in a figure of a report; empirical: more cannot be distinguished


@final
@dataclass(frozen=True, eq=False, repr=False)
class IdentificationResult:
    """Identified continuous-time system with its diagnostics.

    `identify` and `identify_frequency` return it; `print` shows a summary.

    Parameters
    ----------
    system
        System in continuous time, with delays, operating point, hold and sample time.
    dt
        Time between samples; None for a frequency response.
    hold
        Hold of the records; None for a frequency response.
    delay
        Delay of each input in samples.
    method
        Subspace method, or "vector fitting".
    block_rows
        Number of block rows of the Hankel matrix; 0 for a frequency response.
    refined
        True where the output-error refinement was kept.
    trend
        Trend of the records.
    input_offsets
        Means of the inputs that the model subtracts, `(m,)`.
    output_offsets
        Offsets that the model adds to its outputs, `(p,)`.
    fits
        Simulated fit of every output on the data of the identification, 100 (1 − ‖y − ŷ‖/‖y − mean‖) %, `(p,)`.
    fit_warnings
        Warnings that need no analysis of the residuals; `warnings` has all of them.
    notes
        Notes on the data, such as gaps.
    candidates
        Models that were compared, with their errors on test data.
    singular_values
        Singular values of the subspace method.
    order
        Number of states at the samples; a negative real pole there takes one more in continuous time.
    modes
        Model at the samples, or in continuous time, mode by mode; None where eigenvectors are nearly dependent.
    diagnostics
        Data from which covariance and residuals are computed on request; of long records the beginnings.
    time_unit
        Unit of time of the tables with the records, for the axes of plots; None where it is not known.
    family
        "simulation" where B and D come from simulated outputs, "filtered" where records went through a filter that makes
        their noise white before, "predictor" where they come from one-step predictions.
    delay_ranges
        First and last delay of each input whose models are not distinguishable at 99 %; empty for delays that were not
        estimated by their models.

    """

    system: StateSpace
    dt: float | None
    hold: Literal["linear", "zero"] | None
    delay: tuple[int, ...]
    method: str
    block_rows: int
    refined: bool
    trend: Trend
    input_offsets: Array
    output_offsets: Array
    fits: Array
    fit_warnings: tuple[str, ...]
    notes: tuple[str, ...]
    candidates: tuple[CandidateSummary, ...]
    singular_values: Array
    order: int
    modes: ModalModel | None
    diagnostics: Diagnostics
    time_unit: str | None = None
    family: Family = "simulation"
    delay_ranges: tuple[tuple[int, int], ...] = ()

    @cached_property
    def net(self) -> DynamicNetwork:
        """Network of the system, which has the outputs of `simulate`; slopes of trends are not part of it."""
        return construct(self.system)

    @cached_property
    def discrete(self) -> StateSpace:
        """Model at the samples, x[k+1] = A x[k] + B u[k], y = C x + D u."""
        if self.dt is None or self.modes is None:
            raise InvalidSignalError(
                "this system was identified from a frequency response and has no sample time; use result.system.to_discrete(dt)"
            )
        A, B, C, D = self.modes.sampled()
        names = self.system.input_names, self.system.output_names
        matrices = StateSpace(A, B, C, D, dt=self.dt, inputs=names[0], outputs=names[1]).matrices
        return StateSpace.of(matrices, settings=self.system.signal_settings)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the model and its data, signs of a closed loop among them."""
        return self.fit_warnings + self.diagnostics.residual_warnings()

    @cached_property
    def covariance(self) -> ParameterCovariance | None:
        """Covariance of the parameters in units of the records; None where the data do not determine it."""
        return self.diagnostics.covariance()

    @cached_property
    def _innovations(self) -> InnovationModel:
        return self.diagnostics.innovation_model()

    @property
    def K(self) -> Array:
        """Gain `(n, p)` of the innovations e in x[k+1] = A x[k] + B u[k] + K e[k], y = C x + D u + e of `discrete`."""
        return self._innovations.K

    @property
    def noise_covariance(self) -> Array:
        """Covariance of the innovations, the errors of predictions one sample ahead, `(p, p)`."""
        return self._innovations.covariance

    def poles(self) -> Complex:
        """Return the poles in continuous time.

        Returns
        -------
        Complex
            Poles of the system, in rad/s where times are in seconds.

        """
        return self.system.poles()

    def simulate(self, u: Any, *, x0: ArrayLike | None = None) -> Array:
        """Simulate inputs at steps of dt, with the delays, offsets and hold of the records.

        Parameters
        ----------
        u
            Inputs `(T, m)` or `(T,)`.
        x0
            State at the first sample; by default the run begins at rest, with inputs and outputs at their offsets.

        Returns
        -------
        Array
            Outputs `(T, p)`.

        Raises
        ------
        InvalidSignalError
            If the inputs are invalid, or the system was identified from a frequency response.

        """
        if self.dt is None or self.hold is None:
            raise InvalidSignalError(
                "this system was identified from a frequency response and has no sample time; use "
                "result.net.simulate(u, t)"
            )
        inputs = as_real_array(u.values if hasattr(u, "values") else u, "u")
        inputs = inputs[:, None] if inputs.ndim == 1 else inputs
        m = self.system.n_inputs
        if inputs.ndim != 2 or inputs.shape[1] != m or not len(inputs) or not np.all(np.isfinite(inputs)):
            raise InvalidSignalError(f"u has shape {np.shape(u)}; give finite samples (T, {m}) at steps of {self.dt:g}")
        return self.net.simulate(inputs, self.dt * np.arange(len(inputs)), x0=x0).y

    def predict(self, u: Any, y: Any, *, horizon: int = 1) -> Array:
        """Predict outputs from the inputs until then, and the outputs up to some samples before.

        The states at the first sample are those with the smallest one-step errors; samples before the horizon are
        predicted from them.

        Parameters
        ----------
        u
            Inputs `(T, m)` or `(T,)`.
        y
            Outputs `(T, p)` or `(T,)`.
        horizon
            Number of samples from the last output that is used to the one that is predicted.

        Returns
        -------
        Array
            Predicted outputs `(T, p)`.

        Raises
        ------
        InvalidSignalError
            If the record or the horizon is invalid, or the system was identified from a frequency response.

        """
        if not isinstance(horizon, int | np.integer) or isinstance(horizon, bool) or horizon < 1:
            raise InvalidSignalError(f"horizon is {sanitize(repr(horizon))}; it must be an integer of at least 1")
        experiments = parse_experiments(u, y)
        record, runs = experiments[0]
        if len(experiments) > 1 or len(runs) != 1 or runs[0] != slice(0, len(record)):
            raise InvalidSignalError(
                "predict needs one record of at least 10 samples without gaps (NaN); predict experiments one by one"
            )
        require_channels(record, self.system.n_inputs, self.system.n_outputs)
        return self.diagnostics.predicted(record.u, record.y, int(horizon))

    def fit(self, u: Any = None, y: Any = None, *, from_rest: bool = False) -> Array:
        """Return the fit of every output on other data, 100 (1 − ‖y − ŷ‖/‖y − mean‖) %.

        ŷ is simulated; only the states at the first sample are fitted. Several experiments count as one.

        Parameters
        ----------
        u
            Inputs, or the frequencies omega; by default the data of the identification are used.
        y
            Outputs, or the response H.
        from_rest
            True if the record begins at rest, so that no states are fitted.

        Returns
        -------
        Array
            Fit in percent, `(p,)`.

        Raises
        ------
        InvalidSignalError
            If the data are invalid, or `from_rest` is used without a record.

        """
        if self.dt is None or (u is None and y is None):
            if from_rest:
                raise InvalidSignalError("from_rest is for other records; give u and y")
            return compute_fits(self.diagnostics.compared(u, y))
        return self.net.fit(u, y, dt=self.dt, from_rest=from_rest)

    def residuals(self, u: Any = None, y: Any = None, *, one_step: bool = False) -> ResidualTests:
        """Return the residuals of records, with their correlations and 99 % bands.

        Only the states at the first sample are fitted, and trends where they belong to the model.

        Parameters
        ----------
        u
            Inputs; by default the records of the identification are used.
        y
            Outputs.
        one_step
            True for the errors of predictions one sample ahead, False for those of simulated outputs.

        Returns
        -------
        ResidualTests
            Residuals and the tests of their whiteness and independence of the inputs.

        """
        return self.diagnostics.residuals(u, y, one_step=one_step)

    def pole_uncertainty(self) -> tuple[PoleUncertainty, ...]:
        """Return the poles of continuous time with their covariances.

        The confidence levels hold where the model is refined and has the order of the system; a model that is not
        refined is less certain.

        Returns
        -------
        tuple of PoleUncertainty
            Real poles, and of each pair the pole with Im > 0.

        """
        return pole_uncertainties(self._require_covariance(), self.dt)

    def frequency_band(self, omega: ArrayLike) -> FrequencyBand:
        """Return H(jω) of the system, delays included, with the covariance of every entry.

        Delays are whole samples and count as exact.

        Parameters
        ----------
        omega
            Frequencies in rad/s, not negative.

        Returns
        -------
        FrequencyBand
            Response and covariance.

        """
        band = frequency_band(self._require_covariance(), validate_points(omega, "omega"), self.dt)
        return delayed_frequency_band(band, self._total_delay) if self._total_delay.any() else band

    def step_band(self, t: ArrayLike) -> StepBand:
        """Return step responses of the system from rest, delays included, with their standard deviations.

        Delays are whole samples and count as exact.

        Parameters
        ----------
        t
            Times from 0 on.

        Returns
        -------
        StepBand
            Responses and standard deviations.

        """
        return delayed_step_band(self._require_covariance(), validate_points(t, "t"), self.dt, self._total_delay)

    @property
    def _total_delay(self) -> Array:
        """Delays from every input to every output, `(p, m)`, in units of time."""
        return self.system.signal_settings.total_delay(self.system.n_outputs, self.system.n_inputs)

    def _require_covariance(self) -> ParameterCovariance:
        if self.covariance is None:
            raise InvalidSignalError(f"{_NO_COVARIANCE}; identify a smaller order, or from fewer and longer records")
        return self.covariance

    def _gain_lines(self) -> list[str]:
        """Return the gains at frequency 0 with their 99 % intervals, a line for each; none with a pole at 0."""
        if not np.all(self.poles()):
            return []
        widths = None
        if self.covariance is not None:
            variance = frequency_band(self.covariance, np.zeros(1), self.dt).covariance[0, ..., 0, 0]
            widths = np.asarray(NORMAL_QUANTILE_99 * np.sqrt(np.maximum(variance, 0.0)))
        return format_gains(self.system.dcgain(), widths, self.system.input_names, self.system.output_names)

    @property
    def plot(self) -> "IdentificationPlots":
        """Plots: `result.plot.compare(u, y)`, `.residuals(u, y)`, `.orders()`, `.poles()`, `.bode()`."""
        return IdentificationPlots(self)

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(StateSpace, name):
                text = f"{type(self).__name__!r} object has no attribute {name!r}; use result.system.{name}"
                raise AttributeError(text, name=name, obj=self)
            raise missing_attribute(self, name, system="result.system")

    def report(self, path: str | os.PathLike[str], *, title: str = "measured data") -> None:
        """Write an HTML page with fits, poles, warnings, candidate models and five figures; it needs matplotlib.

        Figures show the data of the identification, of long records the beginnings.

        Parameters
        ----------
        path
            File, with the suffix .html or .htm.
        title
            Name of the data in the heading.

        Raises
        ------
        FileFormatError
            If the file cannot be written.

        """
        try:
            target = Path(path)
        except TypeError:
            raise FileFormatError(
                f"path is {sanitize(repr(path))}; give the name of a file with suffix .html"
            ) from None
        if not target.parent.is_dir():
            raise FileFormatError(f"there is no folder {format_path(target.parent)}; create it first")
        if target.suffix.lower() not in (".html", ".htm"):
            raise FileFormatError(
                f"{format_path(target)} does not end in .html; give the report a name with this suffix"
            )
        write_file_atomically(target, _report_page(self, title).html().encode())

    def __repr__(self) -> str:
        fits = ", ".join(f"{value:.1f} %" for value in self.fits[:4].tolist())
        samples = "" if self.dt is None else f", dt={self.dt:g}"
        more = ", …" if len(self.fits) > 4 else ""
        return f"IdentificationResult(order={self.order}{samples}, fit={fits}{more})"

    def __str__(self) -> str:
        system, rows = self.system, f", {self.block_rows} block rows" if self.block_rows else ""
        unit = f" {self.time_unit}" if self.time_unit else ""
        lines = [
            f"identified system of order {self.order}",
            f"  inputs, outputs    {system.n_inputs}, {system.n_outputs}",
            "  data               a frequency response"
            if self.dt is None
            else f"  samples            at steps of {self.dt:g}{unit}, {self.hold} hold",
            f"  method             {self.method}{rows}{', refined' if self.refined else ''}",
        ]
        if self.family != "simulation":
            lines.append(f"  fitted to          {_FITTED_TO[self.family]}")
        lines += [
            f"  fit                {value:6.2f} %  {name}"
            for name, value in zip(system.output_names, self.fits.tolist(), strict=True)
        ]
        if self.dt is not None:
            deviations = np.sqrt(self.noise_covariance.diagonal()).tolist()
            lines.append(f"  one-step errors    {', '.join(f'{value:.3g}' for value in deviations[:4])}")
            lines[-1] += ", …" if len(deviations) > 4 else ""
        if any(self.delay) or any(last for _, last in self.delay_ranges):
            lines.append(
                f"  delay              {format_delays(self.delay, self.delay_ranges, self.dt, self.time_unit)}"
            )
        lines += [
            f"  {label:<18} {value}" for label, value in system.signal_settings.rows if label in ("u0", "y0", "note")
        ]
        lines += [f"  gain               {gain}" for gain in self._gain_lines()]
        lines += format_poles(self.poles(), self.pole_uncertainty() if self.covariance else (), self.time_unit)
        if not self.covariance:
            lines.append(f"  note               no confidence intervals: {_NO_COVARIANCE}")
        lines += [f"  note               {note}" for note in self.notes if note not in self.warnings]
        lines += [f"  warning            {warning}" for warning in self.warnings]
        return "\n".join(lines)


@final
@dataclass(frozen=True)
class IdentificationPlots:
    """Plots of an identified model; they require matplotlib.

    Parameters
    ----------
    result : IdentificationResult
        Identified system.
    """

    result: IdentificationResult

    def compare(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw measured and simulated outputs with the fit of the model.

        Only the initial states are fitted. Experiments are drawn one after the other, separated by dotted lines. For a
        model of a frequency response omega and H replace u and y, and a Bode plot is drawn.

        Parameters
        ----------
        u, y : array_like, optional
            Inputs and outputs of other records; by default those of the identification.
        outputs : sequence of int or str, optional
            Outputs to draw, by index or name; by default up to ten.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        parts, fits = self.result.diagnostics.compared(u, y), self.result.fit(u, y).tolist()
        system, dt = self.result.system, self.result.dt
        common: dict[str, Any] = {"fits": fits, "names": system.output_names, "figure": figure}
        if dt is not None:
            times, measured, modelled, seams = _concatenate_records(parts, dt)
            unit = self.result.time_unit
            panels = draw_measured(times, measured, modelled, outputs=outputs, seams=seams, time_unit=unit, **common)
            return figure_of(panels)
        omega, H, fitted = (values[parts[0][0] > 0.0] for values in parts[0])
        pairs = None if outputs is None else [(output, j) for output in outputs for j in range(system.n_inputs)]
        return figure_of(
            draw_measured_response(omega, H, fitted, pairs=pairs, input_names=system.input_names, **common)
        )

    def residuals(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw correlations of residuals with themselves and with inputs, with 99 % bands.

        Autocorrelations outside the band indicate noise that is not white. Correlations with an input at positive lags
        indicate unmodelled dynamics, at negative lags a closed loop.

        Parameters
        ----------
        u, y : array_like, optional
            Inputs and outputs of other records; by default those of the identification.
        outputs : sequence of int or str, optional
            Outputs to draw, by index or name; by default up to ten.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        tests, system = self.result.residuals(u, y), self.result.system
        panels = draw_correlations(
            tests.lags, tests.autocorrelation, tests.cross_correlation, band=tests.band, names=system.output_names,
            input_names=system.input_names, outputs=outputs, figure=figure,
        )  # fmt: skip
        return figure_of(panels)

    def orders(self, *, figure: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw singular values, and the errors of models on validation samples by their order.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        errors: dict[str, dict[int, float]] = {}
        for model in self.result.candidates:
            best = errors.setdefault(f"{model.method}, refined" if model.refined else model.method, {})
            best[model.order] = min(model.error, best.get(model.order, np.inf))
        return figure_of(draw_orders(self.result.singular_values, errors, chosen=self.result.order, figure=figure))

    def poles(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the poles in continuous time with their 99 % confidence regions, where these are known.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result
        regions = (
            [(region.pole, region.covariance) for region in result.pole_uncertainty()] if result.covariance else []
        )
        return figure_of(draw_uncertain_poles(result.poles(), regions, ax=ax))

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw magnitude and phase of H(jω), delays included, with 99 % bands.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from poles and zeros, up to half of the sampling frequency.
        pairs : sequence of tuple, optional
            Pairs (output, input) by index or name; by default all of them.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        system = self.result.system
        omega = system.plot_frequencies() if omega is None else omega
        band = self.result.frequency_band(omega)
        panels = draw_uncertain_bode(
            omega, band.response, decibels=band.magnitude_deviation, degrees=np.rad2deg(band.phase_deviation),
            pairs=pairs, names=system.output_names, input_names=system.input_names, delays=self.result._total_delay,
            figure=figure,
        )  # fmt: skip
        if self.result.time_unit is not None:
            panels[-1].set_xlabel(f"frequency (rad/{self.result.time_unit})")
        return figure_of(panels)

    def __dir__(self) -> list[str]:
        return dir_without(self, "result")


def _concatenate_records(
    parts: Sequence[tuple[Array, NDArray[Any], NDArray[Any]]], dt: float
) -> tuple[Array, Array, Array, list[float]]:
    """Return times from 0 on, experiments one after the other, separated by NaN, and the times of the separations."""
    gap = np.full((1, parts[0][1].shape[1]), np.nan)
    measured = np.concatenate([part for _, values, _ in parts for part in (values, gap)][:-1])
    modelled = np.concatenate([part for _, _, values in parts for part in (values, gap)][:-1])
    ends = np.cumsum([len(values) + 1 for _, values, _ in parts])
    times = np.asarray(dt * np.arange(len(measured)), dtype=np.float64)
    return times, measured, modelled, [dt * float(end - 1) for end in ends[:-1]]


def _report_page(result: IdentificationResult, title: str) -> ReportPage:
    delays = ""
    if any(result.delay) or any(last for _, last in result.delay_ranges):
        delays = f", delay {format_delays(result.delay, result.delay_ranges, result.dt, result.time_unit)}"
    data = "a frequency response"
    if result.dt is not None:
        unit = f" {result.time_unit}" if result.time_unit else ""
        data = f"samples at steps of {result.dt:g}{unit} ({result.hold} hold{delays})"
    rows = f" with {result.block_rows} block rows" if result.block_rows else ""
    channels = f"{format_count(result.system.n_inputs, 'input')} and {format_count(result.system.n_outputs, 'output')}"
    summary = (
        f"Order {result.order}, {channels}, from {data}; identified by {result.method}{rows}"
        f"{', refined' if result.refined else ''}, fitted to {_FITTED_TO[result.family]}."
    )
    if result.dt is not None:
        deviations = np.sqrt(result.noise_covariance.diagonal()).tolist()
        summary += f" Deviations of predictions one step ahead: {', '.join(f'{value:.3g}' for value in deviations)}."
    return ReportPage(
        title, summary, result.warnings, result.system.output_names, result.fits, result.poles(),
        result.pole_uncertainty() if result.covariance else (), result.candidates, tuple(_report_figures(result)),
        __version__, tuple(result._gain_lines()), result.time_unit,
    )  # fmt: skip


def _report_figures(result: IdentificationResult) -> Iterator[ReportFigure]:
    plots = result.plot
    yield ReportFigure(
        "Measured values, and those of the model.", lambda: _show_last_samples(plots.compare(), result.dt)
    )
    if result.dt is not None:
        yield ReportFigure(
            "Correlations of the residuals. After an input at positive lags: the model misses dynamics; at negative "
            "lags: a closed loop, unless the input is periodic.",
            plots.residuals,
        )
    yield ReportFigure("Errors and singular values by order.", plots.orders)
    yield ReportFigure("Poles with 99 % regions.", plots.poles)
    if result.covariance is not None:
        yield ReportFigure("Frequency response with 99 % bands.", plots.bode)


def _show_last_samples(figure: "Figure", dt: float | None) -> "Figure":
    """Limit the time axis to the last samples, since more of them cannot be distinguished."""
    axes = figure.axes[-1]
    end = axes.dataLim.x1
    if dt is not None and end > _MAX_PLOTTED_SAMPLES * dt:
        axes.set_xlim(end - _MAX_PLOTTED_SAMPLES * dt, end)
    return figure
