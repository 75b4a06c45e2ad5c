"""A number of the paper beside the one found here, and the verdict, which is always computed."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a number found here stands to what was expected of it."""

    REPRODUCED = "reproduced"
    BETTER = "better"
    MISSED = "not reproduced"
    BESIDE = "for comparison"


@dataclass(frozen=True)
class Number:
    """What the paper prints, what is found here, and between which bounds that counts as reproduced."""

    key: str
    """Names the number in `results.json`."""
    meaning: str
    here: float
    paper: str | float = "–"
    """As printed; words where the paper gives words."""
    low: float = -math.inf
    high: float = math.inf
    lower_is_better: bool = False
    """Whether a number within the bounds and below the printed one deserves to be called better."""
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Computed from the bounds; numbers without bounds stand for comparison only."""
        if self.low == -math.inf and self.high == math.inf:
            return Verdict.BESIDE
        if not self.low <= self.here <= self.high:
            return Verdict.MISSED
        if self.lower_is_better and not isinstance(self.paper, str) and self.here < self.paper:
            return Verdict.BETTER
        return Verdict.REPRODUCED

    @property
    def bounds(self) -> str:
        """What counts as reproduced, in words."""
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
