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
from scipy.linalg import lstsq

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.block_realization import (
    BlockRealization,
    fit_residues,
    partial_fractions,
    pole_blocks,
    sort_pairs,
    stack_real_imag,
    to_block_realization,
)
from ltinet.identification.frequency_data import ScaledResponse

# MERGED ltinet.identification.vector_fitting
# Vector fitting: poles that all channels share, moved until they explain the data.
#
# Gustavsen & Semlyen (1999); relaxed (Gustavsen 2006), and with one QR factorisation per channel, of which only the part
# of the common unknowns is kept (Deschrijver, Mrozowski, Dhaene & De Zutter 2008).

_ROUNDS, _MOST_ROUNDS = 10, 30  # the first for noisy data, on which poles never rest; the second while they converge
_SETTLED = 1e-10  # relative movement of all poles: linear convergence has reached rounding
_SMALLEST_D = 1e-8  # of the denominator's coefficients: below it zeros run to infinity, and 1 is taken instead
_START_DAMPING = 0.01  # Gustavsen & Semlyen: weakly damped pairs see every frequency, and stay well conditioned


def initial_poles(s: Complex, count: int) -> Complex:
    """Weakly damped pairs over the range of the data, evenly in the logarithm; an odd one is real."""
    places = np.abs(s[s != 0.0])
    low, high = places.min(), places.max()
    pairs = np.geomspace(low, high, count // 2) if count > 3 else np.full(count // 2, np.sqrt(low * high))
    upper = pairs * (1j - _START_DAMPING)
    real = [-np.sqrt(low * high)] * (count % 2)
    return sort_pairs(np.concatenate([np.array(real, dtype=complex), upper, upper.conj()]))


def relocate_poles(data: ScaledResponse, poles: Complex, *, feedthrough: bool, stable: bool) -> Complex:
    """Move the poles until they rest or wander; with `stable` those on the right are reflected."""
    changes: list[float] = []
    for _ in range(_MOST_ROUNDS):
        moved = _relocation_step(data, poles, feedthrough=feedthrough)
        if stable:
            moved = sort_pairs(-np.abs(moved.real) + 1j * moved.imag)
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


def _relocation_step(data: ScaledResponse, poles: Complex, *, feedthrough: bool) -> Complex:
    """The zeros of σ(s) = d + Σ c̃ᵢ φᵢ(s), where σ H ≈ Σ cᵢ φᵢ + d′ in the sense of weighted least squares."""
    strength = float(np.linalg.norm(data.weights * np.abs(data.H)))
    if strength == 0.0:  # nothing asks for any pole
        return poles
    phi = partial_fractions(data.s, poles)
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
    A, b = pole_blocks(poles)
    return sort_pairs(np.linalg.eigvals(A - np.outer(b, numerator / size / d)).astype(complex))


def _common_equations(data: ScaledResponse, phi: Complex, *, feedthrough: bool) -> Array:
    """Of every channel the equations that are left for the unknowns of σ alone, one below the other."""
    K, N = phi.shape
    both: Complex = np.column_stack([phi, np.ones((K, 1))]).astype(np.complex128)
    own = both if feedthrough else phi
    H, weights = data.H.reshape(K, -1).T[:, :, None], data.weights.reshape(K, -1).T[:, :, None]
    wanted = stack_real_imag(np.asarray(-weights * H * both, dtype=np.complex128))
    if np.all(weights == weights[:, :1]):  # the channels' own unknowns have one factorisation for all of them
        Q = np.linalg.qr(stack_real_imag(own))[0]
        for _ in range(2):  # the second time takes away what rounding left of the first
            wanted = wanted - Q @ (Q.T @ wanted)
        return np.asarray(np.linalg.qr(wanted, mode="r")).reshape(-1, N + 1)
    M = np.concatenate([stack_real_imag(np.asarray(weights * own, dtype=np.complex128)), wanted], axis=2)
    R = np.asarray(np.linalg.qr(M, mode="r"))
    return np.asarray(R[:, own.shape[1] :, own.shape[1] :]).reshape(-1, N + 1)


# MERGED ltinet.identification.vector_fitting
# Fewer states for nearly the same response: balanced truncation with Gramians of the measured frequencies.
#
# P = ∫ (jω − A)⁻¹ B Bᵀ (jω − A)⁻* dω/2π over the range of the data exists for unstable systems too, and asks what the
# data ask: how much a state is moved and seen there. Residues of rank r keep r states, those of rounding or noise none.


@dataclass(frozen=True)
class BandTruncation:
    """All truncations of one model, from one decomposition."""

    model: BlockRealization
    singular_values: Array
    """How much each state of the balanced model matters, descending, without those that are rounding."""
    left: Array
    right: Array

    def of_order(self, order: int) -> BlockRealization:
        """The model with its `order` most important states."""
        left, right, model = self.left[:order], self.right[:, :order], self.model
        return to_block_realization(left @ model.A @ right, left @ model.B, model.C @ right, model.D)


def balance_over_band(model: BlockRealization, s: Complex) -> BandTruncation:
    """Balance a model over the places s; square roots of the Gramians by QR, so that no digit is squared away."""
    spread = np.sqrt(np.gradient(s.imag) / np.pi) if len(s) > 1 else np.ones(1)
    X = spread[:, None, None] * model.state_responses(s)
    Y = spread[:, None, None] * model.output_responses(s)
    reached = _root(X.transpose(0, 2, 1).reshape(-1, model.n_states))
    seen = _root(Y.reshape(-1, model.n_states))
    U, values, Vt = np.linalg.svd(seen @ reached.T)
    kept = int(np.count_nonzero(values > len(values) * EPS * np.max(values, initial=0.0)))
    root = np.sqrt(values[:kept])
    left = (U[:, :kept] / root).T @ seen
    right = reached.T @ (Vt[:kept].T / root)
    return BandTruncation(model, values[:kept], left, right)


def _root(rows: Complex) -> Array:
    """R with RᵀR = Re(rowsᴴ rows)."""
    return np.asarray(np.linalg.qr(stack_real_imag(rows), mode="r"))


# MERGED ltinet.identification.vector_fitting
# Vector fits with more and more poles, residues of full rank: what models of any order are truncated from.

_POLE_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128)
_IMPROVEMENT = 0.98  # of the smallest error so far: what counts as an improvement
_PATIENCE = 3  # vector fits without one, one after the other, before no more are tried
_NO_FIT = 0.1  # error above which a lack of improvement says nothing: half of many peaks is as bad as none of them


