"""Operators, series, parallel, feedback and LFT: values, names, delays, operating points, time steps, refusals."""

import control
import numpy as np
import pytest
from scipy import signal

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSystemError

POINTS = np.array([0.3j, 1.7j, 0.4 + 0.9j, 2.0])
# Systems of a few states with entries of order one, evaluated away from their poles: errors of some hundred roundings.
CLOSE = 1e4 * EPS


def random_system(n, p, m, seed, **options):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) - 2.0 * np.eye(n)
    parts = A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    return ltinet.StateSpace(*parts, **options)


SISO, OTHER = random_system(3, 1, 1, 1), random_system(2, 1, 1, 2)
SQUARE, WIDE, TALL = random_system(3, 2, 2, 3), random_system(2, 2, 3, 4), random_system(4, 3, 2, 5)


def values(system):
    H = np.asarray(system(POINTS))
    return H.reshape(len(POINTS), *H.shape[1:])


def assert_close(system, expected):
    scale = np.abs(expected).max()
    assert np.abs(values(system) - expected).max() <= CLOSE * max(scale, 1.0)


def test_operators_are_those_of_transfer_matrices():
    a, b, c, d = values(SISO), values(OTHER), values(SQUARE), values(WIDE)
    assert_close(SISO + OTHER, a + b)
    assert_close(SISO - OTHER, a - b)
    assert_close(SISO * OTHER, a * b)
    assert_close(SQUARE * WIDE, c @ d)
    assert_close(SQUARE @ WIDE, c @ d)
    assert_close(-SQUARE, -c)
    assert_close(+SQUARE, c)
    assert_close(2 * SQUARE, 2 * c)
    assert_close(SQUARE / 4, c / 4)
    assert_close(1 + SQUARE, 1 + c)
    assert_close(3 - SQUARE, 3 - c)
    assert_close(SQUARE**3, c @ c @ c)
    assert_close(SQUARE**0, np.broadcast_to(np.eye(2), c.shape))
    assert_close(SQUARE**-1, np.linalg.inv(c))
    assert_close(1 / SISO, 1 / a)
    assert_close(OTHER / SISO, b / a)


def test_systems_with_one_channel_apply_to_every_channel():
    a, c = values(SISO), values(SQUARE)
    assert_close(SISO * SQUARE, a * c)
    assert_close(SQUARE * SISO, a * c)
    assert_close(SISO + SQUARE, a + c)
    assert_close(SQUARE - SISO, c - a)


def test_numpy_numbers_keep_improper_functions_and_other_functions_of_numpy_are_refused():
    s = ltinet.tf("s")
    assert np.float64(2.0) * s == 2.0 * s
    assert np.float64(2.0) / (s + 1.0) == 2.0 / (s + 1.0)
    assert np.float64(2.0) - s == 2.0 - s
    gain = np.array([[2.0]])
    assert not np.any(gain == SISO)
    gain *= SISO
    np.testing.assert_allclose(gain(POINTS), 2.0 * SISO(POINTS), rtol=1e-13)
    for call in (lambda: np.abs(SISO), lambda: np.add.reduce(SISO), lambda: np.multiply(SISO, 2.0, out=np.ones(1))):
        with pytest.raises(TypeError, match="is not defined for systems"):
            call()


def test_arrays_are_static_gains_on_both_sides():
    gain, c = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), values(SQUARE)
    assert_close(gain * SQUARE, gain @ c)
    assert_close(gain @ SQUARE, gain @ c)
    assert_close(SQUARE * gain.T, c @ gain.T)
    assert_close(np.ones((2, 2)) - SQUARE, 1.0 - c)
    assert_close(np.float64(2.0) * SQUARE, 2.0 * c)
    assert_close(SQUARE / np.float64(2.0), c / 2.0)


