"""Simulation of models with products against two independent references, with their error estimates and bounds."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

import ltinet
from ltinet.nonlinear.scipy_solvers import bandwidths
from ltinet.nonlinear.simulation import choose_method
from support.nonlinear_references import dop853_states, outputs, random_case, taylor_states

_REFERENCE = 2e-12  # error of DOP853 with a relative tolerance of 1e-13, relative to the peak


def run_case(seed, tol, **options):
    model, u, t, x0, hold = random_case(seed)
    arguments = {"p": u[:, model.n_inputs :]} if model.n_scheduling else {}
    net = ltinet.construct(model)
    return net.simulate(u[:, : model.n_inputs], t, x0=x0, hold=hold, tol=tol, **arguments, **options)


def reference(seed):
    model, u, t, x0, hold = random_case(seed)
    return outputs(model, dop853_states(model, u, t, x0, hold=hold), u)


@pytest.mark.default_cases(20)
@pytest.mark.parametrize("seed", range(300))
def test_error_is_within_the_tolerance_and_estimated(seed):
    tol = 1e-6
    solution, y = run_case(seed, tol), reference(seed)
    peak = np.abs(y).max(axis=0)
    error = np.abs(solution.y - y).max(axis=0)
    assert np.all(error <= 3.0 * tol * peak)
    visible = error > 10.0 * _REFERENCE * peak
    estimate = solution.error_estimate
    assert np.all(estimate[visible] >= 0.3 * error[visible])
    assert np.all(estimate[visible] <= 10.0 * error[visible])
    assert np.all(error <= solution.error_bound() + _REFERENCE * peak)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_both_references_agree(seed):
    model, u, t, x0, hold = random_case(seed, max_states=4)
    exact = taylor_states(model, u, t, x0, hold=hold)
    assert np.abs(dop853_states(model, u, t, x0, hold=hold) - exact).max() <= _REFERENCE * np.abs(exact).max()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", [3, 4, 9, 10])
def test_bound_of_exact_steps_contains_the_error(seed):
    model, u, t, x0, hold = random_case(seed, max_states=4)
    assert hold == "zero"
    net = ltinet.construct(model)
    p = u[:, model.n_inputs :] if model.n_scheduling else None
    solution = net.simulate(u[:, : model.n_inputs], t, p=p, x0=x0, hold=hold)
    assert solution.stats["method"] == "exact_steps"
    x = taylor_states(model, u, t, x0, hold=hold)
    exact = outputs(model, x, u)
    error, bound = np.abs(solution.y - exact), solution.error_bound()
    assert np.all(error.max(axis=0) <= bound)
    assert np.all(bound <= 1e-11 * np.abs(exact).max(axis=0))
    assert np.all(solution.error_bound(t[[2, 5]]) <= bound)


@pytest.mark.parametrize("method", ["collocation", "LSODA", "Radau", "DOP853"])
def test_all_methods_agree(method):
    tol = 1e-7
    solution = run_case(0, tol, method=method)
    y = reference(0)
    assert np.abs(solution.y - y).max() <= 3.0 * tol * np.abs(y).max()
    assert solution.stats["method"] == method


def test_smooth_input_and_dense_output():
    model, _, _, x0, _ = random_case(2)
    net = ltinet.construct(model)
    u = ltinet.FunctionSignal(lambda t: [np.sin(3.0 * t + k) for k in range(model.n_inputs)], n_inputs=model.n_inputs)
    t = np.linspace(0.0, 6.0, 7)
    coarse, fine = net.simulate(u, t, x0=x0), net.simulate(u, np.linspace(0.0, 6.0, 61), x0=x0)
    peak = np.abs(fine.y).max()
    assert np.abs(coarse(fine.t) - fine.y).max() <= 1e-12 * peak
    assert np.abs(fine.y[::10] - coarse.y).max() <= 1e-12 * peak
    again = net.simulate(u, fine.t, x0=x0, method="DOP853", tol=1e-10)
    assert np.abs(again.y - fine.y).max() <= 3e-8 * peak


def test_dense_output_of_exact_steps():
    model, u, t, x0, _ = random_case(0)
    net = ltinet.construct(model)
    solution = net.simulate(u, t, x0=x0, hold="zero")
    times = np.sort(np.append(0.5 * (t[1:] + t[:-1]), t[3]))
    other = net.simulate(u, t, x0=x0, hold="zero", method="collocation", tol=1e-10)
    assert np.abs(solution(times) - other(times)).max() <= 1e-10 * np.abs(solution.y).max()


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_batches_equal_single_runs(seed):
    model, u, t, x0, hold = random_case(seed)
    net, m = ltinet.construct(model), model.n_inputs
    scales = np.array([1.0, 0.5, -0.3])
    U, X = scales[:, None, None] * u[:, :m], np.stack([x0, 2.0 * x0, 0.0 * x0])
    p = {"p": u[:, m:]} if model.n_scheduling else {}
    batch = net.simulate(U, t, x0=X, hold=hold, **p)
    assert batch.y.shape == (3, len(t), 2)
    assert batch.states.shape == (3, len(t), model.n_states)
    for k in range(3):
        single = net.simulate(U[k], t, x0=X[k], hold=hold, **p)
        assert np.abs(batch.y[k] - single.y).max() <= 3e-8 * np.abs(single.y).max()
    assert batch.error_estimate.shape == (3, 2)
    ensemble = net.simulate(U[0], t, x0=X, hold=hold, **p)
    assert np.abs(ensemble.y[0] - batch.y[0]).max() <= 3e-8 * np.abs(batch.y[0]).max()


def test_batch_of_scheduling_signals():
    model, u, t, x0, hold = random_case(1)
    net, m = ltinet.construct(model), model.n_inputs
    P = np.stack([u[:, m:], -u[:, m:]])
    batch = net.simulate(u[:, :m], t, p=P, x0=x0, hold=hold)
    single = net.simulate(u[:, :m], t, p=P[1], x0=x0, hold=hold)
    assert np.abs(batch.y[1] - single.y).max() <= 3e-8 * np.abs(single.y).max()


def test_states_and_neuron_states():
    model, u, t, x0, hold = random_case(2)
    net = ltinet.construct(model)
    solution = net.simulate(u, t, x0=x0, hold=hold)
    assert np.allclose(solution.states[0], x0, rtol=1e-12, atol=1e-12)
    y = solution.neuron_states @ net.linear.network.output_weights.T + u @ net.linear.Psi.T
    assert np.allclose(y, solution.y, rtol=0.0, atol=1e-11 * np.abs(solution.y).max())


@pytest.mark.parametrize("method", ["collocation", pytest.param("Radau", marks=pytest.mark.slow)])
def test_blow_up_names_the_time(method):
    model = ltinet.QuadraticBilinear(-1.0, 1.0, 1.0, H=1.0)  # x' = −x + x², x(0) = 2: a pole at ln 2
    net = ltinet.construct(model)
    t = np.linspace(0.0, 2.0, 21)
    with pytest.raises(ltinet.SimulationError, match=r"near t = 0\.69"):
        net.simulate(np.zeros(21), t, x0=[2.0], method=method, tol=1e-3)


def test_overflow_of_exact_steps_names_the_time():
    net = ltinet.construct(ltinet.Bilinear(1.0, 1.0, 1.0, N=[[[1.0]]]))
    with pytest.raises(ltinet.SimulationError, match="overflow at t = 400"):
        net.simulate(np.ones(11), np.linspace(0.0, 1000.0, 11), x0=[1.0], hold="zero")


def test_stiff_products_are_handed_over():
    # Robertson's reactions: rates 0.04, 1e4 and 3e7.
    factors = (
        np.array([[1e4, 0], [-1e4, -3e7], [0, 3e7]]),
        np.array([[0, 1.0, 0]] * 2),
        np.array([[0, 0, 1.0], [0, 1, 0]]),
    )
    A = np.array([[-0.04, 0, 0], [0.04, 0, 0], [0, 0, 0]])
    model = ltinet.QuadraticBilinear(A, np.zeros((3, 1)), np.eye(3), H=factors)
    t = np.array([0.0, 0.4, 4.0, 40.0])
    solution = ltinet.construct(model).simulate(np.zeros(4), t, x0=[1.0, 0.0, 0.0], tol=1e-8)
    assert "LSODA" in solution.stats["method"]
    exact = [0.7158270688, 9.185534764557338e-06, 0.2841637457]  # Hairer and Wanner, Solving ODEs II, for t = 40
    assert np.abs(solution.y[-1] - exact).max() <= 3e-8
    assert np.all(solution.error_estimate <= 1e-7)
    assert np.allclose(solution([0.0, 0.2, 20.0]).sum(axis=1), 1.0, atol=1e-7)


def test_stepper_equals_simulation():
    for seed in (3, 4):
        model, u, _, x0, _ = random_case(seed)
        net, m = ltinet.construct(model), model.n_inputs
        p = u[:, m:] if model.n_scheduling else None
        t = 0.25 * np.arange(len(u))
        y = net.simulate(u[:, :m], t, p=p, x0=x0, hold="zero").y
        stepper = net.stepper(0.25, x0=x0)
        steps = [stepper.step(u[k, :m], None if p is None else p[k]) for k in range(len(u))]
        assert np.abs(np.array(steps) - y).max() <= 1e-13 * np.abs(y).max()


def test_delays_and_operating_point():
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[0.5]]], input_delay=0.5, u0=2.0, y0=3.0, hold="zero")
    t = np.linspace(0.0, 4.0, 41)
    u = 2.0 + np.sin(t)
    solution = ltinet.construct(model).simulate(u, t)
    plain = ltinet.construct(ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[0.5]]]))
    expected = plain.simulate(u - 2.0, t, hold="zero").y + 3.0
    assert np.allclose(solution.y[5:], expected[:-5], atol=1e-13)
    assert np.allclose(solution.y[:6], 3.0)


def test_input_errors():
    bilinear = ltinet.construct(ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[np.eye(2)]))
    lpv = ltinet.construct(ltinet.LPV(-np.eye(2), [1, 1], [1, 1], A_p=[np.eye(2)], scheduling=["speed"]))
    quadratic = ltinet.construct(ltinet.QuadraticBilinear(-1.0, 1.0, 1.0, H=1.0))
    t, u = np.linspace(0.0, 1.0, 5), np.zeros(5)
    faults = [
        (lambda: bilinear.simulate(u), "t is missing"),
        (lambda: bilinear.simulate(u, t, p=u), "no scheduling signals"),
        (lambda: lpv.simulate(u, t), "p is missing.*speed"),
        (lambda: lpv.simulate(u, t, p=np.zeros((5, 2))), "p has shape .*1 scheduling signal"),
        (lambda: bilinear.simulate(u, t, x0=np.zeros(3)), "x0 has shape"),
        (lambda: bilinear.simulate(u, t, x0=[np.nan, 0.0]), "not finite"),
        (lambda: bilinear.simulate(np.zeros((3, 5, 1)), t, x0=np.zeros((4, 2))), "do not fit"),
        (lambda: lpv.stepper(0.1).step(1.0), "p is missing"),
    ]
    for call, message in faults:
        with pytest.raises(ltinet.InvalidSignalError, match=message):
            call()
    with pytest.raises(ltinet.SimulationError, match="tol must be"):
        bilinear.simulate(u, t, tol=1e-15)
    with pytest.raises(ltinet.SimulationError, match="method must be one of"):
        bilinear.simulate(u, t, method="euler")
    with pytest.raises(ltinet.SimulationError, match="all held"):
        bilinear.simulate(u, t, method="exact_steps")
    with pytest.raises(ltinet.InvalidSystemError, match="products of two states"):
        quadratic.stepper(0.1)


def test_single_times_and_empty_batches():
    net = ltinet.construct(ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], D=2.0, N=[np.eye(2)]))
    assert net.simulate([3.0], [0.0], x0=[1.0, 2.0]).y.tolist() == [[9.0]]
    assert net.simulate([3.0, 4.0], [0.0, 0.0], x0=[1.0, 2.0]).y.tolist() == [[9.0], [11.0]]
    for hold in ("zero", "linear"):
        empty = net.simulate(np.zeros((0, 5, 1)), np.linspace(0.0, 1.0, 5), hold=hold)
        assert empty.y.shape == (0, 5, 1)
        assert empty.error_estimate.shape == empty.error_bound().shape == (0, 1)


def test_model_without_states():
    model = ltinet.LPV([], [], [], [[1.0]], D_p=[[[2.0]]])
    t = np.linspace(0.0, 1.0, 5)
    for method in (None, "collocation", "LSODA"):
        y = ltinet.construct(model).simulate(t, t, p=t, method=method).y[:, 0]
        assert np.allclose(y, t + 2.0 * t**2, rtol=1e-15)


def test_uneven_samples_need_few_steps():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0.0, 20.0, 200))
    net = ltinet.construct(ltinet.Bilinear([[-1.0, 1.0], [0.0, -3.0]], [1, 1], [1, 1], N=[[[0.0, 0.5], [0.3, 0.0]]]))
    solution = net.simulate(rng.normal(size=200), t, tol=1e-6)
    assert solution.stats["n_steps"] <= 300  # 199 distances of knots


def test_results_do_not_depend_on_the_units_of_the_input():
    model, u, t, _, hold = random_case(0)
    net = ltinet.construct(ltinet.Bilinear(model.A, model.B, model.C))
    tiny = net.simulate(2.0**-60 * u, t, hold=hold, method="collocation")
    assert np.array_equal(2.0**60 * tiny.y, net.simulate(u, t, hold=hold, method="collocation").y)


def test_networks_with_products_are_not_taken_for_linear_ones():
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]])
    for call in (ltinet.as_state_space, ltinet.construct):
        with pytest.raises(ltinet.InvalidSystemError, match="is not linear"):
            call(ltinet.construct(model))
    with pytest.raises(ltinet.InvalidSystemError, match="at most 3000 states"):
        ltinet.construct(ltinet.named_system("burgers", n_states=3001))


@pytest.mark.parametrize("damping", [0.02, 0.5])
def test_bound_of_a_long_switched_run_contains_the_error(damping):
    """Reference: exponentials of arb at 200 bits, of the matrices as they are given."""
    n_steps, rng = 400, np.random.default_rng(0)
    K = 2.0 * np.eye(3) - np.eye(3, k=1) - np.eye(3, k=-1)
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-9.0 * K, -damping * np.eye(3)]])
    A_p = np.zeros((6, 6))
    A_p[3:, :3] = -3.0 * np.eye(3)
    model = ltinet.LPV(A, np.eye(6)[:, 3], np.eye(6)[:2], A_p=[A_p])
    t, levels = np.arange(n_steps + 1) / 8.0, rng.uniform(-1.0, 1.0, (5, 2))
    w = levels[rng.integers(0, 5, n_steps + 1)]
    solution = ltinet.construct(model).simulate(w[:, 0], t, p=w[:, 1:], hold="zero")
    bits, ctx.prec = ctx.prec, 200
    try:
        steps = {}
        for u, p in levels.tolist():
            rows = [[arb(A[i, j]) + arb(p) * arb(A_p[i, j]) for j in range(6)] + [arb(u) * (i == 3)] for i in range(6)]
            steps[u] = (arb_mat([*rows, [0] * 7]) * arb(0.125)).exp()
        x, exact = arb_mat([[0]] * 6 + [[1]]), [np.zeros(2)]
        error = np.zeros((n_steps + 1, 2))
        for k in range(n_steps):
            x = (steps[w[k, 0]] * x).mid()  # otherwise radii, and with them midpoints, lose all bits
            error[k + 1] = [abs(float(x[i, 0].mid() - arb(solution.y[k + 1, i]))) for i in range(2)]
            exact.append(np.array([float(x[i, 0].mid()) for i in range(2)]))
    finally:
        ctx.prec = bits
    bound = solution.error_bound(t)
    assert np.all(error <= bound)
    assert error.max() > 0.0
    assert np.all(bound.max(axis=0) <= 1e6 * error.max(axis=0))
    assert np.all(bound.max(axis=0) <= 1e-8 * np.abs(exact).max(axis=0))


def test_small_members_of_a_batch_are_as_accurate_as_large_ones():
    model, u, t, _, hold = random_case(2)
    net = ltinet.construct(model)
    assert hold == "linear"
    batch = net.simulate(np.stack([u, 1e-6 * u]), t, tol=1e-5)
    exact = net.simulate(1e-6 * u, t, tol=1e-10)
    assert np.all(np.abs(batch.y[1] - exact.y).max(axis=0) <= 3e-5 * np.abs(exact.y).max(axis=0))


def test_scheduling_signals_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    A_p = [np.diag([-1.0, 0.0]), np.diag([0.0, -1.0])]
    net = ltinet.construct(ltinet.LPV(-np.eye(2), [1, 1], [1, 1], A_p=A_p, scheduling=["a", "b"]))
    t = np.linspace(0.0, 1.0, 11)
    expected = net.simulate(t, t, p=np.column_stack([t, 2.0 * t])).y
    assert np.array_equal(net.simulate(t, t, p=pandas.DataFrame({"b": 2.0 * t, "a": t})).y, expected)
    assert np.array_equal(net.simulate(t, t, p={"b": 2.0 * t, "a": t}).y, expected)
    table = ltinet.Table(t, np.column_stack([2.0 * t, t]), ("b", "a"), None, ())
    assert np.array_equal(net.simulate(t, t, p=table).y, expected)


@pytest.mark.parametrize(
    ("name", "parameters", "bands"),
    [
        ("burgers", {"n_states": 30}, (1, 1)),
        ("boundary_heat", {"points": 10}, (10, 10)),
        ("diode_ladder", {"nodes": 5}, None),
    ],
)
def test_bandwidths_are_those_of_the_jacobian(name, parameters, bands):
    model, rng = ltinet.named_system(name, **parameters), np.random.default_rng(0)
    rows, columns = np.nonzero(model.jacobian(rng.normal(size=model.n_states), rng.normal(size=model.n_inputs)))
    assert bandwidths(model) == bands
    if bands is not None:
        assert bands == ((rows - columns).max(), (columns - rows).max())


@pytest.mark.parametrize("n_states", [40, 260])  # dense and sparse equations
@pytest.mark.parametrize("method", ["LSODA", "BDF"])
def test_solvers_with_banded_and_sparse_jacobians(n_states, method):
    model = ltinet.named_system("burgers", n_states=n_states)
    t = np.linspace(0.0, 0.1, 3)
    net = ltinet.construct(model)
    expected = net.simulate(lambda t: np.sin(20.0 * t) ** 2, t, method="collocation", tol=1e-9).states
    solution = net.simulate(lambda t: np.sin(20.0 * t) ** 2, t, method=method, tol=1e-5)
    assert np.abs(solution.states - expected).max() <= 3e-5 * np.abs(expected).max()


def test_choice_of_the_method_for_large_models():
    banded = ltinet.named_system("burgers", n_states=501)
    assert choose_method(banded, largest_block=1, is_piecewise_constant=False) == "LSODA"
    lifted = ltinet.named_system("fitzhugh_nagumo", points=170)
    assert choose_method(lifted, largest_block=1, is_piecewise_constant=False) == "BDF"
