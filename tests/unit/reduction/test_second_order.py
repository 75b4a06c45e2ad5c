"""Hypothesis: mechanical models are reduced to oscillators, within their bound wherever there is one."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.reduction.mechanical_modes import Oscillators, _input_output_rounding, peak_gains
from ltinet.reduction.mechanical_pencil import (
    LowestModes,
    compute_lowest_modes,
    make_mechanical_pencil,
    remainder_bound,
)
from mechanical_models import chain, frequencies, membrane, response


def largest_gap(model: ltinet.SecondOrder, found: ltinet.ReductionResult) -> float:
    omega = frequencies(model)
    gaps = response(model, omega) - found.system.frequency_response(omega)
    return float(np.linalg.norm(gaps, 2, axis=(1, 2)).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("extra", [0.0, 3.0])
def test_no_bound_of_a_small_model_is_below_its_error(seed: int, extra: float) -> None:
    rng = np.random.default_rng(seed)
    model = chain(int(rng.integers(2, 30)), seed=seed, alpha=10.0 ** rng.uniform(-3, 1), beta=1e-4, extra=extra)
    for order in (0, 2, int(rng.integers(2, model.n_states)), model.n_states):
        found = ltinet.reduce(model, order=order)
        assert found.is_certified
        assert found.order == order - order % 2
        assert largest_gap(model, found) <= found.error_bound + 1e-13 * found.gain


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1e-3), (0.0, 1e-3), (2.0, 0.0), (0.0, 0.3)])
@pytest.mark.parametrize("method", ["modes", "krylov"])
def test_bounds_of_sparse_ways(alpha: float, beta: float, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`beta = 0.3` damps most modes so much that they no longer swing."""
    from ltinet.reduction import mechanical_reduction

    monkeypatch.setattr(mechanical_reduction, "MAX_DENSE_STATES", 100)  # as if 169 positions were many
    model = membrane(13, alpha=alpha, beta=beta)
    found = ltinet.reduce(model, order=24, method=method)
    assert found.is_certified
    assert largest_gap(model, found) <= found.error_bound
    assert found.error_bound == pytest.approx(sum(found.error_parts.values()))
    assert found.net.n_second_order == found.net.n_neurons == 12


def test_a_tolerance_is_met_by_projection() -> None:
    model = membrane(13, alpha=0.5, beta=5e-3)
    found = ltinet.reduce(model, tolerance=1e-2, method="krylov")
    assert largest_gap(model, found) <= found.error_bound <= 1e-2 * found.gain
    assert "Galerkin" in str(found)


def test_the_slowest_modes_and_no_others() -> None:
    """A membrane has pairs of equal stiffnesses, of which iterations like to miss one: pivots count them."""
    given = make_mechanical_pencil(membrane(13, alpha=0.5, beta=1e-3).matrices)
    assert given.damping is not None
    modes = compute_lowest_modes(given, 20)
    assert np.isfinite(remainder_bound(given, given.damping, modes).peak)
    missing = LowestModes(np.delete(modes.stiffness, 3), np.delete(modes.V, 3, axis=1))
    assert np.isinf(remainder_bound(given, given.damping, missing).peak)


