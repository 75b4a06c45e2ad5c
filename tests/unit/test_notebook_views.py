"""Hypothesis: what a notebook shows is well-formed, says what there is, and takes names as text, never as markup."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import ltinet
from ltinet import StateSpace, construct

NASTY = "<script>alert('x')</script> & \"F\" (N)"


class Cells(HTMLParser):
    """The texts of a table; complains about what is not closed, and about any tag that is not of a table."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert all(name == "style" for name, _ in attrs)
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def drawn(seed, n=6, m=2, p=3):
    rng = np.random.default_rng(seed)
    return StateSpace(
        rng.standard_normal((n, n)) - 3.0 * np.eye(n),
        rng.standard_normal((n, m)),
        rng.standard_normal((p, n)),
        inputs=[NASTY, *(f"u{j}" for j in range(2, m + 1))],
        outputs=[NASTY, *(f"y{i}" for i in range(2, p + 1))],
    )


def test_every_view_is_a_table_and_names_stay_text():
    system = drawn(1)
    net = construct(system)
    for view in (system, net, net.parameters, system.damping(), system.step_info(), system.step_response(input=0)):
        cells = Cells(view._repr_html_()).texts
        assert len(cells) > 5
        is_named = not isinstance(view, (ltinet.NetworkParameters, ltinet.Damping))
        assert any(NASTY[:20] in cell for cell in cells) == is_named


def test_a_system_tells_its_poles_and_its_step():
    texts = Cells(StateSpace([[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])._repr_html_()).texts
    assert "-0.2 ± 1.99i" in texts
    assert "continuous time" in texts
    assert "discrete time, dt = 0.1" in Cells(StateSpace(0.5, 1.0, 1.0, dt=0.1)._repr_html_()).texts
    static = StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 3.0)
    assert "none, a static gain" in Cells(static._repr_html_()).texts


def test_a_solution_tells_span_peak_bound_and_notes():
    sol = StateSpace(0.0, 1.0, 1.0).step_response(input=0)
    texts = Cells(sol._repr_html_()).texts
    assert f"{len(sol.t)}, from 0 to 10" in texts
    assert f"{np.abs(sol.y).max():.5g}" in texts
    assert "error bound" in texts
    assert sol.notes[0] in texts
    long = construct(StateSpace(-1.0, 1.0, 1.0)).simulate(np.ones(30_000), np.arange(30_000.0))
    assert "error bound" not in Cells(long._repr_html_()).texts  # it would take longer than the run
    empty = StateSpace(-1.0, np.zeros((1, 0)), 1.0).step_response()
    assert Cells(empty._repr_html_()).texts


def terms(side, symbol):
    """Numbers of a side, added up by what they multiply."""
    found = {}
    for sign, size, name in re.findall(rf"([−+-]?)\s*([0-9.]+(?:e[+-][0-9]+)?)?\s*({symbol})", side):
        found[name] = found.get(name, 0.0) + (-1.0 if sign in ("−", "-") else 1.0) * float(size or 1.0)
    return found


@pytest.mark.parametrize("seed", range(15))
def test_an_equation_says_what_the_neuron_is(seed):
    """Both forms are read back and compared with m, c, k and w, within the five digits that they show."""
    net = construct(drawn(seed, n=5, m=2), n_layers=1)
    digits = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
    for neuron in net.layers[0].neurons:
        own = neuron.index + 1
        expected = {(f"ξ{own}", 2): neuron.m, (f"ξ{own}", 1): neuron.c, (f"ξ{own}", 0): neuron.k}
        right = {(f"u{j + 1}", order): w for order, e in enumerate((neuron.e, neuron.v)) for j, w in enumerate(e)}
        for order, couplings in enumerate((neuron.stiffness_couplings, neuron.damping_couplings)):
            right |= {(f"ξ{own + 1 + j}", order): -value for j, value in enumerate(couplings)}
        for text, symbol in (
            (str(neuron.equation), "[ξu]\N{COMBINING DOT ABOVE}?\N{COMBINING DIAERESIS}?[₀-₉]+"),
            (re.sub(r" .cdot 10\^\{(-?)(\d+)\}", _power, neuron.equation.latex.replace(r"\,", " ")), r"\S+?_\{\d+\}"),
        ):
            for side, wanted in zip(text.split(" = "), (expected, right), strict=True):
                found = {_key(name.translate(digits)): value for name, value in terms(side, symbol).items()}
                wanted = {key: value for key, value in wanted.items() if value != 0.0}
                assert found == pytest.approx(wanted, rel=6e-5, abs=0.0)


def _power(match):
    return f"e{match[1] or '+'}{match[2]}"


def _key(name):
    """The signal and how often it is derived."""
    order = 2 if "ddot" in name or "\N{COMBINING DIAERESIS}" in name else 1 if "dot" in name or "\u0307" in name else 0
    number = re.search(r"\d+", name)[0]
    return ("u" if "u" in name.replace("mu", "") else "ξ") + number, order


def test_long_equations_and_tables_are_cut():
    wide = construct(drawn(0, n=3, m=30), n_layers=1)
    assert str(wide.layers[0].neurons[0].equation).endswith(" + …")
    assert wide.layers[0].neurons[0].equation.latex.endswith(r" + \dots")
    assert wide.layers[0].neurons[0].equation._repr_latex_().startswith("$")
    many = construct(ltinet.named_system("heat_rod", n_states=60)).parameters
    assert "⋮ 20 more" in repr(many)
    assert len(repr(many).splitlines()) == 42


def test_an_isolated_neuron_has_zero_on_its_right():
    net = construct(StateSpace(-2.0, 0.0, 1.0))
    assert str(net.layers[0].neurons[0].equation) == "ξ\N{COMBINING DOT ABOVE}₁ + 2 ξ₁ = 0"


def test_step_info_takes_names_and_shows_them():
    system = drawn(2)
    info = system.step_info(input="u2", output="y3")
    assert info.peak.shape == (1, 1)
    assert info.peak[0, 0] == pytest.approx(system.step_info().peak[2, 1], rel=1e-12)
    assert "u2      y3" in str(info)
    assert construct(system).step_info(output=1).input_names == system.input_names
    with pytest.raises(ltinet.InvalidSignalError, match="did you mean 'u2'"):
        system.step_info(input="U2")
