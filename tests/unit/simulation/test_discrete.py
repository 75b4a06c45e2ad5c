"""Simulation in discrete time against the recurrence x[k+1] = A x[k] + B u[k] in ball arithmetic."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import mpmath
import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray
from scipy import signal

import ltinet
from discrete_oracle import recurrence as bits_recurrence
from discrete_oracle import sampled_data_sets
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.network.realization import descriptor_form
from ltinet.simulation.discrete_step import eigenvalue_powers

Array = NDArray[np.float64]
BITS = 4000  # balls widen as powers of |A|
STEPS = 400


def recurrence(system: ltinet.StateSpace, u: Array, x0: Array | None = None) -> Array:
    """Outputs `(T, p)` of the recurrence in balls, rounded once to double precision."""
    before, ctx.prec = ctx.prec, BITS
    try:
        A, B, C, D = (_exact(matrix) for matrix in (system.A, system.B, system.C, system.D))
        x = _exact(np.zeros((system.n_states, 1)) if x0 is None else x0[:, None])
        rows = []
        for sample in u:
            v = _exact(sample[:, None])
            y = C * x + D * v
            assert all(y[i, 0].rad() < 1e-40 + 1e-40 * abs(y[i, 0].mid()) for i in range(y.nrows()))
            rows.append([float(y[i, 0].mid()) for i in range(y.nrows())])
            x = A * x + B * v
        return np.array(rows)
    finally:
        ctx.prec = before


def _exact(matrix: Array) -> arb_mat:
    return arb_mat(*matrix.shape, [arb(float(entry)) for entry in matrix.ravel()])


def _random(rng: np.random.Generator, poles: list[complex], *, m: int = 2, p: int = 2) -> ltinet.StateSpace:
    """A system with given poles (one of each pair) in random states."""
    blocks = [[[z.real, z.imag], [-z.imag, z.real]] if z.imag else [[z.real]] for z in map(complex, poles)]
    n = sum(len(block) for block in blocks)
    A, start = np.zeros((n, n)), 0
    for block in blocks:
        A[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    T = np.eye(n) + 0.5 * rng.standard_normal((n, n)) / np.sqrt(n)
    parts = (rng.standard_normal(shape) for shape in ((n, m), (p, n), (p, m)))
    B, C, D = parts
    return ltinet.StateSpace(T @ A @ np.linalg.inv(T), B, C, D, dt=0.1)


def stable(rng: np.random.Generator) -> ltinet.StateSpace:
    return _random(rng, [0.99, 0.5, 0.9 + 0.3j, 0.1 + 0.2j])


def integrators(rng: np.random.Generator) -> ltinet.StateSpace:
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
    parts = (rng.standard_normal(shape) for shape in ((3, 1), (2, 3)))
    return ltinet.StateSpace(A, *parts, dt=0.1)


def negative_poles(rng: np.random.Generator) -> ltinet.StateSpace:
    return _random(rng, [-0.99, -0.5, -0.9 + 0.3j, -1.0])


def deadbeat(rng: np.random.Generator) -> ltinet.StateSpace:
    A = np.diag(np.ones(4), 1)  # a shift register of five samples
    return ltinet.StateSpace(A, np.eye(5)[:, 4:], rng.standard_normal((1, 5)), dt=0.1)


def defective(rng: np.random.Generator) -> ltinet.StateSpace:
    A = 0.9 * np.eye(4) + np.diag([1.0, 1.0, 0.0], 1)
    return ltinet.StateSpace(A, rng.standard_normal((4, 2)), rng.standard_normal((3, 4)), dt=0.1)


def slowly_growing(rng: np.random.Generator) -> ltinet.StateSpace:
    return _random(rng, [1.01, -1.005, 0.99 + 0.2j, 0.3])


def many_channels(rng: np.random.Generator) -> ltinet.StateSpace:
    return _random(rng, [0.97, 0.2 + 0.9j, -0.6, 0.0], m=5, p=6)


FAMILIES = (stable, integrators, negative_poles, deadbeat, defective, slowly_growing, many_channels)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("with_state", [False, True])
def test_outputs_equal_the_recurrence_and_bounds_hold(
    family: Callable[[np.random.Generator], ltinet.StateSpace], with_state: bool
) -> None:
    rng = np.random.default_rng(FAMILIES.index(family))
    system = family(rng)
    u = rng.standard_normal((STEPS, system.n_inputs))
    x0 = rng.standard_normal(system.n_states) if with_state else None
    exact = recurrence(system, u, x0)
    peak = np.abs(exact).max(axis=0)
    net = ltinet.construct(system)
    for solution in (system.simulate(u, x0=x0), net.simulate(u, STEPS, x0=x0, coordinates="original")):
        assert (np.abs(solution.y - exact) <= 1e-12 * peak).all()
    blocks = net.simulate(u, x0=x0, coordinates="blocks")
    # Rounding of T, T⁻¹ and of eigenvalues, over all steps: a growing mode amplifies that of its eigenvalue by T.
    assert net.form is not None
    assert (np.abs(blocks.y - exact) <= STEPS * net.form.condition_raw * 1e-15 * peak).all()
    for solution in (system.simulate(u, x0=x0), blocks):
        error, t = np.abs(solution.y - exact), solution.t
        assert (error <= solution.error_bound(t)).all()
        assert (error <= solution.error_bound()).all()
        assert (solution.error_bound() <= 1e-6 * peak + 1e-12).all()


@pytest.mark.parametrize("coordinates", ["original", "blocks"])
def test_bounds_are_close_to_errors(data_dir: Path, coordinates: Literal["original", "blocks"]) -> None:
    systems = sampled_data_sets(data_dir, ["drum_boiler", "lf10_beam_descriptor", "mr_demo"])
    for name, system in systems.items():
        u = np.random.default_rng(3).uniform(-1.0, 1.0, (100, system.n_inputs))
        exact = bits_recurrence(system, u)
        solution = ltinet.construct(system).simulate(u, coordinates=coordinates)
        error = np.abs(solution.y - exact)
        assert (error <= solution.error_bound(solution.t)).all(), name
        assert (
            solution.error_bound() <= 10.0 * error.max(axis=0) + 4.0 * np.spacing(np.abs(exact).max(axis=0))
        ).all(), name


def test_bound_shows_another_system() -> None:
    """The bound of a run is that of its own outputs: outputs that are off by more than rounding have a larger one."""
    rng = np.random.default_rng(5)
    system = stable(rng)
    u = rng.standard_normal((STEPS, 2))
    solution = system.simulate(u)
    trajectory = solution.trajectory
    shifted = type(trajectory)(
        trajectory.core, trajectory.core_outputs + 1e-3, trajectory.given, trajectory.t, trajectory.dt, trajectory.settings
    )  # fmt: skip
    assert (shifted.error_bound(0.0, 1.0).overall()["rounding"] >= 1e-3).all()
    assert (solution.error_bound() < 1e-9).all()


def test_descriptor_systems_are_bounded_for_their_own_matrices() -> None:
    rng = np.random.default_rng(8)
    E, A = rng.standard_normal((2, 4, 4))
    A *= 0.9 / np.abs(np.linalg.eigvals(np.linalg.solve(E, A))).max()
    B, C = rng.standard_normal((4, 1)), rng.standard_normal((1, 4))
    u = rng.standard_normal((100, 1))
    solution = ltinet.StateSpace(A, B, C, E=E, dt=0.1).simulate(u)
    before, ctx.prec = ctx.prec, BITS
    try:
        inverse = _exact(E).inv()
        A_exact, B_exact, x, exact = inverse * _exact(A), inverse * _exact(B), _exact(np.zeros((4, 1))), []
        for sample in u:
            exact.append(float((_exact(C) * x)[0, 0].mid()))
            x = A_exact * x + B_exact * _exact(sample[:, None])
    finally:
        ctx.prec = before
    error = np.abs(solution.y[:, 0] - exact)
    assert (error <= solution.error_bound(solution.t)[:, 0]).all()
    assert solution.error_bound()[0] < 1e-9 * np.abs(exact).max()


def test_many_states_run_in_their_own_coordinates() -> None:
    rng = np.random.default_rng(2)
    system = _random(rng, list(rng.uniform(-0.99, 0.99, 160)), m=1, p=1)
    u = rng.standard_normal((300, 1))
    solution = system.simulate(u)
    _, y, x = signal.dlsim((system.A, system.B, system.C, system.D, 0.1), u)
    assert solution.stats["coordinates"] == "original"
    bound = solution.error_bound(solution.t) + 1e-10 * np.abs(y).max()
    assert (np.abs(solution.y - y) <= bound).all()
    assert np.allclose(solution.states, x, rtol=0, atol=1e-9 * np.abs(x).max())


def test_long_run_by_convolution_equals_single_steps() -> None:
    rng = np.random.default_rng(3)
    A = 0.995 * np.linalg.qr(rng.standard_normal((60, 60)))[0]
    system = ltinet.StateSpace(A, rng.standard_normal((60, 1)), rng.standard_normal((1, 60)), dt=1.0)
    u = rng.standard_normal((20_000, 1))
    solution = system.simulate(u)
    assert solution.stats["algorithm"] == "convolution"
    _, y, _ = signal.dlsim((system.A, system.B, system.C, system.D, 1.0), u)
    assert np.abs(solution.y - y).max() <= 1e-11 * np.abs(y).max()


def test_convolution_keeps_digits_where_powers_are_large() -> None:
    """A chain with large couplings: powers of A have norms above 1e6, the Markov parameters are of the size of one."""
    n = 40
    A = np.diag(np.full(n, 0.5)) + np.diag(np.full(n - 1, 1.5), 1)
    B, C = np.zeros((n, 1)), np.zeros((1, n))
    B[n // 8], C[0, 0] = 1.0, 1.0
    system = ltinet.StateSpace(A, B, C, dt=1.0)
    u = np.random.default_rng(4).standard_normal((20_000, 1))
    _, y, _ = signal.dlsim((A, B, C, np.zeros((1, 1)), 1.0), u)
    assert np.abs(system.simulate(u).y - y).max() <= 1e-12 * np.abs(y).max()


def test_eigenvalue_powers_are_rounded_once() -> None:
    before, ctx.prec = ctx.prec, 20_000
    try:
        values = np.array([0.999 + 0.04j, -0.9 + 0j, 0j, 1.0001 + 0j])
        counts = np.array([0, 1, 7, 1000, 16_384])
        powers = eigenvalue_powers(values, counts)
        for row, count in zip(powers, counts.tolist(), strict=True):
            for value, power in zip(values, row, strict=True):
                exact = _complex_power(value, count)
                assert abs(power - exact) <= 4e-16 * abs(exact)
    finally:
        ctx.prec = before
    assert np.isinf(np.abs(eigenvalue_powers(np.array([2.0 + 0j]), np.array([2000])))).all()


def _complex_power(value: complex, count: int) -> complex:
    x, y = arb(1), arb(0)
    a, b = arb(value.real), arb(value.imag)
    for bit in bin(count)[2:]:
        x, y = x * x - y * y, 2 * x * y
        if bit == "1":
            x, y = x * a - y * b, x * b + y * a
    return complex(float(x.mid()), float(y.mid()))


def _small() -> ltinet.StateSpace:
    return ltinet.StateSpace([[0.5, 0.1], [0.0, -0.4]], [[1.0], [2.0]], [[1.0, 1.0]], [[0.25]], dt=0.1)


def test_times_are_a_number_of_samples_or_multiples_of_dt() -> None:
    system, u = _small(), np.sin(np.arange(30.0))
    expected = system.simulate(u).y
    assert expected.shape == (30, 1)
    for t in (30, np.arange(30) * 0.1, np.linspace(0.0, 2.9, 30), 5.0 + np.arange(30) * 0.1, 1e5 + np.arange(30) * 0.1):
        solution = system.simulate(u, t)
        assert np.array_equal(solution.y, expected)
    assert np.array_equal(system.simulate(u, 30).t, 0.1 * np.arange(30))
    sampled = system.simulate(lambda t: np.sin(10.0 * t), [0.0, 0.7, 2.9])
    assert np.allclose(sampled.y, expected[[0, 7, 29]], rtol=1e-12)


def test_functions_dictionaries_and_batches_are_sampled() -> None:
    rng = np.random.default_rng(6)
    system = ltinet.StateSpace(0.5 * np.eye(2), np.eye(2), np.eye(2), dt=0.5, inputs=["a", "b"])
    u = rng.standard_normal((3, 20, 2))
    y = system.simulate(u).y
    for index in range(3):
        assert np.allclose(y[index], system.simulate({"a": u[index, :, 0], "b": u[index, :, 1]}, 20).y, rtol=1e-14)
    function = system.simulate({"a": np.cos, "b": 2.0}, 20)
    t = 0.5 * np.arange(20)
    assert np.allclose(function.y, system.simulate(np.column_stack([np.cos(t), np.full(20, 2.0)])).y, rtol=1e-14)
    assert not system.simulate(None, 20).y.any()


def test_values_exist_at_samples_only() -> None:
    solution = _small().simulate(np.ones(10))
    assert np.array_equal(solution([0.3, 0.5]), solution.y[[3, 5]])
    assert solution(0.3).shape == (1,)
    with pytest.raises(InvalidSignalError, match=r"multiples of the time step dt = 0\.1"):
        solution([0.35])


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([0.0, 0.15], r"times must be multiples of the time step dt = 0\.1"),
        ([0.0, 0.0], "twice"),
        ([0.0, 0.3], "must contain every sample"),
        (0, "at least 1"),
        (2.5, "number of samples"),
    ],
)
def test_other_times_are_refused(t: object, message: str) -> None:
    with pytest.raises(InvalidSignalError, match=message):
        _small().simulate(np.ones(2), t)


def test_options_of_continuous_time_are_refused() -> None:
    system, u = _small(), np.ones(5)
    net = ltinet.construct(system)
    with pytest.raises(InvalidSignalError, match="discrete time"):
        system.simulate(u, hold="linear")
    with pytest.raises(SimulationError, match="differential equations"):
        net.simulate(u, engine="per_neuron")
    with pytest.raises(SimulationError, match="input_tolerance"):
        net.simulate(u, input_tolerance=1e-3)
    with pytest.raises(InvalidSignalError, match="t is missing"):
        system.simulate(np.sin)
    with pytest.raises(InvalidSignalError, match="continuous time needs times"):
        ltinet.named_system("heat_rod", n_states=3).simulate(u)


def test_delays_of_whole_samples_and_operating_point() -> None:
    rng = np.random.default_rng(7)
    core = stable(rng)
    model = core.with_signal_settings(input_delay=[0.2, 0.0], output_delay=[0.0, 0.3], u0=[1.0, -2.0], y0=[10.0, 0.1])
    u = rng.standard_normal((STEPS, 2))
    v = u - model.u0
    v[:, 0] = np.concatenate([np.zeros(2), v[:-2, 0]])
    w = recurrence(core, v)
    w[:, 1] = np.concatenate([np.zeros(3), w[:-3, 1]])
    for result in (model.simulate(u), ltinet.construct(model).simulate(u)):
        error = np.abs(result.y - (w + model.y0))
        assert (error <= 1e-12 * np.abs(w).max(axis=0)).all()
        assert (error <= result.error_bound(result.t)).all()
    assert np.allclose(model.simulate(None, 50).y, model.y0, rtol=0, atol=0)


def test_growing_outputs_end_with_the_time_of_overflow() -> None:
    system = ltinet.StateSpace([[10.0]], [[1.0]], [[1.0]], dt=0.5)
    with pytest.raises(SimulationError, match=r"overflows at t = 15"):
        system.simulate(np.ones(1000))


def test_network_keeps_its_time_step(tmp_path: Path) -> None:
    system = stable(np.random.default_rng(9))
    net = ltinet.construct(system)
    assert net.dt == system.dt == 0.1
    assert "dt=0.1" in repr(net)
    assert "0.1, discrete in time" in str(net)
    assert np.allclose(np.sort_complex(net.poles()), np.sort_complex(system.poles()), rtol=0, atol=1e-13)
    omega = np.linspace(0.0, np.pi / 0.1, 9)
    assert np.allclose(net.frequency_response(omega), system.frequency_response(omega), rtol=1e-11, atol=1e-12)
    assert np.allclose(net.to_state_space().frequency_response(omega), system.frequency_response(omega), atol=1e-11)
    net.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    u = np.random.default_rng(0).standard_normal((50, 2))
    assert loaded == net
    assert loaded.dt == 0.1
    assert loaded.system == system
    assert np.array_equal(loaded.simulate(u).y, net.simulate(u).y)


def network_outputs(net: ltinet.DynamicNetwork, u: Array) -> Array:
    """Outputs of the neurons M ξ[k+2] + C ξ[k+1] + K ξ[k] = E u[k] + V u[k+1], by 60 digits."""
    network = net._context.network  # parameters as they are
    form = descriptor_form(network)
    with mpmath.workdps(60):
        E, A, B, V = (mpmath.matrix(part.tolist()) for part in form)
        inverse = E**-1
        J = inverse * V
        z, outputs = mpmath.zeros(len(form.E), 1), []
        for sample in u:
            now = mpmath.matrix(sample.tolist())
            states = z + J * now
            y = mpmath.matrix(network.output_weights.tolist()) * states + mpmath.matrix(network.Psi.tolist()) * now
            outputs.append([float(value) for value in y])
            z = inverse * (A * states + B * now)
    return np.array(outputs)


def test_network_of_parameters_in_discrete_time(tmp_path: Path) -> None:
    system = stable(np.random.default_rng(10))
    net = ltinet.construct(system)
    bare = ltinet.DynamicNetwork.from_parameters(net.parameters, dt=0.1)
    assert bare != ltinet.DynamicNetwork.from_parameters(net.parameters)
    u = np.random.default_rng(1).standard_normal((100, 2))
    solution = bare.simulate(u)
    assert np.allclose(solution.y, net.simulate(u).y, rtol=0.0, atol=1e-12)  # parameters are rounded
    assert (np.abs(solution.y - network_outputs(bare, u)) <= solution.error_bound(solution.t)).all()
    assert solution.error_bound().max() < 1e-12
    bare.save(tmp_path / "bare.safetensors")
    assert ltinet.load(tmp_path / "bare.safetensors") == bare


def test_neurons_are_difference_equations() -> None:
    """ξ of a second-order neuron, one sample later, is the ξ̇ of its own equation."""
    system = ltinet.StateSpace([[0.9, 0.3], [-0.3, 0.9]], [[0.0], [1.0]], [[1.0, 0.0]], dt=0.1)
    net = ltinet.construct(system)
    assert (net.n_first_order, net.n_second_order) == (0, 1)
    states = net.simulate(np.random.default_rng(2).standard_normal(40)).neuron_states
    assert np.allclose(states[1:, 0], states[:-1, 1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_stepper_equals_the_recurrence(family: Callable[[np.random.Generator], ltinet.StateSpace]) -> None:
    rng = np.random.default_rng(20 + FAMILIES.index(family))
    system = family(rng)
    u, x0 = rng.standard_normal((STEPS, system.n_inputs)), rng.standard_normal(system.n_states)
    exact = recurrence(system, u, x0)
    net = ltinet.construct(system)
    one_by_one = net.stepper(x0=x0)
    single = np.array([one_by_one.step(sample) for sample in u[:100]])
    in_chunks = net.stepper(0.1, x0=x0)
    chunks = np.concatenate(list(in_chunks.run([u[:7], u[7:300], u[300:]])))
    peak = np.abs(exact).max(axis=0)
    assert (np.abs(single - exact[:100]) <= 1e-13 * np.abs(exact[:100]).max(axis=0)).all()
    assert (np.abs(chunks - exact) <= 1e-12 * peak).all()
    resumed = net.stepper()
    resumed.restore(one_by_one.state())
    assert (np.abs(resumed.step(u[100]) - exact[100]) <= 1e-12 * peak).all()


def test_stepper_with_delays_equals_simulate() -> None:
    rng = np.random.default_rng(7)
    model = stable(rng).with_signal_settings(
        input_delay=[0.3, 0.0], output_delay=[0.1, 0.6], u0=[1.0, -2.0], y0=[10.0, 0.1]
    )
    net, u = ltinet.construct(model), rng.standard_normal((200, 2))
    y = net.simulate(u).y
    stepper = net.stepper()
    single = np.array([stepper.step(sample) for sample in u])
    assert np.allclose(single, y, rtol=0, atol=1e-12)
    assert np.allclose(np.concatenate(list(net.simulate_stream([u[:9], u[9:]]))), y, rtol=0, atol=1e-12)


def test_another_time_step_is_refused() -> None:
    net = ltinet.construct(_small())
    with pytest.raises(InvalidSignalError, match=r"dt must be the time step 0\.1 of the model"):
        net.stepper(0.2)
    with pytest.raises(InvalidSignalError, match="discrete time"):
        net.stepper(hold="linear")
    with pytest.raises(InvalidSignalError, match="dt is missing"):
        ltinet.construct(ltinet.named_system("heat_rod", n_states=3)).stepper()


def test_fit_of_a_record() -> None:
    rng = np.random.default_rng(3)
    model = stable(rng).with_signal_settings(input_delay=[0.2, 0.0], output_delay=[0.1, 0.0], u0=[1.0, 0.0])
    u, x0 = rng.standard_normal((300, 2)), rng.standard_normal(6)
    y = model.simulate(u, x0=x0).y
    assert np.allclose(model.fit(u, y), 100.0, atol=1e-6)
    assert np.allclose(ltinet.construct(model).fit(u[5:], y[5:]), 100.0, atol=1e-6)
    assert (model.fit(u, y, from_rest=True) < 99.9).any()


def test_what_needs_continuous_time_says_so() -> None:
    net = ltinet.construct(_small())
    calls: list[Callable[[], object]] = [
        lambda: net.certificate(horizon=1.0),
        lambda: ltinet.tolerances_for(net, 1e-6, u=np.ones(5), t=0.1 * np.arange(5)),
        lambda: net.to_torch(0.1),
    ]
    for call in calls:
        with pytest.raises(ltinet.InvalidSystemError, match=r"discrete in time .* convert it first: .*to_continuous"):
            call()
