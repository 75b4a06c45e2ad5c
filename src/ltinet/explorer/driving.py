"""What drives a response: a step, an impulse, a chirp, or the columns of a table that was dropped."""

from typing import Any, NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.files import read_dropped
from ltinet.explorer.identified_subject import columns_of
from ltinet.explorer.state import InvalidStateError, State
from ltinet.explorer.subject import Files, Subject, held_file
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.signals.sampled import Hold
from ltinet.solve.solution import Solution
from ltinet.tables.table import Table

N_TIMES = 801
_MOST_SAMPLES = 200_000  # of a table
CHIRP = "np.sin(2.0 * np.pi * (share + 19.5 * share**2))"  # of the share of time: from 1 to 40 periods over all of it


class Run(NamedTuple):
    """A run as `net.simulate(u, t, x0=x0, hold=hold)` takes it, of the network with other signal settings.

    Steps, impulses and chirps are deviations from the operating point. An impulse is a run from x0 = b, which input
    delays do not act on: there the output is late by both.
    """

    t: Array
    u: Any
    """Samples `(T, m)`, or a signal."""
    x0: Array | None
    hold: Hold
    settings: SignalSettings = NO_SETTINGS


def run_of(subject: Subject, state: State, net: DynamicNetwork, files: Files) -> Run:
    """What the state asks to be run.

    Raises:
        InvalidStateError: an input or output is not there, or a table does not fit.
    """
    driven = checked_channel(state.input, net.n_inputs, "input")
    if state.u.startswith("file:"):
        return _table_run(state, net, files)
    end = state.T or subject.end(driven, checked_channel(state.output, net.n_outputs, "output"))
    t = np.linspace(0.0, end, N_TIMES)
    u = np.zeros((N_TIMES, net.n_inputs))
    settings = net.signal_settings.delays_only
    if state.u == "impulse":
        late = net.output_delay + net.input_delay[driven]
        return Run(t, u, subject.system.B[:, driven], "zero", SignalSettings(output_delay=tuple(late.tolist())))
    u[:, driven] = 1.0 if state.u == "step" else _chirp(t / end)
    return Run(t, u, None, "zero" if state.u == "step" else "linear", settings)


def simulated(net: DynamicNetwork, run: Run, *, engine: str = "exact") -> Solution:
    """The run by the library."""
    own = run.settings
    moved = net.with_signal_settings(
        input_delay=own.input_delay, output_delay=own.output_delay, u0=own.u0, y0=own.y0, hold=own.hold
    )
    return moved.simulate(run.u, run.t, x0=run.x0, hold=run.hold, engine=engine)


def checked_channel(number: int, count: int, what: str) -> int:
    """A number that counts from 1 as an index that counts from 0.

    Raises:
        InvalidStateError: there is no such channel.
    """
    if number > count:
        raise InvalidStateError(f"{what} is {number} in the address; the system has {count}")
    return number - 1


def _chirp(share: Array) -> Array:
    """`CHIRP`: a sine whose frequency rises in a straight line, at shares of the whole time."""
    return np.asarray(np.sin(2.0 * np.pi * (share + 19.5 * share**2)))


def _table_run(state: State, net: DynamicNetwork, files: Files) -> Run:
    table = read_dropped(held_file(files, state.u.removeprefix("file:")))
    if not isinstance(table, Table):
        raise InvalidStateError("the file that is to drive the response is no table; drop a .csv")
    if table.values.shape[1] < net.n_inputs or len(table.t) > _MOST_SAMPLES:
        raise InvalidStateError(
            f"the table has {table.values.shape[1]} columns and {len(table.t)} rows; it needs {net.n_inputs} columns, "
            f"one for each input, and at most {_MOST_SAMPLES} rows"
        )
    chosen = state.drive if len(state.drive) == net.n_inputs else tuple(range(1, net.n_inputs + 1))
    return Run(table.t, columns_of(table, chosen), None, net.hold or "linear", net.signal_settings)
