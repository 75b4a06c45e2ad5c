"""Measured errors of steps at uneven times in the error bound."""

import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.simulation import step_errors

T = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, 600)) * 0.02
U = np.random.default_rng(2).standard_normal((600, 2))


def solution_of(n_layers):
    A = np.random.default_rng(0).standard_normal((6, 6)) - 3.0 * np.eye(6)
    net = ltinet.construct((A, np.ones((6, 2)) + np.eye(6, 2), np.eye(2, 6)), n_layers=n_layers)
    return net.simulate(U, T)


@pytest.mark.parametrize("n_layers", [None, 1], ids=["scalars", "one block"])
@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_bound_covers_errors_of_step_series(n_layers, off):
    solution = solution_of(n_layers)
    steps = solution.trajectory.nonuniform_steps
    for scalars in steps.scalars:
        for way in scalars.steps._prepared.values():
            way.main.series[-1] += off
    for dense in steps.dense:
        for series in dense.steps._series.values():
            series.coefficients[-1] += off
    largest = np.max(solution.error_parts()["rounding"]) / np.max(np.abs(solution.y))
    assert (largest > off / 4.0) if off else (largest < 1e5 * EPS)


def test_step_length_shares_sum_to_one():
    shares = step_errors.step_length_shares(T, np.linspace(T[0], T[-1], 9), float(np.diff(T).max()))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all(shares[:, 2:] == 0.0)  # lengths within a factor of three
