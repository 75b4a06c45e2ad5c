"""Step of a model with delays and an operating point as a step of its core, driven by tapped delay lines.

With v_j = u_j − u0_j (zero before the first sample) a step of the core is

    z_k = P z_{k−1} + Γ x_k,    w_k = C z_k + D x_k,    x_k = (v_j[k − l], …),

where x_k collects the taps: samples of single inputs with lags l. A delay of (d + f) Δt, 0 ≤ f < 1, needs the pieces of
the input between the samples k − d − 2, k − d − 1 and k − d: with a zero hold the input switches f Δt after the
beginning of the step, with a linear hold it has a corner there. Columns of Γ are exact.

No line leads to the first sample: an input with a linear hold is zero until it arrives, and then jumps. A tap for the
end of a line therefore reads 0 where the sample is the first one.

An output with a delay of (e + g) Δt, g > 0, is that of the core (1 − g) Δt after the sample k − e − 1, so

    w_k = (C e^{F (1−g) Δt} z)_{k−1} + L x_k ;

the first term is a row of the core's outputs, kept for one step. All outputs wait e samples and get y0.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.export.rounding import TABLE_ERROR, RoundingBound, rounding_bound
from ltinet.export.step_model import ExportSettings, StepModel, require_representable
from ltinet.simulation.delayed_stepper import delays_in_samples, input_map, state_map
from ltinet.systems.signal_settings import SignalSettings


class Tap(NamedTuple):
    """Tap of a delay line: sample k − lag of an input less u0."""

    channel: int
    lag: int
    ends_line: bool
    """True for the end of a line between samples; no line leads to the first sample."""


@dataclass(frozen=True, eq=False)
class TappedModel:
    """The step of the core with taps as inputs, and the delay lines and offsets around it."""

    step: StepModel
    """Γ stands in Gamma0, Gamma1 is zero; D is that of the taps."""
    taps: tuple[Tap, ...]
    is_partial: NDArray[np.bool_]
    """Outputs that are delayed by a fraction of a step, `(p,)`."""
    L: Array
    """Matrix from taps to those outputs, `(p, taps)`; zero rows for all others."""
    output_steps: NDArray[np.intp]
    """e, the whole steps by which outputs are delayed."""
    u0: Array
    y0: Array
    settings: SignalSettings
    tap_error: Array
    """Relative error of the columns of Γ beyond that of a plain step, `(taps,)`."""
    row_error: Array
    """Error of the rows of C of partial outputs, `(p, n)`."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.u0)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.y0)

    @property
    def history(self) -> NDArray[np.intp]:
        """Number of samples of each input that are stored, the newest included, `(m,)`."""
        lags = np.zeros(self.n_inputs, dtype=np.intp)
        for tap in self.taps:
            lags[tap.channel] = max(lags[tap.channel], tap.lag)
        return lags + 1

    @property
    def longest_lag(self) -> int:
        """The largest lag of a tap."""
        return max((tap.lag for tap in self.taps), default=0)

    @property
    def at_end(self) -> StepModel:
        """Equal step with x_k taken at its end: Γ stands in Gamma1, as for a linear hold."""
        none = np.zeros_like(self.step.Gamma0)
        return replace(self.step, hold="linear", Gamma0=none, Gamma1=self.step.Gamma0)


