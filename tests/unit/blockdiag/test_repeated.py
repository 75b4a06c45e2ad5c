"""Hypothesis: what rounding tears apart comes together again, and what A holds exactly stays as it is."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from evidence import EPS
from hard_matrices import haar, jordan, pair, random_dense, rotated
from ltinet.blockdiag.repeated_eigenvalues import group_repeated_eigenvalues, remove_noise
from ltinet.blockdiag.schur import SchurForm, real_schur


def assert_schur_of(A, schur):
    n = len(A)
    # What is dropped is below 10·√n·eps·|Z|ᵀ|A||Z| in each entry: a small multiple of LAPACK's own 30·n·eps.
    assert np.linalg.norm(schur.Z @ schur.R @ schur.Z.T - A, 1) <= 30 * n * EPS * np.linalg.norm(A, 1)
    assert np.linalg.norm(schur.Z @ schur.Z.T - np.eye(n), 1) <= 30 * n * EPS
    assert not np.any(np.tril(schur.R, -2))


def similar(values, seed):
    """A general similarity of a diagonal matrix: semisimple, but not so that anybody could see it."""
    V = haar(len(values), seed) + 0.1 * np.random.default_rng(seed).standard_normal((len(values), len(values)))
    return V @ np.diag(values) @ np.linalg.inv(V)


def on_itself(A):
    """A quasi-triangular matrix as its own Schur form."""
    return SchurForm(np.array(A, order="F"), np.eye(len(A), order="F"))


# Pairs


@pytest.mark.parametrize("seed", range(20))
def test_noise_pairs_become_real(seed):
    A = similar([-1.0, -1.0, -1.0, -2.0, -2.0, -50.0], seed)
    schur = remove_noise(real_schur(A), A)
    assert len(schur.pairs) == 0
    assert_schur_of(A, schur)


@pytest.mark.parametrize("omega", [1e-16, 1e-15])
def test_noise_pair_keeps_larger_entry(omega):
    for A in (np.array([[-1.0, 2 * omega], [-omega, -1.0]]), np.array([[-1.0, omega], [-2 * omega, -1.0]])):
        schur = remove_noise(on_itself(A), A)
        assert schur.sizes.tolist() == [1, 1]
        assert abs(schur.R[0, 1]) == 2 * omega
        assert_schur_of(A, schur)


@pytest.mark.parametrize("seed", range(20))
def test_jordan_chain_is_not_a_pair(seed):
    # Rounding parts its eigenvalues by √eps, along the real axis or across it.
    A = rotated(block_diag(jordan(2, -1.0), [[-3.0]], [[-8.0]]), seed)
    schur = remove_noise(real_schur(A), A)
    assert len(schur.pairs) == 0
    assert_schur_of(A, schur)


@pytest.mark.parametrize("A", [pair(-1.0, 1e-12), np.array([[-5.0, 1.0], [-1e-18, -5.0]]), pair(-1e-20, 1e-20)])
def test_pairs_that_are_more_than_noise_stay(A):
    schur = remove_noise(on_itself(A), A)
    np.testing.assert_array_equal(schur.R, A)


def test_noise_is_local():
    # Beside 1e10 a frequency of 1e-8 is below eps; the slow pair is a part of its own, and known to all its digits.
    A = block_diag([[-1e10]], pair(-1e-4, 1e-8))
    assert remove_noise(on_itself(A), A).sizes.tolist() == [1, 2]


# Zeros


def test_eigenvalues_of_noise_are_zero():
    A = rotated(np.diag([0.0, -1.0, 0.0, -3.0, 2.0]), 5)
    values = remove_noise(real_schur(A), A).eigenvalues
    assert np.count_nonzero(values == 0.0) == 2


def test_small_eigenvalues_are_not_zeroed():
    A = np.diag([-1e-12, -1e12]) + np.eye(2, k=1)
    np.testing.assert_array_equal(remove_noise(on_itself(A), A).R, A)


# Repeated eigenvalues


@pytest.mark.parametrize("seed", range(20))
def test_repeated_eigenvalues_are_multiples_of_the_identity(seed):
    A = similar([-1.0, -3.0, -1.0, -2.0, -1.0, -2.0, -7.0], seed)
    schur = group_repeated_eigenvalues(remove_noise(real_schur(A), A), A)
    assert_schur_of(A, schur)
    for value, count in ((-1.0, 3), (-2.0, 2)):
        at = np.flatnonzero(np.abs(schur.R.diagonal() - value) < 1e-6)
        assert np.ptp(at) == count - 1  # side by side
        block = schur.R[np.ix_(at, at)]
        np.testing.assert_array_equal(block, block[0, 0] * np.eye(count))


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_corrected_couplings_are_noise(bits):
    # Vectors that overlap in small entries only: |Z|ᵀ|A||Z| is less there than what rounding leaves. All is dyadic, so
    # that the eigenvalue -1 of A has two vectors to the last bit.
    rng = np.random.default_rng(bits)
    values, identity = -np.array([1.0, 1.75, 2.25, 1.0, 3.25, 3.75]), np.eye(6)
    for _ in range(40):
        lower, upper = np.zeros((2, 6, 6))
        lower[3:, :3], upper[:3, 3:] = rng.integers(-1, 2, (2, 3, 3)) * 2.0**-bits
        A = (identity + lower) @ (identity + upper) @ np.diag(values) @ (identity - upper) @ (identity - lower)
        order = rng.permutation(6)
        A = A[np.ix_(order, order)]
        schur = group_repeated_eigenvalues(remove_noise(real_schur(A), A), A)
        at = np.flatnonzero(np.abs(schur.R.diagonal() + 1.0) < 1e-6)
        assert len(at) == 2
        assert not schur.R[at[0], at[1]]


def test_distinct_eigenvalues_are_left_alone():
    A = random_dense(12, 3)
    schur = real_schur(A)
    assert group_repeated_eigenvalues(schur, A) is schur


@pytest.mark.parametrize("A", [jordan(3, -2.0), block_diag(jordan(2, -1.0), jordan(2, -1.0)) + np.eye(4, k=2)])
def test_defective_eigenvalues_are_unchanged(A):
    schur = group_repeated_eigenvalues(on_itself(A), A)
    np.testing.assert_array_equal(schur.R, A)


def test_semisimple_eigenvalue_is_grouped_beside_a_defective_one():
    A = np.diag([-1.0, -1.0, -2.0, -3.0, -2.0])
    A[0, 1], A[2, 3], A[3, 4], A[2, 4] = 1.0, 0.5, 1.0, -0.5  # A + 2 I has rank one on the last three states
    schur = group_repeated_eigenvalues(on_itself(A), A)
    assert_schur_of(A, schur)
    at = np.flatnonzero(np.abs(schur.R.diagonal() + 2.0) < 1e-6)
    assert np.ptp(at) == 1
    np.testing.assert_allclose(schur.R[np.ix_(at, at)], -2.0 * np.eye(2), atol=4 * EPS)
    at = np.flatnonzero(np.abs(schur.R.diagonal() + 1.0) < 1e-6)
    np.testing.assert_array_equal(schur.R[np.ix_(at, at)], jordan(2, -1.0))


@pytest.mark.parametrize("coupling", [1e-8, 1e-15, 1e-30])
def test_exact_couplings_are_not_noise(coupling):
    A = np.diag([-1.0, -1.0, -2.0]) + coupling * np.eye(3, k=1)
    np.testing.assert_array_equal(group_repeated_eigenvalues(on_itself(A), A).R, A)


@pytest.mark.parametrize("seed", range(10))
def test_couplings_are_in_the_last_vector(seed):
    # Four equal eigenvalues and one neuron that all four lean on: three of them can be chosen orthogonal to it.
    rng = np.random.default_rng(seed)
    A = rotated(np.block([[-np.eye(4), rng.standard_normal((4, 1))], [np.zeros((1, 4)), -3.0 * np.eye(1)]]), seed)
    schur = group_repeated_eigenvalues(remove_noise(real_schur(A), A), A)
    assert_schur_of(A, schur)
    at = np.flatnonzero(np.abs(schur.R.diagonal() + 1.0) < 1e-6)
    other = np.flatnonzero(np.abs(schur.R.diagonal() + 3.0) < 1e-6)
    between = np.abs(schur.R[at][:, other] + schur.R[other][:, at].T).ravel()
    assert np.max(between[:-1]) <= 30 * 5 * EPS * np.linalg.norm(A)
    assert between[-1] > 0.1


def test_first_vectors_are_uncoupled():
    A = rotated(np.diag([-1.0, -1.0, -1.0, -2.0]) + np.array([[0, 0, 0, 5.0]] * 3 + [[0] * 4]), 8)
    turned = haar(4, 9)
    ways = [group_repeated_eigenvalues(remove_noise(real_schur(B), B), B) for B in (A, turned @ A @ turned.T)]
    leaning = [np.sort(np.abs(np.triu(schur.R, 1)).ravel())[-3:] for schur in ways]
    np.testing.assert_allclose(leaning[0], leaning[1], atol=100 * EPS * np.linalg.norm(A))
    assert leaning[0][-1] == pytest.approx(5.0 * np.sqrt(3.0), rel=1e-12)
    assert leaning[0][-2] <= 30 * 4 * EPS * np.linalg.norm(A)
