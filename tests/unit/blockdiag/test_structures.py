"""Structures are found by their entries, their T decouples, and it is never worse conditioned than the dense way's."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import circulant as filled_circulant

import ltinet
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.blockdiag import structured_form
from ltinet.blockdiag.structured_form import find_structure, find_structured_form
from ltinet.systems.matrices import as_sparse_matrix
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES, SparseDescriptor

MOST = 1e3


def bands(n, above, diagonal, below):
    return sparse.diags_array([below, diagonal, above], offsets=[-1, 0, 1], shape=(n, n))


def tridiagonal(rng, n, *, symmetric=True):
    above = rng.uniform(0.5, 2.0, n - 1) * rng.choice([-1.0, 1.0], n - 1)
    below = above if symmetric else above * rng.uniform(0.8, 1.25, n - 1)
    return bands(n, above, -3.0 - rng.random(n), below)


def circulant(rng, n, *, symmetric=False):
    column = np.zeros(n)
    column[[0, 1, 2, n - 1, n - 2]] = rng.uniform(-1.0, 1.0, 5)
    if symmetric:
        column[[n - 1, n - 2]] = column[[1, 2]]
    return sparse.csr_array(filled_circulant(column))


def kronecker(first, second):
    n1, n2 = first.shape[0], second.shape[0]
    return sparse.kron(sparse.eye_array(n2), first) + sparse.kron(second, sparse.eye_array(n1))


def banded_symmetric(rng, n):
    own = sparse.random_array((n, n), density=0.3, random_state=rng) + sparse.eye_array(n, k=1)
    return own + own.T


FAMILIES = {
    "diagonal": lambda rng, n: sparse.diags_array(rng.standard_normal(n)),
    "symmetric tridiagonal matrix": tridiagonal,
    "tridiagonal matrix": lambda rng, n: tridiagonal(rng, n, symmetric=False),
    "symmetric tridiagonal Toeplitz": lambda _, n: bands(n, 1.5, -4.0, 1.5),
    "tridiagonal Toeplitz": lambda _, n: bands(n, -1.1, 0.3, -1.0),
    "circulant": circulant,
    "circulant matrix": lambda rng, n: circulant(rng, n, symmetric=True),
    "Kronecker sum": lambda rng, n: kronecker(bands(n, 1.0, -2.0, 1.0), tridiagonal(rng, n + 3)),
    "Kronecker sum 7": lambda rng, n: kronecker(circulant(rng, 7), banded_symmetric(rng, n)),
    "Kronecker": lambda rng, n: kronecker(tridiagonal(rng, n, symmetric=False), circulant(rng, 6)),
    "parts": lambda rng, n: sparse.block_diag(
        [circulant(rng, n), [[-7.0]], rng.standard_normal((5, 5)), [[-1.0, 2.0], [-2.0, -1.0]], tridiagonal(rng, 9)]
    ),
}


@pytest.mark.parametrize("n", [6, 11, 20])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_transformation_of_each_structure_decouples_it(name, n):
    A = as_sparse_matrix(FAMILIES[name](np.random.default_rng(n), n), "A")
    form = find_structured_form(SparseDescriptor(A, None, np.zeros((A.shape[0], 0))), max_condition=MOST)
    assert name.split(" matrix")[0] in form.decisions[0]
    size = A.shape[0]
    T, T_inv, A_bd = form.T, form.T_inv, form.A[:, :]
    filled = A.toarray()
    noise = rounding_tolerance(size, np.linalg.norm(filled, 1) * form.condition)
    assert np.abs(filled @ T - T @ A_bd).max() <= noise
    assert np.abs(T @ T_inv - np.eye(size)).max() <= rounding_tolerance(size, form.condition)
    assert form.residual <= rounding_tolerance(size)
    assert np.linalg.cond(T) <= form.condition * (1.0 + rounding_tolerance(size))
    x = np.random.default_rng(1).standard_normal((3, size))
    assert np.allclose(
        form.transformation.from_blocks(x), x @ T, rtol=0.0, atol=rounding_tolerance(size, form.condition)
    )
    lows = [min(own.real) for own in form.eigenvalues]
    assert all(high >= low - noise for high, low in pairwise(lows)) or form.n_connections


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "parts"])
def test_it_is_never_worse_conditioned_than_the_dense_way(name):
    for seed in range(4):
        A = as_sparse_matrix(FAMILIES[name](np.random.default_rng(seed), 12), "A")
        found = find_structure(A, max_condition=MOST)
        dense = ltinet.block_diagonalize(A.toarray(), max_condition=1e12)
        assert found.condition <= dense.condition_raw * (1.0 + 1e-10)
        assert dense.n_connections == 0


def test_structures_of_rounded_matrices():
    rng = np.random.default_rng(2)
    third = 1.0 / 3.0
    plate = kronecker(bands(9, third, -2.0 * third, third), bands(8, third, -2.0 * third, third))
    plate.data *= 1.0 + EPS * rng.integers(-1, 2, len(plate.data))
    assert "Kronecker sum 9 × 8" in find_structure(as_sparse_matrix(plate, "A"), max_condition=MOST).description
    rod = as_sparse_matrix(bands(30, 1.0, -2.0, 1.0 + 2.0 * EPS), "A")
    assert find_structure(rod, max_condition=MOST).condition == 1.0


@pytest.mark.parametrize(
    "A",
    [
        sparse.random_array((40, 40), density=0.2, random_state=0) + 5.0 * sparse.eye_array(40),
        bands(40, 1.0, -2.0, -1.0),  # complex eigenvalues: no scaling makes it symmetric
        bands(40, 1.0, -2.0, 3.0),  # symmetric after scaling by 3^(39/2), which costs all digits
        kronecker(circulant(np.random.default_rng(1), 8), circulant(np.random.default_rng(2), 9)),
    ],
    ids=["none", "bc < 0", "badly conditioned", "pairs in both directions"],
)
def test_unstructured_matrices_have_no_structure(A):
    assert find_structure(as_sparse_matrix(A, "A"), max_condition=MOST) is None


@pytest.mark.parametrize(("limit", "is_found"), [(11, False), (12, True)])
def test_symmetric_factor_may_have_as_many_states_as_a_dense_matrix(monkeypatch, limit, is_found):
    rng = np.random.default_rng(0)
    A = kronecker(circulant(rng, 7), banded_symmetric(rng, 12))
    monkeypatch.setattr(structured_form, "MAX_DENSE_STATES", limit)
    assert (find_structure(as_sparse_matrix(A, "A"), max_condition=MOST) is not None) == is_found


def test_structured_form_requires_diagonal_E():
    n = 12
    A, E = as_sparse_matrix(bands(n, 1.0, -2.0, 1.0), "A"), np.arange(1.0, n + 1.0)
    pencil = SparseDescriptor(A, as_sparse_matrix(sparse.diags_array(E), "E"), np.ones((n, 1)))
    form = find_structured_form(pencil, max_condition=MOST)
    expected = np.sort(np.linalg.eigvals(A.toarray() / E[:, None]).real)[::-1]
    assert np.allclose(np.concatenate(form.eigenvalues).real, expected, rtol=1e-12)
    assert find_structured_form(SparseDescriptor(A, A, np.ones((n, 1))), max_condition=MOST) is None


def test_T_of_large_structured_form_raises():
    n = MAX_DENSE_STATES + 1
    pencil = SparseDescriptor(as_sparse_matrix(bands(n, 1.0, -2.0, 1.0), "A"), None, np.ones((n, 1)))
    form = find_structured_form(pencil, max_condition=MOST)
    for ask in (lambda: form.T, lambda: form.T_inv):
        with pytest.raises(ltinet.InvalidSystemError, match=r"is an operator.*form\.transformation\.to_blocks\(B\)"):
            ask()
    assert "structure: symmetric tridiagonal Toeplitz matrix" in str(form)
    assert form.n_connections == 0
