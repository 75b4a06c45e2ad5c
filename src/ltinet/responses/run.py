"""The responses that everybody asks for first, by the exact engine, at times that are given or chosen."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.analysis.dc_gain import count_integrators, dc_gain
from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.model.system_matrices import SystemMatrices
from ltinet.responses.modes import Modes, modes_of
from ltinet.responses.selection import checked_index, of_output
from ltinet.responses.times import Span, lengthened, most_times, reference_of, span_of, surely_settled, times_until
from ltinet.signals.numbers import real_array
from ltinet.signals.times import real_times
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.simulation import simulate
from ltinet.solve.solution import Solution

_SETTLED = 0.015  # of the reference, in the last tenth of the times: below the 2 % that everybody speaks of
_MOST_TRIES = 12
_LOOKS = 2001  # times at which it is seen whether a response that seems to have settled stirs again

Run = Callable[[Array], Solution]


def step_response(
    prepared: PreparedNetwork, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Outputs after one input went from 0 to 1 at t = 0, from rest."""
    chosen, own = _chosen(system, input, output)
    final = _part(dc_gain(system), chosen, own)
    modes = partial(pushed_modes, prepared, system, chosen, own, to_step=True)
    directions = np.eye(system.n_inputs)[chosen if chosen is not None else slice(None)]

    def run(times: Array) -> Solution:
        u = np.broadcast_to(directions[..., None, :], (*directions.shape[:-1], len(times), system.n_inputs))
        return simulate(prepared, u, t=times, hold="zero")

    return of_output(_at_times(run, t, modes, final, own), own)


def impulse_response(
    prepared: PreparedNetwork, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Outputs after a unit impulse of one input at t = 0: those of the state x0 = B e_j, without D δ(t)."""
    chosen, own = _chosen(system, input, output)
    modes = partial(pushed_modes, prepared, system, chosen, own, to_step=False)
    starts = system.B.T[chosen if chosen is not None else slice(None)]
    D = _part(system.D, chosen, own)
    told = ("D is not zero: the response also has the impulse D δ(t) at t = 0, which no number shows",)

    def run(times: Array) -> Solution:
        u = np.zeros((*starts.shape[:-1], 1, system.n_inputs))
        still = np.broadcast_to(u, (*u.shape[:-2], len(times), u.shape[-1]))
        return simulate(prepared, still, t=times, x0=starts, hold="zero")

    found = of_output(_at_times(run, t, modes, np.zeros(D.shape), own), own)
    return _with_remarks(found, told) if D.any() else found


def initial_response(
    prepared: PreparedNetwork, system: SystemMatrices, x0: ArrayLike, *, t: ArrayLike | None, output: Any
) -> Solution:
    """Outputs from the state x0 at t = 0 without input; x0 may be a batch `(..., n)`."""
    own = checked_index(output, system.output_names, "output")
    start = real_array(x0, "x0")
    batch = start.shape[:-1]
    n_starts = math.prod(batch)

    def modes() -> Modes:
        packed = prepared.system.packed_from_blocks(prepared.initial_state(start, batch))
        outputs, n_integrators = _outputs(system, own), count_integrators(system)
        return modes_of(prepared.system, packed, outputs, to_step=False, n_integrators=n_integrators)

    def run(times: Array) -> Solution:
        u = np.broadcast_to(np.zeros(system.n_inputs), (*batch, len(times), system.n_inputs))
        return simulate(prepared, u, t=times, x0=start, hold="zero")

    return of_output(_at_times(run, t, modes, np.zeros((len(_outputs(system, own)), n_starts)), own), own)


def pushed_modes(
    prepared: PreparedNetwork, system: SystemMatrices, chosen: int | None, own: int | None, *, to_step: bool
) -> Modes:
    """The modes that inputs push."""
    modal, B = prepared.system, prepared.blocks.B.T
    packed = modal.packed_from_blocks(B if chosen is None else B[chosen : chosen + 1])
    outputs, n_integrators = _outputs(system, own), count_integrators(system)
    return modes_of(modal, packed, outputs, to_step=to_step, n_integrators=n_integrators)


def _at_times(
    run: Run, t: ArrayLike | None, modes_of_run: Callable[[], Modes], final: Array, own: int | None
) -> Solution:
    """The response at the times given, or at times chosen so that it has settled where it settles."""
    if t is not None:
        times = real_times(t, "t")
        if not times.ndim:
            raise InvalidSignalError(
                f"t is {times:g}, a single time; give a list of them from 0 on, such as "
                f"np.linspace(0, {abs(times):g}, 501)"
            )
        if times.ndim == 1 and len(times) and times[0] != 0.0:
            raise InvalidSignalError(
                f"t begins at {times[0]:g}, but responses begin at 0; give times from 0 on, such as "
                "np.linspace(0, 10, 501)"
            )
        return run(times)
    modes = modes_of_run()
    span, most = span_of(modes, final), most_times(modes.amplitudes[0].size if len(modes.rates) else 1)

    def outputs(times: Array) -> tuple[Solution, Array]:
        found = run(times)
        y = found.y if own is None else found.y[..., own : own + 1]
        return found, y.reshape(-1, *y.shape[-2:])

    for _ in range(_MOST_TRIES):
        times, told = times_until(span, most)
        solution, y = outputs(times)
        longer = _longer(span, modes, final, y, times, lambda own: outputs(own)[1]) if span.settles else None
        if longer is None:
            break
        span = longer
    remarks = (*span.remarks, *told)
    return _with_remarks(solution, remarks) if remarks else solution


def _longer(
    span: Span, modes: Modes, final: Array, y: Array, times: Array, outputs: Callable[[Array], Array]
) -> Span | None:
    """The span for a response `(starts, T, p)` that has not settled at the end of this one, or that stirs again later.

    What has settled in the last tenth of the times is looked at further where modes that cancel each other now may be
    seen again, as in a delay that is an impulse later on.
    """
    reference = reference_of(final.T, np.abs(y).max(axis=1, initial=0.0))
    late = y[:, times >= 0.9 * times[-1]]
    if not (np.abs(late - final.T[:, None, :]) <= _SETTLED * reference[:, None, :]).all():
        return lengthened(span)
    rest = surely_settled(modes, reference.T, share=_SETTLED)
    if rest <= times[-1]:
        return None
    looks = np.linspace(0.0, rest, min(_LOOKS, most_times(y[:, 0].size)))
    away = np.abs(outputs(looks) - final.T[:, None, :]) > _SETTLED * reference[:, None, :]
    departed = np.flatnonzero(away.any(axis=(0, 2)) & (looks > times[-1]))
    return lengthened(span, float(looks[departed[-1]]) / 0.9) if departed.size else None


def _chosen(system: SystemMatrices, input: Any, output: Any) -> tuple[int | None, int | None]:
    return checked_index(input, system.input_names, "input"), checked_index(output, system.output_names, "output")


def _part(gains: Array, chosen: int | None, own: int | None) -> Array:
    """The entries of a p×m matrix between the outputs and inputs that are asked for."""
    rows = slice(None) if own is None else slice(own, own + 1)
    columns = slice(None) if chosen is None else slice(chosen, chosen + 1)
    return gains[rows, columns]


def _outputs(system: SystemMatrices, own: int | None) -> list[int]:
    return list(range(system.n_outputs)) if own is None else [own]


def _with_remarks(solution: Solution, remarks: tuple[str, ...]) -> Solution:
    return replace(solution, stats={**solution.stats, "remarks": (*solution.remarks, *remarks)})
