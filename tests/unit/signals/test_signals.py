"""Hypothesis: a signal knows its value on both sides of a jump, its slope and knots, and refuses what is none."""

import numpy as np
import pytest

import ltinet
from ltinet import FunctionSignal, SampledSignal
from ltinet.signals.refine import sample_function
from ltinet.signals.sampled import even_step


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
        ([0.0, 1.0], 3.0, "time before channels"),
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
    assert even_step(t) == pytest.approx(t[1] - t[0], rel=1e-12)


@pytest.mark.parametrize(
    "t", [[0.0], [0.0, 0.0], [0.0, 1.0, 1.0, 2.0], 1e-9 * np.array([0.0, 1.0, 2.5]), [0.0, 1.0, 2.0 + 1e-12]]
)
def test_other_times_are_not_even(t):
    assert even_step(np.array(t)) is None


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
    with pytest.raises(ltinet.InvalidSignalError, match="functions of time"):
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
