"""Rise time, settling time, overshoot and peak of step responses, from the exact curve and not from samples of it."""

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from ltinet.analysis.dc_gain import dc_gain
from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.model.names import Names
from ltinet.model.system_matrices import SystemMatrices
from ltinet.responses.curve import Curve, step_curves
from ltinet.responses.selection import Channel, checked_index
from ltinet.shown import shown
from ltinet.solve.prepared import PreparedNetwork
from ltinet.tolerances import rounding
from ltinet.views import html_table, left_out, shown_places, text_table

_FIELDS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")
_ROUNDED = 1e-9  # of the final value: what lies closer to it is rounding of a curve that never goes beyond


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepInfo:
    """What one reads off the step response from every input to every output, each p×m; prints as a table.

    NaN stands for what does not exist: where the final value is zero or infinite there is nothing to rise to, and
    nothing to settle at.
    """

    final_value: Array
    """The gain at rest."""
    rise_time: Array
    """From first reaching 10 % of the final value to first reaching 90 %."""
    settling_time: Array
    """After which the response stays within 2 % of the final value."""
    overshoot: Array
    """By how much it goes beyond the final value, in percent of it."""
    undershoot: Array
    """By how much it goes in the other direction, in percent of the final value."""
    peak: Array
    """The largest |y|, or what |y| tends to if that is more; NaN for several oscillations that are not damped."""
    peak_time: Array
    """When that is; infinite if it is never reached."""
    dead_time: Array = field(kw_only=True)
    """Delay before the response begins; settling and peak times include it."""
    input_names: Names = field(kw_only=True)
    """How the inputs are called, along the last axis."""
    output_names: Names = field(kw_only=True)
    """How the outputs are called, along the first axis."""

    def __repr__(self) -> str:
        p, m = self.final_value.shape
        return f"StepInfo({p} × {m} step responses)"

    def delayed(self, dead_time: Array) -> "StepInfo":
        """Return the same for responses that begin later by a dead time from each input to each output `(p, m)`."""
        return replace(
            self,
            dead_time=dead_time,
            settling_time=self.settling_time + dead_time,
            peak_time=self.peak_time + dead_time,
        )

    def __str__(self) -> str:
        return text_table(self._headings, self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._headings, self._rows())

    @property
    def _shown(self) -> tuple[str, ...]:
        """What is shown: the dead time where there is one."""
        return ("dead time", *_FIELDS) if np.any(self.dead_time) else _FIELDS

    @property
    def _headings(self) -> tuple[str, ...]:
        return ("input", "output", *self._shown)

    def _rows(self) -> list[list[str]]:
        values = [getattr(self, name.replace(" ", "_")) for name in self._shown]
        inputs, outputs = ([shown(name) for name in names] for names in (self.input_names, self.output_names))
        pairs = [(j, i) for j in range(len(inputs)) for i in range(len(outputs))]
        rows = []
        for place in shown_places(len(pairs)):
            if place is None:
                rows.append(left_out(len(pairs), len(self._headings)))
                continue
            j, i = pairs[place]
            rows.append([inputs[j], outputs[i], *(f"{value[i, j]:.5g}" for value in values)])
        return rows


def step_info(
    prepared: PreparedNetwork, system: SystemMatrices, *, input: Channel, output: Channel, settling: Any, rise: Any
) -> StepInfo:
    """Facts of step responses; times are found on the dense output by narrowing down, to about twelve digits."""
    band, (low, high) = _fraction(settling, "settling"), _two_fractions(rise)
    chosen = checked_index(input, system.input_names, "input")
    own = checked_index(output, system.output_names, "output")
    inputs = range(system.n_inputs) if chosen is None else [chosen]
    outputs = range(system.n_outputs) if own is None else [own]
    final = dc_gain(system)
    facts = np.full((len(_FIELDS), len(outputs), len(inputs)), np.nan)
    facts[0] = final[np.ix_(outputs, inputs)]
    for column, j in enumerate(inputs):
        curves = list(step_curves(prepared, system, j, final[:, j], band=band))
        for row, i in enumerate(outputs):
            facts[1:, row, column] = _facts(curves[i], float(final[i, j]), band, low, high)
    _forget_rounding(facts, rounding(system.n_states))
    return StepInfo(
        *facts,
        dead_time=np.zeros(facts.shape[1:]),
        input_names=tuple(system.input_names[j] for j in inputs),
        output_names=tuple(system.output_names[i] for i in outputs),
    )


def _forget_rounding(facts: Array, share: float) -> None:
    """No undershoot where the curve goes the other way by rounding of its peak only."""
    final, undershoot, peak = (facts[_FIELDS.index(name)] for name in ("final value", "undershoot", "peak"))
    with np.errstate(invalid="ignore"):
        undershoot[undershoot * np.abs(final) <= 100.0 * share * peak] = 0.0


def _facts(curve: Curve, final: float, band: float, low: float, high: float) -> tuple[float, ...]:
    """Rise time, settling time, overshoot, undershoot, peak and its time."""
    if not np.isfinite(final):
        return (np.nan, np.nan, np.nan, np.nan, np.inf, np.inf)
    top_time, top = curve.largest(1.0)
    bottom_time, bottom = curve.largest(-1.0)
    time, peak = (top_time, top) if top >= bottom else (bottom_time, bottom)
    settles = curve.span.settles
    if settles and abs(final) * (1.0 + _ROUNDED) >= peak:
        time, peak = np.inf, abs(final)
    if not settles and not curve.span.returns:
        time, peak = (np.nan, np.nan) if curve.span.is_bounded else (np.inf, np.inf)
    if final == 0.0 or not settles:
        return (np.nan, np.nan, np.nan, np.nan, peak, time)
    beyond, against = (top, bottom) if final > 0.0 else (bottom, top)
    size = abs(final)
    return (
        curve.first_reaching(high * final) - curve.first_reaching(low * final),
        curve.settling_time(final, band * size),
        100.0 * (beyond - size) / size if beyond > size * (1.0 + _ROUNDED) else 0.0,
        100.0 * max(0.0, against / size),
        peak,
        time,
    )


def _fraction(value: Any, name: str) -> float:
    number = float(value) if isinstance(value, (int, float, np.floating)) and not isinstance(value, bool) else np.nan
    if not 0.0 < number < 1.0:
        raise SimulationError(f"{name} is {shown(repr(value))}; give a share of the final value, between 0 and 1")
    return number


def _two_fractions(rise: Any) -> tuple[float, float]:
    try:
        low, high = rise
    except (TypeError, ValueError):
        raise SimulationError(
            f"rise is {shown(repr(rise))}; give two shares of the final value, as (0.1, 0.9)"
        ) from None
    low, high = _fraction(low, "rise[0]"), _fraction(high, "rise[1]")
    if not low < high:
        raise SimulationError(f"rise is {shown(repr(rise))}; the first share must be below the second")
    return low, high