@pytest.mark.parametrize(
    "other",
    [
        signal.lti([1.0, 3.0], [1.0, 2.0]),
        signal.ZerosPolesGain([-3.0], [-2.0], 1.0),
        control.tf([1.0, 3.0], [1.0, 2.0]),
        control.ss([[-2.0]], [[1.0]], [[1.0]], [[1.0]]),
        ([1.0, 3.0], [1.0, 2.0]),
        ltinet.construct(([1.0, 3.0], [1.0, 2.0])),
        ltinet.tf([1.0, 3.0], [1.0, 2.0]).tf(),
    ],
    ids=lambda other: type(other).__name__,
)
def test_operands_of_other_libraries_on_both_sides(other):
    expected = (POINTS + 3.0) / (POINTS + 2.0)
    a = values(SISO)[:, 0, 0]
    for result, value in (
        (SISO + other, a + expected),
        (other + SISO, a + expected),
        (SISO * other, a * expected),
        (other * SISO, a * expected),
        (other - SISO, expected - a),
        (ltinet.feedback(SISO, other), a / (1 + a * expected)),
    ):
        assert isinstance(result, ltinet.StateSpace)
        assert_close(result, value[:, None, None])


def test_second_order_models_are_operands():
    model = ltinet.SecondOrder(M=np.eye(2), D=0.1 * np.eye(2), K=2 * np.eye(2), B=[0.0, 1.0], C=[0.0, 1.0])
    expected = 1 / (POINTS**2 + 0.1 * POINTS + 2)
    assert_close(SISO * model, values(SISO) * expected[:, None, None])


def test_unknown_operands_are_left_to_python():
    for operate in (lambda: SISO + "text", lambda: None * SISO, lambda: SISO**1.5, lambda: SISO / object()):
        with pytest.raises(TypeError):
            operate()
    with pytest.raises(TypeError, match="not iterable"):
        iter(SISO)
    with pytest.raises(ZeroDivisionError):
        SISO / 0


def test_feedback_and_lft_are_their_formulas():
    c, w, t = values(SQUARE), values(WIDE), values(TALL)
    eye = np.eye(2)
    assert_close(ltinet.feedback(SQUARE), np.linalg.solve(eye + c, c))
    assert_close(ltinet.feedback(SQUARE, SISO, 1), np.linalg.solve(eye - c @ (values(SISO) * eye), c))
    assert_close(ltinet.feedback(WIDE, TALL, 1), np.linalg.solve(eye - w @ t, w))
    assert_close(SQUARE.feedback(), np.linalg.solve(eye + c, c))
    P, K = random_system(4, 3, 3, 8), random_system(2, 2, 1, 9)
    p, k = values(P), values(K)
    closed = p[:, :2, :1] + p[:, :2, 1:] @ k @ np.linalg.solve(1 - p[:, 2:, 1:] @ k, p[:, 2:, :1])
    assert_close(ltinet.lft(P, K), closed)
    partial = ltinet.lft(P, K, nu=1, ny=1)
    assert (partial.n_inputs, partial.n_outputs) == (2, 3)
    assert_close(partial[:2, :2], p[:, :2, :2] + p[:, :2, 2:] @ k[:, :1] @ p[:, 2:, :2] / (1 - p[:, 2:, 2:] @ k[:, :1]))


