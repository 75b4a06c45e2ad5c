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

Times = NDArray[np.float64]
Values = NDArray[np.float64]


_MIN_BLAS_SIZE = 1_000  # numbers from which on sums by BLAS are faster than isfinite; measured
_CHUNK_SIZE = 10_000  # numbers per sum, so that no BLAS starts threads


def all_finite(values: Array) -> bool:
    """Return whether no entry is NaN or infinite; sums of absolute values make it almost free for large arrays."""
    if values.size > _MIN_BLAS_SIZE and values.flags.c_contiguous and values.dtype == np.float64:
        flat = values.reshape(-1)
        for begin in range(0, len(flat), _CHUNK_SIZE):
            if not math.isfinite(dasum(flat[begin : begin + _CHUNK_SIZE])):
                break  # an entry is not finite, or the sum overflows
        else:
            return True
    return bool(np.count_nonzero(np.isfinite(values)) == values.size)  # faster than all()


_REAL_KINDS = "biuf"  # dtype kinds of NumPy that are converted: bool, signed, unsigned, floating


def as_real_array(value: Any, name: str) -> NDArray[np.float64]:
    """Return real numbers as float64, of any shape; a float64 array is returned as it is, not copied.

    Raises InvalidSignalError with `name` in its message if the value is masked, complex, text, dates or objects.
    """
    array = as_array(value, name)
    if array.dtype == np.float64:
        return array
    if array.dtype.kind == "c":
        raise InvalidSignalError(
            f"{name} is complex ({array.dtype}); expected real numbers: pass {name}.real to drop the imaginary part"
        )
    if array.dtype.kind not in _REAL_KINDS:
        raise InvalidSignalError(
            f"{name} {_describe_dtype(array)}; expected real numbers{_conversion_hint(array, name)}"
        )
    with np.errstate(over="ignore"):  # a number too large for float64 becomes inf, which is reported as not finite
        return np.asarray(array, dtype=np.float64)


def broadcast_states(x: NDArray[np.float64], n: int, batch_shape: tuple[int, ...]) -> Array:
    """Return a state of n numbers, or a batch of states, as one row for each member of a batch of inputs.

    Raises InvalidSignalError if the shape of x does not fit, or if an entry is not finite.
    """
    if x.ndim == 0 or x.shape[-1] != n:
        raise InvalidSignalError(f"x0 has shape {x.shape}; its last axis must have {n} entries, one per state")
    if not np.isfinite(x).all():
        first = sanitize(x[~np.isfinite(x)][0])
        raise InvalidSignalError(f"x0 has an entry {first}; each of its {n} entries must be a finite number")
    try:
        x = np.broadcast_to(x, (*batch_shape, n))
    except ValueError:
        raise InvalidSignalError(
            f"x0 has shape {x.shape}, but the inputs are a batch of shape {batch_shape}. Pass one state, or one for "
            "each input."
        ) from None
    return x.reshape(math.prod(batch_shape), n)


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as an array of its own dtype; raise InvalidSignalError for masked entries and ragged lists."""
    if type(value) is np.ndarray:
        return value
    if _has_masked_entries(value):
        alternative = f", or leave those times out of u and t alike with ~np.ma.getmaskarray({name})"
        raise InvalidSignalError(
            f"{name} has masked entries, whose values are not meant to be used; fill them with {name}.filled(…)"
            f"{alternative if name in ('u', 't') else ''}"
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, or arrays of other libraries that refuse
        raise InvalidSignalError(
            f"{name} cannot be read as an array: {sanitize(error, longest=200)}; pass an array or rows of equal length"
        ) from None


def _has_masked_entries(value: Any) -> bool:
    """Return whether a value, or an item of nested lists, has masked entries."""
    if isinstance(value, list | tuple):
        return any(_has_masked_entries(part) for part in value)
    return isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)


def _describe_dtype(array: NDArray[Any]) -> str:
    """Return a description of a non-numeric array, with its first entry."""
    if array.dtype.kind in "US":
        return f"is text, {sanitize(repr(array.flat[0].item()) if array.size else array.dtype)}"
    if array.dtype == object and array.size:
        return f"has entries of type {sanitize(type(array.flat[0]).__qualname__)}"
    return f"has dtype {sanitize(array.dtype)}"


def _conversion_hint(array: NDArray[Any], name: str) -> str:
    """Return a hint on how to convert a value to real numbers."""
    if array.dtype == object and array.ndim == 0 and hasattr(array.item(), "toarray"):
        return f": pass {name}.toarray()"
    return f", such as np.asarray({name}, dtype=float)"
