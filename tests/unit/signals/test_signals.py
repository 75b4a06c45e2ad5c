"""Hypothesis: a signal knows its value on both sides of a jump, its slope and knots, and refuses what is none."""

import math

import numpy as np
import pytest

import ltinet
from ltinet import FunctionSignal, SampledSignal
from ltinet.signals.adaptive_sampling import sample_function
from ltinet.signals.times import uniform_step


def test_lines_between_samples_and_their_slopes():
    signal = SampledSignal([0.0, 1.0, 3.0], [[0.0], [2.0], [4.0]])
    t = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(signal.value(t)[:, 0], [0.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(signal.derivative(t)[:, 0], [2.0, 2.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(signal.knots, [0.0, 1.0, 3.0])


def test_steps_are_right_continuous():
    signal = SampledSignal([0.0, 1.0, 2.0], [1.0, 5.0, 7.0], hold="zero")
    t = np.array([0.0, 0.9, 1.0, 2.0])
    np.testing.assert_array_equal(signal.value(t)[:, 0], [1.0, 1.0, 5.0, 7.0])
    np.testing.assert_array_equal(signal.value_before(t)[:, 0], [1.0, 1.0, 1.0, 5.0])
    np.testing.assert_array_equal(signal.derivative(t), np.zeros((4, 1)))


def test_a_time_given_twice_is_a_jump():
    signal = SampledSignal([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0])
    at = np.array([1.0])
    assert signal.value_before(at)[0, 0] == 1.0
    assert signal.value(at)[0, 0] == 5.0
    assert signal.derivative(at)[0, 0] == 1.0
    np.testing.assert_array_equal(signal.knots, [0.0, 1.0, 2.0])


def test_a_jump_at_the_first_and_at_the_last_time():
    signal = SampledSignal([0.0, 0.0, 1.0, 1.0], [0.0, 2.0, 3.0, 9.0])
    np.testing.assert_array_equal(signal.value(np.array([0.0, 1.0]))[:, 0], [2.0, 9.0])
    assert signal.value_before(np.array([1.0]))[0, 0] == 3.0


def test_samples_are_copied_and_frozen():
    u = np.ones((2, 1))
    signal = SampledSignal([0.0, 1.0], u)
    u[0] = 7.0
    assert signal.u[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        signal.u[0] = 7.0


@pytest.mark.parametrize(
    ("t", "u", "message"),
    [
        ([0.0, 2.0, 1.0], np.zeros((3, 1)), "must not descend"),
        ([0.0, np.nan, 1.0], np.zeros((3, 1)), "not finite"),
        ([0.0, np.inf], np.zeros((2, 1)), "not finite"),
        ([], np.zeros((0, 1)), "at least one time"),
        ([[0.0, 1.0]], np.zeros((2, 1)), "at least one time"),
        ([0.0, 1.0, 2.0], np.zeros((1, 3)), "time before channels"),
        ([0.0, 1.0], [[0.0], [np.nan]], "not finite"),
        ([0.0, 1.0], [1j, 0.0], "real numbers"),
        ([0.0, 1.0], 3.0, "u has 1 sample .* 2 times"),
    ],
)
def test_what_is_no_signal_is_refused(t, u, message):
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        SampledSignal(t, u)


def test_an_unknown_hold_is_refused():
    with pytest.raises(ltinet.InvalidSignalError, match="hold"):
        SampledSignal([0.0, 1.0], [0.0, 1.0], hold="cubic")


@pytest.mark.parametrize(
    "t", [np.linspace(0.0, 1.0, 101), 1e-9 * np.arange(1000), 5.0 + np.arange(0.0, 3.0, 0.1), np.arange(100_000) * 0.01]
)
def test_times_of_linspace_and_arange_are_even(t):
    assert uniform_step(t) == pytest.approx(t[1] - t[0], rel=1e-12)


@pytest.mark.parametrize(
    "t", [[0.0], [0.0, 0.0], [0.0, 1.0, 1.0, 2.0], 1e-9 * np.array([0.0, 1.0, 2.5]), [0.0, 1.0, 2.0 + 1e-12]]
)
def test_other_times_are_not_even(t):
    assert uniform_step(np.array(t)) is None


def test_a_function_with_its_derivative_and_a_jump():
    signal = FunctionSignal(
        lambda t: [t, 1.0 if t >= 1.0 else 0.0], n_inputs=2, derivative=lambda _: [1.0, 0.0], knots=[1.0]
    )
    at = np.array([0.5, 1.0])
    np.testing.assert_array_equal(signal.value(at), [[0.5, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(signal.value_before(at), [[0.5, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(signal.derivative(at), [[1.0, 0.0], [1.0, 0.0]])


def test_a_function_of_one_input_may_return_a_number_and_no_other_shape():
    assert FunctionSignal(np.cos, n_inputs=1).value(np.zeros(1)).shape == (1, 1)
    with pytest.raises(ltinet.InvalidSignalError, match="one number per input"):
        FunctionSignal(np.cos, n_inputs=2).value(np.zeros(1))
    with pytest.raises(ltinet.InvalidSignalError, match="not finite"):
        FunctionSignal(lambda _: np.nan, n_inputs=1).value(np.zeros(1))
    with pytest.raises(ltinet.InvalidSignalError, match="must be callable"):
        FunctionSignal([1.0], n_inputs=1)


@pytest.mark.parametrize("t", [np.linspace(0.0, 6.0, 7), np.array([0.0, 0.5, 2.0, 6.0])])
def test_samples_of_a_function_are_as_close_as_asked(t):
    samples, parts = sample_function(FunctionSignal(np.cos, n_inputs=1), t, tolerance=1e-6)
    inside = np.linspace(0.0, 6.0, 9973)
    assert np.abs(samples.value(inside)[:, 0] - np.cos(inside)).max() <= 1.01e-6
    np.testing.assert_allclose(samples.t[::parts], t, atol=1e-15)


@pytest.mark.parametrize("periods", [1, 2, 4, 8, 64])
def test_a_period_of_the_samples_is_no_constant(periods):
    samples, _ = sample_function(
        FunctionSignal(lambda t: np.cos(2.0 * np.pi * periods * t), n_inputs=1), np.arange(4.0), tolerance=1e-4
    )
    inside = np.linspace(0.0, 3.0, 997)
    assert np.abs(samples.value(inside)[:, 0] - np.cos(2.0 * np.pi * periods * inside)).max() <= 1.1e-4


def test_a_jump_at_a_knot_is_sampled_on_both_sides():
    step = FunctionSignal(lambda t: float(t >= 0.3), n_inputs=1, knots=[0.3])
    samples, _ = sample_function(step, np.linspace(0.0, 1.0, 5), tolerance=1e-8)
    assert np.count_nonzero(samples.t == 0.3) == 2
    np.testing.assert_array_equal(samples.value(np.array([0.29, 0.3, 0.31]))[:, 0], [0.0, 1.0, 1.0])


def test_a_function_that_is_zero_needs_no_refinement():
    samples, parts = sample_function(FunctionSignal(lambda _: 0.0, n_inputs=1), np.arange(3.0), tolerance=1e-8)
    assert parts == 1
    assert not samples.u.any()


def test_a_knot_on_an_even_grid_is_met_to_the_bit():
    t = np.arange(11) / 10
    knot = 0.3  # 3/10, but not 3 · 0.1
    assert knot in t
    assert knot not in 0.1 * np.arange(11)
    step = FunctionSignal(lambda t: 1.0 + (t >= knot) + 0.01 * t**2, n_inputs=1, knots=[knot])
    samples, parts = sample_function(step, t, tolerance=1e-6)
    assert np.count_nonzero(samples.t == knot) == 2
    assert len(samples.t) == 10 * parts + 2
    inside = np.linspace(0.0, 1.0, 997)
    # max |u| = 2.01
    assert np.abs(samples.value(inside)[:, 0] - step.value(inside)[:, 0]).max() <= 2.01e-6


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
@pytest.mark.parametrize(
    "function",
    [
        lambda t: np.abs(np.sin(t)),
        lambda t: np.sin(t) + (t >= np.e),
        lambda t: np.sign(np.sin(20.0 * t)),
        lambda t: np.exp(-(((t - np.e) / 0.03) ** 2)),
        lambda t: np.sqrt(np.abs(t - np.e)),
        lambda t: np.where(t < 2.0, t, np.where(t < 2.0 + 1e-6, 2.0, 1.0)),
    ],
    ids=["kinks", "jump", "square wave", "peak", "root", "two jumps close together"],
)
def test_undeclared_kinks_are_bisected(function, tolerance):
    t = np.linspace(0.0, 10.0, 101)
    samples, _ = sample_function(FunctionSignal(function, n_inputs=1), t, tolerance=tolerance)
    assert len(samples.t) < 200_000
    assert np.all(np.isin(t, samples.t))
    random = np.random.default_rng(0)
    inside = np.concatenate([random.uniform(0.0, 10.0, 20_000), np.e + 1e-9 * random.standard_normal(100)])
    # Lines are judged at three places of each interval: at others they may be a little farther off.
    allowed = 1.5 * tolerance * np.abs(function(inside)).max()
    assert np.abs(samples.value(inside)[:, 0] - function(inside)).max() <= allowed


def test_a_function_that_is_nowhere_smooth_is_refused_soon():
    calls = []

    def noise(t):
        calls.append(np.size(t))
        return (1e9 * t) % 1.0

    with pytest.raises(ltinet.SimulationError, match="declare them"):
        sample_function(FunctionSignal(noise, n_inputs=1), np.linspace(0.0, 10.0, 101), tolerance=1e-8)
    assert sum(calls) < 100_000


def _counting(function):
    calls = []

    def counted(t):
        calls.append(np.ndim(t))
        return function(t)

    return counted, calls


TIMES = np.linspace(0.0, 3.0, 50)
COLUMNS = np.column_stack([np.cos(TIMES), np.full(50, 2.0), TIMES])


@pytest.mark.parametrize(
    "function",
    [
        lambda t: np.stack([np.cos(t), 2.0 + 0.0 * t, t], axis=-1),
        lambda t: [np.cos(t), 2.0, t],
        lambda t: (np.cos(t), 2.0 + 0.0 * t, t),
        lambda t: np.array([np.cos(t), 2.0 + 0.0 * t, t]),
    ],
    ids=["(T, m)", "list with a number", "tuple", "(m, T)"],
)
def test_a_function_of_many_times_is_called_once_for_all(function):
    counted, calls = _counting(function)
    np.testing.assert_allclose(FunctionSignal(counted, n_inputs=3).value(TIMES), COLUMNS, rtol=1e-15)
    assert calls.count(1) == 1
    assert len(calls) < 10  # and a few single times, to compare


@pytest.mark.parametrize(
    "function",
    [
        lambda t: [math.cos(t), 2.0, t],  # raises
        lambda t: [math.cos(np.min(t)), 2.0, np.min(t)],  # the same for all
        lambda t: [np.cos(t), 2.0, t] if np.ndim(t) == 0 else np.zeros((50, 3)),  # another function
        lambda t: [np.cos(t), 2.0, t] if np.ndim(t) == 0 else np.zeros(3),
        lambda t: [np.cos(t), 2.0, t] if np.ndim(t) == 0 else [t, t],
        lambda t: [np.cos(t), 2.0, t] if np.ndim(t) == 0 else "times",
        lambda t: [np.cos(t), 2.0, t] if np.ndim(t) == 0 else np.zeros((50, 3), dtype=complex),
    ],
)
def test_ambiguous_vectorized_results_are_not_used(function):
    np.testing.assert_allclose(FunctionSignal(function, n_inputs=3).value(TIMES), COLUMNS, rtol=1e-15)


@pytest.mark.parametrize("transposed", [False, True])
def test_as_many_times_as_inputs_are_not_misread(transposed):
    """With T = m either axis could be time."""
    t = np.arange(20.0)
    rates = 1.0 + 0.1 * np.arange(20.0)

    def function(t):
        return np.multiply.outer(rates, t) if transposed else np.multiply.outer(t, rates)

    counted, calls = _counting(function)
    expected = np.multiply.outer(t, rates)
    np.testing.assert_allclose(FunctionSignal(counted, n_inputs=20).value(t), expected, rtol=1e-15)
    assert len(calls) < 10  # understood, not only given up

    def constant(_):
        return rates

    np.testing.assert_array_equal(FunctionSignal(constant, n_inputs=20).value(t), np.tile(rates, (20, 1)))


def test_a_function_of_times_that_it_changes_does_no_harm():
    def function(t):
        t *= 1.0
        t += 1.0
        return t

    t = TIMES.copy()
    np.testing.assert_array_equal(FunctionSignal(function, n_inputs=1).value(t)[:, 0], TIMES + 1.0)
    np.testing.assert_array_equal(t, TIMES)


@pytest.mark.parametrize("n_times", [1, 30])
def test_complex_values_of_a_function_are_refused(n_times):
    with pytest.raises(ltinet.InvalidSignalError, match="all real"):
        FunctionSignal(lambda t: 1j * t, n_inputs=1).value(TIMES[:n_times])


@pytest.mark.parametrize("n_times", [1, 30])
def test_the_error_of_a_function_is_its_own(n_times):
    def broken(_):
        raise KeyError("no such table")

    with pytest.raises(KeyError, match="no such table"):
        FunctionSignal(broken, n_inputs=1).value(TIMES[:n_times])


def test_one_time_is_not_finite_among_many():
    with pytest.raises(ltinet.InvalidSignalError, match=r"not finite at t = 0\.5"):
        FunctionSignal(lambda t: np.where(t == 0.5, np.inf, t), n_inputs=1).value(np.linspace(0.0, 1.0, 101))


def test_object_with_missing_signal_members():
    class Nearly:
        n_inputs = 1

        def value(self, t):
            return t[:, None]

    with pytest.raises(ltinet.InvalidSignalError, match=r"without members of a signal: batch_shape, .*value_before"):
        ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).simulate(Nearly(), [0.0, 1.0])


def test_invalid_polynomials_raise():
    with pytest.raises(ltinet.InvalidSignalError, match=r"breaks\[0\] and the next are both 0"):
        ltinet.PolynomialSignal([0.0, 0.0, 1.0], np.zeros((2, 2, 1)))
    with pytest.raises(ltinet.InvalidSignalError, match="coefficients has entries that are not finite"):
        ltinet.PolynomialSignal([0.0, 0.5, 1.0], np.full((2, 2, 1), np.nan))