def test_channels_are_selected_by_number_name_slice_and_list():
    system = random_system(
        3, 3, 2, 11, inputs=["u", "v"], outputs=["a", "b", "c"], input_delay=[0.0, 0.5], y0=[1.0, 2.0, 3.0]
    )
    part = system["c", 1]
    assert (part.input_names, part.output_names) == (("v",), ("c",))
    assert part.input_delay == [0.5]
    assert part.y0 == [3.0]
    np.testing.assert_array_equal(system[[2, "a"], :].C, system.C[[2, 0]])
    np.testing.assert_array_equal(system[1:, -1].D, system.D[1:, 1:])
    assert system[[0, 0], 0].output_names == ("y1", "y2")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SQUARE["q", 0], r"no output 'q'; known are y1, y2"),
        (lambda: SQUARE[0, 2], r"no input 2; the system has 2 inputs"),
        (lambda: SQUARE[0], r"write system\[outputs, inputs\]"),
        (lambda: SQUARE[0, 1.5], r"inputs are selected by numbers"),
        (lambda: SQUARE * TALL, r"first of two has 3 outputs, the second 2 inputs"),
        (lambda: SQUARE + TALL, r"equal sizes, got 3×2 and 2×2"),
        (lambda: ltinet.feedback(SQUARE, TALL), r"must have 2 inputs and 2 outputs"),
        (lambda: ltinet.feedback(SISO, 1, 2), r"sign must be -1 or 1"),
        (lambda: ltinet.lft(SQUARE, SISO, nu=2), r"nu must be an integer between 0 and 1"),
        (lambda: TALL**2, r"as many inputs as outputs, the system has 2 and 3"),
        (lambda: 1 / TALL, r"has no inverse"),
        (lambda: 1 / ltinet.tf([1], [1, 1]), r"improper.*use ltinet.feedback"),
        (lambda: ltinet.series(), r"at least one system"),
        (lambda: SISO + ltinet.tf([1], [1, 0.5], 0.1), r"continuous time and dt = 0\.1.*to_discrete"),
        (lambda: ltinet.tf([1], [1, 0.5], 0.2) * ltinet.tf([1], [1, 0.5], 0.1), r"dt = 0\.1 and dt = 0\.2"),
        (lambda: SISO("text"), r"s must be"),
        (lambda: SISO(np.inf), r"s must be finite"),
        (lambda: ltinet.feedback("plant"), r"is text and not a system"),
    ],
)
def test_operands_that_do_not_fit_are_refused(call, message):
    with pytest.raises(InvalidSystemError, match=message):
        call()


def test_static_gains_fit_every_time_step():
    sampled = ltinet.tf([1], [1, 0.5], 0.1)
    assert (2 * sampled + 1).dt == 0.1
    assert ltinet.feedback(sampled, ltinet.ss([], [], [], 3.0)).dt == 0.1
    assert (sampled * ltinet.tf([1], [1, 0.2], 1 / 10)).dt == 0.1


def test_names_follow():
    plant = ltinet.tf([1], [1, 1], inputs=["valve"], outputs=["level"])
    pi = ltinet.pid(1, 1, inputs=["error"], outputs=["command"])
    assert (plant * pi).input_names == ("error",)
    assert (plant * pi).output_names == ("level",)
    assert ltinet.feedback(plant * pi).output_names == ("level",)
    assert ltinet.feedback(plant * pi).input_names == ("u1",)  # the set point, not the error
    assert ltinet.append(plant, pi).output_names == ("level", "command")
    assert ltinet.append(plant, plant).input_names == ("valve_1", "valve_2")
    assert (plant + 1).input_names == ("valve",)
    assert (-plant).output_names == ("level",)
    assert ltinet.lft(ltinet.append(plant, plant), 2.0).input_names == ("valve_1",)


# Algebraic loops


def test_ill_posed_loop_names_its_signals():
    gain = {"outputs": ["y"], "inputs": ["u"]}
    systems = {"plant": ltinet.ss([], [], [], -2.0, **gain), "sensor": ltinet.ss([], [], [], 0.5, **gain)}
    connections = [["plant.u", "-sensor.y"], ["sensor.u", "-plant.y"]]
    options = {"inplist": ["plant.u"], "outlist": ["plant.y"]}
    # −2·0.5·(−1)² = −1 is well-posed; with the sign of one connection changed it is 1.
    assert ltinet.interconnect(systems, connections, **options).D == -1.0
    connections[0][1] = "sensor.y"
    with pytest.raises(InvalidSystemError, match=r"algebraic loop through plant\.y, sensor\.y is ill-posed"):
        ltinet.interconnect(systems, connections, **options)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_do_not_decide_whether_a_loop_is_well_posed(scale):
    gain, inverse = ltinet.ss([], [], [], scale), ltinet.ss([], [], [], 1.0 / scale)
    assert ltinet.feedback(gain, inverse).D / scale == pytest.approx(0.5, rel=10 * EPS)
    with pytest.raises(InvalidSystemError, match="ill-posed"):
        ltinet.feedback(gain, inverse, 1)


