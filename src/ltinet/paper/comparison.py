"""Numbers of the paper compared with computed ones, their verdicts and rounding bands.

The verdict of a number is always computed from its limits. Adaptive solvers take a step more or less where an error
estimate falls on the other side of its tolerance, so that counts of evaluations differ between processors:
`kernel_bands.json` holds the results of full runs with several BLAS kernels, and `docs/refresh_reproduction.py` writes
it. A report section collects text, numbers, tables and figures of one example.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# MERGED ltinet.paper.comparison
# A number of the paper beside the one found here, and the verdict, which is always computed.


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


NOT_PRINTED = "–"
"""What stands in place of a number that the paper does not have."""


@dataclass(frozen=True)
class ComparedNumber:
    """What the paper prints, what is found here, and between which bounds that is as expected."""

    key: str
    """Names the number in `results.json`."""
    meaning: str
    here: float
    paper: str | float = NOT_PRINTED
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
        if self.paper == NOT_PRINTED:
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
            return f"= {format_number(self.low)}"
        if self.low > -math.inf and self.high < math.inf:
            middle, half = (self.low + self.high) / 2.0, (self.high - self.low) / 2.0
            if half <= 1e-3 * max(1.0, abs(middle)):  # both ends would read alike
                return f"{format_number(middle)} ± {format_number(half)}"
            return f"{format_number(self.low)} to {format_number(self.high)}"
        if self.low > -math.inf:
            return f"≥ {format_number(self.low)}"
        return f"≤ {format_number(self.high)}" if self.high < math.inf else ""


def compare_exactly(key: str, meaning: str, *, here: float, paper: float, note: str = "") -> ComparedNumber:
    """A count: reproduced if it is the very same."""
    return ComparedNumber(key, meaning, here=here, paper=paper, low=paper, high=paper, note=note)


def format_number(value: float) -> str:
    """A number as people write it: counts in full, others to four digits, very small and large ones by powers."""
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


# MERGED ltinet.paper.comparison
# What the report has of one example, before it is written: text, numbers, tables, and figures yet to be drawn.


@dataclass(frozen=True)
class FigureRecipe:
    """A figure that is drawn when it is asked for."""

    name: str
    """Its files are called that, with the name of the example in front."""
    caption: str
    text: str
    """What it shows, for those who cannot see it."""
    draw: Callable[[], "Figure"]


@dataclass(frozen=True)
class ReportTable:
    """Figures that are no verdicts: a caption, headings and rows."""

    name: str
    caption: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[float | str]]


@dataclass(frozen=True)
class ReportSection:
    """One example: `label` is the paper's number of its section."""

    name: str
    label: str
    title: str
    paragraphs: tuple[str, ...]
    numbers: tuple[ComparedNumber, ...]
    pictures: tuple[FigureRecipe, ...]
    tables: tuple[ReportTable, ...] = ()


# MERGED ltinet.paper.comparison
# What rounding does to the numbers of the paper: how far each moved in full runs with other kernels of BLAS.
#
# An adaptive solver takes a step more or less where an error estimate falls on the other side of its tolerance, so that
# counts of evaluations differ from processor to processor. `kernel_bands.json` holds what full runs gave with one kernel
# after the other; `docs/refresh_reproduction.py` writes it.

KERNEL_VALUES_FILE = "kernel_bands.json"


@cache
def load_kernel_values() -> Mapping[str, Mapping[str, float]]:
    """For each number that moved, by key, what it came out as with each kernel."""
    text = resources.files("ltinet.paper").joinpath(KERNEL_VALUES_FILE).read_text(encoding="utf-8")
    numbers: dict[str, dict[str, float]] = json.loads(text)["numbers"]
    return numbers


def add_rounding_bands(section: ReportSection) -> ReportSection:
    """The section, its numbers with the bands that are known; what was found here is part of a band."""
    return replace(section, numbers=tuple(replace(own, band=_rounding_band(own)) for own in section.numbers))


def _rounding_band(number: ComparedNumber) -> tuple[float, float] | None:
    values = [number.here, *load_kernel_values().get(number.key, {}).values()]
    low, high = min(values), max(values)
    return None if format_number(low) == format_number(high) else (low, high)
