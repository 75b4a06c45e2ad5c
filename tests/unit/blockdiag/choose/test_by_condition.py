"""Hypothesis: what comes out is within the budget, always ends, and spends the budget on fewer connections."""

import signal

import numpy as np
import pytest

from hard_matrices import HARD, clusters_in_triangle, jordan, random_dense, rotated
from ltinet.blockdiag.partition import partition_by_condition
from ltinet.blockdiag.schur import SchurForm, real_schur

# Condition numbers are exact to n·eps·κ² relative to one, with κ the budget itself where it is small.
SLACK = 1.0 + 1e-6


@pytest.fixture
def time_limit():
    """Fail a search without end after ten seconds, a thousand times what it needs; POSIX only, others just wait."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def fail(*_):
        pytest.fail("the search did not end within ten seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, 10.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def connections(separation):
    return sum(int(count) * (int(count) - 1) // 2 for count in separation.neurons)


@pytest.mark.parametrize("max_condition", [1.0, 2.0, 10.0, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("A", [random_dense(20, 1), clusters_in_triangle(), rotated(jordan(8, -1.0))])
def test_the_budget_holds(A, max_condition):
    separation, tradeoff = partition_by_condition(real_schur(A), max_condition)
    singular_values = np.linalg.svd(separation.bases.basis, compute_uv=False)
    assert singular_values[0] <= max_condition * SLACK * singular_values[-1]
    assert all(condition >= 1.0 - 1e-12 for condition in tradeoff.values())


@pytest.mark.parametrize("A", [random_dense(20, 1), clusters_in_triangle(), clusters_in_triangle(seed=5)])
def test_connections_fall_with_max_condition(A):
    schur = real_schur(A)
    counts = [connections(partition_by_condition(schur, k)[0]) for k in (1.0, 10.0, 1e4, 1e8)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]


def test_singletons_within_the_limit():
    schur = SchurForm(np.array([[1.0, 0.1], [0.0, 2.0]]), np.eye(2))
    separation, tradeoff = partition_by_condition(schur, 10.0)
    assert separation.n_blocks == 2
    assert tradeoff == {}


@pytest.mark.default_cases(8)
@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize("max_condition", [1e15, 1e16, 1e200, np.inf])
@pytest.mark.parametrize(
    "name",
    ["jordan_20_rotated", "three_jordan_5_rotated", "wilkinson_companion", "hippo_legs_64", "strictly_triangular"],
)
def test_limits_beyond_working_precision(name, max_condition):
    separation, _ = partition_by_condition(real_schur(HARD[name]), max_condition)
    assert np.all(np.isfinite(separation.bases.basis))
    # Beyond 1/eps T has no inverse in double precision, whatever the budget says.
    assert separation.condition <= min(max_condition, 1.0 / np.finfo(float).eps) * SLACK


@pytest.mark.parametrize("n", [2, 5, 15])
def test_a_nilpotent_block_stays_together(n):
    separation, _ = partition_by_condition(SchurForm(np.triu(random_dense(n, n), 1), np.eye(n)), 1e4)
    assert separation.n_blocks == 1


def test_independent_jordan_blocks_are_found():
    R = np.kron(np.eye(3), jordan(4, -2.0))
    separation, _ = partition_by_condition(SchurForm(R, np.eye(12)), 10.0)
    assert separation.neurons.tolist() == [4, 4, 4]
