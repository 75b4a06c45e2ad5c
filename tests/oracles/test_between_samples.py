"""Hypothesis: outputs between samples are below their bounds, however long the steps of coupled blocks are.

Every query takes a step of its own length, whose exponential is not that of the step between samples.
"""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ball_oracle import respond

FRACTIONS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


def jordan(rng):
    n = int(rng.integers(2, 7))
    return -np.eye(n) + rng.uniform(1.0, 20.0) * np.eye(n, k=1)


def companion(rng):
    return linalg.companion(np.poly(-np.ones(int(rng.integers(2, 12)))))


def triangular(rng):
    n = int(rng.integers(2, 6))
    return -np.eye(n) + 5.0 * np.triu(rng.standard_normal((n, n)), 1)


def legendre(rng):
    n = int(rng.integers(2, 10))
    return -(np.tril(np.ones((n, n)), -1) + 0.5 * np.eye(n))


KINDS = [jordan, companion, triangular, legendre]


def times(rng, n_steps):
    h = round(64.0 * 2.0 ** rng.uniform(-3.0, 6.0)) / 64.0
    counts = rng.choice([1, 3, 7], n_steps) if rng.random() < 0.3 else np.ones(n_steps)
    return h * np.concatenate([[0.0], np.cumsum(counts)])


@pytest.mark.default_cases(20)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_outputs_between_samples_are_below_their_bounds(kind, seed):
    rng = np.random.default_rng([79, KINDS.index(kind), seed])
    A = kind(rng)
    n, t = len(A), times(rng, int(rng.integers(1, 12)))
    B = np.ones((n, 1)) if rng.random() < 0.5 else np.eye(n)[:, -1:]
    C = np.ones((1, n)) if rng.random() < 0.5 else np.eye(n)[:1]
    x0 = rng.standard_normal(n) if rng.random() < 0.5 else None
    u = rng.standard_normal((len(t), 1)) * (x0 is None or rng.random() < 0.5)
    hold = str(rng.choice(["zero", "linear"]))
    at = np.sort(np.concatenate([t[:-1] + share * np.diff(t) for share in FRACTIONS]))
    solution = ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0)
    error = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold=hold, x0=x0, at=at).between.distance(solution(at))
    assert np.all(error <= solution.error_bound(at))


@pytest.mark.parametrize("seed", range(30))
def test_outputs_between_samples_beside_their_grid(seed):
    """Two decays that cancel in the output, more so at samples than between."""
    rng = np.random.default_rng([95, seed])
    h = rng.uniform(0.5, 1.0)
    A = np.diag([-1.0, -1.5]) * rng.uniform(0.2, 0.6)
    C, B, t = np.array([[1.0, 0.8]]), np.ones((2, 1)), 10.0 ** rng.uniform(2.0, 6.5) * h + h * np.arange(7)
    u, x0 = np.zeros((7, 1)), np.array([1.0, -1.0])
    at = np.sort(np.concatenate([t[:-1] + share * np.diff(t) for share in FRACTIONS]))
    solution = ltinet.construct((A, B, C)).simulate(u, t, hold="zero", x0=x0)
    error = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold="zero", x0=x0, at=at).between.distance(solution(at))
    assert np.all(error <= solution.error_bound(at))
