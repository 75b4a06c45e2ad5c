"""Hypothesis: the summary data of a network survive JSON and agree with its properties."""

import json

import numpy as np
import pytest

import ltinet
from ltinet.network.summary import network_facts
from ltinet.systems.system_matrices import system_facts
from network_examples import random_network

NET = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=4))


def test_facts_are_plain_data() -> None:
    facts = network_facts(NET.network, NET.form)
    assert json.loads(json.dumps(facts)) == facts


def test_facts_are_those_of_the_network() -> None:
    facts = network_facts(NET.network, NET.form)
    for name, value in facts.items():
        if name.startswith("n_") or name in ("sparsity", "weight_norm"):
            assert value == getattr(NET, name)
        elif name in ("condition", "condition_raw", "residual"):
            assert value == getattr(NET.form, name)
    counted = [(layer["n_first_order"], layer["n_second_order"]) for layer in facts["layers"]]
    assert counted == [(layer.n_first_order, layer.n_second_order) for layer in NET.layers]


def test_facts_without_a_form() -> None:
    assert "condition" not in network_facts(random_network([[1, 2]], 1, 1), None)


@pytest.mark.parametrize("D", [[[0.0]], [[2.0]]])
def test_facts_of_systems_are_plain_data(D: list[list[float]]) -> None:
    facts = system_facts(ltinet.StateSpace(np.diag([-1.0, -3.0]), [1.0, 1.0], [1.0, 0.0], D).matrices)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["real_parts"] == [-3.0, -1.0]
    assert facts["has_feedthrough"] is (D != [[0.0]])
