"""Hypothesis: a function is judged by what it does between the samples, and asked a bounded number of times."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ltinet
from ltinet import FunctionSignal
from ltinet.signals import adaptive_sampling
from ltinet.signals import function as function_room
from ltinet.signals.adaptive_sampling import sample_function
from support.tiers import n_examples

PLACES = st.floats(0.05, 0.95)
# Lines are judged at three places of each interval: a kink elsewhere is seen to 0.69 of its height at least.
BETWEEN = 1.5


def examples(count):
    return settings(max_examples=n_examples(count), deadline=None, derandomize=True)


def farthest(samples, function, times):
    """How far the lines are from the function at some times, for each input relative to its largest value."""
    values = np.array([np.atleast_1d(function(time)) for time in times.tolist()])
    return float(np.max(np.abs(samples.value(times) - values) / np.abs(values).max(axis=0)))


def counted(function):
    calls = []

    def asked(t):
        calls.append(np.size(t))
        return function(t)

    return asked, calls


@examples(30)
@given(st.integers(1, 12), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(3, 12))
def test_sines_that_vanish_at_every_sample(halves, phase, n_times):
    """sin(π f s) is zero, or the same, at all whole numbers."""
    t = np.arange(float(n_times))

    def function(s):
        return np.sin(np.pi * (halves * s + phase))

    samples, _ = sample_function(FunctionSignal(function, n_inputs=1), t, tolerance=1e-6)
    assert farthest(samples, function, np.random.default_rng(0).uniform(0.0, n_times - 1.0, 3000)) <= BETWEEN * 1e-6


@examples(40)
@given(PLACES, st.floats(1.0, 60.0), st.sampled_from([0.0, 1.0, -3.0]), st.integers(2, 40), st.booleans())
def test_narrow_peaks_between_the_samples_are_seen(place, share, level, n_times, square):
    """As narrow as a few thousandths of the span, wherever they are."""
    width = 1e-3 * share  # of a span of one

    def function(s):
        away = np.abs(s - place) / width
        return level + (1.0 * (away < 0.5) if square else np.exp(-((3.0 * away) ** 2)))

    t = np.linspace(0.0, 1.0, n_times)
    samples, _ = sample_function(FunctionSignal(function, n_inputs=1), t, tolerance=1e-5)
    rng = np.random.default_rng(1)
    times = np.concatenate([rng.uniform(0.0, 1.0, 500), place + width * rng.uniform(-1.0, 1.0, 500)])
    assert farthest(samples, function, np.clip(times, 0.0, 1.0)) <= BETWEEN * 1e-5


@examples(20)
@given(st.floats(-8.0, 8.0), st.floats(0.3, 3.0))
def test_every_input_is_followed_relative_to_its_own_size(decades, rate):
    def function(s):
        return np.stack([np.cos(s), 10.0**decades * np.sin(rate * s + 1.0)], axis=-1)

    samples, _ = sample_function(FunctionSignal(function, n_inputs=2), np.arange(5.0), tolerance=1e-6)
    assert farthest(samples, function, np.random.default_rng(0).uniform(0.0, 4.0, 2000)) <= BETWEEN * 1e-6


def test_an_input_that_is_rounding_beside_another_is_not_followed():
    def function(s):
        return [np.cos(s), 1e-17 * ((1e9 * s) % 1.0)]

    samples, _ = sample_function(FunctionSignal(function, n_inputs=2), np.arange(5.0), tolerance=1e-8)
    assert len(samples.t) < 100_000


@examples(20)
@given(st.sampled_from([1.7e9, -1.7e9, 4e10]), st.floats(0.2, 5.0))
def test_sampling_with_large_offset(offset, rate):
    """Lines are compared with the function at the very times it was asked for, rounded as they are."""

    def function(s):
        return np.sin(rate * (s - offset))

    t = offset + np.arange(5.0)
    samples, _ = sample_function(FunctionSignal(function, n_inputs=1), t, tolerance=1e-6)
    times = np.random.default_rng(0).uniform(t[0], t[-1], 2000)
    assert farthest(samples, function, times) <= BETWEEN * 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("as_numbers", [False, True], ids=["of arrays", "of numbers only"])
@pytest.mark.parametrize(
    "function",
    [
        lambda s, p: 1.0 / (s - p),
        lambda s, p: 1.0 / (s - p) ** 2,
        lambda s, p: 1.0 / np.sqrt(np.abs(s - p)),
        lambda s, p: np.tan(0.5 * np.pi * (s - p + 1.0)),
        lambda s, p: np.exp(1.0 / np.maximum(p - s, 1e-2)) / (p - s),
    ],
)
@pytest.mark.parametrize("pole", [0.31415926, 3.0000001, math.e])
def test_poles_are_refused_soon(function, pole, as_numbers):
    def own(s):
        if as_numbers and np.ndim(s):
            raise TypeError
        return function(s, pole)

    asked, calls = counted(own)
    with np.errstate(all="ignore"), pytest.raises(ltinet.LtinetError, match=r"without bound|not finite|straight lines"):
        sample_function(FunctionSignal(asked, n_inputs=1), np.linspace(0.0, 10.0, 101), tolerance=1e-8)
    assert len(calls) < (500_000 if as_numbers else 5000)
    assert sum(calls) < 1_000_000


@pytest.mark.parametrize("t", [[0.0, 1.0], np.linspace(0.0, 10.0, 11), np.linspace(-1.0, 1.0, 21)])
def test_one_over_t_at_zero_is_refused_at_once(t):
    """A division by zero raises in Python, is inf in NumPy, and may be covered by the function itself."""
    for function in (lambda s: 1.0 / s, lambda s: np.divide(1.0, s), lambda s: 1.0 / s if s else 0.0):
        asked, calls = counted(function)
        with np.errstate(divide="ignore"), pytest.raises(ltinet.LtinetError, match=r"not finite|without bound"):
            sample_function(FunctionSignal(asked, n_inputs=1), np.asarray(t), tolerance=1e-8)
        assert len(calls) < 500_000


def test_arithmetic_error_names_its_time():
    with pytest.raises(ltinet.InvalidSignalError, match=r"u is not finite at t = 0\.0: float division by zero"):
        FunctionSignal(lambda s: 1.0 / s, n_inputs=1).value(np.zeros(1))
    with pytest.raises(ltinet.InvalidSignalError, match=r"u is not finite at t = 1000\.0: math range error"):
        FunctionSignal(math.exp, n_inputs=1).value(np.array([1e3]))


def test_masked_values_of_a_function_are_refused():
    with pytest.raises(ltinet.InvalidSignalError, match=r"u at t = 0\.0 has masked entries"):
        FunctionSignal(lambda _: np.ma.array([1.0], mask=[True]), n_inputs=1).value(np.zeros(1))


def test_a_function_that_oscillates_ever_faster_ends():
    asked, calls = counted(lambda s: np.sin(1.0 / (s + 1e-12)))
    with pytest.raises(ltinet.SimulationError, match=r"not within 1e-08 of straight lines on \d+ samples; .* knots="):
        sample_function(FunctionSignal(asked, n_inputs=1), np.linspace(0.0, 10.0, 101), tolerance=1e-8)
    assert sum(calls) < 20_000_000


def test_no_function_is_called_more_often_than_stated(monkeypatch):
    monkeypatch.setattr(function_room, "MAX_CALLS", 20_000)
    calls = 0

    def own(s):
        nonlocal calls
        calls += 1
        return math.sin(s)

    with pytest.raises(ltinet.SimulationError, match=r"after 20000 calls; .*raise input_tolerance"):
        FunctionSignal(own, n_inputs=1).sampled_over(np.arange(100.0), tolerance=1e-8)
    assert calls == 20_000


@pytest.mark.parametrize("n_times", [1, 2, 5])
def test_a_constant_needs_no_cuts_and_few_calls(n_times):
    asked, calls = counted(lambda s: 3.0 + 0.0 * s)
    _, parts = sample_function(FunctionSignal(asked, n_inputs=1), np.arange(float(n_times)), tolerance=1e-8)
    assert parts == 1
    assert sum(calls) <= 2 * adaptive_sampling.N_INITIAL_SAMPLES


def test_adjacent_times_are_not_subdivided():
    """Two knots beside each other, and a jump between them."""
    knot = 1.7e9
    t = np.array([knot - 1.0, knot, np.nextafter(knot, np.inf), knot + 1.0])
    samples, _ = sample_function(FunctionSignal(lambda s: 1.0 * (s > knot), n_inputs=1), t, tolerance=1e-8)
    np.testing.assert_array_equal(samples.value(t)[:, 0], [0.0, 0.0, 1.0, 1.0])
    assert np.all(np.diff(samples.t) > 0.0)
