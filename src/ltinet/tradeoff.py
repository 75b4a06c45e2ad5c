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
from ltinet.blockdiag.form import BlockDiagonalForm, form_from_differences
from ltinet.blockdiag.tradeoff_forms import TradeoffForm, compute_tradeoff_forms
from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.network_builder import network_from_form
from ltinet.plotting.figures import figure_of
from ltinet.plotting.tradeoff import draw_tradeoff
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import as_square_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_PRINTED_POINTS = 24  # rows of a printed curve; the middle of a longer one is omitted


@final
@dataclass(frozen=True, eq=False, repr=False)
class TradeoffPoint:
    """Block-diagonal form on a trade-off curve; `form` and `network` are computed on first use.

    Parameters
    ----------
    candidate : TradeoffForm
        Partition with its condition number, from which the form is assembled.
    system : StateSpace, optional
        System of the curve; None for the curve of a matrix.
    """

    candidate: TradeoffForm
    system: StateSpace | None = None

    @property
    def condition(self) -> float:
        """Condition number cond₂(T) in the units in which the form was computed; `max_condition` limits it."""
        return self.candidate.condition

    @property
    def n_layers(self) -> int:
        """Number of blocks; each becomes a horizontal layer."""
        return self.candidate.n_blocks

    @property
    def n_connections(self) -> int:
        """Number of pairs of neurons that share a layer: an upper bound, since weights in a form may be zero."""
        return self.candidate.n_connections

    @property
    def form(self) -> BlockDiagonalForm:
        """Block-diagonal form with T and its certificate."""
        if self.system is None or self.system.dt is None:
            return self.candidate.form
        return form_from_differences(self.candidate.form, self.system.A)

    @cached_property
    def network(self) -> DynamicNetwork:
        """Network of the system in this form."""
        if self.system is None:
            raise InvalidSystemError(
                "the trade-off curve of a matrix has no networks; compute it for a system: condition_tradeoff((A, B, C))"
            )
        result = network_from_form(self.form, self.system.matrices)
        return DynamicNetwork(result.network, result.form, self.system, result.blocks)

    @property
    def n_weights(self) -> int | None:
        """Number of weights of the network; None on the curve of a matrix."""
        return None if self.system is None else self.network.n_weights

    def __repr__(self) -> str:
        sizes = f"n_layers={self.n_layers}, n_connections={self.n_connections}"
        return f"TradeoffPoint(condition={self.condition:.4g}, {sizes})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class TradeoffCurve(Sequence[TradeoffPoint]):
    """Sequence of all forms that some limit on cond₂(T) selects, by rising condition and falling connections.

    Parameters
    ----------
    points : tuple of TradeoffPoint
        Points of the curve; indexing, slicing and iteration give the same.
    """

    points: tuple[TradeoffPoint, ...]

    def within(self, max_condition: float) -> TradeoffPoint:
        """Return the point with the fewest connections within a limit on cond₂(T).

        Parameters
        ----------
        max_condition : float
            Limit on the condition number, at least 1.

        Returns
        -------
        TradeoffPoint
            Sparsest point within the limit. A larger limit never gives more connections; `construct` searches less
            widely for a single limit and may find a form with more.

        Raises
        ------
        PartitionError
            If the limit is below 1.
        """
        allowed = [point for point in self.points if point.condition <= max_condition]
        if not allowed:
            raise PartitionError(
                f"max_condition must be at least 1, as every condition number is, got {max_condition!r}"
            )
        return allowed[-1]

    def plot(self, *, max_condition: float | None = None, ax: "Axes | None" = None) -> "Figure":
        """Plot cond₂(T) against the number of connections.

        Parameters
        ----------
        max_condition : float, optional
            Limit whose point is marked.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
        """
        points = [(point.n_connections, point.condition) for point in self.points]
        return figure_of(draw_tradeoff(points, budget=max_condition, ax=ax))

    def __len__(self) -> int:
        return len(self.points)

    @overload
    def __getitem__(self, index: int) -> TradeoffPoint: ...
    @overload
    def __getitem__(self, index: slice) -> "TradeoffCurve": ...
    def __getitem__(self, index: int | slice) -> "TradeoffPoint | TradeoffCurve":
        return TradeoffCurve(self.points[index]) if isinstance(index, slice) else self.points[index]

    def __iter__(self) -> Iterator[TradeoffPoint]:
        return iter(self.points)

    def __repr__(self) -> str:
        return f"TradeoffCurve({len(self)} forms, {self[0].n_connections} to {self[-1].n_connections} connections)"

    def __str__(self) -> str:
        return "\n".join(_table_lines(self))


def condition_tradeoff(system: Any, *, balance: bool | None = None) -> TradeoffCurve:
    """Compute every block-diagonal form that some limit on cond₂(T) would select.

    All points come from one Schur form, the angles between its invariant subspaces, and a search that does not depend
    on a limit. The cost is about that of five calls of `block_diagonalize`; more if eigenvalues are close together and
    T must be computed to find its condition number, and hardly more than one Schur form for normal matrices.

    Parameters
    ----------
    system : array_like, tuple or object
        Square matrix, or a system as `construct` accepts it; points of a system have networks.
    balance : bool, optional
        True scales the states to similar sizes first, False leaves them as they are, None tries both and keeps the
        better curve.

    Returns
    -------
    TradeoffCurve
        Points by rising condition number and falling number of connections; `print` shows a table.

    Raises
    ------
    InvalidSystemError
        If `system` is neither a finite real square matrix nor a system.

    Examples
    --------
    >>> import ltinet
    >>> curve = ltinet.condition_tradeoff([[-1.0, 1.0], [0.0, -2.0]])
    >>> [point.n_connections for point in curve]
    [1, 0]
    >>> curve.within(1.5).n_connections
    1
    """
    if _is_matrix(system):
        forms = compute_tradeoff_forms(as_square_matrix(system, "A"), balance=balance)
        return TradeoffCurve(tuple(map(TradeoffPoint, forms)))
    state_space = as_state_space(system)
    forms = compute_tradeoff_forms(state_space.matrices.difference_matrix, balance=balance)
    return TradeoffCurve(tuple(TradeoffPoint(form, state_space) for form in forms))


def _is_matrix(system: Any) -> bool:
    """Return True for one matrix, False for a system, such as a tuple of matrices."""
    if sparse.issparse(system) or isinstance(system, np.ndarray):
        return True
    return isinstance(system, list | tuple) and all(np.ndim(row) < 2 and not sparse.issparse(row) for row in system)


def _table_lines(curve: TradeoffCurve) -> list[str]:
    has_weights = curve.points[0].system is not None
    lines = [f"{'cond(T)':>10}  {'layers':>6}  {'connections':>11}" + ("  weights" if has_weights else "")]
    n_omitted = max(len(curve) - _MAX_PRINTED_POINTS, 0)
    first_omitted = _MAX_PRINTED_POINTS // 2
    for index, point in enumerate(curve):
        if n_omitted and first_omitted <= index < first_omitted + n_omitted:
            if index == first_omitted:
                lines.append(f"{'⋮':>10}  {n_omitted} more")
            continue
        weights = f"  {point.n_weights:>7}" if has_weights else ""
        lines.append(f"{point.condition:>10.4g}  {point.n_layers:>6}  {point.n_connections:>11}{weights}")
    return lines
