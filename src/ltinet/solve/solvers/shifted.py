"""Runs by solvers in times counted from the first: at a large offset a solver's steps would drown in its rounding.

The system does not change with time, and a difference of two times within a factor of two of each other is exact.
"""

from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.errors import SimulationError
from ltinet.signals.signal import Signal
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution
from ltinet.solve.solvers.run import SolverPlan, simulate_with_solvers
from ltinet.solve.solvers.trajectory import SolverTrajectory


@dataclass(frozen=True, eq=False)
class ShiftedTrajectory:
    """A solution whose time zero is at `origin`."""

    inner: SolverTrajectory
    origin: float

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        return self.inner.outputs(t - self.origin)

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        return self.inner.user_states(t - self.origin)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        return self.inner.neuron_states(t - self.origin)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        times, values = self.inner.input_corners(t - self.origin)
        return times + self.origin, values

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """How far outputs between two times may be off."""
        return replace(self.inner.error_bound(start - self.origin, stop - self.origin), origin=self.origin)

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        return self.inner.neuron_shares()


def simulate_from_zero(
    prepared: PreparedNetwork, signal: Signal, t: Array, *, x0: ArrayLike | None, plan: SolverPlan
) -> Solution:
    """Outputs at the times t by solvers, in times counted from t[0] where that takes nothing from them.

    A function of time is asked for its values at the times that were given, and stays as it is.
    """
    origin = float(t[0])
    moved = signal.counted_from(origin)
    if moved is None:
        return Solution(t, *simulate_with_solvers(prepared, signal, t, x0=x0, plan=plan))
    try:
        y, trajectory, stats = simulate_with_solvers(prepared, moved, t - origin, x0=x0, plan=plan)
    except SimulationError as error:
        raise SimulationError(f"{error} (times counted from t[0] = {origin!r})") from None
    return Solution(t, y, ShiftedTrajectory(trajectory, origin), stats)
