"""Hypothesis: the summary of a network of any size has at most a dozen lines."""

import re

import numpy as np
import pytest

import ltinet
from ltinet.network import summary
from ltinet.network.network import Network
from ltinet.network.summary import summary_html, summary_text
from network_examples import random_layer, random_network


def many(orders, count):
    layer = random_layer(orders, 1)
    return Network([layer] * count, [np.ones((1, layer.n_states))] * count, [[0.0]])


SHAPES = {
    "static": Network([], [], [[1.0]]),
    "empty": Network([], [], np.zeros((0, 0))),
    "one": many([1], 1),
    "ten": many([2], 10),
    "four hundred": many([1], 400),
    "many coupled": many([1, 2, 2], 200),
    "every kind": random_network(((1,), (2,), (1, 1), (2, 2), (1, 2), (1, 1, 2), (2, 2, 2), (1, 1, 1)), 3, 2),
}


@pytest.fixture(scope="module")
def form():
    return ltinet.block_diagonalize(ltinet.named_system("triangular").A)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_form", [False, True])
def test_summary_text_fits_a_terminal(shape, with_form, form):
    lines = summary_text(SHAPES[shape], form if with_form else None).splitlines()
    assert len(lines) <= 12
    assert all(len(line) <= 130 for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_it_tells_layers_neurons_connections_condition_and_residual():
    net = ltinet.construct(ltinet.named_system("blobs"), n_layers=6)
    text = str(net)
    assert "10 inputs → 4 outputs" in text
    assert "89: 44 first-order, 45 second-order" in text
    assert "6: 2 first-order, 2 mixed, 2 second-order" in text
    assert f"{net.n_connections} between neurons" in text
    assert f"{net.form.condition:.4g}" in text
    assert f"{net.form.condition_raw:.4g}" in text
    assert f"{net.form.residual:.1e}" in text
    assert f"{net.n_weights} of {net.n_weights_dense}" in text
    assert f"{net.weight_norm:.4g}" in text


def test_largest_coupled_layers_are_listed_in_order():
    network = Network(
        [random_layer([1] * size, 1) for size in (1, 2, 7, 3, 9, 8, 1)],
        [np.ones((1, size)) for size in (1, 2, 7, 3, 9, 8, 1)],
        [[0.0]],
    )
    text = summary_text(network, None)
    assert re.findall(r"layer (\d)", text) == ["2", "4", "5"]
    assert "2 more coupled layers" in text


def test_the_summary_of_three_coupled_layers_lists_all():
    layers = [random_layer([1] * size, 1) for size in (2, 3, 4)]
    text = summary_text(Network(layers, [np.ones((1, size)) for size in (2, 3, 4)], [[0.0]]), None)
    assert re.findall(r"layer (\d)", text) == ["0", "1", "2"]
    assert "more coupled" not in text


def test_one_is_singular():
    text = summary_text(many([1, 1], 4), None)
    assert "1 input → 1 output\n" in text
    assert "1 more coupled layer" in text
    assert "1 more coupled layers" not in text


def test_without_a_form_there_is_no_condition():
    assert "cond(T)" not in summary_text(SHAPES["ten"], None)
    assert "static gain" in summary_text(SHAPES["static"], None)


@pytest.mark.parametrize("shape", SHAPES)
def test_html_says_the_same(shape, form):
    network = SHAPES[shape]
    html, text = summary_html(network, form), summary_text(network, form)
    assert html.startswith("<table>")
    assert html.endswith("</table>")
    assert html.count("<tr>") == html.count("</tr>") == len(text.splitlines()) - 1
    for line in text.splitlines()[1:]:
        assert re.split(r"\s{2,}", line.strip(), maxsplit=1)[1] in html


def test_html_escapes_what_it_shows(monkeypatch):
    monkeypatch.setattr(summary, "summary_rows", lambda *_: ("<title> & more", [("a < b", '<script>"x"</script>')]))
    html = summary_html(SHAPES["one"], None)
    assert "<script>" not in html
    assert "&lt;title&gt; &amp; more" in html
    assert "a &lt; b" in html
