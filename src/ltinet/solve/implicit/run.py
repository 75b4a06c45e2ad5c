"""A run of a sparse model as it is: walked again with shorter steps until both walks agree as well as was asked for."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.model.memory import told_if_short
from ltinet.model.names import names_or_numbers
from ltinet.model.signal_settings import SignalSettings
from ltinet.model.sparse_factors import SingularError
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.model.system_matrices import SystemMatrices
from ltinet.signals.as_signal import as_signal
from ltinet.signals.by_name import in_order
from ltinet.signals.numbers import check_state, real_array
from ltinet.signals.sampled import Hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis, real_times
from ltinet.solve.arguments import positive
from ltinet.solve.delayed import at_operating_point, moved_input, moved_solution
from ltinet.solve.implicit.sdirk import Stepping
from ltinet.solve.implicit.trajectory import ImplicitTrajectory
from ltinet.solve.implicit.walk import Outputs, knots_between, walk
from ltinet.solve.solution import Solution

_SMALLEST, _LARGEST = 1e-9, 0.1  # tolerances: below, rounding of stiff states is felt; above, nothing is told
_WALKS = 4
_ROOM = 0.3  # of what is missing, for the next walk
_FIRST = 10.0  # times what is wanted, for a step of the first walk: steps of half the length err 16 times less


def run_implicitly(  # noqa: PLR0913, RUF100
    system: SystemMatrices,
    pencil: SparsePencil,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None,
    hold: Hold,
    tolerance: float,
    settings: SignalSettings,
) -> Solution:
    """Outputs at the times t; their error, estimated by halving all steps, is below `tolerance` of each largest |y|.

    Raises:
        InvalidSignalError: u, t or x0 do not fit.
        SimulationError: E is singular, the states overflow, or the tolerance is not reached.
    """
    tolerance = positive(tolerance, "tolerance")
    if not _SMALLEST <= tolerance <= _LARGEST:
        raise SimulationError(f"tolerance is {tolerance:g}; give one from {_SMALLEST:g} to {_LARGEST:g}")
    axis = TimeAxis.of(real_times(t, "t"))
    names = names_or_numbers(system.names.inputs, "inputs", system.n_inputs)
    if not isinstance(u, np.ndarray):
        u = in_order(u, names, are_given=system.names.inputs is not None, n_times=len(axis.t))
    signal = given = as_signal(u, axis, n_inputs=system.n_inputs, hold=hold)
    if settings.moves_signals:
        given = at_operating_point(signal, axis, settings) if u is None else signal
        seen = moved_input(given, axis, settings)
        signal = seen.signal
    start = _start(x0, system.n_states, signal.batch_shape)
    with told_if_short(pencil.n_states, pencil.n_nonzeros):
        outputs = _outputs_of(pencil, system.C)
        trajectory, stats = _agreeing(system, pencil, outputs, signal, axis.t, start, tolerance)
    stats["hold"] = getattr(given, "hold", None)
    solution = Solution(axis.t, trajectory.outputs(axis.t), trajectory, stats, system.names)
    if settings.moves_signals:
        solution = moved_solution(solution, settings, given=given, seen=seen, prepared=None, D=system.D, x0=x0)
    return solution


def _outputs_of(pencil: SparsePencil, C: Array) -> Outputs:
    try:
        return Outputs(pencil, C)
    except SingularError:
        raise SimulationError(
            "E is singular: the model has algebraic equations, which ltinet.reduce(system, tolerance=1e-6) eliminates "
            "where they are of index 1"
        ) from None


def _agreeing(
    system: SystemMatrices, pencil: SparsePencil, outputs: Outputs, signal: Signal, t: Array, x0: Array, wanted: float
) -> tuple[ImplicitTrajectory, dict[str, Any]]:
    """Walks with smaller and smaller local tolerances."""
    knots, local = np.array(list(knots_between(signal, t))), _FIRST * wanted
    for _ in range(_WALKS):
        walked = walk(Stepping(pencil), outputs, signal, knots, x0=x0, tolerance=local)
        trajectory = ImplicitTrajectory(walked, signal, system.D, signal.batch_shape)
        times = np.union1d(t, walked.coarse.t)
        estimate = trajectory.error_estimate(times).max(axis=-2)
        peak = np.abs(trajectory.outputs(times)).max(axis=-2)
        missing = float(np.max(estimate / np.where(peak > 0.0, wanted * peak, np.inf), initial=0.0))
        if missing <= 1.0:
            return trajectory, _told(walked, estimate, local)
        local *= _ROOM / missing
        if local < 1e-3 * _SMALLEST:
            break
    raise SimulationError(
        f"walks with whole and halved steps are {missing * wanted:.1e} of the largest output apart, and shorter steps "
        f"do not help; allow a larger tolerance than {wanted:g}"
    )


def _told(walked: Any, estimate: Array, local: float) -> dict[str, Any]:
    worst = float(estimate.max(initial=0.0))
    return {
        "engine": "implicit",
        "error_estimate": estimate,
        "n_steps": len(walked.coarse.t) - 1,
        "n_factorisations": walked.n_factorisations,
        "n_solves": walked.n_solves,
        "step_tolerance": local,
        "remarks": (f"outputs err by about {worst:.1e} or less, estimated by halving all steps: no bound",),
    }


def _start(x0: ArrayLike | None, n: int, batch_shape: tuple[int, ...]) -> Array:
    """x0 as columns, (n, batch)."""
    size = int(np.prod(batch_shape, dtype=int))
    if x0 is None:
        return np.zeros((n, size))
    x = real_array(x0, "x0")
    check_state(x, n)
    try:
        return np.ascontiguousarray(np.broadcast_to(x, (*batch_shape, n)).reshape(size, n).T)
    except ValueError:
        raise InvalidSignalError(
            f"x0 has shape {x.shape} but the inputs come in a batch of shape {batch_shape}; give one, or one for each"
        ) from None
