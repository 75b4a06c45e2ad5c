"""Verdicts follow from limits, and formatting of numbers."""

import math

import pytest

from ltinet.paper.comparison import ComparedNumber, Verdict, compare_exactly, format_number


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (compare_exactly("e", "k", "m", here=400, paper=400), Verdict.REPRODUCED),
        (compare_exactly("e", "k", "m", here=399, paper=400), Verdict.MISSED),
        (ComparedNumber("k", "m", here=1600, paper=1739, low=1600, high=1850), Verdict.REPRODUCED),
        (ComparedNumber("k", "m", here=1599, paper=1739, low=1600, high=1850), Verdict.MISSED),
        (ComparedNumber("k", "m", here=6.16, paper=7.42, high=6.17, lower_is_better=True), Verdict.BETTER),
        (ComparedNumber("k", "m", here=7.42, paper=7.42, high=8.0, lower_is_better=True), Verdict.REPRODUCED),
        (ComparedNumber("k", "m", here=6.18, paper=7.42, high=6.17, lower_is_better=True), Verdict.MISSED),
        (ComparedNumber("k", "m", here=2.0, paper="small", high=3.0, lower_is_better=True), Verdict.DESCRIBED),
        (ComparedNumber("k", "m", here=4.0, paper="small", high=3.0), Verdict.CONTRADICTED),
        (ComparedNumber("k", "m", here=1.2, paper="roughly 1", low=0.5, high=1.5), Verdict.REPRODUCED),
        (ComparedNumber("k", "m", here=2.967, paper="roughly 1", low=0.5, high=1.5), Verdict.MISSED),
        (ComparedNumber("k", "m", here=14.0, paper="≤ 15", high=15.0), Verdict.REPRODUCED),
        (ComparedNumber("k", "m", here=2.0), Verdict.FOR_COMPARISON),
        (ComparedNumber("k", "m", here=2.0, paper=3.0), Verdict.FOR_COMPARISON),
        (ComparedNumber("k", "m", here=2.0, high=3.0), Verdict.FOR_COMPARISON),
        (ComparedNumber("k", "m", here=4.0, high=3.0), Verdict.UNEXPECTED),
        (ComparedNumber("k", "m", here=math.nan, paper=1.0, high=3.0), Verdict.MISSED),
        (ComparedNumber("k", "m", here=math.nan, high=3.0), Verdict.UNEXPECTED),
    ],
)
def test_verdicts_are_computed(number, verdict):
    assert number.verdict == verdict


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"low": 61, "high": 61}, "= 61"),
        ({"low": 1600, "high": 1850}, "1600 to 1850"),
        ({"low": -25.6 - 2e-11, "high": -25.6 + 2e-11}, "−25.6 ± 2·10⁻¹¹"),
        ({"low": 1e5}, "≥ 10⁵"),
        ({"high": 11.2}, "≤ 11.2"),
        ({}, ""),
    ],
)
def test_limits_in_words(bounds, words):
    assert ComparedNumber("k", "m", here=1.0, **bounds).bounds == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (400, "400"),
        (25652, "25652"),
        (-25.6, "−25.6"),
        (6.162277660168146, "6.162"),
        (84768.05, "8.48·10⁴"),
        (7.57e6, "7.57·10⁶"),
        (1e-12, "10⁻¹²"),
        (-1.2776e-11, "−1.28·10⁻¹¹"),
        (0.00123456, "0.001235"),
        (math.inf, "∞"),
    ],
)
def test_format_number(value, text):
    assert format_number(value) == text
