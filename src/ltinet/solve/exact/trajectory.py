"""The exact engine's trajectory: the path, and how far it may be off."""

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.bounds.unknown import UnknownBound
from ltinet.once import cached_property
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest_states import states_from_blocks
from ltinet.solve.exact.trials import Steps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.threads import threads_for_work


class ExactTrajectory(ExactPath):
    """An exact path that bounds its own error."""

    def network_for_states(self) -> PreparedNetwork | None:
        """As for any path, unless some of the user's own states came out worse in trials than those of blocks."""
        return None if self._from_blocks.any() else super().network_for_states()

    def states_kept_directly(self) -> tuple[NDArray[np.intp], PreparedNetwork | None]:
        """As for any path, and of those that would all be, what is not known better in blocks."""
        direct = super().network_for_states()
        if direct is None:
            return super().states_kept_directly()
        return np.flatnonzero(~self._from_blocks), direct

    @cached_property
    def _from_blocks(self) -> NDArray[np.bool_]:
        """Which states blocks know far better, where the user's own would be asked."""
        if super().network_for_states() is None:
            return np.zeros(self.prepared.network.n_states, dtype=np.bool_)
        steps, from_state = Steps.of(self.samples), bool(self.x0 is not None and self.z0.any())
        return states_from_blocks(self.prepared, steps, hold=self.samples.hold, from_state=from_state)

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound | UnknownBound:
        """How far outputs between two times may be off; not known where T is an operator."""
        if self.prepared.has_operator:
            return UnknownBound(self.samples.batch_shape, self.prepared.system.n_outputs)
        with threads_for_work(self.n_multiplications):
            return SolutionErrorBound(judge_exact(self, start, stop), self.samples.batch_shape)
