"""Hypothesis: factors are the same transformation as T and T⁻¹ multiplied out, turned or not."""

import pickle

import numpy as np
import pytest

from evidence import EPS
from hard_matrices import haar, random_dense
from ltinet.blockdiag.transformation import (
    DenseTransformation,
    FactoredTransformation,
    IdentityTransform,
    ImplicitTransformation,
    PlaneRotations,
    ScaledOrthogonalBasis,
)

N = 9


def factors():
    rng = np.random.default_rng(0)
    basis = np.eye(N) + 0.1 * rng.standard_normal((N, N))
    scaling = 2.0 ** rng.integers(-3, 4, N)
    return FactoredTransformation(scaling, haar(N), basis, np.linalg.inv(basis), rng.permutation(N))


def turns(seed=0):
    angles = np.random.default_rng(seed).uniform(0.0, 6.0, 2)
    planes = np.array([[[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]] for a in angles])
    return PlaneRotations(planes, np.array([[1, 2], [5, 6]]))


def whole_turn(turns):
    W = np.eye(N)
    for at, plane in zip(turns.at, turns.planes, strict=True):
        W[np.ix_(at, at)] = plane
    return W


def close(found, expected):
    # Products of three matrices with condition numbers of order ten.
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=100 * N * EPS * np.max(np.abs(expected)))


def test_the_factors_in_their_order():
    given = factors()
    close(given.T, np.diag(given.scaling) @ given.Z @ given.basis[:, given.order])
    close(given.T_inv @ given.T, np.eye(N))


@pytest.mark.parametrize("as_product", [False, True])
def test_rotated_columns_and_rows(as_product):
    before = DenseTransformation(factors().T, factors().T_inv) if as_product else factors()
    W, V = whole_turn(turns()), whole_turn(turns(1))
    after = before.rotated(turns())
    close(after.T, before.T @ W)
    close(after.T_inv, W.T @ before.T_inv)
    twice = after.rotated(turns(1))
    close(twice.T, before.T @ W @ V)
    close(twice.T_inv, V.T @ W.T @ before.T_inv)


@pytest.mark.parametrize(
    "given", [factors(), factors().rotated(turns()), DenseTransformation(factors().T, factors().T_inv)]
)
def test_thin_products(given):
    B, C = random_dense(N, 3)[:, :2], random_dense(N, 4)[:3]
    close(given.to_blocks(B), given.T_inv @ B)
    close(given.from_blocks(C), C @ given.T)


@pytest.mark.parametrize("given", [factors(), DenseTransformation(factors().T, factors().T_inv)])
def test_everything_is_read_only_even_from_a_pickle(given):
    clone = pickle.loads(pickle.dumps(given))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(clone.T, given.T)
    np.testing.assert_array_equal(clone.T_inv, given.T_inv)
    assert not any(matrix.flags.writeable for one in (given, clone) for matrix in (one.T, one.T_inv))


def test_rotations_keep_entries_above_rounding():
    # Products, cosine and sine are rounded: at most 2 eps of the terms. What is left of 5 eps is an entry of its own.
    quarter = np.full((1, 2, 2), np.sqrt(0.5)) * [[1.0, 1.0], [-1.0, 1.0]]
    rotations = PlaneRotations(quarter, np.array([[0, 1]]))
    rotated = rotations.rotate_columns(np.array([[1.0, 1.0 - 10.0 * EPS], [1.0, 1.0 - 2.0 * EPS]]))
    assert rotated[0, 0] == pytest.approx(10.0 * EPS * np.sqrt(0.5), rel=0.2, abs=0.0)
    assert rotated[1, 0] == 0.0


@pytest.mark.parametrize("condition", [1.0, 40.0])
def test_magnitudes_of_an_operator_have_the_norm_of_its_rounding(condition):
    # eps log₂ n ‖b‖ of an orthogonal transform, in terms of cond(T), spread evenly over all entries.
    n, rng = 1024, np.random.default_rng(0)
    basis = ScaledOrthogonalBasis(IdentityTransform())
    magnitudes = ImplicitTransformation(basis, np.arange(n), condition).magnitudes
    B, C = rng.random((n, 2)), rng.random((3, n))
    to_blocks, from_blocks = magnitudes.to_blocks(B), magnitudes.from_blocks(C)
    assert np.ptp(to_blocks, axis=0).max() == np.ptp(from_blocks, axis=1).max() == 0.0
    expected = condition * np.log2(n) * np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(np.linalg.norm(to_blocks, axis=0), expected, rtol=1e-3)  # log₂(n + 2) for small n
    expected = condition * np.log2(n) * np.linalg.norm(C, axis=1)
    np.testing.assert_allclose(np.linalg.norm(from_blocks, axis=1), expected, rtol=1e-3)
