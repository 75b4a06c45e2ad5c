"""The door for models with algebraic equations: `eliminate_algebraic`."""

from typing import Any

import numpy as np
from scipy import sparse

from ltinet.conversion import as_state_space
from ltinet.model.algebraic import Proper, solve_algebraic, solve_algebraic_arrays
from ltinet.model.descriptor import SingularMassError
from ltinet.model.names import SignalNames
from ltinet.model.sparse_factors import SingularError, SparseFactors
from ltinet.model.system_matrices import SystemMatrices
from ltinet.state_space import StateSpace
from ltinet.tolerances import EPS


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
    held = without_zero_rows(system)
    pencil = held.sparse
    if pencil is None or pencil.mass is None or pencil.is_large or not _is_singular(pencil.mass):
        return held
    return _by_singular_values(held)


def without_zero_rows(system: Any) -> StateSpace:
    """The same where rows and columns of E are zero, or E is a singular array; any other system as it is."""
    try:
        held = as_state_space(system)
    except SingularMassError:
        return _by_singular_values(StateSpace.of(_as_sparse(system)))
    pencil = held.sparse
    if pencil is None or pencil.mass is None:
        return held
    found = solve_algebraic(pencil.mass, pencil.state, pencil.B, held.C, held.D)
    if found is None:
        return held
    return StateSpace.of(_system(found, held.matrices.names), settings=held.signal_settings)


def _by_singular_values(held: StateSpace) -> StateSpace:
    """Of a model that is sparse or was made so."""
    pencil: Any = held.sparse
    E, A = pencil.mass.toarray(), pencil.state.toarray()
    found = solve_algebraic_arrays(E, A, pencil.B, held.C, held.D)
    return StateSpace.of(_system(found, held.matrices.names), settings=held.signal_settings)


def _as_sparse(system: Any) -> SystemMatrices:
    """Matrices that came with a singular E, checked without eliminating it."""
    parts: Any = system if isinstance(system, tuple | list) else [getattr(system, name, None) for name in "ABCDE"]
    A, B, C, D, E = parts
    return SystemMatrices(sparse.csr_array(np.asarray(A)), B, C, D, E)


def _system(found: Proper, names: SignalNames) -> SystemMatrices:
    n = found.A.shape[0]
    ones: Any = np.eye(n) if isinstance(found.E, np.ndarray) else sparse.eye_array(n)
    is_identity = n == 0 or abs(found.E - ones).max() == 0.0
    made = SystemMatrices(found.A, found.B, found.C, found.D, None if is_identity else found.E)
    if found.kept is None or names.states is None:
        return made.named(names.of_ends)
    return made.named(SignalNames(names.inputs, names.outputs, tuple(names.states[own] for own in found.kept)))


def _is_singular(E: Any) -> bool:
    try:
        return not SparseFactors(E, has_symmetric_pattern=False).condition() * E.shape[0] * EPS < 1.0
    except SingularError:
        return True
