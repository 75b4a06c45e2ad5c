"""A run by solvers, and how far it may be off."""

from ltinet.arrays import Array
from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.solve.solvers.cells import cells_between
from ltinet.solve.solvers.error_bound import judge_instant, judge_solvers, neuron_shares_of
from ltinet.solve.solvers.path import SolverPath


class SolverTrajectory(SolverPath):
    """Dense outputs that bound their own error."""

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """How far outputs between two times may be off."""
        cells = cells_between(start, stop)
        bounds = judge_solvers(self, cells) if stop > start else judge_instant(self, cells)
        return SolutionErrorBound(bounds, self.signal.batch_shape)

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        return neuron_shares_of(self)
