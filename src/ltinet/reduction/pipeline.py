"""Which way a system is reduced, and the result in one form."""

import math
from dataclasses import dataclass

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.sparse_factors import SingularError, superlu
from ltinet.model.sparse_pencil import LARGEST_FILLED_IN
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.balancing import DenseMethod
from ltinet.reduction.dense import DenseReducer, DenseReduction, prepare
from ltinet.reduction.galerkin import Told
from ltinet.reduction.large import LargeReduction, reduce_large
from ltinet.reduction.orders import smallest_order
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.pencil import Pencil, pencil
from ltinet.reduction.units import units_of
from ltinet.threads import one_blas_thread, threads_for

_SMALL = 300  # states of a sparse system, up to which arrays are as fast
_FAR, _NOTHING = 30.0, 1e-10  # how far a bound may be above the rest of the error, and what counts as none
_BY_ROUNDING = 1e-12  # of the largest entry: by so much a matrix that was meant to be symmetric may be off


@dataclass(frozen=True)
class Wish:
    """An order, or an error relative to the largest gain; one of both."""

    order: int | None
    tolerance: float | None
    method: DenseMethod = "truncation"
    n_jobs: int = 1


def reduce_matrices(system: SystemMatrices, wish: Wish, *, told: Told) -> Outcome:
    """Reduce by balancing arrays, or by projection where the system is sparse and large.

    Raises:
        InvalidSystemError: there is nothing to reduce, or no way to.
    """
    _require_ways(system)
    units = units_of(system)
    if units is not None:
        return units.undone(_reduced(units.applied(system), wish, told))
    return _reduced(system, wish, told)


def _reduced(system: SystemMatrices, wish: Wish, told: Told) -> Outcome:
    second: Outcome | None = None
    try:
        if system.sparse is not None and system.n_states > _SMALL:
            large = pencil(system.sparse.state, system.sparse.B, system.C, system.D, system.sparse.mass)
            if system.n_states > LARGEST_FILLED_IN or large.dissipation is not None:
                _require_usable(large)
                found = _by_projection(large, wish, told)
                second = _of_large(found, large)
                if system.n_states > LARGEST_FILLED_IN or _is_good(found, wish):
                    return second
        with threads_for(system.n_states):
            first = _by_balancing(prepare(system), wish)
        return first if second is None or first.error_bound is not None else second
    except MemoryError:
        raise InvalidSystemError(
            f"the factors of a system with {system.n_states} states do not fit into memory; use a coarser grid, or a "
            "machine with more memory"
        ) from None


def _by_balancing(reducer: DenseReducer, wish: Wish) -> Outcome:
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
    return _of_dense(found, reducer, wish)


def _size(reducer: DenseReducer) -> float:
    """About the largest gain: no less than the largest Hankel value, no more than twice their sum."""
    return float(np.max(reducer.balanced.hankel_values, initial=0.0)) * 2.0


def _of_dense(found: DenseReduction, reducer: DenseReducer, wish: Wish) -> Outcome:
    remarks = []
    if reducer.n_aside:
        remarks.append(f"{reducer.n_aside} states that do not surely decay are kept whole")
    if wish.order is not None and found.order < wish.order:
        remarks.append(f"more than {found.order} states would be rounding")
    is_known = math.isfinite(found.error)
    distance = reducer.separated.distance.peak
    kind = "balanced truncation" if wish.method == "truncation" else "singular perturbation"
    return Outcome(
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
        remarks=tuple(remarks),
    )


def _is_good(found: LargeReduction, wish: Wish) -> bool:
    """Whether arrays, where they can be had, would hardly do better than a projection did."""
    if wish.tolerance is not None:
        return found.error <= wish.tolerance * found.peak
    return found.projection_error <= _FAR * max(found.truncation_error, found.peak * _NOTHING)


def _by_projection(system: Pencil, wish: Wish, told: Told) -> LargeReduction:
    with one_blas_thread():  # many small products, which a second thread would wait for
        return reduce_large(
            system, order=wish.order, tolerance=wish.tolerance, method=wish.method, n_jobs=wish.n_jobs, told=told
        )


def _of_large(found: LargeReduction, system: Pencil) -> Outcome:
    is_certified = math.isfinite(found.error)
    kind = "symmetric" if system.is_symmetric else "dissipative" if is_certified else "not proven to be dissipative"
    return Outcome(
        matrices=found.matrices,
        order=found.order,
        way=f"Galerkin projection at {len(found.shifts)} shifts to {found.n_projected} states ({kind}), then balanced",
        error_bound=found.error if is_certified else None,
        estimate=found.estimate,
        mean=found.mean,
        gain=found.peak,
        hankel_values=found.hankel_values,
        parts={"projection": found.projection_error, "truncation": found.truncation_error} if is_certified else {},
        remarks=() if is_certified else ("the symmetric part of A is not negative definite: no bound is known",),
    )


def _require_ways(system: SystemMatrices) -> None:
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
            f"up to {LARGEST_FILLED_IN} states, whose integrating part is kept whole"
        )


def _is_singular(system: Pencil) -> bool:
    """Whether A has an eigenvalue of the size of rounding, by a factorisation and inverse iteration."""
    try:
        factors = superlu(system.A)
    except SingularError:
        return True
    x = np.random.default_rng(0).standard_normal(system.n_states)
    for _ in range(3):
        x = factors.solve(x / np.linalg.norm(x))
    size = float(abs(system.A).sum(axis=0).max())
    return not float(np.linalg.norm(x)) * size < 1.0 / (system.n_states * np.finfo(np.float64).eps)
