"""Hypothesis: the exact engine is right, and below its bound, on systems whose neurons nearly coincide, grow or differ.

*Right* is an error of at most 1e-10 of the peak of an output, unless a test says what else the data allow.
"""

from contextlib import suppress

import numpy as np
import pytest
from scipy import signal

import ltinet
from ball_oracle import respond
from hard_matrices import hippo_legs

RIGHT = 1e-10
T = 0.25 * np.arange(101)
U = np.random.default_rng(0).standard_normal((101, 2))


def assert_right(system, *, right=RIGHT, hold="linear", x0=None, u=U, t=T, **options):
    """Run a system (A, B, C[, E]), compare with the oracle, and return the network."""
    A, B, C, *E = system
    D, E = np.zeros((len(C), np.shape(B)[1])), E[0] if E else None
    net = ltinet.construct(ltinet.StateSpace(A, B, C, D, E), **options)
    solution = net.simulate(u, t, hold=hold, x0=x0)
    truth = respond(np.asarray(A, float), np.asarray(B, float), np.asarray(C, float), D, E, u=u, t=t, hold=hold, x0=x0)
    error = np.max(truth.y.distance(solution.y), axis=-2)
    assert np.all(error <= right * truth.y.peak)
    assert np.all(error <= solution.error_bound())
    assert np.all(np.isfinite(solution.error_bound()))
    return net


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("exponent", range(-16, 1, 2))
def test_pairs_with_a_small_imaginary_part(exponent, hold):
    b = 10.0**exponent
    assert_right(([[-1.0, b], [-b, -1.0]], np.eye(2), [[1.0, 2.0], [3.0, 1.0]]), hold=hold)


def test_repeated_eigenvalues_beside_a_fast_one_have_weights_of_the_size_of_the_data():
    M = np.random.default_rng(10).standard_normal((6, 6))
    A = M @ np.diag([-1, -1, -1, -2, -2, -1e4]) @ np.linalg.inv(M)
    B, C = np.random.default_rng(1).standard_normal((6, 2)), np.random.default_rng(2).standard_normal((2, 6))
    net = assert_right((A, B, C))
    assert net.weight_norm < 1e3 * np.linalg.norm(A)  # M has a condition of 30, and weights are products with B and C


