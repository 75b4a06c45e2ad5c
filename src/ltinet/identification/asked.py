"""What users ask of an identification, checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.delays import found_delays
from ltinet.identification.estimation import Wishes
from ltinet.identification.record import Record
from ltinet.identification.subspace import METHODS
from ltinet.shown import shown

_MOST_DELAY = 18  # samples that are looked for


def asked_wishes(order: Any, method: Any, block_rows: Any, refine: Any) -> Wishes:
    """Orders, methods and block rows as numbers."""
    if method not in ("auto", *METHODS):
        raise InvalidSignalError(f'method is {shown(repr(method))}; it must be "auto", "moesp", "n4sid" or "cva"')
    given = np.atleast_1d(np.asarray([] if order is None else order))
    orders = None if order is None else tuple(sorted({int(n) for n in given.tolist()}))
    if orders is not None and (not orders or orders[0] < 1 or given.dtype.kind not in "iu"):
        raise InvalidSignalError(f"order is {shown(repr(order))}; give a number of states from 1 on, or several")
    if block_rows is not None and (not isinstance(block_rows, int) or block_rows < 2):
        raise InvalidSignalError(f"block_rows is {shown(repr(block_rows))}; give a whole number from 2 on")
    return Wishes(orders, METHODS if method == "auto" else (method,), block_rows, bool(refine))


def asked_delays(delay: Any, records: tuple[Record, ...]) -> tuple[int, ...]:
    """Samples for every input, found in the records where that was asked for."""
    m = records[0].u.shape[1]
    if isinstance(delay, str) and delay == "auto":
        return found_delays(records, most=_MOST_DELAY)
    given = np.broadcast_to(np.asarray(delay), (m,)) if np.ndim(delay) == 0 else np.asarray(delay)
    shortest = min(map(len, records))
    if given.shape != (m,) or given.dtype.kind not in "iu" or np.any(given < 0) or np.any(given >= shortest):
        raise InvalidSignalError(
            f'delay is {shown(repr(delay))}; give "auto", or whole samples, one or {m} of them, fewer than the '
            f"{shortest} of the shortest experiment"
        )
    return tuple(int(own) for own in given)


def asked_points(values: ArrayLike, name: str) -> Array:
    """Frequencies or times `(k,)`."""
    numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if numbers.ndim != 1 or not np.all(numbers >= 0.0) or not np.all(np.isfinite(numbers)):
        raise InvalidSignalError(f"{name} is {shown(repr(values))}; give a list of finite numbers from 0 on")
    return numbers
