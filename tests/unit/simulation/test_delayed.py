"""Runs with delays, operating points and holds of models, against exponentials of 40 digits on shifted knots."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import ltinet
from ltinet.simulation.delays import _CoreBounds
from support.delayed_oracle import exact_outputs

STEP = 0.125


def random_model(rng, *, whole=False):
    n, m, p = rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)
    A = rng.standard_normal((n, n)) - 1.5 * np.eye(n)
    D = rng.standard_normal((p, m)) * rng.integers(0, 2)
    steps = rng.integers(0, 6, m + p) if whole else rng.choice([0.0, 1e-9, 0.4, 1.0, 2.7, 30.0], m + p)
    return ltinet.StateSpace(
        A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), D,
        input_delay=STEP * steps[:m], output_delay=STEP * steps[m:],
        u0=rng.standard_normal(m), y0=300.0 * rng.standard_normal(p), hold=rng.choice(["linear", "zero"]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_outputs_within_bounds_of_mpmath(seed):
    rng = np.random.default_rng(seed)
    system = random_model(rng, whole=seed % 3 == 0)
    t = STEP * np.arange(24) if seed % 2 else np.cumsum(rng.uniform(0.01, 0.3, 24))
    u = rng.standard_normal((24, system.n_inputs))
    x0 = rng.standard_normal(system.n_states) if seed % 4 else None
    exact = exact_outputs(system, u, t, hold=system.hold, x0=x0)
    sol = ltinet.construct(system).simulate(u, t, x0=x0)
    assert np.all(np.abs(sol.y - exact) <= sol.error_bound())
    assert np.all(np.abs(sol.y - exact) <= sol.error_bound(t))
    assert np.all(sol.error_bound() <= 1e-10 * np.abs(exact).max())
    assert sol.stats["hold"] == system.hold


def test_whole_sample_delay_shifts_samples():
    rng = np.random.default_rng(1)
    core = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]], [[0.5]])
    t, u = 0.1 * np.arange(400), rng.standard_normal(400)
    delayed = core.with_signal_settings(input_delay=0.6).simulate(u, t, hold="zero")
    late = core.simulate(np.concatenate([np.zeros(6), u[:-6]]), t, hold="zero")
    assert np.array_equal(delayed.y, late.y)
    assert np.array_equal(delayed.states, late.states)
    after = core.with_signal_settings(output_delay=0.6, y0=7.0).simulate(u, t, hold="zero")
    assert np.array_equal(after.y[6:], core.simulate(u, t, hold="zero").y[:-6] + 7.0)
    assert np.all(after.y[:6] == 7.0)


def test_dense_output_and_states_with_delays():
    rng = np.random.default_rng(2)
    system = ltinet.StateSpace(
        [[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], np.eye(2), input_delay=0.33, output_delay=[0.0, 0.21], y0=[1.0, 2.0]
    )
    t, u = 0.1 * np.arange(60), rng.standard_normal(60)
    sol = ltinet.construct(system).simulate(u, t)
    dense = sol(t)
    assert np.allclose(dense, sol.y, rtol=0.0, atol=1e-12)
    assert np.allclose(sol.states[:, 0] + 1.0, sol.y[:, 0], rtol=0.0, atol=1e-12)
    later = sol(t[5:-5] + 0.21)
    states = np.stack([np.interp(t[5:-5], t, sol.states[:, 1])])
    assert np.allclose(later[:, 1], states[0] + 2.0, rtol=0.0, atol=1e-12)
    assert sol.neuron_states.shape == (60, 2)
    assert sol.error_bound(t).shape == (60, 2)


def test_delays_of_batches_functions_and_polynomials():
    system = ltinet.StateSpace(
        [[-1.0, 0.5], [0.0, -2.0]], np.eye(2), np.eye(2), input_delay=[0.15, 0.4], u0=[0.5, -1.0]
    )
    net, t = ltinet.construct(system), 0.05 * np.arange(80)
    line = np.stack([0.3 * t, 2.0 - t], axis=1)
    sampled = net.simulate(line, t).y
    assert np.allclose(net.simulate(lambda s: [0.3 * s, 2.0 - s], t).y, sampled, rtol=0.0, atol=1e-10)
    spline = CubicSpline(t, line)
    assert np.allclose(net.simulate(spline, t).y, sampled, rtol=0.0, atol=1e-7)
    both = net.simulate(np.stack([line, 2.0 * line]), t)
    assert np.allclose(both.y[0], sampled, rtol=0.0, atol=1e-14)
    assert both.error_bound().shape == (2, 2)
    mixed = ltinet.SignalBatch([ltinet.SampledSignal(t, line), ltinet.PolynomialSignal.of(spline)])
    assert np.allclose(net.simulate(mixed, t).y, sampled, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_solver_engines_agree(engine, hold):
    rng = np.random.default_rng(3)
    system = ltinet.StateSpace(
        [[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]], [[0.2]],
        input_delay=0.27, output_delay=0.1, u0=1.0, y0=20.0, hold=hold,
    )  # fmt: skip
    net, t, u = ltinet.construct(system), 0.1 * np.arange(50), rng.standard_normal(50)
    exact, solved = net.simulate(u, t), net.simulate(u, t, engine=engine)
    assert np.all(np.abs(exact.y - solved.y) <= exact.error_bound() + solved.error_bound())


def test_delays_read_samples_before_the_run():
    core = ltinet.StateSpace(-1.0, 1.0, 1.0)
    system = core.with_signal_settings(input_delay=0.5)
    t = 0.1 * np.arange(60)
    known = ltinet.SampledSignal(t, np.sin(t), hold="zero")
    part = system.simulate(known, t[20:], x0=system.simulate(known, t).states[20])
    assert np.allclose(part.y, system.simulate(known, t).y[20:], rtol=0.0, atol=1e-13)


def test_default_hold_is_that_of_the_model():
    core = ltinet.StateSpace(-1.0, 1.0, 1.0)
    t, u = 0.1 * np.arange(30), np.sin(np.arange(30))
    model = ltinet.construct(core.with_signal_settings(hold="zero"))
    assert np.array_equal(model.simulate(u, t).y, core.simulate(u, t, hold="zero").y)
    assert np.array_equal(model.simulate(u, t, hold="linear").y, core.simulate(u, t).y)
    assert core.simulate(u, t).stats["hold"] == "linear"
    assert "hold='zero'" in repr(model.simulate(u, t))


def test_no_input_stays_at_operating_point():
    system = ltinet.StateSpace(-1.0, 1.0, 1.0, 0.3, u0=4.0, y0=7.0, input_delay=0.2)
    assert np.all(system.simulate(None, 0.1 * np.arange(10)).y == 7.0)


def test_delayed_jump_has_both_sides():
    system = ltinet.StateSpace(-1.0, 1.0, 1.0, 2.0, input_delay=1.0)
    u, t = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 2.0, 2.0, 3.0])
    for hold in ("linear", "zero"):
        y = system.simulate(u, t, hold=hold).y[:, 0]
        assert y[3] == pytest.approx(0.0, abs=1e-15)
        assert y[4] == pytest.approx(2.0, abs=1e-14)


def test_delays_of_sparse_models():
    plate = ltinet.named_system("heat_plate", n=20)
    t, u = np.linspace(0.0, 1.0, 41), np.ones((41, 2))
    late = plate.with_signal_settings(input_delay=0.25, y0=1.0).simulate(u, t, tolerance=1e-6)
    exact = plate.with_signal_settings(input_delay=0.25, y0=1.0).simulate(u, t)
    assert np.allclose(late.y, exact.y, rtol=0.0, atol=1e-5 * np.abs(exact.y - 1.0).max())


@pytest.mark.parametrize("seed", range(16))
def test_delayed_stepper_matches_simulate(seed):
    rng = np.random.default_rng(100 + seed)
    system = random_model(rng, whole=seed % 4 == 0)
    net, t = ltinet.construct(system), STEP * np.arange(80)
    u = rng.standard_normal((80, system.n_inputs))
    x0 = rng.standard_normal(system.n_states) if seed % 2 else None
    sol = net.simulate(u, t, x0=x0)
    streamed = np.concatenate(list(net.simulate_stream([u[:1], u[1:7], u[7:]], STEP, x0=x0)))
    tolerance = 1e-12 * max(1.0, np.abs(sol.y).max())
    assert np.allclose(streamed, sol.y, rtol=0.0, atol=tolerance)
    first, later = net.stepper(STEP, x0=x0), net.stepper(STEP)
    for own in u[:30]:
        first.step(own)
    assert np.allclose(first.x, sol.states[29], rtol=0.0, atol=tolerance)
    later.restore(first.state())
    assert np.allclose([later.step(own) for own in u[30:]], sol.y[30:], rtol=0.0, atol=tolerance)


def test_restore_rejects_state_of_another_delay():
    core = ltinet.StateSpace(-1.0, 1.0, 1.0)
    one, other = (ltinet.construct(core.with_signal_settings(input_delay=own)) for own in (0.2, 0.3))
    with pytest.raises(ltinet.InvalidSignalError, match="input_delay"):
        other.stepper(0.1).restore(one.stepper(0.1).state())


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_delayed_output_has_both_sides_of_jump(hold):
    """The delayed jump of the first sample arrives at a repeated time without a jump of the other inputs."""
    system = ltinet.StateSpace(-1.0, 1.0, 1.0, 2.0, input_delay=0.25, output_delay=0.5, y0=10.0, hold=hold)
    t = np.array([0.0, 0.25, 0.5, 0.75, 0.75, 1.0])
    u = np.array([3.0, 3.0, 1.0, 2.0, 2.0, 4.0])
    sol = system.simulate(u, t)
    assert sol.y[3, 0] == 10.0
    assert sol.y[4, 0] == 16.0
    assert np.all(np.abs(sol.y - exact_outputs(system, u[:, None], t, hold=hold)) <= sol.error_bound(t))


@pytest.mark.parametrize("settings", [{"input_delay": 0.37, "y0": 5.0}, {"input_delay": 0.37, "output_delay": 0.8}])
def test_small_delayed_system_runs_without_network(settings):
    rng = np.random.default_rng(4)
    system = ltinet.StateSpace(
        rng.standard_normal((5, 5)) - 3.0 * np.eye(5), np.ones(5), np.ones(5), [[0.5]], hold="zero", **settings
    )
    t = 0.1 * np.arange(50)
    system.simulate(rng.standard_normal(50), t)
    assert "_parts" not in system._context.__dict__


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_chunk_length_does_not_change_outputs(hold):
    """Chunks and single samples treat delayed inputs differently; states pass from one to the other."""
    rng = np.random.default_rng(6)
    system = ltinet.StateSpace(
        rng.standard_normal((4, 4)) - 2.0 * np.eye(4), rng.standard_normal((4, 3)), rng.standard_normal((3, 4)),
        rng.standard_normal((3, 3)), input_delay=[0.0, 0.33, 2.5], output_delay=[0.0, 0.27, 1.2],
        u0=rng.standard_normal(3), y0=rng.standard_normal(3), hold=hold,
    )  # fmt: skip
    net, u = ltinet.construct(system), rng.standard_normal((90, 3))
    singles = net.stepper(0.1)
    expected = np.array([singles.step(own) for own in u])
    chunked = net.stepper(0.1)
    found = list(chunked.run([u[:1], u[1:1], u[1:3], u[3:50]]))
    other = net.stepper(0.1)
    other.restore(chunked.state())
    found += [other.step(u[50])[None], *other.run([u[51:]])]
    assert np.allclose(np.concatenate(found), expected, rtol=0.0, atol=1e-13)
    assert np.allclose(other.x, singles.x, rtol=0.0, atol=1e-13)


def test_overflow_in_chunk_names_sample():
    net = ltinet.construct(ltinet.StateSpace([[300.0]], [[1.0]], [[1.0]], input_delay=0.15))
    with pytest.raises(ltinet.SimulationError, match="overflow at sample"):
        list(net.stepper(0.1).run([np.ones(60)]))


def core_speed(system, u, t, *, x0=None):
    """Bound on the derivative of the core's outputs, and its run."""
    net = ltinet.construct(system)
    trajectory = net.simulate(u, t, x0=x0).trajectory
    bounds = _CoreBounds(net._context, float(t[-1] - t[0]))
    return bounds.output_speed(trajectory.delayed, t, x0, batch_shape=()), trajectory.core


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("seed", range(2))
def test_output_speed_covers_differences(seed, hold):
    rng = np.random.default_rng(seed)
    A, B, C, D = rng.standard_normal((3, 3)) - 2.0 * np.eye(3), *rng.standard_normal((3, 3, 1))
    system = ltinet.StateSpace(A, B, C.T, D[:1], input_delay=1e-9, output_delay=0.4, hold=hold)
    t, x0 = STEP * np.arange(6), rng.standard_normal(3)
    speed, core = core_speed(system, rng.standard_normal(6), t, x0=x0)
    for left, right in pairwise(t):  # each without the jumps at its ends
        w = core.outputs(np.linspace(left + 1e-6, right - 1e-6, 21))
        assert np.all(np.abs(np.diff(w, axis=0)) <= (1.0 + 1e-9) * speed * (right - left - 2e-6) / 20)


def test_output_speed_of_a_step_is_the_peak_of_the_impulse_response():
    # w' = 6 exp(−2t) from rest for a constant input of 3.
    system = ltinet.StateSpace([[-2.0]], [[1.0]], [[2.0]], output_delay=0.4, hold="zero")
    speed, _ = core_speed(system, np.full(12, 3.0), STEP * np.arange(12))
    np.testing.assert_allclose(speed, [6.0], rtol=1e-13)
