"""Conversion of other systems to `StateSpace`: `as_state_space` and `eliminate_algebraic`.

`as_state_space` accepts tuples of matrices or polynomials, `SecondOrder` models and systems of scipy.signal,
python-control and pyMOR. `eliminate_algebraic` solves the algebraic equations of a descriptor system E x' = A x + B u
with singular E (index 1).
"""

from typing import Any

import numpy as np
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace
from ltinet.systems.converters import to_system_matrices
from ltinet.systems.descriptor import SingularMassError, solve_algebraic_svd
from ltinet.systems.sparse_lu import is_singular
from ltinet.systems.system_matrices import SystemMatrices, eliminate_algebraic_rows, without_algebraic


def as_state_space(obj: Any) -> StateSpace:
    """Convert a system of any supported kind to `StateSpace`.

    Systems given by state-space matrices keep their states, and labels of python-control become names. Transfer
    functions are realized in controller form, those with several inputs column by column, which is not minimal if
    entries share poles. Zeros, poles and gain become a chain of second-order sections; the polynomials are not
    multiplied out.

    Parameters
    ----------
    obj : object
        `StateSpace` (returned unchanged) or `SecondOrder`; tuple (A, B, C), (A, B, C, D), (A, B, C, D, E) or
        (num, den); system of scipy.signal, python-control or pyMOR, in continuous or discrete time; result of
        `identify` or `reduce`.

    Returns
    -------
    StateSpace
        System with the same input–output map.

    Raises
    ------
    InvalidSystemError
        If the object is not a system, is improper, depends on parameters, or is in discrete time without a time step.

    Examples
    --------
    >>> import ltinet
    >>> system = ltinet.as_state_space(([1.0], [1.0, 0.5, 4.0]))  # 1/(s² + 0.5 s + 4)
    >>> system.n_states
    2
    >>> system.dcgain()
    array([[0.25]])
    """
    if isinstance(obj, SecondOrder):
        return obj.to_state_space()
    system = getattr(obj, "system", obj)  # results of `identify` and `reduce` hold a system
    return system if isinstance(system, StateSpace) else StateSpace.of(to_system_matrices(obj))


def eliminate_algebraic(system: Any) -> StateSpace:
    """Eliminate the algebraic equations of a descriptor system E x' = A x + B u with singular E (index 1).

    Variables whose columns of E are zero are substituted into the other equations; sparse models stay sparse unless
    the substitution fills them in. Any other singular E of up to 3,000 states is brought to this form by its singular
    value decomposition, which mixes the states. Outputs of algebraic variables that depend on inputs directly
    contribute to D. A system with regular E is returned unchanged.

    Parameters
    ----------
    system : tuple or object
        (A, B, C, D, E), or any object that `as_state_space` accepts.

    Returns
    -------
    StateSpace
        System without algebraic equations, with the same input–output map.

    Raises
    ------
    InvalidSystemError
        If the index is 2 or more, the pencil sE − A is singular for all s, or the result would fill in.
    """
    state_space = eliminate_zero_rows(system)
    pencil = state_space.sparse
    if pencil is None or pencil.mass is None or not is_singular(pencil.mass):
        return state_space
    if pencil.is_large:
        raise InvalidSystemError(
            "E is singular, but its zero rows do not match its zero columns, and the model is too large for a singular "
            "value decomposition; remove the algebraic equations where it is assembled, such as prescribed degrees of "
            "freedom: K[free][:, free], M[free][:, free], f[free]"
        )
    return _eliminate_by_svd(state_space)


def eliminate_zero_rows(system: Any) -> StateSpace:
    """Eliminate algebraic equations where rows and columns of E are zero, or where E is a singular dense matrix.

    Any other system is returned unchanged, even if its sparse E is singular.
    """
    try:
        state_space = as_state_space(system)
    except SingularMassError:
        return _eliminate_by_svd(StateSpace.of(_to_sparse_matrices(system)))
    pencil = state_space.sparse
    if pencil is None or pencil.mass is None:
        return state_space
    matrices = eliminate_algebraic_rows(state_space.matrices)
    if matrices is state_space.matrices:
        return state_space
    return StateSpace.of(matrices, settings=state_space.signal_settings)


def _eliminate_by_svd(system: StateSpace) -> StateSpace:
    pencil: Any = system.sparse
    E, A = pencil.mass.toarray(), pencil.state.toarray()
    regular = solve_algebraic_svd(E, A, pencil.B, system.C, system.D)
    return StateSpace.of(without_algebraic(system.matrices, regular), settings=system.signal_settings)


def _to_sparse_matrices(system: Any) -> SystemMatrices:
    """Validate the matrices of a system without eliminating E: a sparse A keeps E as it is."""
    parts: Any = system if isinstance(system, tuple | list) else [getattr(system, name, None) for name in "ABCDE"]
    A, B, C, D, E = parts
    return SystemMatrices(sparse.csr_array(np.asarray(A)), B, C, D, E)
