"""Trade-off between the condition number of T and the number of connections.

A `TradeoffCurve` holds every block-diagonal form that some limit on cond₂(T) would select, by rising condition number
and falling number of connections. All points are computed from one Schur form; the transformation, the form and the
network of a point are computed on first use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np
from scipy import sparse

from ltinet._util.cache import cached_property
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.tradeoff_forms import TradeoffForm, compute_tradeoff_forms
from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.network_builder import network_from_form
from ltinet.plotting.tradeoff import draw_tradeoff
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import as_square_matrix
from ltinet.systems.system_matrices import require_continuous_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MERGED ltinet.tradeoff
# The ladder of forms: what every bound on the condition number would give, computed together and looked at at once.

_MAX_PRINTED_POINTS = 24  # rungs that a printed ladder shows


@final
@dataclass(frozen=True, eq=False, repr=False)
class TradeoffPoint:
    """One form of the ladder by its numbers; `form`, and of a system `network`, are computed on first use."""

    known: TradeoffForm
    system: StateSpace | None = None

    @property
    def condition(self) -> float:
        """cond₂(T) in the units in which the form was found: what `max_condition` bounds."""
        return self.known.condition

    @property
    def n_layers(self) -> int:
        """Number of blocks, each a horizontal layer."""
        return self.known.n_blocks

    @property
    def n_connections(self) -> int:
        """Pairs of neurons that share a layer; of these a form may turn out to have some that are zero."""
        return self.known.n_connections

    @property
    def form(self) -> BlockDiagonalForm:
        """The block-diagonal form with T and its certificate."""
        return self.known.form

    @cached_property
    def network(self) -> DynamicNetwork:
        """The network of the system in this form."""
        if self.system is None:
            raise InvalidSystemError("this is the ladder of a matrix; for networks give the system: ladder((A, B, C))")
        found = network_from_form(self.form, self.system.matrices)
        return DynamicNetwork(found.network, found.form, self.system, found.blocks)

    @property
    def n_weights(self) -> int | None:
        """Weights of the network; None on the ladder of a matrix."""
        return None if self.system is None else self.network.n_weights

    def __repr__(self) -> str:
        return f"Rung(condition={self.condition:.4g}, n_layers={self.n_layers}, n_connections={self.n_connections})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class TradeoffCurve(Sequence[TradeoffPoint]):
    """All forms that are worth having, by rising cond(T) and falling connections."""

    rungs: tuple[TradeoffPoint, ...]

    def within(self, max_condition: float) -> TradeoffPoint:
        """The rung with the fewest connections within a bound: never more of them for a larger bound.

        Raises:
            PartitionError: the bound is below one, which no condition number is.
        """
        fitting = [rung for rung in self.rungs if rung.condition <= max_condition]
        if not fitting:
            raise PartitionError(f"max_condition is {max_condition!r}; a condition number is at least 1, so give more")
        return fitting[-1]

    def plot(self, *, max_condition: float | None = None, ax: "Axes | None" = None) -> "Axes":
        """Draw cond(T) against connections; `max_condition` marks the rung that it buys."""
        points = [(rung.n_connections, rung.condition) for rung in self.rungs]
        return draw_tradeoff(points, budget=max_condition, ax=ax)

    def __len__(self) -> int:
        return len(self.rungs)

    @overload
    def __getitem__(self, index: int) -> TradeoffPoint: ...
    @overload
    def __getitem__(self, index: slice) -> "TradeoffCurve": ...
    def __getitem__(self, index: int | slice) -> "TradeoffPoint | TradeoffCurve":
        return TradeoffCurve(self.rungs[index]) if isinstance(index, slice) else self.rungs[index]

    def __iter__(self) -> Iterator[TradeoffPoint]:
        return iter(self.rungs)

    def __repr__(self) -> str:
        return f"Ladder({len(self)} forms, {self[0].n_connections} to {self[-1].n_connections} connections)"

    def __str__(self) -> str:
        return "\n".join(_table_lines(self))


def condition_tradeoff(system: Any, *, balance: bool | None = None) -> TradeoffCurve:
    """Every form of a matrix or a system that some bound on the condition number would choose.

    `system` is a square matrix, or anything that `construct` takes; rungs of a system have networks and weights, too.
    All rungs are computed together: one Schur form, the angles between its invariant subspaces, and a search that knows
    of no bound; T and the blocks of a rung are assembled on request. With `balance` states are balanced first, without
    it they stay as given, None does both and keeps what is better.

    Cost: about that of five searches for one bound, more where eigenvalues crowd and T must be looked at itself;
    hardly more than one Schur form for normal matrices.

    Raises:
        InvalidSystemError: `system` is neither a finite real square matrix nor a system, or discrete in time.
    """
    if _is_matrix(system):
        return TradeoffCurve(
            tuple(map(TradeoffPoint, compute_tradeoff_forms(as_square_matrix(system, "A"), balance=balance)))
        )
    state_space = as_state_space(system)
    require_continuous_time(state_space, "ladder(system)")
    found = compute_tradeoff_forms(state_space.A, balance=balance)
    return TradeoffCurve(tuple(TradeoffPoint(known, state_space) for known in found))


def _is_matrix(system: Any) -> bool:
    """Whether this is one matrix, and not the matrices of a system."""
    if sparse.issparse(system) or isinstance(system, np.ndarray):
        return True
    return isinstance(system, list | tuple) and all(np.ndim(row) < 2 and not sparse.issparse(row) for row in system)


def _table_lines(ladder: TradeoffCurve) -> list[str]:
    """A table, cut in the middle where it is long."""
    has_weights = ladder.rungs[0].system is not None
    lines = [f"{'cond(T)':>10}  {'layers':>6}  {'connections':>11}" + ("  weights" if has_weights else "")]
    left_out = max(len(ladder) - _MAX_PRINTED_POINTS, 0)
    for place, rung in enumerate(ladder):
        if left_out and _MAX_PRINTED_POINTS // 2 <= place < _MAX_PRINTED_POINTS // 2 + left_out:
            if place == _MAX_PRINTED_POINTS // 2:
                lines.append(f"{'⋮':>10}  {left_out} more")
            continue
        weights = f"  {rung.n_weights:>7}" if has_weights else ""
        lines.append(f"{rung.condition:>10.4g}  {rung.n_layers:>6}  {rung.n_connections:>11}{weights}")
    return lines
