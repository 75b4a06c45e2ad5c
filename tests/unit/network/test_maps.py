"""Hypothesis: each map equals the formula of the paper's appendix; n_dynn and its inverse cancel bit for bit.

The formulas are evaluated in rational arithmetic with the paper's own matrices T, P, P_ξ and P_η (the last as corrected
in the errata); the code uses slices and triangular solves instead.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltinet.network.maps import LayerMatrices, LayerParameters, m_eta, m_h, m_lti, m_o, n_dynn, n_dynn_inverse
from network_examples import pattern_block
from support.tiers import n_examples

EPS = np.finfo(float).eps
# The three types of Table 1 with its numbers of neurons, then single neurons and an empty block.
TABLE_1 = {"first-order": (4, 0), "second-order": (0, 4), "mixed": (2, 2)}
SHAPES = [*TABLE_1.values(), (1, 0), (0, 1), (1, 1), (5, 3), (0, 0)]
M_INPUTS, P_OUTPUTS = 3, 2


def drawn(n_real, n_pairs, n_inputs=M_INPUTS):
    rng = np.random.default_rng(7)
    A = pattern_block(n_real, n_pairs, seed=1)
    return A, rng.standard_normal((len(A), n_inputs)), rng.standard_normal((P_OUTPUTS, len(A)))


def rational(matrix):
    return np.array([[Fraction(x) for x in row] for row in np.asarray(matrix).tolist()], dtype=object).reshape(
        np.shape(matrix)
    )


def identity(n):
    return rational(np.eye(n))


def solve_rational(triangle, right):
    """Back substitution without rounding."""
    result = right.copy()
    for i in range(len(triangle) - 1, -1, -1):
        for j in range(i + 1, len(triangle)):
            result[i] = result[i] - triangle[i, j] * result[j]
        result[i] = result[i] / triangle[i, i]
    return result


def paper_maps(A, B, C, n_real):
    """(W, Q, Z), (M, C, K, E, V) and (C𝓕, C𝒵) with the appendix's permutations, all without rounding."""
    n_pairs = (len(A) - n_real) // 2
    A, B, C = rational(A), rational(B), rational(C)
    T = np.vstack([np.kron(np.eye(n_pairs), [[1, 0]]), np.kron(np.eye(n_pairs), [[0, 1]])]).astype(int)
    P = np.zeros((len(A), len(A)), dtype=int)
    P[:n_real, :n_real] = np.eye(n_real)
    P[n_real:, n_real:] = T
    PA, PB = P @ A @ P.T, P @ B
    r, c, e = slice(0, n_real), slice(n_real, n_real + n_pairs), slice(n_real + n_pairs, None)
    A11, A12, A13, A22, A23, A32, A33 = (PA[i, j] for i, j in ((r, r), (r, c), (r, e), (c, c), (c, e), (e, c), (e, e)))
    B1, B2, B3 = PB[r], PB[c], PB[e]
    Q = solve_rational(A23, identity(n_pairs))
    W, Z = -Q @ A22, -Q @ B2
    zero_rc, zero_cr = rational(np.zeros((n_real, n_pairs))), rational(np.zeros((n_pairs, n_real)))
    M = np.block([[0 * identity(n_real), zero_rc], [zero_cr, identity(n_pairs)]])
    damping = np.block([[identity(n_real), -A13 @ Q], [zero_cr, -(A22 + A23 @ A33 @ Q)]])
    K = np.block([[-A11, -(A12 + A13 @ W)], [zero_cr, -(A23 @ A32 + A23 @ A33 @ W)]])
    E = np.vstack([A13 @ Z + B1, A23 @ A33 @ Z + A23 @ B3])
    V = np.vstack([0 * B1, B2])
    P_xi, P_eta = P.T[:, : n_real + n_pairs], P.T[:, n_real + n_pairs :]  # erratum 2: [0; 1] in P_η
    zero_W = np.hstack([zero_cr, W])
    zero_Q = np.hstack([zero_cr, Q])
    return (W, Q, Z), (M, damping, K, E, V), (C @ (P_xi + P_eta @ zero_W), C @ P_eta @ zero_Q, C @ P_eta @ Z)


