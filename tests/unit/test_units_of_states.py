"""Hypothesis: `construct` takes the sparser network, unless its T costs digits, and says why."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from hard_matrices import hippo_legs

COSTLY_CONDITION = 1e-9 / np.finfo(float).eps


@pytest.fixture(scope="module")
def hippo():
    """Balanced it has fewer connections, and loses seven digits to the scaling."""
    n = 64
    return ltinet.StateSpace(hippo_legs(n), np.sqrt(2.0 * np.arange(n) + 1.0)[:, None], np.ones((1, n)))


@pytest.mark.slow
def test_digits_count_more_than_connections(hippo):
    net, balanced, as_given = (ltinet.construct(hippo, balance=balance) for balance in (None, True, False))
    assert balanced.n_connections < as_given.n_connections == net.n_connections
    assert net == as_given
    assert balanced.form.condition_raw > COSTLY_CONDITION >= net.form.condition_raw
    assert "states as given, for accuracy" in str(net.form)


def test_files_keep_the_reason(hippo, tmp_path):
    net = ltinet.construct(hippo)
    net.save(tmp_path / "net.safetensors")
    assert ltinet.load(tmp_path / "net.safetensors").form.decisions == net.form.decisions


def test_the_sparser_network_is_taken_where_it_costs_nothing():
    units = 2.0 ** np.random.default_rng(3).integers(-8, 9, 8)
    A = np.diag(-np.arange(1.0, 9.0)) + np.triu(np.ones((8, 8)), 1)
    A = A * units[:, None] / units
    B, C = units[:, None], 1.0 / units[None, :]
    net, as_given = (ltinet.construct((A, B, C), max_condition=100.0, balance=balance) for balance in (None, False))
    assert net.n_connections < as_given.n_connections
    assert np.ptp(net.form.scaling) > 0.0
    assert net.form.decisions[0].startswith("states balanced")


def test_well_scaled_systems_are_as_they_were():
    system = ltinet.named_system("triangular")
    assert ltinet.construct(system) == ltinet.construct(system, balance=True)
    assert ltinet.construct(system).form.decisions == ()


@pytest.mark.parametrize("exponent", [0, 20, 40])
def test_units_that_are_decades_apart_cost_outputs_no_digit(exponent):
    units = 2.0 ** np.linspace(-exponent, exponent, 6).round()
    rng = np.random.default_rng(exponent)
    A = np.diag(-np.arange(1.0, 7.0)) + 0.1 * rng.standard_normal((6, 6))
    system = (
        A * units[:, None] / units,
        units[:, None] * rng.standard_normal((6, 2)),
        rng.standard_normal((2, 6)) / units,
    )
    net = ltinet.construct(system)
    t, u = 0.05 * np.arange(201), rng.standard_normal((201, 2))
    truth = respond(*system, np.zeros((2, 2)), None, u=u, t=t).y
    for coordinates in ("auto", "blocks"):
        error = truth.distance(net.simulate(u, t, coordinates=coordinates).y)
        assert np.all(np.max(error, axis=-2) <= 1e-10 * truth.peak)