def build_tapped_model(model: StepModel, settings: ExportSettings) -> TappedModel:
    """Return the step of a model with delays and an operating point from that of its core.

    Raise `FileFormatError` if an entry overflows in the precision.
    """
    signals, linear = settings.signals, model.hold == "linear"
    m, p, n = model.n_inputs, model.n_outputs, model.n_states
    input_delay = delays_in_samples(signals.array("input_delay", m), model.dt, is_discrete=model.is_discrete)
    output_delay = delays_in_samples(signals.array("output_delay", p), model.dt, is_discrete=model.is_discrete)
    rest, partial = input_delay.remainder, output_delay.remainder > 0.0
    engine, positions = model.context, model.positions
    Gamma = np.concatenate([np.zeros((n, 2 * m)), model.Gamma0, model.Gamma1], axis=1)
    if rest.any():
        delayed_columns = state_map(engine, model.dt, rest, stop=1.0, linear=linear, inputs_only=True)[positions]
        Gamma = np.where(np.tile(rest > 0.0, 4), delayed_columns, Gamma)
    Gamma = np.concatenate([Gamma, np.zeros((n, m))], axis=1)
    # Rows of outputs by columns (a_l, a_r, b_l, b_r, the sample k − d).
    C, D, L = model.C.copy(), np.zeros((p, 5 * m)), np.zeros((p, 5 * m))
    row_error, largest_block = np.zeros((p, n)), max([1, *(len(block.F) for block in model.blocks)])
    at_end = np.where(rest > 0.0, input_map(rest, 1.0, linear=linear), 0.0)
    D[~partial, : 4 * m] = model.D[~partial] @ at_end.T
    D[~partial, 4 * m :] = np.where(rest > 0.0, 0.0, model.D[~partial])
    for share in np.unique(1.0 - output_delay.remainder[partial]).tolist():
        rows = np.flatnonzero(partial & (1.0 - output_delay.remainder == share))
        inside, weights = state_map(engine, model.dt, rest, stop=share, linear=linear), engine.output_weights[rows]
        C[rows] = (weights @ inside[:, :n])[:, positions]
        # The rounding error of the product C e^{Fh} is proportional to |C| |e^{Fh}|.
        row_error[rows] = TABLE_ERROR * largest_block * (np.abs(weights) @ np.abs(inside[:, :n]))[:, positions]
        L[rows, : 4 * m] = weights @ inside[:, n:] + model.D[rows] @ input_map(rest, share, linear=linear).T
    feeds_through = (D[:, 4 * m :] != 0.0).any(axis=0).tolist()
    taps, columns = _taps(input_delay.whole, rest, linear=linear, feeds_through=feeds_through)
    # Columns are products of a propagator, an input matrix and a fraction of the step.
    sensitivity = _max_end_sensitivity(model) if rest.any() else 0.0
    errors = np.where(rest > 0.0, 3.0 * TABLE_ERROR + EPS * sensitivity, 0.0)
    step = replace(
        model, hold="zero", tapped=True, B=np.zeros((n, len(taps))), Gamma0=Gamma[:, columns],
        Gamma1=np.zeros((n, len(taps))), C=C, D=D[:, columns],
    )  # fmt: skip
    tapped = TappedModel(
        step=step,
        taps=taps,
        is_partial=partial,
        L=L[:, columns],
        output_steps=output_delay.whole,
        u0=signals.array("u0", m),
        y0=signals.array("y0", p),
        settings=signals,
        tap_error=np.array([errors[tap.channel] for tap in taps]),
        row_error=row_error,
    )
    parts = [tapped.step.Gamma0, tapped.step.C, tapped.step.D, tapped.L, tapped.u0, tapped.y0]
    require_representable(parts, settings.dtype, "one step of this model, or its operating point,")
    return tapped


def _taps(
    whole_steps: NDArray[np.intp], remainder: Array, *, linear: bool, feeds_through: list[bool]
) -> tuple[tuple[Tap, ...], list[int]]:
    """Return taps, by lag, and their columns among (a_l, a_r, b_l, b_r, the sample k − d)."""
    m = len(remainder)
    taps: list[tuple[int, Tap]] = []
    for j, d in enumerate(whole_steps.tolist()):
        taps.append((2 * m + j, Tap(j, d + 1, ends_line=False)))
        if linear:
            taps.append((3 * m + j, Tap(j, d, ends_line=True)))
        if remainder[j] > 0.0:
            taps.append((j, Tap(j, d + 2, ends_line=False)))
            if linear:
                taps.append((m + j, Tap(j, d + 1, ends_line=True)))
        elif feeds_through[j]:
            taps.append((4 * m + j, Tap(j, d, ends_line=False)))
    taps.sort(key=lambda pair: (pair[1].ends_line, pair[1].lag, pair[1].channel))
    return tuple(tap for _, tap in taps), [column for column, _ in taps]


