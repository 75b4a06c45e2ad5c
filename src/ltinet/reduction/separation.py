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
from ltinet._util.frequency_supremum import frequency_grid
from ltinet.blockdiag.decoupling import decouple
from ltinet.blockdiag.eigenmodes import Eigenmodes, QuasiTriangularMatrix, compute_eigenmodes
from ltinet.blockdiag.schur import SchurForm, balance_matrix, balanced_schur
from ltinet.network.block_system import decomposition_residual
from ltinet.reduction.modal_form import Modes, modes_from_blocks
from ltinet.systems.system_matrices import SystemMatrices

_CHUNK = 1 << 20  # complex numbers held at a time, 16 MB
_MAX_BANDS = 600  # of frequencies, each of which counts with its largest gain: any number gives a bound
# Ratio of |Re λ| to the bound on its rounding: 1 proves the sign, 4 keeps 1/(|Re λ| − bound) within 4/3.
_OFF_AXIS = 4.0
# Limit on cond(V)/n of eigenvectors V; speed only, since the resulting error is bounded afterwards.
_MAX_CONDITION = 1e9
# Of the largest gain of a mode: modal coordinates are taken without a comparison; speed only.
_NEGLIGIBLE_DISTANCE = 1e-7


class DistanceBound(NamedTuple):
    """Bounds on ‖G − G̃‖ over all frequencies and in the H2 norm; infinite where nothing is proven."""

    peak: float
    h2: float


