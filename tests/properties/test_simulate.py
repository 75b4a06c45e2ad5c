"""Hypothesis: a simulation is linear, time-invariant, and the same however time and batches are cut."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ltinet
from network_examples import pattern_block

COUNTS = st.integers(1, 3)
HOLDS = st.sampled_from(["linear", "zero"])


def examples(count):
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def runs(draw, regular=False, max_times=60):
    """A stable network of one or many layers, with times, a hold and a source of random inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = pattern_block(draw(st.integers(0, 3)), draw(st.integers(0, 2)), seed=int(rng.integers(2**32)))
    n, m, p = len(A), draw(COUNTS), draw(COUNTS)
    system = A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    net = ltinet.construct(system, n_layers=1 if n and draw(st.booleans()) else None)
    n_times = draw(st.integers(1, max_times))
    t = np.arange(n_times) * 2.0 ** draw(st.integers(-6, 0))
    if not regular and draw(st.booleans()):
        t = np.sort(rng.integers(0, 2 * n_times, n_times)) * 0.125  # with jumps
    return net, t, draw(HOLDS), rng


def close(value, expected, tolerance=1e-10):
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert value.shape == expected.shape
    assert np.abs(value - expected).max(initial=0.0) <= tolerance * size


@examples(40)
@given(runs(), st.floats(-10.0, 10.0))
def test_linear_in_inputs_and_initial_states_together(run, factor):
    net, t, hold, rng = run
    u1, u2 = rng.standard_normal((2, len(t), net.n_inputs))
    x1, x2 = rng.standard_normal((2, net.n_states))
    first, second = (net.simulate(u, t, x0=x, hold=hold) for u, x in ((u1, x1), (u2, x2)))
    both = net.simulate(u1 + factor * u2, t, x0=x1 + factor * x2, hold=hold)
    close(both.y, first.y + factor * second.y)
    close(both.states, first.states + factor * second.states)
    free, forced = net.simulate(None, t, x0=x1, hold=hold), net.simulate(u1, t, hold=hold)
    close(free.y + forced.y, first.y)


@examples(40)
@given(runs(), COUNTS)
def test_a_batch_is_a_loop(run, n_batch):
    net, t, hold, rng = run
    u, x0 = rng.standard_normal((n_batch, len(t), net.n_inputs)), rng.standard_normal((n_batch, net.n_states))
    sol = net.simulate(u, t, x0=x0, hold=hold)
    singles = [net.simulate(own, t, x0=start, hold=hold) for own, start in zip(u, x0, strict=True)]
    close(sol.y, np.stack([single.y for single in singles]))
    close(sol.states, np.stack([single.states for single in singles]))


@examples(40)
@given(runs(regular=True), st.integers(0, 60))
def test_a_stepper_and_a_stream_are_the_whole(run, cut):
    net, t, hold, rng = run
    dt = float(t[1]) if len(t) > 1 else 1.0
    u, x0 = rng.standard_normal((len(t), net.n_inputs)), rng.standard_normal(net.n_states)
    whole = net.simulate(u, t, x0=x0, hold=hold)
    stepper = net.stepper(dt, hold=hold, x0=x0)
    close(np.stack([stepper.step(row) for row in u]), whole.y)
    close(stepper.x, whole.states[-1])
    chunks = np.split(u, np.unique([min(cut, len(t)), min(2 * cut, len(t))]))
    close(np.concatenate(list(net.simulate_stream(chunks, dt, hold=hold, x0=x0))), whole.y)


@examples(10)
@given(runs(regular=True, max_times=5), st.integers(1, 3000), st.integers(1, 3000))
def test_long_streams_are_the_whole(run, first, second):
    net, _, hold, rng = run
    u = rng.standard_normal((first + second, net.n_inputs))
    whole = net.simulate(u, 0.125 * np.arange(len(u)), hold=hold).y
    close(np.concatenate(list(net.simulate_stream([u[:first], u[first:]], 0.125, hold=hold))), whole)


@examples(40)
@given(runs(), st.integers(2, 5))
def test_more_samples_on_the_same_lines_change_nothing(run, parts):
    net, t, hold, rng = run
    u = ltinet.SampledSignal(t, rng.standard_normal((len(t), net.n_inputs)), hold=hold)
    x0 = rng.standard_normal(net.n_states)
    distinct = np.unique(t)
    more = np.unique(np.concatenate([distinct[:-1] + k / parts * np.diff(distinct) for k in range(parts)] + [t]))
    # Samples of the finer grid on both sides of every jump.
    twice = np.repeat(more, 2)
    values = np.stack([u.value_before(more), u.value(more)], axis=1).reshape(len(twice), net.n_inputs)
    if hold == "zero":
        values = u.value(twice)
    coarse, fine = net.simulate(u, t, x0=x0), net.simulate(values, twice, x0=x0, hold=hold)
    close(fine(distinct), coarse(distinct))
    close(coarse(more), fine(more))


@examples(40)
@given(runs(), st.sampled_from([-8.0, 0.5, 1024.0]))
def test_time_can_be_shifted(run, shift):
    net, t, hold, rng = run
    u, x0 = rng.standard_normal((len(t), net.n_inputs)), rng.standard_normal(net.n_states)
    close(net.simulate(u, t + shift, x0=x0, hold=hold).y, net.simulate(u, t, x0=x0, hold=hold).y)


@examples(30)
@given(runs())
def test_the_future_does_not_matter(run):
    net, t, hold, rng = run
    u = rng.standard_normal((len(t), net.n_inputs))
    half = (len(t) + 1) // 2
    close(net.simulate(u, t, hold=hold).y[:half], net.simulate(u[:half], t[:half], hold=hold).y)
