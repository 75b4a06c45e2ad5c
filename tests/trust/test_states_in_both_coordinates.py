"""States of systems whose rounding matters keep the digits that exponentials of the given matrix keep."""

import numpy as np
import pytest
from scipy.linalg import expm

import ltinet
from ball_oracle import respond
from hard_matrices import haar
from hostile.draw import draw
from hostile.families import whole_number_similarity
from network_examples import pattern_block

_AS_NEAR, _RIGHT = 10.0, 1e-10  # as in the hostile runs

LOST = pytest.mark.xfail(strict=False, reason="errors of 1e27 peaks by SciPy's exponential as well: how many is chance")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        "2642/integrating/12",
        "2642/integrating/62",
        pytest.param("2643/integrating/100", marks=LOST),
        "2643/integrating/131",
    ],
)
def test_a_plain_integral_beside_rounded_chains_keeps_its_digits(name):
    case = draw(name)
    assert_as_good_as_exponentials(case.A, case.B, case.C, **case.run)


@pytest.mark.parametrize("seed", range(4))
def test_chains_that_integrators_act_on(seed):
    rng = np.random.default_rng([33, seed])
    n_chain, n_plain = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    n = n_chain + n_plain
    A = np.zeros((n, n))
    A[:n_chain, :n_chain] = whole_number_similarity(rng, np.eye(n_chain, k=1))
    A[:n_chain, n_chain:] = rng.integers(-2, 3, (n_chain, n_plain))
    A[n_chain:, n_chain:] = np.diag(rng.integers(1, 4, n_plain - 1), 1)
    A /= rng.choice([3.0, 7.0, 10.0])
    B, C, n_times = rng.standard_normal((n, 1)), np.eye(n)[:1], int(rng.integers(100, 300))
    t, u = 10.0 ** rng.uniform(0.0, 2.0) * np.arange(n_times), rng.standard_normal((n_times, 1))
    assert_as_good_as_exponentials(A, B, C, u=u, t=t, hold="zero", x0=rng.standard_normal(n))


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("seed", range(8))
def test_states_that_others_reach_by_a_rounding_only(hold, seed):
    rng = np.random.default_rng([34, seed])
    n_pairs = int(rng.integers(2, 6))
    rates, couplings = 10.0 ** rng.uniform(-1.0, 1.5, n_pairs), 10.0 ** rng.uniform(-17.0, -15.0, n_pairs)
    couplings[-1] = 1.0  # two states that really turn into each other
    A = np.kron(np.diag(-rates), np.eye(2)) + np.kron(np.diag(rates * couplings), [[0.0, 1.0], [-1.0, 0.0]])
    order, n = rng.permutation(len(A)), len(A)
    A, B = A[order][:, order], np.kron(np.ones(n_pairs), [1.0, 0.0])[order][:, None]
    t, u = 0.5 * np.arange(200) / rates.max(), rng.standard_normal((200, 1))
    truth = respond(A, B, np.eye(n)[:1], np.zeros((1, 1)), u=u, t=t, hold=hold, states=True).x
    states = ltinet.construct((A, B, np.eye(n)[:1])).simulate(u, t, hold=hold).states
    assert np.all(truth.distance(states).max(axis=0) <= _RIGHT * truth.peak)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", [26, 39, 42, 48, 70, 105, *range(6)])
def test_compartments_with_rates_that_are_decades_apart_in_long_steps(seed):
    rng = np.random.default_rng([36, seed])
    n, n_times = int(rng.integers(4, 9)), 12
    A = 10.0 ** rng.uniform(-6.0, 2.0, (n, n)) * (rng.random((n, n)) < 0.5)
    np.fill_diagonal(A, 0.0)
    A -= np.diag(A.sum(axis=0))
    t, u = 10.0 ** rng.uniform(3.0, 6.0) * np.arange(n_times), rng.standard_normal((n_times, 1))
    hold = str(rng.choice(["zero", "linear"]))
    assert_as_good_as_exponentials(A, np.eye(n)[:, :1], np.ones((1, n)), u=u, t=t, hold=hold, x0=None)


@pytest.mark.parametrize("seed", [270, 670, 932, *range(9)])
def test_combinations_of_states_are_known_as_well_as_by_one_way(seed):
    # Errors of one way belong together: of these combinations 99.9 % or more cancel. Until states of two ways were not
    # mixed without need, the first three were off by 2e-9, 2e-10 and 4e-10 of their peaks, by each way 2e-11.
    rng = np.random.default_rng([77, seed])
    n_pairs, n_real = int(rng.integers(0, 4)), int(rng.integers(0, 3))
    A = pattern_block(n_pairs, n_real, seed=int(rng.integers(2**32)))
    n, m, p = len(A), *rng.integers(1, 4, 2)
    B, C, D = rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    t = np.arange(int(rng.integers(1, 61))) * 2.0 ** int(rng.integers(-6, 1))
    hold = str(rng.choice(["linear", "zero"]))
    S = haar(n, int(rng.integers(2**32))) * 2.0 ** rng.integers(-5, 6, n) @ haar(n, int(rng.integers(2**32)))
    A, B, C = np.linalg.solve(S, A @ S), np.linalg.solve(S, B), C @ S
    u, x0 = rng.standard_normal((len(t), m)), np.linalg.solve(S, rng.standard_normal(n))
    truth = respond(A, B, C, D, u=u, t=t, hold=hold, x0=x0, states=True).x
    error = (ltinet.construct((A, B, C, D)).simulate(u, t, x0=x0, hold=hold).states - truth.mid) - truth.low
    assert np.abs(error @ S.T).max() <= _RIGHT * np.abs(truth.mid @ S.T).max()


def assert_as_good_as_exponentials(A, B, C, *, u, t, hold, x0):
    """States are as near as steps by SciPy's exponential of the given matrix, or right to 1e-10."""
    truth = respond(A, B, C, np.zeros((len(C), B.shape[1])), u=u, t=t, hold=hold, x0=x0, states=True).x
    expected = truth.distance(_stepped(A, B, u=u, t=t, hold=hold, x0=x0)).max(axis=0)
    error = truth.distance(ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0).states).max(axis=0)
    assert np.all(error <= np.maximum(_AS_NEAR * expected, _RIGHT * truth.peak))


def _stepped(A, B, *, u, t, hold, x0):
    n, m = B.shape
    x = np.zeros((len(t), n))
    x[0] = 0.0 if x0 is None else x0
    for k, h in enumerate(np.diff(t)):
        M = np.zeros((n + 2 * m, n + 2 * m))
        M[:n, :n], M[:n, n : n + m], M[n : n + m, n + m :] = A * h, B * h, np.eye(m)
        P = expm(M)[:n]
        slope = u[k + 1] - u[k] if hold == "linear" else np.zeros(m)
        x[k + 1] = P @ np.concatenate([x[k], u[k], slope])
    return x
