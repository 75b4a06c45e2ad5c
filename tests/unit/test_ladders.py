"""Hypothesis: a ladder has every form worth having, as well conditioned as it says, and prints and draws itself."""

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
def rungs(request):
    return ltinet.condition_tradeoff(MATRICES[request.param])


def test_rungs_rise_in_condition_and_fall_in_connections(rungs):
    assert all(low.condition < high.condition for low, high in itertools.pairwise(rungs))
    assert all(low.n_connections > high.n_connections for low, high in itertools.pairwise(rungs))
    assert rungs[0].condition == pytest.approx(1.0, abs=1e-12)


def test_forms_are_what_their_rungs_say(rungs):
    for rung in rungs:
        # Measured on T beyond 1e6 and where eigenvalues crowd; by angles to n·eps·κ², κ² ≤ 1e12, elsewhere. What is
        # measured is known to rounding of the smallest singular value, n·eps·κ.
        rounding = len(rung.form.T) * np.finfo(float).eps * rung.condition
        assert rung.form.condition == pytest.approx(rung.condition, rel=1e-3 + rounding)
        assert rung.form.n_connections <= rung.n_connections
        assert rung.form.n_blocks == rung.n_layers
        # Couplings below eps·|T⁻¹||A||T| are dropped from the blocks, which the residual shows.
        assert rung.form.residual < 1e-14 * max(rung.condition, 10.0)


def test_a_larger_bound_never_buys_more_connections(rungs):
    bounds = np.geomspace(1.0 + 1e-9, 1e16, 50)
    bought = [rungs.within(bound) for bound in bounds]
    assert all(rung.condition <= bound for rung, bound in zip(bought, bounds, strict=True))
    connections = [rung.n_connections for rung in bought]
    assert connections == sorted(connections, reverse=True)


def test_of_a_system_it_has_networks_and_weights():
    system = ltinet.named_system("triangular")
    rungs = ltinet.condition_tradeoff(system)
    assert rungs[-1].n_weights == rungs[-1].network.n_weights < rungs[0].n_weights
    assert rungs.within(15.0).network.n_weights == ltinet.construct(system, max_condition=15.0).n_weights
    assert str(rungs).splitlines()[0].split() == ["cond(T)", "layers", "connections", "weights"]


@pytest.mark.parametrize("given", [[[-1.0, 0.0], [1.0, -2.0]], sparse.csr_array([[-1.0, 0.0], [1.0, -2.0]])])
def test_matrices_come_in_many_kinds(given):
    rungs = ltinet.condition_tradeoff(given)
    assert [rung.n_connections for rung in rungs] == [1, 0]
    assert rungs[0].n_weights is None
    with pytest.raises(ltinet.InvalidSystemError, match="ladder of a matrix"):
        _ = rungs[0].network


def test_a_normal_matrix_has_one_rung():
    assert [(rung.condition, rung.n_connections) for rung in ltinet.condition_tradeoff(np.diag([-1.0, -2.0]))] == [
        (1.0, 0)
    ]


def test_bounds_below_one_are_refused():
    with pytest.raises(ltinet.PartitionError, match="at least 1"):
        ltinet.condition_tradeoff([[-1.0]]).within(0.5)


def test_nothing_else_is_taken_for_a_matrix():
    with pytest.raises(ltinet.InvalidSystemError):
        ltinet.condition_tradeoff(np.ones((2, 3)))
    with pytest.raises(ltinet.InvalidSystemError):
        ltinet.condition_tradeoff("building")


def test_long_tables_are_cut():
    rungs = ltinet.condition_tradeoff(random_dense(40, 4))
    lines = str(rungs).splitlines()
    assert len(rungs) > 24
    assert len(lines) == 1 + 24 + 1
    assert f"{len(rungs) - 24} more" in lines[13]
    assert repr(rungs) == f"Ladder({len(rungs)} forms, {rungs[0].n_connections} to 0 connections)"


def test_the_drawing_marks_what_a_bound_buys():
    rungs = ltinet.condition_tradeoff(MATRICES["crowded"])
    axes = rungs.plot(max_condition=15.0, ax=axes_of_size())
    steps, points, bound, mark = axes.lines
    expected = sorted((rung.n_connections, rung.condition) for rung in rungs)
    np.testing.assert_allclose(points.get_xydata(), expected)
    np.testing.assert_allclose(steps.get_xydata(), expected)
    assert set(bound.get_ydata()) == {15.0}
    np.testing.assert_allclose(mark.get_xydata(), [(21, rungs.within(15.0).condition)])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("connections", "condition number of T", "log")
    check_texts(axes.figure)


@pytest.mark.parametrize(
    ("points", "budget"),
    [([], None), ([1.0, 2.0], None), ([(1, np.inf)], None), ([(1, -1.0)], None), ([(1, 5.0)], 2.0)],
)
def test_nonsense_is_not_drawn(points, budget):
    with pytest.raises(ltinet.PlottingError):
        draw_tradeoff(points, budget=budget, ax=axes_of_size())


@pytest.mark.parametrize(
    "call", [ltinet.block_diagonalize, ltinet.condition_tradeoff, lambda A, **own: ltinet.construct((A, A, A), **own)]
)
@pytest.mark.parametrize("balance", ["x", 1, np.True_])
def test_a_choice_of_units_that_is_none_is_told(call, balance):
    with pytest.raises(ltinet.PartitionError, match="give True, False, or None to try both"):
        call(np.eye(2), balance=balance)