def _max_end_sensitivity(model: StepModel) -> float:
    """Return max |λ e^{λs}| over a step: the error caused by an end of a piece that is wrong by a unit of the step."""
    rates = np.concatenate([model.rates, *(np.linalg.eigvals(block.F) for block in model.blocks)]) * model.dt
    if not len(rates):
        return 0.0
    sizes, decay = np.abs(rates), np.maximum(-rates.real, 0.0)
    return float(np.max(np.minimum(sizes, sizes / np.maximum(decay, 1e-300))))


def run_tapped_model(tapped: TappedModel, u: Array) -> Array:
    """Return outputs `(T, p)` for samples `(T, m)` in double precision, sample by sample."""
    step, v = tapped.step, u - tapped.u0
    z, w_before, rows = step.start, np.zeros(tapped.n_outputs), []

    def read(tap: Tap, index: int) -> float:
        return 0.0 if index < 0 or (tap.ends_line and index == 0) else float(v[index, tap.channel])

    for k in range(len(u)):
        x = np.array([read(tap, k - tap.lag) for tap in tapped.taps])
        if k:
            z = step.advanced(z) + step.Gamma0 @ x
        w = step.C @ z + step.D @ x
        rows.append(np.where(tapped.is_partial, (w_before + tapped.L @ x) if k else 0.0, w))
        w_before = w
    delayed = np.zeros((len(u), tapped.n_outputs))
    for i, e in enumerate(tapped.output_steps.tolist()):
        delayed[e:, i] = [row[i] for row in rows[: max(len(u) - e, 0)]]
    return np.asarray(delayed + tapped.y0)


def exported_rounding_bound(
    model: StepModel | TappedModel,
    precision: type[np.floating[Any]],
    *,
    n_steps: float,
    peak: Array | float = 1.0,
    samples_at_once: int = 1,
) -> RoundingBound:
    """Return the bound of `rounding_bound` for inputs with |u_j − u0_j| ≤ peak_j.

    With taps, added to that of the core are the effects of errors of u − u0 and of taps, which act like inputs of that size;
    errors of the rows of partial outputs times the size of states; and the rounding of the sums with stored outputs and
    y0.
    """
    options: Any = {"n_steps": n_steps, "samples_at_once": samples_at_once}
    if isinstance(model, StepModel):
        return rounding_bound(model, precision, peak=peak, **options)
    tapped, step, unit = model, model.step, float(np.finfo(precision).eps) / 2.0
    table = unit if precision is np.float32 else 0.0
    peaks = np.broadcast_to(np.asarray(peak, dtype=np.float64), (tapped.n_inputs,))
    channels = np.array([tap.channel for tap in tapped.taps], dtype=np.intp)
    with_feedthrough = replace(step, D=np.abs(step.D) + np.abs(tapped.L))
    core = rounding_bound(with_feedthrough, precision, peak=peaks[channels], **options)
    moved = (unit * peaks + table * np.abs(tapped.u0)) * (tapped.u0 != 0.0)
    zero_start = replace(with_feedthrough, start=np.zeros_like(step.start))
    tap_errors = moved[channels] + tapped.tap_error * peaks[channels]
    of_inputs = rounding_bound(zero_start, precision, peak=tap_errors, **options).size
    rows = replace(step, C=tapped.row_error, D=np.zeros_like(step.D))
    of_rows = rounding_bound(rows, precision, peak=peaks[channels], **options).size
    y0 = np.abs(tapped.y0)
    summed = (tapped.is_partial * (step.n_inputs + 2)) * core.size + (y0 > 0.0) * (core.size + y0)
    more = of_inputs + of_rows + (unit * summed + table * y0)
    return RoundingBound(core.per_step + more, core.drift + more, core.size + y0)
