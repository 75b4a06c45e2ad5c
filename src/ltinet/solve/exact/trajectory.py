"""The exact engine's trajectory: the path, and how far it may be off."""

from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.bounds.unknown import UnknownBound
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest import blocks_are_surer
from ltinet.solve.exact.trials import Steps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.threads import threads_for_work


class ExactTrajectory(ExactPath):
    """An exact path that bounds its own error."""

    def network_for_states(self) -> PreparedNetwork | None:
        """As for any path, unless trial outputs in the user's own states came out worse than those of blocks."""
        direct = super().network_for_states()
        if direct is None or blocks_are_surer(self.prepared, Steps.of(self.samples), hold=self.samples.hold):
            return None
        return direct

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound | UnknownBound:
        """How far outputs between two times may be off; not known where T is an operator."""
        if self.prepared.has_operator:
            return UnknownBound(self.samples.batch_shape, self.prepared.system.n_outputs)
        with threads_for_work(self.n_multiplications):
            return SolutionErrorBound(judge_exact(self, start, stop), self.samples.batch_shape)
