"""Hypothesis: names of inputs, outputs and states are checked once, and stay with a system wherever it goes."""

import copy
import pickle

import control
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ltinet
from ltinet._util.text import suggest_names
from ltinet.errors import InvalidSystemError
from ltinet.systems.signal_names import SignalNames
from named_signals import GIVEN, NAMES, A, B, C, named, names_of


def test_names_are_those_given_or_numbers():
    assert names_of(named()) == GIVEN
    assert names_of(ltinet.StateSpace(A, B, C)) == (("u1", "u2"), ("y1",), ("x1", "x2"))
    assert names_of(named(outputs=None)) == (GIVEN[0], ("y1",), GIVEN[2])


def test_names_are_no_part_of_equality():
    assert named() == ltinet.StateSpace(A, B, C)
    assert hash(named()) == hash(ltinet.StateSpace(A, B, C))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"inputs": ["Force (N)"]}, "1 name, but the system has 2 inputs"),
        ({"outputs": []}, "0 names, but the system has 1 output"),
        ({"inputs": ["a", "a"]}, "must be unique"),
        ({"outputs": 3}, "must be a list of names"),
        ({"states": ["x", 2]}, "must be text"),
        ({"states": ["x", " "]}, "printable characters"),
        ({"states": ["x", "\x1b[31m"]}, r"\\x1b"),
        ({"states": ["x", "\u202eabc"]}, "printable characters"),
        ({"states": ["x", "v" * 201]}, "1 to 200"),
    ],
)
def test_what_is_no_name_is_refused(names, told):
    with pytest.raises(InvalidSystemError, match=told) as caught:
        named(**names)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def test_names_survive_copies_and_pickle():
    again = pickle.loads(pickle.dumps(named()))  # noqa: S301 - our own bytes
    for other in (again, copy.deepcopy(named()), ltinet.as_state_space(named())):
        assert names_of(other) == GIVEN


@pytest.mark.parametrize("method", ["zoh", "foh", "tustin"])
def test_names_survive_sampling_and_states_keep_theirs_where_they_stay_the_same(method):
    sampled = named().to_discrete(0.1, method=method)
    back = sampled.to_continuous(method)
    states = GIVEN[2] if method == "zoh" else ("x1", "x2")
    for system in (sampled, back):
        assert names_of(system) == (*GIVEN[:2], states)


def test_print_lists_the_names_that_were_given():
    assert str(ltinet.StateSpace(A, B, C)) == repr(ltinet.StateSpace(A, B, C))
    lines = str(named(states=None)).splitlines()
    assert lines[0] == repr(named())
    assert [line.split(maxsplit=1) for line in lines[1:]] == [
        ["inputs", "Force (N), Wind (N)"],
        ["outputs", "Position (m)"],
    ]
    many = ltinet.StateSpace(-np.eye(40), np.eye(40), np.eye(40), inputs=[f"heater {k}" for k in range(40)])
    assert str(many).endswith("heater 4, … (40 in all)")


def test_labels_of_python_control_are_taken_and_its_numbers_are_not():
    plant = control.ss(A, B, C, np.zeros((1, 2)), **NAMES)
    assert names_of(ltinet.as_state_space(plant)) == GIVEN
    unnamed = control.ss(A, B, C, np.zeros((1, 2)))
    assert names_of(ltinet.as_state_space(unnamed)) == (("u1", "u2"), ("y1",), ("x1", "x2"))
    transfer = control.tf([2.0], [1.0, 0.4, 4.0], inputs=["Force (N)"], outputs=["Position (m)"])
    assert names_of(ltinet.as_state_space(transfer))[:2] == (("Force (N)",), ("Position (m)",))
    sampled = control.ss(A, B, C, np.zeros((1, 2)), 0.1, **NAMES)
    assert names_of(ltinet.as_state_space(sampled)) == GIVEN


@given(st.lists(st.text(max_size=8), max_size=4))
def test_a_list_of_texts_is_taken_as_it_is_or_refused(texts):
    right = len(set(texts)) == len(texts) and all(text.strip() and text.isprintable() for text in texts)
    try:
        names = SignalNames(tuple(texts))
    except InvalidSystemError:
        assert not right
    else:
        assert right
        assert names.inputs == tuple(texts)


def test_what_may_have_been_meant():
    known = ["Force (N)", "Torque (Nm)", "Wind"]
    assert suggest_names("force", known) == "did you mean 'Force (N)'?"
    assert suggest_names("Force [N]", known).startswith("did you mean 'Force (N)'")
    assert suggest_names("zzz", known) == "known are Force (N), Torque (Nm), Wind"
    assert suggest_names("zzz", []) == "there are none"


def test_names_of_a_system_can_be_replaced():
    system = ltinet.StateSpace(A, B, C).with_names(inputs=NAMES["inputs"], states=NAMES["states"])
    assert names_of(system) == (GIVEN[0], ("y1",), GIVEN[2])
    assert names_of(system.with_names(outputs=["y"], states=["a", "b"])) == (GIVEN[0], ("y",), ("a", "b"))
    assert names_of(system) == (GIVEN[0], ("y1",), GIVEN[2])
    with pytest.raises(InvalidSystemError, match="1 name, but the system has 2 inputs"):
        system.with_names(inputs=["a"])
    sampled = ltinet.StateSpace(A, B, C, dt=0.1).with_names(outputs=["y"])
    assert (sampled.dt, sampled.output_names) == (0.1, ("y",))
