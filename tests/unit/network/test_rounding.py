"""Hypothesis: magnitudes of terms bound the sums in the maps, and equal them where nothing cancels."""

import numpy as np
import pytest

from ltinet.network.maps import drop_rounding, lti_magnitudes, m_lti, m_o, output_magnitudes
from network_examples import pattern_block

SHAPES = [(4, 0), (0, 4), (2, 2), (1, 0), (0, 1), (1, 1), (5, 3)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_real", "n_pairs"), SHAPES)
def test_no_sum_exceeds_its_terms(n_real, n_pairs, seed):
    rng = np.random.default_rng(seed)
    A = pattern_block(n_real, n_pairs, seed) * rng.choice([-1.0, 1.0], size=(n_real + 2 * n_pairs,) * 2)
    B, C = rng.standard_normal((len(A), 3)), rng.standard_normal((2, len(A)))
    for own, terms in zip(m_lti(A, B, n_real=n_real), lti_magnitudes(A, np.abs(B), n_real=n_real), strict=True):
        assert np.all(np.abs(own) <= terms * (1 + 1e-12))
    values, rates, psi = m_o(A, B, C, n_real=n_real)
    Phi_terms, psi_terms = output_magnitudes(A, np.abs(B), np.abs(C), n_real=n_real)
    assert np.all(np.abs(np.hstack([values, rates])) <= Phi_terms * (1 + 1e-12))
    assert np.all(np.abs(psi) <= psi_terms * (1 + 1e-12))


def test_without_cancellation_the_terms_are_the_sums():
    A = np.array([[-1.0, 2.0], [3.0, -4.0]])  # signs that make every sum of the maps one of positive numbers
    B, C = np.array([[1.0], [5.0]]), np.array([[2.0, 3.0]])
    _, damping, _, E, V = m_lti(A, B, n_real=0)
    terms = lti_magnitudes(A, B, n_real=0)
    np.testing.assert_allclose([damping, E, V], [terms.C, terms.E, terms.V])
    np.testing.assert_allclose(terms.K, [[2.0 * 3.0 + 1.0 * 4.0]])
    values, rates, psi = m_o(A, B, C, n_real=0)
    Phi_terms, psi_terms = output_magnitudes(A, B, C, n_real=0)
    np.testing.assert_allclose(np.hstack([values, rates]), Phi_terms)
    np.testing.assert_allclose(-psi, psi_terms)


def test_entries_up_to_their_bound_are_zero():
    values = np.array([1.0, -1e-20, 0.5, -2.0])
    found = drop_rounding(values, np.array([1.0, 1e-19, 0.4, 1.0]))
    np.testing.assert_array_equal(found, [0.0, 0.0, 0.5, -2.0])


def test_infinite_bounds_drop_nothing():
    values = np.array([1.0, np.inf])
    np.testing.assert_array_equal(drop_rounding(values, np.array([np.inf, np.inf])), values)
