"""Numbers of the paper compared with computed ones, their verdicts and rounding bands.

The verdict of a number is always computed from its limits. Adaptive solvers take a step more or less where an error
estimate falls on the other side of its tolerance, so that counts of evaluations differ between processors:
`kernel_bands.json` holds the results of full runs with several BLAS kernels, and `docs/refresh_reproduction.py` writes
it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any


class Verdict(StrEnum):
    """Verdict on a computed number.

    The first three apply to numbers that the paper prints, the next two to its descriptions in words, the last two to
    numbers that it does not have.
    """

    REPRODUCED = "reproduced"
    BETTER = "better"
    MISSED = "not reproduced"
    DESCRIBED = "as described"
    CONTRADICTED = "not as described"
    FOR_COMPARISON = "for comparison"
    UNEXPECTED = "not as expected"


NOT_PRINTED = "–"
"""Placeholder for a number that the paper does not print."""


@dataclass(frozen=True)
class ComparedNumber:
    """A number of the paper, the computed one, and the limits within which that is as expected."""

    key: str
    """Name of the number in `results.json`, with the example in front."""
    meaning: str
    here: float
    paper: str | float = NOT_PRINTED
    """As printed; words where the paper gives words."""
    low: float = -math.inf
    high: float = math.inf
    lower_is_better: bool = False
    """True if a number within the limits and below the printed one is better."""
    note: str = ""
    band: tuple[float, float] | None = None
    """Smallest and largest value with other BLAS kernels, None if they agree in all printed digits."""

    @property
    def is_printed(self) -> bool:
        """True if the paper has a number, even "roughly 1", and not only words."""
        return not isinstance(self.paper, str) or any(character.isdigit() for character in self.paper)

    @property
    def verdict(self) -> Verdict:
        """Verdict that follows from the limits; only numbers that the paper prints can be reproduced."""
        if self.low == -math.inf and self.high == math.inf:
            return Verdict.FOR_COMPARISON
        inside = self.low <= self.here <= self.high
        if self.paper == NOT_PRINTED:
            return Verdict.FOR_COMPARISON if inside else Verdict.UNEXPECTED
        if not self.is_printed:
            return Verdict.DESCRIBED if inside else Verdict.CONTRADICTED
        if not inside:
            return Verdict.MISSED
        is_lower = not isinstance(self.paper, str) and self.here < self.paper
        return Verdict.BETTER if self.lower_is_better and is_lower else Verdict.REPRODUCED

    @property
    def bounds(self) -> str:
        """Limits in words."""
        if self.low == self.high:
            return f"= {format_number(self.low)}"
        if self.low > -math.inf and self.high < math.inf:
            middle, half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
            if half <= 1e-3 * max(1.0, abs(middle)):  # both limits would be printed alike
                return f"{format_number(middle)} ± {format_number(half)}"
            return f"{format_number(self.low)} to {format_number(self.high)}"
        if self.low > -math.inf:
            return f"≥ {format_number(self.low)}"
        return f"≤ {format_number(self.high)}" if self.high < math.inf else ""


def compare(example: str, name: str, meaning: str, here: float, **limits: Any) -> ComparedNumber:
    """Return a number of an example; `limits` are the other fields of `ComparedNumber`."""
    return ComparedNumber(f"{example}.{name}", meaning, here, **limits)


def compare_exactly(example: str, name: str, meaning: str, here: float, paper: float) -> ComparedNumber:
    """Return a count, which is reproduced if it is equal."""
    return compare(example, name, meaning, here, paper=paper, low=paper, high=paper)


def format_number(value: float) -> str:
    """Format a number: counts in full, others to four digits, very small and large ones with powers of ten."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    if value == int(value) and abs(value) < 1e5:
        return f"{int(value)}".replace("-", "−")
    if 1e-3 <= abs(value) < 9999.5:
        return f"{value:.4g}".replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", "−")
    power = str(int(exponent)).translate(_SUPERSCRIPTS)
    return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@cache
def load_kernel_values() -> Mapping[str, Mapping[str, float]]:
    """Load the values of each number that depends on the BLAS kernel, by key and kernel."""
    text = resources.files("ltinet.paper").joinpath("kernel_bands.json").read_text(encoding="utf-8")
    numbers: dict[str, dict[str, float]] = json.loads(text)["numbers"]
    return numbers


def add_rounding_band(number: ComparedNumber) -> ComparedNumber:
    """Add to a number its smallest and largest values, over all kernels and this run."""
    values = [number.here, *load_kernel_values().get(number.key, {}).values()]
    low, high = min(values), max(values)
    return replace(number, band=None if format_number(low) == format_number(high) else (low, high))
