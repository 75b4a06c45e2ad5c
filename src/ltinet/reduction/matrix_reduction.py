"""Reduction of first-order systems: choice of the method, scaling, and the result common to all methods.

Dense and small systems are balanced, large sparse ones projected first. Systems whose units would leave the range of
doubles are scaled by powers of two: with s = τ s' the system C (sE − A)⁻¹B is C (s'E − A/τ)⁻¹(B/τ), and B and C take
factors of their own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ltinet._util.blas_threads import limit_blas_threads, single_blas_thread
from ltinet._util.floating_point import Array
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import (
    DenseMethod,
    DenseReducer,
    DenseReduction,
    StateSpaceMatrices,
    prepare_reducer,
    smallest_order,
)
from ltinet.reduction.dissipative_pencil import Pencil, make_pencil
from ltinet.reduction.rational_krylov import ProgressCallback, SparseReduction, reduce_sparse
from ltinet.systems.second_order_matrices import SecondOrderMatrices
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES
from ltinet.systems.sparse_lu import SingularMatrixError, factorize_superlu
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.matrix_reduction
# What a reduction found, whatever the way: the small system, the bound on its error, and what it cost.


@dataclass(frozen=True, eq=False)
class ReductionOutcome:
    """A reduced system G_r of G."""

    matrices: StateSpaceMatrices
    order: int
    way: str
    """In words: how it was reduced."""
    error_bound: float | None
    """Proven: ‖G(iω) − G_r(iω)‖ ≤ this for every ω. None where there is no proof."""
    estimate: float
    """What the largest ‖G(iω) − G_r(iω)‖ is thought to be."""
    mean: Callable[[], float]
    """Proven: ‖G − G_r‖ ≤ this in the H2 norm, so that |e(t)| ≤ this · ‖u‖ in L2(0, t); infinite where nothing is."""
    gain: float
    """The largest ‖G_r(iω)‖ of what decays, or a little less."""
    hankel_values: Array | None
    parts: dict[str, float] = field(default_factory=dict)
    """Where the bound comes from."""
    n_aside: int = 0
    notes: tuple[str, ...] = ()
    second_order: SecondOrderMatrices | None = None
    """The reduced model as masses, dampers and springs, where it was given so."""


# MERGED ltinet.reduction.matrix_reduction
# Systems in units so large or small that squares leave the range of doubles: brought near one, and back, exactly.
#
# With s = τ s' the system C (sE − A)⁻¹B is C (s'E − A/τ)⁻¹(B/τ); B and C take factors of their own, all powers of 2.

_WIDE = 2.0**60  # sizes between the inverse of this and this are no trouble


@dataclass(frozen=True)
class SystemUnits:
    """A = time·A', B = time·inputs·B', C = outputs·C'; G = inputs·outputs·G'."""

    time: float
    inputs: float
    outputs: float

    @property
    def gain(self) -> float:
        """By how much G is larger."""
        return self.inputs * self.outputs

    def applied(self, system: SystemMatrices) -> SystemMatrices:
        """The system in these units."""
        pencil = system.sparse
        given: tuple[Any, Any, Any]
        if pencil is not None:
            given = (pencil.mass, pencil.state, pencil.B)
        else:
            given = (None, system.A, system.B) if system.descriptor is None else system.descriptor
        E, A, B = given
        C, D = system.C / self.outputs, system.D / self.outputs / self.inputs
        return SystemMatrices(A * (1.0 / self.time), B / self.time / self.inputs, C, D, E)

    def undone(self, found: ReductionOutcome) -> ReductionOutcome:
        """What was found, in the units that were given; bounds are rounded up where they leave the normal numbers."""
        A, B, C, D = found.matrices
        mean, gain = found.mean, self.gain
        matrices = StateSpaceMatrices(
            A * self.time, B * self.time * self.inputs, C * self.outputs, D * self.outputs * self.inputs
        )
        up = np.finfo(np.float64).tiny
        return replace(
            found,
            matrices=matrices,
            error_bound=None if found.error_bound is None else found.error_bound * gain + up,
            estimate=found.estimate * gain,
            mean=lambda: mean() * gain * math.sqrt(self.time) + up,
            gain=found.gain * gain,
            hankel_values=None if found.hankel_values is None else found.hankel_values * gain,
            parts={name: value * gain for name, value in found.parts.items()},
        )


def choose_units(system: SystemMatrices) -> SystemUnits | None:
    """Units in which A, B and C are near one; None where they are not far from it, as hardly any system is."""
    pencil = system.sparse
    if pencil is not None:
        A, B, E = abs(pencil.state).max() if pencil.n_nonzeros else 0.0, pencil.B, pencil.mass
        mass = float(abs(E).max()) if E is not None and E.nnz else 1.0
    else:
        A, B, mass = float(np.abs(system.A).max(initial=0.0)), system.B, 1.0
    time = _power(float(A) / mass)
    inputs, outputs = _power(float(np.abs(B).max(initial=0.0)) / time), _power(float(np.abs(system.C).max(initial=0.0)))
    if all(1.0 / _WIDE < own < _WIDE for own in (time, inputs, outputs)):
        return None
    return SystemUnits(time, inputs, outputs)


def _power(size: float) -> float:
    """The power of two nearest to a size, or 1 for none."""
    return 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 1.0


# MERGED ltinet.reduction.matrix_reduction
# Which way a system is reduced, and the result in one form.

_SMALL = 300  # states of a sparse system, up to which arrays are as fast
_FAR, _NOTHING = 30.0, 1e-10  # how far a bound may be above the rest of the error, and what counts as none
_BY_ROUNDING = 1e-12  # of the largest entry: by so much a matrix that was meant to be symmetric may be off


@dataclass(frozen=True)
class ReductionOptions:
    """An order, or an error relative to the largest gain; one of both."""

    order: int | None
    tolerance: float | None
    method: DenseMethod = "truncation"
    n_jobs: int = 1


def reduce_matrices(system: SystemMatrices, wish: ReductionOptions, *, callback: ProgressCallback) -> ReductionOutcome:
    """Reduce by balancing arrays, or by projection where the system is sparse and large.

    Raises:
        InvalidSystemError: there is nothing to reduce, or no way to.
    """
    _require_inputs_and_outputs(system)
    units = choose_units(system)
    if units is not None:
        return units.undone(_reduced(units.applied(system), wish, callback))
    return _reduced(system, wish, callback)


def _reduced(system: SystemMatrices, wish: ReductionOptions, callback: ProgressCallback) -> ReductionOutcome:
    second: ReductionOutcome | None = None
    try:
        if system.sparse is not None and system.n_states > _SMALL:
            large = make_pencil(system.sparse.state, system.sparse.B, system.C, system.D, system.sparse.mass)
            if system.n_states > MAX_DENSE_STATES or large.dissipation is not None:
                _require_usable(large)
                found = _by_projection(large, wish, callback)
                second = _sparse_outcome(found, large)
                if system.n_states > MAX_DENSE_STATES or _is_good(found, wish):
                    return second
        with limit_blas_threads(system.n_states):
            first = _by_balancing(prepare_reducer(system), wish)
        return first if second is None or first.error_bound is not None else second
    except MemoryError:
        raise InvalidSystemError(
            f"the factors of a system with {system.n_states} states do not fit into memory; use a coarser grid, or a "
            "machine with more memory"
        ) from None


def _by_balancing(reducer: DenseReducer, wish: ReductionOptions) -> ReductionOutcome:
    if wish.order is not None:
        if wish.order < reducer.n_aside:
            raise InvalidSystemError(
                f"order is {wish.order}, but {reducer.n_aside} states grow, integrate or cannot be told from such, and "
                f"are kept whole; ask for an order of at least {reducer.n_aside}"
            )
        found = reducer.reduced(wish.order, method=wish.method)
    else:
        tolerance = wish.tolerance or 0.0
        allowed = tolerance * _size(reducer)
        found = smallest_order(
            reducer, lambda own: own.error <= tolerance * own.peak, allowed=allowed, method=wish.method
        )
    return _dense_outcome(found, reducer, wish)


def _size(reducer: DenseReducer) -> float:
    """About the largest gain: no less than the largest Hankel value, no more than twice their sum."""
    return float(np.max(reducer.balanced.hankel_values, initial=0.0)) * 2.0


def _dense_outcome(found: DenseReduction, reducer: DenseReducer, wish: ReductionOptions) -> ReductionOutcome:
    notes = []
    if reducer.n_aside:
        notes.append(f"{reducer.n_aside} states that do not surely decay are kept whole")
    if wish.order is not None and found.order < wish.order:
        notes.append(f"more than {found.order} states would be rounding")
    is_known = math.isfinite(found.error)
    distance = reducer.separated.distance.peak
    kind = "balanced truncation" if wish.method == "truncation" else "singular perturbation"
    return ReductionOutcome(
        matrices=found.matrices,
        order=found.order,
        way=kind,
        error_bound=found.error if is_known else None,
        estimate=found.estimate,
        mean=found.mean,
        gain=found.peak,
        hankel_values=reducer.balanced.hankel_values,
        parts={"truncation": found.estimate, "rounding": distance} if is_known else {},
        n_aside=reducer.n_aside,
        notes=tuple(notes),
    )


def _is_good(found: SparseReduction, wish: ReductionOptions) -> bool:
    """Whether arrays, where they can be had, would hardly do better than a projection did."""
    if wish.tolerance is not None:
        return found.error <= wish.tolerance * found.peak
    return found.projection_error <= _FAR * max(found.truncation_error, found.peak * _NOTHING)


def _by_projection(system: Pencil, wish: ReductionOptions, callback: ProgressCallback) -> SparseReduction:
    with single_blas_thread():  # many small products, which a second thread would wait for
        return reduce_sparse(
            system,
            order=wish.order,
            tolerance=wish.tolerance,
            method=wish.method,
            n_jobs=wish.n_jobs,
            callback=callback,
        )


def _sparse_outcome(found: SparseReduction, system: Pencil) -> ReductionOutcome:
    is_certified = math.isfinite(found.error)
    kind = "symmetric" if system.is_symmetric else "dissipative" if is_certified else "not proven to be dissipative"
    return ReductionOutcome(
        matrices=found.matrices,
        order=found.order,
        way=f"Galerkin projection at {len(found.shifts)} shifts to {found.n_projected} states ({kind}), then balanced",
        error_bound=found.error if is_certified else None,
        estimate=found.estimate,
        mean=found.mean,
        gain=found.peak,
        hankel_values=found.hankel_values,
        parts={"projection": found.projection_error, "truncation": found.truncation_error} if is_certified else {},
        notes=() if is_certified else ("the symmetric part of A is not negative definite: no bound is known",),
    )


def _require_inputs_and_outputs(system: SystemMatrices) -> None:
    B = system.B if system.sparse is None else system.sparse.B
    for name, matrix, what in (("B", B, "no input moves any state"), ("C", system.C, "no output sees any state")):
        if not matrix.any():
            raise InvalidSystemError(f"{name} is zero: {what}, and there is nothing to reduce; the system is y = D u")


def _require_usable(system: Pencil) -> None:
    """Refuse what looks like a mistake, and what has no transfer function at rest."""
    for name, matrix in (("A", system.A), ("E", system.E)):
        off, largest = abs(matrix - matrix.T), float(abs(matrix).max())
        if off.nnz and 0.0 < float(off.max()) <= _BY_ROUNDING * largest:
            raise InvalidSystemError(
                f"{name} is symmetric but for rounding, by {float(off.max()) / largest:.0e} of its largest entry; "
                f"pass ({name} + {name}.T)/2, or what is known of symmetric systems cannot be used"
            )
    if system.mass is None:
        raise InvalidSystemError(
            "E is not symmetric positive definite, so that nothing can be proven by energy; scale the equations so "
            "that E is, or eliminate it where it is cheap: pass E⁻¹A and E⁻¹B"
        )
    if system.dissipation is None and _is_singular(system):
        raise InvalidSystemError(
            "A is singular to working precision: the system integrates; fix the state that is free, or pass a model of "
            f"up to {MAX_DENSE_STATES} states, whose integrating part is kept whole"
        )


def _is_singular(system: Pencil) -> bool:
    """Whether A has an eigenvalue of the size of rounding, by a factorisation and inverse iteration."""
    try:
        factors = factorize_superlu(system.A)
    except SingularMatrixError:
        return True
    x = np.random.default_rng(0).standard_normal(system.n_states)
    for _ in range(3):
        x = factors.solve(x / np.linalg.norm(x))
    size = float(abs(system.A).sum(axis=0).max())
    return not float(np.linalg.norm(x)) * size < 1.0 / (system.n_states * np.finfo(np.float64).eps)
