"""Runs that show far less of a system than usual: late inputs, inputs that cancel, one member of a batch beside others.

What is right elsewhere to some eps of what modes could bring is nothing here; SciPy steps in the user's own states.
"""

import numpy as np
import pytest
from scipy import signal

import ltinet
from ball_oracle import respond

_RIGHT, _LIKE_THE_PEER = 1e-10, 10.0  # of peaks; times the peer's error
_ROUNDING = 4.0 * 2.0**-53  # of the response to |u|: where inputs cancel, terms of that size are rounded


def masses(n):
    K = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return (
        np.block([[np.zeros((n, n)), np.eye(n)], [-K, -0.01 * K]]),
        np.eye(2 * n)[:, n : n + 1],
        np.eye(2 * n)[[n - 1, 0]],
    )


def heat(n):
    return n * n * (np.eye(n, k=1) - 2.0 * np.eye(n) + np.eye(n, k=-1)), np.eye(n)[:, :1], np.eye(n)[-1:]


def low_pass(n):
    A, B, C, _ = signal.tf2ss(*signal.butter(n, 1.0, analog=True))
    return A.T.copy(), C.T.copy(), B.T.copy()


SYSTEMS = {"masses": (masses, 4, 7), "heat": (heat, 5, 11), "low pass": (low_pass, 5, 9)}


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("n_last", [2, 5, 10])
@pytest.mark.parametrize("name", SYSTEMS)
def test_inputs_that_begin_late(name, n_last, hold):
    A, B, C, step, n_times = drawn(name, seed=n_last)
    u = np.zeros((n_times, 1))
    u[-n_last:] = 1.0
    sol, t = assert_right(A, B, C, u, step * np.arange(n_times), hold=hold)
    truth = respond(A, B, C, np.zeros((len(C), 1)), u=u, t=t, hold=hold, states=True).x
    peer = signal.lsim((A, B, np.eye(len(A)), 0.0 * B), u, t, interp=hold == "linear")[1].reshape(n_times, -1)
    assert_near(sol.states, truth, peer)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SYSTEMS)
def test_inputs_that_cancel(name, seed):
    A, B, C, step, n_times = drawn(name, seed=seed)
    u = np.zeros((n_times, 1))
    differences = np.array([1.0])
    for _ in range(2 + seed // 2):
        differences = np.convolve(differences, [1.0, -1.0])
    u[seed : seed + len(differences), 0] = differences
    t, D = step * np.arange(n_times), np.zeros((len(C), 1))
    sol = ltinet.construct((A, B, C)).simulate(u, t, hold="zero")
    error = respond(A, B, C, D, u=u, t=t, hold="zero").y.distance(sol.y).max(axis=0)
    assert np.all(error <= _ROUNDING * respond(A, B, C, D, u=np.abs(u), t=t, hold="zero").y.peak)
    assert np.all(error <= sol.error_bound())


@pytest.mark.parametrize("seed", range(6))
def test_a_member_of_a_batch_with_inputs_that_no_other_has(seed):
    rng = np.random.default_rng([36, seed])
    n, step = int(rng.integers(6, 9)), 2.0 ** -int(rng.integers(3, 8))
    A = one_way(n, 2.0 ** -int(rng.integers(2, 8)))
    B, C, t = np.eye(n)[:, [-1, 0]], np.eye(n)[-1:], step * np.arange(48)
    u = rng.standard_normal((48, 2)) * np.array([[1, 1], [1, 1e-3], [1, 1e-6], [1, 1e-9], [0, 1]])[:, None]
    y = ltinet.construct((A, B, C)).simulate(u, t).y
    for own, inputs in zip(y, u, strict=True):
        assert_outputs_right(own, A, B, C, inputs, t, hold="linear")


def test_a_member_of_a_large_batch_that_begins_elsewhere():
    A, t = one_way(8, 2.0**-6), np.arange(10) / 16.0
    B, C, x0 = np.eye(8)[:, :1], np.eye(8)[-1:], np.tile(np.eye(8)[-1], (130, 1))
    x0[1::2] = np.eye(8)[0]
    y = ltinet.construct((A, B, C)).simulate(np.zeros((130, 10, 1)), t, x0=x0).y
    truth = respond(A, B, C, np.zeros((1, 1)), u=np.zeros((10, 1)), t=t, x0=x0[1]).y
    assert truth.distance(y[1]).max() <= _RIGHT * truth.peak.max()


def one_way(n, back):
    """States that act on the next one, and a little on the one before."""
    return -np.diag(1.0 + 0.2 * np.arange(n)) + np.eye(n, k=-1) + back * np.eye(n, k=1)


def drawn(name, seed):
    rng = np.random.default_rng([35, seed])
    make, least, most = SYSTEMS[name]
    A, B, C = make(int(rng.integers(least, most)))
    step = 2.0 ** np.round(np.log2(10.0 ** rng.uniform(-1.5, -0.5) / np.abs(np.linalg.eigvals(A)).max()))
    return A, B, C, step, int(rng.choice([60, 200]))


def assert_right(A, B, C, u, t, *, hold):
    sol = ltinet.construct((A, B, C)).simulate(u, t, hold=hold)
    assert np.all(assert_outputs_right(sol.y, A, B, C, u, t, hold=hold) <= sol.error_bound())
    return sol, t


def assert_outputs_right(y, A, B, C, u, t, *, hold):
    D = np.zeros((len(C), B.shape[1]))
    truth = respond(A, B, C, D, u=u, t=t, hold=hold).y
    return assert_near(y, truth, signal.lsim((A, B, C, D), u, t, interp=hold == "linear")[1].reshape(len(t), -1))


def assert_near(values, truth, peer):
    error, of_peer = truth.distance(values).max(axis=0), truth.distance(peer).max(axis=0)
    assert np.all(error <= np.maximum(_RIGHT * truth.peak, _LIKE_THE_PEER * of_peer))
    return error
