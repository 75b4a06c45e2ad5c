"""Models with products: validation, linearization and the product neurons of their networks."""

import numpy as np
import pytest
from scipy import sparse

import ltinet


def random_quadratic(n=5, m=2, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) - 4.0 * np.eye(n)
    H, N = rng.normal(size=(n, n * n)), [None, rng.normal(size=(n, n))]
    model = ltinet.QuadraticBilinear(A, rng.normal(size=(n, m)), rng.normal(size=(1, n)), H=H, N=N)
    return model, H, N, rng


def test_derivative_is_the_equation_of_the_class():
    model, H, N, rng = random_quadratic()
    x, u = rng.normal(size=5), rng.normal(size=2)
    expected = model.A @ x + model.B @ u + u[1] * (N[1] @ x) + H @ np.kron(x, x)
    assert np.allclose(model.derivative(x, u), expected, rtol=1e-13)


def test_quadratic_term_in_all_forms_is_the_same():
    model, H, _, rng = random_quadratic()
    x = rng.normal(size=5)
    symmetric = model.H.toarray().reshape(5, 5, 5)
    assert np.array_equal(symmetric, symmetric.transpose(0, 2, 1))
    assert np.allclose(model.H @ np.kron(x, x), H @ np.kron(x, x), rtol=1e-13)
    for form in (sparse.csr_array(H), sparse.csc_matrix(H), tuple(model.factors), model.H):
        other = ltinet.QuadraticBilinear(model.A, model.B, model.C, N=list(model.N), H=form)
        assert np.allclose(other.derivative(x), model.derivative(x), rtol=1e-12)


def test_jacobian_equals_central_differences():
    model, _, _, rng = random_quadratic()
    x, u = rng.normal(size=5), rng.normal(size=2)
    # Central differences of a quadratic function are exact but for rounding.
    steps = [(model.derivative(x + e, u) - model.derivative(x - e, u)) / 2.0 for e in np.eye(5)]
    assert np.allclose(model.jacobian(x, u), np.array(steps).T, atol=1e-11)


def test_linearization_at_an_equilibrium_predicts_small_deviations():
    model = ltinet.QuadraticBilinear(
        [[-2.0, 0.3], [0.1, -3.0]],
        [1.0, 0.5],
        [1.0, 1.0],
        D=[[0.5]],
        N=[[[0.0, 0.2], [0.1, 0.0]]],
        H=-0.2 * np.ones((2, 4)),
    )
    linear = model.linearize(u0=[1.0])
    x0 = model.linearize(u0=[1.0])  # the same object twice
    assert linear == x0
    net = ltinet.construct(model)
    t = np.linspace(0.0, 20.0, 201)
    rest = net.simulate(np.ones(201), t)
    assert np.abs(rest.y[-1] - linear.y0).max() <= 1e-7
    small = 1e-4 * np.sin(t)
    response = net.simulate(1.0 + small, t, x0=rest.states[-1]).y
    difference = np.abs(response - linear.simulate(1.0 + small, t).y).max()
    assert difference <= 100.0 * 1e-8  # of second order in the deviation


def test_linearization_keeps_names_and_delays_and_freezes_scheduling():
    model = ltinet.LPV(
        [[0, 1], [-4, -0.1]], [0, 1], [1, 0], A_p=[[[0, 0], [0, -0.4]]], B_p=[[[0], [1]]], C_p=[[[0, 1]]],
        inputs=["force"], outputs=["position"], input_delay=0.1,
    )  # fmt: skip
    frozen = model.linearize(p0=[2.0])
    assert np.allclose(frozen.A, [[0, 1], [-4, -0.9]])
    assert np.allclose(frozen.B, [[0], [3]])
    assert np.allclose(frozen.C, [[1, 2]])
    assert (frozen.input_names, frozen.output_names) == (("force",), ("position",))
    assert frozen.input_delay.tolist() == [0.1]


