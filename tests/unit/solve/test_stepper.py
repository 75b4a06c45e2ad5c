"""Hypothesis: sample by sample, with a state that can be read, set and saved, the network runs as it does at once."""

import pickle

import numpy as np
import pytest

import ltinet
from network_examples import pattern_block


@pytest.fixture(scope="module", params=[None, 1])
def net(request):
    rng = np.random.default_rng(0)
    A = pattern_block(2, 2, seed=1)
    system = A, rng.standard_normal((6, 2)), rng.standard_normal((3, 6)), rng.standard_normal((3, 2))
    return ltinet.construct(system, n_layers=request.param)


T = np.arange(40) * 0.1
U = np.random.default_rng(1).standard_normal((40, 2))
X0 = np.arange(6.0)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_a_saved_state_goes_on_as_if_nothing_happened(net, hold):
    whole = net.simulate(U, T, x0=X0, hold=hold)
    stepper = net.stepper(0.1, hold=hold, x0=X0)
    np.testing.assert_allclose(stepper.x, X0, atol=1e-12)
    y = [stepper.step(u) for u in U[:17]]
    np.testing.assert_allclose(stepper.x, whole.states[16], atol=1e-11)
    saved = pickle.loads(pickle.dumps(stepper.state()))  # noqa: S301 - our own bytes
    for u in U[17:20]:
        stepper.step(u)
    other = net.stepper(0.1, hold=hold)
    other.restore(saved)
    stepper.restore(saved)
    rest = [other.step(u) for u in U[17:]]
    np.testing.assert_allclose(np.vstack(y + rest), whole.y, atol=1e-11)
    np.testing.assert_allclose(np.vstack([stepper.step(u) for u in U[17:]]), rest, atol=1e-12)


def test_a_state_saved_before_the_first_sample(net):
    stepper = net.stepper(0.1, x0=X0)
    saved = stepper.state()
    stepper.step(U[0])
    stepper.restore(saved)
    np.testing.assert_allclose(stepper.step(U[0]), net.simulate(U[:1], T[:1], x0=X0).y[0], atol=1e-12)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_a_state_that_was_set(net, hold):
    stepper = net.stepper(0.1, hold=hold)
    for u in U[:5]:
        stepper.step(u)
    stepper.x = X0
    np.testing.assert_allclose(stepper.x, X0, atol=1e-11)
    rest = np.vstack([stepper.step(u) for u in U[5:]])
    np.testing.assert_allclose(rest, net.simulate(U[4:], T[4:], x0=X0, hold=hold).y[1:], atol=1e-11)
    fresh = net.stepper(0.1, hold=hold)
    fresh.x = X0
    np.testing.assert_allclose(fresh.step(U[0]), net.simulate(U[:1], T[:1], x0=X0).y[0], atol=1e-12)


def test_a_caller_may_reuse_the_array_of_a_sample(net):
    buffer, stepper = np.empty(2), net.stepper(0.1)
    y = []
    for u in U:
        buffer[:] = u
        y.append(stepper.step(buffer))
    np.testing.assert_allclose(y, net.simulate(U, T).y, atol=1e-11)


def test_what_does_not_fit_is_refused(net):
    stepper = net.stepper(0.1)
    for wrong in (np.zeros(3), np.zeros((1, 2)), 1.0):
        with pytest.raises(ltinet.InvalidSignalError, match="one per input"):
            stepper.step(wrong)
    with pytest.raises(ltinet.InvalidSignalError, match="chunk"):
        list(net.simulate_stream([np.zeros((3, 3))], 0.1))
    for dt in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ltinet.InvalidSignalError, match="positive"):
            net.stepper(dt)
    with pytest.raises(ltinet.InvalidSignalError, match="hold"):
        net.stepper(0.1, hold="cubic")
    with pytest.raises(ltinet.InvalidSignalError, match="belongs to dt"):
        net.stepper(0.2).restore(stepper.state())


def test_values_that_are_not_finite_are_refused(net):
    stepper = net.stepper(0.1)
    with pytest.raises(ltinet.InvalidSignalError, match="not finite"):
        stepper.step([np.nan, 0.0])
    with pytest.raises(ltinet.InvalidSignalError, match="not finite"):
        list(net.simulate_stream([np.full((30, 2), np.inf)], 0.1))
    np.testing.assert_allclose(stepper.step(U[0]), net.simulate(U[:1], T[:1]).y[0], atol=1e-12)


def test_a_stream_of_nothing(net):
    assert list(net.simulate_stream([], 0.1)) == []
    assert [y.shape for y in net.simulate_stream([np.zeros((0, 2)), np.zeros((3, 2))], 0.1)] == [(0, 3), (3, 3)]
