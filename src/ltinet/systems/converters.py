"""Conversion of tuples, transfer functions and systems of other libraries to `SystemMatrices`.

Systems of scipy.signal, python-control and pyMOR are recognized by their attributes; none of these libraries is
imported. Polynomials num(s)/den(s) are realized in controller form, transfer matrices column by column (correct but not
minimal), and zeros, poles and gain as a chain of second-order sections, because multiplying out the polynomials loses
poles to rounding from about 20 of them on. Coefficients are taken unchanged: SciPy's `tf2ss` drops leading numerator
coefficients below 1e-14 in absolute size, which is wrong for a system measured in small units.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from ltinet._util.floating_point import rounding_tolerance
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, MatrixLike, as_real_matrix, shape_of
from ltinet.systems.signal_names import names_from_labels
from ltinet.systems.system_matrices import SystemMatrices, validate_time_step


def realize_polynomials(num: MatrixLike, den: MatrixLike) -> SystemMatrices:
    """Realize num(s)/den(s) in controller form, with one input and one output per row of `num`, highest power first.

    Raises InvalidSystemError if the denominator is zero or of lower degree than a numerator.
    """
    numerators = as_real_matrix(num, "num", vector="row")
    denominator = as_real_matrix(den, "den", vector="row")
    if len(denominator) != 1:
        raise InvalidSystemError(
            f"den has shape {denominator.shape}; pass one polynomial, the highest power first, or, if these are "
            "matrices A and B, all of (A, B, C)"
        )
    if not denominator.any():
        raise InvalidSystemError("den is zero; pass a denominator with a coefficient other than 0")
    a = np.trim_zeros(denominator[0], "f")
    n = len(a) - 1
    excess = max(numerators.shape[1] - len(a), 0)
    if numerators[:, :excess].any():
        degree = numerators.shape[1] - 1 - np.flatnonzero(numerators.any(axis=0))[0]
        raise InvalidSystemError(
            f"the transfer function is improper: num has degree {degree}, den only {n}, so the output "
            "would need derivatives of the input; pass a proper one, for example with a fast pole added to den"
        )
    c = np.zeros((len(numerators), n + 1))
    trimmed = numerators[:, excess:]
    c[:, n + 1 - trimmed.shape[1] :] = trimmed
    A, B = np.eye(n, k=-1), np.eye(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # SystemMatrices refuses overflows
        c, a = c / a[0], a / a[0]
        C, D = c[:, 1:] - c[:, :1] * a[1:], c[:, :1]
    A[:1] = -a[1:]
    return SystemMatrices(A, B, C, D)


def realize_polynomial_matrix(
    num: Sequence[Sequence[MatrixLike]], den: Sequence[Sequence[MatrixLike]]
) -> SystemMatrices:
    """Realize the transfer matrix with entries num[i][j]/den[i][j] from input j to output i, column by column.

    A column whose entries share one denominator needs one set of states; others are realized entry by entry. Poles that
    several entries or columns share appear once for each, so the realization is not minimal.
    """
    columns = [
        _realize_column([row[j] for row in num], [row[j] for row in den], where=f"input {j}")
        for j in range(len(num[0]))
    ]
    A, B = (block_diag(*(getattr(column, name) for column in columns)) for name in "AB")
    C, D = (np.hstack([getattr(column, name) for column in columns]) for name in "CD")
    return SystemMatrices(A, B, C, D)


def realize_zpk(zeros: NDArray[np.complex128], poles: NDArray[np.complex128], gain: float) -> SystemMatrices:
    """Realize gain·Π(s − zeros)/Π(s − poles) with one input and one output as a chain of second-order sections.

    Raises InvalidSystemError if there are more zeros than poles, or complex ones without their conjugates.
    """
    if len(zeros) > len(poles):
        raise InvalidSystemError(
            f"the transfer function is improper: {len(zeros)} zeros but {len(poles)} poles; pass at least as many poles"
        )
    denominators = _quadratic_factors(poles, "poles")
    numerators = _quadratic_factors(zeros, "zeros")
    numerators += [np.ones(1)] * (len(denominators) - len(numerators))
    system = realize_polynomials([[gain]], [1.0])
    for num, den in zip(numerators, denominators, strict=True):
        system = series(system, realize_polynomials(num, den))
    return system


def _realize_column(nums: Sequence[MatrixLike], dens: Sequence[MatrixLike], where: str) -> SystemMatrices:
    try:
        entries = [realize_polynomials(num, den) for num, den in zip(nums, dens, strict=True)]
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{where}: {error}") from None
    first = entries[0]
    B, D = (np.vstack([getattr(entry, name) for entry in entries]) for name in "BD")
    if all(np.array_equal(entry.A, first.A) for entry in entries):  # one denominator, one set of states
        return SystemMatrices(first.A, first.B, np.vstack([entry.C for entry in entries]), D)
    A, C = (block_diag(*(getattr(entry, name) for entry in entries)) for name in "AC")
    return SystemMatrices(A, B, C, D)


def series(first: SystemMatrices, second: SystemMatrices) -> SystemMatrices:
    """Feed the output of `first` to `second`."""
    A = np.block([[first.A, np.zeros((first.n_states, second.n_states))], [second.B @ first.C, second.A]])
    B = np.vstack([first.B, second.B @ first.D])
    return SystemMatrices(A, B, np.hstack([second.D @ first.C, second.C]), second.D @ first.D)


def _quadratic_factors(roots: NDArray[np.complex128], name: str) -> list[Matrix]:
    """Return real quadratic factors of a polynomial with these roots; the last is linear if their number is odd."""
    tolerance = rounding_tolerance(len(roots)) * np.abs(roots)
    is_real = np.abs(roots.imag) <= tolerance
    real = np.sort(roots[is_real].real)
    upper, lower = roots[~is_real & (roots.imag > 0)], list(roots[~is_real & (roots.imag < 0)])
    factors = []
    for root in upper:
        partner = min(lower, key=lambda other: abs(other - root.conjugate()), default=np.complex128(np.nan))
        if not abs(partner - root.conjugate()) <= rounding_tolerance(len(roots)) * abs(root):
            break
        lower.remove(partner)
        factors.append(np.array([1.0, -2.0 * root.real, abs(root) ** 2]))
    if lower or len(factors) != len(upper):
        raise InvalidSystemError(f"{name} has complex entries without their conjugates; pass both of each pair")
    factors += [np.array([1.0, -(one + other), one * other]) for one, other in zip(real[::2], real[1::2], strict=False)]
    return factors + ([np.array([1.0, -real[-1]])] if len(real) % 2 else [])


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
    if isinstance(obj, tuple | list):
        return _from_sequence(obj)
    matrices = _matrices_from_object(obj).with_time_step(_time_step_of(obj))
    names = names_from_labels(obj)
    if not _has_attributes(obj, "A", "B", "C"):  # states of a realization are not those of the object
        names = names.without_states
    return matrices.with_names(names.with_defaults(matrices.names))


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