@pytest.mark.default_cases(13)
@pytest.mark.parametrize("seed", range(30))
def test_random_similarities_of_repeated_real_eigenvalues(seed):
    """What rounding A itself allows: V has a condition of up to 1e4, and the peer loses as much."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(3, 9))
    values = -rng.choice([1.0, 2.0, 5.0], n)
    V = rng.standard_normal((n, n))
    A = V @ np.diag(values) @ np.linalg.inv(V)
    system = A, rng.standard_normal((n, 2)), rng.standard_normal((2, n))
    x0 = rng.standard_normal(n) if seed % 2 else None
    _, y, _ = signal.lsim((*system, np.zeros((2, 2))), U, T, X0=x0)
    truth = respond(*system, np.zeros((2, 2)), None, u=U, t=T, x0=x0)
    peer = np.max(np.max(truth.y.distance(y), axis=-2) / truth.y.peak)
    assert_right(system, right=max(RIGHT, 10.0 * peer), x0=x0)


@pytest.mark.parametrize("seed", range(10))
def test_coupled_pairs_over_eight_decades(seed):
    rng = np.random.default_rng([8, seed])
    rates = 10.0 ** np.linspace(-8.0, 0.0, 5)
    A = np.triu(rng.standard_normal((10, 10)), 2) * np.repeat(rates, 2)[:, None]
    for i, rate in enumerate(rates):
        A[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = rate * np.array([[-1.0, 2.0], [-2.0, -1.0]])
    assert_right((A, rng.standard_normal((10, 2)), rng.standard_normal((2, 10))), max_condition=10.0)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("share", [0.3, 30.0, 3000.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_beam_with_a_mass_matrix_from_any_state(data_dir, share, seed):
    system = ltinet.load_system(data_dir / "lf10_beam_descriptor.mat")
    E, A, B = system.descriptor
    step = share / np.max(np.abs(np.linalg.eigvals(system.A)))
    t, u = step * np.arange(101), np.random.default_rng([9, seed]).standard_normal((101, 1))
    x0 = np.random.default_rng(seed).standard_normal(system.n_states)
    assert_right((A, B, system.C, E), x0=x0, u=u, t=t)


@pytest.mark.parametrize("growth", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_a_growing_mode_keeps_its_digits(growth, hold):
    n_steps = max(2, int(600.0 / growth))
    u = np.random.default_rng(3).standard_normal((n_steps + 1, 1))
    t = growth * np.arange(n_steps + 1)
    net = assert_right(([[1.0]], [[1.0]], [[1.0]]), u=u, t=t, hold=hold)
    stepper = net.stepper(growth, hold=hold)
    y = np.array([stepper.step(sample) for sample in u])
    np.testing.assert_allclose(y[1:], net.simulate(u, t, hold=hold).y[1:], rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 4, 8, 10])
def test_the_bound_counts_a_descriptor_matrix(exponent):
    """An E of condition 1e8 leaves eight digits: of the result, not of the bound."""
    rng = np.random.default_rng([4, exponent])
    Q, R = np.linalg.qr(rng.standard_normal((6, 6)))[0], np.linalg.qr(rng.standard_normal((6, 6)))[0]
    E = Q * 10.0 ** -np.linspace(0.0, exponent, 6) @ R
    A = E @ (rng.standard_normal((6, 6)) - 4.0 * np.eye(6))
    system = A, rng.standard_normal((6, 2)), rng.standard_normal((2, 6)), E
    assert_right(system, right=max(RIGHT, 1e3 * 10.0**exponent * np.finfo(float).eps))


@pytest.mark.slow
def test_balancing_that_costs_digits_is_not_used():
    A = hippo_legs(64)
    rng = np.random.default_rng(6)
    system = A, rng.standard_normal((64, 1)), rng.standard_normal((1, 64))
    t = 0.3 / 64.0 * np.arange(201)
    net = assert_right(system, u=rng.standard_normal((201, 1)), t=t)
    assert "as given" in str(net.form)


def test_a_transmission_line_needs_no_connections():
    n = 128
    A = np.zeros((2 * n, 2 * n))  # currents and voltages of 128 cells; units far apart
    L, Cap, R = 1e-6, 1e-9, 1e-2
    for k in range(n):
        A[k, k], A[k, n + k] = -R / L, -1.0 / L
        A[n + k, k] = 1.0 / Cap
        if k:
            A[k, n + k - 1] = 1.0 / L
        if k + 1 < n:
            A[n + k, k + 1] = -1.0 / Cap
    assert ltinet.block_diagonalize(A, max_condition=100.0).n_connections == 0


def test_overflow_is_an_error_that_names_its_time():
    net = ltinet.construct(([[1.0]], [[1.0]], [[1.0]]))
    t = 10.0 * np.arange(100)
    with pytest.raises(ltinet.SimulationError, match=r"t = 7[12]0"):
        net.simulate(np.ones(100), t)
    with pytest.raises(ltinet.SimulationError, match="t = 0"):
        ltinet.construct((-np.eye(2), np.eye(2), [[1e3, 1e3]])).simulate(None, [0.0, 1.0], x0=[1e308, 1e308])
    with pytest.raises(ltinet.SimulationError, match="sample 7"):
        _run_stepper(net.stepper(10.0), n_steps=100)


def _run_stepper(stepper, n_steps):
    for _ in range(n_steps):
        stepper.step([1.0])


def test_a_certificate_of_a_coupled_unstable_layer_is_no_crash():
    net = ltinet.construct(([[1.0, 1.0], [0.0, 1.0]], [[0.0], [1.0]], [[1.0, 0.0]]))
    certificate = net.certificate(horizon=800.0)
    assert not np.any(np.isnan(certificate.total))


@pytest.mark.parametrize("fast", [1e12, 1e16, 1e20])
def test_a_stiff_system_from_a_state_in_long_steps(fast):
    """Y = 2 t + 2 − … : the slow state integrates u, the fast one follows it within 1/fast; x1 + x2 moves by 2 u."""
    A = np.array([[-fast, fast], [1.0, -1.0]])
    net = ltinet.construct(ltinet.StateSpace(A, np.ones((2, 1)), np.ones((1, 2))))
    sol = net.simulate(np.ones(40), 10.0 * np.arange(40), x0=[0.0, 1.0])
    expected = 2.0 * (1.0 / (1.0 + 1.0 / fast) + sol.t)
    assert np.abs(sol.y[1:, 0] - expected[1:]).max() <= min(4.0 / fast + 1e-9, sol.error_bound()[0])
    in_blocks = net.simulate(np.ones(40), 10.0 * np.arange(40), x0=[0.0, 1.0], coordinates="blocks")
    assert in_blocks.error_bound()[0] <= 1e-8  # exponentials in pairs of doubles err by 1e-32 · 10 · fast


@pytest.mark.parametrize("decades", [2, 4, 6, 8])
def test_the_bound_does_not_depend_on_the_units_of_states(decades):
    """A change of units changes nothing that is measured relative to each state."""
    M = np.array([[-1.0, 2.0, 0.5], [-2.0, -1.0, 0.3], [0.1, 0.2, -3.0]])
    units = 2.0 ** np.round(np.log2([10.0**decades, 1.0, 10.0**-decades]))
    system = ltinet.StateSpace(M * units[:, None] / units, units[:, None] * np.ones((3, 1)), np.diag(1.0 / units))
    sol = ltinet.construct(system).simulate(np.ones(100), 0.1 * np.arange(100))
    assert np.all(sol.error_bound() <= 1e-12 * np.abs(sol.y).max(axis=0))


def test_a_system_without_inputs_has_states_and_a_bound():
    sol = ltinet.construct(ltinet.StateSpace([[-1.0]], np.zeros((1, 0)), [[1.0]])).simulate(
        None, np.linspace(0.0, 4.0, 41), x0=[1.0]
    )
    np.testing.assert_allclose(sol.states[:, 0], np.exp(-sol.t), rtol=1e-14)
    assert np.abs(sol([0.55]) - np.exp(-0.55)) <= sol.error_bound(0.55)


def test_a_pair_whose_couplings_span_all_numbers_has_a_solution_or_one_error():
    """Between 1e-310 and 1e308 lie more powers of two than the inverse of a scale has."""
    A = np.array([[0.0, 1.7e308], [-1e-310, 0.0]])
    net = ltinet.construct((A, np.ones((2, 1)), np.ones((1, 2))), balance=False)
    with suppress(ltinet.SimulationError):
        assert np.all(np.isfinite(net.simulate(np.ones(4), 0.5 * np.arange(4)).y))


@pytest.mark.parametrize("exponent", [-150, -60, 60, 150])
def test_a_pair_in_units_that_are_far_apart_has_a_bound(exponent):
    apart = 10.0**exponent
    assert_right(([[-1.0, apart], [-1.0 / apart, -1.0]], np.ones((2, 2)), np.eye(2)))


@pytest.mark.parametrize("fast", [1e3, 2.0**24])
def test_a_coupling_that_is_given_exactly_is_kept_beside_fast_states(fast):
    # The output sees the input only through 1e-13, between two states with one eigenvalue.
    A = np.array([[-3.0, 1e-13, 1.0], [0.0, -3.0, 0.0], [0.0, 0.0, -fast]])
    lean = np.eye(3)
    lean[2, 0] = 0.125
    back = 2.0 * np.eye(3) - lean
    t = 0.01 * np.arange(61)
    u = np.random.default_rng(0).standard_normal((61, 1))
    assert_right((back @ A @ lean, [[0.0], [1.0], [0.0]], [[1.0, 0.0, 0.0]]), u=u, t=t)
