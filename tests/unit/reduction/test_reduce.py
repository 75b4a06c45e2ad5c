"""Hypothesis: `reduce` keeps what it promises, whichever way it takes, and refuses by name what it cannot reduce."""

import numpy as np
import pytest
from scipy import linalg, sparse

import ltinet
from ltinet._util.frequency_supremum import frequency_grid
from ltinet.reduction import matrix_reduction
from ltinet.reduction.balanced_truncation import _scaled_modes
from ltinet.reduction.dissipative_pencil import make_pencil, prove_definite
from ltinet.reduction.modal_form import modes_from_blocks
from ltinet.reduction.projection import ReducedStates, project, residual_space
from ltinet.reduction.rational_krylov import _next_shifts
from ltinet.reduction.residual_bound import ResidualBound, _best_corner


def plate(n: int = 900) -> ltinet.StateSpace:
    return ltinet.named_system("heat_plate", n=n)


@pytest.mark.parametrize("method", ["truncation", "singular_perturbation"])
def test_a_dense_system(method: str) -> None:
    system = ltinet.named_system("heat_rod", n_states=40)
    found = ltinet.reduce(system, tolerance=1e-6, method=method)
    errors, gains = found.errors(np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 300)]))
    assert found.is_certified
    assert errors.max() <= found.error_bound <= 1e-6 * found.gain * (1.0 + 1e-12)
    assert found.gain <= gains.max() + found.error_bound
    assert found.order < 12
    if method == "singular_perturbation":
        assert errors[0] <= 1e-13 * gains[0]  # exact at rest, but for rounding
        assert found.pointwise_bound is None  # the error jumps with the input


def test_what_does_not_decay_is_kept_whole() -> None:
    stable = ltinet.named_system("heat_rod", n_states=20)
    A = np.block([[np.diag([0.0, 0.5]), np.zeros((2, 20))], [np.zeros((20, 2)), stable.A]])
    B, C = np.vstack([np.ones((2, 1)), stable.B]), np.hstack([np.ones((1, 2)), stable.C])
    found = ltinet.reduce((A, B, C), order=6)
    assert found.n_retained == 2
    assert np.sort(found.system.poles().real)[-2:] == pytest.approx([0.0, 0.5], abs=1e-12)
    with pytest.raises(ltinet.InvalidSystemError, match="2 states are unstable"):
        ltinet.reduce((A, B, C), order=1)


