"""Trade-off curves: completeness, condition numbers, printing and plotting."""

import itertools

import numpy as np
import pytest
from scipy import sparse

import ltinet
from drawing_checks import axes_of_size, check_texts
from hard_matrices import clusters_in_triangle, jordan, random_dense, repeated_pairs, rotated, upwind_chain
from ltinet.plotting import draw_tradeoff

MATRICES = {
    "dense": random_dense(16, 1),
    "crowded": ltinet.named_system("triangular").A,
    "clusters": clusters_in_triangle(12),
    "jordan": rotated(jordan(6, -1.0)),
    "repeated": repeated_pairs(),
    "badly scaled": random_dense(8, 2) * np.geomspace(1e-4, 1e4, 8)[:, None] / np.geomspace(1e-4, 1e4, 8),
    "transport": upwind_chain(12),
    "kernel": np.diag([0.0, 0.0, 0.0, -1.0]) + np.eye(4, k=3),
    "one state": np.array([[-1.0]]),
}


@pytest.fixture(scope="module", params=MATRICES)
def curve(request):
    return ltinet.condition_tradeoff(MATRICES[request.param])


def test_condition_rises_and_connections_fall(curve):
    assert all(low.condition < high.condition for low, high in itertools.pairwise(curve))
    assert all(low.n_connections > high.n_connections for low, high in itertools.pairwise(curve))
    assert curve[0].condition == pytest.approx(1.0, abs=1e-12)


def test_forms_match_their_points(curve):
    for point in curve:
        # Measured on T beyond 1e6 and where eigenvalues crowd; by angles to n·eps·κ², κ² ≤ 1e12, elsewhere. What is
        # measured is known to rounding of the smallest singular value, n·eps·κ.
        rounding = len(point.form.T) * np.finfo(float).eps * point.condition
        assert point.form.condition == pytest.approx(point.condition, rel=1e-3 + rounding)
        assert point.form.n_connections <= point.n_connections
        assert point.form.n_blocks == point.n_layers
        # Couplings below eps·|T⁻¹||A||T| are dropped from the blocks, which the residual shows.
        assert point.form.residual < 1e-14 * max(point.condition, 10.0)


def test_larger_limit_never_adds_connections(curve):
    bounds = np.geomspace(1.0 + 1e-9, 1e16, 50)
    chosen = [curve.within(bound) for bound in bounds]
    assert all(point.condition <= bound for point, bound in zip(chosen, bounds, strict=True))
    connections = [point.n_connections for point in chosen]
    assert connections == sorted(connections, reverse=True)


def test_points_of_a_system_have_networks():
    system = ltinet.named_system("triangular")
    curve = ltinet.condition_tradeoff(system)
    assert curve[-1].n_weights == curve[-1].network.n_weights < curve[0].n_weights
    assert curve.within(15.0).network.n_weights == ltinet.construct(system, max_condition=15.0).n_weights
    assert str(curve).splitlines()[0].split() == ["cond(T)", "layers", "connections", "weights"]


@pytest.mark.parametrize("given", [[[-1.0, 0.0], [1.0, -2.0]], sparse.csr_array([[-1.0, 0.0], [1.0, -2.0]])])
def test_matrix_types(given):
    curve = ltinet.condition_tradeoff(given)
    assert [point.n_connections for point in curve] == [1, 0]
    assert curve[0].n_weights is None
    with pytest.raises(ltinet.InvalidSystemError, match="curve of a matrix"):
        _ = curve[0].network


def test_normal_matrix_has_one_point():
    assert [(point.condition, point.n_connections) for point in ltinet.condition_tradeoff(np.diag([-1.0, -2.0]))] == [
        (1.0, 0)
    ]


def test_limit_below_one_raises():
    with pytest.raises(ltinet.PartitionError, match="at least 1"):
        ltinet.condition_tradeoff([[-1.0]]).within(0.5)


def test_invalid_matrix_raises():
    with pytest.raises(ltinet.InvalidSystemError):
        ltinet.condition_tradeoff(np.ones((2, 3)))
    with pytest.raises(ltinet.InvalidSystemError):
        ltinet.condition_tradeoff("building")


def test_long_table_is_shortened():
    curve = ltinet.condition_tradeoff(random_dense(40, 4))
    lines = str(curve).splitlines()
    assert len(curve) > 24
    assert len(lines) == 1 + 24 + 1
    assert f"{len(curve) - 24} more" in lines[13]
    assert repr(curve) == f"TradeoffCurve({len(curve)} forms, {curve[0].n_connections} to 0 connections)"


def test_plot_marks_the_limit():
    curve = ltinet.condition_tradeoff(MATRICES["crowded"])
    axes = curve.plot(max_condition=15.0, ax=axes_of_size()).axes[0]
    steps, points, bound, mark = axes.lines
    expected = sorted((point.n_connections, point.condition) for point in curve)
    np.testing.assert_allclose(points.get_xydata(), expected)
    np.testing.assert_allclose(steps.get_xydata(), expected)
    assert set(bound.get_ydata()) == {15.0}
    np.testing.assert_allclose(mark.get_xydata(), [(21, curve.within(15.0).condition)])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("connections", "condition number of T", "log")
    check_texts(axes.figure)


@pytest.mark.parametrize(
    ("points", "budget"),
    [([], None), ([1.0, 2.0], None), ([(1, np.inf)], None), ([(1, -1.0)], None), ([(1, 5.0)], 2.0)],
)
def test_invalid_points_are_not_drawn(points, budget):
    with pytest.raises(ltinet.PlottingError):
        draw_tradeoff(points, budget=budget, ax=axes_of_size())


@pytest.mark.parametrize(
    "call", [ltinet.block_diagonalize, ltinet.condition_tradeoff, lambda A, **own: ltinet.construct((A, A, A), **own)]
)
@pytest.mark.parametrize("balance", ["x", 1, np.True_])
def test_invalid_balance_raises(call, balance):
    with pytest.raises(ltinet.PartitionError, match="expected True, False, or None to try both"):
        call(np.eye(2), balance=balance)