def test_linearization_away_from_an_equilibrium_is_refused():
    model, *_ = random_quadratic()
    with pytest.raises(ltinet.InvalidSystemError, match="not an equilibrium"):
        model.linearize(np.ones(5), np.zeros(2))
    pole = ltinet.QuadraticBilinear(0.0, 1.0, 1.0, H=1.0)  # x' = u + x² has no equilibrium for u > 0
    with pytest.raises(ltinet.InvalidSystemError, match="no equilibrium"):
        pole.linearize(u0=[1.0])


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: ltinet.LPV(-1.0, 1.0, 1.0), "at least one scheduling signal"),
        (lambda: ltinet.LPV(-1.0, 1.0, 1.0, A_p=[[[1.0]]], scheduling=["a", "b"]), "2 names"),
        (lambda: ltinet.LPV(-1.0, 1.0, 1.0, A_p=[[[1.0]]], scheduling=["a\n"]), "printable"),
        (lambda: ltinet.LPV(-1.0, 1.0, 1.0, A_p=[[[1.0]]], B_p=[[[1.0]], [[1.0]]]), "A_p has 1 matrix,"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[np.eye(3)]), r"N\[0\] has shape \(3, 3\)"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[np.eye(2)] * 2), "N has 2 matrices"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=3.0), "N must be a list"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[np.nan * np.eye(2)]), "not finite"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[1j * np.eye(2)]), "complex"),
        (lambda: ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1], N=[sparse.csr_array(1j * np.eye(2))]), "complex"),
        (lambda: ltinet.QuadraticBilinear(-np.eye(2), [1, 1], [1, 1], H=np.eye(2)), r"H has shape \(2, 2\)"),
        (lambda: ltinet.QuadraticBilinear(-np.eye(2), [1, 1], [1, 1], H=(np.eye(2),) * 2 + (np.eye(3),)), "K of H"),
        (lambda: ltinet.construct(ltinet.Bilinear(-1.0, 1.0, 1.0), tolerance=1e-3), "tolerance is for linear"),
    ],
)
def test_faults_have_one_clear_error(create, message):
    with pytest.raises(ltinet.InvalidSystemError, match=message):
        create()


def test_missing_methods_name_what_to_do():
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]])
    with pytest.raises(AttributeError, match=r"ltinet.construct\(model\).simulate"):
        model.simulate  # noqa: B018
    with pytest.raises(AttributeError, match="linearize"):
        model.poles  # noqa: B018
    net = ltinet.construct(model)
    for name in ("to_torch", "export_c", "poles"):
        with pytest.raises(AttributeError, match=r"net\.linear"):
            getattr(net, name)


def test_product_neurons_reproduce_the_equations():
    rng = np.random.default_rng(1)
    n, m = 6, 2
    A = rng.normal(size=(n, n)) - 4.0 * np.eye(n)
    column = np.zeros((n, n))
    column[:, 2] = rng.normal(size=n)
    model = ltinet.LPV(
        A, rng.normal(size=(n, m)), rng.normal(size=(2, n)), A_p=[column, None], B_p=[None, rng.normal(size=(n, m))],
        C_p=[np.array([[0.0] * n, [1.0] * n]), None], D_p=[None, np.ones((2, m))],
    )  # fmt: skip
    net = ltinet.construct(model)
    neurons, form = net.products, net.linear.form
    assert neurons.counts() == {
        "state × state": 0,
        "state × input": 0,
        "state × scheduling": 2,
        "input × scheduling": 2,
    }
    x, v, p = rng.normal(size=n), rng.normal(size=m), rng.normal(size=2)
    z = form.T_inv @ x
    pi = (neurons.left @ z) * np.concatenate([v, p])[neurons.signal]
    rho = p[neurons.pairs[:, 0]] * v[neurons.pairs[:, 1]]
    derivative = form.T @ (form.A @ z + neurons.W_out @ pi + neurons.W_in @ rho) + model.B @ v
    assert np.allclose(derivative, model.evaluate(x, v, p), rtol=1e-11, atol=1e-11)
    y = model.C @ x + neurons.V_out @ pi + neurons.V_in @ rho
    expected = model.C @ x + p[0] * (model.C_p[0] @ x) + p[1] * (model.D_p[1] @ v)
    assert np.allclose(y, expected, rtol=1e-12)


