"""Hypothesis: where states last, so do roundings, and at uneven times their bound is still above them.

Drawn at random: states that turn for ever or decay slowly, steps of a few lengths over two decades or of any length,
some of which no double holds, inputs that come again and inputs that do not, and such as are tiny beside the state.
"""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond


def lasting(rng):
    """A scalar or a pair that decays little, or never."""
    if rng.random() < 0.3:
        return np.array([[-(10.0 ** rng.uniform(-8.0, 1.0))]])
    decay, omega = (0.0 if rng.random() < 0.6 else -(10.0 ** rng.uniform(-9.0, -1.0))), 10.0 ** rng.uniform(-3.0, 1.0)
    return np.array([[decay, omega], [-omega, decay]])


def times(rng, n_steps):
    """Steps of two lengths in turn, of three lengths, of many, of such that no two are alike."""
    draws = (
        lambda: np.where(np.arange(n_steps) % 2, 1.0, 2.0),
        lambda: rng.choice([1.0, 10.0, 100.0], n_steps),
        lambda: rng.integers(1, 1000, n_steps) / 64.0,
        lambda: 10.0 ** rng.uniform(-3.0, 2.0, n_steps),
    )
    unit = 2.0 ** rng.integers(-8, 3) * (1.0 if rng.random() < 0.5 else np.pi / 20.0)
    return np.concatenate([[0.0], np.cumsum(draws[rng.integers(0, len(draws))]())]) * unit


def inputs(rng, n_times):
    """Noise, waves, ramps, and values that come again and again."""
    k = np.arange(n_times)
    draws = (
        lambda: rng.standard_normal(n_times),
        lambda: np.sin(2.0 * np.pi * rng.uniform(1.0, 20.0) * k / n_times),
        lambda: 1.0 + k / n_times * 10.0 ** rng.uniform(-12.0, 0.0),
        lambda: np.resize(rng.standard_normal(7), n_times),
        lambda: np.ones(n_times),
    )
    return 10.0 ** rng.uniform(-14.0, 2.0) * draws[rng.integers(0, len(draws))]()[:, None]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("seed", range(12))
def test_errors_of_states_that_last_stay_below_their_bound(seed):
    rng = np.random.default_rng([2611, seed])
    for _ in range(8):
        A = lasting(rng)
        n, t = len(A), times(rng, int(rng.choice([300, 1000])))
        B, C = rng.standard_normal((n, 1)), rng.standard_normal((1, n))
        u, hold = inputs(rng, len(t)), str(rng.choice(["zero", "linear"]))
        x0 = None if rng.random() < 0.3 else rng.standard_normal(n) * 10.0 ** rng.uniform(-2.0, 2.0)
        solution = ltinet.construct(ltinet.StateSpace(A, B, C)).simulate(u, t, hold=hold, x0=x0)
        truth = respond(A=A, B=B, C=C, D=None, E=None, u=u, t=t, hold=hold, x0=x0).y
        assert np.all(truth.distance(solution.y) <= solution.error_bound(t))


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_digits_that_lengths_of_steps_lose_are_counted(hold):
    # 1e6 − 0.1 is no double: the state turns by 1e7 radians in a step whose length is known to 16 digits.
    t, u, x0 = np.array([0.0, 0.1, 1e6, 1e6 + 0.3]), np.zeros((4, 1)), np.array([1.0, 0.0])
    A, B, C = np.array([[0.0, 10.0], [-10.0, 0.0]]), np.ones((2, 1)), np.ones((1, 2))
    solution = ltinet.construct(ltinet.StateSpace(A, B, C)).simulate(u, t, hold=hold, x0=x0)
    error = respond(A=A, B=B, C=C, D=None, E=None, u=u, t=t, hold=hold, x0=x0).y.distance(solution.y)
    assert np.all(error <= solution.error_bound(t))
    assert np.max(solution.error_bound(t)) <= 1e-8  # the angle itself loses 1e7 · eps = 2e-9


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("gap", "n_bursts"), [(128.0, 16), (1000.0, 2)])
@pytest.mark.parametrize("A", [[[-1.0]], [[-1.0, 30.0], [0.0, -1.0]]])
def test_samples_in_bursts_stay_below_their_bound(A, gap, n_bursts, constant):
    # 600 samples a millisecond apart, then none for long: what a burst does has not faded at its end.
    ends = gap * np.arange(1, n_bursts + 1)
    t = np.unique(np.concatenate([[0.0], (ends[:, None] - 0.001 * np.arange(600, -1, -1)).ravel()]))
    noise = np.random.default_rng(0).standard_normal((len(t), 1))
    u = np.ones((len(t), 1)) if constant else 1.0 + 0.3 * np.sin(0.01 * t)[:, None] + 1e-3 * noise
    B, C = np.ones((len(A), 1)), np.eye(len(A))
    solution = ltinet.construct(ltinet.StateSpace(A, B, C)).simulate(u, t)
    assert np.all(respond(A=A, B=B, C=C, u=u, t=t).y.distance(solution.y) <= solution.error_bound(t))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(4))
def test_steps_that_are_all_alike_round_alike_however_inputs_differ(seed):
    # A double integrator that drifts: noise far below its last digits, and a rare pulse, make no two roundings differ.
    rng = np.random.default_rng(seed)
    n_steps, speed = 20000, rng.uniform(1e-6, 2e-5)
    t = np.concatenate([[0.0], np.cumsum(np.resize([1.0, 3.0], n_steps))])
    pulses, height = np.arange(100, n_steps - 10, 500), speed * rng.uniform(0.05, 1.0)
    u = 1e-30 * rng.standard_normal((n_steps + 1, 1))
    u[pulses], u[pulses + 1] = 3.0 * height, -height
    A, B, C, x0 = [[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], np.array([1.0, speed])
    solution = ltinet.construct(ltinet.StateSpace(A, B, C)).simulate(u, t, hold="zero", x0=x0)
    error = respond(A=A, B=B, C=C, u=u, t=t, hold="zero", x0=x0).y.distance(solution.y)
    assert np.all(error <= solution.error_bound(t))


@pytest.mark.parametrize(("h", "offset", "n_steps"), [(0.1, 1e3, 300), (0.01, 100.0, 2000)])
@pytest.mark.parametrize("size", [0.0, 1e-3])
def test_outputs_that_stand_still_at_rounded_samples_move_between_them(h, offset, n_steps, size):
    t = np.linspace(offset, offset + n_steps * h, n_steps + 1)
    omega = np.pi / h
    A, B, C = [[0.0, omega], [-omega, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]]
    u, x0 = size * np.random.default_rng(0).standard_normal((n_steps + 1, 1)), np.array([1.0, 0.0])
    at = np.sort(np.concatenate([t[10:-10:5] + h * part for part in (0.25, 0.5, 0.75)]))
    solution = ltinet.construct(ltinet.StateSpace(A, B, C)).simulate(u, t, hold="zero", x0=x0)
    truth = respond(A=A, B=B, C=C, u=u, t=t, hold="zero", x0=x0, at=at)
    assert np.all(truth.between.distance(solution(at)) <= solution.error_bound(at))
