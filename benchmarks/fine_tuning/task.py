"""The task: a clamped beam by finite elements, reduced to a few modes, and a real beam that is not quite that one."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

import ltinet


@dataclass(frozen=True)
class Task:
    """The initial model, and records of the true system: inputs and outputs `(records, T, 1)`."""

    known: ltinet.DynamicNetwork
    dt: float
    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]


def clamped_beam(n_elements: int = 12) -> ltinet.StateSpace:
    """A cantilever of length, stiffness and mass one, with 1 % damping: from a force at its end to the speed there."""
    size = 1.0 / n_elements
    k = np.array([[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]], dtype=float)
    m = np.array([[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]], dtype=float)
    units = np.diag([1.0, size, 1.0, size])
    n = 2 * n_elements + 2
    K, M = np.zeros((n, n)), np.zeros((n, n))
    for place in range(0, n - 2, 2):
        own = slice(place, place + 4)
        K[own, own] += units @ k @ units / size**3
        M[own, own] += units @ m @ units * size / 420.0
    squares, shapes = linalg.eigh(K[2:, 2:], M[2:, 2:])  # clamped: no deflection and no slope at the first node
    omega, gains = np.sqrt(squares), shapes[-2]
    return modal(omega, np.full(len(omega), 0.01), gains**2)


def modal(omega: np.ndarray, damping: np.ndarray, gains: np.ndarray) -> ltinet.StateSpace:
    """Oscillators side by side, from force to speed: Σ g s/(s² + 2 d ω s + ω²)."""
    pairs = [np.array([[0.0, w], [-w, -2.0 * d * w]]) for w, d in zip(omega, damping, strict=True)]
    B = np.zeros((2 * len(omega), 1))
    B[1::2, 0] = gains
    C = np.zeros((1, 2 * len(omega)))
    C[0, 1::2] = 1.0
    return ltinet.StateSpace(linalg.block_diag(*pairs), B, C)


def beam_task(*, n_modes: int = 5, steps: int = 1024, n_train: int = 64, n_validation: int = 16) -> Task:
    """The beam reduced, and one with frequencies ±10 %, damping × 0.5 to 2 and gains ±30 %, all by a fixed seed."""
    rng = np.random.default_rng(2024)
    found = ltinet.reduce(clamped_beam(), order=2 * n_modes)
    poles = np.array([own for own in found.net.poles() if own.imag > 0.0])
    omega, damping = np.abs(poles), -poles.real / np.abs(poles)
    gains = np.full(len(omega), 4.0)  # of modes whose mass is one, at the end
    true = modal(
        omega * rng.uniform(0.9, 1.1, len(omega)),
        damping * 2.0 ** rng.uniform(-1.0, 1.0, len(omega)),
        gains * rng.uniform(0.7, 1.3, len(omega)),
    )
    dt = 1.0 / float(omega.max())
    u = rng.standard_normal((n_train + n_validation, steps, 1))
    y = ltinet.construct(true).simulate(u, dt * np.arange(steps)).y
    y = y / y.std()
    scale = float(ltinet.construct(true).simulate(u, dt * np.arange(steps)).y.std())
    known = ltinet.construct((found.system.A, found.system.B, found.system.C / scale, found.system.D / scale))
    return Task(known, dt, (u[:n_train], y[:n_train]), (u[n_train:], y[n_train:]))
