"""A system in coordinates in which what decays stands apart from what does not, and how exact these coordinates are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array
from ltinet.decompose.balance import balance
from ltinet.decompose.decouple import decouple
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.eigenmodes import Eigenmodes, eigenmodes
from ltinet.reduction.mismatch import (
    Distance,
    Mismatch,
    in_modes,
    mismatch_of,
    modal_distance,
    surely_apart,
    triangular_distance,
)
from ltinet.reduction.modal import Modes, modes_of
from ltinet.reduction.triangular import Triangular
from ltinet.tolerances import rounding

Part = Modes | Triangular

_APART = 1e9  # condition number of modes: what it costs is measured afterwards
_UNNOTICED = 1e-7  # of the largest share of a mode: up to here nobody looks for better coordinates


@dataclass(frozen=True, eq=False)
class Separated:
    """G(s) = stable(s) + aside(s) + D up to `distance`, on the whole imaginary axis."""

    stable: Part
    aside: Part
    """Modes that grow, that integrate, or of which rounding cannot tell; they are kept as they are."""
    distance: Distance
    """From the system as it was given."""


def separate(system: SystemMatrices) -> Separated:
    """Separate by modes, or by one Schur form where modes lie too close together to stand apart. O(n³)."""
    form = eigenmodes(system.A, most=_APART)
    by_modes = None if form is None else _by_modes(system, form)
    if by_modes is not None and by_modes.distance.peak <= _UNNOTICED * _size(by_modes.stable):
        return by_modes
    together = _by_schur_form(system)
    return together if by_modes is None or together.distance.peak < by_modes.distance.peak else by_modes


def _by_modes(system: SystemMatrices, form: Eigenmodes) -> Separated:
    modes = modes_of(form.rates, form.X_inv @ system.B, system.C @ form.X)
    found = in_modes(mismatch_of(system, form.X, form.X_inv, F=modes.F, G=modes.G, H=modes.H), modes)
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    apart = surely_apart(found, modes.rates.real[heads])
    decays = np.zeros(modes.n_states, dtype=np.bool_)
    decays[heads] = apart & (modes.rates.real[heads] < 0.0)
    decays[modes.pairs + 1] = decays[modes.pairs]
    return Separated(modes.taken(decays), modes.taken(~decays), _distance(found, modes, apart))


def _distance(found: Mismatch, modes: Modes, apart: NDArray[np.bool_]) -> Distance:
    """Of all modes but those on the axis that are exactly what they were: they cannot be off."""
    exact = ~apart & (found.F.sum(axis=0) + found.F.sum(axis=1) + found.G.sum(axis=1) + found.H.sum(axis=0) == 0.0)
    if not exact.any():
        return modal_distance(found, modes)
    kept = ~exact
    whole = np.repeat(kept, np.where(modes.rates.imag[modes.rates.imag >= 0.0] > 0.0, 2, 1))
    rest = Mismatch(found.F[np.ix_(kept, kept)], found.G[kept], found.H[:, kept])
    return modal_distance(rest, modes.taken(whole))


def _by_schur_form(system: SystemMatrices) -> Separated:
    units = balance(system.A, rescale_states=True)
    n = system.n_states
    limit = -rounding(n, float(np.linalg.norm(units.matrix, 1)))
    R, Z, n_stable = linalg.schur(units.matrix, output="real", sort=lambda re, im: re < limit)  # noqa: ARG005
    k = int(n_stable)
    Y = _decoupling(np.asarray(R), k)
    X, X_inv = np.array(Z), np.array(Z.T)
    X[:, k:] += X[:, :k] @ Y
    X_inv[:k] -= Y @ X_inv[k:]
    X, X_inv = units.scaling[:, None] * X, X_inv / units.scaling
    F = np.asarray(linalg.block_diag(R[:k, :k], R[k:, k:])) * units.factor
    G, H = X_inv @ system.B, system.C @ X
    found = mismatch_of(system, X, X_inv, F=F, G=G, H=H)
    stable, aside = Triangular(F[:k, :k], G[:k], H[:, :k]), Triangular(F[k:, k:], G[k:], H[:, k:])
    return Separated(stable, aside, triangular_distance(found, stable, aside))


def _decoupling(R: Array, k: int) -> Array:
    """Y with [[I, −Y], [0, I]] R [[I, Y], [0, I]] block diagonal."""
    if not 0 < k < len(R):
        return np.zeros((k, len(R) - k))
    X = decouple(R, np.array([0, k, len(R)], dtype=np.intp)).X
    return np.asarray(X[:k, k:] / X[k, k])


def _size(modes: Part) -> float:
    """The largest gain of a single mode."""
    if not isinstance(modes, Modes) or modes.n_states == 0:
        return 0.0
    sizes = np.linalg.norm(modes.B, axis=1) * np.linalg.norm(modes.C, axis=0) / np.abs(modes.rates.real)
    return float(np.max(sizes))
