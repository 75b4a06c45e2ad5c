"""Hypothesis: mechanical models are reduced to oscillators, within their bound wherever there is one."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import ltinet
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
    from ltinet.reduction.mechanical_pencil import (
        LowestModes,
        compute_lowest_modes,
        make_mechanical_pencil,
        remainder_bound,
    )

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
        (lambda M, D, K, B, C: (M, D, K + np.eye(len(K), k=1), B, C), "K is not symmetric"),
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
