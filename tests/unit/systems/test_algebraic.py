"""Hypothesis: algebraic equations of index 1 are eliminated without changing H; others are refused by their name."""

import numpy as np
import pytest
from scipy import linalg, sparse

import ltinet

OMEGA = np.array([0.0, 0.3, 2.0, 50.0])


def response(E, A, B, C, D, omega=OMEGA):
    return np.array([C @ np.linalg.solve(1j * w * E - A, B.astype(complex)) + D for w in omega])


def index_one(seed: int, *, n: int = 9, n_algebraic: int = 4, mixed: bool = False):
    """Rows and columns of E at different places are zero; `mixed` turns them so that none is."""
    rng = np.random.default_rng(seed)
    E = np.zeros((n, n))
    rows, columns = rng.permutation(n)[: n - n_algebraic], rng.permutation(n)[: n - n_algebraic]
    E[np.ix_(rows, columns)] = rng.standard_normal((len(rows), len(rows))) + 4.0 * np.eye(len(rows))
    A, B, C, D = (rng.standard_normal(shape) for shape in ((n, n), (n, 2), (3, n), (3, 2)))
    if mixed:
        U, V = (linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
        E, A, B, C = U @ E @ V, U @ A @ V, U @ B, C @ V
    return E, A, B, C, D


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("is_sparse", "mixed"), [(False, False), (False, True), (True, False), (True, True)])
def test_the_response_stays(seed: int, is_sparse: bool, mixed: bool) -> None:
    E, A, B, C, D = index_one(seed, mixed=mixed)
    given = (sparse.coo_array(A), B, C, D, sparse.coo_array(E)) if is_sparse else (A, B, C, D, E)
    found = ltinet.eliminate_algebraic(given)
    expected = response(E, A, B, C, D)
    assert found.n_states == 5
    assert (found.sparse is not None) == (is_sparse and not mixed)
    # both are solved in floating point, with condition numbers of some hundreds
    assert np.abs(found.frequency_response(OMEGA) - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.slow
def test_a_large_network_stays_sparse_and_symmetric() -> None:
    """A rod whose every second node has no capacity."""
    n = 8001
    A = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    E = sparse.diags_array((np.arange(n) % 2 == 0).astype(float), format="csr")
    B, C = np.eye(n)[:, [0]], np.eye(n)[[n // 2]]
    found = ltinet.eliminate_algebraic((A, B, C, None, E))
    assert found.n_states == 4001
    assert found.sparse is not None
    assert found.sparse.is_symmetric
    assert found.sparse.n_nonzeros < 4 * 4001
    s = 1j * 0.01
    expected = C @ sparse.linalg.splu(sparse.csc_array(s * E - A)).solve(B.astype(complex))
    assert np.abs(found.frequency_response([0.01])[0] - expected).max() < 1e-10 * np.abs(expected).max()
    reduced = ltinet.reduce((A, B, C, None, E), tolerance=1e-4)
    assert reduced.is_certified
    assert reduced.full_order_model.n_states == 4001
    named = ltinet.StateSpace(A, B, C, E=E, inputs=["q"], states=[f"T{own}" for own in range(n)])
    assert ltinet.eliminate_algebraic(named).state_names[1] == "T2"


def test_what_is_regular_comes_back() -> None:
    system = ltinet.named_system("heat_plate", n=400)
    assert ltinet.eliminate_algebraic(system) is system
    dense = (np.diag([-1.0, -2.0]), np.ones((2, 1)), np.ones((1, 2)), None, np.diag([2.0, 3.0]))
    assert ltinet.eliminate_algebraic(dense) == ltinet.as_state_space(dense)


def test_all_variables_may_be_algebraic() -> None:
    found = ltinet.eliminate_algebraic((-2.0 * np.eye(2), np.ones((2, 1)), np.ones((1, 2)), None, np.zeros((2, 2))))
    assert found.n_states == 0
    assert pytest.approx(1.0) == found.D


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("E", "A", "message"),
    [
        (np.diag([1.0, 0.0]), np.array([[-1.0, 1.0], [1.0, 0.0]]), "index 2 or more"),
        (np.diag([1.0, 0.0]), np.array([[-1.0, 1.0], [0.0, 0.0]]), "pencil sE − A is singular"),
        (np.ones((2, 2)), np.ones((2, 2)), "pencil sE − A is singular"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), np.eye(2), "index 2 or more"),
    ],
)
def test_others_are_refused_by_name(E, A, message: str, is_sparse: bool) -> None:
    matrices = (sparse.csc_array(A), sparse.csc_array(E)) if is_sparse else (A, E)
    with pytest.raises(ltinet.InvalidSystemError, match=message):
        ltinet.reduce((matrices[0], np.ones((2, 1)), np.ones((1, 2)), None, matrices[1]), order=1)


def test_what_would_fill_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from ltinet.systems import descriptor

    monkeypatch.setattr(descriptor, "_UNLIMITED_FILL", 0)
    rng = np.random.default_rng(0)
    n, k = 400, 200
    along = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    A = sparse.block_array([[-sparse.eye_array(k), sparse.eye_array(k)], [sparse.eye_array(k), along]], format="csr")
    E = sparse.diags_array(np.repeat([1.0, 0.0], k), format="csr")
    with pytest.raises(ltinet.InvalidSystemError, match="would fill in"):
        ltinet.eliminate_algebraic((A, rng.standard_normal((n, 1)), np.ones((1, n)), None, E))
