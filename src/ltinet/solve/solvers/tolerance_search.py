"""Tolerances for single neurons so that a simulation is as exact as asked, and no more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.allocation import next_tolerances
from ltinet.errors import SimulationError
from ltinet.solve.solution import Solution

Tolerances = Mapping[tuple[int, int], float]
Simulate = Callable[[Tolerances], Solution]

_LOOSEST, _TIGHTEST = 1e-2, 1e-13  # SciPy's solvers take no relative tolerance below 100 eps
_AIM = 0.9  # of the target, since errors answer to tolerances in proportion only roughly
_MOST_RUNS = 10
_WORTHWHILE = 0.999  # of the evaluations of the best run: what another run should save at least


@runtime_checkable
class KnowsNeuronShares(Protocol):
    """A trajectory that knows which neuron adds how much to its error."""

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        ...


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
    """How many runs the choice took in all."""


def search_tolerances(simulate: Simulate, neurons: list[tuple[int, int]], *, target: float) -> ChosenTolerances:
    """Run, see which neuron adds how much to the error, share out the target equally, and run again.

    Raises:
        SimulationError: the bound stays above the target at the tightest tolerances: rounding alone exceeds it.
    """
    tolerances = np.full(len(neurons), np.clip(target, _TIGHTEST, _LOOSEST))
    met: Array | None = None
    best: ChosenTolerances | None = None
    aim = _AIM
    for run in range(1, _MOST_RUNS + 1):
        chosen = dict(zip(neurons, tolerances.tolist(), strict=True))
        solution = simulate(chosen)
        bound = float(np.max(solution.error_bound(), initial=0.0))
        evaluations = int(solution.stats["total_evaluations"])
        if bound <= target:
            met = tolerances
            settled = best is not None and evaluations > _WORTHWHILE * best.evaluations
            if best is None or evaluations < best.evaluations:
                best = ChosenTolerances(chosen, chosen, target, bound, evaluations, run)
            if settled:
                break
            wanted = _shared_out(solution, tolerances, allowed=target / bound if bound > 0.0 else np.inf)
            after = np.sqrt(met * wanted)  # half the way: errors jump where a step more or less is taken
        elif met is not None:
            after = np.sqrt(met * tolerances)  # what is enough lies between the two
        else:
            aim *= _AIM if bound < 2.0 * target else 1.0  # close, and not there: aim lower
            after = _shared_out(solution, tolerances, allowed=aim * target / bound)
        if np.array_equal(after, tolerances):
            break
        tolerances = after
    if best is None:
        raise SimulationError(
            f"the bound is {bound:.2g} after {run} runs and does not come below the target {target:g}; rounding may "
            'exceed it: look at sol.error_parts(), raise the target, or use engine="exact"'
        )
    return replace(best, n_runs=run)


def _shared_out(solution: Solution, tolerances: Array, *, allowed: float) -> Array:
    """Tolerances at which neurons are expected to add equal shares to an error that is `allowed` times that now.

    Errors of different neurons cancel in part: the sum of the shares is to change as the bound is.
    """
    trajectory = solution.trajectory
    if not isinstance(trajectory, KnowsNeuronShares):
        raise TypeError("tolerances are for runs by solvers")
    shares = trajectory.neuron_shares()
    budget = allowed * float(np.sum(shares))
    return next_tolerances(tolerances, shares, budget=budget, loosest=_LOOSEST, tightest=_TIGHTEST)
