"""Named systems have the spectra, shapes and condition numbers that their closed forms and the paper give them."""

import numpy as np
import pytest
from scipy.linalg import schur
from sklearn.cluster import KMeans

from ltinet._util.floating_point import rounding_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.files import load_system, named_system
from ltinet.state_space import StateSpace
from ltinet.systems.named_systems import BLOB_RADIUS, BLOBS, NAMED_SYSTEMS


def assert_spectrum(computed, expected, tolerance):
    """Match each expected eigenvalue with a computed one of its own, within `tolerance`."""
    remaining = list(np.asarray(computed, dtype=complex))
    for value in np.asarray(expected, dtype=complex):
        nearest = min(range(len(remaining)), key=lambda k: abs(remaining[k] - value))
        assert abs(remaining.pop(nearest) - value) <= tolerance
    assert not remaining


@pytest.mark.parametrize("name", sorted(NAMED_SYSTEMS))
def test_every_named_system_is_built_by_its_name_and_is_documented(name):
    system = named_system(name)
    assert isinstance(system, StateSpace)
    assert NAMED_SYSTEMS[name].__doc__


def test_unknown_names_and_parameters_are_answered_with_the_known_ones():
    with pytest.raises(InvalidSystemError, match=r"unknown system 'nonsense'; known are .*diffusion.*penzl"):
        named_system("nonsense")
    with pytest.raises(InvalidSystemError, match=r"penzl has no parameter size; it has n_real"):
        named_system("penzl", size=3)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("diffusion", {"points": 0}, "points must be an integer ≥ 1, got 0"),
        ("diffusion", {"points": 2.5}, "points must be an integer ≥ 1, got 2.5"),
        ("diffusion", {"length": 0}, "length must be greater than 0, got 0.0"),
        ("diffusion", {"diffusivity": "high"}, "diffusivity must be a number, got 'high'"),
        ("convection_diffusion", {"points": 1}, "points must be an integer ≥ 2, got 1"),
        ("convection_diffusion", {"velocity_y": np.nan}, "velocity_y must be finite, got nan"),
        ("heat_rod", {"n_states": -1}, "n_states must be an integer ≥ 1, got -1"),
        ("heat_plate", {"n": 0}, "n must be an integer ≥ 1, got 0"),
        ("convection_diffusion_plate", {"V": np.inf}, "V must be finite, got inf"),
        ("mass_spring_damper", {"damping": -1.0}, "damping must not be negative, got -1.0"),
        ("mass_spring_damper", {"mass": 0.0}, "mass must be greater than 0, got 0.0"),
        ("penzl", {"n_real": -1}, "n_real must be an integer ≥ 0, got -1"),
        ("blobs", {"seed": "zero"}, "seed must be an integer ≥ 0, got 'zero'"),
        ("triangular", {"seed": -1}, "seed must be an integer ≥ 0, got -1"),
    ],
)
def test_parameters_that_make_no_system_are_refused_by_name(name, parameters, message):
    with pytest.raises(InvalidSystemError, match=message):
        named_system(name, **parameters)


@pytest.mark.parametrize("points", [1, 2, 3, 20])
def test_diffusion_has_its_closed_form_spectrum(points):
    system = named_system("diffusion", points=points, length=points / 2, diffusivity=0.8)
    sines = np.sin(np.pi * np.arange(points) / points) ** 2
    expected = np.sort((-4 * 0.8 / 0.5**2 * (sines[:, None] + sines)).ravel())
    np.testing.assert_array_equal(system.A, system.A.T)
    np.testing.assert_allclose(np.linalg.eigvalsh(system.A), expected, atol=rounding_tolerance(points**2, 25.6))
    np.testing.assert_array_equal(system.B, np.eye(points**2))
    np.testing.assert_array_equal(system.C, np.eye(points**2))


def test_diffusion_has_the_papers_numbers():
    values = np.linalg.eigvalsh(named_system("diffusion").A)
    assert values.size == 400
    assert values[0] == pytest.approx(-25.6, abs=rounding_tolerance(400, 25.6))
    assert abs(values[-1]) < rounding_tolerance(400, 25.6)
    assert 1 + np.count_nonzero(np.diff(values) > rounding_tolerance(400, 25.6)) == 61


def test_convection_diffusion_has_its_closed_form_spectrum_and_the_papers_counts():
    system = named_system("convection_diffusion")
    angle = 2 * np.pi * np.arange(20) / 20
    along_x = 1.4 / 0.25 * (2 * np.cos(angle) - 2) - 1j * 0.6 * np.sin(angle) / 0.5
    along_y = 1.4 / 0.25 * (2 * np.cos(np.pi * np.arange(1, 19) / 19) - 2)
    expected = np.concatenate([np.zeros(40), (along_x[:, None] + along_y).ravel()])
    values = np.linalg.eigvals(system.A)
    tolerance = (
        rounding_tolerance(400, np.linalg.norm(system.A, 2)) * 6.2
    )  # Bauer–Fike with the paper's condition number
    assert_spectrum(values, expected, tolerance)
    is_zero, is_real = np.abs(values) <= tolerance, np.abs(values.imag) <= tolerance
    assert np.count_nonzero(is_zero) == 40
    assert np.count_nonzero(is_real & ~is_zero) == 36
    assert np.count_nonzero(values.imag > tolerance) == 162
    np.testing.assert_array_equal(system.A[:20], 0.0)
    np.testing.assert_array_equal(system.A[-20:], 0.0)


