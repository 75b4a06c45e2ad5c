"""Other libraries' systems become ours; they are known by their attributes, and none of them is imported."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.labelled import names_of_labels
from ltinet.model.matrices import as_real_matrix, shape_of
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import checked_time_step
from ltinet.model.transfer_functions import realise_polynomial_matrix, realise_polynomials, realise_zpk
from ltinet.shown import shown

_ACCEPTED = (
    "accepted are ltinet.StateSpace; tuples (A, B, C), (A, B, C, D), (A, B, C, D, E) and (num, den); scipy.signal "
    "StateSpace, TransferFunction and ZerosPolesGain; control StateSpace and TransferFunction; pyMOR LTIModel and "
    "SecondOrderModel"
)
# Names under which libraries keep the time step of a discrete model.
_SAMPLING = ("dt", "sampling_time", "Ts", "ts", "sample_time", "sampling_period", "SamplingPeriod")


def system_matrices_of(obj: Any) -> SystemMatrices:
    """The matrices of anything that `ltinet.as_state_space` takes.

    Raises:
        InvalidSystemError: the object is not one of these, its step has no length, it is improper or parametric.
    """
    if isinstance(obj, SystemMatrices):
        return obj
    if isinstance(obj, str | PathLike):
        raise InvalidSystemError(
            f"{shown(repr(str(obj)))} is text and not a system; if it is a path, read the system first: "
            "load_system(path), as in construct(load_system(path))"
        )
    if isinstance(obj, tuple | list):
        return _from_sequence(obj)
    found = _matrices_of(obj).sampled(_time_step_of(obj))
    names = names_of_labels(obj)
    return found.named((names if _has(obj, "A", "B", "C") else names.of_ends).over(found.names))


def _matrices_of(obj: Any) -> SystemMatrices:
    if hasattr(obj, "to_lti"):  # pyMOR SecondOrderModel
        obj = obj.to_lti()
    if hasattr(obj, "to_matrices"):  # pyMOR LTIModel: its A, B, C, D and E are operators
        return _from_pymor(obj)
    if _has(obj, "A", "B", "C"):
        return SystemMatrices(obj.A, obj.B, obj.C, getattr(obj, "D", None), getattr(obj, "E", None))
    if _has(obj, "num", "den"):
        return _from_transfer_function(obj)
    if _has(obj, "zeros", "poles", "gain"):
        return _from_zeros_poles_gain(obj)
    raise InvalidSystemError(f"an object of type {_type_name(obj)} is not a system that can be converted; {_ACCEPTED}")


def _from_sequence(parts: Sequence[Any]) -> SystemMatrices:
    if len(parts) == 2 and isinstance(parts, tuple):
        return realise_polynomials(*parts)
    if len(parts) == 3 and len(shape_of(parts[0], "the first part")) != 2:
        raise InvalidSystemError(
            "three parts may mean (A, B, C) or (zeros, poles, gain), and the first does not have two axes; pass A as a "
            "2-D array, or scipy.signal.ZerosPolesGain(zeros, poles, gain)"
        )
    if len(parts) == 5 and parts[4] is not None and shape_of(parts[4], "the fifth part") == ():
        raise InvalidSystemError(
            f"the fifth part is a number, {shown(parts[4])}, as in scipy.signal's (A, B, C, D, dt) of a system in "
            "discrete time; pass ltinet.StateSpace(A, B, C, D, dt=…) if that is meant, or E as a matrix, [[…]]"
        )
    if len(parts) in (3, 4, 5):
        return SystemMatrices(*parts)
    raise InvalidSystemError(f"a {type(parts).__name__} of {len(parts)} parts is not a system; {_ACCEPTED}")


def _time_step_of(obj: Any) -> float | None:
    """The step of a sampled system, under any of the names in use; None and 0 stand for continuous time.

    scipy and control call it `dt`, which may be True for a step that nobody named, pyMOR `sampling_time`, others `Ts`.
    """
    for attribute in _SAMPLING:
        step = getattr(obj, attribute, None)
        if step is None or callable(step) or _is_zero(step):
            continue
        try:
            return checked_time_step(step)
        except InvalidSystemError:
            raise _without_step(obj, f"{attribute} = {shown(step)}") from None
    if any(base.__name__ == "dlti" for base in type(obj).__mro__):  # of dt = 0, which is no continuous time there
        raise _without_step(obj, "it is a scipy.signal.dlti")
    return None


def _is_zero(step: Any) -> bool:
    given = np.asarray(step)
    return given.dtype.kind in "biuf" and given.size == 1 and not given.any()


def _without_step(obj: Any, why: str) -> InvalidSystemError:
    return InvalidSystemError(
        f"the {_type_name(obj)} is discrete in time ({why}), and its time step has no length; give it one, or pass "
        "ltinet.StateSpace(A, B, C, D, dt=0.1) with the step that is meant"
    )


def _from_pymor(model: Any) -> SystemMatrices:
    if getattr(model, "parameters", None):
        raise InvalidSystemError(
            f"the {_type_name(model)} depends on parameters ({', '.join(model.parameters)}); pass the matrices at "
            "one value of them: as_state_space(model.to_matrices(mu=mu))"
        )
    # A port-Hamiltonian model's to_matrices() are others (J, R, G, …); to_abcde_matrices() are always these five.
    matrices = model.to_abcde_matrices() if hasattr(model, "to_abcde_matrices") else model.to_matrices()
    if len(matrices) != 5:
        raise InvalidSystemError(
            f"{_type_name(model)}.to_matrices() gives {len(matrices)} matrices, not A, B, C, D, E; {_ACCEPTED}"
        )
    return SystemMatrices(*matrices)


def _from_transfer_function(obj: Any) -> SystemMatrices:
    """scipy.signal holds one denominator, python-control a nested list with a polynomial for each output and input."""
    num, den = getattr(obj, "num_list", obj.num), getattr(obj, "den_list", obj.den)
    if isinstance(den, list) and isinstance(den[0], list):
        return realise_polynomial_matrix(num, den)
    return realise_polynomials(num, den)


def _from_zeros_poles_gain(obj: Any) -> SystemMatrices:
    zeros, poles = np.asarray(obj.zeros, dtype=complex), np.asarray(obj.poles, dtype=complex)
    if zeros.ndim != 1 or poles.ndim != 1:
        raise InvalidSystemError(
            "zeros and poles must be 1-D, for one input and one output; pass each output as its own system"
        )
    gain = as_real_matrix(obj.gain, "gain")
    return realise_zpk(zeros, poles, float(gain[0, 0]))


def _has(obj: Any, *attributes: str) -> bool:
    return all(hasattr(obj, attribute) for attribute in attributes)


def _type_name(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}"
