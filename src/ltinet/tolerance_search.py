"""Tolerances for single neurons so that a simulation is as exact as asked, and no more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.allocation import next_tolerances
from ltinet.error_bounds import neuron_shares_of
from ltinet.errors import SimulationError
from ltinet.solve.solution import Solution

Array = NDArray[np.float64]
Tolerances = Mapping[tuple[int, int], float]
Simulate = Callable[[Tolerances], Solution]

_LOOSEST, _TIGHTEST = 1e-2, 1e-13  # SciPy's solvers take no relative tolerance below 100 eps
_AIM = 0.9  # of the target, since steps come in whole numbers
_MOST_RUNS = 10
_WORTHWHILE = 0.97  # share of the evaluations of the best run so far below which another run is worth it


@dataclass(frozen=True)
class ChosenTolerances:
    """Tolerances by (layer, neuron), to be passed on: `net.simulate(…, rtol=chosen.rtol, atol=chosen.atol)`."""

    rtol: Tolerances = field(repr=False)
    atol: Tolerances = field(repr=False)
    target: float
    bound: float
    """The largest `error_bound()` of an output of the run with these tolerances."""
    evaluations: int
    """What that run took."""
    n_runs: int
    """How many runs the choice took."""


def search_tolerances(simulate: Simulate, neurons: list[tuple[int, int]], *, target: float) -> ChosenTolerances:
    """Run, see which neuron adds how much to the error, share out the target equally, and run again.

    Raises:
        SimulationError: the bound stays above the target at the tightest tolerances: rounding alone exceeds it.
    """
    tolerances, aim = np.full(len(neurons), _LOOSEST), _AIM
    best: ChosenTolerances | None = None
    for run in range(1, _MOST_RUNS + 1):
        chosen = dict(zip(neurons, tolerances.tolist(), strict=True))
        solution = simulate(chosen)
        bound = float(np.max(solution.error_bound(), initial=0.0))
        evaluations = int(solution.stats["total_evaluations"])
        if bound <= target:
            enough = best is not None and evaluations > _WORTHWHILE * best.evaluations
            if best is None or evaluations < best.evaluations:
                best = ChosenTolerances(chosen, chosen, target, bound, evaluations, run)
            if enough:
                break
        elif bound < 2.0 * target:
            aim *= _AIM  # close, and not there: errors answered less than in proportion
        shares = neuron_shares_of(solution.trajectory)
        # Errors of different neurons cancel in part: what the shares may add up to is taken from this run.
        budget = aim * target * float(np.sum(shares)) / bound if bound > 0.0 else np.inf
        after = next_tolerances(tolerances, shares, budget=budget, loosest=_LOOSEST, tightest=_TIGHTEST)
        if np.array_equal(after, tolerances):
            break
        tolerances = after
    if best is None:
        raise SimulationError(
            f"the bound is {bound:.2g} after {run} runs and does not come below the target {target:g}; rounding may "
            'exceed it: look at sol.error_parts(), raise the target, or use engine="exact"'
        )
    return best
