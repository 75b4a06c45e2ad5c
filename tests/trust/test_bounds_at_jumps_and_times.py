"""Bounds where they are easily too small: on both sides of a jump, and at single times of what fades fast."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond

_ROUNDED = 1e-12  # of an error: what its own rounding, and that of the bound, may take
_UNDERFLOW = 1e-300


def _assert_within_bounds(system, run, *, at=None):
    """Errors at samples lie within the bounds overall and at each time, those at other times within the bounds there."""
    solution, truth = ltinet.construct(system).simulate(**run), respond(*system, **run, at=at)
    errors = truth.y.distance(solution.y) * (1.0 - _ROUNDED) - truth.y.radius
    assert np.all(errors <= solution.error_bound(run["t"]) + _UNDERFLOW)
    assert np.all(errors <= solution.error_bound()[..., None, :] + _UNDERFLOW)
    if at is not None:
        errors = truth.between.distance(solution(at)) * (1.0 - _ROUNDED) - truth.between.radius
        assert np.all(errors <= solution.error_bound(at) + _UNDERFLOW)


def _small_system(rng, n, n_inputs):
    A = np.diag(-(10.0 ** rng.uniform(-2.0, 1.0, n))) + np.triu(rng.standard_normal((n, n)), 1)
    return A, rng.standard_normal((n, n_inputs)), rng.standard_normal((2, n)), rng.standard_normal((2, n_inputs))


@pytest.mark.default_cases(13)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("ends", ["first", "last", "both"])
def test_an_input_on_the_far_side_of_a_jump_at_an_end_counts(ends, batch, seed):
    rng = np.random.default_rng([31, len(ends), len(batch), seed])
    n_times, offset = int(rng.integers(3, 60)), rng.choice([0.0, 1.0, 1e6])
    k = np.arange(n_times) if rng.random() < 0.5 else np.cumsum(rng.integers(1, 9, n_times))
    doubled = {"first": [0], "last": [-1], "both": [0, -1]}[ends]
    t = offset + np.sort(np.concatenate([k, k[doubled]])) * 2.0 ** rng.integers(-6, 3)
    u = np.zeros((*batch, len(t), 2))
    u[..., doubled, :] = rng.standard_normal((*batch, len(doubled), 2))
    u += rng.choice([0.0, 1e-9])
    x0 = None if rng.random() < 0.7 else np.full(3, 1e-12)
    run = {"u": u, "t": t, "hold": ("zero", "linear")[seed % 2], "x0": x0}
    _assert_within_bounds(_small_system(rng, 3, 2), run)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("side", [0, 1])
def test_both_sides_of_a_jump_between_two_cells_of_time_count(side, seed):
    rng = np.random.default_rng([37, side, seed])
    per_cell, edge = int(rng.integers(1, 5)), int(rng.integers(1, 32))
    k = np.arange(32 * per_cell + 1)
    jump = edge * per_cell
    t = np.sort(np.append(k, jump)) * 2.0 ** rng.integers(-6, 3)
    u = np.zeros((len(t), 2))
    u[jump + side] = rng.standard_normal(2)
    A, B, C, D = _small_system(rng, 3, 2)
    _assert_within_bounds((A, 1e-20 * B, C, D), {"u": u, "t": t, "hold": ("zero", "linear")[seed % 2]})


def _between(rng, t):
    """Times between samples, and those of samples without a jump."""
    once = t[np.isin(t, t[1:][np.diff(t) == 0.0], invert=True)]
    return np.unique(np.concatenate([once[:-1], t[:-1] + np.diff(t) * rng.uniform(0.1, 0.9, len(t) - 1)]))


@pytest.mark.default_cases(16)
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e8])
def test_bounds_hold_at_every_time_of_a_fast_decay(offset, seed):
    rng = np.random.default_rng([41, int(offset), seed])
    n_times, h = int(rng.choice([40, 70, 100, 130])), 10.0 ** rng.uniform(-3.0, 3.0)
    fastest = 10.0 ** rng.uniform(0.2, 1.0) / h
    A, C = np.diag(-fastest * np.array([1.0, 1.0 / 7.0])), np.eye(2)
    t = h * (offset + rng.random() * (offset > 0.0)) + h * np.arange(n_times)
    run = {"u": np.zeros((n_times, 1)), "t": t, "hold": "linear", "x0": rng.uniform(0.5, 2.0, 2)}
    _assert_within_bounds((A, np.ones((2, 1)), C, np.zeros((2, 1))), run, at=_between(rng, t))


@pytest.mark.default_cases(13)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_bounds_hold_at_every_time_after_single_inputs(hold, seed):
    rng = np.random.default_rng([43, len(hold), seed])
    n_times, h, n = int(rng.choice([20, 40, 90])), 10.0 ** rng.uniform(-3.0, 3.0), int(rng.integers(1, 3))
    A = np.diag(-(10.0 ** rng.uniform(0.0, 1.5)) / h * np.array([1.0, 0.5])[:n])
    t = h * np.arange(n_times)
    if seed % 3 == 0:
        t = np.sort(np.append(t, t[[0, rng.integers(1, n_times - 1), -1]]))
    u = np.zeros((len(t), 1))
    u[rng.integers(0, len(t), 3), 0] = rng.standard_normal(3) * 10.0 ** rng.uniform(-20.0, 0.0, 3)
    D = np.zeros((n, 1)) if seed % 2 else rng.standard_normal((n, 1))
    run = {"u": u, "t": t, "hold": hold, "x0": rng.standard_normal(n)}
    _assert_within_bounds((A, rng.standard_normal((n, 1)), np.eye(n), D), run, at=_between(rng, t))
