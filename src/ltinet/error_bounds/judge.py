"""The one door: a bound on the error of a solution, whichever engine it came from."""

from dataclasses import dataclass, replace

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.decompose.threads import threads_for_work
from ltinet.error_bounds.cells import cells_between
from ltinet.error_bounds.exact_runs import judge_exact
from ltinet.error_bounds.solver_runs import judge_instant, judge_solvers
from ltinet.solve.exact import ExactTrajectory
from ltinet.solve.shifted import ShiftedTrajectory
from ltinet.solve.solution import Trajectory
from ltinet.solve.solver_engine import SolverTrajectory


@dataclass(frozen=True, eq=False)
class SolutionErrorBound:
    """The bounds of all signals of a batch."""

    bounds: tuple[OutputErrorBound, ...]
    batch_shape: tuple[int, ...]
    origin: float = 0.0
    """The time that the bounds count theirs from."""

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(..., len(t), p)` each."""
        return self._stacked([bound.at(t - self.origin) for bound in self.bounds])

    def overall(self) -> dict[str, Array]:
        """The parts over all times, `(..., p)` each."""
        return self._stacked([bound.overall() for bound in self.bounds])

    def _stacked(self, parts: list[dict[str, Array]]) -> dict[str, Array]:
        return {
            name: np.stack([own[name] for own in parts]).reshape(*self.batch_shape, *parts[0][name].shape)
            for name in parts[0]
        }


def judge(trajectory: Trajectory, *, start: float, stop: float) -> SolutionErrorBound:
    """Bound the error of a solution between two times."""
    if isinstance(trajectory, ShiftedTrajectory):
        origin = trajectory.origin
        return replace(judge(trajectory.inner, start=start - origin, stop=stop - origin), origin=origin)
    if isinstance(trajectory, SolverTrajectory):
        cells = cells_between(start, stop)
        bounds = judge_solvers(trajectory, cells) if stop > start else judge_instant(trajectory, cells)
        return SolutionErrorBound(bounds, trajectory.signal.batch_shape)
    if isinstance(trajectory, ExactTrajectory):
        with threads_for_work(trajectory.n_multiplications):
            return SolutionErrorBound(judge_exact(trajectory, start, stop), trajectory.samples.batch_shape)
    raise TypeError(f"no bounds are known for a {type(trajectory).__name__}")
