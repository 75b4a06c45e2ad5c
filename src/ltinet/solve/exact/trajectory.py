"""The exact engine's trajectory: the path, and how far it may be off."""

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.solution_errors import SolutionErrorBound
from ltinet.bounds.unknown import UnknownBound
from ltinet.once import cached_property
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest_states import after_second_look, states_from_blocks
from ltinet.solve.exact.trials import Steps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.threads import threads_for_work


class ExactTrajectory(ExactPath):
    """An exact path that bounds its own error."""

    def network_for_states(self) -> PreparedNetwork | None:
        """The network in the user's own states, where none of these is known better in blocks."""
        return None if self._usual_for_states is None or self._from_blocks.any() else self._usual_for_states

    def states_kept_directly(self) -> tuple[NDArray[np.intp], PreparedNetwork | None]:
        """As for any path, and what is not known better in blocks."""
        if self._from_blocks.all():
            return super().states_kept_directly()
        return np.flatnonzero(~self._from_blocks), self.prepared.as_given

    @cached_property
    def _usual_for_states(self) -> PreparedNetwork | None:
        """As for any path."""
        return super().network_for_states()

    @cached_property
    def _from_blocks(self) -> NDArray[np.bool_]:
        """Which states come from the blocks of the run."""
        usual = states_from_blocks(
            self.prepared,
            Steps.of(self.samples),
            hold=self.samples.hold,
            from_state=bool(self.x0 is not None and self.z0.any()),
            usually=self._usual_for_states is None,
        )
        return after_second_look(self, usual)

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound | UnknownBound:
        """How far outputs between two times may be off; not known where T is an operator."""
        if self.prepared.has_operator:
            return UnknownBound(self.samples.batch_shape, self.prepared.system.n_outputs)
        with threads_for_work(self.n_multiplications):
            return SolutionErrorBound(judge_exact(self, start, stop), self.samples.batch_shape)
