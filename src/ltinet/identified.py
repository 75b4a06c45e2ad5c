"""From measured records to a continuous-time system: `identify`, and what it found."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError
from ltinet.identification.asked import asked_delays, asked_points, asked_wishes
from ltinet.identification.candidates import Setting
from ltinet.identification.cautions import cautions, on_a_part
from ltinet.identification.compared import compared
from ltinet.identification.confidence import FrequencyBand, StepBand, frequency_band, step_band
from ltinet.identification.continuous import continuous
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.estimation import Estimate, Tried, Wishes, any_grows, estimate
from ltinet.identification.given import Given, given_records, time_step_of
from ltinet.identification.linear_part import N_TRENDS, Trend
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.pole_regions import PoleConfidence, pole_confidences
from ltinet.identification.record import Record, n_samples
from ltinet.identification.residual_tests import ResidualTests
from ltinet.identification.residuals import feedback_warning, fits_of, residuals_of
from ltinet.identification.seen import Seen, seen_of
from ltinet.identification.text import pole_lines
from ltinet.identification.units import Units, units_of
from ltinet.networks import construct
from ltinet.once import cached_property
from ltinet.plotting.identified_doors import DrawnIdentification, IdentifiedPlots
from ltinet.shown import shown
from ltinet.signals.sampled import Hold, checked_hold
from ltinet.state_space import StateSpace

_GOOD = 0.02  # of the outputs: with a smaller error on unseen samples a stable model explains all there is
_FAR_BETTER = 0.5  # of the error of a stable model
Complex = NDArray[np.complex128]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Identified:
    """A continuous-time system found in records, with the evidence for it; `print` shows it."""

    system: StateSpace
    """In continuous time, without the delay, for inputs and outputs less their offsets."""
    dt: float
    hold: Literal["linear", "zero"]
    delay: tuple[int, ...]
    """Samples by which each input comes late."""
    method: str
    block_rows: int
    refined: bool
    trend: Trend
    input_offsets: Array
    """What inputs were counted from, `(m,)`: their means."""
    output_offsets: Array
    """What the model adds to its outputs, `(p,)`."""
    fits: Array
    """On the records that it was found in: 100 (1 − ‖y − ŷ‖/‖y − mean‖) %, by simulation, `(p,)`."""
    cautions: tuple[str, ...]
    """Warnings that need no look at residuals."""
    remarks: tuple[str, ...]
    tried: tuple[Tried, ...] = field(repr=False)
    """Models on the way here, with their errors on samples that they had not seen."""
    singular_values: Array = field(repr=False)
    modes: ModalModel = field(repr=False)
    """The model at samples, mode by mode."""
    seen: Seen = field(repr=False)
    """The beginnings of the records, from which confidence is computed when somebody asks for it."""

    @property
    def order(self) -> int:
        """Number of states at samples; a negative real pole there takes one more in continuous time."""
        return self.modes.order

    @cached_property
    def net(self) -> DynamicNetwork:
        """The network of the system."""
        return construct(self.system)

    @cached_property
    def discrete(self) -> StateSpace:
        """The model at samples, x[k+1] = A x[k] + B u[k], y = C x + D u."""
        A, B, C, D = self.modes.sampled()
        return StateSpace(A, B, C, D, dt=self.dt, inputs=self.system.input_names, outputs=self.system.output_names)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the model; a closed loop among it."""
        return self.cautions + feedback_warning(self.seen.linear, self.seen.records)

    @cached_property
    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters, in units of the records; None where they are too many or some of them are not seen."""
        return self.seen.covariance()

    def poles(self) -> Complex:
        """The poles in continuous time."""
        return self.system.poles()

    def simulate(self, u: Any, *, x0: ArrayLike | None = None) -> Array:
        """Outputs `(T, p)` for inputs `(T, m)` at steps of dt: delays, offsets and the hold of the records included.

        Without x0 the run begins at rest, with inputs and outputs at their offsets.
        """
        inputs = self._delayed(self._inputs(u))
        t = self.dt * np.arange(len(inputs))
        run = self.net.simulate(inputs - self.input_offsets, t, hold=self.hold, x0=x0)
        return np.asarray(run.y + self.output_offsets)

    def fit(self, u: Any, y: Any) -> Array:
        """How well the model explains other records, in % for each output, `(p,)`: 100 (1 − ‖y − ŷ‖/‖y − mean‖).

        ŷ is simulated; only the states at the first sample are fitted. Several experiments count as one.
        """
        return fits_of(self.modes, self._prepared(u, y))

    def residuals(self, u: Any, y: Any) -> ResidualTests:
        """What the model leaves over of these or other records, with its correlations and their 99 % bands.

        Only the states at the first sample are fitted, and trends where they belong to the model.
        """
        return residuals_of(self.modes, self._prepared(u, y), self.trend)

    def pole_confidence(self) -> tuple[PoleConfidence, ...]:
        """The poles of continuous time with their covariances, of pairs that with Im > 0.

        Regions hold the true pole as often as they say where the model is refined and has the order of the system; a
        model that is not refined is less certain.
        """
        return pole_confidences(self._certain(), self.dt)

    def frequency_band(self, omega: ArrayLike) -> FrequencyBand:
        """H(jω) of the system, without the delay, with the covariance of every entry."""
        return frequency_band(self._certain(), asked_points(omega, "omega"), self.dt)

    def step_band(self, t: ArrayLike) -> StepBand:
        """Step responses of the system from rest, without the delay, at times from 0 on, with standard deviations."""
        return step_band(self._certain(), asked_points(t, "t"), self.dt)

    @property
    def plot(self) -> IdentifiedPlots:
        """Drawings: `found.plot.compare(u, y)`, `.residuals(u, y)`, `.orders()`, `.poles()`, `.bode()`."""
        drawn = DrawnIdentification(
            self.poles, lambda: self.pole_confidence() if self.covariance else (), self._compared, self.fit,
            self.residuals, self.frequency_band, self.system.shown_frequencies, self.tried, self.singular_values,
            self.order, self.dt, self.system.output_names, self.system.input_names,
        )  # fmt: skip
        return IdentifiedPlots(drawn)

    def _compared(self, u: Any, y: Any) -> tuple[tuple[Array, Array], ...]:
        return compared(self.modes, self._prepared(u, y), self.output_offsets)

    def _certain(self) -> ParameterCovariance:
        if self.covariance is None:
            raise InvalidSignalError(
                "the records do not tell how certain this model is: it has too many parameters, or some that no output "
                "shows; identify a smaller order"
            )
        return self.covariance

    def _prepared(self, u: Any, y: Any) -> tuple[Record, ...]:
        """Records without offsets and delays."""
        records = given_records(u, y).records
        self._require_channels(records[0])
        return tuple(
            Record(own.u - self.input_offsets, own.y - self.output_offsets).shifted(self.delay) for own in records
        )

    def _inputs(self, u: Any) -> Array:
        values = np.asarray(u, dtype=np.float64)
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

    def _delayed(self, u: Array) -> Array:
        """Inputs as late as they act; before the first sample they stood still."""
        columns = [np.concatenate([np.full(d, u[0, j]), u[: len(u) - d, j]]) for j, d in enumerate(self.delay)]
        return np.stack(columns, axis=1)

    def _require_channels(self, record: Record) -> None:
        wanted = self.system.n_inputs, self.system.n_outputs
        if (record.u.shape[1], record.y.shape[1]) != wanted:
            raise InvalidSignalError(
                f"u and y have {record.u.shape[1]} and {record.y.shape[1]} channels; the model has {wanted[0]} inputs "
                f"and {wanted[1]} outputs"
            )

    def __repr__(self) -> str:
        fits = ", ".join(f"{value:.1f} %" for value in self.fits[:4].tolist())
        return f"Identified(order={self.order}, dt={self.dt:g}, fit={fits}{', …' if len(self.fits) > 4 else ''})"

    def __str__(self) -> str:
        return "\n".join(_told(self))


def identify(  # noqa: PLR0913 - every option is a keyword of this one door
    u: Any,
    y: Any,
    *,
    dt: float | None = None,
    t: ArrayLike | None = None,
    order: int | Sequence[int] | None = None,
    method: Literal["auto", "moesp", "n4sid", "cva"] = "auto",
    block_rows: int | None = None,
    trend: Trend = "constant",
    delay: int | Sequence[int] | Literal["auto"] = "auto",
    feedthrough: bool = True,
    hold: Hold = "zero",
    stable: bool | Literal["auto"] = "auto",
    refine: bool = True,
) -> Identified:
    """Find the continuous-time system behind measured inputs and outputs.

    Subspace methods give poles, least squares on the simulated outputs the rest, and an output-error refinement is kept
    where it predicts samples better that it has not seen. Whatever is not given is decided on such samples too.

    Args:
        u: inputs `(T, m)` or `(T,)`: arrays, tables, DataFrames, or a list of them, one for each experiment. NaN marks
            missing samples, which split a record into experiments.
        y: outputs `(T, p)` or `(T,)`, likewise.
        dt: time between samples.
        t: the times themselves, instead of dt; they must be evenly spaced.
        order: number of states; several to choose from; all up to 40 that records allow if left out.
        method: which subspace method.
        block_rows: of the Hankel matrix; some are tried if left out.
        trend: "none" takes records as they are, "constant" counts inputs from their means and estimates offsets of
            outputs, "linear" slopes as well.
        delay: samples by which inputs come late, one number or one for each; "auto" looks for them.
        feedthrough: whether inputs may act on outputs at once.
        hold: what inputs do between samples: "zero" for steps, as most actuators do, "linear" for lines.
        stable: True mirrors poles that grow, False keeps them; "auto" keeps them, with a warning, where that predicts
            unseen samples far better.
        refine: whether to try the output-error refinement.

    Raises:
        InvalidSignalError: the records cannot be used, or say too little; the message says what would help.
    """
    step = time_step_of(dt, t)
    given = given_records(u, y)
    linear = checked_hold(hold) == "linear"
    wishes = asked_wishes(order, method, block_rows, refine)
    if trend not in N_TRENDS:
        raise InvalidSignalError(f'trend is {shown(repr(trend))}; it must be "none", "constant" or "linear"')
    if stable not in (True, False, "auto"):
        raise InvalidSignalError(f'stable is {shown(repr(stable))}; it must be True, False or "auto"')
    offsets = _means(given.records, "u") if trend != "none" else np.zeros(given.records[0].u.shape[1])
    levels = _means(given.records, "y") if trend != "none" else np.zeros(given.records[0].y.shape[1])
    units = units_of(given.records)
    centred = tuple(units.scaled(Record(own.u - offsets, own.y - levels)) for own in given.records)
    delays = asked_delays(delay, centred)
    shifted = tuple(own.shifted(delays) for own in centred)
    scale = np.std(np.concatenate([own.y for own in shifted]), axis=0)
    mirrors = stable is True or (stable == "auto" and not wishes.decide_everything)
    setting = Setting(feedthrough, trend, linear, scale, mirrors, max(map(len, shifted)))
    found = estimate(shifted, wishes, setting)
    if stable == "auto" and mirrors and found.error > _GOOD:
        found = _unless_far_better(found, shifted, wishes, replace(setting, stable=False))
    seen = seen_of(found.linear, shifted, feedthrough=feedthrough, trend=trend, gain=units.gain)
    return _result(found, units, shifted, step, delays, (offsets, levels), given, seen)


def _unless_far_better(found: Estimate, records: tuple[Record, ...], wishes: Wishes, setting: Setting) -> Estimate:
    """The stable model, unless one that grows predicts unseen samples far better: an unstable plant in a loop."""
    if not any_grows(records, found.block_rows, found.linear.model.order):
        return found
    free = estimate(records, wishes, setting)
    return free if not free.linear.model.is_stable and free.error < _FAR_BETTER * found.error else found


def _result(
    found: Estimate,
    units: Units,
    records: tuple[Record, ...],
    dt: float,
    delays: tuple[int, ...],
    offsets: tuple[Array, Array],
    given: Given,
    seen: Seen,
) -> Identified:
    spread = sum(((one.y - one.y.mean(axis=0)) ** 2).sum(axis=0) for one in records)
    fits = 100.0 * (1.0 - np.sqrt(found.linear.errors / spread))
    restored = units.restored(found.linear)
    model = restored.model
    own = continuous(model, dt)
    level = np.mean(
        [start.trends[:, 0] if start.trends.size else np.zeros(model.n_outputs) for start in restored.starts],
        axis=0,
    )
    return Identified(
        system=StateSpace(own.A, own.B, own.C, own.D, inputs=given.inputs, outputs=given.outputs),
        dt=dt,
        hold="linear" if model.linear else "zero",
        delay=delays,
        method=found.method,
        block_rows=found.block_rows,
        refined=found.is_refined,
        trend=seen.trend,
        input_offsets=offsets[0],
        output_offsets=np.asarray(level + offsets[1]),
        fits=np.asarray(fits),
        cautions=cautions(model, records, fits=np.asarray(fits), n_doubled=own.n_doubled, remarks=given.remarks),
        remarks=(*given.remarks, *on_a_part(found, records)),
        tried=found.tried,
        singular_values=found.singular_values,
        modes=model,
        seen=seen,
    )


def _means(records: tuple[Record, ...], name: Literal["u", "y"]) -> Array:
    return np.asarray(sum(getattr(own, name).sum(axis=0) for own in records) / n_samples(records))


def _told(found: Identified) -> list[str]:
    names = found.system.output_names
    lines = [
        f"identified system of order {found.order}",
        f"  inputs, outputs    {found.system.n_inputs}, {found.system.n_outputs}",
        f"  samples            at steps of {found.dt:g}, {found.hold} hold",
        f"  found by           {found.method}, {found.block_rows} block rows{', refined' if found.refined else ''}",
        *(
            f"  fit                {value:6.2f} %  {name}"
            for name, value in zip(names, found.fits.tolist(), strict=True)
        ),
    ]
    if any(found.delay):
        lines.append(f"  delay              {', '.join(map(str, found.delay))} samples")
    lines += pole_lines(found.poles(), found.pole_confidence() if found.covariance else ())
    lines += [f"  note               {remark}" for remark in found.remarks]
    lines += [f"  warning            {warning}" for warning in found.warnings]
    return lines