def test_print_lists_product_neurons():
    model = ltinet.Bilinear(np.diag([-1.0, -2.0]), [1, 1], [1, 1], N=[[[0, 0], [0.3, 0]]], inputs=["valve"])
    text = str(ltinet.construct(model))
    assert "1 state × input" in text
    assert "(1 state) · valve → 1 state" in text
    assert "1 of 2×2, 1 non-zero" in str(model)
    assert repr(ltinet.construct(model)) == "NonlinearNetwork(Bilinear, n_layers=2, n_neurons=2, n_products=1)"


def test_equality_compares_all_matrices():
    model, H, N, _ = random_quadratic()
    assert model == ltinet.QuadraticBilinear(model.A, model.B, model.C, H=H, N=N)
    assert model != ltinet.QuadraticBilinear(model.A, model.B, model.C, H=2.0 * H, N=N)
    assert model != ltinet.Bilinear(model.A, model.B, model.C, N=N)


def pymor_model(*, with_mass=False, sampling_time=0.0, is_sparse=False):
    pytest.importorskip("pymor")
    from pymor.models.iosys import BilinearModel
    from pymor.operators.numpy import NumpyMatrixOperator

    rng = np.random.default_rng(5)
    E = np.diag([2.0, 0.5, 3.0, 1.0]) + 0.1 * rng.normal(size=(4, 4)) if with_mass else np.eye(4)
    A, N = rng.normal(size=(4, 4)) - 4.0 * np.eye(4), rng.normal(size=(2, 4, 4))
    B, C, D = rng.normal(size=(4, 2)), rng.normal(size=(1, 4)), rng.normal(size=(1, 2))

    def operator(matrix):
        return NumpyMatrixOperator(sparse.csr_array(matrix) if is_sparse else matrix)

    fom = BilinearModel(
        operator(A), tuple(map(operator, N)), operator(B), operator(C), operator(D),
        E=operator(E) if with_mass else None, sampling_time=sampling_time,
    )  # fmt: skip
    return fom, (E, A, N, B, C, D)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("with_mass", [False, True])
def test_bilinear_model_of_pymor(with_mass, is_sparse):
    fom, (E, A, N, B, C, D) = pymor_model(with_mass=with_mass, is_sparse=is_sparse)
    model = ltinet.Bilinear.from_pymor(fom)
    x, u = np.random.default_rng(6).normal(size=4), np.array([0.3, -0.7])
    expected = np.linalg.solve(E, A @ x + B @ u + u[0] * (N[0] @ x) + u[1] * (N[1] @ x))
    assert np.allclose(model.derivative(x, u), expected, rtol=1e-13)
    assert np.array_equal(model.C, C)
    assert np.array_equal(model.D, D)
    assert ltinet.construct(fom).model == model
    reduced = ltinet.reduce_products(fom, order=2).model
    assert (
        reduced
        == ltinet.reduce_products(model, order=2).model
        == ltinet.reduce_products(ltinet.construct(fom), order=2).model
    )
    with pytest.raises(ltinet.InvalidSystemError, match="from_pymor"):
        ltinet.as_state_space(fom)


def test_bilinear_model_of_pymor_in_discrete_time_is_refused():
    with pytest.raises(ltinet.InvalidSystemError, match="continuous in time"):
        ltinet.construct(pymor_model(sampling_time=0.1)[0])


LATER = [
    *[(name, "learning of models with products is not supported") for name in ("to_torch", "fit")],
    *[(name, "export of models with products is not supported") for name in ("export_c", "export_fmu", "export_onnx")],
    *[
        (name, "analysis of models with products is not supported")
        for name in ("poles", "bode", "margin", "norm", "tf")
    ],
    *[
        (name, "belongs to linear models")
        for name in ("frequency_response", "step_response", "to_control", "certificate")
    ],
]


@pytest.mark.parametrize(("name", "message"), LATER)
def test_methods_that_come_later_are_refused_in_one_sentence(name, message):
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]])
    for thing, owner in ((model, "model"), (ltinet.construct(model), "net")):
        with pytest.raises(AttributeError, match=rf"{message}; use {owner}\.linear, .*model\.linearize\(x0, u0\)$"):
            getattr(thing, name)
        assert not hasattr(thing, name)


