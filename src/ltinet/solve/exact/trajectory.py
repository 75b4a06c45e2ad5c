"""The exact engine's trajectory: the path, and how far it may be off."""

from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.bounds.unknown import UnknownBound
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.threads import threads_for_work


class ExactTrajectory(ExactPath):
    """An exact path that bounds its own error."""

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound | UnknownBound:
        """How far outputs between two times may be off; not known where T is an operator."""
        if self.realisation.has_operator:
            return UnknownBound(self.samples.batch_shape, self.realisation.system.n_outputs)
        with threads_for_work(self.n_multiplications):
            return SolutionErrorBound(judge_exact(self, start, stop), self.samples.batch_shape)
