"""Hypothesis: interpolated steps of a coupled block are as accurate as one matrix exponential per step."""

import mpmath
import numpy as np
import pytest

from ltinet.simulation import nonuniform
from ltinet.simulation.nonuniform import InterpolatedSteps
from ltinet.simulation.propagators import matrix_steps

EPS = float(np.finfo(float).eps)
BLOCKS = {
    "defective": [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]],
    "nearly a pair": [[-2.0, 1e-9, 0.0], [-1e-3, -2.0, 0.3], [0.0, 0.0, -5.0]],
    "turning": [[-0.1, 40.0, 1.0], [-40.0, -0.1, 2.0], [0.0, 0.0, -3.0]],
    "stiff": [[-1e4, 30.0, 2.0], [0.0, -1.0, 4.0], [0.0, 0.0, -200.0]],
    "growing": [[2.0, 3.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, -1.0]],
    "integrating": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]],
    "of many sizes": [[-1.0, 1e8, 1e-8], [0.0, -2.0, 1e-6], [0.0, 0.0, -3.0]],
}
G = np.array([[1.0, 0.0], [2.0, -1.0], [0.5, 3.0]])


def _exact(F, h, *, linear):
    with mpmath.workdps(50):
        augmented = mpmath.zeros(7)
        augmented[:3, :3], augmented[:3, 3:5], augmented[3:5, 5:] = (
            mpmath.matrix(F),
            mpmath.matrix(G),
            mpmath.eye(2) / h,
        )
        whole = np.array(mpmath.expm(augmented * mpmath.mpf(float(h)), method="taylor").tolist())
    second = whole[:3, 5:] if linear else 0 * whole[:3, 5:]
    return whole[:3, :3], whole[:3, 3:5] - second, second


@pytest.mark.slow
@pytest.mark.parametrize("linear", [True, False], ids=["linear", "zero"])
@pytest.mark.parametrize("name", BLOCKS)
def test_steps_are_those_of_exponentials(name, linear, monkeypatch):
    F = np.array(BLOCKS[name])
    h = np.random.default_rng(0).uniform(0.0625, 0.125, 400)
    taken = []
    monkeypatch.setattr(
        nonuniform, "matrix_steps", lambda F, G, h, **how: taken.append(len(h)) or matrix_steps(F, G, h, **how)
    )
    found = InterpolatedSteps(F[None], G[None], linear=linear).of(h)
    assert sum(taken) < 0.5 * len(h)  # the point of it
    one_by_one = matrix_steps(F, G, h, linear=linear)
    exact = [_exact(F, length, linear=linear) for length in h[::20]]
    for ours, theirs, true in zip(found, one_by_one, zip(*exact, strict=True), strict=True):
        error, other = (
            np.abs(part[::20].reshape(len(true), *true[0].shape) - true).astype(float).max(axis=0)
            for part in (ours, theirs)
        )
        # A series is right to a few units of what an entry is at most for lengths within a factor of two; what is below
        # the last digit of the largest entry is beside the point.
        size = np.abs(theirs).max(axis=0)
        assert np.all(error <= 10.0 * np.maximum(other, EPS * np.maximum(size, EPS * size.max())))


def test_few_lengths_are_taken_one_by_one():
    F = np.array(BLOCKS["turning"])
    h = np.repeat([0.1, 0.2, 0.0, 0.15], 50)
    P, begin, end = InterpolatedSteps(F[None], G[None], linear=True).of(h)
    expected = matrix_steps(F, G, h, linear=True)
    np.testing.assert_array_equal(P[:, 0], expected.P)
    np.testing.assert_array_equal(begin[:, 0], expected.begin)
    np.testing.assert_array_equal(end[:, 0], expected.end)
    assert np.array_equal(P[100, 0], np.eye(3))


def test_blocks_too_fast_for_a_series_are_exponentiated_singly():
    F = np.array([[[-0.1, 1e5], [-1e5, -0.1]], [[-1.0, 1.0], [0.0, -1.0]]])
    h = np.random.default_rng(0).uniform(0.5, 1.0, 300)
    P = InterpolatedSteps(F, np.ones((2, 2, 1)), linear=True).of(h).P
    for block, own in enumerate(F):
        np.testing.assert_array_equal(P[:, block], matrix_steps(own, np.ones((2, 1)), h, linear=True).P)
