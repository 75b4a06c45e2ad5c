"""Conversion of user input to real float64 arrays, with validation.

NumPy converts more than is safe: a masked array becomes the values below its mask, a complex one loses its imaginary
part, a date becomes a count of nanoseconds. These are rejected with a message that names the argument. Times have the
shape `(T,)`, values `(..., T, n_inputs)` with batch axes in front.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dasum

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError

# MERGED ltinet.signals.arrays
# Shapes that signals speak in: times `(T,)`, values `(..., T, n_inputs)` with batches in front.

Times = NDArray[np.float64]
Values = NDArray[np.float64]


# MERGED ltinet.signals.arrays
# Whether numbers are finite: asked of every input and output, so it must cost next to nothing.

_MIN_BLAS_SIZE, _CHUNK_SIZE = (
    1_000,
    10_000,
)  # numbers: fewer are looked at as fast one by one, for more some BLAS would wake threads


def all_finite(values: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    if values.size > _MIN_BLAS_SIZE and values.flags.c_contiguous and values.dtype == np.float64:
        flat = values.reshape(-1)
        for begin in range(0, len(flat), _CHUNK_SIZE):
            if not math.isfinite(dasum(flat[begin : begin + _CHUNK_SIZE])):
                break  # one of them is not finite, or their sum is not
        else:
            return True
    return bool(np.count_nonzero(np.isfinite(values)) == values.size)  # faster than all()


# MERGED ltinet.signals.arrays
# The one conversion of what a user calls numbers: real float64 arrays, or an error that says what came.
#
# NumPy converts more than means the same: a masked array becomes the values below its mask, a complex one loses its
# imaginary part, a date becomes a count of nanoseconds. None of them reaches the engines.

_REAL_KINDS = "biuf"  # NumPy dtype kinds that are cast: bool, signed, unsigned, floating


def as_real_array(value: Any, name: str) -> NDArray[np.float64]:
    """Real numbers as float64, of any shape; an array that is that already is returned as it is, not copied.

    Raises:
        InvalidSignalError: `value` is masked, complex, text, dates or objects; the message calls it `name`.
    """
    given = as_array(value, name)
    if given.dtype == np.float64:
        return given
    if given.dtype.kind == "c":
        raise InvalidSignalError(
            f"{name} is complex ({given.dtype}); it must be made of real numbers: pass {name}.real if that is meant"
        )
    if given.dtype.kind not in _REAL_KINDS:
        raise InvalidSignalError(
            f"{name} {_describe_dtype(given)}; it must be made of real numbers{_conversion_hint(given, name)}"
        )
    with np.errstate(over="ignore"):  # a number too large for float64 becomes inf, which is reported as not finite
        return np.asarray(given, dtype=np.float64)


def validate_state(x: NDArray[np.float64], n: int) -> None:
    """Refuse what is no state of n numbers, or no batch of such.

    Raises:
        InvalidSignalError: another number of entries along the last axis, or one that is not finite.
    """
    if x.ndim == 0 or x.shape[-1] != n:
        raise InvalidSignalError(f"x0 has shape {x.shape}; its last axis must have {n} entries, one per state")
    if not np.isfinite(x).all():
        first = sanitize(x[~np.isfinite(x)][0])
        raise InvalidSignalError(f"x0 has an entry {first}; each of its {n} entries must be a finite number")


def as_array(value: Any, name: str) -> NDArray[Any]:
    """An array of whatever dtype the value has, unless it hides some of its entries or has no shape."""
    if type(value) is np.ndarray:
        return value
    if _has_masked_entries(value):
        leave_out = f", or leave those times out of u and t alike with ~np.ma.getmaskarray({name})"
        raise InvalidSignalError(
            f"{name} has masked entries, and what lies below a mask is not meant; fill them with {name}.filled(…)"
            f"{leave_out if name in ('u', 't') else ''}"
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; other libraries' arrays that refuse
        raise InvalidSignalError(
            f"{name} cannot be read as an array: {sanitize(error, longest=200)}; pass an array or rows of equal length"
        ) from None


def _has_masked_entries(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_masked_entries(part) for part in value)
    return isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)


def _describe_dtype(given: NDArray[Any]) -> str:
    """What an array of no numbers is, with its first entry."""
    if given.dtype.kind in "US":
        return f"is text, {sanitize(repr(given.flat[0].item()) if given.size else given.dtype)}"
    if given.dtype == object and given.size:
        return f"has entries of type {sanitize(type(given.flat[0]).__qualname__)}"
    return f"has dtype {sanitize(given.dtype)}"


def _conversion_hint(given: NDArray[Any], name: str) -> str:
    if given.dtype == object and given.ndim == 0 and hasattr(given.item(), "toarray"):
        return f": pass {name}.toarray()"
    return f", such as np.asarray({name}, dtype=float)"
