"""Hypothesis: a change of coordinates or of units changes the form only as it must.

Matrices are drawn with prescribed clusters of eigenvalues and a prescribed departure from normality. Clusters lie at
least 1 apart and are 1e-3 wide, couplings are at most 0.3: a budget of 10 separates clusters and never splits one
that is coupled, so that the partition is the same however it is computed.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ltinet
from evidence import EPS, assert_lapack_standard, assert_pattern, assert_within_budget
from hard_matrices import haar
from support.tiers import n_examples

many = settings(
    max_examples=n_examples(40), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def schur_forms(draw, max_clusters=4, max_members=3):
    """A quasi-triangular matrix: clusters of reals and of pairs, couplings from none to strong."""
    clusters = draw(st.lists(st.tuples(st.integers(1, max_members), st.booleans()), min_size=1, max_size=max_clusters))
    coupling = draw(st.sampled_from([0.0, 0.03, 0.3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = []
    for index, (members, are_pairs) in enumerate(clusters):
        centres = -1.0 - 2.0 * index + 1e-3 * rng.uniform(-1.0, 1.0, members)
        for a in centres:
            omega = 1.0 + index + 1e-3 * rng.uniform()
            blocks.append(np.array([[a, omega], [-omega, a]]) if are_pairs else np.array([[a]]))
    n = sum(len(block) for block in blocks)
    R = coupling * np.triu(rng.uniform(-1.0, 1.0, (n, n)), 1)
    start = 0
    for block in blocks:
        R[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    return R


seeds = st.integers(0, 2**32 - 1)


@many
@given(schur_forms(), st.sampled_from([1.5, 10.0, 1e4, 1e8]))
def test_every_form_is_certified(R, max_condition):
    form = ltinet.block_diagonalize(R, max_condition=max_condition)
    assert_lapack_standard(R, form)
    assert_within_budget(R, form, max_condition)
    assert_pattern(form)


@many
@given(schur_forms(), seeds, st.sampled_from([1.5, 10.0, 1e4]))
def test_eigenvalues_survive_a_similarity(R, seed, max_condition):
    V = haar(len(R), seed) + 0.1 * np.eye(len(R))
    A = V @ R @ np.linalg.inv(V)
    found = np.concatenate(ltinet.block_diagonalize(A, max_condition=max_condition).eigenvalues)
    # σ_min(R − λI) ≤ the backward error of forming A and of decomposing it.
    error = 30.0 * len(R) * EPS * np.linalg.norm(R, 2) * np.linalg.cond(V) ** 2
    for value in found:
        assert np.linalg.svd(R - value * np.eye(len(R)), compute_uv=False)[-1] <= error


@many
@given(schur_forms(), seeds)
def test_connections_survive_a_rotation(R, seed):
    Q = haar(len(R), seed)
    # Balancing depends on the coordinates; without it cond(T) is the same in all orthonormal ones.
    before = ltinet.block_diagonalize(R, max_condition=10.0, balance=False)
    after = ltinet.block_diagonalize(Q @ R @ Q.T, max_condition=10.0, balance=False)
    assert after.n_connections == before.n_connections
    assert sorted(after.block_sizes) == sorted(before.block_sizes)


@many
@given(schur_forms(), st.randoms(use_true_random=False))
def test_connections_survive_a_permutation_of_states(R, random):
    order = list(range(len(R)))
    random.shuffle(order)
    before = ltinet.block_diagonalize(R, max_condition=10.0, balance=False)
    after = ltinet.block_diagonalize(R[np.ix_(order, order)], max_condition=10.0, balance=False)
    assert after.n_connections == before.n_connections


@many
@given(schur_forms(), st.integers(-400, 400))
def test_scaling_time_by_a_power_of_two_scales_the_form_exactly(R, exponent):
    before = ltinet.block_diagonalize(R, max_condition=10.0)
    after = ltinet.block_diagonalize(R * 2.0**exponent, max_condition=10.0)
    assert after.block_sizes == before.block_sizes
    np.testing.assert_array_equal(after.T, before.T)
    np.testing.assert_array_equal(after.A, before.A * 2.0**exponent)


@many
@given(schur_forms(max_members=1), seeds)
def test_units_of_states_do_not_change_the_number_of_connections(R, seed):
    # Balancing undoes units only up to the size of the diagonal; single neurons 1 apart bear what is left at 1e4.
    Q = haar(len(R), seed)
    units = 2.0 ** np.random.default_rng(seed).integers(-30, 31, len(R))
    before = ltinet.block_diagonalize(Q @ R @ Q.T, max_condition=1e4)
    after = ltinet.block_diagonalize((Q @ R @ Q.T) * units[:, None] / units, max_condition=1e4)
    assert after.n_connections == before.n_connections


@many
@given(schur_forms())
def test_a_larger_budget_never_leaves_more_connections(R):
    counts = [ltinet.block_diagonalize(R, max_condition=k).n_connections for k in (1.2, 10.0, 1e4, 1e8)]
    assert counts == sorted(counts, reverse=True)


@many
@given(schur_forms(), st.data())
def test_the_number_of_blocks_asked_for_comes(R, data):
    most = int(np.sum(np.linalg.eigvals(R).imag >= 0))
    n_blocks = data.draw(st.integers(1, min(most, 4)))
    try:
        form = ltinet.block_diagonalize(R, n_blocks=n_blocks)
    except ltinet.PartitionError:
        # Only members of one cluster may be inseparable.
        centres = np.unique(np.round(np.linalg.eigvals(R).real))
        assert n_blocks > len(centres)
        return
    assert form.n_blocks == n_blocks
    assert_pattern(form)


@many
@given(schur_forms())
def test_the_same_matrix_gives_the_same_bits(R):
    first, second = (ltinet.block_diagonalize(R, max_condition=5.0) for _ in range(2))
    np.testing.assert_array_equal(first.T, second.T)
    np.testing.assert_array_equal(first.A, second.A)
    assert first.tradeoff == second.tradeoff


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("seed", range(50))
def test_a_kernel_never_costs_the_budget(seed):
    # Putting the kernel into one block changes cond(T): the budget must hold for what comes out.
    V = np.random.default_rng(seed).standard_normal((6, 6))
    A = V @ np.diag([0.0, 0.0, -1.0, -1.7, -2.3, -3.0]) @ np.linalg.inv(V)
    free = ltinet.block_diagonalize(A, max_condition=1e8).condition
    for max_condition in np.linspace(0.4, 0.99, 8) * free:
        if max_condition >= 1.0:
            form = ltinet.block_diagonalize(A, max_condition=max_condition)
            assert_within_budget(A, form, max_condition)
