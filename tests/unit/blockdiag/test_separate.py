"""Hypothesis: a separation is a basis per group, its inverse and its condition number, all of one T."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from evidence import EPS
from hard_matrices import random_dense
from ltinet.blockdiag.schur import SchurForm, real_schur
from ltinet.blockdiag.separation import merge_kernel, separate, separate_neurons


def test_counts_and_bounds_agree():
    schur = real_schur(random_dense(18, 1))
    groups = np.arange(len(schur.sizes)) % 3
    separation = separate(schur, groups)
    assert separation.n_blocks == 3
    assert sorted(separation.neurons.tolist()) == sorted(np.bincount(groups).tolist())
    np.testing.assert_array_equal(separation.schur.starts[separation.first_neuron], separation.bases.bounds[:-1])


def test_condition_and_inverse_are_those_of_the_basis():
    separation = separate_neurons(real_schur(random_dense(12, 2)))
    T = separation.bases.basis
    assert separation.condition == pytest.approx(np.linalg.cond(T), rel=1e-9)
    np.testing.assert_allclose(separation.inverse @ T, np.eye(12), atol=100 * EPS * separation.condition)
    assert separation.is_within(1.0001 * separation.condition)
    assert not separation.is_within(0.9999 * separation.condition)


@pytest.mark.parametrize("max_condition", [1e155, 1e200, np.inf])
def test_is_within_infinite_limit(max_condition):
    assert separate_neurons(real_schur(random_dense(5, 2))).is_within(max_condition)


def test_is_within_parallel_vectors():
    assert not separate_neurons(SchurForm(np.array([[1.0, 1.0], [0.0, 1.0 + EPS]]), np.eye(2))).is_within(1e12)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("distance", [1.6e-103, 2e-103])
def test_nearly_overflowing_inverse_exceeds_any_limit(distance):
    # Vectors of a chain of four whose eigenvalues are that close: the inverse reaches 1/distance³.
    R = np.diag(distance * np.arange(4)) + np.eye(4, k=1)
    assert not separate_neurons(SchurForm(R, np.eye(4))).is_within(1e4)


@pytest.mark.parametrize("coupling", [1.0, 1e-8, 1e-15, 1e-30])
def test_coupled_equal_eigenvalues_share_a_block(coupling):
    # Two vectors for one eigenvalue would leave the coupling out, at any condition number.
    separation = separate_neurons(SchurForm(np.array([[1.0, coupling, 0.0], [0, 1.0, 0.0], [0, 0, 2.0]]), np.eye(3)))
    assert sorted(separation.neurons.tolist()) == [1, 2]
    assert separation.condition == 1.0
    assert np.max(np.abs(np.triu(separation.bases.blocks, 1))) == coupling


def test_semisimple_eigenvalues_are_separate():
    # The vectors are (1, 0, 0) and (0, 1, 1): what the third state adds to the first two cancels.
    R = np.array([[1.0, 0.5, -0.5], [0.0, 2.0, -1.0], [0.0, 0.0, 1.0]])
    assert separate_neurons(SchurForm(R, np.eye(3))).neurons.tolist() == [1, 1, 1]


def test_merged_blocks():
    separation = separate_neurons(real_schur(np.diag([1.0, 2.0, 3.0, 4.0]) + np.triu(np.ones((4, 4)), 1)))
    merged = separation.merged(((0, 3), (1,), (2,)))
    assert merged.n_blocks == 3
    assert sorted(merged.neurons.tolist()) == [1, 1, 2]
    first = merged.schur.eigenvalues[:2]
    assert sorted(first.real.round(9).tolist()) == [1.0, 4.0]


def test_merge_kernel():
    R = np.diag([0.0, -1.0, 0.0, -2.0, 0.0])
    R[:3, 3] = 1.0
    separation = merge_kernel(separate_neurons(SchurForm(R, np.eye(5))))
    assert sorted(separation.neurons.tolist()) == [1, 1, 3]


def test_merge_kernel_ignores_slow_modes():
    # Exactly known, far from each other, and merely small beside the fastest one.
    fast = np.array([[-1e14, 1e14], [0.0, -3e14]])
    schur = SchurForm(block_diag([[-0.25]], [[-0.5]], fast), np.eye(4))
    assert merge_kernel(separate_neurons(schur)).n_blocks == 4


def test_merge_kernel_of_one_zero():
    schur = SchurForm(np.diag([0.0, -1.0]) + np.array([[0.0, 1.0], [0.0, 0.0]]), np.eye(2))
    separation = separate_neurons(schur)
    assert merge_kernel(separation) is separation
