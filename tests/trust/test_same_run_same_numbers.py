"""A run gives the same numbers to the last bit, whatever its network was asked before: what bounds look at was run."""

import numpy as np
import pytest

import ltinet

LENGTHS = {
    "few": lambda rng, n: rng.choice([0.011, 0.013, 0.02, 0.07], n),
    "rounded": lambda rng, n: np.diff(np.arange(n + 1) * (0.01 * (1.0 + rng.random()))),
    "any": lambda rng, n: rng.uniform(0.004, 0.1, n),
    "many decades": lambda rng, n: 10.0 ** rng.uniform(-6.0, 0.0, n),
}


def drawn_run(seed, lengths, n_steps):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    A = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-1.0, 1.0)
    A -= (np.linalg.eigvals(A).real.max() + 0.1) * np.eye(n)
    net = ltinet.construct((A, rng.standard_normal((n, 2)), rng.standard_normal((2, n))), n_layers=[None, 1][seed % 2])
    t = np.repeat(np.concatenate([[0.0], np.cumsum(LENGTHS[lengths](rng, n_steps))]), np.r_[2, np.ones(n_steps, int)])
    return net, {"u": rng.standard_normal((len(t), 2)), "t": t, "x0": rng.standard_normal(n)}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n_steps", [20, 150, 700, 5_000])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("seed", [0, 1])
def test_runs_do_not_depend_on_what_was_asked_before(seed, lengths, n_steps):
    net, run = drawn_run(seed, lengths, n_steps)
    first = net.simulate(**run)
    y, bound, states = first.y.copy(), first.error_bound(), first.states.copy()
    places = np.random.default_rng(7).uniform(run["t"][0], run["t"][-1], 3_000)
    for _ in range(4):
        first(places)
        net.simulate(**{**run, "t": run["t"] * 0.97})
        again = net.simulate(**run)
        np.testing.assert_array_equal(again.y, y)
        np.testing.assert_array_equal(again.states, states)
        np.testing.assert_array_equal(again.error_bound(), bound)
        np.testing.assert_array_equal(first(run["t"]), again(run["t"]))


@pytest.mark.parametrize("seed", range(6))
def test_states_at_samples_are_those_that_dense_output_begins_with(seed):
    net, run = drawn_run(seed, "few", 300)
    solution = net.simulate(**run)
    some = np.unique(run["t"])[::7]
    before = solution(some)
    for _ in range(30):  # each walks through the run, as it did when its bound was made
        solution(np.sort(np.random.default_rng(seed).choice(run["t"], 3)))
    np.testing.assert_array_equal(solution(some), before)
