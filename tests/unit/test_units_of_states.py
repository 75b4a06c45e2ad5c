"""Hypothesis: `construct` takes the sparser network, but not for digits that anybody would miss, and says why."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from hard_matrices import hippo_legs
from ltinet.solve.exact.digits import certified_error, surely_below


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
    assert certified_error(balanced._prepared) > 10.0 * certified_error(as_given._prepared)
    assert "states as given, for more digits" in str(net.form)


def test_files_keep_the_reason(hippo, tmp_path):
    net = ltinet.construct(hippo)
    net.save(tmp_path / "net.safetensors")
    assert ltinet.load(tmp_path / "net.safetensors").form.remarks == net.form.remarks


def test_the_sparser_network_is_taken_where_it_costs_nothing():
    units = 2.0 ** np.random.default_rng(3).integers(-20, 21, 8)
    A = np.diag(-np.arange(1.0, 9.0)) + np.triu(np.ones((8, 8)), 1)
    A = A * units[:, None] / units
    B, C = units[:, None], 1.0 / units[None, :]
    net, as_given = (ltinet.construct((A, B, C), max_condition=100.0, balance=balance) for balance in (None, False))
    assert net.n_connections < as_given.n_connections
    assert np.ptp(net.form.scaling) > 0.0
    assert net.form.remarks[0].startswith("states balanced")


def test_well_scaled_systems_are_as_they_were():
    system = ltinet.named_system("triangular")
    assert ltinet.construct(system) == ltinet.construct(system, balance=True)
    assert ltinet.construct(system).form.remarks == ()


@pytest.mark.parametrize("exponent", [0, 20, 40])
def test_an_estimate_without_cancellation_is_below_all_that_matters(exponent):
    units = 2.0 ** np.linspace(-exponent, exponent, 6).round()
    rng = np.random.default_rng(exponent)
    A = np.diag(-np.arange(1.0, 7.0)) + 0.1 * rng.standard_normal((6, 6))
    system = (
        A * units[:, None] / units,
        units[:, None] * rng.standard_normal((6, 2)),
        rng.standard_normal((2, 6)) / units,
    )
    net = ltinet.construct(system)
    assert net.n_connections == 0
    assert surely_below(net._prepared, 1e-10)
    t, u = 0.05 * np.arange(201), rng.standard_normal((201, 2))
    truth = respond(*system, np.zeros((2, 2)), None, u=u, t=t).y
    assert np.all(np.max(truth.distance(net.simulate(u, t).y), axis=-2) <= 1e-10 * truth.peak)


def test_an_estimate_tells_neurons_that_cancel():
    # y = 1e9·(x₁ − x₂) with x₁ and x₂ nearly equal: nine digits are lost whatever the units.
    A, C = np.diag([-1.0, -1.0 - 1e-9]), 1e9 * np.array([[1.0, -1.0]])
    net = ltinet.construct((A, np.ones((2, 1)), C))
    assert not surely_below(net._prepared, 1e-10)
    assert certified_error(net._prepared) > 1e-10


@pytest.mark.parametrize(("m", "p"), [(0, 1), (1, 0)])
def test_nothing_in_or_nothing_out_has_all_its_digits(m, p):
    A = np.array([[-1.0, 1e6], [1e-6, -3.0]])
    net = ltinet.construct((A, np.zeros((2, m)), np.zeros((p, 2))))
    assert surely_below(net._prepared, 1e-10)
