"""Hypothesis: the public door takes what users have, refuses the rest with advice, and chooses blocks in three ways."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans

import ltinet
from evidence import EPS, assert_blocks_ordered, assert_lapack_standard, assert_pattern
from hard_matrices import HARD, clusters_in_triangle, haar, random_dense, rotated
from ltinet import InvalidSystemError, PartitionError, block_diagonalize
from ltinet.blockdiag import block_diagonalization as door
from ltinet.blockdiag.block_diagonalization import decompose
from ltinet.blockdiag.partition import BlockChoice, NotSparserError
from ltinet.blockdiag.schur import BalancedMatrix

TRIANGULAR = np.array([[1.0, 2.0, 3.0], [0.0, 3.0, 4.0], [0.0, 0.0, 5.0]])


class Labels:
    """A clustering that returns what it was given, and remembers the points."""

    def __init__(self, labels):
        self.labels = labels
        self.points = None

    def fit_predict(self, X):
        self.points = X
        return self.labels


# What can be given


@pytest.mark.parametrize(
    "A",
    [
        [[1, 2, 3], [0, 3, 4], [0, 0, 5]],
        TRIANGULAR.astype(int),
        TRIANGULAR.astype(np.float32),
        np.asfortranarray(TRIANGULAR),
        sparse.csr_array(TRIANGULAR),
        sparse.coo_matrix(TRIANGULAR),
    ],
    ids=["lists", "integers", "float32", "fortran", "sparse_array", "sparse_matrix"],
)
def test_all_kinds_of_matrices_give_the_same_form(A):
    expected = block_diagonalize(TRIANGULAR)
    form = block_diagonalize(A)
    np.testing.assert_array_equal(form.T, expected.T)
    np.testing.assert_array_equal(form.A, expected.A)


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (1j * TRIANGULAR, "complex"),
        ([[np.nan, 0.0], [0.0, 1.0]], "not finite"),
        ([[np.inf]], "not finite"),
        (np.ones((2, 3)), "square"),
        (np.ones(3), "1 axis"),
        (np.ones((2, 2, 2)), "axes"),
        ([["a"]], "numeric"),
        ([[1.0, 2.0], [3.0]], "rows of equal length"),
    ],
)
def test_other_matrices_are_refused_by_name(A, words):
    with pytest.raises(InvalidSystemError, match=words) as caught:
        block_diagonalize(A)
    assert str(caught.value).startswith("A ")


def test_no_states():
    form = block_diagonalize(np.zeros((0, 0)))
    assert form.n_blocks == form.n_connections == 0
    assert form.T.shape == form.A.shape == form.T_inv.shape == (0, 0)
    assert form.condition == form.condition_raw == 1.0
    assert form.residual == 0.0
    assert form.separation == np.inf
    assert form.tradeoff == ((0, 1.0),)
    assert "0 × 0" in str(form)


@pytest.mark.parametrize("value", [-3.0, 0.0, 5e-324, 1e308])
def test_one_state(value):
    form = block_diagonalize([[value]])
    np.testing.assert_array_equal(form.A, [[value]])
    assert abs(form.T[0, 0]) == 1.0
    assert form.block_sizes == (1,)
    assert form.condition == 1.0


@pytest.mark.parametrize("options", [{"n_blocks": 1}, {"clustering": Labels(np.zeros(0, dtype=int))}])
def test_no_states_in_the_other_ways(options, capfd):
    assert block_diagonalize(np.zeros((0, 0)), **options).n_blocks == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


# Arguments


@pytest.mark.parametrize("max_condition", [0.0, 0.999, -5.0, np.nan])
def test_max_condition_must_be_at_least_one(max_condition):
    with pytest.raises(PartitionError, match="max_condition"):
        block_diagonalize(TRIANGULAR, max_condition=max_condition)


@pytest.mark.parametrize("max_condition", ["10", None, [10.0, 100.0], 1j])
def test_max_condition_must_be_a_number(max_condition):
    with pytest.raises((PartitionError, TypeError)):
        block_diagonalize(TRIANGULAR, max_condition=max_condition)


@pytest.mark.parametrize("max_condition", [10, np.float32(10.0), np.int64(10), 1e155, 1e200, np.inf])
def test_max_condition_accepts_all_number_types(max_condition):
    assert block_diagonalize(TRIANGULAR, max_condition=max_condition).n_connections == 0


def test_max_condition_one_gives_orthogonal_T():
    form = block_diagonalize(TRIANGULAR, max_condition=1.0)
    assert form.n_blocks == 1
    # Orthogonal to rounding: 1 + n·eps is all that a measured condition number can say.
    assert form.condition <= 1.0 + 30 * np.finfo(float).eps


@pytest.mark.parametrize("n_blocks", [0, -1, 2.0, "2", 1.5])
def test_a_number_of_blocks_must_be_a_positive_integer(n_blocks):
    with pytest.raises(PartitionError, match="n_blocks"):
        block_diagonalize(TRIANGULAR, n_blocks=n_blocks)


def test_n_blocks_and_clustering_exclude_each_other():
    with pytest.raises(PartitionError, match="exclude each other"):
        block_diagonalize(TRIANGULAR, n_blocks=2, clustering=Labels([0, 1, 1]))


def test_a_clustering_without_fit_predict_is_refused():
    with pytest.raises(PartitionError, match="fit_predict"):
        block_diagonalize(TRIANGULAR, clustering=object())


def test_options_are_keywords():
    with pytest.raises(TypeError):
        block_diagonalize(TRIANGULAR, 10.0)


# A number of blocks


@pytest.mark.parametrize("n_blocks", [1, 2, 3, np.int64(2)])
def test_n_blocks(n_blocks):
    form = block_diagonalize(TRIANGULAR, n_blocks=n_blocks)
    assert form.n_blocks == n_blocks
    assert_lapack_standard(TRIANGULAR, form)
    assert_pattern(form)


def test_the_number_of_blocks_of_a_normal_matrix():
    A = rotated(np.diag([1.0, 1.0, 2.0, 3.0]))
    assert [block_diagonalize(A, n_blocks=count).n_blocks for count in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_more_blocks_than_neurons_are_refused():
    with pytest.raises(PartitionError, match="2 neurons"):
        block_diagonalize([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], n_blocks=3)


def test_n_blocks_of_inseparable_subspaces_raises():
    with pytest.raises(PartitionError, match="cannot be separated"):
        block_diagonalize([[1.0, 1.0], [0.0, 1.0]], n_blocks=2)


def test_the_number_of_blocks_ignores_the_budget():
    form = block_diagonalize([[1.0, 1e6], [0.0, 2.0]], n_blocks=2, max_condition=1.0, balance=False)
    assert form.condition > 1e5
    assert form.budget is None


# A clustering


def test_a_clustering_sees_one_point_for_each_neuron():
    A = np.array([[-1.0, 2.0, 1.0], [-2.0, -1.0, 1.0], [0.0, 0.0, -3.0]])
    labels = Labels(np.array([0, 1]))
    form = block_diagonalize(A, clustering=labels)
    np.testing.assert_allclose(sorted(map(tuple, labels.points)), [(-3.0, 0.0), (-1.0, 2.0)], atol=1e-12)
    assert form.block_sizes == (2, 1)


def test_kmeans():
    A = clusters_in_triangle(coupling=0.2)
    form = block_diagonalize(A, clustering=KMeans(3, n_init=5, random_state=0))
    assert form.block_sizes == (6, 6, 12)  # around −1, −3, and −6 with −6.5
    assert_lapack_standard(A, form)
    assert_pattern(form)
    assert_blocks_ordered(form)


def test_dbscan_outliers_are_blocks():
    values = [-1.0, -1.01, -1.02, -5.0, -9.0]
    A = rotated(np.diag(values) + np.triu(np.full((5, 5), 0.05), 1))
    form = block_diagonalize(A, clustering=DBSCAN(eps=0.1, min_samples=2))
    assert form.block_sizes == (3, 1, 1)


def test_noise_beside_the_largest_label_of_a_small_type():
    labels = np.array([127, -1, 127, -1, 127], dtype=np.int8)
    A = np.diag(-np.arange(1.0, 6.0)) + np.triu(np.full((5, 5), 0.1), 1)
    assert sorted(block_diagonalize(A, clustering=Labels(labels)).block_sizes) == [1, 1, 3]


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0, 1.0], None, ["a", "b", "b"], [[0, 1, 1]], 3])
def test_labels_that_do_not_fit_are_refused(labels):
    with pytest.raises(PartitionError, match="fit_predict returned"):
        block_diagonalize(TRIANGULAR, clustering=Labels(labels))


def test_clusters_with_equal_eigenvalues_are_merged():
    A = np.diag([1.0, 1.0, 1.0, 5.0]) + np.triu(np.ones((4, 4)), 1)
    form = block_diagonalize(A, clustering=Labels([0, 1, 0, 2]))
    assert form.block_sizes == (1, 3)
    assert any("merged" in note for note in form.notes)
    assert_lapack_standard(A, form)


def test_normal_matrix_ignores_clustering():
    form = block_diagonalize(rotated(np.diag([1.0, 2.0, 3.0])), clustering=Labels([0, 0, 0]))
    assert form.block_sizes == (1, 1, 1)
    assert any("normal" in note for note in form.notes)


# Short ways and units


def test_symmetric_matrices_have_an_orthogonal_transformation():
    S = random_dense(12)
    form = block_diagonalize(S + S.T)
    assert form.block_sizes == (1,) * 12
    # Columns of an orthogonal matrix are known to n·eps, and so is the product of two of them.
    np.testing.assert_allclose(form.T_inv, form.T.T, rtol=0.0, atol=12 * EPS)
    np.testing.assert_allclose(form.T @ form.T.T, np.eye(12), rtol=0.0, atol=10 * 12 * EPS)
    np.testing.assert_array_equal(form.scaling, np.ones(12))


def test_orthogonal_matrices_have_an_orthogonal_transformation():
    form = block_diagonalize(haar(9))
    assert form.n_connections == 0
    assert form.condition == pytest.approx(1.0, abs=1e-14)  # n·eps is 2e-15


def test_couplings_among_slow_modes_of_a_stiff_system_survive():
    # 0.5 is below rounding beside 1e15 but exact beside −1 and −2: the slow part is a system of its own.
    slow = np.array([[-1.0, 0.5], [0.0, -2.0]])
    A = np.zeros((3, 3))
    A[0, 0], A[1:, 1:] = -1e15, slow
    form = block_diagonalize(A)
    rebuilt = form.T @ form.A @ form.T_inv
    np.testing.assert_allclose(rebuilt[1:, 1:], slow, atol=1e-12)


def test_balancing_can_be_turned_off():
    A = random_dense(6, 3) * np.logspace(-6, 6, 6)[:, None] / np.logspace(-6, 6, 6)
    with_it, without = (
        block_diagonalize(A, max_condition=100.0),
        block_diagonalize(A, max_condition=100.0, balance=False),
    )
    assert np.ptp(with_it.scaling) > 0
    np.testing.assert_array_equal(without.scaling, np.ones(6))
    assert without.condition == without.condition_raw <= 100.0
    assert with_it.n_connections <= without.n_connections


@pytest.mark.parametrize("largest", [1e-300, 1e300])
def test_entries_near_the_ends_of_the_range(largest):
    A = random_dense(6, 4) * largest
    form = block_diagonalize(A)
    assert_lapack_standard(A, form)
    assert all(np.all(np.isfinite(matrix)) for matrix in (form.A, form.T, form.T_inv))


# The result


def test_the_given_matrix_is_neither_kept_nor_changed():
    A = TRIANGULAR.copy()
    form = block_diagonalize(A)
    A[0, 0] = 99.0
    assert form.original[0, 0] == 1.0


@pytest.mark.parametrize("options", [{}, {"max_condition": 1.0}, {"n_blocks": 2}, {"clustering": Labels([0, 0, 1])}])
def test_results_are_read_only(options):
    form = block_diagonalize(TRIANGULAR, **options)
    arrays = [form.A, form.T, form.T_inv, form.scaling, form.original, form.block(0), *form.eigenvalues]
    assert not any(array.flags.writeable for array in arrays)
    with pytest.raises(AttributeError):
        form.T = np.eye(3)


def test_it_is_the_public_name():
    assert ltinet.block_diagonalize is block_diagonalize


# Units of the states


def test_the_sparser_units_are_taken():
    A = HARD["wilkinson_companion"]
    balanced, as_given = (block_diagonalize(A, balance=balance) for balance in (True, False))
    assert as_given.n_connections < balanced.n_connections
    form = block_diagonalize(A)
    assert form.n_connections == as_given.n_connections
    np.testing.assert_array_equal(form.scaling, np.ones(20))
    counts = f"{balanced.n_connections} connections with states balanced, {as_given.n_connections} as given"
    assert form.decisions == (f"states as given: {counts}",)
    assert form.decisions[0] in str(form)


def test_balanced_states_are_taken_where_they_are_sparser():
    A = HARD["graded"]
    form = block_diagonalize(A, max_condition=10.0)
    assert form.n_connections < block_diagonalize(A, max_condition=10.0, balance=False).n_connections
    assert np.ptp(form.scaling) > 0.0
    assert form.decisions == ("states balanced: no connections are left",)


def test_the_smaller_condition_number_decides_between_equals():
    # Two neurons that only cond(T) > 1e3 would part and a single one, in units that differ: one connection in both.
    units = 2.0 ** np.array([0, 3, -2])
    A = rotated(np.diag([-1.0, -1.001, -3.0]) + np.diag([1.0, 0.0], 1), 3) * units[:, None] / units
    forms = {balance: block_diagonalize(A, balance=balance, max_condition=200.0) for balance in (True, False, None)}
    assert forms[True].n_connections == forms[False].n_connections == 1
    assert "cond(T) is" in forms[None].decisions[0]


@pytest.mark.parametrize("A", [np.diag([1.0, 2.0]), random_dense(8, 5), rotated(np.diag([1.0, 2.0, 3.0]))])
def test_well_scaled_matrix_has_one_form(A, monkeypatch):
    calls, own = [], door.decompose
    monkeypatch.setattr(door, "decompose", lambda *args, **options: calls.append(args) or own(*args, **options))
    form = block_diagonalize(A)
    assert len(calls) == 1
    assert form.decisions == ()


def test_explicit_balance_adds_no_decision():
    A = HARD["wilkinson_companion"]
    for balance in (True, False):
        assert block_diagonalize(A, balance=balance).decisions == ()


def test_clustering_is_called_once():
    A = HARD["graded"]
    labels = Labels(np.zeros(sum(block_diagonalize(A, n_blocks=1).neurons_per_block), dtype=int))
    assert np.ptp(block_diagonalize(A, clustering=labels).scaling) > 0.0


def test_search_stops_when_not_sparser():
    A = HARD["wilkinson_companion"]
    with pytest.raises(NotSparserError):
        decompose(A, BalancedMatrix(A, np.ones(20), 1.0), BlockChoice(10.0), fewer_than=1)
