"""Hypothesis: the certificate says what is so: counts, conditions, residual, separation and reasons."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from hard_matrices import HARD, clusters_in_triangle, jordan, random_dense
from ltinet import BlockDiagonalForm, block_diagonalize
from ltinet.blockdiag.form import explain_block


@pytest.fixture(scope="module")
def form():
    return block_diagonalize(clusters_in_triangle(), max_condition=100.0)


def test_counts(form):
    assert form.n_blocks == len(form.block_sizes) == len(form.eigenvalues)
    assert form.neurons_per_block == (6, 6, 12)
    assert form.n_connections == 15 + 15 + 66


def test_pairs_count_once():
    form = block_diagonalize(HARD["defective_pairs"])
    assert form.block_sizes == (6,)
    assert form.neurons_per_block == (3,)
    assert form.n_connections == 2  # a chain: each pair feeds the one before it


def test_blocks_are_cut_from_the_diagonal(form):
    np.testing.assert_array_equal(form.block(1), form.A[6:12, 6:12])
    np.testing.assert_array_equal(form.block(2), form.A[12:, 12:])


def test_summary_of_form(form):
    text = str(form)
    assert "24 × 24" in text
    assert "24 real, 0 complex pairs" in text
    assert "3 (most neurons in one: 12, 6, 6)" in text
    assert "96 of 276 possible" in text
    assert f"{form.condition:.4g} balanced" in text
    assert f"{form.condition_raw:.4g} as given" in text
    assert f"{form.residual:.2e}" in text
    assert f"{form.separation:.4g}" in text
    assert form.notes[0] in text


def test_summary_shortens_notes():
    A = np.kron(np.diag(-np.arange(1.0, 8.0)), np.eye(2)) + np.kron(np.eye(7), jordan(2, 0.0))
    form = block_diagonalize(A)
    assert len(form.notes) == 7
    assert "and 3 more in .notes" in str(form)


def test_repr_is_one_line(form):
    assert repr(form) == f"BlockDiagonalForm(n_states=24, n_blocks=3, n_connections=96, condition={form.condition:.4g})"


@pytest.mark.parametrize("seed", range(5))
def test_separation_against_all_pairs(seed):
    form = block_diagonalize(random_dense(20, seed), max_condition=20.0)
    distances = [abs(a - b) for one, other in itertools.combinations(form.eigenvalues, 2) for a in one for b in other]
    assert form.separation == pytest.approx(min(distances, default=np.inf), rel=1e-15)


def test_separation_of_one_block_is_infinite():
    assert block_diagonalize(jordan(3, 1.0)).separation == np.inf


def test_separation_of_equal_eigenvalues_is_zero():
    assert block_diagonalize(np.eye(3)).separation == 0.0


def test_tradeoff_holds_what_was_chosen(form):
    counts = [n_blocks for n_blocks, _ in form.tradeoff]
    assert counts == sorted(set(counts))
    assert dict(form.tradeoff)[form.n_blocks] <= form.condition
    assert max(counts) == 24  # the search starts from single neurons
    assert all(condition >= 1.0 - 1e-12 for _, condition in form.tradeoff)


def test_notes_give_a_true_bound():
    # The eigenvectors of [[1, b], [0, 1 + d]] are at cond(T) = √(1 + (b/d)²) + b/d, and there is no other basis.
    b, d = 1.0, 1e-3
    form = block_diagonalize([[1.0, b], [0.0, 1.0 + d]], max_condition=100.0, balance=False)
    assert form.n_blocks == 1
    assert len(form.notes) == 1
    assert "taking any one out needs cond(T) ≥ 2e+03" in form.notes[0]


def test_notes_name_the_kernel():
    A = np.zeros((5, 5))
    A[:3, 3:] = random_dense(5)[:3, 3:]
    A[3:, 3:] = [[-1.0, 0.3], [0.0, -2.0]]
    form = block_diagonalize(A)
    assert form.neurons_per_block[0] == 3
    assert "eigenvalue zero" in form.notes[0]


def test_no_notes_for_single_neurons():
    assert block_diagonalize(np.diag([1.0, 2.0]) + np.eye(2, k=1)).notes == ()


def test_no_notes_for_given_n_blocks():
    assert block_diagonalize(clusters_in_triangle(), n_blocks=3).notes == ()


@pytest.mark.parametrize("n", [2, 3, 8, 20, 40])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_jordan_block_is_called_inseparable(n, value):
    # Perturbing by eps parts the eigenvectors by eps^(1/n) at most: no cond(T) below eps^(−1/2) can be known.
    assert "needs cond(T) ≥" in explain_block(jordan(n, value), 1e4)


def test_pickle_and_copy_keep_everything(form):
    for clone in (pickle.loads(pickle.dumps(form)), copy.deepcopy(form)):  # noqa: S301 - our own bytes
        assert str(clone) == str(form)
        for field in dataclasses.fields(BlockDiagonalForm):
            original, copied = getattr(form, field.name), getattr(clone, field.name)
            if isinstance(original, np.ndarray):
                np.testing.assert_array_equal(copied, original)
            elif field.name == "transformation":
                np.testing.assert_array_equal(copied.T, original.T)
                np.testing.assert_array_equal(copied.T_inv, original.T_inv)
                assert not any(matrix.flags.writeable for matrix in (copied.T, copied.T_inv))
            elif field.name != "eigenvalues":
                assert copied == original
        assert clone.tradeoff == form.tradeoff
        assert clone.condition == form.condition


def test_forms_compare_by_identity(form):
    assert form == form
    assert form != block_diagonalize(clusters_in_triangle(), max_condition=100.0)
    assert len({form, form}) == 1


@pytest.mark.parametrize("ratio", [1e200, 1e-200])
def test_summary_with_overflowing_units(ratio):
    form = block_diagonalize([[0.0, ratio], [-1.0 / ratio, 0.0]])
    assert form.condition == pytest.approx(1.0, rel=1e-12)
    assert form.condition_raw > 1e100
    assert "balanced" in str(form)


@pytest.mark.parametrize("max_condition", [10.0, 1e4, 1e8])
def test_summary_with_parallel_vectors(max_condition):
    # The Gram matrix of this block's eigenvectors is singular in double precision.
    couplings = np.array(
        [
            [0, -3, 3, 0, 1, -2, 1, -3, -3],
            [0, 0, 0, 3, 0, 1, -1, 3, 1],
            [0, 0, 0, 3, -2, -2, 3, 1, 2],
            [0, 0, 0, 0, -3, 2, -1, -1, -1],
            [0, 0, 0, 0, 0, 0, 0, 2, 3],
            [0, 0, 0, 0, 0, 0, 2, 1, -2],
            [0, 0, 0, 0, 0, 0, 0, 1, -2],
            [0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    )
    form = block_diagonalize(1e7 * couplings + np.diag([1, 1, 0, 1, 0, 0, 1, 0, 1]), max_condition=max_condition)
    assert len(form.notes) > 0
    assert "note" in str(form)
