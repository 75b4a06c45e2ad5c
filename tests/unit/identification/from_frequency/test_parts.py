"""Hypothesis: each part of the fit does what its formula says."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from identified_systems import draw_modes
from ltinet.identification.from_frequency.data import scaled
from ltinet.identification.from_frequency.descent import Downhill, descended
from ltinet.identification.from_frequency.linear import refitted, with_residues
from ltinet.identification.from_frequency.partial_fractions import block_matrices, fractions, paired
from ltinet.identification.from_frequency.realisation import Realisation, in_blocks
from ltinet.identification.from_frequency.truncation import truncations
from ltinet.identification.from_frequency.vector_fitting import first_poles, relocate
from ltinet.tolerances import rounding

OMEGA = np.geomspace(0.1, 1e3, 120)


def test_real_fractions_are_sums_of_complex_ones():
    poles = paired(np.array([-2.0, -0.1 + 3j, -0.1 - 3j, -1.0]))
    np.testing.assert_array_equal(poles, [-2.0, -1.0, -0.1 + 3j, -0.1 - 3j])
    s = 1j * OMEGA
    found = fractions(s, poles) @ np.array([1.0, 2.0, 3.0, 4.0])
    p = -0.1 + 3j
    residue = 3.0 + 4.0j
    expected = 1.0 / (s + 2.0) + 2.0 / (s + 1.0) + residue / (s - p) + residue.conjugate() / (s - p.conjugate())
    np.testing.assert_allclose(found, expected, rtol=rounding(4))


def test_blocks_have_the_response_of_the_fractions():
    poles = paired(np.array([-2.0, -0.1 + 3j, -0.1 - 3j]))
    A, b = block_matrices(poles)
    c = np.array([[1.0, -2.0, 0.5]])
    blocks = Realisation(A, b[:, None], c, np.zeros((1, 1)), (1, 2))
    s = 1j * OMEGA
    expected = fractions(s, poles) @ c[0]
    np.testing.assert_allclose(blocks.response(s)[:, 0, 0], expected, rtol=rounding(30))


@pytest.mark.parametrize(("p", "m"), [(1, 1), (3, 2), (2, 3)])
def test_a_vector_fit_finds_the_poles_of_clean_data(p, m):
    system = draw_modes(np.random.default_rng([p, m]), p=p, m=m)
    data = scaled(OMEGA, system.response(OMEGA), None)
    poles = relocate(data, first_poles(data.s, system.order), feedthrough=True, stable=False) * data.unit
    true = np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()])
    nearest = np.abs(poles[:, None] - true).min(axis=0)
    # Rounding moves poles by eps over their share in the response, which is above 1e-6 here.
    assert np.all(nearest <= 1e-9 * np.abs(true))


@pytest.mark.parametrize(("p", "m"), [(2, 2), (3, 2), (2, 3)])
def test_truncation_keeps_one_state_for_a_residue_of_rank_one(p, m):
    system = draw_modes(np.random.default_rng([7, p, m]), p=p, m=m)
    data = scaled(OMEGA, system.response(OMEGA), None)
    true = paired(np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()]) / data.unit)
    full = with_residues(data, true, feedthrough=True)
    assert full.n_states == min(p, m) * system.order
    small = truncations(full, data.s).of_order(system.order)
    assert small.n_states == system.order
    assert (
        data.error(small.response(data.s)) <= 1e-11
    )  # a thousand roundings of a channel, from a system of twelve states


def test_no_descent_is_worse_and_a_perturbed_model_comes_back():
    rng = np.random.default_rng(5)
    system = draw_modes(rng, p=2, m=2)
    data = scaled(OMEGA, system.response(OMEGA), None)
    true = paired(np.concatenate([system.poles, system.poles[system.poles.imag > 0.0].conj()]) / data.unit)
    exact = truncations(with_residues(data, true, feedthrough=True), data.s).of_order(system.order)
    moved = in_blocks(exact.A * (1.0 + 0.01 * rng.standard_normal(exact.A.shape)), exact.B, exact.C, exact.D)
    start = data.error(refitted(moved, data, feedthrough=True).response(data.s))
    found = descended(moved, data, Downhill(feedthrough=True, rounds=30, floor=1e-11))
    assert start > 1e-4
    assert (
        data.error(found.response(data.s)) <= 1e-9
    )  # quadratic convergence: the last round ends far below the one before


def test_the_best_C_and_D_leave_no_slope():
    rng = np.random.default_rng(6)
    system = draw_modes(rng, p=2, m=1)
    data = scaled(OMEGA, system.response(OMEGA), None)
    A, b = block_matrices(first_poles(data.s, 3))
    model = refitted(Realisation(A, b[:, None], np.zeros((2, 3)), np.zeros((2, 1)), (1, 2)), data, feedthrough=True)

    def error(numbers):
        C, D = numbers[:6].reshape(2, 3), numbers[6:].reshape(2, 1)
        return data.error(Realisation(A, b[:, None], C, D, (1, 2)).response(data.s)) ** 2

    numbers = np.concatenate([model.C.ravel(), model.D.ravel()])
    slope = approx_fprime(numbers, error, 1e-7 * np.abs(numbers).max())
    scale = np.abs(approx_fprime(1.1 * numbers, error, 1e-7 * np.abs(numbers).max())).max()
    assert np.abs(slope).max() <= 1e-4 * scale  # what a one-sided difference of this step can tell


def test_channels_decades_apart_count_the_same():
    units = np.array([[1.0, 1e8], [1e-4, 1e4]])
    H = draw_modes(np.random.default_rng(8), p=2, m=2).response(OMEGA)
    plain, far = scaled(OMEGA, H, None), scaled(1e6 * OMEGA, H * units, None)
    np.testing.assert_allclose(far.s, plain.s, rtol=rounding(1))
    np.testing.assert_allclose(far.H * far.weights, plain.H * plain.weights, rtol=rounding(10))
