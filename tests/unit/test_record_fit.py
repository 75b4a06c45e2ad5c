"""How well a model explains a record: the same definition for systems, networks and what was identified."""

import numpy as np
import pytest

import ltinet

DT = 0.125
T = DT * np.arange(300)


def plant(**settings):
    return ltinet.StateSpace(
        [[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0], [0.0, 1.0]], hold="zero", sample_time=DT, **settings
    )


@pytest.fixture
def u():
    return np.random.default_rng(5).standard_normal(300)


@pytest.mark.parametrize(
    "settings",
    [{}, {"input_delay": 0.5, "u0": 1.0, "y0": [300.0, -2.0]}, {"input_delay": 0.3, "output_delay": [0, 0.2]}],
)
def test_a_model_explains_its_own_outputs_from_any_state(u, settings):
    system = plant(**settings)
    y = system.simulate(u, T, x0=[3.0, -1.0]).y
    for model in (system, ltinet.construct(system)):
        assert np.all(model.fit(u, y) > 100.0 - 1e-6)
        assert np.all(model.fit(u[40:], y[40:], dt=DT) > 100.0 - 1e-6)
        assert np.all(model.fit(u, y, from_rest=True) < 99.0)
    rested = system.simulate(u, T).y
    assert np.all(system.fit(u, rested, t=T, from_rest=True) > 100.0 - 1e-9)


def test_a_fit_is_one_minus_the_error_by_the_deviation(u):
    system = plant()
    y = system.simulate(u, T).y
    off = y + np.random.default_rng(6).standard_normal(y.shape)
    expected = 100.0 * (1.0 - np.linalg.norm(off - y, axis=0) / np.linalg.norm(off - off.mean(axis=0), axis=0))
    assert np.allclose(system.fit(u, off, from_rest=True), expected, rtol=1e-12)


def test_uneven_times_gaps_and_experiments(u):
    system = plant(input_delay=0.25)
    uneven = np.cumsum(np.random.default_rng(7).uniform(0.05, 0.2, 300))
    assert np.all(system.fit(u, system.simulate(u, uneven, x0=[1.0, 2.0]).y, t=uneven) > 100.0 - 1e-6)
    y = system.simulate(u, T, x0=[1.0, 2.0]).y
    gaps = y.copy()
    gaps[100:103] = np.nan
    assert np.all(system.fit(u, gaps) > 100.0 - 1e-6)
    assert np.all(system.fit([u, u[50:]], [y, y[50:]]) > 100.0 - 1e-6)


def test_found_and_its_network_fit_alike(u):
    y = plant(input_delay=0.5, y0=[300.0, 5.0]).simulate(u, T).y + 0.01 * np.random.default_rng(8).standard_normal(
        (300, 2)
    )
    found = ltinet.identify(u, y, dt=DT, order=2)
    assert np.array_equal(found.fit(u[80:], y[80:]), found.net.fit(u[80:], y[80:]))
    assert np.allclose(found.fit(), found.fit(u, y), rtol=1e-9)
    assert np.all(found.fit(u, y, from_rest=True) > 90.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"u": np.ones(9), "y": np.ones((9, 2))}, "no 10 samples"),
        ({"u": np.ones(300), "y": np.ones((300, 1))}, "1 and 1 channels"),
        ({"t": T, "dt": DT}, "both t and dt"),
        ({"t": T[:-1]}, "299 times"),
    ],
)
def test_records_that_do_not_fit_are_refused(u, given, message):
    record = {"u": u, "y": np.stack([u, u], axis=1)}
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        plant().fit(**{**record, **given})


def test_times_must_be_known(u):
    with pytest.raises(ltinet.InvalidSignalError, match="no sample time"):
        plant().with_signal_settings(sample_time=None).fit(u, np.stack([u, u], axis=1))
