"""A number of the paper beside the one found here, and the verdict, which is always computed."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a number found here stands to what was expected of it.

    The first three are about numbers that the paper prints, the next two about what it says in words; numbers that it
    does not have stand for comparison, unless they are not what they should be.
    """

    REPRODUCED = "reproduced"
    BETTER = "better"
    MISSED = "not reproduced"
    DESCRIBED = "as described"
    CONTRADICTED = "not as described"
    BESIDE = "for comparison"
    UNEXPECTED = "not as expected"


NOTHING = "–"
"""What stands in place of a number that the paper does not have."""


@dataclass(frozen=True)
class Number:
    """What the paper prints, what is found here, and between which bounds that is as expected."""

    key: str
    """Names the number in `results.json`."""
    meaning: str
    here: float
    paper: str | float = NOTHING
    """As printed; words where the paper gives words."""
    low: float = -math.inf
    high: float = math.inf
    lower_is_better: bool = False
    """Whether a number within the bounds and below the printed one deserves to be called better."""
    note: str = ""
    band: tuple[float, float] | None = None
    """Smallest and largest that this number came out as with other kernels of BLAS; None where it stayed the same."""

    @property
    def is_printed(self) -> bool:
        """Whether the paper has a number, be it "roughly 1", and not only words."""
        return not isinstance(self.paper, str) or any(character.isdigit() for character in self.paper)

    @property
    def verdict(self) -> Verdict:
        """Computed from the bounds; only what the paper prints can be reproduced."""
        if self.low == -math.inf and self.high == math.inf:
            return Verdict.BESIDE
        inside = self.low <= self.here <= self.high
        if self.paper == NOTHING:
            return Verdict.BESIDE if inside else Verdict.UNEXPECTED
        if not self.is_printed:
            return Verdict.DESCRIBED if inside else Verdict.CONTRADICTED
        if not inside:
            return Verdict.MISSED
        is_lower = not isinstance(self.paper, str) and self.here < self.paper
        return Verdict.BETTER if self.lower_is_better and is_lower else Verdict.REPRODUCED

    @property
    def bounds(self) -> str:
        """What is as expected, in words."""
        if self.low == self.high:
            return f"= {plain(self.low)}"
        if self.low > -math.inf and self.high < math.inf:
            middle, half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
            if half <= 1e-3 * max(1.0, abs(middle)):  # both ends would read alike
                return f"{plain(middle)} ± {plain(half)}"
            return f"{plain(self.low)} to {plain(self.high)}"
        if self.low > -math.inf:
            return f"≥ {plain(self.low)}"
        return f"≤ {plain(self.high)}" if self.high < math.inf else ""


def exactly(key: str, meaning: str, *, here: float, paper: float, note: str = "") -> Number:
    """A count: reproduced if it is the very same."""
    return Number(key, meaning, here=here, paper=paper, low=paper, high=paper, note=note)


def plain(value: float) -> str:
    """A number as people write it: counts in full, others to four digits, very small and large ones by powers."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    if value == int(value) and abs(value) < 1e5:
        return f"{int(value)}".replace("-", "−")
    if 1e-3 <= abs(value) < 9999.5:
        return f"{value:.4g}".replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", "−")
    power = str(int(exponent)).translate(_RAISED)
    return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