@pytest.mark.parametrize("V", [0.0, 30.0])
def test_a_sparse_system_is_projected(V: float) -> None:
    system = plate() if V == 0.0 else ltinet.named_system("convection_diffusion_plate", n=900, V=V)
    found = ltinet.reduce(system, tolerance=1e-5)
    errors, _ = found.errors(np.concatenate([[0.0], np.geomspace(0.1, 1e5, 60)]))
    assert "projection" in found.error_parts
    assert errors.max() <= found.error_bound <= 1e-5 * found.gain * (1.0 + 1e-12)
    assert str(found).startswith("reduced system")


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("V", [0.0, 3.0, 300.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_the_pointwise_bound_is_no_less_than_the_h2_norm(V: float, tolerance: float) -> None:
    """The H2 norm of the difference from its Gramian, by SciPy's Lyapunov solver."""
    system = plate(400) if V == 0.0 else ltinet.named_system("convection_diffusion_plate", n=400, V=V)
    found = ltinet.reduce(system, tolerance=tolerance)
    small = found.system
    A, B, C = linalg.block_diag(system.A, small.A), np.vstack([system.B, small.B]), np.hstack([system.C, -small.C])
    P = linalg.solve_continuous_lyapunov(A, -B @ B.T)
    norm = np.sqrt(max(np.trace(C @ P @ C.T), 0.0))
    assert norm <= found.pointwise_bound <= 1e4 * norm  # and it says something


@pytest.mark.parametrize("V", [0.0, 30.0])
@pytest.mark.parametrize("power", [-40, 40])
def test_units_of_outputs_change_nothing(V: float, power: int) -> None:
    """Residuals of inputs and of outputs share a basis: what is noise beside the larger ones is not lost of others."""
    A, B, C = _plate_matrices(V)
    found = ltinet.reduce(ltinet.StateSpace(A, B, C), tolerance=1e-6)
    other = ltinet.reduce(ltinet.StateSpace(A, B, C * 2.0**power), tolerance=1e-6)
    assert other.order == found.order
    for part, error in found.error_parts.items():
        assert other.error_parts[part] == pytest.approx(error * 2.0**power, rel=1e-9)


@pytest.mark.parametrize("V", [0.0, 30.0])
@pytest.mark.parametrize("power", [-30, 30])
def test_units_of_states_change_nothing(V: float, power: int) -> None:
    """Nor do those of energy, E = 2^k: a basis that is orthonormal for E is as long as they are small."""
    A, B, C = _plate_matrices(V)
    E = sparse.eye_array(len(B), format="csc")
    found = ltinet.reduce(ltinet.StateSpace(A, B, C, E=E), tolerance=1e-6)
    other = ltinet.reduce(ltinet.StateSpace(A * 2.0**power, B * 2.0**power, C, E=E * 2.0**power), tolerance=1e-6)
    assert other.order == found.order
    for part, error in found.error_parts.items():
        assert other.error_parts[part] == pytest.approx(error, rel=1e-9)


def _plate_matrices(V: float) -> tuple[sparse.csc_array, np.ndarray, np.ndarray]:
    """Sparse, because an array of so few states would be reduced as one."""
    system = plate() if V == 0.0 else ltinet.named_system("convection_diffusion_plate", n=900, V=V)
    return sparse.csc_array(system.A), system.B, system.C


def test_the_number_of_workers_changes_nothing() -> None:
    one, two = (ltinet.reduce(plate(), order=8, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.system.A, two.system.A)
    assert one.error_bound == two.error_bound


def test_where_nothing_is_proven_there_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_reduction, "MAX_DENSE_STATES", 400)  # as if 900 states were many
    system = plate()
    assert system.sparse is not None
    push = sparse.csc_array(([3e4], ([0], [1])), shape=(900, 900))  # one entry, and A is no longer dissipative
    found = ltinet.reduce((system.sparse.A + push, system.sparse.B, system.C), tolerance=1e-4)
    assert not found.is_certified
    assert found.error_bound is None
    assert found.pointwise_bound is None
    errors, _ = found.errors(np.geomspace(0.1, 1e4, 30))
    assert errors.max() <= 10.0 * found.estimate + 1e-4 * found.gain


def test_bounds_of_runs_count_the_reduction(tmp_path) -> None:
    system = plate(350)
    net = ltinet.construct(system, tolerance=1e-3)
    t = np.linspace(0.0, 0.5, 60)
    rng = np.random.default_rng(3)
    u = rng.standard_normal((50, len(t), 2))
    whole, small = ltinet.construct(ltinet.StateSpace(system.A, system.B, system.C)), net
    reference, sol = whole.simulate(u, t), small.simulate(u, t)
    assert (np.abs(sol.y - reference.y) <= sol.error_bound(t) + reference.error_bound(t)).all()
    assert net.certificate(horizon=1.0).reduction == pytest.approx(net.reduction_error * np.sqrt(2.0))
    assert np.isinf(net.simulate(u[0], t, x0=np.ones(net.n_states)).error_bound()).all()
    net.save(tmp_path / "net.safetensors")
    assert ltinet.load(tmp_path / "net.safetensors").reduction_error == net.reduction_error


def test_a_network_is_reduced_through_its_system() -> None:
    net = ltinet.construct(ltinet.named_system("heat_rod", n_states=30))
    found = ltinet.reduce(net, order=4)
    assert found.order == 4
    assert found.net.n_states == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda A, E, B, C: (A, E, 0.0 * B, C), "B is zero"),
        (lambda A, E, B, C: (A, E, B, 0.0 * C), "C is zero"),
        (lambda A, E, B, C: (A, E, B * np.nan, C), "not finite"),
        (lambda A, E, B, C: (A, -E, B, C), "E is not symmetric positive definite"),
        (lambda A, E, B, C: (A + 1e-13 * abs(A).max() * sparse.eye_array(4000, k=1), E, B, C), "except for rounding"),
        (lambda A, E, B, C: (_without_edges(A), E, B, C), "A is singular"),
    ],
)
def test_bad_models_are_refused(change, message: str) -> None:
    n = 4000  # more than are filled in
    A = sparse.csc_array(sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)))
    B, C = np.ones((n, 1)), np.eye(1, n)
    A, E, B, C = change(A, sparse.eye_array(n, format="csc"), B, C)
    with pytest.raises(ltinet.InvalidSystemError, match=message):
        ltinet.reduce((A, B, C, None, E), order=4)


def _without_edges(A: sparse.csc_array) -> sparse.csc_array:
    """Insulated at both ends: the mean temperature is free."""
    free = A.tolil()
    free[0, 0] = free[-1, -1] = -1.0
    return sparse.csc_array(free)


def test_disconnected_parts_are_no_trouble() -> None:
    first = plate(400)
    assert first.sparse is not None
    A = sparse.block_diag([first.sparse.A, first.sparse.A], format="csc")
    B, C = np.vstack([first.sparse.B] * 2), np.hstack([first.C, np.zeros_like(first.C)])
    found = ltinet.reduce((A, B, C), tolerance=1e-4)
    errors, _ = found.errors(np.geomspace(1.0, 1e4, 20))
    assert errors.max() <= found.error_bound


@pytest.mark.parametrize(
    "wish", [{}, {"order": 3, "tolerance": 0.1}, {"order": -1}, {"order": 2.5}, {"tolerance": 0.0}, {"tolerance": 2.0},
             {"order": 2, "method": "modal"}],
)  # fmt: skip
def test_wishes_that_make_no_sense(wish: dict) -> None:
    with pytest.raises(ltinet.InvalidSystemError, match=r"must be|required"):
        ltinet.reduce(ltinet.named_system("heat_rod", n_states=10), **wish)


