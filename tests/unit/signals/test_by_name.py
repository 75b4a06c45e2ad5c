"""Hypothesis: inputs that come by name are those in order, whatever order the names have, or one error."""

from itertools import permutations

import numpy as np
import pytest

import ltinet
from ltinet.errors import InvalidSignalError
from ltinet.signals.conversion import match_columns
from ltinet.tables.table import Table
from named_signals import GIVEN, named

T = np.linspace(0.0, 3.0, 31)
U = np.random.default_rng(0).standard_normal((31, 2))
NET = ltinet.construct(named())
FORCE, WIND = GIVEN[0]


def test_samples_by_name_are_samples_in_order():
    expected = NET.simulate(U, T).y
    for order in permutations((0, 1)):
        given = {GIVEN[0][column]: U[:, column] for column in order}
        np.testing.assert_array_equal(NET.simulate(given, T).y, expected)


def test_numbers_stay_and_batches_spread():
    with_wind = np.column_stack([U[:, 0], np.full(31, 2.0)])
    np.testing.assert_array_equal(NET.simulate({WIND: 2.0, FORCE: U[:, 0]}, T).y, NET.simulate(with_wind, T).y)
    np.testing.assert_array_equal(NET.simulate({WIND: 2, FORCE: 0}, T).y, NET.simulate([[0, 2]] * 31, T).y)
    batch = NET.simulate({FORCE: np.stack([U[:, 0], U[:, 1]]), WIND: 2.0}, T).y
    both = np.stack([with_wind, np.column_stack([U[:, 1], np.full(31, 2.0)])])
    np.testing.assert_array_equal(batch, NET.simulate(both, T).y)


def test_functions_by_name_are_a_function_of_both():
    ours = NET.simulate({WIND: 3.0, FORCE: np.sin}, T).y
    expected = NET.simulate(lambda t: [np.sin(t), 3.0], T).y
    np.testing.assert_array_equal(ours, expected)


def test_default_names_count_inputs():
    system = named(inputs=None)
    net = ltinet.construct(system)
    np.testing.assert_array_equal(net.simulate({"u2": U[:, 1], "u1": U[:, 0]}, T).y, NET.simulate(U, T).y)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"force (N)": 0.0, WIND: 0.0},
            r"'force \(N\)' is not an input \(did you mean 'Force \(N\)'.*; it lacks 'Force \(N\)'$",
        ),
        ({}, r"it lacks 'Force \(N\)', 'Wind \(N\)'"),
        ({FORCE: 0.0, WIND: 0.0, "zzz": 1.0}, r"'zzz' is not an input \(known are Force \(N\), Wind \(N\)\)$"),
        ({FORCE: 0.0, WIND: 0.0, 3: 1.0}, "3 is not an input"),
        ({FORCE: U[:5, 0], WIND: 0.0}, r"u\['Force \(N\)'\] has shape \(5,\), but there are 31 times"),
        ({FORCE: U[:, :1], WIND: 0.0}, r"shape \(31, 1\)"),
        ({FORCE: np.zeros((2, 31)), WIND: np.zeros((3, 31))}, "batches of u have different shapes"),
        ({FORCE: np.sin, WIND: U[:, 0]}, r"samples of 'Wind \(N\)' and a function"),
        ({FORCE: "1", WIND: 0.0}, "is text"),
        ({FORCE: "\x1b[2J", WIND: 0.0}, "is text"),
        ({FORCE: 0.0, WIND: 0.0, "\x1b[2J": 1.0}, r"\\x1b"),
    ],
)
def test_mappings_must_name_every_input_once(given, told):
    with pytest.raises(InvalidSignalError, match=told) as caught:
        NET.simulate(given, T)
    assert str(caught.value).isprintable()


def table(*names):
    return Table(T, U, names, None, ())


def test_tables_are_placed_by_name_where_all_names_are_the_inputs():
    np.testing.assert_array_equal(NET.simulate(table(FORCE, WIND), T).y, NET.simulate(U, T).y)
    np.testing.assert_array_equal(NET.simulate(table(WIND, FORCE), T).y, NET.simulate(U[:, ::-1], T).y)
    np.testing.assert_array_equal(NET.simulate(table("a", "b"), T).y, NET.simulate(U, T).y)
    np.testing.assert_array_equal(NET.simulate(table("a", "b")).y, NET.simulate(U, T).y)
    np.testing.assert_array_equal(NET.simulate(table(WIND, FORCE)).t, T)
    sampled = named().to_discrete(T[1])
    np.testing.assert_array_equal(sampled.simulate(table(WIND, FORCE)).y, sampled.simulate(U[:, ::-1], T).y)
    with pytest.raises(InvalidSignalError, match="times must be multiples of the time step"):
        named().to_discrete(0.07).simulate(table(FORCE, WIND))
    np.testing.assert_array_equal(NET.simulate(table("a", WIND), T).y, NET.simulate(U, T).y)


def test_a_column_with_the_name_of_another_input_is_refused():
    with pytest.raises(
        InvalidSignalError, match=r"column 2 is named like input 1, 'Force \(N\)', and no column is named 'Wind \(N\)'"
    ):
        NET.simulate(table("gust", FORCE), T)


def test_frames_are_placed_as_tables_are():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(U, columns=[WIND, FORCE], index=T)
    np.testing.assert_array_equal(NET.simulate(frame, T).y, NET.simulate(U[:, ::-1], T).y)
    np.testing.assert_array_equal(NET.simulate(pd.DataFrame(U), T).y, NET.simulate(U, T).y)
    series = {name: frame[name] for name in frame}
    np.testing.assert_array_equal(NET.simulate(series, T).y, NET.simulate(frame, T).y)


@pytest.mark.parametrize("n_inputs", range(1, 5))
def test_places_bring_every_order_back(n_inputs):
    inputs = tuple(f"input {index}" for index in range(n_inputs))
    for columns in permutations(inputs):
        places = match_columns(columns, inputs, "it")
        assert tuple(columns[place] for place in places or range(n_inputs)) == inputs
    assert match_columns(inputs[:-1], inputs, "it") is None


def test_columns_stay_in_order_where_inputs_have_no_names():
    net = ltinet.construct(named(inputs=None))
    np.testing.assert_array_equal(net.simulate(table("u2", "u1"), T).y, net.simulate(U, T).y)
