"""Budgets that people can read: for each rung the shortest decimal that buys it and not the next one."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context

_FEWEST, _MOST = 3, 17  # digits; 17 tell every double apart


def budgets_of(conditions: Sequence[float]) -> tuple[float, ...]:
    """One budget for each of rising condition numbers: at least that one, below the next."""
    after = [*conditions[1:], float("inf")]
    return tuple(_between(own, later) for own, later in zip(conditions, after, strict=True))


def _between(condition: float, later: float) -> float:
    for digits in range(_FEWEST, _MOST + 1):
        rounded = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(condition))
        if condition <= rounded < later:
            return rounded
    return condition
