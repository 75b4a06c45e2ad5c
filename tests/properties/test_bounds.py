"""Hypothesis: no simulation is ever farther from the truth than it says, and it says no more than needed.

Truth is the system that was given, in ball arithmetic. LTINET_THOROUGH=1 draws 500 networks instead of a few.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

import ltinet
from random_runs import runs, true_outputs
from support.tiers import n_examples

THOROUGH = bool(os.environ.get("LTINET_THOROUGH"))


def examples(few, many):
    return settings(
        max_examples=many if THOROUGH else n_examples(few),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # shrinking solves hundreds of networks and makes none clearer
        suppress_health_check=list(HealthCheck),
    )


def solved(run):
    try:
        return run.solve()
    except ltinet.SimulationError:  # a solver that cannot meet its tolerance says so: there is nothing to judge
        assume(False)


@pytest.mark.slow
def test_solver_engines_are_safe_and_useful():
    ratios = []

    @examples(40, 500)
    @given(runs())
    def judge(run):
        solution = solved(run)
        times, truth = true_outputs(run)
        error = truth.distance(solution(times))
        by_time, overall = solution.error_bound(times), solution.error_bound()
        assert np.all(error <= by_time)
        assert np.all(error <= overall)
        at_samples = np.isin(times, run.t)
        ratios.append(
            (
                np.max(overall) / np.max(error),
                np.max(by_time) / np.max(error),
                np.max(overall) / np.max(error[at_samples]),
            )
        )

    judge()
    everywhere, by_time, overall_at_samples = np.median(ratios, axis=0)
    if THOROUGH:
        print(
            f"\n{len(ratios)} networks: bound/error, median: {everywhere:.3g} over all times, {by_time:.3g} time by "
            f"time, {overall_at_samples:.3g} if only errors at samples count"
        )
    assert everywhere <= 100.0
    assert by_time <= 100.0
    assert overall_at_samples <= 100.0


@examples(40, 500)
@given(runs(max_neurons=6))
def test_the_exact_engine_is_safe(run):
    solution = run.net.simulate(run.u, run.t, x0=run.x0, hold=run.hold)
    times, truth = true_outputs(run)
    error = truth.distance(solution(times))
    assert np.all(error <= solution.error_bound(times))
    at_samples = truth.mid[np.isin(times, run.t)], truth.low[np.isin(times, run.t)]
    assert np.all(np.abs((solution.y - at_samples[0]) - at_samples[1]) <= solution.error_bound())


@examples(30, 200)
@given(runs(max_neurons=6))
def test_certificates_hold_for_all_inputs_of_their_size(run):
    size = float(np.max(np.abs(run.u)))
    solution = run.net.simulate(run.u, run.t, hold=run.hold)
    start = np.zeros_like(run.x0)
    times, truth = true_outputs(run, x0=start)
    at_samples = np.isin(times, run.t)
    certificate = run.net.certificate(horizon=float(run.t[-1]), n_steps=len(run.t) - 1)
    error = np.abs((solution.y - truth.mid[at_samples]) - truth.low[at_samples])
    assert np.all(error <= size * certificate.total)
    assert np.all(np.abs(truth.mid) <= size * certificate.gain)
