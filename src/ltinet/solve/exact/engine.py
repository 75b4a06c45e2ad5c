"""The exact engine: no step-size control and no stiffness, since between samples the solution has a closed form.

It steps the system in the user's coordinates or in those of its blocks (`select_coordinates`), never in the
second-order form of neurons.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.solve.arguments import checked_input_tolerance
from ltinet.solve.exact.trajectory import ExactTrajectory
from ltinet.solve.jumps import before_jumps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.realisation import Realisation
from ltinet.solve.select_coordinates import CoordinateChoice, select_coordinates
from ltinet.solve.solution import Solution
from ltinet.solve.steps.sharing import n_threads

_INPUT_TOLERANCE = 1e-8  # of the largest |u|: how far straight lines may be from a function


class ExactEngine:
    """Outputs in closed form."""

    options = frozenset({"input_tolerance", "coordinates"})

    def run(
        self,
        prepared: PreparedNetwork,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the times t, from the state x0 at t[0]; a batch is shared by `n_jobs` threads."""
        given = options.get("input_tolerance")
        tolerance = _INPUT_TOLERANCE if given is None else checked_input_tolerance(given)
        threads = n_threads(n_jobs)
        samples, refinement, off = signal.sampled_over(t, tolerance=tolerance)
        realisation = _realisation(prepared, samples, options.get("coordinates", "auto"))
        if realisation.resolves_shift(samples.axis):
            samples = SampledSignal(samples.axis.as_given(), samples.u, hold=samples.hold)
            realisation = _realisation(prepared, samples, options.get("coordinates", "auto"))
        trajectory = ExactTrajectory(realisation, samples, x0, network=prepared, input_error=off)
        y = _outputs_at(trajectory, t, threads=threads)
        stats: dict[str, Any] = {
            "engine": "exact",
            "coordinates": realisation.name,
            "grid": "irregular" if samples.step is None else "uniform",
            "way": trajectory.way,
            "n_samples": len(samples.t),
            "samples_per_interval": refinement,
        }
        return Solution(t, y, trajectory, stats)


def _realisation(prepared: PreparedNetwork, samples: SampledSignal, wanted: CoordinateChoice) -> Realisation:
    return select_coordinates(prepared, wanted, is_even=samples.step is not None, longest_step=samples.longest_step)


def _outputs_at(trajectory: ExactTrajectory, t: Array, *, threads: int) -> Array:
    """Outputs at the times t: from those at all samples where t are among them, which needs no states in between."""
    samples = trajectory.samples
    if samples.t is t or np.array_equal(samples.t, t):
        return trajectory.sampled_outputs(threads=threads)
    places = np.searchsorted(samples.t, t, side="right") - 1
    before = np.flatnonzero(t[1:] == t[:-1])  # of a time given twice the first is the one before the jump
    places[before] = np.searchsorted(samples.t, t[before], side="left")
    if np.array_equal(samples.t[places], t):
        return trajectory.sampled_outputs(threads=threads)[..., places, :]
    return before_jumps(trajectory.outputs(t), t, samples, trajectory.realisation.system.D)
