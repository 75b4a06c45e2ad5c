"""Fewer states for a system as users hold it: wishes checked, the result a system of the same inputs and outputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import read_only
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import require_continuous_time
from ltinet.reduction.galerkin import Told
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.pipeline import Wish, reduce_matrices
from ltinet.solve.arguments import checked_n_jobs
from ltinet.state_space import StateSpace

_METHODS = ("truncation", "singular_perturbation")


@dataclass(frozen=True, eq=False)
class SmallSystem:
    """A reduced system, and all that is known of it."""

    system: StateSpace
    outcome: Outcome

    @property
    def pointwise(self) -> float:
        """The H2 norm of what was left out; infinite where it is not known."""
        return self.outcome.mean()


def reduce_system(
    given: StateSpace,
    *,
    order: Any = None,
    tolerance: Any = None,
    method: Any = "truncation",
    n_jobs: int = 1,
    told: Told = lambda n_shifts, error: None,  # noqa: ARG005 - nobody to tell
) -> SmallSystem:
    """Reduce to an order or to a relative error; `ltinet.reduce` says what may be given."""
    require_continuous_time(given, "reduce(system)")
    wish = _wish(given, order, tolerance, method=method, n_jobs=n_jobs)
    found = reduce_matrices(given.matrices, wish, told=told)
    A, B, C, D = (read_only(np.ascontiguousarray(own)) for own in found.matrices)
    return SmallSystem(StateSpace.of(SystemMatrices(A, B, C, D).named(given.matrices.names.of_ends)), found)


def _wish(given: StateSpace, order: Any, tolerance: Any, *, method: Any, n_jobs: int) -> Wish:
    if (order is None) == (tolerance is None):
        came = "neither" if order is None else "both"
        raise InvalidSystemError(
            f"{came} of order and tolerance came; give one: reduce(system, order=20), or tolerance=1e-6"
        )
    if method not in _METHODS:
        raise InvalidSystemError(f"method is {method!r}; give one of {', '.join(map(repr, _METHODS))}")
    if order is not None:
        is_count = isinstance(order, (int, np.integer)) and not isinstance(order, bool)
        if not is_count or not 0 <= order <= given.n_states:
            raise InvalidSystemError(f"order is {order!r}; give a whole number from 0 to {given.n_states}, the states")
        return Wish(int(order), None, method, checked_n_jobs(n_jobs))
    if not isinstance(tolerance, (int, float, np.floating)) or not 0.0 < tolerance < 1.0:
        raise InvalidSystemError(f"tolerance is {tolerance!r}; give a number between 0 and 1, such as 1e-6")
    return Wish(None, float(tolerance), method, checked_n_jobs(n_jobs))
