"""Encirclements counted along the contour are those of the closed-loop poles; sensitivities are those of the definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ltinet
from ltinet.analysis import stability
from ltinet.errors import InvalidSystemError


def random_loop(seed: int) -> ltinet.StateSpace:
    """A loop with stable, unstable and boundary poles, one or two channels, in continuous or discrete time."""
    rng = np.random.default_rng(seed)
    m, dt = 1 + seed % 2, 0.1 if seed % 3 == 0 else None
    blocks = [np.array([[rng.normal(-0.5)]])]
    for _ in range(int(rng.integers(1, 4))):
        a, b = rng.normal(-0.3), rng.uniform(0.5, 4.0)
        blocks.append(np.array([[a, b], [-b, a]]))
    if seed % 4 == 1:
        blocks.append(np.zeros((1, 1)))
    if seed % 4 == 2:
        blocks.append(np.array([[0.0, 3.0], [-3.0, 0.0]]))
    n = sum(map(len, blocks))
    A = np.zeros((n, n))
    start = 0
    for block in blocks:
        A[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    system = ltinet.StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((m, n)), 0.2 * np.eye(m))
    return system if dt is None else system.to_discrete(dt)


@pytest.mark.parametrize("seed", range(48))
def test_counted_poles_are_the_eigenvalues(seed: int) -> None:
    loop = random_loop(seed)
    counted = stability.count_with_delays(loop.matrices, np.zeros((loop.n_outputs, loop.n_inputs)))
    closed = np.linalg.eigvals(stability.closed_loop(loop.matrices).A)
    excess = closed.real if loop.dt is None else np.abs(closed) - 1.0
    assert counted == np.count_nonzero(excess > 0.0)
    result = loop.nyquist()
    assert result.closed_loop_unstable_poles == counted
    assert result.encirclements == counted - result.open_loop_unstable_poles
    assert result.is_stable == (excess < 0.0).all()


@pytest.mark.parametrize("steps", [1, 3, 8])
@pytest.mark.parametrize("seed", [0, 3, 6, 9, 12, 15])
def test_delays_of_whole_samples_are_counted_as_a_shift_register(seed: int, steps: int) -> None:
    loop = random_loop(seed)
    n, m, dt = loop.n_states, loop.n_inputs, float(loop.dt)
    register = np.zeros((n + m * steps, n + m * steps))
    register[:n, :n] = loop.A
    register[:n, -m:] = loop.B
    register[n + m :, n:-m] = np.eye(m * (steps - 1))
    B = np.zeros((len(register), m))
    B[n : n + m] = np.eye(m)
    C = np.hstack([loop.C, np.zeros((m, m * (steps - 1))), loop.D])
    closed = np.abs(np.linalg.eigvals(register - B @ C))
    delayed = loop.with_signal_settings(input_delay=steps * dt).nyquist()
    assert delayed.closed_loop_unstable_poles == np.count_nonzero(closed > 1.0)


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7, 8, 10, 11])
def test_delays_are_counted_as_a_discretized_delay_line(seed: int) -> None:
    """e^{−sτ} as (1 + sτ/N)^{−N} with N = 200 is within 1e-2 of it up to the crossovers: equal counts off the boundary."""
    loop = random_loop(seed)
    loop = ltinet.StateSpace(loop.A, loop.B, loop.C)
    tau, N, n, m = 0.2, 200, loop.n_states, loop.n_inputs
    A = np.zeros((n + m * N, n + m * N))
    A[:n, :n], A[:n, -m:] = loop.A, loop.B
    rate = N / tau
    A[n:, n:] = -rate * np.eye(m * N) + rate * np.eye(m * N, k=-m)
    A[n : n + m, :n] -= rate * loop.C
    closed = np.linalg.eigvals(A).real
    assert np.abs(closed).min() > 1e-2, "too close to the boundary for this approximation"
    delayed = loop.with_signal_settings(input_delay=tau).nyquist()
    assert delayed.closed_loop_unstable_poles == np.count_nonzero(closed > 0.0)


def test_integrator_with_dead_time_is_stable_up_to_a_quarter_turn() -> None:
    # K e^{−sτ}/s: stable for Kτ < π/2, two unstable poles up to 5π/2, then four.
    for product, unstable in ((1.5, 0), (1.6, 2), (7.8, 2), (7.9, 4)):
        result = ltinet.nyquist(ltinet.StateSpace(0.0, 1.0, product, output_delay=1.0))
        assert result.closed_loop_unstable_poles == result.encirclements == unstable
        assert result.is_stable == (unstable == 0)


def test_hidden_integrators_are_not_stabilized() -> None:
    loop = ltinet.StateSpace(np.diag([0.0, -1.0]), [0.0, 1.0], [1.0, 1.0], input_delay=0.1)
    result = loop.nyquist()
    assert result.closed_loop_unstable_poles == 0
    assert not result.is_stable


def test_boundary_poles_are_not_stable() -> None:
    assert ltinet.isstable(ltinet.StateSpace(-1e-10, 1.0, 1.0))
    assert not ltinet.isstable(ltinet.StateSpace([[0, 1], [-4, 0]], [0, 1], [1, 0]))
    # A double integrator in coordinates that round its eigenvalues to ±1e-8.
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))
    assert not ltinet.isstable(ltinet.StateSpace(Q @ [[0, 1], [0, 0]] @ Q.T, [0, 1], [1, 0]))
    assert not ltinet.isstable(ltinet.StateSpace(1.0, 1.0, 1.0, dt=0.1))
    assert ltinet.isstable(ltinet.StateSpace([], [], [], 3.0))


def test_sensitivities_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)

    def system(n: int, p: int, m: int) -> ltinet.StateSpace:
        return ltinet.StateSpace(
            rng.standard_normal((n, n)), rng.standard_normal((n, m)), rng.standard_normal((p, n)),
            rng.standard_normal((p, m)),
        )  # fmt: skip

    plant, controller = system(4, 2, 3), system(3, 3, 2)
    result = ltinet.sensitivity(plant, controller)
    omega = np.geomspace(0.1, 10.0, 20)
    P, C = plant.frequency_response(omega), controller.frequency_response(omega)
    S = np.linalg.inv(np.eye(2) + P @ C)
    for name, expected in (("S", S), ("T", P @ C @ S), ("CS", C @ S), ("PS", S @ P)):
        assert_allclose(getattr(result, name).frequency_response(omega), expected, rtol=1e-9, atol=1e-11)
    single = plant.sensitivity(controller)
    assert single.S == result.S


def test_sensitivity_of_a_whole_loop() -> None:
    S, T, CS, PS = ltinet.sensitivity(ltinet.StateSpace(-1.0, 1.0, 4.0))
    assert_allclose(S.poles(), [-5.0])
    assert_allclose(S.dcgain() + T.dcgain(), [[1.0]])
    assert CS == S
    assert PS == T
    discrete = ltinet.StateSpace(0.5, 1.0, 0.2, dt=0.1)
    assert discrete.sensitivity().T.dt == 0.1


def test_sensitivities_of_discrete_loops_have_exact_delays() -> None:
    plant = ltinet.StateSpace([[0.9, 0.1], [0.0, 0.7]], np.eye(2), np.eye(2), dt=0.1, input_delay=[0.3, 0.0],
                              output_delay=[0.0, 0.2])  # fmt: skip
    controller = ltinet.StateSpace(0.5 * np.eye(2), np.eye(2), 0.1 * np.eye(2), dt=0.1, input_delay=[0.1, 0.0])
    result = ltinet.sensitivity(plant, controller)
    omega = np.linspace(0.1, 30.0, 20)
    P, C = plant.frequency_response(omega), controller.frequency_response(omega)
    S = np.linalg.inv(np.eye(2) + P @ C)
    for name, expected in (("S", S), ("T", P @ C @ S), ("CS", C @ S), ("PS", S @ P)):
        assert_allclose(getattr(result, name).frequency_response(omega), expected, rtol=1e-12, atol=1e-14)
    shifted = plant.with_signal_settings(u0=[1.0, 0.0])
    with pytest.raises(InvalidSystemError, match="operating point"):
        ltinet.sensitivity(shifted, controller)


def test_loops_that_cannot_be_closed_are_refused() -> None:
    with pytest.raises(InvalidSystemError, match="not well-posed"):
        ltinet.sensitivity(ltinet.StateSpace(-1.0, 1.0, 1.0, -1.0))
    with pytest.raises(InvalidSystemError, match=r"ltinet\.pade"):
        ltinet.sensitivity(ltinet.StateSpace(-1.0, 1.0, 1.0, input_delay=0.1))
    with pytest.raises(InvalidSystemError, match="the plant has 1 inputs"):
        ltinet.sensitivity(ltinet.StateSpace(-1.0, 1.0, 1.0), ltinet.StateSpace(0.5, 1.0, 1.0, dt=0.1))
    with pytest.raises(InvalidSystemError, match="infinitely many unstable poles"):
        ltinet.nyquist(ltinet.StateSpace(-1.0, 1.0, 1.0, 2.0, input_delay=0.1))
    with pytest.raises(InvalidSystemError, match="as many outputs as inputs"):
        ltinet.nyquist(ltinet.StateSpace(-1.0, [[1.0, 1.0]], 1.0))


def test_nyquist_results_print_and_draw() -> None:
    result = ltinet.nyquist(([2.0], [1.0, 3.0, 2.0]))
    assert "closed loop stable" in str(result)
    assert_allclose(result.response[:, 0, 0], 2.0 / ((1j * result.omega + 1) * (1j * result.omega + 2)), rtol=1e-12)
    pytest.importorskip("matplotlib")
    assert result.plot().axes[0].get_xlabel() == "real part"


def test_sensitivities_have_the_names_of_the_plant():
    plant = ltinet.tf([1], [1, 1], inputs="valve", outputs="level")
    S, T, CS, PS = plant.sensitivity(ltinet.pid(2.0))
    names = [(*system.input_names, *system.output_names) for system in (S, T, CS, PS)]
    assert names == [("level", "level"), ("level", "level"), ("level", "valve"), ("valve", "level")]


def test_nyquist_plots_of_several_loops_draw_the_determinant():
    diagonal = ltinet.append(ltinet.tf([4], [1, 3, 3, 1]), ltinet.tf([2], [1, 1]))
    result = ltinet.nyquist(diagonal)
    axes = result.plot().axes[0]
    one, two = (4.0 / (1j * result.omega + 1.0) ** 3, 2.0 / (1j * result.omega + 1.0))
    exact = (1.0 + one) * (1.0 + two) - 1.0
    drawn = axes.lines[0].get_xdata() + 1j * axes.lines[0].get_ydata()
    shown = np.isfinite(drawn)
    assert shown.sum() > 10
    np.testing.assert_allclose(drawn[shown], exact[shown], rtol=0.0, atol=1e-12 * np.abs(exact).max())
    assert axes.get_title().startswith("det(I + L) − 1")
