"""How large the arrays of a file may be: a file of some kilobytes can claim, or unfold to, more than any memory has."""

import math
from collections.abc import Sequence, Sized
from typing import Any, final

from ltinet.errors import FileFormatError
from ltinet.model.formats.refusals import BeyondLimitError
from ltinet.shown import shown

DEFAULT_MAX_BYTES = 2 * 1024**3
"""2 GiB: a dense A of 16,000 states, or a sparse one of some millions."""

MOST_AXES = 32
"""What every version of NumPy can hold."""

_MOST_VARIABLES = 100_000  # nobody has so many; millions of empty ones would take minutes to list
_BYTES_PER_NUMBER = 8
_BYTES_PER_PLACE = 24  # row, column and value of an entry; two copies of where a row begins, as it is sorted, and more
_MOST_PLACES = 2**63 - 1  # each has a number of 64 bits, by which doubles are found
_MORE_THAN_ANY_MEMORY = 2**62  # also without a limit: places in an array are counted in 64 bits
_INFLATION = 1032  # the most that deflate makes of one byte; by the format, whoever wrote it
_SMALLEST_STREAM = 1024  # below this, headers and rounding decide and not the ratio


@final
class Allowance:
    """How many bytes of arrays may still come from one file; each is claimed before it is read."""

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = min(max_bytes, _MORE_THAN_ANY_MEMORY)
        self._claimed = 0

    def claim(self, shape: Sequence[int], what: str) -> None:
        """Reserve room for an array of float64, which is what every dense one becomes in the end.

        An axis of length zero does not excuse the others: NumPy multiplies them all the same.

        Raises:
            BeyondLimitError: there is not so much room left.
            ValueError: the array has more axes than an array can have, or a negative one.
        """
        if len(shape) > MOST_AXES or any(size < 0 for size in shape):
            raise ValueError(f"{what} claims the shape {shown(tuple(shape))}")
        self.claim_bytes(_BYTES_PER_NUMBER * math.prod(max(size, 1) for size in shape), f"{what} ({times(shape)})")

    def claim_sparse(self, shape: Sequence[int], n_entries: int, what: str) -> None:
        """Reserve room for a sparse matrix: its entries with their places, and where its rows and columns begin.

        Rows that hold nothing take room, too, as soon as the matrix is sorted by rows.

        Raises:
            BeyondLimitError: there is not so much room left.
            ValueError: it does not have two axes, one is negative, or there are more places than can be counted.
        """
        if len(shape) != 2 or min(*shape, n_entries) < 0 or math.prod(shape) > _MOST_PLACES:
            raise ValueError(f"{what} claims the shape {shown(tuple(shape))} with {n_entries} entries")
        self.claim_bytes(_BYTES_PER_PLACE * (sum(shape) + n_entries), f"{what} ({times(shape)}, sparse)")

    def claim_bytes(self, count: int, what: str) -> None:
        """Reserve room for so many bytes."""
        self._claimed += count
        self.require(self._claimed, what)

    def require(self, count: int, what: str) -> None:
        """Refuse a part that alone would be too large, without reserving room for it."""
        if count > self.max_bytes:
            raise BeyondLimitError(
                f"with {what} its arrays take {_readable(count)}, and max_bytes allows {_readable(self.max_bytes)}; "
                f"if you trust the file, allow more: max_bytes={_rounded_up(count)}"
            )


def allowance(max_bytes: Any) -> Allowance:
    """The allowance that a caller gave.

    Raises:
        FileFormatError: it is not a number of bytes.
    """
    try:
        if not isinstance(max_bytes, bool | str) and float(max_bytes) >= 0.0:
            return Allowance(max_bytes)
    except (TypeError, ValueError, OverflowError):
        pass
    raise FileFormatError(f"max_bytes is {shown(repr(max_bytes))}; give a number of bytes, such as {DEFAULT_MAX_BYTES}")


def require_plausible_inflation(claimed: int, compressed: int, what: str) -> None:
    """Refuse a size that no compressed text of this length can unfold to, before room is made for it.

    Raises:
        ValueError: the size is beyond what deflate can do.
    """
    if claimed > most_inflated(compressed):
        raise ValueError(f"{what} claims {claimed} bytes, but is compressed to {compressed}, too few for that")


def most_inflated(compressed: int) -> int:
    """The most bytes that so many compressed ones can unfold to."""
    return _INFLATION * compressed + _SMALLEST_STREAM


def require_few(variables: Sized) -> None:
    """Refuse a file with more variables than anybody means.

    Raises:
        ValueError: there are too many.
    """
    if len(variables) > _MOST_VARIABLES:
        raise ValueError(f"it holds more than {_MOST_VARIABLES} variables")


def times(shape: Sequence[int]) -> str:
    """A shape as people write it: 3×4."""
    return shown("×".join(map(str, shape)) or "one number")


def _readable(count: float) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"


def _rounded_up(count: int) -> int:
    """A number that is easy to type, with room for what comes after this array."""
    step = int(10 ** (len(str(count)) - 1))
    return (count // step + 1) * step
