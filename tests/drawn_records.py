"""Records of drawn systems, whose truth is known."""

import numpy as np

from ltinet.identification.records import Record


def drawn_system(rng, order, n_inputs, n_outputs, *, negative=False):
    """A stable sampled system with modes 0.2 ≤ |λ| ≤ 0.98: A, B, C."""
    A, at = np.zeros((order, order)), 0
    for _ in range(int(rng.integers(0, order // 2 + 1))):
        pole = rng.uniform(0.2, 0.98) * np.exp(1j * rng.uniform(0.05, np.pi - 0.05))
        A[at : at + 2, at : at + 2] = [[pole.real, -pole.imag], [pole.imag, pole.real]]
        at += 2
    reals = rng.uniform(0.2, 0.98, order - at) * (rng.choice([-1.0, 1.0], order - at) if negative else 1.0)
    A[range(at, order), range(at, order)] = reals
    return A, rng.standard_normal((order, n_inputs)), rng.standard_normal((n_outputs, order))


def run(A, B, C, u, x0=None):
    """Outputs, one step after the other."""
    x, y = np.zeros(len(A)) if x0 is None else x0, np.empty((len(u), len(C)))
    for k, own in enumerate(u):
        y[k], x = C @ x, A @ x + B @ own
    return y


def record(rng, system, n_samples, *, noise=0.0):
    """White inputs, and outputs with white noise of a share of their size."""
    u = rng.standard_normal((n_samples, system[1].shape[1]))
    y = run(*system, u)
    return Record(u, y + noise * y.std(axis=0) * rng.standard_normal(y.shape))
