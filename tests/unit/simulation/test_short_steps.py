"""The series of short steps is accurate in every entry, relative to the sum of its terms, in any units of the states."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from ltinet._util.floating_point import EPS
from ltinet.simulation.propagators import is_short_step, matrix_steps, phi_series, step_norm

_FACTOR = 40.0  # units of Σ|M|^k/k!: up to 20 products of matrices, each off by a few units, most of them far smaller


def _drawn(rng: np.random.Generator, kind: str) -> np.ndarray:
    n = int(rng.integers(1, 9))
    F = rng.standard_normal((n, n))
    if kind == "triangular":
        F = np.triu(F)
    elif kind == "chain":  # the last state acts on the first through all others
        F = np.diag(rng.standard_normal(n - 1), 1)
    elif kind == "sparse":
        F *= rng.random((n, n)) < 0.3
    return F


def _exact(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """e^M, φ₁(M), φ₂(M) and e^|M| by balls, from [[M, 1, 0], [0, 0, 1], [0, 0, 0]]."""
    n = len(M)
    with ctx.workprec(400):
        large = [[arb(0)] * (3 * n) for _ in range(3 * n)]
        for i in range(n):
            large[i][n + i] = large[n + i][2 * n + i] = arb(1)
            for j in range(n):
                large[i][j] = arb(float(M[i, j]))
        exponential = arb_mat(large).exp()
        parts = [
            np.array([[float(exponential[i, k * n + j].mid()) for j in range(n)] for i in range(n)]) for k in range(3)
        ]
        sizes = arb_mat([[arb(float(abs(own))) for own in row] for row in M]).exp()
    return *parts, np.array([[float(sizes[i, j].mid()) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("kind", ["full", "triangular", "chain", "sparse"])
def test_every_entry_is_right_in_any_units(kind):
    rng = np.random.default_rng([5, len(kind)])
    for _ in range(25):
        F = _drawn(rng, kind)
        longest = 10.0 ** rng.uniform(-8, 0) / (step_norm(F) or 1.0)
        units = 2.0 ** rng.integers(-60, 60, len(F))
        F = F * units / units[:, None]
        exponential, first, second, sizes = _exact(F * (0.99 * longest))
        found = phi_series(F, np.array([0.99 * longest]))
        for own, exact in zip(found, (exponential, first, second), strict=True):
            assert np.all(np.abs(own[0] - exact) <= _FACTOR * EPS * sizes)


def test_steps_of_many_lengths_are_those_of_each():
    rng = np.random.default_rng(1)
    F, G = rng.standard_normal((4, 4)), rng.standard_normal((4, 2))
    h = np.array([0.0, 1e-9, 1e-3, 0.2])
    together = matrix_steps(F, G, h, linear=True)
    for k, length in enumerate(h):
        alone = matrix_steps(F, G, np.array([length]), linear=True)
        for own, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(own[k], one[0], rtol=8 * EPS, atol=8 * EPS * np.abs(one[0]).max())


def test_long_steps_and_large_blocks_use_scipy():
    assert not is_short_step(np.array([[0.0, 1.0], [-1.0, 0.0]]), 10.0)
    assert not is_short_step(np.zeros((65, 65)), 1e-9)
    assert is_short_step(np.zeros((0, 0)), 1.0)
