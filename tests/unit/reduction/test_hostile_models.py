"""Hypothesis: models that are odd but right are reduced within their bounds, and without a warning of NumPy's."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

import ltinet

G = 20
ROD = ltinet.named_system("heat_rod", n_states=30)


def grid(side: int = G) -> sparse.csc_array:
    along = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sparse.eye_array(side)
    return sparse.csc_array(sparse.kron(along, eye) + sparse.kron(eye, along))


def judged(given: tuple, omega: np.ndarray, **wish) -> ltinet.ReductionResult:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ltinet.reduce(given, **wish)
        errors, _ = found.errors(omega)
    assert found.error_bound is not None
    assert errors.max() <= found.error_bound
    return found


SWEEP = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 40)])
B, C = np.ones((G * G, 1)), np.eye(1, G * G)


@pytest.mark.parametrize(
    "given",
    [
        lambda: (grid().asformat("coo"), B, C),
        lambda: (grid().asformat("lil"), B, C),
        lambda: (grid().asformat("dia"), B, C),
        lambda: (grid().astype(np.int8), B.astype(np.uint8), C.astype(np.int16)),
        lambda: (sparse.csr_array(sparse.hstack([grid(), grid()]))[:, : G * G].tocoo(), B, C),
        lambda: (grid(), np.hstack([B, 0.0 * B]), np.vstack([C, 0.0 * C])),  # an input that moves nothing
        lambda: (grid(), np.hstack([B, B]), np.vstack([C, C])),
        lambda: (sparse.block_diag([grid(13), grid(13)]), np.eye(338, 1), np.eye(1, 338, 337)),  # ends never meet
        lambda: (grid(), B, C, None, sparse.diags_array(10.0 ** np.linspace(-4.0, 4.0, G * G))),
    ],
)
def test_sparse_ones(given: Callable[[], tuple]) -> None:
    judged(given(), SWEEP, order=6)


def test_entries_of_one_place_are_summed() -> None:
    A = grid().tocoo()
    halves = (np.tile(0.5 * A.data, 2), (np.tile(A.row, 2), np.tile(A.col, 2)))
    twice = judged((sparse.coo_array(halves, shape=A.shape), B, C), SWEEP, order=4)
    assert twice.error_bound == judged((A, B, C), SWEEP, order=4).error_bound


@pytest.mark.parametrize(("time", "force", "view"), [(1e150, 1.0, 1.0), (1e-200, 1e-150, 1.0), (1.0, 1e-290, 1e10)])
def test_units_do_not_matter(time: float, force: float, view: float) -> None:
    """Squares of such numbers leave the range of doubles."""
    plain = ltinet.reduce(ROD, order=5)
    found = judged((ROD.A * time, ROD.B * force, ROD.C * view), SWEEP[1:] * time, order=5)
    assert found.order == 5
    assert found.error_bound == pytest.approx(plain.error_bound * (force / time) * view, rel=1e-6)
    assert found.pointwise_bound == pytest.approx(plain.pointwise_bound * (force / np.sqrt(time)) * view, rel=1e-6)
    thin = judged((grid() * time, B * force, C * view), SWEEP[1:] * time, order=4)
    assert thin.error_bound == pytest.approx(
        ltinet.reduce((grid(), B, C), order=4).error_bound * (force / time) * view, rel=1e-6
    )


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("method", ["truncation", "singular_perturbation"])
def test_one_state(order: int, method: str) -> None:
    found = judged(([[-2.0]], [[1.0]], [[3.0]]), SWEEP, order=order, method=method)
    assert found.order == order
    assert found.net.n_states == order


@pytest.mark.parametrize("order", [0, 399, 400])
def test_orders_at_both_ends(order: int) -> None:
    assert judged((grid(), B, C), SWEEP, order=order).order <= order


def test_poles_on_the_axis_are_no_trouble_to_those_who_ask_there() -> None:
    found = ltinet.reduce((np.zeros((2, 2)), np.ones((2, 1)), np.ones((1, 2))), order=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        errors, gains = found.errors([0.0, 1.0])
    assert np.isinf(gains[0])
    assert np.isfinite(errors[1])


@pytest.mark.parametrize("tolerance", [0, -1.0, np.nan, np.inf, 1.0, True, "1e-3"])
def test_tolerances_that_are_none(tolerance: object) -> None:
    with pytest.raises(ltinet.InvalidSystemError, match="tolerance must be"):
        ltinet.reduce(ROD, tolerance=tolerance)


@pytest.mark.parametrize(
    ("alpha", "beta", "scale"), [(1e-3, 1e-6, 1.0), (0.0, 1e-2, 1e3), (0.3, 0.0, 1e-3), (1e-2, 0.2, 1.0)]
)
def test_dampings_of_all_sizes_are_found_out(alpha: float, beta: float, scale: float) -> None:
    """αM may be lost beside βK, or the other way round, and consistent masses are not diagonal."""
    from mechanical_models import response

    n = 60
    rng = np.random.default_rng(7)
    k = scale * 10.0 ** rng.uniform(-1.0, 3.0, n + 1)
    K = sparse.diags_array([-k[1:-1], k[:-1] + k[1:], -k[1:-1]], offsets=[-1, 0, 1], format="csc")
    M = sparse.diags_array([0.2, 1.0, 0.2], offsets=[-1, 0, 1], shape=(n, n), format="csc")
    model = ltinet.SecondOrder(M, alpha * M + beta * K, K, np.eye(n)[:, :1], np.eye(n)[-1:])
    found = ltinet.reduce(model, order=20, method="krylov")
    assert found.error_bound is not None
    omega = np.unique(np.concatenate([SWEEP, np.abs(found.system.poles())]))
    gaps = response(model, omega) - found.system.frequency_response(omega)
    assert np.linalg.norm(gaps, 2, axis=(1, 2)).max() <= found.error_bound
