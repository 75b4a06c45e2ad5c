"""Responses of large sparse systems by their reduction.

A system that is too large for an array is reduced once, to a relative error of 1e-6 in the H∞ norm. Bode plots, step
responses and simulations from rest are those of the reduced model. Its proven error is part of the bounds of solutions,
and a band in pictures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltinet._util.progress import Progress, show_progress
from ltinet.network_builder import prepare_parts
from ltinet.plotting.frequency_response import ResponseError
from ltinet.reduction.balanced_truncation import ReductionOptions, ReductionOutcome
from ltinet.reduction.rational_krylov import combine_callbacks
from ltinet.simulation.context import SimulationContext
from ltinet.systems.matrices import make_read_only
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.system_matrices import SystemMatrices

RESPONSE_TOLERANCE = 1e-6
"""Error of the reduced model relative to its largest gain: well below what pictures resolve."""

Reducer = Callable[..., ReductionOutcome]
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


def reduce_for_responses(reduce: Reducer, *, n_states: int, names: SignalNames, progress: Progress) -> ReducedResponses:
    """Reduce a large system.

    Raises
    ------
    InvalidSystemError
        The system cannot be reduced.
    """
    options = ReductionOptions(None, RESPONSE_TOLERANCE)
    with show_progress(f"reducing {n_states} states", progress) as report:
        outcome = reduce(options, callback=combine_callbacks(None, report, RESPONSE_TOLERANCE))
        h2_error = outcome.h2_bound()
    arrays: Any = (make_read_only(np.ascontiguousarray(matrix)) for matrix in outcome.matrices)
    matrices = SystemMatrices(*arrays).with_names(names.without_states)
    error = ResponseError(
        outcome.estimate if outcome.error_bound is None else outcome.error_bound, outcome.error_bound is not None
    )
    return ReducedResponses(
        matrices,
        SimulationContext(prepare_parts(matrices), origin=matrices, reduction_error=h2_error),
        error,
        f"computed by a reduced model, {matrices.n_states} of {n_states} states, {error.description}",
    )
