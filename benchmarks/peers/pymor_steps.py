"""pyMOR's time steppers on its `LTIModel`: the implicit midpoint rule, its only one of second order."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.peers.peer import Run
from benchmarks.support.cases import Case

Array = NDArray[np.float64]
_SPARSE = 0.1  # share of entries up to which a sparse factorisation is the natural choice


def implicit_midpoint(steps_per_sample: int) -> Callable[[Case, float], Run]:
    """A peer with a number of steps between samples."""

    def prepare(case: Case, _: float) -> Run:
        from pymor.algorithms.timestepping import ImplicitMidpointTimeStepper
        from pymor.analyticalproblems.functions import GenericFunction
        from pymor.core.logger import set_log_levels
        from pymor.models.iosys import LTIModel

        set_log_levels({"pymor": "ERROR"})
        A, B, C, D = case.matrices
        stepper = ImplicitMidpointTimeStepper((case.n_steps - 1) * steps_per_sample)
        few = np.count_nonzero(A) < _SPARSE * A.size
        model = LTIModel.from_matrices(
            sparse.csc_matrix(A) if few else A, B, C, D, T=case.t[-1], time_stepper=stepper, num_values=case.n_steps
        )
        samples = GenericFunction(_between_samples(case), dim_domain=1, shape_range=(case.u.shape[1],))

        def run() -> Array:
            return np.asarray(model.output(input=samples).T)

        return run

    return prepare


def _between_samples(case: Case) -> Callable[[Array], Array]:
    """Straight lines between samples, as a function of an array of times `(..., 1)`."""
    rises = np.diff(case.u, axis=0)

    def value(times: Array) -> Array:
        place = times[..., 0] / case.step
        before = np.clip(place.astype(int), 0, len(rises) - 1)
        return np.asarray(case.u[before] + (place - before)[..., None] * rises[before])

    return value
