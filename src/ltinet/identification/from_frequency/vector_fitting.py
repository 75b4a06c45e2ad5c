"""Vector fitting: poles that all channels share, moved until they explain the data.

Gustavsen & Semlyen (1999); relaxed (Gustavsen 2006), and with one QR factorisation per channel, of which only the part
of the common unknowns is kept (Deschrijver, Mrozowski, Dhaene & De Zutter 2008).
"""

import numpy as np
from scipy.linalg import lstsq

from ltinet.arrays import Array, Complex
from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.partial_fractions import block_matrices, fractions, paired, stacked

_ROUNDS, _MOST_ROUNDS = 10, 30  # the first for noisy data, on which poles never rest; the second while they converge
_SETTLED = 1e-10  # relative movement of all poles: linear convergence has reached rounding
_SMALLEST_D = 1e-8  # of the denominator's coefficients: below it zeros run to infinity, and 1 is taken instead
_START_DAMPING = 0.01  # Gustavsen & Semlyen: weakly damped pairs see every frequency, and stay well conditioned


def first_poles(s: Complex, count: int) -> Complex:
    """Weakly damped pairs over the range of the data, evenly in the logarithm; an odd one is real."""
    places = np.abs(s[s != 0.0])
    low, high = places.min(), places.max()
    pairs = np.geomspace(low, high, count // 2) if count > 3 else np.full(count // 2, np.sqrt(low * high))
    upper = pairs * (1j - _START_DAMPING)
    real = [-np.sqrt(low * high)] * (count % 2)
    return paired(np.concatenate([np.array(real, dtype=complex), upper, upper.conj()]))


def relocate(data: ScaledResponse, poles: Complex, *, feedthrough: bool, stable: bool) -> Complex:
    """Move the poles until they rest or wander; with `stable` those on the right are reflected."""
    changes: list[float] = []
    for _ in range(_MOST_ROUNDS):
        moved = _moved(data, poles, feedthrough=feedthrough)
        if stable:
            moved = paired(-np.abs(moved.real) + 1j * moved.imag)
        changes.append(_distance(moved, poles))
        poles = moved
        wanders = len(changes) >= _ROUNDS and changes[-1] > 0.1 * min(changes[-5:-1])
        if changes[-1] <= _SETTLED or wanders:
            break
    return poles


def _distance(new: Complex, old: Complex) -> float:
    """Largest relative movement; infinite where a pair became real or the other way round."""
    if np.count_nonzero(new.imag) != np.count_nonzero(old.imag):
        return np.inf
    return float(np.max(np.abs(new - old) / np.abs(new).clip(np.finfo(float).tiny), initial=0.0))


def _moved(data: ScaledResponse, poles: Complex, *, feedthrough: bool) -> Complex:
    """The zeros of σ(s) = d + Σ c̃ᵢ φᵢ(s), where σ H ≈ Σ cᵢ φᵢ + d′ in the sense of weighted least squares."""
    strength = float(np.linalg.norm(data.weights * np.abs(data.H)))
    if strength == 0.0:  # nothing asks for any pole
        return poles
    phi = fractions(data.s, poles)
    size = np.linalg.norm(phi, axis=0)
    phi = phi / size
    equations = _common_equations(data, phi, feedthrough=feedthrough)
    n_points = len(data.s)
    # Relaxed: not d = 1, but Σ Re σ = K, with the weight of one mean equation.
    sigma = np.append(phi.real.sum(axis=0), n_points) / n_points
    M = np.vstack([equations, strength * sigma])
    right = np.zeros(len(M))
    right[-1] = strength
    scale = np.linalg.norm(M, axis=0)
    scale[scale == 0.0] = 1.0
    solution = lstsq(M / scale, right, lapack_driver="gelsy", check_finite=False)[0] / scale
    numerator, d = solution[:-1], float(solution[-1])
    if abs(d) < _SMALLEST_D * float(np.max(np.abs(solution))):
        d = _SMALLEST_D * float(np.max(np.abs(solution))) * (1.0 if d >= 0.0 else -1.0)
    A, b = block_matrices(poles)
    return paired(np.linalg.eigvals(A - np.outer(b, numerator / size / d)).astype(complex))


def _common_equations(data: ScaledResponse, phi: Complex, *, feedthrough: bool) -> Array:
    """Of every channel the equations that are left for the unknowns of σ alone, one below the other."""
    K, N = phi.shape
    both: Complex = np.column_stack([phi, np.ones((K, 1))]).astype(np.complex128)
    own = both if feedthrough else phi
    H, weights = data.H.reshape(K, -1).T[:, :, None], data.weights.reshape(K, -1).T[:, :, None]
    wanted = stacked(np.asarray(-weights * H * both, dtype=np.complex128))
    if np.all(weights == weights[:, :1]):  # the channels' own unknowns have one factorisation for all of them
        Q = np.linalg.qr(stacked(own))[0]
        for _ in range(2):  # the second time takes away what rounding left of the first
            wanted = wanted - Q @ (Q.T @ wanted)
        return np.asarray(np.linalg.qr(wanted, mode="r")).reshape(-1, N + 1)
    M = np.concatenate([stacked(np.asarray(weights * own, dtype=np.complex128)), wanted], axis=2)
    R = np.asarray(np.linalg.qr(M, mode="r"))
    return np.asarray(R[:, own.shape[1] :, own.shape[1] :]).reshape(-1, N + 1)
