"""Full fields of projected models, with a bound from the energy of their residual.

A Galerkin model w' = F w + G u of a large system has the field x̂ = P w, with P as large as the system. Along a
trajectory it leaves a residual r(t) = R (u, w), whose columns are computed once. The error e = x − x̂ starts at zero.

First order, E e' = A e + r. With S = −(A + Aᵀ)/2 > 0 and S ≥ μE,

    d/dt ‖e‖²_E = −2‖e‖²_S + 2 eᵀr ≤ −‖e‖²_S + ‖r‖²_{S⁻¹} ≤ −μ‖e‖²_E + ‖r‖²_{S⁻¹},

so that ‖e(t)‖²_E ≤ ∫ e^{−μ(t−s)} ‖r‖²_{S⁻¹} ds. Second order, M e'' + D e' + K e = r, with ‖e‖² = e'ᵀM e' + eᵀK e and
the symmetric part of D, > 0: d/dt ‖e‖² = −2‖e'‖²_D + 2 e'ᵀr ≤ ½‖r‖²_{D⁻¹}. Where S or D is not proven to be definite,
‖e(t)‖ ≈ ∫ ‖r‖_{E⁻¹} ds ≤ (t ∫ ‖r‖²_{E⁻¹} ds)^½ is an estimate: it holds if energy never grows.

The integrals are exact. With inputs that are linear within a step and the states w̃ = (w, u, slope), the integral over
a step is w̃ᵀQ w̃. Q is known for a step so short that Gauss–Legendre quadrature is exact to rounding, and

    Q(2τ) = e^{−μτ} Q(τ) + Ψ(τ)ᵀ Q(τ) Ψ(τ),    Ψ(2τ) = Ψ(τ)²,

are sums of positive terms. Coordinates w are orthonormal for the energy, in which F is a contraction.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, summation_tolerance
from ltinet.errors import InvalidSignalError
from ltinet.reduction.dissipative_pencil import (
    SOLVE_COLUMNS,
    DefiniteMatrix,
    Pencil,
    absolute_product_norms,
    smallest_pencil_eigenvalue,
)

_CHUNK_STEPS = 4096  # steps whose states are held at a time; memory only
_MAX_STEP_LENGTHS = 64  # each takes some tens of products of small matrices
_EVEN_STEPS = 1e-9  # of the mean step: deviation of lengths that is rounding of times
_QUADRATURE = np.polynomial.legendre.leggauss(8)  # exact to rounding for steps with ‖Γ‖ ≤ ½
_SHORT_STEP = 0.5


Indices = NDArray[np.intp]


class EnergyInequality(NamedTuple):
    """Inequality ‖e(t)‖² ≤ factor ∫ e^{−decay (t−s)} ‖r(s)‖² ds, residuals in the norm of the inverse of `weight`."""

    weight: DefiniteMatrix
    decay: float
    factor: float | None
    """None for the length of time."""
    is_proven: bool
    energy: DefiniteMatrix
    """Matrix of the energy of x: ‖x‖² ≤ xᵀ(energy)x is part of the energy."""


class ResidualColumns(NamedTuple):
    """Columns of the residual r = columns (u, w), and bounds on their rounding errors."""

    columns: Array
    rounding: Array


@dataclass(frozen=True, eq=False)
class ProjectedField:
    """Galerkin model w' = F w + G u of a large system, and its field `basis` · w[:N]."""

    F: Array
    G: Array
    basis: Array
    """Field of the first N states, n × N."""
    residual_columns: Callable[[], ResidualColumns]
    inequality: Callable[[], EnergyInequality]
    time_unit: float = 1.0
    """Ratio of the time of the model to that of the user."""
    input_unit: float = 1.0
    """Ratio of the input of the model to that of the user."""

    @cached_property
    def energy(self) -> EnergyInequality:
        """Inequality for the error; its proof takes a few factorizations."""
        return self.inequality()

    @cached_property
    def residual(self) -> tuple[Array, Array]:
        """Matrix C with ‖r‖ = ‖C (u, w)‖ up to rounding, and the rounding per entry of (u, w)."""
        columns, rounding = self.residual_columns()
        weight = self.energy.weight
        lengths = np.linalg.norm(columns, axis=0)
        lengths[lengths == 0.0] = 1.0
        # In an orthonormal basis residuals cancel before they are squared.
        Q, triangle = linalg.qr(columns / lengths, mode="economic", check_finite=False)
        root = weight.inverse_root(np.asarray(Q))
        rounding = (rounding + columns.shape[1] ** 1.5 * EPS * lengths) / math.sqrt(weight.smallest)
        return np.asarray(root @ (triangle * lengths)), rounding

    def step(self, h: float) -> "EnergyStep":
        """Return the propagator of a step and the matrix of its residual energy."""
        (n, m), (C, _) = self.G.shape, self.residual
        size = n + 2 * m  # states, input at the start, change of the input
        generator = np.zeros((size, size))
        generator[:n, :n], generator[:n, n : n + m] = self.F * h, self.G * h
        generator[n : n + m, n + m :] = np.eye(m)
        R = np.hstack([C[:, m:], C[:, :m], np.zeros((len(C), m))])
        doublings = max(0, math.ceil(math.log2(float(np.abs(generator).sum(axis=0).max(initial=0.0)) / _SHORT_STEP)))
        share, decay = 0.5**doublings, self.energy.decay * h
        Q = np.zeros((size, size))
        for node, weight in zip(*_QUADRATURE, strict=True):
            s = 0.5 * (1.0 + node) * share
            values = R @ linalg.expm(generator * s)
            Q += 0.5 * weight * share * h * math.exp(-decay * (share - s)) * (values.T @ values)
        propagator = np.asarray(linalg.expm(generator * share))
        for _ in range(doublings):
            Q = math.exp(-decay * share) * Q + propagator.T @ Q @ propagator
            propagator, share = propagator @ propagator, 2.0 * share
        rounding = (doublings + 4.0) * summation_tolerance(size)
        return EnergyStep(h, propagator[:n], 0.5 * (Q + Q.T), rounding)

    def run(self, t: Array, before: Array, after: Array, progress: Callable[[float], None]) -> Iterator["FieldChunk"]:
        """Yield the states `(batch, K, n_w)` and error bounds `(batch, K)` for a piecewise linear input.

        `t` `(T,)` are ascending times; `before` and `after` `(batch, T, m)` the inputs before and after each of them.
        """
        t, before, after = t * self.time_unit, before * self.input_unit, after * self.input_unit
        lengths, kinds = group_step_lengths(np.diff(t))
        steps = [self.step(float(h)) for h in lengths]
        energy, (_, rounding) = self.energy, self.residual
        batch, n = len(after), len(self.F)
        w, squared, noise, drift = np.zeros((batch, n)), np.zeros(batch), np.zeros(batch), np.zeros(batch)
        yield FieldChunk(slice(0, 1), w[:, None], np.zeros((batch, 1)))
        for start in range(0, len(kinds), _CHUNK_STEPS):
            stop = min(start + _CHUNK_STEPS, len(kinds))
            u, change = after[:, start:stop], before[:, start + 1 : stop + 1] - after[:, start:stop]
            states = np.empty((batch, stop - start + 1, n))
            states[:, 0] = w
            for index in range(stop - start):
                step = steps[kinds[start + index]]
                inputs = np.concatenate([u[:, index], change[:, index]], axis=1)
                w = w @ step.propagator[:, :n].T + inputs @ step.propagator[:, n:].T
                states[:, index + 1] = w
            augmented = np.concatenate([states[:, :-1], u, change], axis=2)
            sizes = np.abs(states) @ rounding[self.G.shape[1] :]
            sizes = np.maximum(sizes[:, :-1], sizes[:, 1:]) + (np.abs(u) + np.abs(change)) @ rounding[: self.G.shape[1]]
            parts = _accumulate(steps, kinds[start:stop], augmented, sizes, energy.decay, squared, noise, drift)
            total, noises, drifts = parts
            squared, noise, drift = total[:, -1], noises[:, -1], drifts[:, -1]
            factor = t[start + 1 : stop + 1] - t[0] if energy.factor is None else energy.factor
            error = np.sqrt(factor * total) + np.sqrt(factor * noises) + drifts
            progress(stop / len(kinds))
            yield FieldChunk(slice(start + 1, stop + 1), states[:, 1:], error)

    def largest_component(self, dofs: Indices | None) -> Array:
        """Return κ with |x_i| ≤ κ_i ‖x‖ for the energy norm: √(E⁻¹)_ii, or 1/√λ_min(E) for all degrees of freedom."""
        E = self.energy.energy
        if E.factors is None:
            entries = E.matrix.diagonal()
            return np.asarray(1.0 / np.sqrt(entries if dofs is None else entries[dofs]))
        if dofs is None:
            return np.full(len(self.basis), 1.0 / math.sqrt(E.smallest))
        squares = np.empty(len(dofs))
        for start in range(0, len(dofs), SOLVE_COLUMNS):
            part = dofs[start : start + SOLVE_COLUMNS]
            unit = np.zeros((len(self.basis), len(part)))
            unit[part, np.arange(len(part))] = 1.0
            Z = E.solve(unit)
            errors = np.linalg.norm(unit - E.matrix @ Z, axis=0) / E.smallest
            squares[start : start + len(part)] = Z[part, np.arange(len(part))] + errors
        return np.asarray(np.sqrt(squares))


