"""The door through which systems of other libraries come: `as_state_space`."""

from typing import Any

from ltinet.model.convert import system_matrices_of
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace


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
    return held if isinstance(held, StateSpace) else StateSpace.of(system_matrices_of(obj))
