"""One run of a network by any engine, from what a user gives: the options, the times, the input and the start."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.model.names import UNNAMED, names_or_numbers
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import require_continuous_time
from ltinet.signals.as_signal import as_signal
from ltinet.signals.by_name import in_order
from ltinet.signals.numbers import real_array
from ltinet.signals.order import told_if_exchanged
from ltinet.signals.sampled import Hold, checked_hold
from ltinet.signals.times import real_times
from ltinet.solve.arguments import checked_n_jobs
from ltinet.solve.delayed import at_operating_point, moved_input, moved_solution
from ltinet.solve.engines import chosen_engine
from ltinet.solve.implicit.run import run_implicitly
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.reduced.reduction_error import reduction_error
from ltinet.solve.solution import Solution

_TOLERANCE = 1e-6  # of an implicit run, unless another is given


def simulate_system(
    system: SystemMatrices,
    network: Callable[[], PreparedNetwork],
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None,
    hold: Hold | None,
    tolerance: float | None,
    settings: SignalSettings,
) -> Solution:
    """Run a system by its network, exactly, or a large sparse one as it is; `ltinet.StateSpace.simulate` tells more."""
    pencil = system.sparse
    if pencil is None or (tolerance is None and not pencil.is_large):
        if tolerance is not None:
            raise SimulationError(
                "tolerance is for the implicit solver of sparse models; this system is run exactly: leave it out"
            )
        return simulate(network(), u, t=t, x0=x0, hold=hold, settings=settings)
    require_continuous_time(system, "system.simulate(u, t)")
    wanted = _TOLERANCE if tolerance is None else tolerance
    return run_implicitly(
        system, pencil, u, t=t, x0=x0, hold=hold_of(hold, settings), tolerance=wanted, settings=settings
    )


def simulate(  # noqa: PLR0913
    prepared: PreparedNetwork,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None = None,
    hold: Hold | None = None,
    engine: str = "exact",
    n_jobs: int = 1,
    options: Mapping[str, Any] | None = None,
    settings: SignalSettings = NO_SETTINGS,
) -> Solution:
    """Check everything once and let the engine run; `ltinet.DynamicNetwork.simulate` says what may be given."""
    chosen, given = chosen_engine(engine, options or {})
    n_jobs = checked_n_jobs(n_jobs)
    try:
        axis = prepared.time_axis(real_times(t, "t"))
    except InvalidSignalError as error:
        raise told_if_exchanged(error, u) from None
    n_inputs = prepared.n_inputs
    names = prepared.names
    if not isinstance(u, np.ndarray):  # an array has no names
        inputs = names_or_numbers(names.inputs, "inputs", n_inputs)
        u = in_order(u, inputs, are_given=names.inputs is not None, n_times=len(axis.t))
    signal = given_signal = as_signal(u, axis, n_inputs=n_inputs, hold=hold_of(hold, settings))
    if settings.moves_signals:
        given_signal = at_operating_point(signal, axis, settings) if u is None else signal
        seen = moved_input(given_signal, axis, settings)
        signal = seen.signal
    start = None if x0 is None else real_array(x0, "x0")
    solution = chosen.run(prepared, signal, axis.t, x0=start, n_jobs=n_jobs, options=given)
    if prepared.reduced_error is not None:
        rest, p = start is None or not np.any(start), solution.y.shape[-1]
        left = reduction_error(prepared.reduced_error, signal, axis.t, from_rest=rest, n_outputs=p)
        solution = replace(solution, reduction=left)
    if settings.moves_signals:
        D = prepared.system.D if prepared.origin is None else prepared.origin.D  # the latter without the network
        solution = moved_solution(solution, settings, given=given_signal, seen=seen, prepared=prepared, D=D, x0=start)
    solution = replace(solution, stats={**solution.stats, "hold": getattr(given_signal, "hold", None)})
    return solution if names is UNNAMED or names == UNNAMED else replace(solution, signal_names=names)


def hold_of(hold: Hold | None, settings: SignalSettings) -> Literal["linear", "zero"]:
    """Return the hold of a run: the one that was given, else that of the model, else lines.

    Raises
    ------
    InvalidSignalError
        There is no such hold.
    """
    return checked_hold(hold if hold is not None else settings.hold or "linear")