def assert_close(computed, expected, A):
    """Products of at most four factors: n·eps times the product of their norms, with Q the only inverse."""
    expected = expected.astype(float)
    assert computed.shape == expected.shape
    size = 1.0 + np.linalg.norm(A)
    inverse = max([1.0, *np.abs(1.0 / np.diag(A, 1)[np.diag(A, 1) != 0])])
    growth = size**2 * inverse ** min(len(A), 3)
    np.testing.assert_allclose(computed, expected, rtol=0.0, atol=20 * max(len(A), 1) * EPS * growth * size)


@pytest.mark.parametrize(("n_real", "n_pairs"), SHAPES)
def test_maps_are_the_formulas_of_the_appendix(n_real, n_pairs):
    A, B, C = drawn(n_real, n_pairs)
    eta, layer, (values, rates, feedthrough) = paper_maps(A, B, C, n_real)
    for computed, expected in zip(m_eta(A, B, n_real=n_real), eta, strict=True):
        assert_close(computed, expected, A)
    for computed, expected in zip(m_lti(A, B, n_real=n_real), layer, strict=True):
        assert_close(computed, expected, A)
    phi, phi_rate, psi = m_o(A, B, C, n_real=n_real)
    assert_close(phi, values, A)
    assert_close(phi_rate, rates[:, n_real:], A)
    assert not np.any(rates[:, :n_real])  # what is not stored is zero in the paper, too
    assert_close(psi, feedthrough, A)


@pytest.mark.parametrize("kind", TABLE_1)
def test_sparsity_patterns_of_table_1(kind):
    n_real, n_pairs = TABLE_1[kind]
    n = n_real + n_pairs
    A, B, _ = drawn(n_real, n_pairs)
    M, C, K, E, V = m_lti(A, B, n_real=n_real)
    upper, is_pair = np.triu(np.ones((n, n), dtype=bool)), np.arange(n) >= n_real
    np.testing.assert_array_equal(M, np.diag(is_pair.astype(float)))
    # c_ij belongs to pairs only: the first-order part of C is the identity.
    damped = (upper & is_pair[None, :]) | np.eye(n, dtype=bool)
    np.testing.assert_array_equal(C != 0.0, damped)
    np.testing.assert_array_equal(C[:n_real, :n_real], np.eye(n_real))
    np.testing.assert_array_equal(K != 0.0, upper)
    np.testing.assert_array_equal(E != 0.0, np.ones((n, M_INPUTS), dtype=bool))
    np.testing.assert_array_equal(V != 0.0, np.broadcast_to(is_pair[:, None], (n, M_INPUTS)))


@pytest.mark.parametrize("kind", TABLE_1)
def test_w_and_q_are_upper_triangular(kind):
    n_real, n_pairs = TABLE_1[kind]
    A, B, _ = drawn(n_real, n_pairs)
    W, Q, Z = m_eta(A, B, n_real=n_real)
    assert W.shape == Q.shape == (n_pairs, n_pairs)
    assert Z.shape == (n_pairs, M_INPUTS)
    assert not np.any(np.tril(W, -1))
    assert not np.any(np.tril(Q, -1))


@pytest.mark.parametrize(("n_real", "n_pairs"), [(0, 0), (3, 0), (0, 2)])
@pytest.mark.parametrize("n_inputs", [0, 1])
def test_empty_parts_keep_their_axes(n_real, n_pairs, n_inputs):
    A, B, C = drawn(n_real, n_pairs, n_inputs)
    n = n_real + n_pairs
    assert [matrix.shape for matrix in m_lti(A, B, n_real=n_real)] == [(n, n)] * 3 + [(n, n_inputs)] * 2
    shapes = [matrix.shape for matrix in m_o(A, B, C, n_real=n_real)]
    assert shapes == [(P_OUTPUTS, n), (P_OUTPUTS, n_pairs), (P_OUTPUTS, n_inputs)]
    parameters = m_h(A, B, n_real=n_real)
    assert len(parameters.masses) == len(parameters.weights) == n


