"""Integrals of |h| and |ḣ| of second-order neurons by quadrature in 40 digits: what gains are compared with."""

from itertools import pairwise

import mpmath
import numpy as np


def quadrature(m, c, k, *, horizon):
    """∫|h| and ∫|ḣ|: Gauss–Legendre rules between the sign changes, which are bracketed and bisected."""
    with mpmath.workdps(40):
        m, c, k, T = (mpmath.mpf(float(x)) for x in (m, c, k, horizon))
        a, root = -c / (2 * m), mpmath.sqrt(mpmath.mpc((c / (2 * m)) ** 2 - k / m))

        def grown(t):
            return t if root == 0 else mpmath.sinh(root * t) / root

        def value(t):
            return mpmath.re(mpmath.exp(a * t) * grown(t)) / m

        def rate(t):
            return mpmath.re(mpmath.exp(a * t) * (mpmath.cosh(root * t) + a * grown(t))) / m

        pieces = 8 + int(4 * abs(mpmath.im(root)) * T / mpmath.pi)
        return tuple(float(_integral_of_size(f, [T * j / pieces for j in range(pieces + 1)])) for f in (value, rate))


def _integral_of_size(f, edges):
    values = [f(t) for t in edges]
    cuts = [edges[0]]
    for left, right, before, after in zip(edges[:-1], edges[1:], values[:-1], values[1:], strict=True):
        if before * after < 0:
            cuts.append(mpmath.findroot(f, (left, right), solver="anderson", tol=1e-50))
        cuts.append(right)
    return sum(abs(mpmath.quad(f, piece, maxdegree=5)) for piece in pairwise(cuts))


def random_neurons(count, seed):
    """(m, c, k, horizon): complex and real roots, equal to many digits, at and near zero, in both half planes."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        m = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2, 2)
        a = rng.choice([-1.0, -1.0, 1.0, 0.0]) * 10.0 ** rng.uniform(-6, 1)
        size = 10.0 ** rng.uniform(-4, 1.5)
        near = a * a * 10.0 ** rng.uniform(-16, -4)
        d2 = (-size, size, 0.0, rng.choice([-1.0, 1.0]) * near, a * a - rng.choice([0.0, near]))[index % 5]
        yield m, -2.0 * a * m, m * (a * a - d2), 10.0 ** rng.uniform(-2, 1)
