"""Hypothesis: the frontier holds what no other known partition beats, each with the condition number that its T has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hard_matrices import random_dense
from ltinet.blockdiag.conditioning import isolation_bounds, partition_condition
from ltinet.blockdiag.frontier import ParetoFrontier, _Candidate, _FrontierSearch, search_frontier
from ltinet.blockdiag.schur import real_schur
from ltinet.blockdiag.separation import separate_neurons


def atoms_of(n, seed):
    return separate_neurons(real_schur(random_dense(n, seed))).atoms


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=40))
def test_frontier_is_not_dominated(points):
    found = ParetoFrontier()
    for condition, connections in points:
        found.add(float(condition), connections, ())
    left = {(c, k) for c, k in points if not any((a <= c and b < k) or (a < c and b <= k) for a, b in points)}
    assert set(zip(found.conditions, found.connections, strict=True)) == left
    assert found.conditions == sorted(found.conditions)
    assert found.connections == sorted(found.connections, reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_frontier_conditions_and_connections(seed):
    atoms = atoms_of(17, seed)
    found = search_frontier(atoms, limit=1e4)
    for condition, connections, partition in zip(found.conditions, found.connections, found.partitions, strict=True):
        assert sorted(atom for group in partition for atom in group) == list(range(len(atoms.neurons)))
        assert connections == atoms.connections(partition)
        # Gram matrices of condition κ² are known to n·eps·κ², and κ is below 1e3 here.
        assert condition == pytest.approx(partition_condition(atoms, partition), rel=1e-8)


def test_frontier_has_both_ends():
    atoms = atoms_of(14, 1)
    found = search_frontier(atoms, limit=1e4)
    assert (found.conditions[0], len(found.partitions[0])) == (1.0, 1)
    assert found.connections[-1] == 0


def test_frontier_respects_the_limit():
    assert max(search_frontier(atoms_of(14, 2), limit=3.0).conditions) <= 3.0


@pytest.mark.parametrize("seed", range(4))
def test_isolation_bounds_hold(seed):
    atoms, random = atoms_of(15, seed), np.random.default_rng(seed)
    bounds = isolation_bounds(atoms)
    for _ in range(20):
        labels = random.integers(4, size=len(atoms.neurons))
        partition = tuple(tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))
        alone = [group[0] for group in partition if len(group) == 1]
        condition = partition_condition(atoms, partition)
        assert all(bounds[atom] <= condition * (1.0 + 1e-9) for atom in alone)


def test_isolation_bound_of_two_atoms_is_exact():
    atoms = separate_neurons(real_schur(np.array([[-1.0, 5.0], [0.0, -2.0]]))).atoms
    np.testing.assert_allclose(isolation_bounds(atoms), np.linalg.cond(atoms.basis), rtol=1e-12)


@pytest.mark.parametrize(
    ("atom", "target", "expected"),
    [
        (1, -1, ((0, 2), (3, 5), (4,), (1,))),
        (3, 0, ((0, 1, 2, 3), (5,), (4,))),
        (4, 1, ((0, 1, 2), (3, 4, 5))),
    ],
)
def test_candidate_moves_one_atom(atom, target, expected):
    assert _Candidate(((0, 1, 2), (3, 5), (4,)), atom, target, 0, 1.0, 1.0).result == expected


@pytest.mark.parametrize("seed", range(3))
def test_shares_sum_to_inverse_norm(seed):
    atoms, random = atoms_of(15, seed), np.random.default_rng(seed)
    shares = _FrontierSearch(atoms, 1e4).shares
    for _ in range(10):
        labels = random.integers(4, size=len(atoms.neurons))
        bases = [
            np.linalg.qr(atoms.basis[:, atoms.columns(tuple(np.flatnonzero(labels == label).tolist()))])[0]
            for label in np.unique(labels)
        ]
        norm = np.linalg.norm(np.linalg.inv(np.hstack(bases)))
        # Inverses of condition κ are known to n·eps·κ, and κ is below 1e3 here.
        assert shares[labels[:, None] == labels].sum() == pytest.approx(norm**2, rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_predicted_condition_follows_the_inverse_norm(seed):
    # cond(T) − 1 is taken to be proportional to the root of ‖T⁻¹‖_F² − n, which the moves change exactly.
    atoms = atoms_of(12, seed)
    n = len(atoms.gram)

    def excess(partition):
        bases = [np.linalg.qr(atoms.basis[:, atoms.columns(group)])[0] for group in partition]
        return np.linalg.norm(np.linalg.inv(np.hstack(bases))) ** 2 - n

    atom_numbers = np.arange(len(atoms.neurons))
    partition = tuple(tuple(atom_numbers[part::3].tolist()) for part in range(3))
    condition = partition_condition(atoms, partition)
    search = _FrontierSearch(atoms, np.inf)
    search._propose(partition, condition)
    candidates = [candidate for _, _, candidate in search.queue]
    assert {candidate.target < 0 for candidate in candidates} == {True, False}
    for candidate in candidates:
        growth = excess(candidate.result) / excess(partition)
        expected = max(1.0 + (condition - 1.0) * np.sqrt(growth), candidate.bound)
        assert candidate.predicted == pytest.approx(expected, rel=1e-8)
