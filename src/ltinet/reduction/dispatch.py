"""Choice of the reduction method for a system, a second-order model or a network.

Options are validated here. The result holds the reduced system with the inputs, outputs and signal settings of the full
one, and the evidence for its error.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.network.network import Network
from ltinet.reduction.balanced_truncation import ReductionOptions, ReductionOutcome
from ltinet.reduction.discrete_reduction import reduce_discrete
from ltinet.reduction.layer_truncation import reduce_network
from ltinet.reduction.matrix_reduction import reduce_matrices
from ltinet.reduction.mechanical_reduction import oscillator_network, reduce_model
from ltinet.reduction.rational_krylov import ProgressCallback, ignore_progress
from ltinet.second_order import SecondOrder
from ltinet.simulation.options import validate_n_jobs
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import make_read_only
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time

ReductionMethod = Literal["truncation", "singular_perturbation", "modes", "krylov", "neurons"]

_SYSTEM_METHODS = ("truncation", "singular_perturbation")
_SECOND_ORDER_METHODS = ("modes", "krylov")
_NETWORK_METHODS = ("neurons", *_SYSTEM_METHODS)


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """Reduced system with its error bounds."""

    system: StateSpace
    outcome: ReductionOutcome
    network: Network | None = None
    """Network of the reduced system, if the reduction produced its neurons."""


def dispatch_reduction(
    model: StateSpace | SecondOrder | DynamicNetwork,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = None,
    n_jobs: int = 1,
    callback: ProgressCallback = ignore_progress,
) -> ReducedSystem:
    """Reduce a model to an order or to a relative error by the method for its kind; options as in `ltinet.reduce`."""
    if isinstance(model, StateSpace):
        methods: tuple[str, ...] = _SYSTEM_METHODS
    else:
        methods = _SECOND_ORDER_METHODS if isinstance(model, SecondOrder) else _NETWORK_METHODS
    options = _validate_options(model.n_states, order, tolerance, method=method, methods=methods, n_jobs=n_jobs)
    names, network = UNNAMED, None
    if isinstance(model, SecondOrder):
        outcome = reduce_model(model.matrices, options, method=method, callback=callback)
        network = oscillator_network(outcome)
    else:
        system = model if isinstance(model, StateSpace) else model.to_state_space()
        names = system.matrices.names
        if isinstance(model, DynamicNetwork) and method == "neurons":
            require_continuous_time(system, 'reduce(system, method="neurons")')
            outcome, network = reduce_network(model.network, order=options.order, tolerance=options.tolerance)
        else:
            reduce_dense = reduce_matrices if system.dt is None else reduce_discrete
            outcome = reduce_dense(system.matrices, options, callback=callback)
    A, B, C, D = (make_read_only(np.ascontiguousarray(matrix)) for matrix in outcome.matrices)
    matrices = SystemMatrices(A, B, C, D, dt=None if isinstance(model, SecondOrder) else model.dt)
    matrices = matrices.with_names(names.without_states)
    return ReducedSystem(StateSpace.of(matrices, settings=model.signal_settings), outcome, network)


def _validate_options(
    n_states: int, order: Any, tolerance: Any, *, method: Any, methods: tuple[str, ...], n_jobs: int
) -> ReductionOptions:
    if (order is None) == (tolerance is None):
        count = "neither" if order is None else "both"
        raise InvalidSystemError(
            f"exactly one of order and tolerance is required, got {count}; pass reduce(system, order=20), or "
            "tolerance=1e-6 for the error at all frequencies, or output_tolerance and input_l2 for that of outputs"
        )
    if method is not None and method not in methods:
        raise InvalidSystemError(
            f"method must be one of {', '.join(map(repr, methods))} or None for this model, got {method!r}"
        )
    dense_method: Any = method if method in _SYSTEM_METHODS else "truncation"
    if order is not None:
        is_integer = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
        if not is_integer or not 0 <= order <= n_states:
            raise InvalidSystemError(f"order must be an integer between 0 and {n_states}, got {order!r}")
        return ReductionOptions(int(order), None, dense_method, validate_n_jobs(n_jobs))
    if not isinstance(tolerance, (int, float, np.floating)) or not 0.0 < tolerance < 1.0:
        raise InvalidSystemError(f"tolerance must be a number between 0 and 1, such as 1e-6, got {tolerance!r}")
    return ReductionOptions(None, float(tolerance), dense_method, validate_n_jobs(n_jobs))
