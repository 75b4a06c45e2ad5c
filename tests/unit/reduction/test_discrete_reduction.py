"""Reduction of models in discrete time: bounds against frequency responses and simulations."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ltinet.errors import InvalidSystemError


def model(seed: int, n: int = 30) -> ltinet.StateSpace:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
    B, C = rng.standard_normal((n, 2)) * 0.6 ** np.arange(n)[:, None], rng.standard_normal((3, n))
    return ltinet.StateSpace(A, B, C, rng.standard_normal((3, 2)), dt=0.5)


def hankel_values(system: ltinet.StateSpace) -> np.ndarray:
    P = linalg.solve_discrete_lyapunov(system.A, system.B @ system.B.T)
    Q = linalg.solve_discrete_lyapunov(system.A.T, system.C.T @ system.C)
    return np.sqrt(np.sort(np.linalg.eigvals(P @ Q).real)[::-1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["truncation", "singular_perturbation"])
def test_bound_holds_at_all_frequencies(seed: int, method: str) -> None:
    system = model(seed)
    result = ltinet.reduce(system, order=12, method=method)
    assert result.system.dt == 0.5
    assert result.order == 12
    errors, _ = result.errors(np.linspace(0.0, np.pi / 0.5, 2000))
    assert result.error_bound is not None
    assert not result.is_certified  # the rounding of the bilinear map is measured
    assert errors.max() <= result.error_bound
    sigma = hankel_values(system)
    assert np.allclose(result.hankel_values[:12], sigma[:12], rtol=1e-6)
    assert 0.5 * sigma[12] <= result.error_bound <= 2.1 * sigma[12:].sum()
    if method == "singular_perturbation":
        assert np.allclose(result.system.dcgain(), system.dcgain(), rtol=1e-10)


def test_tolerance_and_simulated_error() -> None:
    system = model(7)
    result = ltinet.reduce(system, tolerance=1e-2)
    assert result.error_bound <= 1e-2 * result.gain * (1 + 1e-6)
    assert result.order < 30
    u = np.random.default_rng(0).standard_normal((400, 2))
    full, small = system.simulate(u), result.net.simulate(u)
    error, bound = np.abs(full.y - small.y), small.error_bound(small.t)
    assert (error <= bound).all()
    assert np.isfinite(bound).all()
    assert small.error_parts()["reduction"].max() == pytest.approx(result.error_bound * np.linalg.norm(u), rel=1e-9)
    net = ltinet.construct(system, tolerance=1e-2)
    assert net.dt == 0.5
    assert np.allclose(net.simulate(u).y, small.y, rtol=0, atol=1e-9)
    assert np.isinf(result.net.simulate(u, x0=np.ones(result.order)).error_bound()).all()


def test_integrators_and_growing_states_are_kept() -> None:
    stable = model(3, n=10)
    A = linalg.block_diag(stable.A, [[1.0]], [[1.05]])
    B, C = np.vstack([stable.B, np.ones((2, 2))]), np.hstack([stable.C, np.ones((3, 2))])
    result = ltinet.reduce(ltinet.StateSpace(A, B, C, dt=0.5), order=6)
    assert result.n_retained == 2
    poles = np.sort(np.abs(result.system.poles()))
    assert np.allclose(poles[-2:], [1.0, 1.05], rtol=1e-8)


@pytest.mark.parametrize("poles", [[-1.0], [-1.0, 1.0], [-1.0, -1.0], [-1.0, 1.05, 1.0]])
def test_poles_at_minus_one_are_kept(poles: list[float]) -> None:
    """As of a derivative by the trapezoidal rule, alone and beside an integrator."""
    stable, k = model(4, n=12), len(poles)
    A = linalg.block_diag(stable.A, np.diag(poles) + 0.5 * np.eye(k, k=1) * (len(set(poles)) < k))
    T = np.eye(12 + k) + 0.2 * np.random.default_rng(1).standard_normal((12 + k, 12 + k))
    B, C = np.vstack([stable.B, np.ones((k, 2))]), np.hstack([stable.C, np.ones((3, k))])
    system = ltinet.StateSpace(T @ A @ np.linalg.inv(T), T @ B, C @ np.linalg.inv(T), stable.D, dt=0.5)
    result = ltinet.reduce(system, order=6 + k)
    assert (result.order, result.n_retained) == (6 + k, k)
    assert any("do not decay" in note for note in result.notes)
    expected = ltinet.reduce(stable, order=6)
    assert np.allclose(result.hankel_values[:6], expected.hankel_values[:6], rtol=1e-6)
    omega = np.linspace(0.1, np.pi / 0.5 - 0.1, 300)
    difference = system.frequency_response(omega) - result.system.frequency_response(omega)
    errors = np.linalg.norm(difference, 2, axis=(1, 2))
    assert result.error_bound is not None
    assert errors.max() <= result.error_bound
    if 1.0 not in poles:  # at an integrator the measured rounding is large
        assert result.error_bound <= 1.001 * expected.error_bound + 1e-6
    u = np.random.default_rng(0).standard_normal((40, 2))
    off = np.abs(system.simulate(u).y - result.system.simulate(u).y)
    assert off.max() <= result.error_bound * np.linalg.norm(u)
    with pytest.raises(InvalidSystemError, match=f"order is 0, but {k} states .* at least {k}"):
        ltinet.reduce(system, order=0)


def test_what_cannot_be_reduced_is_refused() -> None:
    system = ltinet.StateSpace(-np.eye(2), np.ones((2, 1)), np.ones((1, 2)), dt=0.5)
    with pytest.raises(InvalidSystemError, match="no pole"):
        ltinet.reduce(system, order=1)
    with pytest.raises(InvalidSystemError, match="to_continuous"):
        ltinet.reduce(ltinet.construct(model(0)), order=3, method="neurons")
