"""Systems drawn at random in modal form, and their frequency responses from the closed form of each mode."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ModalSystem:
    """H(s) = Σ R_k/(s − p_k) + conjugates of the complex ones + D."""

    poles: np.ndarray
    """Of a pair the one with positive imaginary part."""
    residues: np.ndarray
    D: np.ndarray

    @property
    def order(self):
        """States, for residues of rank one."""
        return int(np.sum(np.where(self.poles.imag > 0.0, 2, 1)))

    def response(self, omega):
        """Sum over the modes, (K, p, m)."""
        s = 1j * np.asarray(omega)
        both = self.poles.imag > 0.0
        gains = 1.0 / (s[:, None] - self.poles)
        others = np.where(both, 1.0 / (s[:, None] - self.poles.conj()), 0.0)
        return (
            self.D
            + np.einsum("km,mpq->kpq", gains, self.residues)
            + np.einsum("km,mpq->kpq", others, self.residues.conj())
        )


def draw_modes(rng, *, p=1, m=1, decades=2.0, damping=(0.02, 0.7), direct=True, unstable=0, integrators=0, spread=0.0):
    """A minimal system with 1 to 12 states: natural frequencies from 1 to 10^decades rad/s, rank-one residues."""
    n_pairs, n_real = int(rng.integers(0, 5)), int(rng.integers(1, 5))
    natural = 10.0 ** rng.uniform(0.0, decades, n_pairs)
    ratio = np.exp(rng.uniform(*np.log(damping), n_pairs))
    real = -(10.0 ** rng.uniform(0.0, decades, n_real))
    poles = np.concatenate([real, natural * (-ratio + 1j * np.sqrt(1.0 - ratio**2))])
    poles[len(poles) - unstable :].real *= -1.0
    poles[:integrators] = 0.0
    size = np.maximum(np.abs(poles.real), 0.1)[:, None, None]
    is_complex = poles.imag > 0.0
    left = rng.standard_normal((len(poles), p, 1)) + 1j * is_complex[:, None, None] * rng.standard_normal(
        (len(poles), p, 1)
    )
    right = rng.standard_normal((len(poles), 1, m)) + 1j * is_complex[:, None, None] * rng.standard_normal(
        (len(poles), 1, m)
    )
    units = 10.0 ** rng.uniform(-spread / 2, spread / 2, (p, 1)) * 10.0 ** rng.uniform(-spread / 2, spread / 2, (1, m))
    D = rng.standard_normal((p, m)) if direct else np.zeros((p, m))
    return ModalSystem(poles, size * left * right * units, D * units)


def relative_noise(rng, H, share):
    """Complex Gaussian noise on every number, with this share of its size as standard deviation."""
    return share * H * (rng.standard_normal(H.shape) + 1j * rng.standard_normal(H.shape)) / np.sqrt(2.0)


def root_mean_square(values):
    """Of each channel, over the frequencies."""
    return np.sqrt(np.mean(np.abs(values) ** 2, axis=0))
