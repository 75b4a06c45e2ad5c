"""Result of identification: a continuous-time system with its diagnostics.

The covariance of the parameters, residual tests, confidence regions of poles and bands of the responses are computed on
first use from the data that are kept with the result. `report` writes one HTML page.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet._util.text import format_count, format_path, sanitize
from ltinet._version import __version__
from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.identification.diagnostics import CandidateSummary, Diagnostics
from ltinet.identification.estimation import validate_points
from ltinet.identification.linear_parameters import Trend
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.report import ReportFigure, ReportPage, format_poles
from ltinet.identification.residual_analysis import ResidualTests
from ltinet.identification.uncertainty import (
    FrequencyBand,
    ParameterCovariance,
    PoleUncertainty,
    StepBand,
    frequency_band,
    pole_uncertainties,
    step_band,
)
from ltinet.plotting.identification import IdentificationPlotData, IdentificationPlots
from ltinet.signals.arrays import as_real_array
from ltinet.state_space import StateSpace

# MERGED ltinet.identification.result
# What was identified: a continuous-time system with the evidence for it, from records or from a frequency response.

_MAX_PLOTTED_SAMPLES = 2000  # samples in the picture of a report


@final
@dataclass(frozen=True, eq=False, repr=False)
class IdentificationResult:
    """A continuous-time system found in records or in a frequency response, with the evidence; `print` shows it."""

    system: StateSpace
    """In continuous time, with the delays, the operating point, the hold and the sample time that were found."""
    dt: float | None
    """Between samples; None where it was found in a frequency response, which has none."""
    hold: Literal["linear", "zero"] | None
    delay: tuple[int, ...]
    """Samples by which each input comes late."""
    method: str
    block_rows: int
    """Of the Hankel matrix; 0 where there was none."""
    refined: bool
    trend: Trend
    input_offsets: Array
    """What inputs were counted from, `(m,)`: their means."""
    output_offsets: Array
    """What the model adds to its outputs, `(p,)`."""
    fits: Array
    """On the data that it was found in: 100 (1 − ‖y − ŷ‖/‖y − mean‖) %, by simulation, `(p,)`."""
    fit_warnings: tuple[str, ...]
    """Warnings that need no look at residuals."""
    notes: tuple[str, ...]
    candidates: tuple[CandidateSummary, ...] = field(repr=False)
    """Models on the way here, with their errors on samples that they had not seen."""
    singular_values: Array = field(repr=False)
    order: int
    """Number of states; a negative real pole at samples takes one more in continuous time."""
    modes: ModalModel | None = field(repr=False)
    """The model at samples, or that of continuous time, mode by mode; None where modes cannot be told apart."""
    diagnostics: Diagnostics = field(repr=False)
    """The data, from which confidence is computed when somebody asks for it; of long records the beginnings."""

    @cached_property
    def net(self) -> DynamicNetwork:
        """The network of the system, which predicts what `simulate` does; slopes of trends are not part of it."""
        return construct(self.system)

    @cached_property
    def discrete(self) -> StateSpace:
        """The model at samples, x[k+1] = A x[k] + B u[k], y = C x + D u."""
        if self.dt is None or self.modes is None:
            raise InvalidSignalError(
                "this system was found in a frequency response and has no samples; found.system.to_discrete(dt) has"
            )
        A, B, C, D = self.modes.sampled()
        names = self.system.input_names, self.system.output_names
        found = StateSpace(A, B, C, D, dt=self.dt, inputs=names[0], outputs=names[1])
        settings = self.system.signal_settings
        return StateSpace.of(found.matrices, settings=settings)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the model; a closed loop among it."""
        return self.fit_warnings + self.diagnostics.doubts()

    @cached_property
    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters, in units of the records; None where they are too many or some of them are not seen."""
        return self.diagnostics.covariance()

    def poles(self) -> Complex:
        """The poles in continuous time."""
        return self.system.poles()

    def simulate(self, u: Any, *, x0: ArrayLike | None = None) -> Array:
        """Outputs `(T, p)` for inputs `(T, m)` at steps of dt: delays, offsets and the hold of the records included.

        Without x0 the run begins at rest, with inputs and outputs at their offsets.
        """
        if self.dt is None or self.hold is None:
            raise InvalidSignalError(
                "this system was found in a frequency response and knows no step of time; found.net.simulate(u, t) does"
            )
        inputs = self._inputs(u)
        return self.net.simulate(inputs, self.dt * np.arange(len(inputs)), x0=x0).y

    def fit(self, u: Any = None, y: Any = None, *, from_rest: bool = False) -> Array:
        """How well the model explains other data, in % for each output, `(p,)`: 100 (1 − ‖y − ŷ‖/‖y − mean‖).

        ŷ is simulated; only the states at the first sample are fitted, or none with `from_rest`. Several experiments
        count as one. Where the system was found in a frequency response, omega and H take the places of u and y.
        Without either they are the data that it was found in.
        """
        if self.dt is None or (u is None and y is None):
            if from_rest:
                raise InvalidSignalError("from_rest is for other records; give u and y")
            return self.diagnostics.fit(u, y)
        return self.net.fit(u, y, dt=self.dt, from_rest=from_rest)

    def residuals(self, u: Any = None, y: Any = None) -> ResidualTests:
        """What the model leaves over of records, with its correlations and their 99 % bands.

        Only the states at the first sample are fitted, and trends where they belong to the model. Without u and y they
        are the records that it was found in.
        """
        return self.diagnostics.residuals(u, y)

    def pole_uncertainty(self) -> tuple[PoleUncertainty, ...]:
        """The poles of continuous time with their covariances, of pairs that with Im > 0.

        Regions hold the true pole as often as they say where the model is refined and has the order of the system; a
        model that is not refined is less certain.
        """
        return pole_uncertainties(self._certain(), self.dt)

    def frequency_band(self, omega: ArrayLike) -> FrequencyBand:
        """H(jω) of the system, without the delay, with the covariance of every entry."""
        return frequency_band(self._certain(), validate_points(omega, "omega"), self.dt)

    def step_band(self, t: ArrayLike) -> StepBand:
        """Step responses of the system from rest, without the delay, at times from 0 on, with standard deviations."""
        return step_band(self._certain(), validate_points(t, "t"), self.dt)

    @property
    def plot(self) -> IdentificationPlots:
        """Drawings: `found.plot.compare(u, y)`, `.residuals(u, y)`, `.orders()`, `.poles()`, `.bode()`."""
        drawn = IdentificationPlotData(
            self.poles, lambda: self.pole_uncertainty() if self.covariance else (), self.diagnostics.compared, self.fit,
            self.residuals, self.frequency_band, self.system.plot_frequencies, self.candidates, self.singular_values,
            self.order, self.dt, self.system.output_names, self.system.input_names,
        )  # fmt: skip
        return IdentificationPlots(drawn)

    def report(self, path: str | os.PathLike[str], *, title: str = "measured data") -> None:
        """Write one HTML page with fits, poles, warnings, what was tried and the five pictures; it needs matplotlib.

        Pictures show the data that the system was found in, of long records the beginnings.
        """
        try:
            target = Path(path)
        except TypeError:
            raise FileFormatError(
                f"path is {sanitize(repr(path))}; give the name of a file that ends in .html"
            ) from None
        if not target.parent.is_dir():
            raise FileFormatError(f"there is no folder {format_path(target.parent)}")
        if target.suffix.lower() not in (".html", ".htm"):
            raise FileFormatError(f"{format_path(target)} does not end in .html, as the file of a report does")
        write_file_atomically(target, _report_page(self, title).html().encode())

    def _certain(self) -> ParameterCovariance:
        if self.covariance is None:
            raise InvalidSignalError(
                "the records do not tell how certain this model is: it has too many parameters, or some that no output "
                "shows; identify a smaller order"
            )
        return self.covariance

    def _inputs(self, u: Any) -> Array:
        values = as_real_array(u.values if hasattr(u, "values") else u, "u")
        values = values[:, None] if values.ndim == 1 else values
        if (
            values.ndim != 2
            or values.shape[1] != self.system.n_inputs
            or not len(values)
            or not np.all(np.isfinite(values))
        ):
            raise InvalidSignalError(
                f"u has shape {np.shape(u)}; give finite samples (T, {self.system.n_inputs}) at steps of {self.dt:g}"
            )
        return values

    def __repr__(self) -> str:
        fits = ", ".join(f"{value:.1f} %" for value in self.fits[:4].tolist())
        samples = "" if self.dt is None else f", dt={self.dt:g}"
        return f"Identified(order={self.order}{samples}, fit={fits}{', …' if len(self.fits) > 4 else ''})"

    def __str__(self) -> str:
        return "\n".join(_summary_lines(self))


def _report_page(found: IdentificationResult, title: str) -> ReportPage:
    delays = f", delays of {', '.join(map(str, found.delay))} samples" if any(found.delay) else ""
    data = (
        "a frequency response" if found.dt is None else f"samples at steps of {found.dt:g} ({found.hold} hold{delays})"
    )
    rows = f" with {found.block_rows} block rows" if found.block_rows else ""
    channels = f"{format_count(found.system.n_inputs, 'input')} and {format_count(found.system.n_outputs, 'output')}"
    summary = (
        f"Order {found.order}, {channels}, from {data}; found by {found.method}{rows}"
        f"{', refined by output error' if found.refined else ''}."
    )
    return ReportPage(
        title, summary, found.warnings, found.system.output_names, found.fits, found.poles(),
        found.pole_uncertainty() if found.covariance else (), found.candidates, tuple(_report_figures(found)), __version__,
    )  # fmt: skip


def _report_figures(found: IdentificationResult) -> Iterator[ReportFigure]:
    plots = found.plot
    yield ReportFigure(
        "Measured values, and those of the model.", lambda: _show_last_samples(plots.compare(), found.dt)
    )
    if found.dt is not None:
        yield ReportFigure(
            "Correlations of what the model leaves over. After an input at positive lags: something is missed; at "
            "negative lags: a closed loop, unless the input repeats itself.",
            plots.residuals,
        )
    yield ReportFigure("What speaks for the order.", plots.orders)
    yield ReportFigure("Poles, and regions that hold the true ones at 99 %.", plots.poles)
    if found.covariance is not None:
        yield ReportFigure("The frequency response, and bands that hold the true one at 99 %.", plots.bode)


def _show_last_samples(panels: NDArray[Any], dt: float | None) -> NDArray[Any]:
    """Of long records the last samples: more are a blur."""
    end = panels[-1].dataLim.x1
    if dt is not None and end > _MAX_PLOTTED_SAMPLES * dt:
        panels[-1].set_xlim(end - _MAX_PLOTTED_SAMPLES * dt, end)
    return panels


def _summary_lines(found: IdentificationResult) -> list[str]:
    rows = f", {found.block_rows} block rows" if found.block_rows else ""
    lines = [
        f"identified system of order {found.order}",
        f"  inputs, outputs    {found.system.n_inputs}, {found.system.n_outputs}",
        "  data               a frequency response"
        if found.dt is None
        else f"  samples            at steps of {found.dt:g}, {found.hold} hold",
        f"  found by           {found.method}{rows}{', refined' if found.refined else ''}",
        *(
            f"  fit                {value:6.2f} %  {name}"
            for name, value in zip(found.system.output_names, found.fits.tolist(), strict=True)
        ),
    ]
    if any(found.delay):
        lines.append(f"  delay              {', '.join(map(str, found.delay))} samples")
    shown_settings = [row for row in found.system.signal_settings.rows if row[0] in ("u0", "y0", "note")]
    lines += [f"  {label:<18} {value}" for label, value in shown_settings]
    lines += format_poles(found.poles(), found.pole_uncertainty() if found.covariance else ())
    lines += [f"  note               {note}" for note in found.notes]
    lines += [f"  warning            {warning}" for warning in found.warnings]
    return lines