# Delays

LAG, OTHER_LAG = ltinet.tf([2], [1, 1], input_delay=0.5), ltinet.tf([1], [1, 3], output_delay=0.25)


def test_delays_of_open_connections_stay_exact():
    chain = OTHER_LAG * LAG
    assert chain.input_delay + chain.output_delay == 0.75
    assert_close(chain, values(OTHER_LAG) * values(LAG))
    total = LAG + 3 * ltinet.tf([1], [1, 5], output_delay=0.5)
    assert total.input_delay == 0.5
    assert_close(total, values(LAG) + 3 * values(ltinet.tf([1], [1, 5], output_delay=0.5)))
    both = ltinet.append(LAG, OTHER_LAG)
    assert both.input_delay.tolist() == [0.5, 0.0]
    assert both.output_delay.tolist() == [0.0, 0.25]
    # A diagonal controller before a plant whose inputs have different delays: each channel has a lag of its own.
    plant = ltinet.append(LAG, ltinet.tf([1], [1, 2], input_delay=1.5))
    before = ltinet.append(SISO, OTHER)
    assert_close(plant * before, values(plant) @ values(before))
    tenths = ltinet.tf([1], [1, 1], input_delay=0.1) * ltinet.tf([1], [1, 2], input_delay=0.2)
    late = ltinet.tf([1], [1, 1], input_delay=0.3)  # not 0.1 + 0.2 in floating point
    assert_close(tenths + late, values(tenths) + values(late))


def test_delays_that_stay_inside_are_refused_with_the_remedy():
    for call in (
        lambda: ltinet.feedback(LAG),
        lambda: LAG + OTHER_LAG,
        lambda: SQUARE * ltinet.append(LAG, OTHER_LAG) * SQUARE,
        lambda: LAG + 1,
        lambda: ltinet.feedback(SISO, OTHER_LAG),
    ):
        with pytest.raises(InvalidSystemError, match=r"delay.*ltinet\.pade\(system, order\)"):
            call()


@pytest.mark.parametrize("steps", [(1, 0), (0, 2), (3, 2)])
def test_delays_in_discrete_loops_are_shift_registers(steps):
    dt = 0.1
    plant = ltinet.tf([1, 0.3], [1, -0.5, 0.1], dt, input_delay=steps[0] * dt, output_delay=steps[1] * dt)
    z = 1.1 + 0.7 * POINTS
    P = (z + 0.3) / (z**2 - 0.5 * z + 0.1) * z ** -sum(steps)
    loop = ltinet.feedback(plant, 0.4)
    assert loop.n_states == 2 + sum(steps)
    np.testing.assert_allclose(loop(z)[:, 0, 0], P / (1 + 0.4 * P), rtol=CLOSE)
    outside = ltinet.tf([1, 0.3], [1, -0.5, 0.1], dt, output_delay=2 * dt)
    total = ltinet.parallel(plant, outside)
    np.testing.assert_allclose(total(z)[:, 0, 0], P + outside(z)[:, 0, 0], rtol=CLOSE)


def test_delay_of_a_closed_loop_that_is_outside_stays_a_delay():
    dt = 0.1
    loop = ltinet.feedback(ltinet.tf([1], [1, -0.5], dt), 0.3)
    assert (loop * ltinet.tf([1], [1], dt, input_delay=4 * dt)).input_delay == pytest.approx(0.4)


