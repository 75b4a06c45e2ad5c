"""The door: a measured frequency response as it came becomes arrays that can be fitted, or an error says why not."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array, Complex
from ltinet.errors import InvalidSignalError
from ltinet.shown import count_of

FEWEST = 6  # frequencies: two thirds of them determine a model of order 1 with a direct path and leave two to try it on


class Measured(NamedTuple):
    """A checked response with frequencies ascending."""

    omega: Array
    H: Complex
    """Shape (K, p, m)."""
    weights: Array | None
    """Shape (K, p, m), not negative."""


def checked(omega: ArrayLike, H: ArrayLike, weights: ArrayLike | None, *, fewest: int = FEWEST) -> Measured:
    """Frequencies ascending, each once, and H and weights with three axes.

    Raises:
        InvalidSignalError: anything is not finite, has a wrong shape or a wrong sign, a frequency has two responses, or
            there are too few of them.
    """
    frequencies = _frequencies(omega)
    values = _response(H, len(frequencies))
    _require_real_at_rest(frequencies, values)
    own = None if weights is None else _weights(weights, values.shape)
    order = np.argsort(frequencies, kind="stable")
    frequencies, values = frequencies[order], values[order]
    own = None if own is None else own[order]
    again = np.flatnonzero(np.diff(frequencies) == 0.0)
    for at in again:
        if np.any(values[at] != values[at + 1]):
            raise InvalidSignalError(
                f"omega holds {frequencies[at]:.6g} rad/s more than once with different responses; "
                "average repeated measurements first"
            )
    once = np.append(np.diff(frequencies) > 0.0, True)
    frequencies, values, own = frequencies[once], values[once], None if own is None else own[once]
    if len(frequencies) < fewest:
        raise InvalidSignalError(
            f"omega has {count_of(len(frequencies), 'value')}; a model of order 1 needs "
            f"at least {fewest}, and one of order n some 3 n"
        )
    return Measured(frequencies, values, own)


def _frequencies(omega: ArrayLike) -> Array:
    array = _numbers(omega, "omega")
    if array.ndim != 1:
        raise InvalidSignalError(f"omega has shape {array.shape}; give a list of frequencies in rad/s")
    if np.iscomplexobj(array):
        raise InvalidSignalError("omega is complex; give ω in rad/s, not s = jω")
    _require_finite(array, "omega")
    if np.any(array < 0.0):
        at = int(np.argmax(array < 0.0))
        raise InvalidSignalError(
            f"omega[{at}] is {array[at]:.6g}; give frequencies of 0 and above, the response of a real system at −ω "
            "is the conjugate of that at ω"
        )
    return array.astype(np.float64)


def _response(H: ArrayLike, n_frequencies: int) -> Complex:
    array = _numbers(H, "H")
    if array.ndim not in (1, 3) or len(array) != n_frequencies:
        hint = ""
        if array.ndim == 3 and array.shape[2] == n_frequencies:
            hint = "; it seems to be (outputs, inputs, frequencies): pass np.moveaxis(H, -1, 0)"
        elif array.ndim == 2 and n_frequencies in array.shape:
            hint = "; for one input pass H[:, :, None], for one output H[:, None, :], with frequencies first"
        raise InvalidSignalError(
            f"H has shape {array.shape} for {n_frequencies} frequencies; it must be ({n_frequencies},) or "
            f"({n_frequencies}, outputs, inputs){hint}"
        )
    values = array.astype(np.complex128).reshape(n_frequencies, *(array.shape[1:] or (1, 1)))
    if values.size == 0 and n_frequencies:
        raise InvalidSignalError(f"H has shape {array.shape}; there must be at least one input and one output")
    _require_finite(values, "H")
    return values


def _require_real_at_rest(omega: Array, H: Complex) -> None:
    at_rest = H[omega == 0.0]
    size = float(np.max(np.abs(H), initial=0.0))
    if np.any(np.abs(at_rest.imag) > np.sqrt(np.finfo(float).eps) * size):
        raise InvalidSignalError(
            f"H at omega = 0 is {at_rest.ravel()[np.argmax(np.abs(at_rest.imag))]:.6g}; the gain of a real system is "
            "real there: leave this frequency out, or pass the real part"
        )


def _weights(weights: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = _numbers(weights, "weights")
    if np.iscomplexobj(array):
        raise InvalidSignalError("weights are complex; give real numbers of 0 and above, such as 1/|H|")
    own = array[:, None, None] if array.shape == shape[:1] else array
    if own.shape not in (shape, (shape[0], 1, 1)):
        raise InvalidSignalError(f"weights have shape {array.shape}; it must be ({shape[0]},) or that of H, {shape}")
    _require_finite(own, "weights")
    if np.any(own < 0.0) or not np.any(own > 0.0):
        raise InvalidSignalError("weights must be 0 or above, and some above; 1/|H| fits relative errors")
    return np.array(np.broadcast_to(own, shape), dtype=np.float64)


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidSignalError(f"{name} has masked entries; leave out these frequencies first")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidSignalError(f"{name} cannot be read as numbers: {error}") from None
    if array.dtype.kind not in "biufc":
        raise InvalidSignalError(f"{name} has dtype {array.dtype}; give numbers")
    return array


def _require_finite(array: NDArray[Any], name: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = ", ".join(str(at) for at in bad[0])
        raise InvalidSignalError(
            f"{name}[{place}] is {array[tuple(bad[0])]}; leave out frequencies that were not measured, and ω = 0 where "
            "the system integrates"
        )
