"""Hypothesis: durations are seconds, rounded once from the exact number; dates are refused with the way out."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ltinet
from ltinet.signals.times import as_real_times
from support.tiers import n_examples

SECONDS = {
    "W": Fraction(604_800), "D": Fraction(86_400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15), "as": Fraction(1, 10**18),
}  # fmt: skip


def examples(count):
    return settings(max_examples=n_examples(count), deadline=None, derandomize=True)


@examples(300)
@given(st.sampled_from(list(SECONDS)), st.integers(-(2**53), 2**53))
def test_durations_are_rounded_once(unit, count):
    found = as_real_times(np.array([count], dtype=f"m8[{unit}]"), "t")
    assert found[0] == float(count * SECONDS[unit])  # float of a fraction is the nearest number


@examples(200)
@given(st.sampled_from(list(SECONDS)), st.integers(-(2**63) + 1, 2**63 - 1))
def test_longer_ones_are_right_to_a_unit_in_the_last_place(unit, count):
    exact = float(count * SECONDS[unit])
    assert abs(as_real_times(np.array([count], dtype=f"m8[{unit}]"), "t")[0] - exact) <= np.spacing(abs(exact))


@examples(100)
@given(st.integers(2, 60), st.integers(-(10**9), 10**9))
def test_units_of_several_count_as_often(multiple, count):
    found = as_real_times(np.array([count], dtype=f"m8[{multiple}ms]"), "t")
    assert found[0] == float(Fraction(count * multiple, 1000))


@examples(200)
@given(st.lists(st.timedeltas(), min_size=1, max_size=5))
def test_those_of_python_too(durations):
    expected = [float(Fraction(own // datetime.timedelta(microseconds=1), 10**6)) for own in durations]
    np.testing.assert_array_equal(as_real_times(durations, "t"), expected)


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (np.array(["2024-01-01", "2024-01-02"], dtype="M8[ns]"), r'pass \(t - t\[0\]\) / np\.timedelta64\(1, "s"\)'),
        (
            [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)],
            r"pass \[\(date - t\[0\]\)\.total_seconds\(\) for date in t\]",
        ),
        ([datetime.date(2024, 1, 1)], "made of dates"),
        (np.array([1, 2], dtype="m8"), "durations with no unit"),
        (np.array([1, 2], dtype="m8[Y]"), "the unit Y, whose length varies"),
        (np.array([1, "NaT"], dtype="m8[s]"), "NaT"),
        ([datetime.timedelta(1), 2.0], "entries of type timedelta"),
    ],
)
def test_invalid_durations_raise(t, message):
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        as_real_times(t, "t")


def test_the_ways_out_lead_out():
    days = np.arange("2024-01-01", "2024-01-05", dtype="M8[D]")
    np.testing.assert_array_equal(
        as_real_times((days - days[0]) / np.timedelta64(1, "s"), "t"), 86_400.0 * np.arange(4)
    )
    t = [datetime.datetime(2024, 1, 1 + k, tzinfo=datetime.UTC) for k in range(4)]
    np.testing.assert_array_equal([(own - t[0]).total_seconds() for own in t], 86_400.0 * np.arange(4))
