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
from ltinet.reduction.layer_truncation import oscillator_network, reduce_network
from ltinet.reduction.matrix_reduction import ReductionOptions, ReductionOutcome, reduce_matrices
from ltinet.reduction.mechanical_reduction import reduce_model
from ltinet.reduction.rational_krylov import ProgressCallback
from ltinet.second_order import SecondOrder
from ltinet.simulation.options import validate_n_jobs
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import make_read_only
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time

# MERGED ltinet.reduction.dispatch
# Fewer states for a system as users hold it: wishes checked, the result a system of the same inputs and outputs.

ReductionMethod = Literal["truncation", "singular_perturbation", "modes", "krylov", "neurons"]

_SYSTEM_METHODS = ("truncation", "singular_perturbation")
_SECOND_ORDER_METHODS = ("modes", "krylov")
_NETWORK_METHODS = ("neurons", *_SYSTEM_METHODS)


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """A reduced system, and all that is known of it."""

    system: StateSpace
    outcome: ReductionOutcome
    network: Network | None = None
    """Its neurons, where these are known already."""

    @property
    def pointwise(self) -> float:
        """The H2 norm of what was left out; infinite where it is not known."""
        return self.outcome.mean()


def dispatch_reduction(
    given: StateSpace | SecondOrder | DynamicNetwork,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = None,
    n_jobs: int = 1,
    callback: ProgressCallback = lambda n_shifts, error: None,  # noqa: ARG005
) -> ReducedSystem:
    """Reduce to an order or to a relative error by the way that suits; `ltinet.reduce` says what may be given."""
    if isinstance(given, SecondOrder):
        wish = _validate_options(
            given.n_states, order, tolerance, method=method, methods=_SECOND_ORDER_METHODS, n_jobs=n_jobs
        )
        found = reduce_model(
            given.matrices,
            order=wish.order,
            tolerance=wish.tolerance,
            method=method,
            n_jobs=wish.n_jobs,
            callback=callback,
        )
        return ReducedSystem(_to_state_space(found, UNNAMED, given.signal_settings), found, oscillator_network(found))
    if isinstance(given, StateSpace):
        return reduce_system(given, order=order, tolerance=tolerance, method=method, n_jobs=n_jobs, callback=callback)
    wish = _validate_options(given.n_states, order, tolerance, method=method, methods=_NETWORK_METHODS, n_jobs=n_jobs)
    names = given.to_state_space().matrices.names
    if method == "neurons":
        found, network = reduce_network(given.network, order=wish.order, tolerance=wish.tolerance)
        return ReducedSystem(_to_state_space(found, names, given.signal_settings), found, network)
    return reduce_system(
        given.to_state_space(), order=order, tolerance=tolerance, method=method, n_jobs=n_jobs, callback=callback
    )


def reduce_system(
    given: StateSpace,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = None,
    n_jobs: int = 1,
    callback: ProgressCallback = lambda n_shifts, error: None,  # noqa: ARG005
) -> ReducedSystem:
    """Reduce a system to an order or to a relative error."""
    require_continuous_time(given, "reduce(system)")
    wish = _validate_options(given.n_states, order, tolerance, method=method, methods=_SYSTEM_METHODS, n_jobs=n_jobs)
    found = reduce_matrices(given.matrices, wish, callback=callback)
    return ReducedSystem(_to_state_space(found, given.matrices.names, given.signal_settings), found)


def _to_state_space(found: ReductionOutcome, names: SignalNames, settings: SignalSettings) -> StateSpace:
    A, B, C, D = (make_read_only(np.ascontiguousarray(own)) for own in found.matrices)
    return StateSpace.of(SystemMatrices(A, B, C, D).with_names(names.without_states), settings=settings)


def _validate_options(
    n_states: int, order: Any, tolerance: Any, *, method: Any, methods: tuple[str, ...], n_jobs: int
) -> ReductionOptions:
    if (order is None) == (tolerance is None):
        came = "neither" if order is None else "both"
        raise InvalidSystemError(
            f"{came} of order and tolerance came; give one: reduce(system, order=20), or tolerance=1e-6"
        )
    if method is not None and method not in methods:
        raise InvalidSystemError(f"method is {method!r}; give one of {', '.join(map(repr, methods))}, or none of them")
    dense: Any = method if method in _SYSTEM_METHODS else "truncation"
    if order is not None:
        is_count = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
        if not is_count or not 0 <= order <= n_states:
            raise InvalidSystemError(f"order is {order!r}; give a whole number from 0 to {n_states}, the states")
        return ReductionOptions(int(order), None, dense, validate_n_jobs(n_jobs))
    if not isinstance(tolerance, (int, float, np.floating)) or not 0.0 < tolerance < 1.0:
        raise InvalidSystemError(f"tolerance is {tolerance!r}; give a number between 0 and 1, such as 1e-6")
    return ReductionOptions(None, float(tolerance), dense, validate_n_jobs(n_jobs))
