"""Reduction of first-order systems: choice of the method, scaling, and the result common to all methods.

Dense and small systems are balanced, large sparse ones projected first. Systems whose units would leave the range of
doubles are scaled by powers of two: with s = τ s' the system C (sE − A)⁻¹B is C (s'E − A/τ)⁻¹(B/τ), and B and C take
factors of their own.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ltinet._util.blas_threads import limit_blas_threads, single_blas_thread
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import (
    DenseReducer,
    ReductionOptions,
    ReductionOutcome,
    StateSpaceMatrices,
    prepare_reducer,
    smallest_order,
)
from ltinet.reduction.dissipative_pencil import Pencil, make_pencil
from ltinet.reduction.rational_krylov import ProgressCallback, reduce_sparse
from ltinet.systems.descriptor import GrowingSystemError
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES
from ltinet.systems.sparse_lu import is_singular
from ltinet.systems.system_matrices import SystemMatrices

# Scaling of systems whose squares would overflow or underflow.

_UNSCALED_RANGE = 2.0**60  # sizes from its inverse to it need no scaling: products of eight of them are within 2^±480


@dataclass(frozen=True)
class SystemUnits:
    """Scaling A = time·A', B = time·inputs·B', C = outputs·C'; then G = inputs·outputs·G'."""

    time: float
    inputs: float
    outputs: float

    def scale(self, system: SystemMatrices) -> SystemMatrices:
        """Return the system in these units."""
        E, A, B = system.state_equation
        C, D = system.C / self.outputs, system.D / self.outputs / self.inputs
        return SystemMatrices(A * (1.0 / self.time), B / self.time / self.inputs, C, D, E)

    def restore(self, outcome: ReductionOutcome) -> ReductionOutcome:
        """Return the outcome in the original units; bounds are rounded up where they become subnormal."""
        A, B, C, D = outcome.matrices
        gain = self.inputs * self.outputs
        matrices = StateSpaceMatrices(
            A * self.time, B * self.time * self.inputs, C * self.outputs, D * self.outputs * self.inputs
        )
        tiny = np.finfo(np.float64).tiny
        return replace(
            outcome,
            matrices=matrices,
            estimate=outcome.estimate * gain,
            h2_bound=lambda: outcome.h2_bound() * gain * math.sqrt(self.time) + tiny,
            gain=outcome.gain * gain,
            hankel_values=None if outcome.hankel_values is None else outcome.hankel_values * gain,
            parts={name: value * gain + tiny for name, value in outcome.parts.items()},
            field=None
            if outcome.field is None
            else replace(outcome.field, time_unit=self.time, input_unit=self.inputs),
        )


def choose_units(system: SystemMatrices) -> SystemUnits | None:
    """Return units in which A, B and C are of size one; None if no scaling is necessary, as for nearly all systems."""
    pencil = system.sparse
    if pencil is not None:
        A, B, E = abs(pencil.state).max() if pencil.n_nonzeros else 0.0, pencil.B, pencil.mass
        mass = float(abs(E).max()) if E is not None and E.nnz else 1.0
    else:
        A, B, mass = float(np.abs(system.A).max(initial=0.0)), system.B, 1.0
    time = _power_of_two(float(A) / mass)
    inputs = _power_of_two(float(np.abs(B).max(initial=0.0)) / time)
    outputs = _power_of_two(float(np.abs(system.C).max(initial=0.0)))
    if all(1.0 / _UNSCALED_RANGE < unit < _UNSCALED_RANGE for unit in (time, inputs, outputs)):
        return None
    return SystemUnits(time, inputs, outputs)


def _power_of_two(size: float) -> float:
    """Return the power of two nearest to a size, 1 for zero or infinity."""
    return 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 1.0


# Choice of the method.

_MAX_SMALL_STATES = 300  # of a sparse system, up to which dense matrices are as fast; speed only, make bench-reduce
_ASYMMETRY_BY_ROUNDING = 1e-12  # of the largest entry: smaller asymmetries are taken for a mistake of the user


def reduce_matrices(
    system: SystemMatrices, options: ReductionOptions, *, callback: ProgressCallback
) -> ReductionOutcome:
    """Reduce by balancing dense matrices, or by projection if the system is sparse and large.

    Raises:
        InvalidSystemError: there is nothing to reduce, or no method for the system.
    """
    B = system.B if system.sparse is None else system.sparse.B
    for name, matrix, problem in (("B", B, "no input acts on any state"), ("C", system.C, "no output depends on x")):
        if not matrix.any():
            raise InvalidSystemError(
                f"{name} is zero: {problem}, and the system is y = D u; there is nothing to reduce"
            )
    units = choose_units(system)
    if units is not None:
        return units.restore(_reduce_scaled(units.scale(system), options, callback))
    return _reduce_scaled(system, options, callback)


def _reduce_scaled(system: SystemMatrices, options: ReductionOptions, callback: ProgressCallback) -> ReductionOutcome:
    projected: ReductionOutcome | None = None
    try:
        if system.sparse is not None and system.n_states > _MAX_SMALL_STATES:
            pencil = make_pencil(system.sparse.state, system.sparse.B, system.C, system.D, system.sparse.mass)
            if system.n_states > MAX_DENSE_STATES or pencil.dissipation is not None:
                _require_usable(pencil)
                with single_blas_thread():  # many small products, which are slower with several threads
                    projected, is_accurate = reduce_sparse(pencil, options, callback=callback)
                if system.n_states > MAX_DENSE_STATES or is_accurate:
                    return projected
        with limit_blas_threads(system.n_states):
            dense = _balance(prepare_reducer(system), options)
        return dense if projected is None or dense.error_bound is not None else projected
    except MemoryError:
        raise InvalidSystemError(
            f"the factors of a system with {system.n_states} states do not fit into memory; use a coarser grid, or a "
            "machine with more memory"
        ) from None


def _balance(reducer: DenseReducer, options: ReductionOptions) -> ReductionOutcome:
    hankel_values, n_retained, method = reducer.balanced.hankel_values, reducer.n_retained, options.method
    rounding = reducer.separated.distance.peak
    notes = [f"{n_retained} states that do not certainly decay are kept"] if n_retained else []
    if options.order is not None:
        if options.order < n_retained:
            n_separated = options.n_separated
            raise InvalidSystemError(
                f"order is {options.order + n_separated}, but {n_retained + n_separated} states are unstable, integrate, or "
                "are within rounding of the stability limit; they are kept, so pass an order of at least "
                f"{n_retained + n_separated}"
            )
        reduction = reducer.reduce(options.order, method=method)
        if reduction.order < options.order:
            notes.append(f"states beyond {reduction.order} would be rounding")
    else:
        tolerance = options.relative_error
        # About the largest gain: not less than the largest Hankel value, not more than twice their sum.
        allowed = tolerance * float(np.max(hankel_values, initial=0.0)) * 2.0
        reduction = smallest_order(
            reducer, lambda candidate: candidate.error <= tolerance * candidate.peak, allowed=allowed, method=method
        )
    return ReductionOutcome(
        matrices=reduction.matrices,
        order=reduction.order,
        algorithm="balanced truncation" if method == "truncation" else "singular perturbation",
        estimate=reduction.estimate,
        h2_bound=reduction.h2_bound,
        gain=reduction.peak,
        hankel_values=hankel_values,
        parts={"truncation": reduction.estimate, "rounding": rounding} if math.isfinite(reduction.error) else {},
        n_retained=n_retained,
        notes=tuple(notes),
    )


def _require_usable(system: Pencil) -> None:
    """Refuse matrices that are symmetric up to rounding, an indefinite E, and systems with integrators."""
    for name, matrix in (("A", system.A), ("E", system.E)):
        asymmetry, largest = abs(matrix - matrix.T), float(abs(matrix).max())
        if asymmetry.nnz and 0.0 < float(asymmetry.max()) <= _ASYMMETRY_BY_ROUNDING * largest:
            raise InvalidSystemError(
                f"{name} is symmetric except for rounding, by {float(asymmetry.max()) / largest:.0e} of its largest "
                f"entry; pass ({name} + {name}.T)/2, so that methods for symmetric systems apply"
            )
    if system.mass is None:
        raise InvalidSystemError(
            "E is not symmetric positive definite, so that no error bound can be proven; scale the equations so that "
            "E is, or eliminate it where that is cheap: pass E⁻¹A and E⁻¹B"
        )
    if system.dissipation is None and system.only_grows:
        raise GrowingSystemError(
            "A is positive definite, so that all modes grow; M x' + K x = f u is StateSpace(-K, f, E=M), with the sign of "
            "K reversed. To integrate growing modes, pass simulate(u, t, tolerance=1e-6)"
        )
    if system.dissipation is None and is_singular(system.A):
        raise InvalidSystemError(
            "A is singular to working precision: the system integrates, and has no finite gain to reduce it by. Without "
            "reduction simulate(u, t), step_response(t), frequency_response(omega) and plot.bode(omega) work; of models "
            f"of up to {MAX_DENSE_STATES} states the integrating part is kept"
        )
