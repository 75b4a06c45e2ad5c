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
from ltinet.signals.numbers import real_array

_MOST_DELAY = 18  # samples that are looked for


def asked_wishes(order: Any, method: Any, block_rows: Any, refine: Any) -> Wishes:
    """Orders, methods and block rows as numbers."""
    if method not in ("auto", *METHODS):
        raise InvalidSignalError(f'method is {shown(repr(method))}; it must be "auto", "moesp", "n4sid" or "cva"')
    orders = None if order is None else _whole_numbers(order)
    if orders is not None and (not orders or orders[0] < 1):
        raise InvalidSignalError(f"order is {shown(repr(order))}; give a number of states from 1 on, or several")
    rows = () if block_rows is None else _whole_numbers(block_rows)
    if block_rows is not None and (len(rows) != 1 or np.ndim(block_rows) or rows[0] < 2):
        raise InvalidSignalError(f"block_rows is {shown(repr(block_rows))}; give a whole number from 2 on")
    methods = METHODS if method == "auto" else (method,)
    return Wishes(orders, methods, rows[0] if rows else None, asked_flag(refine, "refine"))


def asked_flag(value: Any, name: str) -> bool:
    """True or False, and nothing that is only taken for one."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSignalError(f"{name} is {shown(repr(value))}; it must be True or False")
    return bool(value)


def asked_word(value: Any, name: str, words: tuple[Any, ...]) -> None:
    """Refuse what is none of the words."""
    if not any(type(value) is type(own) and value == own for own in words):
        told = [f'"{own}"' if isinstance(own, str) else str(own) for own in words]
        raise InvalidSignalError(f"{name} is {shown(repr(value))}; it must be {', '.join(told[:-1])} or {told[-1]}")


def _whole_numbers(values: Any) -> tuple[int, ...]:
    """Ascending, each once; nothing where they are no whole numbers."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except (TypeError, ValueError):
        return ()
    return tuple(sorted({int(n) for n in array.tolist()})) if array.ndim == 1 and array.dtype.kind in "iu" else ()


def asked_delays(delay: Any, records: tuple[Record, ...]) -> tuple[int, ...]:
    """Samples for every input, found in the records where that was asked for."""
    m = records[0].u.shape[1]
    if isinstance(delay, str) and delay == "auto":
        return found_delays(records, most=_MOST_DELAY)
    shortest = min(map(len, records))
    try:
        given = np.broadcast_to(np.asarray(delay), (m,)) if np.ndim(delay) == 0 else np.asarray(delay)
    except (TypeError, ValueError):  # lists of different lengths
        given = np.zeros(0)
    if given.shape != (m,) or given.dtype.kind not in "iu" or np.any(given < 0) or np.any(given >= shortest):
        raise InvalidSignalError(
            f'delay is {shown(repr(delay))}; give "auto", or whole samples, one or {m} of them, fewer than the '
            f"{shortest} of the shortest experiment"
        )
    return tuple(int(own) for own in given)


def asked_points(values: ArrayLike, name: str) -> Array:
    """Frequencies or times `(k,)`."""
    numbers = np.atleast_1d(real_array(values, name))
    if numbers.ndim != 1 or not np.all(numbers >= 0.0) or not np.all(np.isfinite(numbers)):
        raise InvalidSignalError(f"{name} is {shown(repr(values))}; give a list of finite numbers from 0 on")
    return numbers
