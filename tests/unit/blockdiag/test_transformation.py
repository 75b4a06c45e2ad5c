"""Hypothesis: factors are the same transformation as T and T⁻¹ multiplied out, turned or not."""

import pickle

import numpy as np
import pytest

from evidence import EPS
from hard_matrices import haar, random_dense
from ltinet.blockdiag.transformation import DenseTransformation, FactoredTransformation, PlaneRotations

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
