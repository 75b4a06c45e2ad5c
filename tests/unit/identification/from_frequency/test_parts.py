"""Hypothesis: each part of the fit does what its formula says."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from identified_systems import draw_modes
from ltinet._util.floating_point import rounding_tolerance
from ltinet.identification.block_realization import (
    BlockRealization,
    DescentOptions,
    descend,
    fit_output_matrices,
    fit_residues,
    partial_fractions,
    pole_blocks,
    sort_pairs,
    to_block_realization,
)
from ltinet.identification.frequency_data import scale_response
from ltinet.identification.frequency_fit import fit_warnings
from ltinet.identification.frequency_order import choose_order
from ltinet.identification.vector_fitting import balance_over_band, initial_poles, relocate_poles

OMEGA = np.geomspace(0.1, 1e3, 120)


def test_partial_fractions():
    poles = sort_pairs(np.array([-2.0, -0.1 + 3j, -0.1 - 3j, -1.0]))
    np.testing.assert_array_equal(poles, [-2.0, -1.0, -0.1 + 3j, -0.1 - 3j])
    s = 1j * OMEGA
    found = partial_fractions(s, poles) @ np.array([1.0, 2.0, 3.0, 4.0])
    p = -0.1 + 3j
    residue = 3.0 + 4.0j
    expected = 1.0 / (s + 2.0) + 2.0 / (s + 1.0) + residue / (s - p) + residue.conjugate() / (s - p.conjugate())
    np.testing.assert_allclose(found, expected, rtol=rounding_tolerance(4))


def test_block_response():
    poles = sort_pairs(np.array([-2.0, -0.1 + 3j, -0.1 - 3j]))
    A, b = pole_blocks(poles)
    c = np.array([[1.0, -2.0, 0.5]])
    blocks = BlockRealization(A, b[:, None], c, np.zeros((1, 1)), (1, 2))
    s = 1j * OMEGA
    expected = partial_fractions(s, poles) @ c[0]
    np.testing.assert_allclose(blocks.response(s)[:, 0, 0], expected, rtol=rounding_tolerance(30))


@pytest.mark.parametrize(("p", "m"), [(1, 1), (3, 2), (2, 3)])
def test_vector_fit_finds_poles(p, m):
    system = draw_modes(np.random.default_rng([p, m]), p=p, m=m)
    data = scale_response(OMEGA, system.response(OMEGA), None)
    poles = relocate_poles(data, initial_poles(data.s, system.order)) * data.unit
    true = np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()])
    nearest = np.abs(poles[:, None] - true).min(axis=0)
    # Rounding moves poles by eps over their share in the response, which is above 1e-6 here.
    assert np.all(nearest <= 1e-9 * np.abs(true))


@pytest.mark.parametrize(("p", "m"), [(2, 2), (3, 2), (2, 3)])
def test_truncation_of_rank_one_residues(p, m):
    system = draw_modes(np.random.default_rng([7, p, m]), p=p, m=m)
    data = scale_response(OMEGA, system.response(OMEGA), None)
    true = sort_pairs(np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()]) / data.unit)
    full = fit_residues(data, true)
    assert full.n_states == min(p, m) * system.order
    small = balance_over_band(full, data.s).of_order(system.order)
    assert small.n_states == system.order
    assert (
        data.error(small.response(data.s)) <= 1e-11
    )  # a thousand roundings of a channel, from a system of twelve states


def test_descent_recovers_perturbed_model():
    rng = np.random.default_rng(5)
    system = draw_modes(rng, p=2, m=2)
    data = scale_response(OMEGA, system.response(OMEGA), None)
    true = sort_pairs(np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()]) / data.unit)
    exact = balance_over_band(fit_residues(data, true), data.s).of_order(system.order)
    moved = to_block_realization(exact.A * (1.0 + 0.01 * rng.standard_normal(exact.A.shape)), exact.B, exact.C, exact.D)
    start = data.error(fit_output_matrices(moved, data).response(data.s))
    found = descend(moved, data, DescentOptions(rounds=30, floor=1e-11))
    assert start > 1e-4
    assert (
        data.error(found.response(data.s)) <= 1e-9
    )  # quadratic convergence: the last round ends far below the one before


def test_the_best_C_and_D_leave_no_slope():
    rng = np.random.default_rng(6)
    system = draw_modes(rng, p=2, m=1)
    data = scale_response(OMEGA, system.response(OMEGA), None)
    A, b = pole_blocks(initial_poles(data.s, 3))
    model = fit_output_matrices(BlockRealization(A, b[:, None], np.zeros((2, 3)), np.zeros((2, 1)), (1, 2)), data)

    def error(numbers):
        C, D = numbers[:6].reshape(2, 3), numbers[6:].reshape(2, 1)
        return data.error(BlockRealization(A, b[:, None], C, D, (1, 2)).response(data.s)) ** 2

    numbers = np.concatenate([model.C.ravel(), model.D.ravel()])
    slope = approx_fprime(numbers, error, 1e-7 * np.abs(numbers).max())
    scale = np.abs(approx_fprime(1.1 * numbers, error, 1e-7 * np.abs(numbers).max())).max()
    assert np.abs(slope).max() <= 1e-4 * scale  # what a one-sided difference of this step can tell


def test_channel_scaling():
    units = np.array([[1.0, 1e8], [1e-4, 1e4]])
    H = draw_modes(np.random.default_rng(8), p=2, m=2).response(OMEGA)
    plain, far = scale_response(OMEGA, H, None), scale_response(1e6 * OMEGA, H * units, None)
    np.testing.assert_allclose(far.s, plain.s, rtol=rounding_tolerance(1))
    np.testing.assert_allclose(far.H * far.weights, plain.H * plain.weights, rtol=rounding_tolerance(10))


def test_order_from_fewest_frequencies():
    """Four poles need nine frequencies beside those that are held out, four of thirteen."""
    poles = np.array([-0.1 + 1j, -0.2 + 4j])
    s = 1j * np.geomspace(0.3, 10.0, 13)
    H = partial_fractions(s, sort_pairs(np.concatenate([poles, poles.conj()]))) @ np.array([1.0, 1.0, 2.0, -1.0])
    data = scale_response(s.imag, H[:, None, None], None)
    order, model, _ = choose_order(data, [0, 1, 2, 3, 4])
    assert order == 4
    found = np.sort_complex(model.poles[model.poles.imag > 0.0] * data.unit)
    np.testing.assert_allclose(found, np.sort_complex(poles), rtol=1e-9)


def test_narrow_resonance_between_first_frequencies():
    poles, omega = np.array([-0.01 + 1.5j, -0.01 - 1.5j]), np.array([1.0, 2.0, 3.0])
    (warning,) = fit_warnings(poles, omega, np.zeros((1, 1)), candidates=(), allowed=[2])
    assert "1 resonances are narrower" in warning
