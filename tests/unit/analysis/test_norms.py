"""Intervals of norms hold the norm: proven in balls of 400 bits, for random systems and the data sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ltinet
from ltinet.analysis import norms
from ltinet.errors import InvalidSystemError
from norm_oracle import (
    ball_system,
    h2_square,
    is_above,
    is_below,
    is_below_everywhere,
    is_stable,
    modal_sum,
    precision,
)

WELL_DAMPED = 1e-8  # largest relative width of an interval of a well-damped system


def random_system(seed: int) -> tuple[ltinet.StateSpace, bool]:
    """A stable system of one of six kinds, and whether it is well damped with distinct poles."""
    rng = np.random.default_rng(seed)
    kind = seed // 50
    n, m, p = int(rng.integers(1, 11)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    B, C = rng.standard_normal((n, m)), rng.standard_normal((p, n))
    D = rng.standard_normal((p, m)) * (rng.random() < 0.5)
    dt = 0.1 if kind == 5 else None
    A = rng.standard_normal((n, n))
    if kind == 0:  # well damped
        A -= (np.abs(np.linalg.eigvals(A)).max() + 1.0) * np.eye(n)
    elif kind == 1:  # just stable
        A -= (np.linalg.eigvals(A).real.max() + 10.0 ** rng.uniform(-8, -2)) * np.eye(n)
    elif kind == 2:  # one pole, as often as there are states
        A = np.diag(np.full(n, -1.0)) + np.diag(np.ones(n - 1), 1)
    elif kind == 3:  # states in very different units
        A -= (np.abs(np.linalg.eigvals(A)).max() + 1.0) * np.eye(n)
        units = 10.0 ** rng.uniform(-6, 6, n)
        A, B, C = A * units[:, None] / units, B * units[:, None], C / units
    elif kind == 4:  # oscillations with little damping
        A = np.diag(-(10.0 ** rng.uniform(-5, -1, n)))
        for k in range(0, n - 1, 2):
            A[k + 1, k + 1], A[k, k + 1] = A[k, k], rng.uniform(1, 10)
            A[k + 1, k] = -A[k, k + 1]
        Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
        A = Q @ A @ Q.T
    else:
        A *= rng.uniform(0.3, 0.95) / np.abs(np.linalg.eigvals(A)).max()
    return ltinet.StateSpace(A, B, C, D, dt=dt), kind in (0, 5)


def continuous_frequency(system: ltinet.StateSpace, omega: float) -> float:
    """The frequency of the mapped system in continuous time."""
    if system.dt is None or np.isinf(omega):
        return omega
    angle = omega * system.dt
    return np.inf if angle >= np.pi * (1.0 - 1e-15) else float(np.tan(0.5 * angle))


def check_hinf(system: ltinet.StateSpace) -> ltinet.SystemNorm:
    """Return the H∞ norm after a proof that it is in its interval."""
    found = system.hinf_norm()
    assert found.lower <= found.value <= found.upper
    with precision():
        balls = ball_system(system)
        assert is_stable(balls)
        if found.lower > 0.0:
            # At the stated frequency the gain is within rounding of the upper end, so above the lower end.
            assert is_above(balls, found.lower, continuous_frequency(system, found.frequency))
        if np.isfinite(found.upper):
            assert is_below(balls, found.upper)
    return found


@pytest.mark.default_cases(30)
@pytest.mark.parametrize("seed", range(300))
def test_hinf_intervals_of_random_systems(seed: int) -> None:
    system, is_well_damped = random_system(seed)
    found = check_hinf(system)
    assert found.is_certified
    if is_well_damped:
        assert found.upper - found.lower <= WELL_DAMPED * found.value


@pytest.mark.default_cases(30)
@pytest.mark.parametrize("seed", range(300))
def test_h2_intervals_of_random_systems(seed: int) -> None:
    system, is_well_damped = random_system(seed)
    if system.dt is None:
        system = ltinet.StateSpace(system.A, system.B, system.C)
    found = system.h2_norm()
    with precision():
        if seed // 50 == 2:  # balls of repeated eigenvalues do not separate: the Gramian in integers
            square = _jordan_square(system)
        else:
            square = h2_square(ball_system(system), discrete=system if system.dt else None)
        assert square >= type(square)(found.lower) ** 2
        assert square <= type(square)(found.upper) ** 2
    if is_well_damped:
        assert found.upper - found.lower <= WELL_DAMPED * found.value


def _jordan_square(system: ltinet.StateSpace) -> Any:
    """‖G‖₂² for a Jordan block at −1: ∫ tʲ⁺ᵏ e^{−2t}/(j! k!) dt = (j + k)!/(j! k! 2^{j+k+1})."""
    from math import comb

    from flint import arb

    n = system.n_states
    total = arb(0)
    for c in system.C:
        for b in system.B.T:
            # Response Σ_k h_k t^k e^{−t}/k! with h_k = Σ_i c_i b_{i+k}.
            h = [sum((arb(float(c[i])) * arb(float(b[i + k])) for i in range(n - k)), arb(0)) for k in range(n)]
            total += sum(
                (h[j] * h[k] * comb(j + k, j) / arb(2) ** (j + k + 1) for j in range(n) for k in range(n)), arb(0)
            )
    return total


@pytest.mark.parametrize(
    "name",
    [
        "drum_boiler",
        "mr_demo",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("j100_jet_engine", "lf10_beam_descriptor", "building")
        ),
    ],
)
def test_hinf_intervals_of_data_sets(data_dir: Path, name: str) -> None:
    found = check_hinf(ltinet.load_system(data_dir / f"{name}.mat"))
    assert found.is_certified
    if name != "lf10_beam_descriptor":  # E has the condition number 3e10, and eigenvectors are ill-conditioned
        assert found.upper - found.lower <= WELL_DAMPED * found.value


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cdplayer", "heat", "pde"])
def test_hinf_intervals_of_diagonalizable_data_sets(data_dir: Path, name: str) -> None:
    """The Hamiltonian matrix is too large for balls; sums of modes bound the gain on intervals of frequency."""
    system = ltinet.load_system(data_dir / f"{name}.mat")
    found = system.hinf_norm()
    assert found.is_certified
    assert found.upper - found.lower <= WELL_DAMPED * found.value
    with precision(192):
        balls = ball_system(system)
        modes = modal_sum(balls)
        assert all(rate.real < 0 for rate in modes.rates)
        assert is_above(balls, found.lower, found.frequency)
        assert is_below_everywhere(modes, found.upper, found.frequency)
        assert not is_below_everywhere(modes, found.lower, found.frequency)


def test_sums_of_modes_prove_what_hamiltonian_matrices_do() -> None:
    system = random_system(203)[0]
    system = ltinet.StateSpace(system.A, system.B[:, :2], system.C)
    found = system.hinf_norm()
    with precision():
        modes = modal_sum(ball_system(system))
        assert is_below_everywhere(modes, found.upper, found.frequency)
        assert not is_below_everywhere(modes, found.value * (1.0 - 1e-9), found.frequency)


def test_large_systems_are_estimates(data_dir: Path) -> None:
    found = ltinet.norm(ltinet.load_system(data_dir / "iss.mat"), "hinf")
    assert not found.is_certified
    assert "at most 200 states" in found.notes[0]
    # The interval of an estimate is that of the search: the largest gain on a fine grid at the peak is inside.
    system = ltinet.load_system(data_dir / "iss.mat")
    omega = found.frequency * np.linspace(0.999, 1.001, 2001)
    gain = np.linalg.norm(system.frequency_response(omega), 2, axis=(1, 2)).max()
    assert found.lower * (1 - 1e-6) <= gain <= found.upper * (1 + 1e-12)


def test_both_certificates_hold_the_same_norm() -> None:
    for seed in (0, 60, 170, 270):
        system = random_system(seed)[0].matrices
        by_modes = norms._hinf_norm_by_modes(norms.refined_modes(system))
        by_schur = norms._stable_hinf_norm(norms._schur_system(system))
        assert max(by_modes.lower, by_schur.lower) <= min(by_modes.upper, by_schur.upper)


def test_closed_forms() -> None:
    # ω_n²/(s² + 2ζω_n s + ω_n²): the peak is 1/(2ζ√(1 − ζ²)) at ω_n√(1 − 2ζ²), and ‖G‖₂² = ω_n/(4ζ).
    omega_n, zeta = 3.0, 0.05
    system = ltinet.as_state_space(([omega_n**2], [1.0, 2 * zeta * omega_n, omega_n**2]))
    peak = system.norm("hinf")
    assert_allclose(float(peak), 1 / (2 * zeta * np.sqrt(1 - zeta**2)), rtol=1e-12)
    assert_allclose(peak.frequency, omega_n * np.sqrt(1 - 2 * zeta**2), rtol=1e-6)
    assert_allclose(system.norm().value, np.sqrt(omega_n / (4 * zeta)), rtol=1e-12)
    # x[k+1] = a x[k] + u: gain 1/(1 − a) at zero and variance 1/(1 − a²).
    discrete = ltinet.StateSpace(0.9, 1.0, 1.0, dt=0.5)
    assert_allclose(discrete.hinf_norm().value, 10.0, rtol=1e-12)
    assert discrete.hinf_norm().frequency == 0.0
    assert_allclose(discrete.h2_norm().value, 1 / np.sqrt(1 - 0.81), rtol=1e-12)
    fast = ltinet.StateSpace(-0.9, 1.0, 1.0, dt=0.5)
    assert_allclose(fast.hinf_norm().value, 10.0, rtol=1e-12)
    assert_allclose(fast.hinf_norm().frequency, np.pi / 0.5, rtol=1e-6)


@pytest.mark.parametrize(("A", "dt"), [(0.1, None), (0.0, None), (1.0, 0.1), (-1.2, 0.1)])
def test_norms_of_systems_that_are_not_stable_are_infinite(A: float, dt: float | None) -> None:
    system = ltinet.StateSpace(A, 1.0, 1.0, dt=dt)
    assert system.norm("hinf").value == system.norm("h2").value == np.inf
    assert not system.isstable()
    # On the boundary rounding of A decides, and the interval says so; beyond it the norm is proven to be infinite.
    is_beyond = A > 0.0 if dt is None else abs(A) > 1.0
    assert system.norm("hinf").is_certified == is_beyond
    assert system.norm("hinf").lower == (np.inf if is_beyond else 0.0)


def test_rounding_of_repeated_poles_is_no_proof_of_instability() -> None:
    # (s + 0.01)¹⁰ in random coordinates: computed eigenvalues scatter by 0.03, across the boundary.
    Q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((10, 10)))
    A = Q @ (np.diag(np.full(10, -0.01)) + np.diag(np.ones(9), 1)) @ Q.T
    system = ltinet.StateSpace(A, Q[:, -1], Q[:, 0])
    assert system.poles().real.max() > 0.0
    for kind in ("hinf", "h2"):
        found = system.norm(kind)
        assert (found.lower, found.upper, found.is_certified) == (0.0, np.inf, False)
        assert "within rounding errors" in found.notes[0]


def test_static_gains_and_feedthrough() -> None:
    gain = ltinet.StateSpace([], [], [], [[3.0, 4.0]])
    assert_allclose(gain.norm(np.inf).value, 5.0, rtol=1e-13)
    assert gain.norm(2).value == np.inf
    high_pass = ltinet.StateSpace(-1.0, 1.0, -1.0, 1.0)
    assert high_pass.norm("hinf").frequency == np.inf
    assert_allclose(high_pass.norm("hinf").value, 1.0, rtol=1e-12)
    no_channels = ltinet.StateSpace(-1.0, np.zeros((1, 0)), 1.0)
    assert no_channels.norm("hinf").value == 0.0


def test_delays_do_not_change_norms() -> None:
    system = random_system(0)[0]
    later = system.with_signal_settings(input_delay=0.3, output_delay=1.0)
    assert later.norm("hinf") == system.norm("hinf")


def test_defective_and_flat_systems_have_finite_intervals() -> None:
    # Two samples of delay are an all-pass with a nilpotent A; so is a quotient of mirrored polynomials.
    two_steps = ltinet.StateSpace([[0, 1], [0, 0]], [0, 1], [1, 0], dt=1.0).norm("hinf")
    flat = ltinet.norm((list(np.poly([1.0, 2.0])), list(np.poly([-1.0, -2.0]))), "hinf")
    for found in (two_steps, flat):
        assert found.is_certified
        assert found.lower <= 1.0 <= found.upper <= 1.0 + WELL_DAMPED


def test_unknown_norms_are_refused() -> None:
    with pytest.raises(InvalidSystemError, match='"hinf"'):
        ltinet.norm(([1.0], [1.0, 1.0]), "h1")


def test_norms_print_their_interval() -> None:
    text = str(ltinet.norm(([1.0], [1.0, 1.0]), "hinf"))
    assert "certified" in text
    assert "frequency" in text
