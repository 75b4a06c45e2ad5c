"""Hypothesis: the ladder has what searches for one budget after another find, and more budget buys no connections.

The oracle is the search that `block_diagonalize` makes for one budget. It is greedy, and so is the ladder: of larger
matrices either may be luckier at a single budget by some connections, but not over budgets at large.
"""

import numpy as np
import pytest

import ltinet
from data_sets import DATA_SETS
from ltinet.blockdiag.block_diagonalization import schur_form
from ltinet.blockdiag.partition import partition_by_condition
from ltinet.blockdiag.repeated_eigenvalues import group_repeated_eigenvalues
from ltinet.blockdiag.schur import balance_matrix, is_decoupled

N_BUDGETS = 25

# Where conditions of all forms lie within some hundredths (building), or eigenvalues nearly coincide and the order of
# swaps decides (the others), searches that look at their T in between are luckier at single budgets.
LUCKY_SEARCHES = {"b767_flutter", "building", "lf10_beam_descriptor"}

# Here they are over all budgets, too, by a few connections: 1631 are 1628 with the budgets drawn for lf10.
LUCKY_OVER_ALL_BUDGETS = {"b767_flutter", "lf10_beam_descriptor"}


def grcar(n, random):
    return sum((np.eye(n, k=k) for k in range(int(random.integers(2, 5)))), -np.eye(n, k=-1))


def blobs(n, random):
    """Eigenvalues that crowd around a few places, coupled, in random coordinates."""
    centres = random.standard_normal(max(2, n // 5))
    values = centres[random.integers(len(centres), size=n)] + 0.1 * random.standard_normal(n)
    Q = np.linalg.qr(random.standard_normal((n, n)))[0]
    return Q @ (np.diag(values) + 0.1 * np.triu(random.standard_normal((n, n)), 1)) @ Q.T


FAMILIES = {
    "gaussian": lambda n, random: random.standard_normal((n, n)),
    "triangular": lambda n, random: np.triu(random.standard_normal((n, n))),
    "grcar": grcar,
    "blobs": blobs,
}


def drawn(family, n, seed):
    random = np.random.default_rng([seed, n])
    return FAMILIES[family](n, random), random


def searched(A, budget):
    """Connections of the sparser of two searches, with states balanced and as given."""
    units = [balance_matrix(A)]
    if (units[0].scaling != 1.0).any():
        units.append(balance_matrix(A, rescale_states=False))
    found = []
    for own in units:
        schur = schur_form(own.matrix)
        if is_decoupled(schur, own.matrix):
            return 0
        separation = partition_by_condition(group_repeated_eigenvalues(schur, own.matrix), budget)[0]
        is_zero = separation.schur.eigenvalues[separation.first_neuron] == 0.0  # the kernel has no connections
        found.append(sum(int(count) * (int(count) - 1) // 2 for count in separation.neurons[~is_zero]))
    return min(found)


def compared(A, random, n_budgets=N_BUDGETS):
    """Connections on the ladder and by searches, at budgets up to that of all neurons apart, which is the last rung."""
    ladder = ltinet.condition_tradeoff(A)
    budgets = np.sort(np.exp(random.uniform(0.0, np.log(1.01 * ladder[-1].condition), n_budgets)))
    bought = [ladder.within(budget) for budget in budgets]
    assert all(rung.condition <= budget for rung, budget in zip(bought, budgets, strict=True))
    connections = np.array([rung.n_connections for rung in bought])
    assert (np.diff(connections) <= 0).all()
    return connections, np.array([searched(A, budget) for budget in budgets])


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [5, 9, 12, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_of_small_matrices_no_search_finds_fewer_connections(family, n, seed):
    ladder, searches = compared(*drawn(family, n, seed))
    assert (ladder <= searches).all()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_over_all_budgets_the_ladder_has_no_more_connections_than_searches(family):
    ladder, searches = compared(*drawn(family, 35, 0))
    assert ladder.sum() <= searches.sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DATA_SETS if name != "beam"])  # of 348 states: takes too long here
def test_of_data_sets_no_search_finds_fewer_connections(data_dir, name):
    if name == "helicopter_v73":
        pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    outputs = {"C": np.eye(28)} if name == "helicopter_v73" else {}
    A = ltinet.load_system(data_dir / f"{name}.mat", **outputs).A
    ladder, searches = compared(A, np.random.default_rng(0))
    if name not in LUCKY_SEARCHES:
        assert (ladder <= searches).all()
    if name not in LUCKY_OVER_ALL_BUDGETS:
        assert ladder.sum() <= searches.sum()
