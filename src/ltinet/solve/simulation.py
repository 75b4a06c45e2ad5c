"""One run of a network by any engine, from what a user gives: the options, the times, the input and the start."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import InvalidSignalError
from ltinet.model.names import UNNAMED, names_or_numbers
from ltinet.signals.as_signal import as_signal
from ltinet.signals.by_name import in_order
from ltinet.signals.numbers import real_array
from ltinet.signals.order import told_if_exchanged
from ltinet.signals.sampled import Hold
from ltinet.signals.times import real_times
from ltinet.solve.arguments import checked_n_jobs
from ltinet.solve.engines import chosen_engine
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution


def simulate(
    prepared: PreparedNetwork,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None = None,
    hold: Hold = "linear",
    engine: str = "exact",
    n_jobs: int = 1,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Check everything once and let the engine run; `ltinet.DynamicNetwork.simulate` says what may be given."""
    chosen, given = chosen_engine(engine, dict(options or {}))
    n_jobs = checked_n_jobs(n_jobs)
    try:
        axis = prepared.time_axis(real_times(t, "t"))
    except InvalidSignalError as error:
        raise told_if_exchanged(error, u) from None
    n_inputs = prepared.network.n_inputs
    names = prepared.names
    if not isinstance(u, np.ndarray):  # an array has no names
        inputs = names_or_numbers(names.inputs, "inputs", n_inputs)
        u = in_order(u, inputs, are_given=names.inputs is not None, n_times=len(axis.t))
    signal = as_signal(u, axis, n_inputs=n_inputs, hold=hold)
    start = None if x0 is None else real_array(x0, "x0")
    solution = chosen.run(prepared, signal, axis.t, x0=start, n_jobs=n_jobs, options=given)
    return replace(solution, signal_names=names) if names != UNNAMED else solution
