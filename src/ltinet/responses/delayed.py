"""Responses of models with delays: those of the core, each read as much earlier as its input and output are late.

Input j is delayed by τ_j and output i by σ_i, so that y_ij(t) = w_ij(t − τ_j − σ_i), zero before. Responses are
deviations: the operating point has no part in them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.model.signal_settings import SignalSettings
from ltinet.model.system_matrices import SystemMatrices
from ltinet.responses.selection import checked_index
from ltinet.signals.delayed import DelayedInput
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.delayed import MovedTrajectory
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution

Run = Callable[[Any], Solution]
_MOST_SHIFTS = 4  # delays for which uneven times are repeated; of more the longest


def delayed_response(  # noqa: PLR0913 - a model, and what is asked of it
    run: Run,
    prepared: PreparedNetwork,
    system: SystemMatrices,
    settings: SignalSettings,
    *,
    t: ArrayLike | None,
    input: Any = None,
    output: Any = None,
    kind: str,
    x0: Any = None,
) -> Solution:
    """Return a response with delays from `run(t)`, that of the core; `kind` is "step", "impulse" or "initial".

    Parameters
    ----------
    run : callable
        The response of the core at given times, or at times of its own choice for None.
    prepared, system, settings : PreparedNetwork, SystemMatrices, SignalSettings
        The model.
    t : array_like or None
        Times; those of the core, longer by the longest delay, if left out.
    input, output : int, str or None
        The input and the output that were chosen.
    kind : {"step", "impulse", "initial"}
        Which response this is.
    x0 : array_like or None
        The state that an initial response begins in.

    Returns
    -------
    Solution
    """
    own, chosen = checked_index(output, system.output_names, "output"), None
    outputs = settings.array("output_delay", system.n_outputs)[slice(None) if own is None else slice(own, own + 1)]
    delays, state_delays = outputs, None
    if kind != "initial":
        chosen = checked_index(input, system.input_names, "input")
        inputs = settings.array("input_delay", system.n_inputs)
        state_delays = inputs if chosen is None else np.asarray(inputs[chosen])
        delays = state_delays[..., None] + outputs
    core = run(t)
    if t is None:
        remarks = core.remarks
        core = run(_longer(core.t, np.unique(delays)))
        if remarks != core.remarks:
            core = replace(core, stats={**core.stats, "remarks": tuple(dict.fromkeys((*remarks, *core.remarks)))})
    delays = np.broadcast_to(delays, core.y[..., 0, :].shape)
    seen = given = None
    start = x0
    if kind == "step":
        directions = np.eye(system.n_inputs)[chosen if chosen is not None else slice(None)]
        u = np.broadcast_to(directions[..., None, :], (*directions.shape[:-1], len(core.t), system.n_inputs))
        given = SampledSignal(core.t, u, hold="zero")
        nothing = np.zeros(directions.shape)
        seen = DelayedInput(given, nothing, nothing)
    elif kind == "impulse":
        start = system.B.T[chosen if chosen is not None else slice(None)]
    trajectory = MovedTrajectory(
        core=core.trajectory,
        t=core.t,
        delays=delays,
        y0=np.zeros(delays.shape[-1]),
        given=given,
        seen=seen,
        D=np.zeros((delays.shape[-1], system.n_inputs)),
        prepared=prepared,
        x0=start,
        state_delays=state_delays,
        one_output=own,
    )
    return replace(core, y=trajectory.outputs(core.t, at_times=core.y), trajectory=trajectory)


def _longer(t: Array, delays: Array) -> Array:
    """Return times that show the response of the core as well, from 0 on, when it is delayed."""
    end = float(t[-1] + delays.max(initial=0.0))
    steps = np.diff(t)
    if len(t) < 2 or np.ptp(steps) <= 1e-6 * float(steps.max()):
        return np.linspace(0.0, end, len(t))
    shifts = delays if len(delays) <= _MOST_SHIFTS else delays[-1:]
    return np.unique(np.concatenate([t[:1], *(t + own for own in shifts.tolist()), [end]]))