@pytest.mark.parametrize("method", ["modes", "krylov"])
def test_dampers_that_couple_modes_leave_an_estimate(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ltinet.reduction import mechanical_reduction

    monkeypatch.setattr(mechanical_reduction, "MAX_DENSE_STATES", 100)
    model = membrane(13, alpha=0.5, beta=1e-3, extra=5.0)
    found = ltinet.reduce(model, order=24, method=method)
    assert not found.is_certified
    assert found.error_bound is None
    assert found.pointwise_bound is None
    assert largest_gap(model, found) <= 10.0 * found.estimate
    assert found.second_order is not None
    assert np.array_equal(np.asarray(found.second_order.M), np.eye(12))


def test_krylov_basis_of_the_whole_space() -> None:
    """Solutions at several frequencies span all positions of a small model, and rounding must not add a direction."""
    M, K = np.eye(3), 2.0 * np.eye(3) - np.eye(3, k=1) - np.eye(3, k=-1)
    model = ltinet.SecondOrder(M, 0.1 * K, K, np.eye(3)[:, :1], np.eye(3)[-1:])
    found = ltinet.reduce(model, order=6, method="krylov")
    assert found.order == 6
    assert largest_gap(model, found) <= found.error_bound <= 1e-10 * found.gain


def test_every_mode_is_one_second_order_neuron() -> None:
    model = chain(12, seed=3, beta=0.02)  # the stiffest do not swing any more
    net = ltinet.construct(model, tolerance=1e-3)
    found = ltinet.reduce(model, tolerance=1e-3)
    assert net.n_second_order == net.n_neurons == found.order // 2
    omega = np.geomspace(0.1, 200.0, 50)
    assert np.abs(net.frequency_response(omega) - found.system.frequency_response(omega)).max() < 1e-12 * found.gain
    t = np.linspace(0.0, 5.0, 400)
    u = np.random.default_rng(0).standard_normal((len(t), 2))
    reference = model.simulate(u, t)
    assert (np.abs(net.simulate(u, t).y - reference.y) <= net.simulate(u, t).error_bound(t) + 1e-9).all()


def test_the_model_itself() -> None:
    model = chain(5, seed=1)
    assert repr(model) == "SecondOrder(n_positions=5, n_inputs=2, n_outputs=2)"
    assert "positions" in str(model)
    assert "second-order" in model._repr_html_()
    assert pickle.loads(pickle.dumps(model)) == model  # noqa: S301 - our own
    assert hash(model) == hash(chain(5, seed=1))
    omega = np.array([0.0, 1.0, 40.0])
    expected = response(model, omega)
    for found in (model, ltinet.as_state_space(model)):
        assert np.abs(found.frequency_response(omega) - expected).max() < 1e-12 * np.abs(expected).max()
    thin = ltinet.SecondOrder(*(sparse.csr_array(own) for own in (model.M, model.D, model.K)), model.B, model.C)
    assert thin != model
    assert np.abs(thin.frequency_response(omega) - expected).max() < 1e-12 * np.abs(expected).max()
    assert thin.to_state_space().sparse is not None
    assert not thin.K.data.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"M": np.eye(3)}, "D is 4×4 but M is 3×3"),
        ({"B": np.ones((3, 1))}, "B needs one row per position"),
        ({"C": np.ones((1, 3))}, "C needs one column per position"),
        ({"K": np.full((4, 4), np.nan)}, "not finite"),
        ({"D": 1j * np.eye(4)}, "complex"),
        ({"M": np.ones((4, 3))}, "square"),
    ],
)
def test_what_is_no_model(change: dict, message: str) -> None:
    given = {"M": np.eye(4), "D": np.eye(4), "K": np.eye(4), "B": np.ones((4, 1)), "C": np.ones((1, 4))} | change
    with pytest.raises(ltinet.InvalidSystemError, match=message):
        ltinet.SecondOrder(**given)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda M, D, K, B, C: (-M, D, K, B, C), "M is not positive definite"),
        (lambda M, D, K, B, C: (M, D, K - 3.0 * M, B, C), "K is not positive definite"),
        (lambda M, D, K, B, C: (M, D, 0.0 * K, B, C), "K is not positive definite"),
        (lambda M, D, K, B, C: (M, D, K + np.eye(len(K), k=1), B, C), "K is (not symmetric|triangular)"),
        (lambda M, D, K, B, C: (M, 0.0 * D, K, B, C), "not damped|D is zero"),
        (lambda M, D, K, B, C: (M, D, K, 0.0 * B, C), "B is zero"),
        (lambda M, D, K, B, C: (M, D, K, B, 0.0 * C), "C is zero"),
    ],
)
def test_models_that_cannot_be_reduced(change, message: str, is_sparse: bool) -> None:
    n = 40
    K = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    M, D, K, B, C = change(np.eye(n), 0.1 * np.eye(n), K, np.ones((n, 1)), np.eye(1, n))
    if is_sparse:
        M, D, K = (sparse.csc_array(own) for own in (M, D, K))
    with pytest.raises(ltinet.InvalidSystemError, match=message):
        ltinet.reduce(ltinet.SecondOrder(M, D, K, B, C), order=4, method="krylov" if is_sparse else None)


def test_methods_belong_to_their_kind() -> None:
    model = chain(4, seed=0)
    with pytest.raises(ltinet.InvalidSystemError, match="'modes', 'krylov'"):
        ltinet.reduce(model, order=2, method="truncation")
    with pytest.raises(ltinet.InvalidSystemError, match="'truncation'"):
        ltinet.reduce(model.to_state_space(), order=2, method="modes")


# Parts of the reduction.