@pytest.mark.parametrize(
    "name",
    ["margin", "disk_margin", "nyquist", "norm", "sensitivity", "isstable", "pzmap", "condition_tradeoff", "reduce",
     "as_state_space", "tf", "ss", "feedback", "block_diagonalize"],
)  # fmt: skip
def test_functions_for_linear_models_refuse_models_with_products(name):
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]])
    for thing in (model, ltinet.construct(model)):
        with pytest.raises(ltinet.InvalidSystemError, match=r"is not linear|takes a matrix A"):
            getattr(ltinet, name)(thing)


def test_further_routes_are_refused():
    model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]])
    for call, message in (
        (lambda: ltinet.construct(model, tolerance=1e-3), "reduce_products"),
        (lambda: ltinet.reduce_products(model.linear, order=1), "ltinet.reduce"),
        (lambda: ltinet.reduce_products(ltinet.named_system("burgers", n_states=1001), order=3), "at most 1000"),
        (lambda: ltinet.QuadraticBilinear(-1.0, 1.0, 1.0, H=lambda x: x * x), "not lifted to products"),
        (lambda: ltinet.Bilinear(-1.0, 1.0, 1.0, N=[lambda x: x]), "not lifted to products"),
        (lambda: ltinet.interconnect([model], inputs=["u"], outputs=["y"]), "is not linear"),
    ):
        with pytest.raises(ltinet.InvalidSystemError, match=message):
            call()


def settled_model(kind):
    rng = np.random.default_rng(8)
    n, m = 6, 2
    A, B, C = rng.normal(size=(n, n)) / 2.0 - 3.0 * np.eye(n), rng.normal(size=(n, m)), rng.normal(size=(1, n))
    options = {
        "inputs": ["valve (V)", "pump"], "outputs": ["T (K)"], "states": [f"s{i}" for i in range(n)], "hold": "zero",
        "input_delay": [0.5, 0.0], "output_delay": 0.25, "u0": [1.0, 2.0], "y0": 300.0, "sample_time": 0.1,
    }  # fmt: skip
    N = [0.1 * rng.normal(size=(n, n)) for _ in range(m)]
    if kind == "lpv":
        return ltinet.LPV(A, B, C, A_p=[N[0]], scheduling=["speed"], **options)
    if kind == "quadratic":
        return ltinet.QuadraticBilinear(A, B, C, N=N, H=0.1 * rng.normal(size=(n, n * n)), **options)
    return ltinet.Bilinear(A, B, C, N=N, **options)


@pytest.mark.parametrize("kind", ["bilinear", "lpv", "quadratic"])
def test_names_and_settings_survive_construction_files_linearization_and_reduction(kind, tmp_path):
    model = settled_model(kind)
    net = ltinet.construct(model)
    ltinet.save_system(model, tmp_path / "model.mat")
    net.save(tmp_path / "net.safetensors")
    others = [
        net, model.linearize(), ltinet.reduce_products(model, order=3).model, ltinet.load_system(tmp_path / "model.mat"),
        ltinet.load(tmp_path / "net.safetensors"), ltinet.load(tmp_path / "net.safetensors").model,
    ]  # fmt: skip
    for other in others:
        assert other.input_names == ("valve (V)", "pump")
        assert other.output_names == ("T (K)",)
        assert other.input_delay.tolist() == [0.5, 0.0]
        assert other.output_delay.tolist() == [0.25]
        assert other.u0.tolist() == [1.0, 2.0]
        assert other.y0.tolist() == [300.0]
        assert (other.hold, other.sample_time, other.dt) == ("zero", 0.1, None)
    for other in (model.linearize(), others[3], others[5]):
        assert other.state_names == model.state_names
    if kind == "lpv":
        assert all(other.scheduling_names == ("speed",) for other in (others[2], others[3], others[5]))
    solution = net.simulate(np.ones((4, 2)), [0.0, 0.1, 0.2, 0.3], p=np.ones(4) if kind == "lpv" else None)
    assert solution.output_names == ("T (K)",)


def test_with_names():
    renamed = settled_model("lpv").with_names(outputs=["out"])
    assert renamed.output_names == ("out",)
    assert renamed.input_names == ("valve (V)", "pump")
    assert renamed.scheduling_names == ("speed",)
    assert renamed.hold == "zero"
