"""Mechanical models for tests: membranes and chains of masses, and their responses by an independent way."""

import numpy as np
from scipy import sparse

from ltinet import SecondOrder
from ltinet._util.floating_point import Array, Complex


def membrane(side: int, *, alpha: float, beta: float, extra: float = 0.0) -> SecondOrder:
    """A square membrane on a grid, one force spread and one at a point; `extra` is a damper at one place."""
    n, h = side * side, 1.0 / (side + 1)
    along = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side)) / h**2
    eye = sparse.eye_array(side)
    K = sparse.csc_array(sparse.kron(along, eye) + sparse.kron(eye, along))
    M = sparse.eye_array(n, format="csc")
    D = alpha * M + beta * K
    if extra:
        D = D + sparse.csc_array(([extra], ([n // 4], [n // 4])), shape=(n, n))
    x = np.linspace(h, 1.0 - h, side)
    B, C = np.zeros((n, 2)), np.zeros((2, n))
    B[:, 0], B[n // 3, 1] = h * np.outer(np.exp(-40.0 * (x - 0.3) ** 2), np.exp(-40.0 * (x - 0.4) ** 2)).ravel(), 1.0
    C[0], C[1, n // 2 + side // 3] = h * np.outer(x < 0.5, x > 0.5).ravel(), 1.0
    return SecondOrder(M, D, K, B, C)


def chain(n: int, *, seed: int, alpha: float = 0.05, beta: float = 1e-4, extra: float = 0.0) -> SecondOrder:
    """Masses between springs, all drawn; `extra` is a damper between the first mass and the wall."""
    rng = np.random.default_rng(seed)
    springs = 1e3 * 10.0 ** rng.uniform(-0.5, 0.5, n + 1)
    K = np.diag(springs[:-1] + springs[1:]) - np.diag(springs[1:-1], 1) - np.diag(springs[1:-1], -1)
    M = np.diag(rng.uniform(0.5, 2.0, n))
    D = alpha * M + beta * K
    D[0, 0] += extra
    return SecondOrder(M, D, K, rng.standard_normal((n, 2)), rng.standard_normal((2, n)))


def response(model: SecondOrder, omega: Array) -> Complex:
    """C (K − ω²M + iωD)⁻¹B by arrays, frequency by frequency."""
    M, D, K = (own if isinstance(own, np.ndarray) else own.toarray() for own in (model.M, model.D, model.K))
    return np.array([model.C @ np.linalg.solve(K - w * w * M + 1j * w * D, model.B.astype(complex)) for w in omega])


def frequencies(model: SecondOrder, *, count: int = 40) -> Array:
    """Rest, a sweep, and beside every resonance."""
    from scipy import linalg

    M, K = (own if isinstance(own, np.ndarray) else own.toarray() for own in (model.M, model.K))
    resonances = np.sqrt(linalg.eigh(K, M, eigvals_only=True))
    beside = np.concatenate([resonances[:count] * (1.0 + off) for off in (-1e-3, 0.0, 1e-3)])
    return np.unique(np.concatenate([[0.0], np.geomspace(resonances[0] / 10.0, 3.0 * resonances[-1], count), beside]))
