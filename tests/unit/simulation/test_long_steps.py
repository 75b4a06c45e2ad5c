"""Small entries of exponentials are accurate beside large ones on either side of the diagonal."""

import flint
import mpmath
import numpy as np
import pytest

from ltinet.simulation.propagators import matrix_steps

SMALL = 1e-10


def drawn(seed):
    """Triangular matrix with an additional small coupling of two equal entries, and its index."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    F = 10.0 * np.triu(rng.standard_normal((n, n)), 1) - np.diag(rng.uniform(1.0, 20.0, n))
    i = int(rng.integers(0, n - 1))
    F[i + 1, i + 1], F[i, i + 1], F[i + 1, i] = F[i, i], SMALL, -SMALL
    return F, i, float(rng.uniform(0.2, 0.6))


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("seed", range(30))
def test_small_coupling_beside_large_ones_is_accurate(seed):
    F, i, h = drawn(seed)
    with mpmath.workdps(60):
        true = float(mpmath.expm(mpmath.matrix(F.tolist()) * mpmath.mpf(h))[i + 1, i])
    G = np.ones((len(F), 1))
    above, below = (matrix_steps(own, G, np.array([h]), linear=True).P[0] for own in (F, F.T))
    # The worst of 60 were 5e-14; as SciPy takes them, 46 of 60 were off by more than 1e-12, and some by 5 %.
    np.testing.assert_allclose([above[i + 1, i], below[i, i + 1]], true, rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("linear", [True, False])
def test_every_entry_is_accurate_in_both_orders(seed, linear):
    F, _, h = drawn(seed)
    n, lengths = len(F), np.array([h, 2.0 * h])
    augmented = np.block([[F, np.eye(n), np.zeros((n, n))], [np.zeros((n, 2 * n)), np.eye(n)], [np.zeros((n, 3 * n))]])
    own = matrix_steps(F, np.eye(n), lengths, linear=linear)
    other = matrix_steps(F[::-1, ::-1], np.eye(n), lengths, linear=linear)
    for k, length in enumerate(lengths):
        true, sizes = _phi_functions(augmented, length, n), _phi_functions(np.abs(augmented), length, n)
        for steps, order in ((own, slice(None)), (other, slice(None, None, -1))):
            P, begin, end = (part[k][order, order] for part in steps)
            # Entries are sums over ways between states, without signs those of |F|; 2e-16 was the worst of 10 draws.
            for found, exact, size in zip((P, begin + end, end), true, sizes, strict=True):
                if linear or found is not end:
                    assert np.all(np.abs(found - exact) <= 1e-14 * size)


def _phi_functions(augmented, length, n):
    """e^{Fh}, h φ₁(Fh) and h φ₂(Fh), from one exponential (Van Loan 1978)."""
    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        balls = (flint.arb_mat(augmented.tolist()) * flint.arb(length)).exp()
        entries = np.array([[float(balls[i, j]) for j in range(3 * n)] for i in range(n)])
    finally:
        flint.ctx.prec = before
    exponential, first, second = np.split(entries, 3, axis=1)
    return exponential, first, second / length
