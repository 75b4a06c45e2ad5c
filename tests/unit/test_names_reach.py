"""Hypothesis: names reach everything that a system becomes and everything that is shown of it."""

import pickle

import control
import matplotlib.pyplot as plt
import numpy as np
import pytest

import ltinet
from ltinet.errors import InvalidSignalError
from named_signals import GIVEN, named

T = np.linspace(0.0, 3.0, 31)
U = np.ones((31, 2))
TWO = ltinet.StateSpace(
    [[0.0, 1.0], [-4.0, -0.4]], [[0.0, 0.0], [1.0, 2.0]], np.eye(2), inputs=GIVEN[0], outputs=["Weg (mm)", "v (m/s)"]
)


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(plt.Text))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_networks_are_called_as_their_systems():
    net = ltinet.construct(named())
    for other in (net, pickle.loads(pickle.dumps(net))):  # noqa: S301 - our own bytes
        assert (other.input_names, other.output_names) == GIVEN[:2]
    assert (net.to_state_space().input_names, net.to_state_space().output_names) == GIVEN[:2]
    theirs = net.to_control()
    assert isinstance(theirs, control.StateSpace)
    assert (theirs.input_labels, theirs.output_labels) == ([*GIVEN[0]], [*GIVEN[1]])
    bare = ltinet.DynamicNetwork.from_parameters(net.parameters)
    assert (bare.input_names, bare.output_names) == (("u1", "u2"), ("y1",))


def test_print_of_a_network_lists_names_where_there_are_any():
    lines = str(ltinet.construct(named())).splitlines()
    assert lines[1].split(maxsplit=1) == ["inputs", "Force (N), Wind (N)"]
    assert lines[2].split(maxsplit=1) == ["outputs", "Position (m)"]
    assert "\n  inputs " not in str(ltinet.construct(named(inputs=None, outputs=None)))
    html = ltinet.construct(named(outputs=["<b>"]))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


@pytest.mark.parametrize("engine", ["exact", "per_neuron", "per_interval"])
def test_solutions_of_every_engine_are_named(engine):
    net = ltinet.construct(TWO)
    sol = net.simulate(U, T, engine=engine)
    assert sol.output_names == ("Weg (mm)", "v (m/s)")
    assert ltinet.construct(named(outputs=None)).simulate(U, T, engine=engine).output_names == ("y1",)


def test_pictures_of_solutions_have_names():
    sol = ltinet.construct(TWO).simulate(U, T)
    shown = texts(sol.plot())
    for name in (*TWO.input_names, *TWO.output_names):
        assert name in shown
    assert "other" in texts(sol.plot(names=["other", "names"]))
    assert "Weg" not in texts(sol.plot(names=["other", "names"]))


@pytest.mark.parametrize("thing", [TWO, ltinet.construct(TWO)], ids=["system", "network"])
def test_pictures_of_responses_have_names(thing):
    for draw in (thing.plot.step, thing.plot.impulse, thing.plot.bode):
        shown = texts(np.ravel(draw())[0].figure)
        for name in (*TWO.input_names, *TWO.output_names):
            assert name in shown


@pytest.mark.parametrize("thing", [TWO, ltinet.construct(TWO)], ids=["system", "network"])
def test_inputs_and_outputs_are_chosen_by_name(thing):
    for respond in (thing.step_response, thing.impulse_response):
        one = respond(T, input="Wind (N)", output="v (m/s)")
        np.testing.assert_array_equal(one.y, respond(T, input=1, output=1).y)
        assert one.output_names == ("v (m/s)",)
        assert "v (m/s)" in texts(one.plot())
    assert thing.initial_response([1.0, 0.0], T, output="Weg (mm)").output_names == ("Weg (mm)",)
    with pytest.raises(InvalidSignalError, match=r"no output 'weg'; did you mean 'Weg \(mm\)'"):
        thing.step_response(output="weg")
    with pytest.raises(InvalidSignalError, match="no input 'zzzzz'; known are Force"):
        thing.step_response(input="zzzzz")


def test_numbers_are_names_where_nobody_gave_any():
    plain = named(inputs=None)
    np.testing.assert_array_equal(plain.step_response(T, input="u2").y, plain.step_response(T, input=1).y)


def test_frames_have_names():
    pytest.importorskip("pandas")
    frame = ltinet.construct(TWO).simulate(U, T).to_frame()
    assert [*frame.columns] == ["Weg (mm)", "v (m/s)"]