@pytest.mark.parametrize("d", [0.1, 1.0, 1.4, 1.45, 1.6, 1.7, 1.8, 3.0])
def test_peak_gains_match_maximum(d: float) -> None:
    """The peak moves to zero frequency at d² = 2k."""
    omega = np.linspace(0.0, 2.0, 40_001)
    largest = np.max(1.0 / np.abs(1.0 - omega**2 + 1j * omega * d))
    assert peak_gains(np.ones(1), np.array([d])) == pytest.approx(largest, rel=1e-5)  # ω is 2.5e-5 off, d/4000 at least


def test_poles_of_oscillators() -> None:
    """Two that swing, one of critical damping, and one whose slow pole cancels in the usual formula."""
    stiffness, damping = np.array([4.0, 1.0, 1.0, 1.0]), np.array([0.1, 1.9, 2.0, 1e9])
    poles = Oscillators(stiffness, damping, np.ones((4, 1)), np.ones((1, 4))).poles.reshape(2, 4)
    assert (poles.real < 0.0).all()
    assert poles.sum(axis=0) == pytest.approx(-damping, rel=1e-15)
    assert poles.prod(axis=0) == pytest.approx(stiffness, rel=1e-14)


def _diagonal_model(stiffness: np.ndarray, *, alpha: float) -> ltinet.SecondOrder:
    """All positions are modes, with unit mass, one force on all and one output."""
    n = len(stiffness)
    M, K = sparse.eye_array(n, format="csc"), sparse.diags_array(stiffness, format="csc")
    return ltinet.SecondOrder(M, alpha * M, K, np.ones((n, 1)), np.ones((1, n)))


@pytest.mark.parametrize("n_below", [9, 10, 11])
def test_lowest_modes_end_at_the_widest_gap(n_below: int) -> None:
    """Of twelve stiffnesses the last three may be left out."""
    stiffness = 1.1 ** np.arange(30.0)
    stiffness[n_below:] *= 1.5
    model = make_mechanical_pencil(_diagonal_model(stiffness, alpha=0.1).matrices)
    assert compute_lowest_modes(model, 11).stiffness == pytest.approx(stiffness[:n_below], rel=1e-12)


def test_damping_of_the_size_of_rounding() -> None:
    model = make_mechanical_pencil(_diagonal_model(np.ones(3), alpha=2.0 * EPS).matrices)
    assert model.damping is not None
    assert model.damping.of(np.ones(1)) == pytest.approx(2.0 * EPS)


def test_remainder_counts_modes_that_are_not_normalized() -> None:
    """V = (1 + e) I multiplies the response by (1 + e)²: this counts beside the change of K by at least e k."""
    e, stiffness = 1e-6, np.array([1.0, 2.0, 4.0])
    model = make_mechanical_pencil(_diagonal_model(stiffness, alpha=0.1).matrices)
    assert model.damping is not None
    bound = remainder_bound(model, model.damping, LowestModes(stiffness, (1.0 + e) * np.eye(3)))
    off = ((1.0 + e) ** 2 - 1.0) * np.sqrt(3.0)  # ‖VᵀM V − I‖
    of_K = model.perturbed(3.5 * off * 4.0, 0.0)  # the part of the bound that is larger than either error here
    h2_of_one = 1.0 / np.sqrt(2.0 * 0.1 * stiffness[0])  # of the slowest mode, ∫ dω/2π |1/(k − ω² + iωd)|² = 1/(2dk)
    assert of_K.h2 + off * h2_of_one <= bound.h2 < np.inf
    assert of_K.peak + off * peak_gains(stiffness[:1], np.array([0.1]))[0] <= bound.peak < np.inf


def test_rounding_of_modal_inputs_and_outputs_is_bounded() -> None:
    """Exact rational numbers give the errors of VᵀB and C V, where C V cancels and VᵀB does not."""
    V = np.array([[0.6, 0.8], [0.8, -0.6]])
    model = ltinet.SecondOrder(
        np.eye(2), np.eye(2), np.eye(2), np.array([[1.0], [0.0]]), np.array([[0.8, -0.6 + 1e-9]])
    )
    modes = Oscillators(np.ones(2), np.ones(2), V.T @ model.B, model.C @ V)
    bound = _input_output_rounding(modes, V, model.matrices)
    for j in range(2):
        b = sum(Fraction(v) * Fraction(x) for v, x in zip(V[:, j].tolist(), model.B[:, 0].tolist(), strict=True))
        c = sum(Fraction(v) * Fraction(x) for v, x in zip(V[:, j].tolist(), model.C[0].tolist(), strict=True))
        error = abs(float(b * c - Fraction(float(modes.B[j, 0])) * Fraction(float(modes.C[0, j]))))
        assert error * modes.peaks[j] <= bound.peak