UNBOUNDED = DistanceBound(math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class TriangularForm:
    """System z' = F z + G u, y = H z with a real, quasi-triangular F."""

    F: Array
    G: Array
    H: Array

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.F)

    @cached_property
    def triangle(self) -> QuasiTriangularMatrix:
        """F, for solutions with many s I − F."""
        return QuasiTriangularMatrix(self.F)

    @cached_property
    def poles(self) -> Complex:
        """Eigenvalues of F."""
        return SchurForm(self.F, self.F).all_eigenvalues

    def multiply(self, columns: Array) -> Array:
        """Return F times columns."""
        return np.asarray(self.F @ columns)

    def solve(self, columns: Array) -> Array:
        """Return F⁻¹ times columns."""
        return np.asarray(linalg.solve(self.F, columns, check_finite=False))

    def factors(self) -> tuple[Array, Array]:
        """Return real L and R with Gramians P = L Lᵀ and Q = R Rᵀ; F is stable."""
        P = linalg.solve_continuous_lyapunov(self.F, -self.G @ self.G.T)
        Q = linalg.solve_continuous_lyapunov(self.F.T, -self.H.T @ self.H)
        return _gramian_factor(np.asarray(P)), _gramian_factor(np.asarray(Q))

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """Return H(iω) − D, `(K, p, m)`, and a bound on its rounding error, `(K,)`.

        Back substitution solves a system whose entries are off by n·eps; the triangle itself is off by as much.
        """
        n, size = self.n_states, float(np.linalg.norm(self.F))
        values = np.empty((len(omega), len(self.H), self.G.shape[1]), dtype=np.complex128)
        rounding = np.empty(len(omega))
        chunk = max(1, _CHUNK // max(n * n, 1))
        for start in range(0, len(omega), chunk):
            part = slice(start, start + chunk)
            values[part], sizes = self.response_and_sizes(omega[part])
            rounding[part] = 20.0 * n * EPS * (size + omega[part]) * sizes
        return values, rounding

    def response_and_sizes(self, omega: Array) -> tuple[Complex, Array]:
        """Return H (iω − F)⁻¹ G and ‖H (iω − F)⁻¹‖ ‖(iω − F)⁻¹ G‖, the factor by which errors of F count."""
        s = np.asarray(1j * omega, dtype=np.complex128)
        X = self.triangle.solve(s, self.G[:, :, None])
        Y = self.triangle.reversed_transpose.solve(s, self.H.T[::-1, :, None])
        values = np.einsum("pi,imk->kpm", self.H, X)
        sizes = np.linalg.norm(X, axis=(0, 1)) * np.linalg.norm(Y, axis=(0, 1))
        return np.asarray(values), np.asarray(sizes)


def _gramian_factor(gramian: Array) -> Array:
    """Return L with L Lᵀ = the Gramian, scaled to unit diagonal first; negative eigenvalues are rounding."""
    gramian = 0.5 * (gramian + gramian.T)
    units = np.sqrt(np.maximum(gramian.diagonal(), 0.0))
    safe = np.where(units > 0.0, units, 1.0)
    values, vectors = np.linalg.eigh(gramian / safe[:, None] / safe)
    return np.asarray(units[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


# Bounds on the distance between a system and its form in other coordinates.


@dataclass(frozen=True, eq=False)
class CoordinateResidual:
    """Bounds on ΔF, ΔG and ΔH, entry by entry."""

    F: Array
    G: Array
    H: Array


def coordinate_residual(
    system: SystemMatrices, X: Array, X_inv: Array, *, F: Array, G: Array, H: Array
) -> CoordinateResidual:
    """Bound the residual of a system in the coordinates x = X z."""
    residual = decomposition_residual(system, X, F=F, G=G, C=H)
    # The exact inverse of X is (I − R)⁻¹ X_inv with |R| ≤ error; its norm bounds the tail of the Neumann series.
    error = np.abs(np.eye(len(F)) - X_inv @ X) + (len(F) + 4) * EPS * (np.abs(X_inv) @ np.abs(X))
    norm = float(np.max(error.sum(axis=1), initial=0.0))
    if not norm < 0.5:
        return CoordinateResidual(np.full_like(F, np.inf), np.full_like(G, np.inf), np.full_like(H, np.inf))
    off_F, off_G = np.abs(X_inv @ residual.of_states), np.abs(X_inv @ residual.of_inputs)
    off_F, off_G = off_F + error @ off_F / (1.0 - norm), off_G + error @ off_G / (1.0 - norm)
    return CoordinateResidual(off_F, off_G, np.abs(residual.of_outputs))


def residual_by_modes(residual: CoordinateResidual, modes: Modes) -> CoordinateResidual:
    """Return one row and column for each pair: the Euclidean norm over its two states."""
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    F = np.sqrt(np.add.reduceat(np.add.reduceat(residual.F**2, heads, axis=0), heads, axis=1))
    G = np.sqrt(np.add.reduceat(residual.G**2, heads, axis=0))
    H = np.sqrt(np.add.reduceat(residual.H**2, heads, axis=1))
    return CoordinateResidual(F, G, H)


def certainly_off_axis(residual: CoordinateResidual, real_parts: Array) -> NDArray[np.bool_]:
    """Return which modes are certainly not on the imaginary axis: farther from it than rounding moves them."""
    perturbation = np.maximum(residual.F.sum(axis=0), residual.F.sum(axis=1))
    return np.asarray(np.abs(real_parts) > _OFF_AXIS * perturbation)


def modal_distance(residual: CoordinateResidual, modes: Modes) -> DistanceBound:
    """Bound the distance of the modes G̃ from their system G; infinite if a pole may be on the axis.

    Entry by entry |z − z̃| ≤ y (I − M)⁻¹(|ΔF| y |G| + |ΔG|) with y = 1/|iω − λ| and M = |ΔF| max y, in every band of
    frequencies with the largest y of the band. Beyond four times the largest |λ| all of it falls at least as 1/ω.
    """
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    if len(heads) == 0:
        return DistanceBound(0.0, 0.0)
    rates = modes.rates[heads]
    if not certainly_off_axis(residual, rates.real).all():
        return UNBOUNDED
    sizes = residual_by_modes(CoordinateResidual(modes.F, modes.G, modes.H), modes)
    system_matrix = np.eye(len(heads)) - residual.F / np.abs(rates.real)
    K = np.linalg.solve(system_matrix, np.hstack([residual.F, residual.G])) * (1.0 + 1e3 * len(heads) * EPS)
    K_F, K_G = K[:, : len(heads)], K[:, len(heads) :]
    edges = _band_edges(modes)
    errors = []
    for y in _largest_gains(rates, edges):
        states = y[:, None] * (K_F @ (y[:, None] * sizes.G) + K_G)
        errors.append(float(np.linalg.norm(sizes.H @ states + residual.H @ (y[:, None] * sizes.G + states))))
    widths = np.append(np.diff(edges), edges[-1])  # the last band extends to infinity: ∫ (ω₁/ω)² dω = ω₁
    return DistanceBound(max(errors), math.sqrt(float(np.sum(widths * np.square(errors))) / math.pi))


def _band_edges(modes: Modes) -> Array:
    """Return the lower edges of frequency bands; the last band extends to infinity."""
    omega = frequency_grid(modes.rates).omega
    edges = omega[np.unique(np.linspace(0, len(omega) - 1, min(len(omega), _MAX_BANDS)).astype(np.intp))]
    last = 4.0 * float(np.max(np.abs(modes.rates)))
    return np.append(edges[edges < last], last)


def _largest_gains(rates: Complex, edges: Array) -> Array:
    """Return the largest 1/|iω − λ| of every mode in each band, `(bands, modes)`."""
    low, high = edges[:, None], np.append(edges[1:], np.inf)[:, None]
    distance = np.maximum(np.maximum(low - rates.imag, rates.imag - high), 0.0)
    gains = np.asarray(1.0 / np.hypot(rates.real, distance))
    gains[-1] = 4.0 / 3.0 / edges[-1]  # |iω − λ| ≥ ω − |λ|
    return gains


def triangular_distance(residual: CoordinateResidual, stable: TriangularForm, aside: TriangularForm) -> DistanceBound:
    """Bound the distance for coupled modes by norms: ‖H (s − F)⁻¹‖ ‖ΔF‖ ‖(s − F)⁻¹G‖ and terms of ΔG and ΔH."""
    resolvent = max(resolvent_bound(stable.F), resolvent_bound(-aside.F))
    off_F, off_G, off_H = (float(np.linalg.norm(matrix)) for matrix in (residual.F, residual.G, residual.H))
    if not off_F * resolvent < 0.5:
        return UNBOUNDED
    parts = (stable, aside)
    product = sum(_largest_product(part) for part in parts)
    norm_G = math.hypot(*(float(np.linalg.norm(part.G)) for part in parts))
    norm_H = math.hypot(*(float(np.linalg.norm(part.H)) for part in parts))
    ends = resolvent * (norm_H * off_G + off_H * (norm_G + off_G))
    return DistanceBound((2.0 * product * off_F + ends) / (1.0 - off_F * resolvent), math.inf)


def _largest_product(part: TriangularForm) -> float:
    """Return sup ‖H (iω − F)⁻¹‖ ‖(iω − F)⁻¹G‖."""
    if part.n_states == 0:
        return 0.0
    poles = part.poles
    grid = frequency_grid(np.concatenate([poles, poles]))
    pieces = np.array_split(grid.omega, max(1, len(grid.omega) * len(poles) ** 2 // (1 << 22)))
    return grid.supremum(np.concatenate([part.response_and_sizes(omega)[1] for omega in pieces]), 0.0)


def resolvent_bound(F: Array) -> float:
    """Return a bound on sup ‖(iω − F)⁻¹‖: 2‖Y‖/(1 − ‖R‖) for any symmetric Y with FᵀY + Y F = −I + R."""
    if len(F) == 0:
        return 0.0
    Y = np.asarray(linalg.solve_continuous_lyapunov(F.T, -np.eye(len(F))))
    Y = 0.5 * (Y + Y.T)
    R = F.T @ Y + Y @ F + np.eye(len(F))
    norm = float(np.linalg.norm(R)) + 4.0 * len(F) * EPS * float(np.linalg.norm(F)) * float(np.linalg.norm(Y))
    return 2.0 * float(np.linalg.norm(Y)) / (1.0 - norm) if norm < 0.5 else math.inf


# The separation itself.

SubsystemForm = Modes | TriangularForm


@dataclass(frozen=True, eq=False)
class SeparatedSystem:
    """Parts with G(s) = stable(s) + aside(s) + D up to `distance`, on the whole imaginary axis."""

    stable: SubsystemForm
    aside: SubsystemForm
    """Modes that are unstable, integrate, or are within rounding of the axis; no reduction changes them."""
    distance: DistanceBound
    """Distance from the given system."""


def separate_stable(system: SystemMatrices) -> SeparatedSystem:
    """Separate by modes, or by one Schur form if modes are ill conditioned. O(n³)."""
    eigenmodes = compute_eigenmodes(system.A, *balanced_schur(system.A), max_condition=_MAX_CONDITION)
    modal = None if eigenmodes is None else _separate_modes(system, eigenmodes)
    if modal is not None and modal.distance.peak <= _NEGLIGIBLE_DISTANCE * _largest_modal_gain(modal.stable):
        return modal
    triangular = _separate_schur(system)
    return triangular if modal is None or triangular.distance.peak < modal.distance.peak else modal


def _separate_modes(system: SystemMatrices, form: Eigenmodes) -> SeparatedSystem:
    modes = modes_from_blocks(form.rates, form.X_inv @ system.B, system.C @ form.X)
    residual = coordinate_residual(system, form.X, form.X_inv, F=modes.F, G=modes.G, H=modes.H)
    residual = residual_by_modes(residual, modes)
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    off_axis = certainly_off_axis(residual, modes.rates.real[heads])
    decays = np.zeros(modes.n_states, dtype=np.bool_)
    decays[heads] = off_axis & (modes.rates.real[heads] < 0.0)
    decays[modes.pairs + 1] = decays[modes.pairs]
    # Modes on the axis whose residuals are exactly zero, such as integrators, contribute no distance.
    exact = ~off_axis & (
        residual.F.sum(axis=0) + residual.F.sum(axis=1) + residual.G.sum(axis=1) + residual.H.sum(axis=0) == 0.0
    )
    inexact, others = modes, residual
    if exact.any():
        rest = ~exact
        inexact = modes.select(np.repeat(rest, np.where(modes.rates.imag[heads] > 0.0, 2, 1)))
        others = CoordinateResidual(residual.F[np.ix_(rest, rest)], residual.G[rest], residual.H[:, rest])
    return SeparatedSystem(modes.select(decays), modes.select(~decays), modal_distance(others, inexact))


def _separate_schur(system: SystemMatrices) -> SeparatedSystem:
    units = balance_matrix(system.A, rescale_states=True)
    limit = -rounding_tolerance(system.n_states, float(np.linalg.norm(units.matrix, 1)))
    R, Z, n_stable = linalg.schur(units.matrix, output="real", sort=lambda re, im: re < limit)  # noqa: ARG005
    R, k = np.asarray(R), int(n_stable)
    Y = np.zeros((k, len(R) - k))
    if 0 < k < len(R):  # [[I, −Y], [0, I]] R [[I, Y], [0, I]] is block diagonal
        decoupling = decouple(R, np.array([0, k, len(R)], dtype=np.intp)).X
        Y = np.asarray(decoupling[:k, k:] / decoupling[k, k])
    X, X_inv = np.array(Z), np.array(Z.T)
    X[:, k:] += X[:, :k] @ Y
    X_inv[:k] -= Y @ X_inv[k:]
    X, X_inv = units.scaling[:, None] * X, X_inv / units.scaling
    F = np.asarray(linalg.block_diag(R[:k, :k], R[k:, k:])) * units.factor
    G, H = X_inv @ system.B, system.C @ X
    residual = coordinate_residual(system, X, X_inv, F=F, G=G, H=H)
    stable, aside = TriangularForm(F[:k, :k], G[:k], H[:, :k]), TriangularForm(F[k:, k:], G[k:], H[:, k:])
    return SeparatedSystem(stable, aside, triangular_distance(residual, stable, aside))


def _largest_modal_gain(modes: SubsystemForm) -> float:
    """Return the largest gain of a single mode."""
    if not isinstance(modes, Modes) or modes.n_states == 0:
        return 0.0
    gains = np.linalg.norm(modes.B, axis=1) * np.linalg.norm(modes.C, axis=0) / np.abs(modes.rates.real)
    return float(np.max(gains))
