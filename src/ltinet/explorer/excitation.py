"""Excitation of the explored system: a step, an impulse, a chirp, or columns of an uploaded table.

The chirp is sin(2π (s + 19.5 s²)) at the share s ∈ [0, 1] of the time, whose frequency rises linearly.
"""

from typing import Any, NamedTuple

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.files import read_upload
from ltinet.explorer.state import InvalidStateError, ViewState
from ltinet.explorer.subject import Subject, UploadsByHash, find_upload, table_columns
from ltinet.signals.sampled import Hold
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.tables.table import Table

N_TIMES = 801
_MAX_SAMPLES = 200_000  # of a table
CHIRP = "np.sin(2.0 * np.pi * (share + 19.5 * share**2))"  # frequency from 1 to 40 periods per end time


class ExcitationRun(NamedTuple):
    """Arguments of `net.simulate(u, t, x0=x0, hold=hold)`, and the signal settings of that network.

    Steps, impulses and chirps are deviations from the operating point. An impulse is a run from x0 = b, on which input
    delays do not act: its outputs are delayed by the sum of both delays.
    """

    t: Array
    u: Any
    """Samples `(T, m)`, or a signal."""
    x0: Array | None
    hold: Hold
    settings: SignalSettings = NO_SETTINGS


def build_run(subject: Subject, state: ViewState, net: DynamicNetwork, files: UploadsByHash) -> ExcitationRun:
    """Return the run of a state; raise `InvalidStateError` for a wrong channel or a table that does not fit."""
    driven = channel_index(state.input, net.n_inputs, "input")
    if state.u.startswith("file:"):
        return _table_run(state, net, files)
    end = state.T or subject.end(driven, channel_index(state.output, net.n_outputs, "output"))
    t = np.linspace(0.0, end, N_TIMES)
    u = np.zeros((N_TIMES, net.n_inputs))
    settings = net.signal_settings.delays_only
    if state.u == "impulse":
        delays = net.output_delay + net.input_delay[driven]
        settings = SignalSettings(output_delay=tuple(delays.tolist()))
        return ExcitationRun(t, u, subject.system.B[:, driven], "zero", settings)
    u[:, driven] = 1.0 if state.u == "step" else _chirp(t / end)
    return ExcitationRun(t, u, None, "zero" if state.u == "step" else "linear", settings)


def simulate_run(net: DynamicNetwork, run: ExcitationRun, *, engine: str = "exact") -> Solution:
    """Simulate a run."""
    settings = {name: getattr(run.settings, name) for name in ("input_delay", "output_delay", "u0", "y0", "hold")}
    return net.with_signal_settings(**settings).simulate(run.u, run.t, x0=run.x0, hold=run.hold, engine=engine)


def channel_index(number: int, count: int, what: str) -> int:
    """Return an index from 0 for a channel number from 1; raise `InvalidStateError` if there is no such channel."""
    if number > count:
        raise InvalidStateError(f"{what} is {number} in the address; the system has {count}")
    return number - 1


def _chirp(share: Array) -> Array:
    """Return `CHIRP` at fractions of the end time."""
    return np.asarray(np.sin(2.0 * np.pi * (share + 19.5 * share**2)))


def _table_run(state: ViewState, net: DynamicNetwork, files: UploadsByHash) -> ExcitationRun:
    table = read_upload(find_upload(files, state.u.removeprefix("file:")))
    if not isinstance(table, Table):
        raise InvalidStateError("the input of the response must be a table; upload a .csv")
    if table.values.shape[1] < net.n_inputs or len(table.t) > _MAX_SAMPLES:
        raise InvalidStateError(
            f"the table has {table.values.shape[1]} columns and {len(table.t)} rows; it needs {net.n_inputs} columns, "
            f"one for each input, and at most {_MAX_SAMPLES} rows"
        )
    chosen = state.drive if len(state.drive) == net.n_inputs else tuple(range(1, net.n_inputs + 1))
    return ExcitationRun(table.t, table_columns(table, chosen), None, net.hold or "linear", net.signal_settings)
