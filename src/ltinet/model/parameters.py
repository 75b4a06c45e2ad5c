"""Checks of the numbers that size a named system, made before anything is built."""

import operator
from typing import Any

import numpy as np

from ltinet.errors import InvalidSystemError


def as_count(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`; any integer type will do, a float will not."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidSystemError(f"{name} is {value!r}; it must be a whole number of at least {minimum}") from None
    if count < minimum:
        raise InvalidSystemError(f"{name} is {count}; it must be at least {minimum}")
    return count


def as_finite(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidSystemError(f"{name} is {value!r}; it must be a number") from None
    if not np.isfinite(number):
        raise InvalidSystemError(f"{name} is {number}; it must be finite")
    return number


def as_positive(value: Any, name: str) -> float:
    """Return `value` as a float above zero."""
    number = as_finite(value, name)
    if number <= 0.0:
        raise InvalidSystemError(f"{name} is {number}; it must be greater than 0")
    return number


def as_not_negative(value: Any, name: str) -> float:
    """Return `value` as a float of at least zero."""
    number = as_finite(value, name)
    if number < 0.0:
        raise InvalidSystemError(f"{name} is {number}; it must not be negative")
    return number
