"""What somebody who had not seen the code found."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_a_certificate_holds_for_both_holds(hold):
    A = [[-2.3299608704131503e-06, 4.446714363413213e-09], [-8.036818556961461e-10, -2.326180000650065e-06]]
    B, C = [[-0.024536093912464134], [-0.16556172608092828]], [[-0.7817221544539391, -1.3757107482615747]]
    net, dt = ltinet.construct((A, B, C)), 705536.0
    t, u = dt * np.arange(116.0), np.ones((116, 1))
    error = respond(A, B, C, [[0.0]], u=u, t=t, hold=hold).y.distance(net.simulate(u, t, hold=hold).y).max()
    assert error <= net.certificate(horizon=115 * dt, n_steps=115).total[0]


@pytest.mark.parametrize("seed", range(6))
def test_states_begin_in_the_given_state_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 50))
    A = rng.standard_normal((n, n)) - 3.0 * np.sqrt(n) * np.eye(n)
    x0 = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-6.0, 3.0, n)
    t, u = np.linspace(0.0, 1e3, 11), rng.standard_normal((2, 11, 1))
    solution = ltinet.construct((A, np.ones((n, 1)), np.ones((1, n)))).simulate(u, t, x0=x0)
    np.testing.assert_array_equal(solution.states[:, 0], x0)


@pytest.mark.parametrize("seed", range(6))
def test_outputs_that_are_far_from_the_input_keep_their_digits_in_short_runs(seed):
    """A chain of states, entered at one end and read at the other: in a short run outputs are small powers of time."""
    rng = np.random.default_rng([5, seed])
    n = int(rng.integers(3, 8))
    A = np.diag(-rng.uniform(1.0, 5.0, n)) + np.diag(rng.uniform(0.5, 2.0, n - 1), -1)
    A = A + np.diag(rng.uniform(0.1, 0.5, n - 1), 1)
    B, C = np.eye(n)[:, :1], np.eye(n)[-1:]
    t = 10.0 ** rng.uniform(-6.0, -3.0) * np.cumsum(rng.uniform(0.5, 1.5, 100))
    u = rng.standard_normal((100, 1))
    truth = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold="linear").y
    y = ltinet.construct((A, B, C)).simulate(u, t).y
    assert truth.distance(y).max() <= 1e-12 * truth.peak.max()


@pytest.mark.parametrize("seed", range(6))
def test_units_alone_cost_states_no_digit(seed):
    """A Jordan block in units that are decades apart: the network's T gives states other units, nothing else."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.integers(3, 6))
    A = np.diag(np.full(n, -(2.0**-6))) + np.diag(10.0 ** rng.uniform(-1.0, 5.0, n - 1), 1)
    t = np.concatenate([[0.0], np.cumsum(rng.uniform(0.5, 2.0, 400) * 64.0)])
    u, B, C = rng.standard_normal((401, 1)), np.eye(n)[:, -1:], np.eye(n)[:1]
    truth = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold="zero", states=True).x
    states = ltinet.construct((A, B, C)).simulate(u, t, hold="zero").states
    assert np.all(truth.distance(states).max(axis=0) <= 1e-12 * truth.peak)


@pytest.mark.filterwarnings("error")
def test_chains_that_lose_all_volume_bring_no_warning():
    """Twelve chains of ten equal tanks, coupled by a ten-millionth of themselves."""
    speeds = 1.0 + 0.3 * np.arange(12)
    A = np.kron(np.diag(speeds), np.eye(10, k=-1) - np.eye(10))
    A = A + 1e-7 * np.random.default_rng(5).normal(size=A.shape)
    assert ltinet.construct((A, np.eye(120)[:, [0, 60]], np.eye(120)[[119, 0]])).n_states == 120
