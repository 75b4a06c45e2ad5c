"""Hypothesis: values at the places suffice for the supremum of a rational function of these poles and its H2 norm."""

import numpy as np
import pytest

from ltinet._util.frequency_supremum import frequency_grid, mean_square, pole_phase, spectral_norms


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Poles with their conjugates, residues and a value at infinity of a real rational function."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    decay, turn = 10.0 ** rng.uniform(-4, 2, n), 10.0 ** rng.uniform(-2, 2, n) * (rng.random(n) < 0.6)
    residues = (rng.standard_normal(n) + 1j * rng.standard_normal(n) * (turn > 0.0)) * decay ** rng.uniform(0, 1.5)
    first = -decay + 1j * turn
    pairs = turn > 0.0
    poles = np.concatenate([first, first[pairs].conj()])
    return poles, np.concatenate([residues, residues[pairs].conj()]), float(rng.choice([0.0, 1e-3, 1.0]))


@pytest.mark.parametrize("seed", range(40))
def test_no_peak_hides_between_places(seed: int) -> None:
    poles, residues, constant = drawn(seed)

    def size(omega: np.ndarray) -> np.ndarray:
        return np.abs(constant + (residues / (1j * omega[:, None] - poles)).sum(axis=1))

    places = frequency_grid(poles)
    supremum = places.supremum(size(places.omega), constant)
    angles = np.linspace(-1.57, 1.57, 2001)
    near = [pole.imag + abs(pole.real) * np.tan(angles) for pole in poles]
    omega = np.concatenate([np.geomspace(1e-7, 1e6, 20000), *near])
    largest = max(float(size(omega[omega >= 0.0]).max()), constant)
    assert largest <= supremum * (1.0 + 1e-12)
    assert supremum <= largest / np.cos(0.25 * places.widest) * (1.0 + 1e-12)
    assert places.widest <= 1.0  # so that the factor is 1.033 at most


@pytest.mark.parametrize("seed", range(40))
def test_the_mean_square_is_exact(seed: int) -> None:
    poles, residues, _ = drawn(seed)
    found = mean_square(poles, lambda omega: np.abs((residues / (1j * omega[:, None] - poles)).sum(axis=1)) ** 2)
    exact = float((-np.outer(residues, residues.conj()) / (poles[:, None] + poles.conj())).sum().real)
    assert found == pytest.approx(exact, rel=1e-9)  # cancellation in the double sum is what is left


def test_phase_counts_poles() -> None:
    poles = np.array([-1.0 + 2j, -1.0 - 2j, -3.0], dtype=np.complex128)
    assert pole_phase(poles, np.zeros(1)) == pytest.approx(0.0)
    assert pole_phase(poles, np.array([1e12])) == pytest.approx(3 * np.pi)


def test_poles_that_no_grid_resolves_have_no_bound() -> None:
    """Neighbouring doubles at the frequency of a double pole are farther apart than it is wide."""
    poles = np.array([-1e-30 + 2j, -1e-30 - 2j] * 2, dtype=np.complex128)
    grid = frequency_grid(poles)
    assert grid.supremum(np.zeros(len(grid.omega)), 0.0) == np.inf


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (2, 3), (3, 2), (4, 4)])
def test_spectral_norms_match_svd(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    values = rng.standard_normal((20, *shape)) + 1j * rng.standard_normal((20, *shape))
    expected = np.linalg.svd(values, compute_uv=False)[:, 0]
    assert spectral_norms(values) == pytest.approx(
        expected, rel=1e-13
    )  # sums of at most 16 products, and 64 eps on top