def test_pictures() -> None:
    found = ltinet.reduce(ltinet.named_system("heat_rod", n_states=30), order=4)
    axes = found.plot.error(np.geomspace(0.01, 100.0, 20)).axes[0]
    assert len(axes.lines) == 3
    omega = np.geomspace(0.01, 100.0, 50)
    above, _ = found.plot.bode(omega).axes
    assert f"error ≤ {found.error_bound:.1e}" in above.get_title()
    gains = np.abs(found.system.frequency_response(omega)[:, 0, 0])
    assert gains.min() < found.error_bound < gains.max()
    (band,) = above.collections
    edges = band.get_paths()[0].vertices
    for line, gain in zip(np.log10(omega), gains, strict=True):
        at = edges[np.isclose(np.log10(edges[:, 0]), line, rtol=0, atol=1e-9), 1]
        lowest = 20.0 * np.log10(gain - found.error_bound) if gain > found.error_bound else -np.inf
        assert at.min() == pytest.approx(max(lowest, above.get_ylim()[0]))
        assert at.max() == pytest.approx(20.0 * np.log10(gain + found.error_bound))
    assert found.plot.hankel().axes[0].get_yscale() == "log"


# Parts of the reduction.


def test_scaled_modes_keep_response_of_uncontrollable_mode() -> None:
    """The first mode has no input and no units to choose, the pair has outputs 1e6 times its inputs."""
    rates = np.array([-1.0, -2.0 + 1j, -2.0 - 1j])
    G, H = np.array([[0.0], [1e-3], [2e-3]]), np.array([[5.0, 1e3, -3e3], [0.0, 2e3, 1e3]])
    scaled = _scaled_modes(modes_from_blocks(rates, G, H), np.zeros((2, 1)))
    F = np.array([[-1.0, 0.0, 0.0], [0.0, -2.0, 1.0], [0.0, -1.0, -2.0]])
    for s in (0.0, 1j, 10j):
        expected = H @ np.linalg.solve(s * np.eye(3) - F, G)
        assert scaled.C @ np.linalg.solve(s * np.eye(3) - scaled.A, scaled.B) == pytest.approx(expected, rel=1e-13)
    pair_inputs, pair_outputs = np.linalg.norm(scaled.B[1:]), np.linalg.norm(scaled.C[:, 1:])
    assert 0.5 <= pair_inputs / pair_outputs <= 2.0


def test_smallest_eigenvalue_of_a_diagonal_matrix_is_exact() -> None:
    definite = prove_definite(sparse.diags_array([3.0, 0.7, 20.0], format="csc"))
    assert definite is not None
    assert definite.smallest == 0.7


def test_largest_states_of_a_diagonal_model() -> None:
    """‖b‖/|iω − λ| of a real pole is largest at rest."""
    states = ReducedStates(np.diag([-2.0, -0.5]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    assert states.largest == pytest.approx([2.5, 2.0], rel=1e-15)


def test_residual_space_contains_both_residuals() -> None:
    rng = np.random.default_rng(3)
    n, eye = 12, np.eye(12)
    A = sparse.csc_array(rng.standard_normal((n, n)) - 6.0 * eye)
    system = make_pencil(A, rng.standard_normal((n, 1)), rng.standard_normal((1, n)))
    projection, V = project(system, linalg.qr(rng.standard_normal((n, 3)), mode="economic")[0])
    space, dense = residual_space(system, projection, V), A.toarray()
    assert space.mass >= np.linalg.norm(system.E @ V, 2)
    for s in (0.0, 2j):
        y = np.linalg.solve(s * np.eye(3) - projection.A, projection.B)
        z = np.linalg.solve(s * np.eye(3) - projection.A.T, projection.C.T)
        for residual, states, expected in (
            (space.inputs, y, system.B - (s * eye - dense) @ V @ y),
            (space.outputs, z, system.C.T - (s * eye - dense.T) @ V @ z),
        ):
            values = space.Q @ (residual.first + residual.rest @ states)
            assert np.linalg.norm(values - expected) <= residual.off + 1e-13 * np.linalg.norm(expected)


@pytest.mark.parametrize(("distance", "is_near"), [(0.3, True), (3.5, True), (0.2, False), (5.0, False)])
def test_shifts_are_imaginary_beside_oscillating_ritz_values(distance: float, is_near: bool) -> None:
    """Ritz values within a factor of four of the frequency decide; the second one here only lowers the least size."""
    pair = distance * np.array([[-0.01, 1.0], [-1.0, -0.01]])
    bound = ResidualBound(1.0, np.array([0.0, 1.0]), np.array([0.0, 1.0]), 1.0, np.nan)
    (shift,) = _next_shifts(bound, linalg.block_diag(pair, -0.1), [100.0 + 0j], count=1)
    assert shift == (1j if is_near else 1.0)


def test_corner_between_two_bounds() -> None:
    """The lesser of 1 and 10/ω has the supremum 1."""
    poles = np.array([-1.0, -100.0], dtype=np.complex128)
    grid = frequency_grid(poles, spacing=1.6)
    ones = np.ones(len(grid.omega))
    supremum, corner = _best_corner(poles, grid, ones, 10.0 * ones)
    assert 1.0 <= supremum <= 1.5
    assert 1.0 < corner <= 100.0
