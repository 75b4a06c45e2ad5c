"""Hypothesis: an address and a state say the same, and what is no state is refused in a sentence."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltinet.explorer.state import InvalidStateError, ViewState, parse_state
from ltinet.explorer.subject import readable_budgets

FILES = st.integers(0, 2**256 - 1).map(lambda number: f"file:{number:064x}")
COLUMNS = st.lists(st.integers(0, 9999), max_size=5).map(tuple)
STATES = st.builds(
    ViewState,
    system=FILES | st.sampled_from(["example:triangular", "example:no_such"]),
    k=st.floats(1.0, 1e300) | st.just(math.inf),
    order=st.none() | st.integers(1, 1000),
    u=FILES | st.sampled_from(["step", "impulse", "chirp"]),
    T=st.none() | st.floats(1e-300, 1e300),
    input=st.integers(1, 1000),
    output=st.integers(1, 1000),
    pick=st.none() | st.tuples(st.integers(0, 999_999), st.integers(0, 999_999)),
    drive=COLUMNS,
    answer=COLUMNS,
)


@given(STATES)
def test_a_state_comes_back_from_its_address(state: ViewState) -> None:
    from urllib.parse import parse_qsl

    assert parse_state(dict(parse_qsl(state.query()))) == state


@pytest.mark.parametrize(
    "query",
    [
        {"system": "../../etc/passwd"},
        {"system": "file:/etc/passwd"},
        {"system": "file:" + "0" * 63},
        {"system": "example:<img onerror=alert(1)>"},
        {"k": "0.99"},
        {"k": "nan"},
        {"k": "1" * 400},
        {"order": "0"},
        {"order": "-3"},
        {"order": "٣"},
        {"order": "9" * 100},
        {"u": "exec"},
        {"T": "0"},
        {"T": "inf"},
        {"T": "1e-400"},
        {"pick": "1"},
        {"pick": "1.2.3"},
        {"drive": "1,,2"},
        {"__class__": "x"},
    ],
)
def test_what_is_no_state_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidStateError, match="address"):
        parse_state(query)


@given(st.lists(st.floats(1.0, 1e16), min_size=1, max_size=40, unique=True).map(sorted))
def test_each_budget_buys_its_rung_and_not_the_next(conditions: list[float]) -> None:
    budgets = readable_budgets(conditions)
    for place, budget in enumerate(budgets):
        assert sum(condition <= budget for condition in conditions) == place + 1


def test_budgets_have_few_digits() -> None:
    assert readable_budgets([1.0, 1.2561, 2.16901, 10.3076, 10.3082]) == (1.0, 1.26, 2.17, 10.308, 10.4)
