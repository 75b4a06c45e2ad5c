"""Hypothesis: times are judged by their steps; an offset adds nothing but the rounding of the times themselves."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ltinet
from ltinet import SampledSignal
from ltinet.signals.times import TimeAxis, as_real_times, as_time_step, as_times, uniform_step
from support.tiers import n_examples

EPS = np.finfo(float).eps
OFFSETS = st.sampled_from([0.0, 1.0, -3.0, 86_400.0, -1e6, 1.7e9, -1.7e9, 4e12])
STEPS = st.floats(-9.0, 4.0).map(lambda power: 10.0**power)


def examples(count):
    return settings(max_examples=n_examples(count), deadline=None, derandomize=True)


def made(way, offset, step, n):
    """Even times as people make them."""
    if way == "sum":
        return offset + step * np.arange(n)
    if way == "linspace":
        return np.linspace(offset, offset + step * (n - 1), n)
    return offset + np.arange(n) / (1.0 / step)


def farthest(t, step):
    """How far times are from t[0] + k·step, in rational numbers."""
    grid = (Fraction(t[0].item()) + k * Fraction(step) for k in range(len(t)))
    return float(max(abs(Fraction(own) - even) for own, even in zip(t.tolist(), grid, strict=True)))


@examples(150)
@given(st.sampled_from(["sum", "linspace", "quotient"]), OFFSETS, STEPS, st.integers(2, 3000))
def test_times_made_evenly_are_even_where_rounding_is_small_beside_the_step(way, offset, step, n):
    t = made(way, offset, step, n)
    rounding = EPS * np.abs(t).max()
    found = uniform_step(t)
    if rounding <= 1e-7 * step:  # a tenth of what may be absorbed; rounding is a few of these units at most
        assert found is not None
        # Both ends are off by rounding, and their distance is n − 1 steps.
        assert abs(found - step) <= 4.0 * rounding / (n - 1)
    elif found is not None:  # then as close to even as it claims
        assert farthest(t, found) <= 1.001e-6 * found


@examples(150)
@given(OFFSETS, STEPS, st.integers(3, 300), st.integers(1, 298), st.floats(2e-6, 0.9), st.booleans())
def test_a_step_that_differs_is_never_absorbed(offset, step, n, place, share, later):
    """Whatever the offset: one time off by a share of the step that rounding to the offset's grid leaves alone."""
    t = offset + step * np.arange(n)
    place = 1 + place % (n - 2)
    moved = t[place] + (share if later else -share) * step
    t[place] = moved
    t = np.sort(t)
    mean = (t[-1] - t[0]) / (n - 1)
    if farthest(t, mean) > 1.001e-6 * mean:
        assert uniform_step(t) is None


@examples(200)
@given(OFFSETS, st.integers(0, 12), st.integers(3, 200), st.integers(0, 198))
def test_repeated_times_are_never_even(offset, ulps, n, place):
    """Also where all steps are a few units in the last place."""
    step = 2.0**ulps * np.spacing(abs(offset) + 4096.0)
    k = np.arange(n)
    k[place % (n - 1) + 1 :] -= 1
    t = offset + step * k
    assert uniform_step(t) is None
    assert TimeAxis.of(t).step is None
    assert len(SampledSignal(t, np.arange(float(n))).knots) == n - 1


@pytest.mark.parametrize("n", [10_001, 1_000_001, 10_000_000])
def test_many_even_times_are_even(n):
    """Rounding grows with the time, not with the step: of 10⁷ times it is 1e-9 of a step."""
    assert uniform_step(0.01 * np.arange(n)) == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([1.0] * 501, "all 501 times are 1.0; a time given twice marks a jump"),
        ([0.0, 1.0, 1.0, 1.0, 2.0], r"t\[1\] and the 2 times after it are all 1\.0"),
        (1.7e9 + 5e-8 * np.arange(40), "times after it are all 1700000000.0"),
        ([-1.7e308, 1.7e308], "spans more than double precision holds"),
        ([1.7e9, 1.7e9 + 1e-6, 1.7e9], r"t\[1\] = 1700000000\.000001 comes before t\[2\] = 1700000000\.0"),
    ],
)
def test_what_is_no_time_axis_is_refused(t, message):
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        TimeAxis.of(t)


@examples(100)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_a_time_may_come_twice_but_not_three_times(steps):
    t = np.cumsum(steps, dtype=float)
    most = max(np.unique(t, return_counts=True)[1])
    if most <= 2:
        np.testing.assert_array_equal(TimeAxis.of(t).t, t)
    else:
        with pytest.raises(ltinet.InvalidSignalError, match="a time given twice marks a jump"):
            TimeAxis.of(t)


def test_queries_and_knots_may_repeat():
    assert len(as_times([1.0, 1.0, 1.0], "knots")) == 3


@pytest.mark.parametrize(
    "t",
    [
        np.array([10**18, 10**18 + 1, 10**18 + 2]),
        np.array([2**53, 2**53 + 1], dtype=np.uint64),
        (1_700_000_000 * 10**9 + 100 * np.arange(5)).astype("m8[ns]"),
    ],
)
def test_times_that_double_precision_cannot_tell_apart_are_refused(t):
    with pytest.raises(ltinet.InvalidSignalError, match=r"subtract the first time before: t - t\[0\]"):
        as_real_times(t, "t")
    assert np.all(np.diff(as_real_times(t - t[0], "t")) > 0.0)


@pytest.mark.parametrize(
    ("dt", "message"),
    [
        ("0.1", "dt is text, '0.1'"),
        (None, "dt has entries of type NoneType"),
        (0.0, "dt is 0.0"),
        (-1, "dt is -1.0"),
        (np.nan, "dt is nan"),
        (np.inf, "dt is inf"),
        ([0.1, 0.2], r"dt has shape \(2,\)"),
        (0.1 + 0j, "dt is complex"),
        (np.ma.masked, "dt has masked entries"),
        (np.datetime64("2024-01-01"), "dt is made of dates"),
    ],
)
def test_what_is_no_time_step_is_refused(dt, message):
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        as_time_step(dt, "dt")


def test_time_steps():
    assert as_time_step(np.float32(0.5), "dt") == 0.5
    assert as_time_step(np.timedelta64(250, "ms"), "dt") == 0.25
