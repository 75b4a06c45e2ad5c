"""The one conversion of what a user calls numbers: real float64 arrays, or an error that says what came.

NumPy converts more than means the same: a masked array becomes the values below its mask, a complex one loses its
imaginary part, a date becomes a count of nanoseconds. None of them reaches the engines.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import InvalidSignalError
from ltinet.shown import shown

_REAL_KINDS = "biuf"  # NumPy dtype kinds that are cast: bool, signed, unsigned, floating


def real_array(value: Any, name: str) -> NDArray[np.float64]:
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
        raise InvalidSignalError(f"{name} {_described(given)}; it must be made of real numbers{_way_out(given, name)}")
    with np.errstate(over="ignore"):  # a number too large for float64 becomes inf, which is reported as not finite
        return np.asarray(given, dtype=np.float64)


def check_state(x: NDArray[np.float64], n: int) -> None:
    """Refuse what is no state of n numbers, or no batch of such.

    Raises:
        InvalidSignalError: another number of entries along the last axis, or one that is not finite.
    """
    if x.ndim == 0 or x.shape[-1] != n:
        raise InvalidSignalError(f"x0 has shape {x.shape}; its last axis must have {n} entries, one per state")
    if not np.isfinite(x).all():
        first = shown(x[~np.isfinite(x)][0])
        raise InvalidSignalError(f"x0 has an entry {first}; each of its {n} entries must be a finite number")


def as_array(value: Any, name: str) -> NDArray[Any]:
    """An array of whatever dtype the value has, unless it hides some of its entries or has no shape."""
    if type(value) is np.ndarray:
        return value
    if _hides_entries(value):
        leave_out = f", or leave those times out of u and t alike with ~np.ma.getmaskarray({name})"
        raise InvalidSignalError(
            f"{name} has masked entries, and what lies below a mask is not meant; fill them with {name}.filled(…)"
            f"{leave_out if name in ('u', 't') else ''}"
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; other libraries' arrays that refuse
        raise InvalidSignalError(
            f"{name} cannot be read as an array: {shown(error, longest=200)}; pass an array or rows of equal length"
        ) from None


def _hides_entries(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_hides_entries(part) for part in value)
    return isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)


def _described(given: NDArray[Any]) -> str:
    """What an array of no numbers is, with its first entry."""
    if given.dtype.kind in "US":
        return f"is text, {shown(repr(given.flat[0].item()) if given.size else given.dtype)}"
    if given.dtype == object and given.size:
        return f"has entries of type {shown(type(given.flat[0]).__qualname__)}"
    return f"has dtype {shown(given.dtype)}"


def _way_out(given: NDArray[Any], name: str) -> str:
    if given.dtype == object and given.ndim == 0 and hasattr(given.item(), "toarray"):
        return f": pass {name}.toarray()"
    return f", such as np.asarray({name}, dtype=float)"
