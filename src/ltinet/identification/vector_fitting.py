"""Vector fitting: relocation of poles shared by all channels, and truncation of the resulting model.

Gustavsen & Semlyen (1999); relaxed (Gustavsen 2006), and with one QR factorisation per channel, of which only the
part of the common unknowns is kept (Deschrijver, Mrozowski, Dhaene & De Zutter 2008). The poles are the zeros of σ(s)
= d + Σ c̃ᵢ φᵢ(s), where σ H ≈ Σ cᵢ φᵢ + d′ in the sense of weighted least squares.

Residues of full rank give N·min(p, m) states. Models of lower order follow by balanced truncation with the Gramians P
= ∫ (jω − A)⁻¹ B Bᵀ (jω − A)⁻* dω/2π over the range of the data, which exist for unstable systems too. Residues of
rank r keep r states, those of rounding or noise none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.block_realization import (
    BlockRealization,
    fit_residues,
    least_squares,
    partial_fractions,
    pole_blocks,
    sort_pairs,
    stack_real_imag,
    to_block_realization,
)
from ltinet.identification.frequency_data import ScaledResponse

_MIN_ROUNDS = 10  # empirical: the poles of noisy data never settle, and only move at random after this many rounds
_MAX_ROUNDS = 30  # while poles converge; speed only, as `_SETTLED`
_SETTLED = 1e-10  # relative movement of all poles; speed only: the descent that follows moves them by more
_MIN_CONSTANT = np.sqrt(
    EPS
)  # smallest |d| by the largest coefficient of σ: below, zeros of σ have lost half their digits
_INITIAL_DAMPING = 0.01  # of Gustavsen and Semlyen: weakly damped pairs respond at all frequencies
# Ratios of 1.1 to 1.3 from 6 on: a fit with up to a fifth too many poles is reduced afterwards.
_POLE_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128)
_IMPROVEMENT = 0.98  # ratio to the smallest error so far that counts as an improvement; below the 5 % that orders need
_PATIENCE = 3  # consecutive vector fits without improvement after which no larger one is computed
_NO_FIT = 0.1  # error above which a lack of improvement means nothing: half of many peaks is as bad as none


# Relocation of poles.


def initial_poles(s: Complex, count: int) -> Complex:
    """Return weakly damped pairs, logarithmically spaced over the range of the data; an odd pole is real."""
    sizes = np.abs(s[s != 0.0])
    low, high = sizes.min(), sizes.max()
    pairs = np.geomspace(low, high, count // 2) if count > 3 else np.full(count // 2, np.sqrt(low * high))
    upper = pairs * (1j - _INITIAL_DAMPING)
    real = [-np.sqrt(low * high)] * (count % 2)
    return sort_pairs(np.concatenate([np.array(real, dtype=complex), upper, upper.conj()]))


def relocate_poles(data: ScaledResponse, poles: Complex) -> Complex:
    """Relocate poles until they settle or move at random."""
    changes: list[float] = []
    for _ in range(_MAX_ROUNDS):
        moved = _relocation_step(data, poles)
        changes.append(_distance(moved, poles))
        poles = moved
        wanders = len(changes) >= _MIN_ROUNDS and changes[-1] > 0.1 * min(changes[-5:-1])
        if changes[-1] <= _SETTLED or wanders:
            break
    return poles


def _distance(new: Complex, old: Complex) -> float:
    """Return the largest relative movement; infinite where a pair became real or vice versa."""
    if np.count_nonzero(new.imag) != np.count_nonzero(old.imag):
        return np.inf
    return float(np.max(np.abs(new - old) / np.abs(new).clip(np.finfo(float).tiny), initial=0.0))


def _relocation_step(data: ScaledResponse, poles: Complex) -> Complex:
    """Return the zeros of σ(s) = d + Σ c̃ᵢ φᵢ(s), where σ H ≈ Σ cᵢ φᵢ + d′ by weighted least squares.

    With σ = d + c̃ (s − A)⁻¹ b they are the eigenvalues of A − b c̃/d.
    """
    strength = float(np.linalg.norm(data.weights * np.abs(data.H)))
    if strength == 0.0:  # H = 0 determines no poles
        return poles
    phi = partial_fractions(data.s, poles)
    size = np.linalg.norm(phi, axis=0)
    phi = phi / size
    equations = _common_equations(data, phi)
    n_points = len(data.s)
    # Relaxed: not d = 1, but Σ Re σ = K, with the weight of one mean equation.
    sigma = np.append(phi.real.sum(axis=0), n_points) / n_points
    M = np.vstack([equations, strength * sigma])
    right = np.zeros(len(M))
    right[-1] = strength
    solution = least_squares(M, right)
    numerator, d = solution[:-1], float(solution[-1])
    if abs(d) < _MIN_CONSTANT * float(np.max(np.abs(solution))):
        d = _MIN_CONSTANT * float(np.max(np.abs(solution))) * (1.0 if d >= 0.0 else -1.0)
    A, b = pole_blocks(poles)
    return sort_pairs(np.linalg.eigvals(A - np.outer(b, numerator / size / d)).astype(complex))


def _common_equations(data: ScaledResponse, phi: Complex) -> Array:
    """Return the equations for the unknowns of σ that remain when those of each channel are eliminated, stacked."""
    K, N = phi.shape
    both: Complex = np.column_stack([phi, np.ones((K, 1))]).astype(np.complex128)
    local = both if data.feedthrough else phi
    H, weights = data.H.reshape(K, -1).T[:, :, None], data.weights.reshape(K, -1).T[:, :, None]
    shared = stack_real_imag(np.asarray(-weights * H * both, dtype=np.complex128))
    if np.all(weights == weights[:, :1]):  # one factorization eliminates the unknowns of all channels
        Q = np.linalg.qr(stack_real_imag(local))[0]
        for _ in range(2):  # the second projection removes the rounding of the first
            shared = shared - Q @ (Q.T @ shared)
        return np.asarray(np.linalg.qr(shared, mode="r")).reshape(-1, N + 1)
    M = np.concatenate([stack_real_imag(np.asarray(weights * local, dtype=np.complex128)), shared], axis=2)
    R = np.asarray(np.linalg.qr(M, mode="r"))
    return np.asarray(R[:, local.shape[1] :, local.shape[1] :]).reshape(-1, N + 1)


# Truncation.


@dataclass(frozen=True)
class BandTruncation:
    """Truncations of one model to all orders, from one decomposition."""

    model: BlockRealization
    singular_values: Array
    """Hankel singular values over the band, descending, without those that are rounding."""
    left: Array
    right: Array

    def of_order(self, order: int) -> BlockRealization:
        """Return the model truncated to its first `order` balanced states."""
        left, right, model = self.left[:order], self.right[:, :order], self.model
        return to_block_realization(left @ model.A @ right, left @ model.B, model.C @ right, model.D)


def balance_over_band(model: BlockRealization, s: Complex) -> BandTruncation:
    """Balance a model over the points s, with square roots of the Gramians by QR, which keeps their small values."""
    weights = np.sqrt(np.gradient(s.imag) / np.pi) if len(s) > 1 else np.ones(1)
    X = weights[:, None, None] * model.state_responses(s)
    Y = weights[:, None, None] * model.output_responses(s)
    input_root = _gramian_root(X.transpose(0, 2, 1).reshape(-1, model.n_states))
    output_root = _gramian_root(Y.reshape(-1, model.n_states))
    U, values, Vt = np.linalg.svd(output_root @ input_root.T)
    rank = int(np.count_nonzero(values > len(values) * EPS * np.max(values, initial=0.0)))
    root = np.sqrt(values[:rank])
    left = (U[:, :rank] / root).T @ output_root
    right = input_root.T @ (Vt[:rank].T / root)
    return BandTruncation(model, values[:rank], left, right)


def _gramian_root(rows: Complex) -> Array:
    """Return R with RᵀR = Re(rowsᴴ rows)."""
    return np.asarray(np.linalg.qr(stack_real_imag(rows), mode="r"))


# Vector fits of growing size.


@dataclass(frozen=True)
class VectorFit:
    """Vector fit with its truncations, and its errors at fitted and at held-out frequencies."""

    n_poles: int
    truncation: BandTruncation
    error: float
    held_out: float

    @property
    def n_states(self) -> int:
        """Number of states above rounding."""
        return len(self.truncation.singular_values)


def compute_vector_fit(data: ScaledResponse, n_poles: int, *, held_out: ScaledResponse | None = None) -> VectorFit:
    """Return the vector fit with `n_poles` poles."""
    poles = relocate_poles(data, initial_poles(data.s, n_poles))
    model = fit_residues(data, poles)
    error = data.error(model.response(data.s))
    other = error if held_out is None else held_out.error(model.response(held_out.s))
    return VectorFit(n_poles, balance_over_band(model, data.s), error, other)


def growing_vector_fits(
    data: ScaledResponse, held_out: ScaledResponse, *, max_order: int, floor: float
) -> Iterator[VectorFit]:
    """Yield vector fits of growing size until the held-out error no longer decreases, or is below `floor`."""
    smallest, waiting = float("inf"), 0
    for n_poles in _POLE_COUNTS:
        if n_poles > max_order or waiting == _PATIENCE or smallest <= floor:
            return
        fit = compute_vector_fit(data, n_poles, held_out=held_out)
        waiting = 0 if fit.held_out < _IMPROVEMENT * smallest or smallest > _NO_FIT else waiting + 1
        smallest = min(smallest, fit.held_out)
        yield fit
