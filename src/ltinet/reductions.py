"""Fewer states for a system as users hold it: wishes checked, the result a system of the same inputs and outputs."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import read_only
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.signal_settings import SignalSettings
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import require_continuous_time
from ltinet.network.network import Network
from ltinet.reduction.galerkin import Told
from ltinet.reduction.mechanical.route import reduce_model
from ltinet.reduction.network_layers import network_of_oscillators, reduce_network
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.pipeline import Wish, reduce_matrices
from ltinet.second_order import SecondOrder
from ltinet.solve.arguments import checked_n_jobs
from ltinet.state_space import StateSpace

ReductionMethod = Literal["truncation", "singular_perturbation", "modes", "krylov", "neurons"]

_OF_SYSTEMS = ("truncation", "singular_perturbation")
_OF_MODELS = ("modes", "krylov")
_OF_NETWORKS = ("neurons", *_OF_SYSTEMS)


@dataclass(frozen=True, eq=False)
class SmallSystem:
    """A reduced system, and all that is known of it."""

    system: StateSpace
    outcome: Outcome
    network: Network | None = None
    """Its neurons, where these are known already."""

    @property
    def pointwise(self) -> float:
        """The H2 norm of what was left out; infinite where it is not known."""
        return self.outcome.mean()


def reduce_any(
    given: StateSpace | SecondOrder | DynamicNetwork,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = None,
    n_jobs: int = 1,
    told: Told = lambda n_shifts, error: None,  # noqa: ARG005 - nobody to tell
) -> SmallSystem:
    """Reduce to an order or to a relative error by the way that suits; `ltinet.reduce` says what may be given."""
    if isinstance(given, SecondOrder):
        wish = _wish(given.n_states, order, tolerance, method=method, methods=_OF_MODELS, n_jobs=n_jobs)
        found = reduce_model(
            given.matrices, order=wish.order, tolerance=wish.tolerance, method=method, n_jobs=wish.n_jobs, told=told
        )
        return SmallSystem(_system(found, UNNAMED, given.signal_settings), found, network_of_oscillators(found))
    if isinstance(given, StateSpace):
        return reduce_system(given, order=order, tolerance=tolerance, method=method, n_jobs=n_jobs, told=told)
    wish = _wish(given.n_states, order, tolerance, method=method, methods=_OF_NETWORKS, n_jobs=n_jobs)
    names = given.to_state_space().matrices.names
    if method == "neurons":
        found, network = reduce_network(given.network, order=wish.order, tolerance=wish.tolerance)
        return SmallSystem(_system(found, names, given.signal_settings), found, network)
    return reduce_system(
        given.to_state_space(), order=order, tolerance=tolerance, method=method, n_jobs=n_jobs, told=told
    )


def reduce_system(
    given: StateSpace,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = None,
    n_jobs: int = 1,
    told: Told = lambda n_shifts, error: None,  # noqa: ARG005 - nobody to tell
) -> SmallSystem:
    """Reduce a system to an order or to a relative error."""
    require_continuous_time(given, "reduce(system)")
    wish = _wish(given.n_states, order, tolerance, method=method, methods=_OF_SYSTEMS, n_jobs=n_jobs)
    found = reduce_matrices(given.matrices, wish, told=told)
    return SmallSystem(_system(found, given.matrices.names, given.signal_settings), found)


def _system(found: Outcome, names: SignalNames, settings: SignalSettings) -> StateSpace:
    A, B, C, D = (read_only(np.ascontiguousarray(own)) for own in found.matrices)
    return StateSpace.of(SystemMatrices(A, B, C, D).named(names.of_ends), settings=settings)


def _wish(n_states: int, order: Any, tolerance: Any, *, method: Any, methods: tuple[str, ...], n_jobs: int) -> Wish:
    if (order is None) == (tolerance is None):
        came = "neither" if order is None else "both"
        raise InvalidSystemError(
            f"{came} of order and tolerance came; give one: reduce(system, order=20), or tolerance=1e-6"
        )
    if method is not None and method not in methods:
        raise InvalidSystemError(f"method is {method!r}; give one of {', '.join(map(repr, methods))}, or none of them")
    dense: Any = method if method in _OF_SYSTEMS else "truncation"
    if order is not None:
        is_count = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
        if not is_count or not 0 <= order <= n_states:
            raise InvalidSystemError(f"order is {order!r}; give a whole number from 0 to {n_states}, the states")
        return Wish(int(order), None, dense, checked_n_jobs(n_jobs))
    if not isinstance(tolerance, (int, float, np.floating)) or not 0.0 < tolerance < 1.0:
        raise InvalidSystemError(f"tolerance is {tolerance!r}; give a number between 0 and 1, such as 1e-6")
    return Wish(None, float(tolerance), dense, checked_n_jobs(n_jobs))