def test_a_single_pair_is_the_textbook_oscillator():
    # [[a, b], [c, a]]: ξ̈ − 2aξ̇ + (a² − bc)ξ; powers of two, so that nothing is rounded.
    a, b, c = -0.5, 2.0, -4.0
    layer = m_lti(np.array([[a, b], [c, a]]), np.array([[0.25], [1.0]]), n_real=0)
    assert [[-2.0 * a]] == layer.C
    assert [[a * a - b * c]] == layer.K
    assert [[b * 1.0 - a * 0.25]] == layer.E
    assert layer.V == [[0.25]]


def test_m_h_composes_the_two_maps():
    A, B, _ = drawn(2, 2)
    own, composed = m_h(A, B, n_real=2), n_dynn_inverse(m_lti(A, B, n_real=2))
    assert own[:3] == composed[:3]
    for mine, theirs in zip(own.weights, composed.weights, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_n_dynn_orders_the_weights_as_the_paper():
    parameters = LayerParameters(
        (0.0, 5.0, 6.0),
        (1.0, 2.0, 3.0),
        (7.0, 8.0, 9.0),
        (np.array([10.0, 20.0, -0.1, -0.2, -0.3, -0.4]), np.array([11.0, 21.0, -0.5, -0.6]), np.array([12.0, 22.0])),
    )
    M, C, K, E, V = n_dynn(parameters, n_inputs=1)
    np.testing.assert_array_equal(M, np.diag([0.0, 5.0, 6.0]))
    np.testing.assert_array_equal(K, [[7.0, 0.1, 0.3], [0.0, 8.0, 0.5], [0.0, 0.0, 9.0]])
    np.testing.assert_array_equal(C, [[1.0, 0.2, 0.4], [0.0, 2.0, 0.6], [0.0, 0.0, 3.0]])
    np.testing.assert_array_equal(E, [[10.0], [11.0], [12.0]])
    np.testing.assert_array_equal(V, [[20.0], [21.0], [22.0]])


@st.composite
def any_bits(draw):
    """Layers of arbitrary doubles, −0.0 and subnormal numbers included."""
    n, m = draw(st.integers(0, 5)), draw(st.integers(0, 3))
    number = st.floats(allow_nan=False, allow_infinity=False)
    count = 3 * n + n * (n - 1) + 2 * n * m
    values = np.array(draw(st.lists(number, min_size=count, max_size=count)))
    return n, m, values


@settings(max_examples=n_examples(100), deadline=None, derandomize=True)
@given(any_bits())
def test_n_dynn_and_inverse_compose_to_identity(example):
    n, m, values = example
    entries = iter(values.tolist())
    M, C, K, E, V = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, m)), np.zeros((n, m))
    for i in range(n):
        M[i, i] = next(entries)
        for j in range(i, n):
            C[i, j], K[i, j] = next(entries), next(entries)
        for j in range(m):
            E[i, j], V[i, j] = next(entries), next(entries)
    layer = LayerMatrices(M, C, K, E, V)
    parameters = n_dynn_inverse(layer)
    back = n_dynn(parameters, n_inputs=m)
    assert [matrix.tobytes() for matrix in back] == [matrix.tobytes() for matrix in layer]
    again = n_dynn_inverse(back)
    assert np.array(again[:3]).tobytes() == np.array(parameters[:3]).tobytes()
    assert [w.tobytes() for w in again.weights] == [w.tobytes() for w in parameters.weights]
    assert [len(w) for w in parameters.weights] == [2 * m + 2 * (n - 1 - i) for i in range(n)]
