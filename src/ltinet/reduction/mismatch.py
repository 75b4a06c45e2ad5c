"""How far a system in other coordinates is from the one that it stands for, on the whole imaginary axis.

With x = X z the given system is z' = (F + ΔF) z + (G + ΔG) u, y = (H + ΔH) z. Residuals of X, in many more digits than
the products have, bound ΔF, ΔG and ΔH; (s − F − ΔF)⁻¹ = (s − F)⁻¹ Σ (ΔF (s − F)⁻¹)^k does the rest.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.bounds.residual import (
    commutator,
    descriptor_commutator,
    descriptor_difference,
    difference,
)
from ltinet.model.descriptor import eliminate_descriptor
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.modal import Modes
from ltinet.reduction.supremum import places_for
from ltinet.reduction.triangular import Triangular, triangle_response
from ltinet.tolerances import EPS

_BANDS = 600  # of frequencies in which a gain counts with its largest value
_SURELY = 4.0  # times what rounding moves a pole: farther from the axis it is surely on its side


@dataclass(frozen=True, eq=False)
class Mismatch:
    """Sizes of ΔF, ΔG and ΔH, entry by entry."""

    F: Array
    G: Array
    H: Array


def mismatch_of(system: SystemMatrices, X: Array, X_inv: Array, *, F: Array, G: Array, H: Array) -> Mismatch:
    """Measure what is left of a system in the coordinates x = X z."""
    if system.descriptor is None:
        in_states, in_inputs = commutator(system.A, X, F), difference(system.B, X, G)
    else:
        E, A, B = system.descriptor
        both = np.hstack([descriptor_commutator(A, E, X, F), descriptor_difference(B, E, X, G)])
        in_states, in_inputs = np.split(eliminate_descriptor(E, both), [len(F)], axis=1)
    own = np.abs(np.eye(len(F)) - X_inv @ X) + (len(F) + 4) * EPS * (np.abs(X_inv) @ np.abs(X))
    share = float(np.max(own.sum(axis=1), initial=0.0))  # X_inv is off by so much of X⁻¹
    if not share < 0.5:
        return Mismatch(np.full_like(F, np.inf), np.full_like(G, np.inf), np.full_like(H, np.inf))
    in_F, in_G = np.abs(X_inv @ in_states), np.abs(X_inv @ in_inputs)
    in_F, in_G = in_F + own @ in_F / (1.0 - share), in_G + own @ in_G / (1.0 - share)
    return Mismatch(in_F, in_G, np.abs(difference(H, system.C, X)))


def in_modes(found: Mismatch, modes: Modes) -> Mismatch:
    """The same by modes: a pair is one, measured by the modulus of both of its states."""
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    F = np.sqrt(np.add.reduceat(np.add.reduceat(found.F**2, heads, axis=0), heads, axis=1))
    return Mismatch(
        F, np.sqrt(np.add.reduceat(found.G**2, heads, axis=0)), np.sqrt(np.add.reduceat(found.H**2, heads, axis=1))
    )


def surely_apart(found: Mismatch, rates: Array) -> NDArray[np.bool_]:
    """Which modes, by their real parts, are surely not on the imaginary axis: farther than rounding moves them."""
    moved = np.maximum(found.F.sum(axis=0), found.F.sum(axis=1))
    return np.asarray(np.abs(rates) > _SURELY * moved)


class Distance(NamedTuple):
    """Bounds on ‖G − G̃‖ over all frequencies, and on the H2 norm; infinite where there is none."""

    peak: float
    mean: float


def modal_distance(found: Mismatch, modes: Modes) -> Distance:
    """How far the modes G̃ are from their system G; infinitely where a pole may be on the axis.

    Entry by entry |z − z̃| ≤ y (I − M)⁻¹(|ΔF| y |G| + |ΔG|) with y = 1/|iω − λ| and M = |ΔF| max y, in every band of
    frequencies with the largest y of the band. Beyond four times the largest |λ| all of it falls at least as 1/ω.
    """
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    if len(heads) == 0:
        return Distance(0.0, 0.0)
    rates = modes.rates[heads]
    if not surely_apart(found, rates.real).all():
        return Distance(math.inf, math.inf)
    sizes = in_modes(Mismatch(modes.F, modes.G, modes.H), modes)
    through = np.eye(len(heads)) - found.F / np.abs(rates.real)
    K = np.linalg.solve(through, np.hstack([found.F, found.G])) * (1.0 + 1e3 * len(heads) * EPS)
    K_F, K_G = K[:, : len(heads)], K[:, len(heads) :]
    edges = _edges(modes)
    wrong = []
    for y in _largest_gains(rates, edges):
        states = y[:, None] * (K_F @ (y[:, None] * sizes.G) + K_G)
        wrong.append(float(np.linalg.norm(sizes.H @ states + found.H @ (y[:, None] * sizes.G + states))))
    widths = np.append(np.diff(edges), edges[-1])  # the last stands for all beyond: ∫ (ω₁/ω)² dω = ω₁
    return Distance(max(wrong), math.sqrt(float(np.sum(widths * np.square(wrong))) / math.pi))


def _edges(modes: Modes) -> Array:
    """Where bands of frequencies begin, the last of which has no end."""
    omega = places_for(modes.rates).omega
    some = omega[np.unique(np.linspace(0, len(omega) - 1, min(len(omega), _BANDS)).astype(np.intp))]
    last = 4.0 * float(np.max(np.abs(modes.rates)))
    return np.append(some[some < last], last)


def _largest_gains(rates: Complex, edges: Array) -> Array:
    """The largest 1/|iω − λ| of every mode in each band, `(bands, modes)`."""
    low, high = edges[:, None], np.append(edges[1:], np.inf)[:, None]
    away = np.maximum(np.maximum(low - rates.imag, rates.imag - high), 0.0)
    gains = np.asarray(1.0 / np.hypot(rates.real, away))
    gains[-1] = 4.0 / 3.0 / edges[-1]  # |iω − λ| ≥ ω − |λ|
    return gains


def triangular_distance(found: Mismatch, stable: Triangular, aside: Triangular) -> Distance:
    """The same for coupled modes, by norms: ‖H (s − F)⁻¹‖ ‖ΔF‖ ‖(s − F)⁻¹G‖ and what follows from ΔG and ΔH."""
    resolvent = max(resolvent_bound(stable.F), resolvent_bound(-aside.F))
    in_F, in_G, in_H = (float(np.linalg.norm(own)) for own in (found.F, found.G, found.H))
    if not in_F * resolvent < 0.5:
        return Distance(math.inf, math.inf)
    product = sum(_product(own) for own in (stable, aside))
    sizes = math.hypot(*(float(np.linalg.norm(own.G)) for own in (stable, aside)))
    seen = math.hypot(*(float(np.linalg.norm(own.H)) for own in (stable, aside)))
    ends = resolvent * (seen * in_G + in_H * (sizes + in_G))
    return Distance((2.0 * product * in_F + ends) / (1.0 - in_F * resolvent), math.inf)


def _product(part: Triangular) -> float:
    """Sup ‖H (iω − F)⁻¹‖ ‖(iω − F)⁻¹G‖."""
    if part.n_states == 0:
        return 0.0
    S, U = part.schur
    places = places_for(np.concatenate([S.diagonal(), S.diagonal()]))
    pieces = np.array_split(places.omega, max(1, len(places.omega) * S.size // (1 << 22)))
    G, H = U.conj().T @ part.G, part.H @ U
    return places.supremum(np.concatenate([triangle_response(S, G, H, own)[1] for own in pieces]), 0.0)


def resolvent_bound(F: Array) -> float:
    """A bound on sup ‖(iω − F)⁻¹‖: 2‖Y‖/(1 − ‖R‖) for any symmetric Y with FᵀY + Y F = −I + R."""
    if len(F) == 0:
        return 0.0
    Y = np.asarray(linalg.solve_continuous_lyapunov(F.T, -np.eye(len(F))))
    Y = 0.5 * (Y + Y.T)
    rest = F.T @ Y + Y @ F + np.eye(len(F))
    wrong = float(np.linalg.norm(rest)) + 4.0 * len(F) * EPS * float(np.linalg.norm(F)) * float(np.linalg.norm(Y))
    return 2.0 * float(np.linalg.norm(Y)) / (1.0 - wrong) if wrong < 0.5 else math.inf
