"""Hypothesis: every form passes the thresholds of LAPACK's own test programs, and is of the kind it says it is."""

import math

import mpmath
import numpy as np
import pytest

import ltinet
from data_sets import DATA_SETS
from evidence import (
    assert_blocks_ordered,
    assert_eigenvalues_of,
    assert_lapack_standard,
    assert_pattern,
    assert_reasons,
    assert_within_budget,
)
from hard_matrices import HARD, clusters_in_triangle, nearly_real_pairs, random_dense, rotated
from ltinet.systems.named_systems import NAMED_SYSTEMS

BUDGETS = (10.0, 100.0, 1e4, 1e8)


def assert_certified(A, form, max_condition):
    assert_lapack_standard(A, form)
    assert_within_budget(A, form, max_condition)
    assert_pattern(form)
    assert_blocks_ordered(form)
    assert_reasons(form)
    assert_eigenvalues_of(A, form)


@pytest.mark.default_cases(30)
@pytest.mark.parametrize("max_condition", BUDGETS)
@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name, max_condition):
    A = HARD[name]
    assert_certified(A, ltinet.block_diagonalize(A, max_condition=max_condition), max_condition)


@pytest.mark.default_cases(14)
@pytest.mark.parametrize("max_condition", BUDGETS[:3])
@pytest.mark.parametrize("name", DATA_SETS)
def test_data_sets(data_dir, name, max_condition):
    A = load(data_dir, name)
    assert_certified(A, ltinet.block_diagonalize(A, max_condition=max_condition), max_condition)


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("max_condition", BUDGETS[:3])
@pytest.mark.parametrize("name", [name for name in NAMED_SYSTEMS if name != "penzl"])
def test_named_systems(name, max_condition):
    A = ltinet.named_system(name).A
    assert_certified(A, ltinet.block_diagonalize(A, max_condition=max_condition), max_condition)


@pytest.mark.slow
@pytest.mark.parametrize("n_real", [30, 1000])
def test_penzl(n_real):
    A = ltinet.named_system("penzl", n_real=n_real).A
    form = ltinet.block_diagonalize(A)
    assert_certified(A, form, 1e4)
    assert form.n_connections == 0  # normal: three pairs, the rest real
    assert form.n_blocks == n_real + 3


@pytest.mark.slow
@pytest.mark.parametrize(("n", "max_condition"), [(400, 10.0), (400, 1e4), (800, 1e4)])
def test_large_random_matrices(n, max_condition):
    A = random_dense(n, n)
    form = ltinet.block_diagonalize(A, max_condition=max_condition)
    assert_lapack_standard(A, form)
    assert_within_budget(A, form, max_condition)
    assert_pattern(form)
    assert_blocks_ordered(form)


@pytest.mark.parametrize("max_condition", BUDGETS)
@pytest.mark.parametrize("exponent", [-150, 150])
@pytest.mark.parametrize("A", [random_dense(20, 1), clusters_in_triangle(), nearly_real_pairs()])
def test_partition_does_not_see_the_unit_of_time(A, exponent, max_condition):
    scaled = A * 10.0**exponent
    form = ltinet.block_diagonalize(scaled, max_condition=max_condition)
    assert_certified(scaled, form, max_condition)
    assert form.block_sizes == ltinet.block_diagonalize(A, max_condition=max_condition).block_sizes


@pytest.mark.parametrize("max_condition", [1e8, 1e12])
@pytest.mark.parametrize("seed", range(12))
def test_pair_beside_an_eigenvalue_that_it_almost_equals(seed, max_condition):
    # A rotated Jordan chain of three splits into a real eigenvalue and a pair eps^(1/3) apart: nearly parallel bases.
    A = rotated(np.diag([3.0, -3.0, 2.0, 2.0, 2.0]) + np.triu(np.ones((5, 5)), 1), seed)
    assert_lapack_standard(A, ltinet.block_diagonalize(A, max_condition=max_condition))


@pytest.mark.parametrize("n", [10, 40])
def test_couplings_just_above_rounding_are_not_lost(n):
    # Each entry is of rounding size, all of them together are not.
    tiny = 5.0 * n * np.finfo(float).eps * n
    A = np.diag(-np.arange(1.0, n + 1)) + np.triu(np.full((n, n), tiny), 1)
    assert_lapack_standard(A, ltinet.block_diagonalize(A))


@pytest.mark.parametrize(
    "name", ["three_jordan_5", "identity", "one_by_one", "orthogonal", "circulant", "clusters_in_triangle", "grcar"]
)
def test_residual_and_condition_are_reported_as_they_are(name):
    A, form = HARD[name], ltinet.block_diagonalize(HARD[name])
    size = np.linalg.norm(A, 1) * np.linalg.norm(form.T, 1)
    # Two evaluations of one rounding error agree in order of magnitude only, or both vanish against n·eps.
    assert form.residual == pytest.approx(
        np.linalg.norm(A @ form.T - form.T @ form.A, 1) / size, rel=0.5, abs=len(A) * np.finfo(float).eps
    )
    assert form.condition_raw == pytest.approx(np.linalg.cond(form.T), rel=1e-6)
    assert form.condition == pytest.approx(np.linalg.cond(form.T / form.scaling[:, None]), rel=1e-6)


@pytest.mark.parametrize(
    "A",
    [
        np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0], [0.25, 0.0, 2.0]]),
        np.array([[0.0, 1.0, 0.0, 0.0], [-4.0, -0.2, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.0, -9.0, -0.3]]),
        random_dense(6, 12),
        random_dense(7, 13),
        ltinet.named_system("mass_spring_damper", n_masses=4).A,
    ],
    ids=["three", "two_oscillators", "random_6", "random_7", "mass_spring_damper"],
)
def test_eigenvalues_are_those_of_fifty_digits(A):
    with mpmath.workdps(50):
        exact, right = mpmath.eig(mpmath.matrix(A.tolist()))
    exact = np.array([complex(value) for value in exact])
    V = np.array(right.tolist(), dtype=complex)
    form = ltinet.block_diagonalize(A)
    found = np.concatenate(form.eigenvalues)
    # Bauer and Fike: a backward error of n·eps·‖A‖ moves eigenvalues by at most cond(V) times that.
    bound = 10.0 * len(A) * np.finfo(float).eps * np.linalg.norm(A, 2) * np.linalg.cond(V)
    assert bound < 1e-11
    for value in exact:
        nearest = int(np.argmin(np.abs(found - value)))
        assert abs(found[nearest] - value) <= bound
        found = np.delete(found, nearest)


def test_blocks_of_the_nearly_defective_pair_keep_their_tiny_frequency():
    # ω = √(b|c|) follows from the product, not from a difference: 1e-9 keeps its digits.
    form = ltinet.block_diagonalize(np.array([[-5.0, 1.0, 1.0], [-1e-18, -5.0, 1.0], [0.0, 0.0, -7.0]]))
    omega = [value.imag for values in form.eigenvalues for value in values if value.imag > 0]
    assert len(omega) == 1
    assert math.isclose(omega[0], 1e-9, rel_tol=1e-12)


def load(data_dir, name):
    """State matrix of a data set; the helicopter comes without outputs and in MATLAB's HDF5 format."""
    outputs = {}
    if name == "helicopter_v73":
        pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
        outputs = {"C": np.eye(28)}
    return ltinet.load_system(data_dir / f"{name}.mat", **outputs).A
