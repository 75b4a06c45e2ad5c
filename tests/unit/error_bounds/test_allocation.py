"""Tolerances of single neurons for a target of their common error."""

import numpy as np
import pytest

from ltinet.error_bounds.defect import equalizing_level, update_tolerances


@pytest.mark.parametrize("budget", [0.1, 1.0, 3.0, 5.9])
def test_equal_contributions_fill_the_budget(budget):
    shares = np.array([3.0, 0.5, 1.0, 0.01, 1.5])
    level = equalizing_level(shares, budget=budget)
    assert np.sum(np.minimum(shares, level)) == pytest.approx(budget)


def test_large_budget_sets_no_limit():
    assert equalizing_level(np.array([1.0, 2.0]), budget=3.0) == np.inf
    after = update_tolerances(np.array([1e-6, 1e-3]), np.array([1e-5, 0.0]), budget=3.0, loosest=1e-2, tightest=1e-13)
    np.testing.assert_allclose(after, [3e-5, 1e-2])  # the first is limited by the largest change of one update


def test_proportional_contributions_fill_the_budget_at_once():
    tolerances, shares = np.full(4, 1e-3), np.array([1.0, 0.5, 0.2, 1e-3])
    for budget in (0.5, 1.0, 3.0):
        after = update_tolerances(tolerances, shares, budget=budget, loosest=1e-2, tightest=1e-13)
        expected = shares * after / tolerances
        assert np.sum(expected) == pytest.approx(budget)
        assert after[3] == 1e-2  # a tenth of a share even there


def test_largest_contributions_are_tightened_most():
    after = update_tolerances(np.full(3, 1e-3), np.array([1.0, 0.1, 1e-5]), budget=0.1, loosest=1e-3, tightest=1e-13)
    assert after[0] < after[1] < after[2] == 1e-3


def test_neuron_without_contribution_gets_a_looser_tolerance():
    after = update_tolerances(np.full(2, 1e-3), np.array([1.0, 0.0]), budget=0.5, loosest=1e-2, tightest=1e-13)
    np.testing.assert_allclose(after, [5e-4, 1e-2])