@dataclass(frozen=True)
class VectorFit:
    """A vector fit and its truncations, with its errors where it was fitted and where it was not."""

    n_poles: int
    truncation: BandTruncation
    error: float
    held_out: float

    @property
    def n_states(self) -> int:
        """States that are more than rounding."""
        return len(self.truncation.singular_values)


def compute_vector_fit(
    data: ScaledResponse, n_poles: int, *, feedthrough: bool, held_out: ScaledResponse | None = None
) -> VectorFit:
    """One vector fit."""
    poles = relocate_poles(data, initial_poles(data.s, n_poles), feedthrough=feedthrough, stable=False)
    model = fit_residues(data, poles, feedthrough=feedthrough)
    error = data.error(model.response(data.s))
    other = error if held_out is None else held_out.error(model.response(held_out.s))
    return VectorFit(n_poles, balance_over_band(model, data.s), error, other)


def growing_vector_fits(
    data: ScaledResponse, held_out: ScaledResponse, *, feedthrough: bool, most: int, floor: float
) -> Iterator[VectorFit]:
    """Vector fits of growing size until the data that were held out are fitted no better, or as well as rounding."""
    smallest, waiting = float("inf"), 0
    for n_poles in _POLE_COUNTS:
        if n_poles > most or waiting == _PATIENCE or smallest <= floor:
            return
        found = compute_vector_fit(data, n_poles, feedthrough=feedthrough, held_out=held_out)
        waiting = 0 if found.held_out < _IMPROVEMENT * smallest or smallest > _NO_FIT else waiting + 1
        smallest = min(smallest, found.held_out)
        yield found