def test_convection_carries_downstream_in_both_directions():
    system = named_system(
        "convection_diffusion", points=5, length=5.0, diffusivity=1.0, velocity_x=0.5, velocity_y=0.25
    )
    here = 2 * 5 + 2  # the point in the middle; x runs first
    row = system.A[here]
    assert (row[here - 1], row[here + 1]) == (1.25, 0.75)  # D/h² ± v/(2h): more comes from upstream
    assert (row[here - 5], row[here + 5]) == (1.125, 0.875)
    assert row[here] == -4.0


@pytest.mark.parametrize("n", [1, 2, 7])
def test_heat_rod_has_its_closed_form_spectrum(n):
    system = named_system("heat_rod", n_states=n, diffusivity=0.3)
    expected = -4 * 0.3 * (n + 1) ** 2 * np.sin(np.arange(1, n + 1) * np.pi / (2 * n + 2)) ** 2
    np.testing.assert_allclose(
        np.linalg.eigvalsh(system.A), np.sort(expected), rtol=rounding_tolerance(n) * (n + 1) ** 2
    )
    assert system.B.sum() == system.C.sum() == 1.0


def test_heat_rod_is_slicots_benchmark(data_dir):
    heat, stored = named_system("heat_rod"), load_system(data_dir / "heat.mat")
    np.testing.assert_allclose(heat.A, stored.A, rtol=1e-14)
    np.testing.assert_array_equal(heat.B, stored.B)
    np.testing.assert_array_equal(heat.C, stored.C)


def test_mass_spring_damper_has_its_closed_form_spectrum_and_static_response():
    n, mass, stiffness, damping = 6, 2.0, 5.0, 0.3
    system = named_system("mass_spring_damper", n_masses=n, mass=mass, stiffness=stiffness, damping=damping)
    mu = 4 * np.sin(np.arange(1, n + 1) * np.pi / (2 * n + 2)) ** 2
    root = np.sqrt((damping * mu) ** 2 - 4 * mass * stiffness * mu + 0j)
    expected = np.concatenate([(-damping * mu + root) / (2 * mass), (-damping * mu - root) / (2 * mass)])
    assert_spectrum(np.linalg.eigvals(system.A), expected, rounding_tolerance(2 * n, 100.0))
    # n + 1 equal springs in a row: a unit force on the first mass moves the last by 1/((n + 1)·stiffness)
    gain = -(system.C @ np.linalg.solve(system.A, system.B))
    assert gain[0, 0] == pytest.approx(1 / ((n + 1) * stiffness), rel=1e-12)


def test_penzl_is_normal_with_the_published_spectrum():
    system = named_system("penzl", n_real=20)
    expected = np.concatenate([-np.arange(1, 21), [-1 + s * w for w in (100j, 200j, 400j) for s in (1, -1)]])
    assert_spectrum(np.linalg.eigvals(system.A), expected, rounding_tolerance(26, 400.0))
    np.testing.assert_array_equal(system.A @ system.A.T, system.A.T @ system.A)
    np.testing.assert_array_equal(system.B.T, system.C)
    np.testing.assert_array_equal(system.C[0, :8], [10] * 6 + [1] * 2)
    assert named_system("penzl").n_states == 1006


def test_triangular_follows_the_corrected_paper():
    system = named_system("triangular", seed=5)
    np.testing.assert_array_equal(np.diag(system.A), [-4 + 2.5**-k for k in range(10)])
    above = system.A[np.triu_indices(10, 1)]
    np.testing.assert_array_equal(np.tril(system.A, -1), 0.0)
    for values, low, high in ((above, 0, 0.1), (system.B, 0, 0.5), (system.C, 0, 0.5), (system.D, -0.5, 0)):
        assert low <= values.min() < values.max() <= high
        assert values.max() - values.min() > 0.7 * (high - low)
    assert system == named_system("triangular", seed=5)
    assert system != named_system("triangular", seed=6)


def block_bases_condition(A, points, labels):
    """cond(T) with orthonormal bases of the invariant subspaces of groups of (Re, |Im|) points, by ordered Schur."""
    bases = []
    for label in np.unique(labels):

        def belongs(re, im, label=label):
            return bool(labels[np.hypot(points[:, 0] - re, points[:, 1] - abs(im)).argmin()] == label)

        _, Z, size = schur(A, output="real", sort=belongs)
        bases.append(Z[:, :size])
    return np.linalg.cond(np.hstack(bases))


