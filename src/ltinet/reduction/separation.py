"""Separation of the decaying part of a system from the rest, with a bound on the error of the coordinates.

The coordinates are modal where the modes are well conditioned, and otherwise those of a real Schur form, in which the
parts are quasi-triangular.

Error bound. With x = X z the given system is z' = (F + ΔF) z + (G + ΔG) u, y = (H + ΔH) z. Residuals of X, computed
in many more digits than the products have, bound ΔF, ΔG and ΔH; (s − F − ΔF)⁻¹ = (s − F)⁻¹ Σ (ΔF (s − F)⁻¹)^k bounds
the distance of the transfer functions on the whole imaginary axis.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex, rounding_tolerance
from ltinet.blockdiag.decoupling import decouple
from ltinet.blockdiag.schur import balance_matrix
from ltinet.error_bounds.extended_precision import (
    commutator,
    descriptor_commutator,
    descriptor_product_difference,
    product_difference,
)
from ltinet.reduction.modal_form import Eigenmodes, Modes, compute_eigenmodes, modes_from_blocks
from ltinet.reduction.supremum import frequency_grid
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.separation
# (s I − S)⁻¹ for many s and a complex upper triangular S, as a unitary Schur form has it.

_TILE = 32  # rows that are brought up to date by one product of matrices, before they are solved


def solve_triangular_resolvent(S: Complex, s: Complex, right: Complex) -> Complex:
    """(s I − S)⁻¹ times right-hand sides `(k, len(s) or 1, m)`, by rows from the last, all s together."""
    k, m = len(S), right.shape[-1]
    X = np.empty((k, len(s), m), dtype=np.complex128)
    X[:] = right
    flat = X.reshape(k, -1)
    for stop in range(k, 0, -_TILE):
        start = max(stop - _TILE, 0)
        if stop < k:
            flat[start:stop] += S[start:stop, stop:] @ flat[stop:]
        for i in range(stop - 1, start - 1, -1):
            if i + 1 < stop:
                flat[i] += S[i, i + 1 : stop] @ flat[i + 1 : stop]
            X[i] /= (s - S[i, i])[:, None]
    return X


# MERGED ltinet.reduction.separation
# A system whose modes lie too close together to stand apart: quasi-triangular, in orthonormal coordinates.

_CHUNK = 1 << 20  # complex numbers held at a time


@dataclass(frozen=True, eq=False)
class TriangularForm:
    """z' = F z + G u, y = H z with a real, quasi-triangular F."""

    F: Array
    G: Array
    H: Array

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.F)

    @cached_property
    def schur(self) -> tuple[Complex, Complex]:
        """S and U with F = U S Uᴴ."""
        S, U = linalg.rsf2csf(self.F, np.eye(len(self.F)))
        return np.asarray(S, dtype=np.complex128), np.asarray(U, dtype=np.complex128)

    @property
    def poles(self) -> Complex:
        """The eigenvalues of F."""
        return np.asarray(self.schur[0].diagonal())

    def advanced(self, columns: Array) -> Array:
        """F times columns."""
        return np.asarray(self.F @ columns)

    def integrated(self, columns: Array) -> Array:
        """F⁻¹ times columns."""
        return np.asarray(linalg.solve(self.F, columns, check_finite=False))

    def factors(self) -> tuple[Array, Array]:
        """Real L and R with P = L Lᵀ and Q = R Rᵀ; F is stable."""
        P = linalg.solve_continuous_lyapunov(self.F, -self.G @ self.G.T)
        Q = linalg.solve_continuous_lyapunov(self.F.T, -self.H.T @ self.H)
        return _root(np.asarray(P)), _root(np.asarray(Q))

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """H(iω) − D, `(K, p, m)`, and a bound on what rounding took from it, `(K,)`.

        Back substitution solves a system whose entries are off by n·eps; the triangle itself is off by as much.
        """
        S, U = self.schur
        G, H = U.conj().T @ self.G, self.H @ U
        values = np.empty((len(omega), len(self.H), self.G.shape[1]), dtype=np.complex128)
        rounding = np.empty(len(omega))
        chunk = max(1, _CHUNK // max(S.size, 1))
        for start in range(0, len(omega), chunk):
            own = slice(start, start + chunk)
            values[own], sizes = triangular_response(S, G, H, omega[own])
            rounding[own] = 20.0 * len(S) * EPS * (np.linalg.norm(S) + omega[own]) * sizes
        return values, rounding


def triangular_response(S: Complex, G: Complex, H: Complex, omega: Array) -> tuple[Complex, Array]:
    """H (iω − S)⁻¹ G, and ‖H (iω − S)⁻¹‖ ‖(iω − S)⁻¹ G‖, which what is wrong with S is multiplied by."""
    s = np.asarray(1j * omega, dtype=np.complex128)
    X = solve_triangular_resolvent(S, s, G[:, None, :])
    Y = solve_triangular_resolvent(S.T[::-1, ::-1], s, np.ascontiguousarray(H.T[::-1, None, :]))[::-1]
    values = np.einsum("pi,ikm->kpm", H, X)
    sizes = np.linalg.norm(X, axis=(0, 2)) * np.linalg.norm(Y, axis=(0, 2))
    return np.asarray(values), np.asarray(sizes)


def _root(gramian: Array) -> Array:
    """L with L Lᵀ = the Gramian, in units in which its diagonal is one; what is negative is rounding."""
    gramian = 0.5 * (gramian + gramian.T)
    units = np.sqrt(np.maximum(gramian.diagonal(), 0.0))
    safe = np.where(units > 0.0, units, 1.0)
    values, vectors = np.linalg.eigh(gramian / safe[:, None] / safe)
    return np.asarray(units[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


# MERGED ltinet.reduction.separation
# How far a system in other coordinates is from the one that it stands for, on the whole imaginary axis.
#
# With x = X z the given system is z' = (F + ΔF) z + (G + ΔG) u, y = (H + ΔH) z. Residuals of X, in many more digits than
# the products have, bound ΔF, ΔG and ΔH; (s − F − ΔF)⁻¹ = (s − F)⁻¹ Σ (ΔF (s − F)⁻¹)^k does the rest.

_BANDS = 600  # of frequencies in which a gain counts with its largest value
_SURELY = 4.0  # times what rounding moves a pole: farther from the axis it is surely on its side


@dataclass(frozen=True, eq=False)
class CoordinateResidual:
    """Sizes of ΔF, ΔG and ΔH, entry by entry."""

    F: Array
    G: Array
    H: Array


def coordinate_residual(
    system: SystemMatrices, X: Array, X_inv: Array, *, F: Array, G: Array, H: Array
) -> CoordinateResidual:
    """Measure what is left of a system in the coordinates x = X z."""
    if system.descriptor is None:
        in_states, in_inputs = commutator(system.A, X, F), product_difference(system.B, X, G)
    else:
        E, A, B = system.descriptor
        both = np.hstack([descriptor_commutator(A, E, X, F), descriptor_product_difference(B, E, X, G)])
        in_states, in_inputs = np.split(eliminate_descriptor(E, both), [len(F)], axis=1)
    own = np.abs(np.eye(len(F)) - X_inv @ X) + (len(F) + 4) * EPS * (np.abs(X_inv) @ np.abs(X))
    share = float(np.max(own.sum(axis=1), initial=0.0))  # X_inv is off by so much of X⁻¹
    if not share < 0.5:
        return CoordinateResidual(np.full_like(F, np.inf), np.full_like(G, np.inf), np.full_like(H, np.inf))
    in_F, in_G = np.abs(X_inv @ in_states), np.abs(X_inv @ in_inputs)
    in_F, in_G = in_F + own @ in_F / (1.0 - share), in_G + own @ in_G / (1.0 - share)
    return CoordinateResidual(in_F, in_G, np.abs(product_difference(H, system.C, X)))


def residual_by_modes(found: CoordinateResidual, modes: Modes) -> CoordinateResidual:
    """The same by modes: a pair is one, measured by the modulus of both of its states."""
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    F = np.sqrt(np.add.reduceat(np.add.reduceat(found.F**2, heads, axis=0), heads, axis=1))
    return CoordinateResidual(
        F, np.sqrt(np.add.reduceat(found.G**2, heads, axis=0)), np.sqrt(np.add.reduceat(found.H**2, heads, axis=1))
    )


def certainly_off_axis(found: CoordinateResidual, rates: Array) -> NDArray[np.bool_]:
    """Which modes, by their real parts, are surely not on the imaginary axis: farther than rounding moves them."""
    moved = np.maximum(found.F.sum(axis=0), found.F.sum(axis=1))
    return np.asarray(np.abs(rates) > _SURELY * moved)


class DistanceBound(NamedTuple):
    """Bounds on ‖G − G̃‖ over all frequencies, and on the H2 norm; infinite where there is none."""

    peak: float
    mean: float


def modal_distance(found: CoordinateResidual, modes: Modes) -> DistanceBound:
    """How far the modes G̃ are from their system G; infinitely where a pole may be on the axis.

    Entry by entry |z − z̃| ≤ y (I − M)⁻¹(|ΔF| y |G| + |ΔG|) with y = 1/|iω − λ| and M = |ΔF| max y, in every band of
    frequencies with the largest y of the band. Beyond four times the largest |λ| all of it falls at least as 1/ω.
    """
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    if len(heads) == 0:
        return DistanceBound(0.0, 0.0)
    rates = modes.rates[heads]
    if not certainly_off_axis(found, rates.real).all():
        return DistanceBound(math.inf, math.inf)
    sizes = residual_by_modes(CoordinateResidual(modes.F, modes.G, modes.H), modes)
    through = np.eye(len(heads)) - found.F / np.abs(rates.real)
    K = np.linalg.solve(through, np.hstack([found.F, found.G])) * (1.0 + 1e3 * len(heads) * EPS)
    K_F, K_G = K[:, : len(heads)], K[:, len(heads) :]
    edges = _edges(modes)
    wrong = []
    for y in _largest_gains(rates, edges):
        states = y[:, None] * (K_F @ (y[:, None] * sizes.G) + K_G)
        wrong.append(float(np.linalg.norm(sizes.H @ states + found.H @ (y[:, None] * sizes.G + states))))
    widths = np.append(np.diff(edges), edges[-1])  # the last stands for all beyond: ∫ (ω₁/ω)² dω = ω₁
    return DistanceBound(max(wrong), math.sqrt(float(np.sum(widths * np.square(wrong))) / math.pi))


def _edges(modes: Modes) -> Array:
    """Where bands of frequencies begin, the last of which has no end."""
    omega = frequency_grid(modes.rates).omega
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


def triangular_distance(found: CoordinateResidual, stable: TriangularForm, aside: TriangularForm) -> DistanceBound:
    """The same for coupled modes, by norms: ‖H (s − F)⁻¹‖ ‖ΔF‖ ‖(s − F)⁻¹G‖ and what follows from ΔG and ΔH."""
    resolvent = max(resolvent_bound(stable.F), resolvent_bound(-aside.F))
    in_F, in_G, in_H = (float(np.linalg.norm(own)) for own in (found.F, found.G, found.H))
    if not in_F * resolvent < 0.5:
        return DistanceBound(math.inf, math.inf)
    product = sum(_product(own) for own in (stable, aside))
    sizes = math.hypot(*(float(np.linalg.norm(own.G)) for own in (stable, aside)))
    seen = math.hypot(*(float(np.linalg.norm(own.H)) for own in (stable, aside)))
    ends = resolvent * (seen * in_G + in_H * (sizes + in_G))
    return DistanceBound((2.0 * product * in_F + ends) / (1.0 - in_F * resolvent), math.inf)


def _product(part: TriangularForm) -> float:
    """Sup ‖H (iω − F)⁻¹‖ ‖(iω − F)⁻¹G‖."""
    if part.n_states == 0:
        return 0.0
    S, U = part.schur
    places = frequency_grid(np.concatenate([S.diagonal(), S.diagonal()]))
    pieces = np.array_split(places.omega, max(1, len(places.omega) * S.size // (1 << 22)))
    G, H = U.conj().T @ part.G, part.H @ U
    return places.supremum(np.concatenate([triangular_response(S, G, H, own)[1] for own in pieces]), 0.0)


def resolvent_bound(F: Array) -> float:
    """A bound on sup ‖(iω − F)⁻¹‖: 2‖Y‖/(1 − ‖R‖) for any symmetric Y with FᵀY + Y F = −I + R."""
    if len(F) == 0:
        return 0.0
    Y = np.asarray(linalg.solve_continuous_lyapunov(F.T, -np.eye(len(F))))
    Y = 0.5 * (Y + Y.T)
    rest = F.T @ Y + Y @ F + np.eye(len(F))
    wrong = float(np.linalg.norm(rest)) + 4.0 * len(F) * EPS * float(np.linalg.norm(F)) * float(np.linalg.norm(Y))
    return 2.0 * float(np.linalg.norm(Y)) / (1.0 - wrong) if wrong < 0.5 else math.inf


# MERGED ltinet.reduction.separation
# A system in coordinates in which what decays stands apart from what does not, and how exact these coordinates are.

SubsystemForm = Modes | TriangularForm

_APART = 1e9  # condition number of modes: what it costs is measured afterwards
_UNNOTICED = 1e-7  # of the largest share of a mode: up to here nobody looks for better coordinates


@dataclass(frozen=True, eq=False)
class SeparatedSystem:
    """G(s) = stable(s) + aside(s) + D up to `distance`, on the whole imaginary axis."""

    stable: SubsystemForm
    aside: SubsystemForm
    """Modes that grow, that integrate, or of which rounding cannot tell; they are kept as they are."""
    distance: DistanceBound
    """From the system as it was given."""


def separate_stable(system: SystemMatrices) -> SeparatedSystem:
    """Separate by modes, or by one Schur form where modes lie too close together to stand apart. O(n³)."""
    form = compute_eigenmodes(system.A, most=_APART)
    by_modes = None if form is None else _by_modes(system, form)
    if by_modes is not None and by_modes.distance.peak <= _UNNOTICED * _size(by_modes.stable):
        return by_modes
    together = _by_schur_form(system)
    return together if by_modes is None or together.distance.peak < by_modes.distance.peak else by_modes


def _by_modes(system: SystemMatrices, form: Eigenmodes) -> SeparatedSystem:
    modes = modes_from_blocks(form.rates, form.X_inv @ system.B, system.C @ form.X)
    found = residual_by_modes(coordinate_residual(system, form.X, form.X_inv, F=modes.F, G=modes.G, H=modes.H), modes)
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    apart = certainly_off_axis(found, modes.rates.real[heads])
    decays = np.zeros(modes.n_states, dtype=np.bool_)
    decays[heads] = apart & (modes.rates.real[heads] < 0.0)
    decays[modes.pairs + 1] = decays[modes.pairs]
    return SeparatedSystem(modes.taken(decays), modes.taken(~decays), _distance(found, modes, apart))


def _distance(found: CoordinateResidual, modes: Modes, apart: NDArray[np.bool_]) -> DistanceBound:
    """Of all modes but those on the axis that are exactly what they were: they cannot be off."""
    exact = ~apart & (found.F.sum(axis=0) + found.F.sum(axis=1) + found.G.sum(axis=1) + found.H.sum(axis=0) == 0.0)
    if not exact.any():
        return modal_distance(found, modes)
    kept = ~exact
    whole = np.repeat(kept, np.where(modes.rates.imag[modes.rates.imag >= 0.0] > 0.0, 2, 1))
    rest = CoordinateResidual(found.F[np.ix_(kept, kept)], found.G[kept], found.H[:, kept])
    return modal_distance(rest, modes.taken(whole))


def _by_schur_form(system: SystemMatrices) -> SeparatedSystem:
    units = balance_matrix(system.A, rescale_states=True)
    n = system.n_states
    limit = -rounding_tolerance(n, float(np.linalg.norm(units.matrix, 1)))
    R, Z, n_stable = linalg.schur(units.matrix, output="real", sort=lambda re, im: re < limit)  # noqa: ARG005
    k = int(n_stable)
    Y = _decoupling(np.asarray(R), k)
    X, X_inv = np.array(Z), np.array(Z.T)
    X[:, k:] += X[:, :k] @ Y
    X_inv[:k] -= Y @ X_inv[k:]
    X, X_inv = units.scaling[:, None] * X, X_inv / units.scaling
    F = np.asarray(linalg.block_diag(R[:k, :k], R[k:, k:])) * units.factor
    G, H = X_inv @ system.B, system.C @ X
    found = coordinate_residual(system, X, X_inv, F=F, G=G, H=H)
    stable, aside = TriangularForm(F[:k, :k], G[:k], H[:, :k]), TriangularForm(F[k:, k:], G[k:], H[:, k:])
    return SeparatedSystem(stable, aside, triangular_distance(found, stable, aside))


def _decoupling(R: Array, k: int) -> Array:
    """Y with [[I, −Y], [0, I]] R [[I, Y], [0, I]] block diagonal."""
    if not 0 < k < len(R):
        return np.zeros((k, len(R) - k))
    X = decouple(R, np.array([0, k, len(R)], dtype=np.intp)).X
    return np.asarray(X[:k, k:] / X[k, k])


def _size(modes: SubsystemForm) -> float:
    """The largest gain of a single mode."""
    if not isinstance(modes, Modes) or modes.n_states == 0:
        return 0.0
    sizes = np.linalg.norm(modes.B, axis=1) * np.linalg.norm(modes.C, axis=0) / np.abs(modes.rates.real)
    return float(np.max(sizes))
