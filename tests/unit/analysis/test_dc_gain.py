"""Hypothesis: the gain at rest is right whatever integrators there are, seen or hidden, in chains or not."""

import control
import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy.linalg import block_diag

import ltinet
from ltinet import StateSpace, construct
from whole_number_bases import whole_number_basis


def rational(matrix):
    return fmpq_mat(*matrix.shape, [fmpq(*float(entry).as_integer_ratio()) for entry in matrix.ravel()])


@pytest.mark.parametrize("seed", range(200))
def test_integrators_in_chains_seen_and_hidden(seed):
    """Against exact residues of a Jordan form: chains of integrators beside stable modes, in other coordinates."""
    rng = np.random.default_rng(seed)
    chains = [int(length) for length in rng.integers(1, 4, int(rng.integers(1, 4)))]
    N = block_diag(*(np.eye(length, k=1) for length in chains))
    stable = -np.diag(rng.integers(1, 9, 3).astype(float))
    n_zero, n = len(N), len(N) + 3
    B, C = rng.integers(-1, 2, (n, 2)).astype(float), rng.integers(-1, 2, (3, n)).astype(float)
    S, S_inv = whole_number_basis(rng, n)
    scale = 2.0 ** rng.integers(-6, 7, n)  # units of the states
    A = (S @ block_diag(N, stable) @ S_inv) * scale[:, None] / scale
    gain = StateSpace(A, (S @ B) * scale[:, None], (C @ S_inv) / scale).dcgain()
    expected = C[:, n_zero:] @ np.linalg.solve(-stable, B[n_zero:])
    for power in range(max(chains)):
        residue = C[:, :n_zero] @ np.linalg.matrix_power(N, power) @ B[:n_zero]
        expected = np.where(residue != 0.0, np.copysign(np.inf, residue), expected)
    # Rounding of the split is that of its transformation, whose condition number is below 1e5 here.
    np.testing.assert_allclose(gain, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_without_integrators_against_exact_fractions_and_python_control(seed):
    rng = np.random.default_rng(seed)
    n, m, p = (int(size) for size in rng.integers(1, 8, 3))
    scale = 10.0 ** rng.uniform(-8, 8, n)  # badly scaled states
    A = rng.standard_normal((n, n)) * scale[:, None] / scale
    B, C, D = (
        rng.standard_normal((n, m)) * scale[:, None],
        rng.standard_normal((p, n)) / scale,
        rng.standard_normal((p, m)),
    )
    E = rng.standard_normal((n, n)) * scale[:, None] / scale if seed % 2 else None
    exact = rational(D) - rational(C) * rational(A).solve(rational(B))
    truth = np.array([[int(exact[i, j].p) / int(exact[i, j].q) for j in range(m)] for i in range(p)])
    system = StateSpace(A, B, C, D, E)
    theirs = np.atleast_2d(control.dcgain(control.ss(system.A, system.B, C, D)))
    terms = np.abs(D) + np.abs(C) @ np.abs(np.linalg.solve(A, B))
    assert np.all(np.abs(system.dcgain() - truth) <= 10.0 * np.abs(theirs - truth) + 1e-14 * terms)


def test_signs_and_hidden_ones_that_python_control_misses():
    assert StateSpace(0.0, 1.0, -1.0).dcgain() == -np.inf
    unseen = StateSpace(np.diag([0.0, -2.0]), [1.0, 1.0], [0.0, 1.0])
    assert unseen.dcgain() == 0.5
    unreached = StateSpace(np.diag([0.0, -2.0]), [0.0, 1.0], [1.0, 1.0])
    assert unreached.dcgain() == 0.5
    assert construct(unseen).dcgain() == 0.5


def test_a_slow_pole_is_no_integrator():
    system = StateSpace(np.diag([0.0, -1e-9, -1e9]), np.ones((3, 1)), np.diag([1.0, 1e-9, 1e9]))
    np.testing.assert_array_equal(system.dcgain()[:, 0], [np.inf, 1.0, 1.0])


def test_static_gains_and_no_inputs():
    assert StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 3.0).dcgain() == 3.0
    assert StateSpace(-1.0, np.zeros((1, 0)), 1.0).dcgain().shape == (1, 0)


def test_an_integrating_loop_is_infinite_at_zero_and_has_no_bandwidth():
    plant, integrator = ltinet.tf([1.0], [1.0, 0.5, 4.0]), ltinet.pid(2.0, 1.0)
    loop = plant * integrator
    theirs = control.ss(*(np.asarray(part) for part in (loop.A, loop.B, loop.C, loop.D)))
    assert loop.dcgain()[0, 0] == control.dcgain(theirs) == np.inf
    with pytest.warns(RuntimeWarning):
        assert abs(loop(0)) == abs(theirs(0)) == np.inf
    with pytest.warns(UserWarning, match=r"from input 0 to output 0 is infinite.*ltinet\.feedback\(L\)\.bandwidth"):
        assert np.isnan(loop.bandwidth()[0, 0])
    closed = ltinet.feedback(loop)
    omega = closed.bandwidth()[0, 0]
    np.testing.assert_allclose(abs(closed(1j * omega)), 10.0 ** (-3.0 / 20.0), rtol=1e-9)