def test_pade_replaces_delays_with_the_error_it_reports():
    rational = ltinet.pade(LAG, 3)
    assert rational.n_states == 4
    assert not rational.signal_settings.has_delays
    assert "order 3" in str(rational)
    omega = np.array([0.5, 2.0, 8.0, 30.0])
    errors = ltinet.pade_error(LAG, 3, omega=omega)[:, 0, 0]
    measured = np.abs(rational.frequency_response(omega) / LAG.frequency_response(omega) - 1.0)[:, 0, 0]
    # Below the first turn of the phase the error at omega is the largest up to omega.
    np.testing.assert_allclose(measured[:3], errors[:3], rtol=1e-6, atol=1e3 * EPS)
    assert errors[3] >= measured[3] - 1e-9
    assert np.all(np.diff(errors) >= 0.0)
    expected = values(rational) / (1 + values(rational))
    assert_close(ltinet.feedback(rational), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ltinet.pade(LAG, 0), r"integer between 1 and 20, got 0"),
        (lambda: ltinet.pade(ltinet.tf([1], [1, 0.5], 0.1), 2), r"shift registers"),
        (lambda: ltinet.pade_error(LAG, 2, omega=-1), r"frequencies ≥ 0"),
    ],
)
def test_invalid_approximants_are_refused(call, message):
    with pytest.raises(InvalidSystemError, match=message):
        call()


# Operating points


def test_operating_points_follow():
    plant = ltinet.tf([2], [1, 1]).with_signal_settings(u0=3.0, y0=20.0)
    sensor = ltinet.tf([1], [0.1, 1]).with_signal_settings(u0=20.0, y0=5.0)
    chain = sensor * plant
    assert chain.u0.tolist() == [3.0]
    assert chain.y0.tolist() == [5.0]
    loop = ltinet.feedback(plant, sensor)
    assert loop.u0.tolist() == [8.0]  # minus 5 is 3 at the input of the plant
    assert loop.y0.tolist() == [20.0]
    scaled = 2 * plant
    assert scaled.u0.tolist() == [3.0]
    assert scaled.y0.tolist() == [40.0]
    assert (plant + plant).y0.tolist() == [40.0]
    with pytest.raises(InvalidSystemError, match=r"operating points disagree: system 2 u1 has u0 = 0.*delivers? 20"):
        ltinet.series(plant, ltinet.tf([1], [1, 2]))


def test_hold_and_sample_time_are_kept_where_systems_agree():
    one = ltinet.tf([1], [1, 1]).with_signal_settings(hold="zero", sample_time=0.1)
    assert (one * SISO).hold == "zero"
    assert (one + one).sample_time == 0.1
    assert (one * one.with_signal_settings(hold="linear")).hold is None


# Networks


def networks():
    heat = ltinet.named_system("heat_rod", n_states=6)
    masses = ltinet.named_system("mass_spring_damper", n_masses=4)
    parts = [ltinet.StateSpace(s.A, s.B[:, :1], s.C[:1], s.D[:1, :1]) for s in (heat, masses)]
    return [ltinet.construct(part) for part in parts]


def test_sums_and_products_of_networks_reuse_their_blocks():
    one, two = networks()
    for net, expected in (
        (one + two, values(one) + values(two)),
        (one - two, values(one) - values(two)),
        (two * one, values(two) * values(one)),
        (ltinet.series(one, two), values(two) * values(one)),
    ):
        assert isinstance(net, ltinet.DynamicNetwork)
        assert net.form.decisions == ("the blocks of two networks were reused",)
        assert net.n_neurons == one.n_neurons + two.n_neurons
        assert net.form.residual < 1e-12
        np.testing.assert_allclose(net.form.T @ net.form.T_inv, np.eye(net.n_states), atol=1e-9)
        assert_close(net, expected)
        omega = np.array([0.2, 1.0, 5.0])
        np.testing.assert_allclose(
            net.frequency_response(omega), net.system.frequency_response(omega), rtol=1e-9, atol=1e-12
        )
        t = np.linspace(0.0, 3.0, 31)
        solution = net.simulate(np.sin(t), t, coordinates="blocks")
        direct = net.system.simulate(np.sin(t), t)
        assert np.all(np.abs(solution.y - direct.y) <= solution.error_bound() + direct.error_bound())


