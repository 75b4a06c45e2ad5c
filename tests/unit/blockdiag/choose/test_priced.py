"""Hypothesis: at every price no atom that changes its group and no two groups that merge would lower the cost."""

import itertools

import numpy as np
import pytest

from ltinet.blockdiag.frontier import _local_search, lagrangian_partitions, partition_from_labels


def drawn(n, seed):
    """Shares as a Gram matrix of unit vectors and its inverse have them, and atoms of one to three neurons."""
    random = np.random.default_rng([n, seed])
    basis = random.standard_normal((n, n))
    basis /= np.linalg.norm(basis, axis=0)
    inverse = np.linalg.inv(basis)
    return (basis.T @ basis) * (inverse @ inverse.T), random.integers(1, 4, size=n)


def cost_of(cost, labels):
    return 0.5 * float(cost[labels[:, None] == labels].sum())


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [2, 5, 9])
def test_local_search_reaches_a_local_minimum(n, seed):
    shares, neurons = drawn(n, seed)
    for price in np.geomspace(1e-3, 1e3, 7):
        cost = 2.0 * shares + price * np.multiply.outer(neurons, neurons)
        np.fill_diagonal(cost, 0.0)
        labels = _local_search(cost, np.arange(n))
        reached, noise = cost_of(cost, labels), n**2 * np.finfo(float).eps * np.abs(cost).max()
        for atom, label in itertools.product(range(n), range(n)):
            changed = np.where(np.arange(n) == atom, label, labels)
            assert cost_of(cost, changed) >= reached - noise
        for one, other in itertools.combinations(range(n), 2):
            assert cost_of(cost, np.where(labels == one, other, labels)) >= reached - noise


@pytest.mark.parametrize("seed", range(5))
def test_lagrangian_partitions_span_both_ends(seed):
    shares, neurons = drawn(8, seed)
    partitions = list(lagrangian_partitions(shares, neurons))
    assert all(sorted(atom for group in own for atom in group) == list(range(8)) for own in partitions)
    sizes = [len(own) for own in partitions]
    assert sizes[0] >= 7  # at the highest price one pair at most is worth its connections
    assert min(sizes) < sizes[0]
    assert sizes[-1] > min(sizes)


def test_orthogonal_atoms_are_never_merged():
    assert list(lagrangian_partitions(np.eye(4), np.ones(4, dtype=np.intp))) == []


def test_labels_are_read_as_groups():
    assert partition_from_labels(np.array([2, 0, 2, 1])) == ((0, 2), (1,), (3,))
