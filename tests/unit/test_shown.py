"""Hypothesis: whatever a file is called and whatever it holds, a message about it is one short line of visible text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltinet._util.text import escape_control_characters, format_count, format_names, format_path, format_rows, sanitize

HOSTILE = {
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x9b2J": r"\x9b2J",  # the one-byte form of the same sequences
    "one\ntwo\r": r"one\ntwo\r",
    "\u202eexe.tam": r"\u202eexe.tam",  # reads from right to left
    "zero\u200bwidth": r"zero\u200bwidth",
    "no\u00a0break": r"no\xa0break",
    "\ud83d": r"\ud83d",  # a byte of a path that is not text, as Python shows it
    "\U000e0041": r"\U000e0041",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_does_not_print_is_escaped(text):
    assert escape_control_characters(text) == sanitize(text) == format_path(text) == HOSTILE[text]


@pytest.mark.parametrize("text", ["A", "größe", "ξ̈", "状態", "C:\\models\\a.mat", "two words", ""])
def test_what_prints_stays_as_it_is(text):
    assert escape_control_characters(text) == sanitize(text) == format_path(text) == text


@given(st.text(st.characters(), max_size=400))
def test_nothing_but_visible_text_of_bounded_length_comes_out(text):
    assert escape_control_characters(text).isprintable()
    for plain, longest in ((sanitize(text), 60), (sanitize(text, longest=5), 5), (format_path(text), 240)):
        assert plain.isprintable()
        assert len(plain) <= longest
        plain.encode()  # a lone surrogate would fail here, and in a terminal


def test_a_long_name_is_cut_and_says_so():
    assert sanitize("a" * 60) == "a" * 60
    assert sanitize("a" * 61) == "a" * 59 + "…"
    assert sanitize("\x1b" * 10**7, longest=8) == "\\x1b\\x1…"


def test_a_long_path_keeps_the_name_of_the_file():
    path = Path("/", *["folder"] * 100, "system.mat")
    assert format_path(path).startswith("/folder/")
    assert format_path(path).endswith("/system.mat")


def test_of_many_names_the_first_are_listed_and_the_others_counted():
    assert format_names(["B", "A"]) == "A, B"
    assert format_names([]) == "nothing"
    assert format_names({"a\x1b": 0}) == r"a\x1b"
    listed = format_names([f"x{index:05}" for index in range(20_000)])
    assert listed == ", ".join(f"x{index:05}" for index in range(10)) + ", … and 19990 more"


@pytest.mark.parametrize(("number", "text"), [(0, "0 layers"), (1, "1 layer"), (2, "2 layers")])
def test_one_of_a_thing_is_said_without_an_s(number, text):
    assert format_count(number, "layer") == text


def test_values_stand_below_each_other():
    assert format_rows("title", [("a", "1"), ("long", "2")]) == "title\n  a     1\n  long  2"