class EnergyStep(NamedTuple):
    """Propagator of (w, u, change of u) over a step to w, and its residual energy as a quadratic form."""

    h: float
    propagator: Array
    Q: Array
    rounding: float
    """Relative rounding of both."""


class FieldChunk(NamedTuple):
    """States at some of the times, `(batch, K, n_w)`, and bounds on the error in the energy norm, `(batch, K)`."""

    times: slice
    states: Array
    error: Array


def _accumulate(
    steps: list[EnergyStep], kinds: Indices, augmented: Array, sizes: Array, decay: float, *before: Array
) -> tuple[Array, Array, Array]:
    """Return the residual energy, that of its rounding, and the rounding of states, after each step, `(batch, K)`."""
    energies, noises, drifts = (np.empty(augmented.shape[:2]) for _ in range(3))
    factors = np.empty(len(kinds))
    for kind, step in enumerate(steps):
        chosen = kinds == kind
        w = augmented[:, chosen]
        uncancelled = np.abs(w) @ np.sqrt(np.maximum(step.Q.diagonal(), 0.0))
        energies[:, chosen] = np.maximum(np.einsum("bki,bki->bk", w @ step.Q, w), 0.0) + step.rounding * uncancelled**2
        noises[:, chosen] = step.h * sizes[:, chosen] ** 2
        drifts[:, chosen] = step.rounding * np.abs(w).sum(axis=2)
        factors[chosen] = math.exp(-decay * step.h)
    squared, noise, drift = before
    for index, factor in enumerate(factors.tolist()):
        squared = energies[:, index] = factor * squared + energies[:, index]
        noise = noises[:, index] = factor * noise + noises[:, index]
    return energies, noises, drift[:, None] + np.cumsum(drifts, axis=1)


