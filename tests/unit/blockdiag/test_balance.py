"""Hypothesis: balancing is exact, and brings any units and magnitudes to order one."""

import numpy as np
import pytest

from hard_matrices import random_dense
from ltinet.blockdiag.schur import balance_matrix


def undone(balanced):
    return balanced.factor * (balanced.scaling[:, None] * balanced.matrix / balanced.scaling)


@pytest.mark.parametrize("magnitude", [1e-150, 1e-3, 1.0, 7.0, 1e150])
def test_nothing_is_rounded(magnitude):
    units = 10.0 ** np.arange(-4.0, 4.0)
    A = magnitude * random_dense(8) * units[:, None] / units
    np.testing.assert_array_equal(undone(balance_matrix(A)), A)


def test_factor_and_scaling_are_powers_of_two():
    balanced = balance_matrix(1e7 * random_dense(6) * np.logspace(-5, 5, 6))
    for number in (balanced.factor, *balanced.scaling):
        assert np.frexp(number)[0] == 0.5


@pytest.mark.parametrize("magnitude", [1e-300, 1e-150, 1.0, 1e150, 1e300, np.finfo(float).max])
def test_entries_become_of_order_one(magnitude):
    largest = np.max(np.abs(balance_matrix(np.full((3, 3), magnitude)).matrix))
    assert 1.0 <= largest < 4.0  # below two, but for the last octave: 2¹⁰²³ has no reciprocal in the normal range


def test_rows_and_columns_get_norms_of_one_size():
    units = 2.0 ** np.array([0, 20, -20, 10, -10, 30])
    A = random_dense(6, 3) * units[:, None] / units
    before, after = spread(A), spread(balance_matrix(A).matrix)
    assert before > 1e6
    assert after < 8.0  # gebal stops when a factor of two gains less than 5 %


def test_states_can_be_left_alone():
    A = 3.0 * random_dense(5) * np.logspace(-5, 5, 5)
    balanced = balance_matrix(A, rescale_states=False)
    np.testing.assert_array_equal(balanced.scaling, np.ones(5))
    np.testing.assert_array_equal(undone(balanced), A)


@pytest.mark.parametrize("A", [np.zeros((0, 0)), np.zeros((3, 3)), np.array([[5e-324]])])
def test_nothing_to_balance(A):
    balanced = balance_matrix(A)
    assert balanced.matrix.shape == A.shape
    assert np.all(np.isfinite(balanced.matrix))
    assert balanced.factor > 0


def test_the_given_matrix_is_not_touched():
    A = random_dense(5) * np.logspace(-5, 5, 5)
    copy = A.copy()
    balance_matrix(A)
    np.testing.assert_array_equal(A, copy)


def spread(A):
    """Largest ratio between the norms of a row and of the column of the same state."""
    ratio = np.linalg.norm(A, axis=0) / np.linalg.norm(A, axis=1)
    return float(max(ratio.max(), 1.0 / ratio.min()))
