"""Hypothesis: the house stays one that a newcomer can read: short files, short functions, types and docstrings."""

import statistics

from house import House, percentile, survey

HOUSE: House = survey()


def test_files_are_short() -> None:
    assert statistics.median(HOUSE.file_lengths.values()) <= 100
    assert {name: length for name, length in HOUSE.file_lengths.items() if length > 350} == {}


def test_few_files_stand_directly_in_solve() -> None:
    assert HOUSE.files_in["solve"] <= 8


def test_functions_are_short() -> None:
    assert percentile(list(HOUSE.function_lengths.values()), 0.9) <= 20
    assert {name: length for name, length in HOUSE.function_lengths.items() if length > 70} == {}


def test_everything_is_typed() -> None:
    assert HOUSE.untyped == ()


def test_public_names_have_docstrings() -> None:
    assert HOUSE.documented >= 0.98, HOUSE.undocumented


def test_the_survey_is_printed() -> None:
    assert "median" in str(HOUSE)
