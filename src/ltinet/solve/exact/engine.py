"""The exact engine: no step-size control and no stiffness, since between samples the solution has a closed form.

It runs in block coordinates (`modal`), never in the second-order form that neurons show.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.solve.arguments import checked_input_tolerance
from ltinet.solve.exact.second_look import is_surer, needs_second_look
from ltinet.solve.exact.surest import engine_for_samples
from ltinet.solve.exact.trajectory import ExactTrajectory
from ltinet.solve.jumps import before_jumps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution
from ltinet.solve.steps.sharing import n_threads

_INPUT_TOLERANCE = 1e-8  # of the largest |u|: how far straight lines may be from a function


class ExactEngine:
    """Outputs in closed form."""

    options = frozenset({"input_tolerance"})

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
        if prepared.feels(samples.axis):
            samples = SampledSignal(samples.axis.as_given(), samples.u, hold=samples.hold)
        start = None if x0 is None else prepared.user_start(x0, samples.batch_shape)
        own = engine_for_samples(prepared, samples, start)
        trajectory = _trajectory(own, prepared, samples, x0, off=off)
        rival = prepared.rival(from_state=x0 is not None) if own is prepared else None
        if rival is not None:
            trajectory = _better(trajectory, _trajectory(rival, prepared, samples, x0, off=off))
        y = _outputs_at(trajectory, t, threads=threads)
        if trajectory.prepared is prepared and needs_second_look(prepared, samples, y):
            direct = prepared.as_given
            assert direct is not None  # noqa: S101 - which was looked at
            other = _trajectory(direct, prepared, samples, x0, off=off)
            if is_surer(other, trajectory, y if np.array_equal(samples.t, t) else None):
                trajectory, y = other, _outputs_at(other, t, threads=threads)
        stats: dict[str, Any] = {
            "engine": "exact",
            "grid": "irregular" if samples.step is None else "uniform",
            "way": trajectory.way,
            "n_samples": len(samples.t),
            "samples_per_interval": refinement,
        }
        return Solution(t, y, trajectory, stats)


def _trajectory(
    own: PreparedNetwork, prepared: PreparedNetwork, samples: SampledSignal, x0: ArrayLike | None, *, off: float
) -> ExactTrajectory:
    """A run by one of the networks of a system; neurons are known to the one that was prepared first."""
    return ExactTrajectory(own, samples, x0, input_error=off, neurons=None if own is prepared else prepared)


def _better(one: ExactTrajectory, other: ExactTrajectory) -> ExactTrajectory:
    """The run whose outputs are known better, by the worst of them; which costs the bounds of both."""
    start, stop = float(one.samples.t[0]), float(one.samples.t[-1])
    first, second = (np.asarray(sum(own.error_bound(start, stop).overall().values())) for own in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.isfinite(second), second / first, np.inf)
    return other if np.isfinite(second).all() and not np.nanmax(ratio, initial=0.0) >= 1.0 else one


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
    return before_jumps(trajectory.outputs(t), t, samples, trajectory.prepared.system.D)
