"""Connections by names: specifications, errors with advice, names of the result, operands of all kinds."""

import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSystemError

PLANT = ltinet.tf([1], [1, 1], inputs=["u"], outputs=["y"])
PI = ltinet.pid(2.0, 1.0, inputs=["e"], outputs=["u"])
JUNCTION = ltinet.summing_junction(["r", "-y"], "e")


def loop(s):
    L = (2 + 1 / s) / (s + 1)
    return L / (1 + L)


def test_equal_names_connect():
    closed = ltinet.interconnect([PLANT, PI, JUNCTION], inputs="r", outputs=["y", "u", "e"])
    s = 0.7j
    expected = np.array([loop(s), loop(s) * (s + 1), 1 - loop(s)])
    np.testing.assert_allclose(closed(s)[:, 0], expected, rtol=1e3 * EPS)
    assert closed.input_names == ("r",)
    assert closed.output_names == ("y", "u", "e")
    assert closed.state_names == ("sys1.x1", "sys2.x1")


def test_explicit_connections_with_gains_signs_and_sums():
    closed = ltinet.interconnect(
        {"plant": PLANT, "pi": PI},
        [["plant.u", ("pi", "u", 1.0)], ["pi.e", "-plant.y"]],
        inputs=["reference", "load"],
        inplist=["pi.e", "plant.u"],
        outputs=["level", "error"],
        outlist=["plant.y", "-pi.e"],
    )
    s = 0.4 + 1j
    np.testing.assert_allclose(
        closed(s), [[loop(s), (1 - loop(s)) / (s + 1)], [loop(s) - 1, (1 - loop(s)) / (s + 1)]], rtol=1e3 * EPS
    )
    assert closed.input_names == ("reference", "load")
    assert closed.state_names == ("plant.x1", "pi.x1")


def test_networks_pairs_and_numbers_are_parts():
    parts = [("plant", ltinet.construct(PLANT)), ("gain", 3.0)]
    closed = ltinet.interconnect(parts, [["plant.u", "gain"], ["gain", "-plant"]], inplist=["gain"], outlist=["plant"])
    assert abs(closed(1j) - 3 / (1j + 4)) <= 1e3 * EPS
    assert "plant.x1" in closed.state_names


def test_loops_with_delays_in_discrete_time():
    dt = 0.1
    plant = ltinet.tf([1], [1, -0.5], dt, inputs=["u"], outputs=["y"], input_delay=2 * dt)
    gain = ltinet.ss([], [], [], 0.3, inputs=["e"], outputs=["u"])
    closed = ltinet.interconnect([plant, gain, JUNCTION], inputs=["r"], outputs=["y"])
    L = 0.3 * 1.3**-2 / (1.3 - 0.5)
    assert abs(closed(1.3) - L / (1 + L)) <= 100 * EPS
    with pytest.raises(InvalidSystemError, match=r"the delay from sys2\.u to sys1\.u cannot be moved.*ltinet\.pade"):
        ltinet.interconnect([ltinet.ss(PLANT, input_delay=0.2), gain, JUNCTION], inputs=["r"], outputs=["y"])


def test_inputs_that_stay_zero_must_be_named():
    free = ltinet.tf([[[1], [1]]], [[[1, 1], [1, 2]]], inputs=["u", "d"], outputs=["y"])
    with pytest.raises(InvalidSystemError, match=r"no source is connected to sys1\.d; .*ignore_inputs"):
        ltinet.interconnect([free, PI, JUNCTION], inputs=["r"], outputs=["y"])
    closed = ltinet.interconnect([free, PI, JUNCTION], inputs=["r"], outputs=["y"], ignore_inputs=["d"])
    assert abs(closed(1j) - loop(1j)) <= 1e3 * EPS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ltinet.interconnect([PLANT, PI, JUNCTION], inputs=["q"], outputs=["y"]), r"no input 'q'; known are"),
        (
            lambda: ltinet.interconnect([PLANT, PI, JUNCTION], inputs=["r"], outputs=["yy"]),
            r"no output 'yy'.*did you mean",
        ),
        (lambda: ltinet.interconnect([], inputs=["r"]), r"at least one system"),
        (lambda: ltinet.interconnect(PLANT), r"systems must be a list, or a mapping"),
        (lambda: ltinet.interconnect({"a.b": PLANT}), r"without a point"),
        (lambda: ltinet.interconnect([("a", PLANT), ("a", PI)]), r"unique, got 'a' twice"),
        (lambda: ltinet.interconnect({"p": PLANT}, [["p.u"]]), r"a connection is an input and its sources"),
        (lambda: ltinet.interconnect({"p": PLANT}, [["p.q", "p.y"]]), r"p has no input 'q'"),
        (lambda: ltinet.interconnect({"p": PLANT}, [[("q", 0), "p.y"]]), r"no system 'q'"),
        (lambda: ltinet.interconnect({"p": PLANT}, [[("p", 3), "p.y"]]), r"p has 1 input; there is no input 3"),
        (lambda: ltinet.interconnect({"p": PLANT}, [["p.u", ("p", "y", "2")]]), r"gain of a signal must be a number"),
        (lambda: ltinet.interconnect({"p": PLANT}, [["p.u", 1.5]]), r"signals are written"),
        (
            lambda: ltinet.interconnect({"p": ltinet.append(1, 1, 1), "q": ltinet.append(1, 1)}, [["p", "q"]]),
            r"connect as many",
        ),
        (lambda: ltinet.interconnect({"p": PLANT}, inputs=["a", "b"], inplist=["p.u"]), r"2 names for 1 signal"),
        (lambda: ltinet.interconnect({"p": PLANT}, inputs=[1]), r"inputs must be a name or a list of names"),
        (
            lambda: ltinet.interconnect({"p": PLANT, "q": PLANT}, inputs=["u"], outputs=["u"]),
            r"input of several systems",
        ),
        (lambda: ltinet.summing_junction(), r"needs names of inputs|must be a name"),
        (lambda: ltinet.summing_junction(["a"], "b", dimension=0), r"dimension must be an integer ≥ 1"),
    ],
)
def test_wrong_names_are_refused_with_advice(call, message):
    with pytest.raises(InvalidSystemError, match=message):
        call()


def test_outputs_of_the_same_name_are_added_with_a_warning():
    plant = ltinet.tf([1], [1, 1], inputs="u", outputs="y")
    gains = [ltinet.ss([], [], [], [[k]], inputs="r", outputs="u") for k in (2.0, 3.0)]
    with pytest.warns(UserWarning, match=r"sys2.u, sys3.u have the same name, and their sum drives sys1.u"):
        both = ltinet.interconnect([plant, *gains], inputs="r", outputs="y")
    assert both.dcgain() == 5.0
    with pytest.raises(ltinet.InvalidSystemError, match="did you mean 'y'"):
        ltinet.interconnect([plant, gains[0]], inputs="r", outputs="y1")
