"""Hypothesis: orders are obeyed or found, stability is what was asked for, and the result says what it cost."""

import numpy as np
import pytest

from identified_systems import ModalSystem, draw_modes, relative_noise, root_mean_square
from ltinet.identification.frequency_fit import fit_response

OMEGA = np.geomspace(0.1, 1e3, 150)
PEAK = 1e-8  # of the largest |H| of a channel: what is promised for clean data


def assert_fits(found, system, omega):
    H = system.response(omega)
    assert np.all(np.abs(found.response(omega) - H).max(axis=0) <= PEAK * np.abs(H).max(axis=0))


def test_one_channel_has_no_further_axes():
    found = fit_response(OMEGA, 2.0 / (1j * OMEGA + 3.0))
    model = found.model
    assert (model.A.shape, model.B.shape, model.C.shape, model.D.shape) == ((1, 1), (1, 1), (1, 1), (1, 1))
    np.testing.assert_allclose(found.model.poles, [-3.0], rtol=1e-10)
    assert found.warnings == ()


def test_matrices_match_response():
    system = draw_modes(np.random.default_rng(1), p=2, m=3)
    found = fit_response(OMEGA, system.response(OMEGA))
    model = found.model
    direct = np.array([model.C @ np.linalg.solve(1j * w * np.eye(model.n_states) - model.A, model.B) for w in OMEGA])
    np.testing.assert_allclose(direct + model.D, found.response(OMEGA), atol=1e-11)
    assert_fits(found, system, np.geomspace(0.1, 1e3, 77))  # between the frequencies too
    np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(model.A)), np.sort_complex(model.poles), rtol=1e-9)


def test_a_constant_has_order_zero():
    found = fit_response(OMEGA, np.full(150, 2.5 + 0j))
    assert found.model.n_states == 0
    np.testing.assert_allclose(found.model.D, [[2.5]], rtol=1e-14)


def test_nothing_has_order_zero():
    found = fit_response(OMEGA, np.zeros((150, 2, 1)))
    assert found.model.n_states == 0
    assert not found.model.D.any()


@pytest.mark.slow
def test_a_dead_channel_stays_dead():
    H = draw_modes(np.random.default_rng(2), p=2, m=2).response(OMEGA)
    H[:, 0, 1] = 0.0
    found = fit_response(OMEGA, H)
    assert np.all(np.abs(found.response(OMEGA)[:, 0, 1]) <= PEAK * np.abs(H).max())


def test_rest_may_be_measured():
    omega = np.append(0.0, OMEGA)
    system = draw_modes(np.random.default_rng(3))
    assert_fits(fit_response(omega, system.response(omega)), system, omega)


def test_given_order():
    system = draw_modes(np.random.default_rng(4), p=2, m=2)
    H = system.response(OMEGA)
    errors = []
    for order in (1, 2, 4, system.order):
        found = fit_response(OMEGA, H, order=order)
        assert found.model.n_states == order
        assert found.candidates == ()
        errors.append(np.sqrt(np.mean(found.relative_errors**2)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] <= PEAK


def test_a_range_restricts():
    system = draw_modes(np.random.default_rng(4), p=2, m=2)
    # One state less than it has: the last one gains a quarter of the error, so the last is taken.
    found = fit_response(OMEGA, system.response(OMEGA), order=range(1, system.order))
    assert found.model.n_states == system.order - 1
    assert {own.order for own in found.candidates} <= set(range(1, system.order))
    assert any("largest that was allowed" in text for text in found.warnings)


def test_rank_two_residue():
    system = ModalSystem(np.array([-1.0 + 0j]), np.array([[[1.0, 0.5], [0.2, 2.0]]]) + 0j, np.zeros((2, 2)))
    found = fit_response(OMEGA, system.response(OMEGA), feedthrough=False)
    assert found.model.n_states == 2
    assert_fits(found, system, OMEGA)


def test_a_double_pole():
    H = 1.0 / (1j * OMEGA + 2.0) ** 2
    found = fit_response(OMEGA, H)
    assert found.model.n_states == 2
    assert np.max(np.abs(found.response(OMEGA)[:, 0, 0] - H)) <= PEAK * np.abs(H).max()


def test_without_feedthrough_there_is_none():
    system = draw_modes(np.random.default_rng(5), p=2, m=1, direct=False)
    found = fit_response(OMEGA, system.response(OMEGA), feedthrough=False)
    assert not found.model.D.any()
    assert_fits(found, system, OMEGA)


UNSTABLE = ModalSystem(
    np.array([-5.0, 0.5 + 4j, -1.0 + 30j]), np.array([3.0, 1.0 + 1j, 5.0]).reshape(3, 1, 1), np.zeros((1, 1))
)


def test_unstable_poles_are_kept_and_told():
    found = fit_response(OMEGA, UNSTABLE.response(OMEGA))
    assert_fits(found, UNSTABLE, OMEGA)
    assert np.count_nonzero(found.model.poles.real > 0.0) == 2
    assert "unstable: 2 of 5 poles" in found.warnings[0]


def test_no_stability_warning_without_stable():
    found = fit_response(OMEGA, UNSTABLE.response(OMEGA), stable=False)
    assert_fits(found, UNSTABLE, OMEGA)
    assert found.warnings == ()


def test_stable_models_say_what_they_cost():
    found = fit_response(OMEGA, UNSTABLE.response(OMEGA), stable=True)
    assert np.all(found.model.poles.real <= 0.0)
    assert found.relative_errors[0, 0] > 0.1
    assert "reflected" in found.warnings[0]
    assert f"{found.relative_errors[0, 0]:.3g}" in found.warnings[0]


@pytest.mark.slow
def test_noise_makes_no_unstable_model():
    for seed in range(4):
        rng = np.random.default_rng([9, seed])
        H = draw_modes(rng).response(OMEGA)
        assert np.all(fit_response(OMEGA, H + relative_noise(rng, H, 0.01), stable=True).model.poles.real <= 0.0)


def test_integrator_in_noise():
    rng = np.random.default_rng(10)
    system = draw_modes(rng, integrators=1, direct=False)
    H = system.response(OMEGA)
    for noise in (0.0, 0.01):
        found = fit_response(OMEGA, H + relative_noise(rng, H, noise), feedthrough=False)
        assert np.count_nonzero(found.model.poles == 0.0) == 1
        assert np.all(found.model.poles.real <= 0.0)


def test_weights_say_what_counts():
    rng = np.random.default_rng(11)
    system = draw_modes(rng)
    H = system.response(OMEGA)
    spoilt = H.copy()
    spoilt[40:60] *= 3.0
    weights = np.ones(150)
    weights[40:60] = 0.0
    assert_fits(fit_response(OMEGA, spoilt, weights=weights, order=system.order), system, OMEGA)
    assert root_mean_square(fit_response(OMEGA, spoilt, order=system.order).response(OMEGA) - H) > PEAK


def test_what_no_model_fits_is_told():
    rng = np.random.default_rng(12)
    found = fit_response(OMEGA, rng.standard_normal(150) + 1j * rng.standard_normal(150))
    assert any("fitted badly" in text for text in found.warnings)


@pytest.mark.parametrize("count", [6, 7, 8])
def test_fewest_frequencies(count):
    omega = np.geomspace(0.1, 10.0, count)
    found = fit_response(omega, 1.0 / (1j * omega + 1.0))
    np.testing.assert_allclose(found.model.poles, [-1.0], rtol=1e-9)
