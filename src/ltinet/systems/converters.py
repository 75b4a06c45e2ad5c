"""Conversion of tuples, transfer functions and systems of other libraries to `SystemMatrices`.

Systems of scipy.signal, python-control and pyMOR are recognized by their attributes; none of these libraries is
imported. Polynomials num(s)/den(s) are realized in controller form, transfer matrices column by column (correct but not
minimal; `ltinet.tf` is), and zeros, poles and gain as a chain of sections. Coefficients are taken unchanged: SciPy's
`tf2ss` drops leading numerator coefficients below 1e-14 in absolute size, which is wrong for a system measured in small
units.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import as_real_matrix, shape_of
from ltinet.systems.signal_names import names_from_labels
from ltinet.systems.system_matrices import SystemMatrices, validate_time_step
from ltinet.systems.transfer_functions import realize_polynomial_matrix, realize_polynomials, realize_zpk


def series(first: SystemMatrices, second: SystemMatrices) -> SystemMatrices:
    """Feed the output of `first` to `second`."""
    A = np.block([[first.A, np.zeros((first.n_states, second.n_states))], [second.B @ first.C, second.A]])
    B = np.vstack([first.B, second.B @ first.D])
    return SystemMatrices(A, B, np.hstack([second.D @ first.C, second.C]), second.D @ first.D)


_ACCEPTED_TYPES = (
    "accepted are ltinet.StateSpace; tuples (A, B, C), (A, B, C, D), (A, B, C, D, E) and (num, den); scipy.signal "
    "StateSpace, TransferFunction and ZerosPolesGain; control StateSpace and TransferFunction; pyMOR LTIModel and "
    "SecondOrderModel"
)
# Attributes in which libraries store the time step of a system in discrete time.
_TIME_STEP_ATTRIBUTES = ("dt", "sampling_time", "Ts", "ts", "sample_time", "sampling_period", "SamplingPeriod")


def to_system_matrices(obj: Any) -> SystemMatrices:
    """Convert any object that `ltinet.as_state_space` accepts to matrices; raise InvalidSystemError for others."""
    if isinstance(obj, SystemMatrices):
        return obj
    if isinstance(obj, str | PathLike):
        raise InvalidSystemError(
            f"{sanitize(repr(str(obj)))} is text and not a system; if it is a path, read the system first: "
            "construct(load_system(path))"
        )
    if hasattr(obj, "n_scheduling"):  # models with products and their networks
        raise InvalidSystemError(
            f"{_type_name(obj)} has products of signals and is not linear; pass model.linearize(x0, u0), or for the part "
            "without products model.linear or net.linear. ltinet.reduce_products reduces such models"
        )
    if is_pymor_bilinear(obj):
        raise InvalidSystemError(
            f"{_type_name(obj)} has products of inputs and states and is not linear; convert it by "
            "ltinet.Bilinear.from_pymor(model), or pass it to ltinet.construct"
        )
    if isinstance(obj, tuple | list):
        return _from_sequence(obj)
    matrices = _matrices_from_object(obj).with_time_step(_time_step_of(obj))
    names = names_from_labels(obj)
    if not _has_attributes(obj, "A", "B", "C"):  # states of a realization are not those of the object
        names = names.without_states
    return matrices.with_names(names.with_defaults(matrices.names))


def is_pymor_bilinear(obj: Any) -> bool:
    """Return whether an object is a `BilinearModel` of pyMOR."""
    return any(base.__name__ == "BilinearModel" for base in type(obj).__mro__) and _has_attributes(obj, "A", "N")


def _matrices_from_object(obj: Any) -> SystemMatrices:
    if hasattr(obj, "to_lti"):  # pyMOR SecondOrderModel
        obj = obj.to_lti()
    if hasattr(obj, "to_matrices"):  # pyMOR LTIModel: its A, B, C, D and E are operators
        return _from_pymor(obj)
    if _has_attributes(obj, "A", "B", "C"):
        return SystemMatrices(obj.A, obj.B, obj.C, getattr(obj, "D", None), getattr(obj, "E", None))
    if _has_attributes(obj, "num", "den"):
        # scipy.signal has one denominator, python-control one for each output and input.
        num, den = getattr(obj, "num_list", obj.num), getattr(obj, "den_list", obj.den)
        is_matrix = isinstance(den, list) and isinstance(den[0], list)
        return realize_polynomial_matrix(num, den) if is_matrix else realize_polynomials(num, den)
    if _has_attributes(obj, "zeros", "poles", "gain"):
        return _from_zeros_poles_gain(obj)
    raise InvalidSystemError(
        f"an object of type {_type_name(obj)} is not a system that can be converted; {_ACCEPTED_TYPES}"
    )


def _from_sequence(parts: Sequence[Any]) -> SystemMatrices:
    if len(parts) == 2 and isinstance(parts, tuple):
        return realize_polynomials(*parts)
    if len(parts) == 3 and len(shape_of(parts[0], "the first part")) != 2:
        raise InvalidSystemError(
            "three parts may mean (A, B, C) or (zeros, poles, gain), and the first does not have two axes; pass A as a "
            "2-D array, or scipy.signal.ZerosPolesGain(zeros, poles, gain)"
        )
    if len(parts) == 5 and parts[4] is not None and shape_of(parts[4], "the fifth part") == ():
        raise InvalidSystemError(
            f"the fifth part is a number, {sanitize(parts[4])}, as in (A, B, C, D, dt) of scipy.signal; pass "
            "ltinet.StateSpace(A, B, C, D, dt=…) for a system in discrete time, or E as a matrix, [[…]]"
        )
    if len(parts) in (3, 4, 5):
        return SystemMatrices(*parts)
    raise InvalidSystemError(f"a {type(parts).__name__} of {len(parts)} parts is not a system; {_ACCEPTED_TYPES}")


def _time_step_of(obj: Any) -> float | None:
    """Return the time step of a system of another library; None for continuous time.

    SciPy and python-control call it `dt`, where True is an unspecified step; pyMOR calls it `sampling_time`.
    """
    for attribute in _TIME_STEP_ATTRIBUTES:
        step = getattr(obj, attribute, None)
        if step is None or callable(step) or _is_zero(step):
            continue
        try:
            return validate_time_step(step)
        except InvalidSystemError:
            raise _missing_step_error(obj, f"{attribute} = {sanitize(step)}") from None
    if any(base.__name__ == "dlti" for base in type(obj).__mro__):  # a dlti with dt = 0 is in discrete time
        raise _missing_step_error(obj, "it is a scipy.signal.dlti")
    return None


def _is_zero(step: Any) -> bool:
    value = np.asarray(step)
    return value.dtype.kind in "biuf" and value.size == 1 and not value.any()


def _missing_step_error(obj: Any, reason: str) -> InvalidSystemError:
    return InvalidSystemError(
        f"the {_type_name(obj)} is discrete in time ({reason}) and has no time step; set one, or pass "
        "ltinet.StateSpace(A, B, C, D, dt=0.1)"
    )


def _from_pymor(model: Any) -> SystemMatrices:
    if getattr(model, "parameters", None):
        raise InvalidSystemError(
            f"the {_type_name(model)} depends on parameters ({', '.join(model.parameters)}); pass the matrices at "
            "one value of them: as_state_space(model.to_matrices(mu=mu))"
        )
    # to_matrices() of a port-Hamiltonian model returns J, R, G, …; to_abcde_matrices() always returns A to E.
    matrices = model.to_abcde_matrices() if hasattr(model, "to_abcde_matrices") else model.to_matrices()
    if len(matrices) != 5:
        raise InvalidSystemError(
            f"{_type_name(model)}.to_matrices() gives {len(matrices)} matrices, not A, B, C, D, E; {_ACCEPTED_TYPES}"
        )
    return SystemMatrices(*matrices)


def _from_zeros_poles_gain(obj: Any) -> SystemMatrices:
    zeros, poles = np.asarray(obj.zeros, dtype=complex), np.asarray(obj.poles, dtype=complex)
    if zeros.ndim != 1 or poles.ndim != 1:
        raise InvalidSystemError(
            "zeros and poles must be 1-D, for one input and one output; pass each output as its own system"
        )
    gain = as_real_matrix(obj.gain, "gain")
    return realize_zpk(zeros, poles, float(gain[0, 0]))


def _has_attributes(obj: Any, *attributes: str) -> bool:
    return all(hasattr(obj, attribute) for attribute in attributes)


def _type_name(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}"