def test_networks_in_series_without_coupling_of_their_states():
    # The first system does not act on the states of the second: B₂ C₁ = 0, and the feedthroughs matter.
    first = ltinet.StateSpace(np.diag([-1.0, -2.0]), [[1.0], [2.0]], [[1.0, 1.0], [0.0, 0.0]], [[0.5], [3.0]])
    second = ltinet.StateSpace(np.diag([-3.0, -4.0]), [[0.0, 1.0], [0.0, 2.0]], [[1.0, 1.0]], [[2.0, 0.0]])
    net = ltinet.series(ltinet.construct(first), ltinet.construct(second))
    assert "reused" in net.form.decisions[0]
    assert_close(net, values(second) @ values(first))
    omega = np.array([0.3, 2.0])
    np.testing.assert_allclose(net.frequency_response(omega), net.system.frequency_response(omega), rtol=1e-12)


def test_networks_with_coupled_neurons_and_many_channels():
    first = random_system(9, 4, 5, 21)
    second = random_system(8, 6, 4, 22)
    second = ltinet.StateSpace(second.A - 9.0 * np.eye(8), second.B, second.C, second.D)
    one, two = (ltinet.construct(system, max_condition=8.0) for system in (first, second))
    net = ltinet.series(one, two)
    assert_close(net, values(second) @ values(first))
    omega = np.array([0.3, 2.0])
    np.testing.assert_allclose(
        net.frequency_response(omega), net.system.frequency_response(omega), rtol=1e-10, atol=1e-12
    )
    again = net + 2 * net
    np.testing.assert_allclose(
        again.frequency_response(omega), 3 * net.frequency_response(omega), rtol=1e-10, atol=1e-12
    )


def test_multiples_and_selections_of_networks_are_networks():
    one, _ = networks()
    for net, factor in ((2 * one, 2.0), (-one, -1.0), (one / 4, 0.25), (one[0, 0], 1.0)):
        assert isinstance(net, ltinet.DynamicNetwork)
        assert net.form.block_sizes == one.form.block_sizes
        assert_close(net, factor * values(one))


def test_equal_eigenvalues_of_networks_are_put_into_one_block():
    one, _ = networks()
    square = one**2
    assert isinstance(square, ltinet.DynamicNetwork)
    assert_close(square, values(one) ** 2)
    assert square.form.condition <= 1e4


def test_networks_without_systems_and_mixed_operands():
    one, two = networks()
    bare = ltinet.DynamicNetwork.from_parameters(one.parameters)
    assert_close(bare + two, values(one) + values(two))
    assert_close(2 * bare, 2 * values(one))
    assert isinstance(one * SISO, ltinet.StateSpace)
    assert isinstance(ltinet.feedback(one, two), ltinet.StateSpace)
    assert_close(ltinet.feedback(one, two), values(one) / (1 + values(one) * values(two)))


def test_reduction_errors_of_networks_are_added_or_unknown():
    one, two = networks()
    from dataclasses import replace

    reduced = replace(one, reduction_error=0.25)
    assert (reduced + replace(two, reduction_error=0.5)).reduction_error == 0.75
    assert (reduced + two).reduction_error == 0.25
    assert (-2 * reduced).reduction_error == 0.5
    assert (reduced * two).reduction_error == np.inf
    assert (one * two).reduction_error is None


def test_results_of_a_loop_with_an_approximated_delay_carry_its_note():
    plant = ltinet.tf([3.0], [20.0, 1.0], input_delay=4.0)
    loop = ltinet.feedback(ltinet.pade(plant, 4) * ltinet.pid(0.8, 0.04))
    t = np.linspace(0.0, 40.0, 401)
    sampled = loop.to_discrete(0.1)
    for solution in (
        loop.simulate(np.ones(401), t),
        loop.step_response(),
        loop.impulse_response(t),
        ltinet.construct(loop).simulate(np.ones(401), t),
        sampled.simulate(np.ones(401)),
        sampled.step_response(),
    ):
        assert sum("Padé approximants of order 4" in note for note in solution.notes) == 1