def group_step_lengths(steps: Array) -> tuple[Array, Indices]:
    """Return the different lengths of steps, and the index of that of each step.

    Raises
    ------
    InvalidSignalError
        There are too many.
    """
    if not len(steps):
        return np.ones(0), np.zeros(0, dtype=np.intp)
    mean = float(np.mean(steps))
    if float(np.max(np.abs(steps - mean))) <= _EVEN_STEPS * mean:
        return np.array([mean]), np.zeros(len(steps), dtype=np.intp)
    digits = np.round(steps / mean / _EVEN_STEPS)
    _, first, kinds = np.unique(digits, return_index=True, return_inverse=True)
    if len(first) > _MAX_STEP_LENGTHS:
        raise InvalidSignalError(
            f"lift takes times with at most {_MAX_STEP_LENGTHS} different steps, got {len(first)}; use even steps"
        )
    return steps[first], kinds


# Fields of first-order models.


def first_order_field(system: Pencil, weight: DefiniteMatrix | None, V: Array, A: Array, B: Array) -> ProjectedField:
    """Return the field of the projection of E x' = A x + B u onto an E-orthonormal basis."""

    def columns() -> ResidualColumns:
        EV = np.asarray(system.E @ V)
        R = np.hstack([system.B - EV @ B, system.A @ V - EV @ A])
        EV_norms = np.linalg.norm(EV, axis=0)
        sizes = [np.linalg.norm(system.B, axis=0) + EV_norms @ np.abs(B)]
        sizes.append(absolute_product_norms(system.A, V) + EV_norms @ np.abs(A))
        return ResidualColumns(R, product_rounding(len(A), system.A) * np.concatenate(sizes))

    def inequality() -> EnergyInequality:
        mass: Any = system.mass  # systems without a definite E are not reduced
        if weight is None:
            return EnergyInequality(mass, 0.0, None, False, mass)
        decay = smallest_pencil_eigenvalue(weight, system.E) or 0.0
        return EnergyInequality(weight, decay, 1.0, True, mass)

    return ProjectedField(A, B, V, columns, inequality)


def product_rounding(n_columns: int, *matrices: Any) -> float:
    """Return the relative rounding of a product of sparse rows or of small matrices."""
    longest = max(int(np.max(np.diff(matrix.tocsr().indptr), initial=1)) for matrix in matrices)
    return (longest + n_columns + 4) * EPS
