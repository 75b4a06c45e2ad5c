"""Responses of large sparse systems by their reduction, within proven bounds."""

import copy

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import expm_multiply, splu

import ltinet
from ltinet import large_systems
from ltinet.large_systems import reduce_for_responses
from ltinet.plotting.frequency_response import ResponseError, draw_bode

mpl.use("Agg")

ORACLE = 1e-11  # relative error of products with exponentials of sparse matrices, generously
PLATE = ltinet.named_system("heat_plate", n=56**2)


@pytest.fixture(scope="module")
def beam():
    n = 1600
    K = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csc") * (n + 1.0) ** 2
    M = sparse.eye_array(n, format="csc")
    return ltinet.SecondOrder(M, 0.3 * M + 2e-3 * K, K, inputs=[n // 3], outputs=[n // 2])


def stepped(A, B, C, t):
    """Step responses of x' = A x + B u, (m, T, p)."""
    steady = -splu(sparse.csc_array(A)).solve(np.ascontiguousarray(B))
    x = expm_multiply(A, -steady, start=t[0], stop=t[-1], num=len(t)) + steady
    return np.einsum("pn,tnm->mtp", C, x)


def test_step_responses_are_within_their_bounds():
    t = np.linspace(0.0, 0.05, 21)
    sol = PLATE.step_response(t)
    exact = stepped(PLATE.sparse.A, PLATE.sparse.B, PLATE.C, t)
    bound = sol.error_bound(t)
    assert np.all(np.abs(sol.y - exact) <= bound + ORACLE * np.abs(exact).max())
    assert bound.max() < 1e-3 * np.abs(exact).max()
    assert "reduction" in sol.error_parts()
    assert "reduced model" in sol.notes[0]
    assert PLATE.step_response(input="u1", output=1).y.shape[1] == 1


def test_simulations_from_rest_are_within_their_bounds():
    t = np.linspace(0.0, 0.05, 26)
    u = np.random.default_rng(0).standard_normal((26, 2))
    sol = PLATE.simulate(u, t, hold="zero")
    A, B = PLATE.sparse.A, PLATE.sparse.B
    at_rest, x, rows = -splu(sparse.csc_array(A)).solve(B), np.zeros(len(B)), [np.zeros(2)]
    for value in u[:-1]:
        x = expm_multiply(A * t[1], x - at_rest @ value) + at_rest @ value
        rows.append(PLATE.C @ x)
    exact = np.array(rows)
    assert np.all(np.abs(sol.y - exact) <= sol.error_bound(t) + ORACLE * np.abs(exact).max())
    assert sol.error_bound().max() < 1e-3 * np.abs(exact).max()


def test_a_tolerance_or_a_state_is_integrated_on_the_sparse_matrices():
    t = np.linspace(0.0, 0.01, 3)
    assert PLATE.simulate(np.ones((3, 2)), t, tolerance=1e-3).stats["engine"] == "implicit"
    assert PLATE.simulate(None, t, x0=np.ones(PLATE.n_states)).stats["engine"] == "implicit"
    assert PLATE.simulate(np.ones((3, 2)), t).stats["engine"] == "exact"


def test_what_cannot_be_reduced_is_integrated():
    n = 3100
    A = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    A[0, 0] = A[-1, -1] = -1.0  # insulated: the mean integrates
    system = ltinet.StateSpace(A, np.full((n, 1), 1.0 / n), np.ones((1, n)))
    sol = system.simulate(np.ones((5, 1)), np.linspace(0.0, 2.0, 5))
    assert sol.stats["engine"] == "implicit"
    assert np.abs(sol.y[:, 0] - sol.t).max() <= 1e-5
    step = system.step_response([0.0, 1.0])
    assert abs(step.y[0, 1, 0] - 1.0) <= 1e-5
    assert step.notes[0].startswith("outputs err by about")


def test_mechanical_responses_are_within_their_bounds(beam):
    t = np.linspace(0.0, 1.0, 21)
    sol = beam.step_response(t)
    n = beam.n_positions
    modes = np.arange(1, n + 1)
    stiffness = (2.0 * (n + 1.0) * np.sin(0.5 * np.pi * modes / (n + 1.0))) ** 2
    d = 0.3 + 2e-3 * stiffness
    shapes = np.sqrt(2.0 / (n + 1.0)) * np.sin(np.pi * np.outer([n // 3 + 1, n // 2 + 1], modes) / (n + 1.0))
    pole = 0.5 * (-d + np.sqrt(d**2 - 4.0 * stiffness + 0j))
    other = stiffness / pole
    motion = 1.0 - (other * np.exp(np.outer(t, pole)) - pole * np.exp(np.outer(t, other))) / (other - pole)
    exact = (motion.real / stiffness) @ (shapes[0] * shapes[1])
    bound = sol.error_bound(t)[0, :, 0]
    assert np.all(np.abs(sol.y[0, :, 0] - exact) <= bound + 1e-10 * np.abs(exact).max())
    assert bound.max() < 0.1 * np.abs(exact).max()
    u = np.ones((21, 1))
    assert np.allclose(beam.simulate(u, t, hold="zero").y, sol.y[0], rtol=0.0, atol=1e-12)


def test_copies_of_mechanical_models_are_reduced_to_modes_too(beam):
    beam.step_response([0.0, 1.0])
    same = copy.copy(beam)
    assert same == beam
    assert "error ≤" in same.step_response([0.0, 1.0]).notes[0]


def test_bode_plots_have_the_proven_band(beam):
    for system in (PLATE, beam):
        above, below = system.plot.bode().axes
        assert "reduced model, error ≤" in above.get_title()
        line, band = above.get_lines()[0], above.collections[0]
        omega = line.get_xdata()
        exact = system.frequency_response(omega[::40])
        outline = band.get_paths()[0].vertices
        for frequency, value in zip(omega[::40], exact[:, 0, 0], strict=True):
            heights = outline[np.isclose(outline[:, 0], frequency, rtol=1e-12), 1]
            level = 20.0 * np.log10(max(abs(value), 1e-300))
            assert heights.min() - 1e-9 <= max(level, above.get_ylim()[0]) <= heights.max() + 1e-9
        assert len(below.collections) == len(below.get_lines())
        assert not below.texts  # nothing is said about dead times of a model without delays
        mpl.pyplot.close(above.figure)


def test_any_phase_is_shaded_where_the_magnitude_is_below_the_error():
    omega, H = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1e-3, 0.5j])[:, None, None]
    _, below = draw_bode(omega, H, error=ResponseError(0.01, True))
    outline = below.collections[0].get_paths()[0].vertices
    at_two = outline[outline[:, 0] == 2.0, 1]
    assert (at_two.min(), at_two.max()) == below.get_ylim()
    at_one = outline[outline[:, 0] == 1.0, 1]
    assert np.ptp(at_one) == pytest.approx(2.0 * np.rad2deg(np.arcsin(0.01)), rel=1e-9)
    mpl.pyplot.close(below.figure)


@pytest.mark.parametrize("outputs", [7, [1.0, 2.0], [True, False], []])
def test_degrees_of_freedom_that_are_no_integers_are_named(outputs):
    with pytest.raises(ltinet.InvalidSystemError, match=r"C is missing, and outputs = .* is not a list of integers"):
        ltinet.StateSpace(-np.eye(2), np.ones((2, 1)), outputs=outputs)


def test_solutions_of_reduced_models_have_no_states_of_the_system(beam):
    t = np.linspace(0.0, 1.0, 5)
    for system in (PLATE, beam):
        for sol in (system.simulate(np.ones((5, system.n_inputs)), t), system.step_response(t)):
            with pytest.raises(ltinet.SimulationError, match=r"by a reduced model.*tolerance=1e-6.*lift"):
                _ = sol.states


def test_overviews_name_the_reduced_model():
    figure = PLATE.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert "poles of the reduced model" in titles
    assert "reduced model" in PLATE.plot.pzmap().axes[0].get_title()
    mpl.pyplot.close("all")


def test_errors_of_large_reductions_are_drawn_at_few_frequencies_with_progress():
    states = []
    figure = ltinet.reduce(PLATE, tolerance=1e-3).plot.error(progress=states.append)
    assert {len(line.get_xdata()) for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2} == {40}
    assert states[-1].fraction == 1.0
    assert len({state.fraction for state in states}) > 10
    mpl.pyplot.close("all")


def test_large_systems_are_reduced_when_something_is_drawn(monkeypatch):
    reductions = []

    def count_reductions(*arguments):
        reductions.append(arguments)
        return reduce_for_responses(*arguments)

    monkeypatch.setattr(large_systems, "reduce_for_responses", count_reductions)
    system = ltinet.StateSpace(PLATE.sparse.A, PLATE.sparse.B, PLATE.C)
    for plots in (system.plot, ltinet.SecondOrder(*[sparse.eye_array(1501)] * 3, inputs=[0], outputs=[0]).plot):
        dir(plots)
        assert "bode" in repr(type(plots).bode)
        assert hasattr(plots, "step")
    assert not reductions
    figure = system.plot.bode()
    system.plot.step()
    delayed = system.with_signal_settings(input_delay=0.1)
    delayed.step_response([0.0, 1.0])  # the reduction does not depend on delays
    assert len(reductions) == 1
    assert "reduced model" in figure.axes[0].get_title()
    mpl.pyplot.close("all")


def test_copies_of_systems_and_networks_do_not_share_caches():
    net = ltinet.construct(([[-1.0, 1.0], [0.0, -2.0]], [0.0, 1.0], [1.0, 0.0]))
    for model in (net, net.system):
        for same in (copy.copy(model), copy.deepcopy(model)):
            assert same == model
            assert same._context is not model._context
        delayed = model.with_signal_settings(input_delay=0.5)
        assert delayed._context is model._context
        assert delayed.with_signal_settings(input_delay=0.0) == model


def test_progress_of_long_responses_reaches_callbacks():
    states = []
    fresh = ltinet.StateSpace(PLATE.sparse.A, PLATE.sparse.B, PLATE.C)
    fresh.step_response([0.0, 1.0], progress=states.append)
    assert states[-1].task == "reducing 3136 states"
    assert states[-1].fraction >= 0.9
    assert states[0].remaining > 0.0
    fresh.frequency_response([1.0, 10.0], progress=states.append)
    assert [state.fraction for state in states[-3:]] == [0.0, 0.5, 1.0]
    fresh.simulate(np.ones((3, 2)), [0.0, 0.01, 0.02], tolerance=1e-2, progress=states.append)
    assert "integrating 3136 states: 100 %, integration" in str(states[-1])


@pytest.fixture(scope="module")
def insulated():
    """Insulated plate of 57 × 57 cells; its modes are cosines."""
    edge = 57
    chain = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(edge, edge), format="lil")
    chain[0, 0] = chain[-1, -1] = 1.0
    K = (sparse.kron(chain, sparse.eye_array(edge)) + sparse.kron(sparse.eye_array(edge), chain)).tolil()
    K[0, 1] = K[1, 0] = -0.7  # a weaker link, so that no structure is known
    K[0, 0], K[1, 1] = 1.7, K[1, 1] - 0.3
    return ltinet.StateSpace(-K.tocsr(), inputs=[0, 800], outputs=[0, 860])


def test_insulated_models_have_step_responses_at_given_times(insulated):
    t = np.linspace(0.0, 400.0, 9)
    sol = insulated.step_response(t)
    B = insulated.sparse.B
    x = np.stack(
        [expm_multiply(_with_input(insulated.sparse.A, B[:, [j]]), _last(3250), 0.0, 400.0, 9) for j in (0, 1)]
    )
    exact = x[:, :, [0, 860]]
    assert np.abs(sol.y - exact).max() <= 1e-6 * np.abs(exact).max()
    assert np.all(np.isfinite(sol.error_estimate))
    assert insulated.step_response(t, input=1, output=0).y.shape == (9, 1)
    assert len(insulated.plot.step(t).axes) == 4


def _with_input(A, b):
    """Return [[A, b], [0, 0]], whose exponential has the step response."""
    return sparse.block_array([[A, sparse.csr_array(b)], [None, sparse.csr_array((1, 1))]], format="csr")


def _last(n):
    return np.eye(1, n, n - 1)[0]


def test_models_that_cannot_be_reduced_say_why_times_and_frequencies_are_needed(insulated):
    with pytest.raises(ltinet.InvalidSignalError, match=r"t is missing.*integrates"):
        insulated.step_response()
    with pytest.raises(ltinet.InvalidSystemError, match=r"omega is missing.*integrates"):
        insulated.plot.bode()
    omega = np.array([0.1, 1.0])
    assert np.allclose(insulated.plot.bode(omega).axes[0].lines[0].get_xdata(), omega)


def test_prescribed_rows_of_large_models_are_eliminated():
    A, B, C = PLATE.sparse.A, PLATE.sparse.B, PLATE.C
    E = sparse.block_diag([sparse.eye_array(A.shape[0]), sparse.csr_array((1, 1))], format="csr")
    edge = sparse.block_array([[A, None], [None, sparse.csr_array([[-1.0]])]], format="csr")
    constrained = ltinet.StateSpace(edge, np.vstack([B, np.ones((1, 2))]), np.hstack([C, np.ones((2, 1))]), E=E)
    t = np.linspace(0.0, 0.05, 11)
    u = np.random.default_rng(1).standard_normal((11, 2))
    difference = constrained.simulate(u, t).y - PLATE.simulate(u, t).y
    assert np.allclose(difference, u.sum(axis=1, keepdims=True), rtol=0.0, atol=1e-12 * np.abs(u).max())
    assert np.allclose(constrained.step_response(t).y, PLATE.step_response(t).y + 1.0, rtol=0.0, atol=1e-12)
