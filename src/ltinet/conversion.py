"""Conversion of other systems to `StateSpace`: `as_state_space` and `eliminate_algebraic`.

`as_state_space` accepts tuples of matrices or polynomials, `SecondOrder` models and systems of scipy.signal,
python-control and pyMOR. `eliminate_algebraic` solves the algebraic equations of a descriptor system E x' = A x + B u
with singular E (index 1).
"""

from typing import Any

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import EPS
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace
from ltinet.systems.converters import to_system_matrices
from ltinet.systems.descriptor import RegularDescriptor, SingularMassError, solve_algebraic_rows, solve_algebraic_svd
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.conversion
# The door through which systems of other libraries come: `as_state_space`.


def as_state_space(obj: Any) -> StateSpace:
    """Return `obj` as a `StateSpace`; one that is a `StateSpace` already is returned as it is.

    Accepted are tuples (A, B, C), (A, B, C, D), (A, B, C, D, E) and (num, den), `SecondOrder` models, and systems of
    scipy.signal, python-control and pyMOR, in continuous or discrete time. Systems given by state-space matrices keep
    their states, and labels of python-control are names here.
    Transfer functions are realised in controller form, one with several inputs column by column, which is not minimal
    when entries share poles; zeros, poles and gain become a chain of second-order sections, without multiplying out the
    polynomials.

    Raises:
        InvalidSystemError: the object is not one of these, its step has no length, it is improper or parametric.
    """
    if isinstance(obj, SecondOrder):
        return obj.to_state_space()
    held = getattr(obj, "system", obj)  # a result that holds the system it found
    return held if isinstance(held, StateSpace) else StateSpace.of(to_system_matrices(obj))


# MERGED ltinet.conversion
# The door for models with algebraic equations: `eliminate_algebraic`.


def eliminate_algebraic(system: Any) -> StateSpace:
    """The system that is left of E x' = A x + B u with a singular E, once its algebraic equations are solved.

    Variables whose rows and columns of E are zero are put into the other equations; sparse models stay sparse, unless
    that fills them in. Any other singular E of up to 3,000 states is brought to that form by its singular values, which
    mixes the states. Outputs then see inputs at once where algebraic variables did: D. What has a regular E comes back
    as it is.

    Args:
        system: (A, B, C, D, E), or anything that `as_state_space` takes.

    Raises:
        InvalidSystemError: the index is 2 or more, the pencil sE − A is singular, or the result would fill in.
    """
    held = eliminate_zero_rows(system)
    pencil = held.sparse
    if pencil is None or pencil.mass is None or pencil.is_large or not _is_singular(pencil.mass):
        return held
    return _eliminate_by_svd(held)


def eliminate_zero_rows(system: Any) -> StateSpace:
    """The same where rows and columns of E are zero, or E is a singular array; any other system as it is."""
    try:
        held = as_state_space(system)
    except SingularMassError:
        return _eliminate_by_svd(StateSpace.of(_to_sparse_matrices(system)))
    pencil = held.sparse
    if pencil is None or pencil.mass is None:
        return held
    found = solve_algebraic_rows(pencil.mass, pencil.state, pencil.B, held.C, held.D)
    if found is None:
        return held
    return StateSpace.of(_to_system_matrices(found, held.matrices.names), settings=held.signal_settings)


def _eliminate_by_svd(held: StateSpace) -> StateSpace:
    """Of a model that is sparse or was made so."""
    pencil: Any = held.sparse
    E, A = pencil.mass.toarray(), pencil.state.toarray()
    found = solve_algebraic_svd(E, A, pencil.B, held.C, held.D)
    return StateSpace.of(_to_system_matrices(found, held.matrices.names), settings=held.signal_settings)


def _to_sparse_matrices(system: Any) -> SystemMatrices:
    """Matrices that came with a singular E, checked without eliminating it."""
    parts: Any = system if isinstance(system, tuple | list) else [getattr(system, name, None) for name in "ABCDE"]
    A, B, C, D, E = parts
    return SystemMatrices(sparse.csr_array(np.asarray(A)), B, C, D, E)


def _to_system_matrices(found: RegularDescriptor, names: SignalNames) -> SystemMatrices:
    n = found.A.shape[0]
    ones: Any = np.eye(n) if isinstance(found.E, np.ndarray) else sparse.eye_array(n)
    is_identity = n == 0 or abs(found.E - ones).max() == 0.0
    made = SystemMatrices(found.A, found.B, found.C, found.D, None if is_identity else found.E)
    if found.kept is None or names.states is None:
        return made.with_names(names.without_states)
    return made.with_names(SignalNames(names.inputs, names.outputs, tuple(names.states[own] for own in found.kept)))


def _is_singular(E: Any) -> bool:
    try:
        return not SparseLU(E, has_symmetric_pattern=False).condition() * E.shape[0] * EPS < 1.0
    except SingularMatrixError:
        return True
