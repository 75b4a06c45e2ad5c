"""Hypothesis: sampling a system loses nothing that its outputs at samples show, and converting back finds it again."""

import pickle

import control
import numpy as np
import pytest
from scipy import signal

import ltinet
from ltinet import InvalidSystemError, StateSpace
from small_systems import SMALL_SYSTEMS

METHODS = ["zoh", "foh", "tustin"]


def drawn(seed, n=6, m=2, p=3):
    """A system with poles on both sides of the axis, well below the frequency of samples 0.1 apart."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) - 0.5 * np.eye(n)
    return StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", METHODS)
def test_the_same_model_as_scipy_and_back_again(seed, method):
    system = drawn(seed)
    found = system.to_discrete(0.1, method=method)
    matrices, name = (system.A, system.B, system.C, system.D), {"tustin": "bilinear"}.get(method, method)
    theirs = signal.cont2discrete(matrices, 0.1, method=name)
    for ours, other in zip((found.A, found.B, found.C, found.D), theirs, strict=False):
        np.testing.assert_allclose(ours, other, rtol=1e-12, atol=1e-13)
    assert found.dt == 0.1
    back = found.to_continuous(method)
    for name in "ABCD":  # digits that the logarithm of a matrix near the identity keeps: A dt is 0.1 of I
        np.testing.assert_allclose(getattr(back, name), getattr(system, name), rtol=1e-10, atol=1e-11)
    assert back.dt is None


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("seed", range(4))
def test_a_sampled_model_has_the_outputs_of_the_exact_engine(seed, hold):
    system = drawn(seed)
    model = system.to_discrete(0.1, method="zoh" if hold == "zero" else "foh")
    u = np.random.default_rng(seed).standard_normal((40, 2))
    y = ltinet.construct(system).simulate(u, 0.1 * np.arange(40), hold=hold).y
    # States of foh are x − Q₁ u: at rest with u[0] ≠ 0 they begin at −Q₁ u[0].
    states = StateSpace(system.A, system.B, np.eye(6))
    Q1 = states.to_discrete(0.1, method="foh").D if hold == "linear" else np.zeros((6, 2))
    x, outputs = -Q1 @ u[0], []
    for sample in u:
        outputs.append(model.C @ x + model.D @ sample)
        x = model.A @ x + model.B @ sample
    np.testing.assert_allclose(outputs, y, rtol=0.0, atol=1e-12 * np.abs(y).max())


@pytest.mark.parametrize("name", SMALL_SYSTEMS)
def test_every_kind_of_spectrum_comes_back_or_says_why_not(name):
    A = SMALL_SYSTEMS[name]
    dt = 0.2 / max(np.abs(np.linalg.eigvals(A)).max(initial=0.0), 0.1)
    system = StateSpace(A, np.ones((len(A), 1)), np.ones((1, len(A))))
    back = system.to_discrete(dt).to_continuous()
    again = back.to_discrete(dt)
    # The logarithm may be known to half of the digits; its exponential is what was given.
    size = np.abs(system.to_discrete(dt).A).max()
    np.testing.assert_allclose(again.A, system.to_discrete(dt).A, rtol=0.0, atol=1e-8 * size)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[-0.5]], r"negative real eigenvalue -0\.5, but.*tustin"),
        (np.diag([0.5, -0.1, 0.2]), r"negative real eigenvalue -0\.1"),
        ([[0.0]], r"1 eigenvalues that are zero.*delay.*tustin"),
        ([[0.0, 1.0], [0.0, 0.0]], r"2 eigenvalues that are zero"),
    ],
)
@pytest.mark.parametrize("method", ["zoh", "foh"])
def test_what_no_continuous_system_becomes_explains_itself(A, message, method):
    system = StateSpace(A, np.ones((len(A), 1)), np.ones((1, len(A))), dt=0.1)
    with pytest.raises(InvalidSystemError, match=message):
        system.to_continuous(method)
    poles = np.linalg.eigvals(np.atleast_2d(A))
    moved = system.to_continuous("tustin").poles()
    np.testing.assert_allclose(np.sort(moved.real), np.sort((20.0 * (poles - 1.0) / (poles + 1.0)).real), rtol=1e-7)


def test_tustin_has_no_place_for_minus_one_nor_for_two_over_dt():
    with pytest.raises(InvalidSystemError, match="eigenvalue −1"):
        StateSpace(-1.0, 1.0, 1.0, dt=0.1).to_continuous("tustin")
    with pytest.raises(InvalidSystemError, match="pole at 2/dt = 20"):
        StateSpace(20.0, 1.0, 1.0).to_discrete(0.1, method="tustin")


def test_faster_than_half_the_samples_comes_out_as_an_alias():
    fast = StateSpace([[0.0, 40.0], [-40.0, 0.0]], [1.0, 0.0], [1.0, 0.0])
    alias = 2.0 * np.pi / 0.1 - 40.0
    np.testing.assert_allclose(np.abs(fast.to_discrete(0.1).to_continuous().poles().imag), alias, rtol=1e-12)


@pytest.mark.parametrize("dt", [-0.1, np.nan, np.inf, True, "0.1", [0.1, 0.2]])
def test_what_is_no_time_step_is_refused(dt):
    with pytest.raises(InvalidSystemError, match="dt must be a positive number"):
        StateSpace(0.5, 1.0, 1.0, dt=dt)


def test_a_time_step_belongs_to_what_a_system_is():
    system = StateSpace(0.5, 1.0, 1.0, dt=0.1)
    assert system != StateSpace(0.5, 1.0, 1.0)
    assert hash(system) != hash(StateSpace(0.5, 1.0, 1.0))
    assert StateSpace(0.5, 1.0, 1.0, dt=0) == StateSpace(0.5, 1.0, 1.0)
    assert pickle.loads(pickle.dumps(system)) == system  # noqa: S301  our own bytes
    assert repr(system) == "StateSpace(n_states=1, n_inputs=1, n_outputs=1, dt=0.1)"
    descriptor = StateSpace(0.5, 1.0, 1.0, E=2.0, dt=0.1)
    assert pickle.loads(pickle.dumps(descriptor)).descriptor is not None  # noqa: S301  our own bytes
    assert descriptor.A == 0.25


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda system: system.to_discrete(0.2), r"system\.to_continuous\(\)\.to_discrete\(dt\)"),
    ],
)
def test_what_needs_continuous_time_says_which_call_to_make(call, told):
    with pytest.raises(InvalidSystemError, match=rf"discrete in time \(dt = 0\.1\).*{told}"):
        call(StateSpace(0.5, 1.0, 1.0, dt=0.1))


def test_to_continuous_of_a_continuous_system_is_refused():
    with pytest.raises(InvalidSystemError, match="in continuous time already"):
        StateSpace(-0.5, 1.0, 1.0).to_continuous()
    with pytest.raises(InvalidSystemError, match=r"method is 'damped'; known are 'zoh', 'foh', 'tustin'"):
        StateSpace(-0.5, 1.0, 1.0).to_discrete(0.1, method="damped")


def test_facts_in_discrete_time_are_those_of_python_control():
    system = drawn(3).to_discrete(0.1)
    peer = control.ss(system.A, system.B, system.C, system.D, dt=0.1)
    np.testing.assert_allclose(system.dcgain(), control.dcgain(peer), rtol=1e-11)
    omega = np.array([0.0, 0.3, 5.0, np.pi / 0.1])
    theirs = peer(np.exp(0.1j * omega)).transpose(2, 0, 1)
    np.testing.assert_allclose(system.frequency_response(omega), theirs, rtol=1e-10)
    table = system.damping()
    s = np.log(table.poles) / 0.1
    np.testing.assert_allclose(table.natural_frequency, np.abs(s), rtol=1e-13)
    assert np.isinf(StateSpace(1.0, 1.0, -1.0, dt=0.5).dcgain())


def test_static_gains_and_empty_ones_convert():
    gain = StateSpace(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, 2.0]])
    for method in METHODS:
        sampled = gain.to_discrete(0.1, method=method)
        assert sampled.dt == 0.1
        assert sampled.to_continuous(method) == gain
