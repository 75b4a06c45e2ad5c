"""Random interconnections, with algebraic loops, against a dense solution in balls.

The oracle computes H(s) = F (I − G K)⁻¹ G E + H₀ with G(s) = blkdiag(G_i(s)) in ball arithmetic of 300 bits, and the
transfer function of the matrices that `connect` returns in the same arithmetic. Their difference may be the effect of
rounding errors of γ = 10·(n + p)·eps in every product, sum and solution of the equations of `connection.py`, to first
order and entry by entry.
"""

import flint
import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.interconnection.connection import connect
from ltinet.interconnection.delays import Wiring
from ltinet.systems.signal_names import SignalNames

POINTS = [0.7j, 0.4 + 3.0j, 5.0]
N_CASES = 500


def draw(seed):
    """Systems of an interconnection, its gains; a third of the cases is large, up to 200 states in all."""
    rng = np.random.default_rng([47, seed])
    count = int(rng.integers(2, 13))
    budget = 200 if seed % 3 == 0 else 24
    systems = []
    for _ in range(count):
        n = int(rng.integers(0, max(budget // count, 1) + 1))
        m, p = (int(size) for size in rng.integers(1, 4, 2))
        A = rng.standard_normal((n, n)) / np.sqrt(max(n, 1)) - 0.6 * np.eye(n)
        D = rng.standard_normal((p, m)) * (rng.random() < 0.5)
        systems.append(ltinet.StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), D))
    m, p = (sum(getattr(system, size) for system in systems) for size in ("n_inputs", "n_outputs"))
    q, z = (int(size) for size in rng.integers(1, 4, 2))

    def sparse(rows, columns, density):
        return rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < density)

    return systems, Wiring(sparse(m, p, 2.0 / p), sparse(m, q, 0.4), sparse(z, p, 0.4), sparse(z, q, 0.2))


def to_balls(matrix):
    rows, columns = matrix.shape
    return flint.acb_mat(rows, columns, [flint.acb(float(value)) for value in np.ravel(matrix)])


def identity(size, value=1.0):
    return flint.acb_mat(size, size, [flint.acb(value if i == j else 0.0) for i in range(size) for j in range(size)])


def response(A, B, C, D, s):
    """C (s I − A)⁻¹ B + D in balls."""
    if not len(A):
        return to_balls(D)
    shifted = identity(len(A), s) - to_balls(A)
    return to_balls(C) * shifted.solve(to_balls(B)) + to_balls(D)


def smallest_sizes(balls):
    """Lower bounds on the absolute values of the entries: zero where a ball contains zero."""
    return np.array([[float(balls[i, j].abs_lower()) for j in range(balls.ncols())] for i in range(balls.nrows())])


def difference_of_responses(closed, systems, wiring, s):
    """A lower bound on |H − H_exact| from balls of 300 bits, in which the radii are no more than 1e-60 of the values."""
    m, p = wiring.K.shape
    G = flint.acb_mat(p, m, [flint.acb(0)] * (p * m))
    row = column = 0
    for system in systems:
        block = response(system.A, system.B, system.C, system.D, s)
        for i in range(system.n_outputs):
            for j in range(system.n_inputs):
                G[row + i, column + j] = block[i, j]
        row, column = row + system.n_outputs, column + system.n_inputs
    K, E, F, H = (to_balls(part) for part in (wiring.K, wiring.E, wiring.F, wiring.H))
    exact = F * (identity(p) - G * K).solve(G * E) + H
    computed = response(closed.A, closed.B, closed.C, closed.D, s)
    difference = computed - exact
    assert all(float(abs(ball).rad()) <= 1e-60 for ball in difference.entries())  # the bound below is sharp
    return smallest_sizes(difference)


def first_order_bound(closed, systems, wiring, s):
    """Effect of rounding errors in the closed-loop matrices on H(s), entry by entry."""
    parts = [np.abs(_block_diagonal([getattr(system, name) for system in systems])) for name in "ABCD"]
    A, B, C, D = parts
    K, E, F, H = (np.abs(part) for part in (wiring.K, wiring.E, wiring.F, wiring.H))
    n, p = len(A), len(C)
    gamma = 10.0 * (n + p) * EPS
    signed_D = _block_diagonal([system.D for system in systems])
    inverse = np.abs(np.linalg.inv(np.eye(p) - signed_D @ wiring.K))
    right = np.hstack([C, D @ E])
    Y = inverse @ right  # bounds |[y_x, y_r]|
    dY = gamma * inverse @ ((np.eye(p) + D @ K) @ Y + right)
    U, dU = K @ Y, K @ dY + gamma * K @ Y
    U[:, n:] += E
    dA, dB = B @ dU[:, :n] + gamma * (A + B @ U[:, :n]), B @ dU[:, n:] + gamma * B @ U[:, n:]
    dC, dD = F @ dY[:, :n] + gamma * F @ Y[:, :n], F @ dY[:, n:] + gamma * (F @ Y[:, n:] + H)
    resolvent = np.linalg.inv(s * np.eye(n) - closed.A)
    left, state = np.abs(closed.C @ resolvent), np.abs(resolvent @ closed.B)
    return left @ dA @ state + left @ dB + dC @ state + dD


def _block_diagonal(blocks):
    rows, columns = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    matrix, i, j = np.zeros((rows, columns)), 0, 0
    for block in blocks:
        matrix[i : i + block.shape[0], j : j + block.shape[1]] = block
        i, j = i + block.shape[0], j + block.shape[1]
    return matrix


@pytest.mark.default_cases(30)
@pytest.mark.parametrize("seed", range(N_CASES))
def test_interconnection_is_the_dense_solution(seed):
    systems, wiring = draw(seed)
    closed = connect(systems, wiring, names=SignalNames())
    precision = flint.ctx.prec
    flint.ctx.prec = 300
    try:
        for s in POINTS if closed.n_states < 50 else POINTS[:1]:
            error = difference_of_responses(closed, systems, wiring, s)
            assert np.all(error <= first_order_bound(closed, systems, wiring, s))
    finally:
        flint.ctx.prec = precision


def test_some_interconnections_have_algebraic_loops():
    with_loops = 0
    for seed in range(N_CASES):
        systems, wiring = draw(seed)
        gains = np.abs(_block_diagonal([system.D for system in systems]) @ wiring.K) > 0
        paths = np.linalg.matrix_power(np.eye(len(gains)) + gains, len(gains)) > 0
        with_loops += bool((paths & paths.T & ~np.eye(len(gains), dtype=bool)).any())
    assert with_loops > 100
