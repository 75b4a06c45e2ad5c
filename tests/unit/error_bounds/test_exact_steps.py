"""Exact steps in pairs of doubles: their errors are below the estimates that error bounds count."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from ltinet._util.double_double import DoubleDouble
from ltinet.error_bounds.double_double_exponentials import DoubleDoubleStep, double_double_steps


def rotating(n: int, rng: np.random.Generator) -> np.ndarray:
    S = rng.standard_normal((n, n))
    return S - S.T - 0.1 * np.eye(n)


def stiff(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.triu(rng.standard_normal((n, n)), 1) - np.diag(10.0 ** np.arange(n))


def mixed(n: int, rng: np.random.Generator) -> np.ndarray:
    T = rng.standard_normal((n, n))
    return T @ np.diag(-(10.0 ** rng.uniform(-4.0, 6.0, n))) @ np.linalg.inv(T)


def chain(n: int, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001 - the same every time
    return np.eye(n, k=1)


def defective(n: int, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001 - the same every time
    return 4.0 * np.eye(n, k=1) - np.eye(n)


CASES = [
    (rotating, 6, 0.3), (rotating, 6, 1e3), (rotating, 34, 3.0), (stiff, 6, 100.0), (mixed, 4, 0.01), (mixed, 4, 1.0),
    (mixed, 5, 300.0), (chain, 5, 1e-6), (chain, 8, 5.0), (chain, 26, 1e-3), (defective, 8, 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("family", "n", "length"), CASES, ids=[f"{f.__name__} {n} {h:g}" for f, n, h in CASES])
@pytest.mark.parametrize("linear", [False, True])
def test_errors_are_below_their_estimates(family, n, length, linear):
    rng = np.random.default_rng([n, int(1e6 * length)])
    A, B = family(n, rng), rng.standard_normal((n, 2)) * np.array([1.0, 1e-6])
    pairs = [DoubleDouble(part, np.zeros_like(part)) for part in (A, B)]
    steps = double_double_steps(*pairs, length, 3, linear=linear)
    before, ctx.prec = ctx.prec, 500
    try:
        for level in (0, 3):
            assert_estimated(steps[level], A, B, length * 0.5**level, linear=linear)
    finally:
        ctx.prec = before


def assert_estimated(step: DoubleDoubleStep, A: np.ndarray, B: np.ndarray, h: float, *, linear: bool) -> None:
    """Compare a step with that of balls: P, G₀ and G₁ from the exponential of [[A, B, 0], [0, 0, I], [0, 0, 0]]."""
    (n, m), size = B.shape, len(A) + 2 * B.shape[1]
    whole = np.zeros((size, size))
    whole[:n, :n], whole[:n, n : n + m], whole[n : n + m, n + m :] = A, B, np.eye(m)
    exponential = (arb_mat(size, size, whole.ravel().tolist()) * arb(h)).exp()
    for i in range(n):
        row = [exponential[i, j] for j in range(size)]
        first, second = row[n : n + m], [entry / arb(h) for entry in row[n + m :]]
        begin = [a - b for a, b in zip(first, second, strict=True)] if linear else first
        end = second if linear else [arb(0)] * m
        for j, exact in enumerate([*row[:n], *begin, *end]):
            error = abs(exact - arb(step.high[i, j]) - arb(step.low[i, j]))
            assert error <= arb(step.error[i, j]) + arb(2) ** -1070  # underflow
