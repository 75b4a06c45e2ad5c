"""Cached results of a system: its simulation context, and the reduced model of a large sparse one.

A system that is too large for an array is reduced once, to a relative error of 1e-6 in the H∞ norm. Bode plots, step
responses and simulations from rest are those of the reduced model. Its proven error is part of the bounds of solutions,
and a band in pictures. Systems that cannot be reduced, such as integrators, are simulated by the implicit method at given
times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet._util.progress import Progress, show_progress
from ltinet.analysis.responses import resolve_index, select_output, unit_steps, validate_response_times
from ltinet.errors import InvalidSignalError, InvalidSystemError
from ltinet.network_builder import prepare_parts, prepare_system
from ltinet.plotting.frequency_response import ResponseError
from ltinet.signals.sampled import SampledSignal
from ltinet.simulation.api import simulate_system
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import Solution
from ltinet.systems.descriptor import GrowingSystemError
from ltinet.systems.matrices import make_read_only
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, eliminate_algebraic_rows

if TYPE_CHECKING:
    from ltinet.reduction.balanced_truncation import ReductionOutcome

RESPONSE_TOLERANCE = 1e-6
"""Error of the reduced model relative to its largest gain: well below what pictures resolve."""

Reducer = Callable[..., "ReductionOutcome"]
"""Function of `ReductionOptions` and `callback`."""


@dataclass(frozen=True, eq=False)
class ReducedResponses:
    """Reduced model that stands for a large one."""

    matrices: SystemMatrices
    context: SimulationContext
    """Context of its simulations, whose bounds include the reduction."""
    error: ResponseError
    """Error of its frequency response."""
    note: str


@final
class PreparedSystem:
    """Cache of a system: results that its methods compute once, from its matrices alone.

    Systems that differ in delays, operating point or hold share one.

    Parameters
    ----------
    matrices : SystemMatrices
        System.
    context : SimulationContext, optional
        Simulation context of the system, if there is one already.
    reducer : callable, optional
        Function that reduces the system, if it is large, instead of the general one.
    """

    def __init__(
        self, matrices: SystemMatrices, *, context: SimulationContext | None = None, reducer: Reducer | None = None
    ) -> None:
        self._matrices, self._given_context, self._reducer = matrices, context, reducer
        self._is_reduced = False
        self._reduced: ReducedResponses | None = None
        self.refusal: InvalidSystemError | None = None
        """Reason why a large system was not reduced; None if it was, or is not large."""

    @cached_property
    def context(self) -> SimulationContext:
        """Simulation context."""
        return prepare_system(self._matrices) if self._given_context is None else self._given_context

    def reduce(self, progress: Progress) -> ReducedResponses | None:
        """Return the reduced model that responses of a large sparse system are computed by.

        None for all other systems, and for those that cannot be reduced, such as integrators.

        Raises GrowingSystemError if all modes grow.
        """
        matrices = self._matrices
        if matrices.sparse is None or not matrices.sparse.is_large or matrices.dt is not None:
            return None
        if not self._is_reduced:
            try:
                self._reduced = reduce_for_responses(matrices, self._reducer, progress)
            except GrowingSystemError:
                raise
            except InvalidSystemError as error:
                self.refusal = error
            self._is_reduced = True
        return self._reduced


def reduce_for_responses(system: SystemMatrices, reducer: Reducer | None, progress: Progress) -> ReducedResponses:
    """Reduce a large system, with the general function if there is no other; zero rows of E are eliminated first.

    Raises
    ------
    InvalidSystemError
        The system cannot be reduced.
    """
    # Imported here because few programs have large systems.
    from ltinet.reduction.balanced_truncation import ReductionOptions
    from ltinet.reduction.matrix_reduction import reduce_matrices
    from ltinet.reduction.rational_krylov import combine_callbacks

    n_states = system.n_states
    if reducer is None:
        reducer = partial(reduce_matrices, eliminate_algebraic_rows(system))
    options = ReductionOptions(None, RESPONSE_TOLERANCE)
    with show_progress(f"reducing {n_states} states", progress) as report:
        outcome = reducer(options, callback=combine_callbacks(None, report, RESPONSE_TOLERANCE))
        if outcome.order == 0 and outcome.error_bound is None:
            raise InvalidSystemError("the reduction found no states, and the error of leaving out all is not proven")
        h2_error = outcome.h2_bound()
    arrays: Any = (make_read_only(np.ascontiguousarray(matrix)) for matrix in outcome.matrices)
    matrices = SystemMatrices(*arrays).with_names(system.names.without_states)
    error = ResponseError(
        outcome.estimate if outcome.error_bound is None else outcome.error_bound, outcome.error_bound is not None
    )
    return ReducedResponses(
        matrices,
        SimulationContext(prepare_parts(matrices), origin=matrices, reduction_error=h2_error),
        error,
        f"computed by a reduced model, {matrices.n_states} of {n_states} states, {error.description}",
    )


def implicit_step_response(
    prepared: PreparedSystem, system: SystemMatrices, settings: SignalSettings, t: ArrayLike | None, *,
    input: Any, output: Any, progress: Progress,
) -> Solution:  # fmt: skip
    """Return the step response of a large system that cannot be reduced, by the implicit method.

    Raises
    ------
    InvalidSignalError
        t is missing: times cannot be chosen without the poles.
    """
    j, i = resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")
    if t is None:
        raise InvalidSignalError(
            f"t is missing: no times can be chosen, because the model cannot be reduced ({prepared.refusal})"
        )
    times: Array = validate_response_times(t)
    ends = times[[0, -1]] if len(times) > 1 else times  # samples in between would only shorten steps
    step = SampledSignal(ends, unit_steps(system, j, len(ends)), hold="zero")
    solution = simulate_system(
        system, lambda: prepared.context, step, t=times, x0=None, hold=None, tolerance=None,
        settings=settings.delays_only, progress=progress,
    )  # fmt: skip
    return select_output(solution, i)