def upper_points(A):
    values = np.linalg.eigvals(A)
    values = values[values.imag >= 0]
    return np.column_stack([values.real, values.imag])


@pytest.mark.parametrize("seed", [0, 1])
def test_blobs_reproduce_what_the_paper_says_of_its_example(seed):
    system = named_system("blobs", seed=seed)
    assert (system.n_states, system.n_inputs, system.n_outputs) == (134, 10, 4)
    points = upper_points(system.A)
    centres = np.array([blob[:2] for blob in BLOBS])
    distances = np.hypot(*(points[:, None, :] - centres).transpose(2, 0, 1))
    labels = distances.argmin(axis=1)
    assert distances.min(axis=1).max() < 2 * BLOB_RADIUS  # reals of a mixed blob lie below its centre
    for label, (_, _, n_reals, n_pairs) in enumerate(BLOBS):
        assert np.count_nonzero(points[labels == label, 1] == 0) == n_reals
        assert np.count_nonzero(points[labels == label, 1] > 0) == n_pairs
    assert np.count_nonzero(points[:, 1] == 0) == 44
    assert np.count_nonzero(points[:, 1]) == 45
    six = KMeans(6, n_init=10, random_state=0).fit_predict(points)
    assert len(set(zip(six, labels, strict=True))) == 6  # K-means finds the blobs
    assert block_bases_condition(system.A, points, labels) <= 11.2
    seven = KMeans(7, n_init=10, random_state=0).fit_predict(points)
    assert block_bases_condition(system.A, points, seven) >= 1e5


def test_blobs_are_dense_and_hold_every_kind_of_layer():
    system = named_system("blobs")
    assert np.count_nonzero(system.A) == 134**2
    kinds = {(n_reals > 0, n_pairs > 0) for _, _, n_reals, n_pairs in BLOBS}
    assert kinds == {(True, False), (False, True), (True, True)}
    assert -1.0 <= system.D.min() < system.D.max() <= 0.0


def test_heat_plate_has_the_eigenvalues_inputs_and_outputs_of_its_closed_form():
    plate, g = named_system("heat_plate", n=50), 7
    assert plate.n_states == g * g
    assert plate.sparse.is_symmetric
    line = -4.0 * (g + 1) ** 2 * np.sin(0.5 * np.pi * np.arange(1, g + 1) / (g + 1)) ** 2
    assert_spectrum(plate.poles(), np.add.outer(line, line).ravel(), rounding_tolerance(g * g, abs(2 * line[-1])))
    x = np.arange(1, g + 1) / (g + 1)
    B, C = plate.B.reshape(g, g, 2), plate.C.reshape(2, g, g)  # (y, x)
    low, high = np.outer(x < 0.5, x < 0.5), np.outer(x > 0.5, x > 0.5)
    assert np.array_equal(B[:, :, 0], low)
    assert np.array_equal(C[0], high / 9)
    assert np.argwhere(B[:, :, 1]).tolist() == [[3, 4]]  # y = 0.5, x = 0.625: the point at or below (0.7, 0.6)
    assert np.argwhere(C[1]).tolist() == [[5, 1]]  # y = 0.75, x = 0.25


@pytest.mark.parametrize("V", [10.0, -300.0])
def test_transport_on_the_plate_is_skew_and_second_order(V):
    plate, heat = named_system("convection_diffusion_plate", n=36, V=V), named_system("heat_plate", n=36)
    symmetric = 0.5 * (plate.A + plate.A.T)
    assert np.max(np.abs(symmetric - heat.A)) <= rounding_tolerance(1, np.max(np.abs(plate.A)))
    errors = [_transport_error(g, V) for g in (20, 80)]
    assert np.log(errors[0] / errors[1]) / np.log(81 / 21) >= 1.75  # the order; a first-order scheme has 1


def _transport_error(g, V):
    """How far the differences are from v·∇w for a smooth w that is zero at the edges, relative to the largest |v|."""
    own, heat = (named_system(name, n=g * g, **more).sparse.A for name, more in _plates(V))
    x = np.arange(1, g + 1) / (g + 1)
    X, Y = x[None, :], x[:, None]
    w = X * (1 - X) * Y**2 * (1 - Y)
    slope_x, slope_y = (1 - 2 * X) * Y**2 * (1 - Y), X * (1 - X) * (2 * Y - 3 * Y**2)
    v_x, v_y = V * np.sin(np.pi * X) * np.cos(np.pi * Y), -V * np.cos(np.pi * X) * np.sin(np.pi * Y)
    expected = -(v_x * slope_x + v_y * slope_y)
    return np.max(np.abs((own - heat) @ w.ravel() - expected.ravel()))


def _plates(V):
    return ("convection_diffusion_plate", {"V": V}), ("heat_plate", {})


def test_docstring_lists_all_named_systems():
    assert all(f'"{name}"' in named_system.__doc__ for name in NAMED_SYSTEMS)
