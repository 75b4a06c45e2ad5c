"""Hypothesis: angles, bounds and condition numbers from a Gram matrix are those of the T that they stand for."""

import itertools
import math

import numpy as np
import pytest

from evidence import EPS
from hard_matrices import haar, random_dense
from ltinet.blockdiag.conditioning import (
    GRAM_LIMIT,
    Atoms,
    condition_number,
    neg_log_det,
    pairwise_condition_bounds,
    partition_condition,
    separation_bounds,
    whiten,
)


def atoms_of(sizes, seed=0, *, lean=0.7):
    """Random orthonormal bases of given sizes, leaning towards a common direction."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    base = haar(n, seed)
    bases, start = [], 0
    for size in sizes:
        own = base[:, start : start + size] + lean * rng.standard_normal((n, size)) / math.sqrt(n)
        bases.append(np.linalg.qr(own)[0])
        start += size
    return Atoms(
        np.hstack(bases), np.cumsum([0, *sizes]), np.ones(len(sizes), dtype=np.intp), np.arange(len(sizes)) + 0j
    )


def transformation(atoms, partition):
    """T itself, with an orthonormal basis for every group."""
    return np.hstack([np.linalg.qr(atoms.basis[:, atoms.columns(group)])[0] for group in partition])


@pytest.mark.parametrize("condition", [1.0, 3.0, 1e3, 1e5, 1e7, 1e11])
def test_condition_number_against_prescribed_singular_values(condition):
    T = haar(8, 1) @ np.diag(np.geomspace(condition, 1.0, 8)) @ haar(8, 2)
    # Through the Gram matrix: n·eps·κ²; through singular values: n·eps·κ.
    tolerance = 10 * 8 * EPS * condition ** (2 if condition <= GRAM_LIMIT else 1)
    assert condition_number(T) == pytest.approx(condition, rel=tolerance)


def test_condition_number_at_the_edges():
    assert condition_number(np.zeros((0, 0))) == 1.0
    assert condition_number(np.zeros((2, 2))) == math.inf
    assert condition_number(np.eye(3)) == 1.0


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_condition_number_does_not_depend_on_the_unit(scale):
    T = random_dense(5, 7)
    assert condition_number(scale * T) == pytest.approx(np.linalg.cond(T), rel=1e-9)


@pytest.mark.parametrize("limit", [100.0, 1e9])
@pytest.mark.parametrize(
    "partition", [((0,), (1,), (2,), (3,)), ((0, 2), (1,), (3,)), ((0, 3), (1, 2)), ((0, 1, 2, 3),)]
)
def test_partition_condition_is_that_of_its_transformation(partition, limit):
    atoms = atoms_of([1, 2, 1, 3])
    expected = np.linalg.cond(transformation(atoms, partition))
    assert expected < 100.0
    assert partition_condition(atoms, partition, limit=limit) == pytest.approx(expected, rel=1e-9)


def test_whiten_orthonormalizes():
    atoms = atoms_of([1, 2, 1, 3])
    gram = atoms.gram.copy()
    assert whiten(gram, atoms.columns((0, 1)))
    T = np.hstack([np.linalg.qr(atoms.basis[:, :3])[0], atoms.basis[:, 3:]])
    np.testing.assert_allclose(np.linalg.eigvalsh(gram), np.linalg.eigvalsh(T.T @ T), atol=1e3 * EPS)
    np.testing.assert_array_equal(gram[:3, :3], np.eye(3))
    np.testing.assert_allclose(gram, gram.T, atol=0)


def test_whiten_rejects_indefinite_matrix():
    assert not whiten(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([0, 1]))


def test_neg_log_det_bounds_condition():
    for seed in range(10):
        atoms = atoms_of([1, 1, 2, 1], seed)
        lost = neg_log_det(atoms.gram)
        assert lost == pytest.approx(-np.linalg.slogdet(atoms.basis)[1], abs=1e-12)
        assert np.linalg.cond(atoms.basis) <= 2.0 * math.exp(lost)
    assert neg_log_det(np.ones((2, 2))) == math.inf
    assert neg_log_det(np.eye(4)) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_pairwise_condition_bounds_hold(seed):
    atoms = atoms_of([1, 2, 1, 3], seed, lean=2.0)
    bounds = pairwise_condition_bounds(atoms)
    for partition in (((0,), (1,), (2,), (3,)), ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))):
        condition = np.linalg.cond(transformation(atoms, partition))
        for group, other in itertools.combinations(partition, 2):
            for a, b in itertools.product(group, other):
                assert bounds[a, b] <= condition * (1.0 + 1e-9)


def test_pairwise_bound_of_two_vectors_is_exact():
    angle = 0.3
    basis = np.array([[1.0, math.cos(angle)], [0.0, math.sin(angle)]])
    atoms = Atoms(basis, np.array([0, 1, 2]), np.ones(2, dtype=np.intp), np.zeros(2, complex))
    assert pairwise_condition_bounds(atoms)[0, 1] == pytest.approx(1.0 / math.tan(angle / 2.0), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_separation_bound_of_two_blocks_is_exact(seed):
    atoms = atoms_of([1, 2, 1, 3], seed, lean=1.5)
    group = (0, 1, 3)
    for atom, bound in zip(group, separation_bounds(atoms, group), strict=True):
        rest = tuple(other for other in group if other != atom)
        assert bound == pytest.approx(np.linalg.cond(transformation(atoms, ((atom,), rest))), rel=1e-6)


@pytest.mark.parametrize("excess", [-EPS, 0.0, EPS, 2 * EPS])
def test_separation_bounds_of_parallel_vectors(excess):
    # Rounding can make a cosine larger than one, and the Gram matrix singular or indefinite.
    atoms = Atoms(np.eye(2), np.array([0, 1, 2]), np.ones(2, dtype=np.intp), np.zeros(2, complex))
    atoms.__dict__["gram"] = np.array([[1.0, 1.0 + excess], [1.0 + excess, 1.0]])
    assert np.all(separation_bounds(atoms, (0, 1)) > 1e6)


def test_connections_count_each_pair_of_neurons_once():
    atoms = Atoms(np.eye(6), np.arange(7), np.array([1, 2, 1, 3, 1, 1]), np.zeros(6, complex))
    assert atoms.connections(atoms.singletons) == 1 + 3
    assert atoms.connections(((0, 1), (2, 3), (4,), (5,))) == 3 + 6
