"""Hypothesis: within a condition budget, no known method leaves fewer connections than this one."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import ltinet
from evidence import balanced_condition, balancing_scale
from hard_matrices import HARD, clusters_in_triangle, random_dense, rotated

BUDGETS = (10.0, 100.0, 1e4)

# The best of K-means sweeps, control.bdschur and control.bdschur after balancing, at each budget.
BEST_KNOWN = {
    "building": (0, 0, 0),
    "cdplayer": (0, 0, 0),
    "heat": (0, 0, 0),
    "iss": (0, 0, 0),
    "pde": (72, 72, 0),
    "j100_jet_engine": (190, 0, 0),
    "drum_boiler": (1, 0, 0),
    "helicopter_v73": (136, 0, 0),
    "lf10_beam_descriptor": (105, 0, 0),
    "b767_flutter": (21, 6, 6),
    "mr_demo": (10, 6, 0),
    "beam": (6, 0, 0),
}


@pytest.fixture(scope="module")
def systems(data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    outputs = {"helicopter_v73": {"C": np.eye(28)}}
    return {name: ltinet.load_system(data_dir / f"{name}.mat", **outputs.get(name, {})).A for name in BEST_KNOWN}


@pytest.mark.parametrize("column", range(3), ids=["10", "100", "1e4"])
@pytest.mark.parametrize("name", BEST_KNOWN)
def test_no_more_connections_than_the_best_known(systems, name, column):
    form = ltinet.block_diagonalize(systems[name], max_condition=BUDGETS[column])
    assert form.n_connections <= BEST_KNOWN[name][column]
    assert balanced_condition(systems[name], form) <= BUDGETS[column] * (1.0 + 1e-9)
    assert form.n_connections == connections_of(form.A, form.block_sizes)


def test_strictly_fewer_in_most_cells_that_leave_room(systems):
    cells = [(name, column) for name, row in BEST_KNOWN.items() for column in range(3) if row[column] > 0]
    below = [
        (name, column)
        for name, column in cells
        if ltinet.block_diagonalize(systems[name], max_condition=BUDGETS[column]).n_connections
        < BEST_KNOWN[name][column]
    ]
    assert len(cells) == 12
    assert len(below) >= 3


SMALL = {
    "clusters": clusters_in_triangle(16, 3),
    "strong_clusters": clusters_in_triangle(16, 4, coupling=1.5),
    "random": random_dense(20, 21),
    "triangular": ltinet.named_system("triangular", seed=3).A,
    "two_copies": block_diag(random_dense(6, 22), random_dense(6, 22)),
    "rank_one": HARD["rank_one"],
    "kernel_of_three": rotated(np.triu(random_dense(8, 23), 1) + np.diag([0, 0, 0, -1, -2, -3, -4, -5.0]), 4),
    "stiff": np.triu(random_dense(6, 24), 1) + np.diag([-1e15, -1e14, -1.0, -2.0, -3.0, -4.0]),
}


@pytest.mark.default_cases(10)
@pytest.mark.parametrize("max_condition", BUDGETS)
@pytest.mark.parametrize("name", SMALL)
def test_no_more_connections_than_bdschur(name, max_condition):
    control = pytest.importorskip("control")
    pytest.importorskip("slycot", reason="control.bdschur needs slycot")
    A = SMALL[name]
    ours = ltinet.block_diagonalize(A, max_condition=max_condition)
    assert ours.n_connections <= best_bdschur(control, A, max_condition)


def best_bdschur(control, A, max_condition):
    """Fewest connections of bdschur, over its parameter, raw and balanced, at the measured condition number."""
    n_neurons = int(np.sum(np.linalg.eigvals(A).imag >= 0))
    fewest = n_neurons * (n_neurons - 1) // 2
    scale = balancing_scale(A)
    balanced = A * scale / scale[:, None]
    for matrix, units in ((balanced, np.ones(len(A))), (A, scale)):
        for condmax in 10.0 ** np.linspace(0.2, 6.0, 16):
            try:
                A_bd, T, sizes = control.bdschur(matrix, condmax=condmax)
            except RuntimeError:  # its own search fails below some condmax
                continue
            T = T / units[:, None]
            bases = [np.linalg.qr(columns)[0] for columns in np.split(T, np.cumsum(sizes)[:-1], axis=1)]
            if np.linalg.cond(np.hstack(bases)) <= max_condition:
                fewest = min(fewest, connections_of(A_bd, sizes))
    return fewest


def connections_of(A_bd, sizes):
    """Σ n_l(n_l − 1)/2 with n_l = real eigenvalues + pairs of block l, counted on its subdiagonal."""
    stops = np.cumsum(sizes)
    counts = [
        int(size - np.count_nonzero(np.diag(A_bd[stop - size : stop, stop - size : stop], -1)))
        for size, stop in zip(sizes, stops, strict=True)
    ]
    return sum(count * (count - 1) // 2 for count in counts)
