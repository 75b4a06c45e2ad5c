"""Hypothesis: a simulation is linear, time-invariant, and the same in all coordinates and however time is cut."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import ltinet
from hard_matrices import haar
from network_examples import pattern_block
from support.tiers import n_examples

COUNTS = st.integers(1, 3)
HOLDS = st.sampled_from(["linear", "zero"])


def examples(count):
    return settings(
        max_examples=n_examples(count), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )


@st.composite
def systems(draw):
    """A stable system of up to seven states, coupled, with a source of random numbers for what goes with it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = pattern_block(draw(st.integers(0, 3)), draw(st.integers(0, 2)), seed=int(rng.integers(2**32)))
    n, m, p = len(A), draw(COUNTS), draw(COUNTS)
    return (A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))), rng


@st.composite
def grids(draw, regular=False, max_times=60):
    """Times, evenly spaced or with jumps: some are given twice, none three times."""
    n_times = draw(st.integers(1, max_times))
    if regular or draw(st.booleans()):
        return np.arange(n_times) * 2.0 ** draw(st.integers(-6, 0))
    steps = np.array(draw(st.lists(st.integers(0, 4), min_size=n_times, max_size=n_times)))
    steps[1::2] = np.maximum(steps[1::2], 1)
    return np.cumsum(steps) * 0.125


@st.composite
def runs(draw, regular=False, max_times=60):
    """The network of one or many layers of a system, with times, a hold and a source of random inputs."""
    system, rng = draw(systems())
    net = ltinet.construct(system, n_layers=1 if len(system[0]) and draw(st.booleans()) else None)
    return net, draw(grids(regular, max_times)), draw(HOLDS), rng


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


@examples(40)
@given(runs(regular=True), st.integers(1, 40))
def test_a_delayed_input_gives_a_delayed_output(run, delay):
    net, t, hold, rng = run
    dt = float(t[1]) if len(t) > 1 else 1.0
    u = rng.standard_normal((len(t), net.n_inputs))
    u[0] = 0.0  # under linear hold the delayed input begins with a line from zero to its first sample
    late = np.vstack([np.zeros((delay, net.n_inputs)), u])
    y = net.simulate(late, dt * np.arange(len(late)), hold=hold).y
    assert not np.any(y[:delay])
    close(y[delay:], net.simulate(u, dt * np.arange(len(u)), hold=hold).y)


def in_new_states(system, S):
    """The system with states x' = S⁻¹x."""
    A, B, C, D = system
    return np.linalg.solve(S, A @ S), np.linalg.solve(S, B), C @ S, D


def assert_same_in_new_states(system, S, rng, *, t, hold):
    u, x0 = rng.standard_normal((len(t), system[1].shape[1])), rng.standard_normal(len(S))
    sol = ltinet.construct(system).simulate(u, t, x0=x0, hold=hold)
    other = ltinet.construct(in_new_states(system, S)).simulate(u, t, x0=np.linalg.solve(S, x0), hold=hold)
    close(other.y, sol.y)
    close(other.states @ S.T, sol.states)


@examples(40)
@given(systems(), grids(), HOLDS)
def test_other_coordinates_change_nothing(drawn, t, hold):
    system, rng = drawn
    n = len(system[0])
    # A rotation, units that differ by up to 2¹⁰, and another rotation.
    S = haar(n, int(rng.integers(2**32))) * 2.0 ** rng.integers(-5, 6, n) @ haar(n, int(rng.integers(2**32)))
    assert_same_in_new_states(system, S, rng, t=t, hold=hold)


@examples(40)
@given(systems(), grids(), HOLDS)
def test_the_order_of_the_states_does_not_matter(drawn, t, hold):
    system, rng = drawn
    assert_same_in_new_states(system, np.eye(len(system[0]))[rng.permutation(len(system[0]))], rng, t=t, hold=hold)


@examples(40)
@given(runs(), st.data())
def test_the_order_of_inputs_and_outputs_is_theirs(run, data):
    net, t, hold, rng = run
    system = net.to_state_space()
    inputs = data.draw(st.permutations(range(net.n_inputs)))
    outputs = data.draw(st.permutations(range(net.n_outputs)))
    u = rng.standard_normal((len(t), net.n_inputs))
    permuted = system.A, system.B[:, inputs], system.C[outputs], system.D[np.ix_(outputs, inputs)]
    close(
        ltinet.construct(permuted).simulate(u[:, inputs], t, hold=hold).y, net.simulate(u, t, hold=hold).y[:, outputs]
    )


@examples(40)
@given(systems(), grids(), st.booleans())
def test_zero_hold_is_the_recursion_with_matrix_exponentials(drawn, t, one_layer):
    # x(t + h) = e^{Ah} x + ∫₀ʰ e^{As} ds B u, both from the exponential of [[A, B], [0, 0]] h.
    (A, B, C, D), rng = drawn
    n, m = B.shape
    u, x = rng.standard_normal((len(t), m)), rng.standard_normal(n)
    net = ltinet.construct((A, B, C, D), n_layers=1 if n and one_layer else None)
    sol = net.simulate(u, t, x0=x, hold="zero")
    states = [x]
    for h, value in zip(np.diff(t), u[:-1], strict=True):
        rows = expm(h * np.block([[A, B], [np.zeros((m, n + m))]]))[:n]
        states.append(rows[:, :n] @ states[-1] + rows[:, n:] @ value)
    close(sol.states, np.array(states))
    close(sol.y, np.array(states) @ C.T + u @ D.T)
