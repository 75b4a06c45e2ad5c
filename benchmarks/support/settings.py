"""Extent of a benchmark run: the full suite, or a quick one that shows that everything runs."""

from dataclasses import dataclass

from benchmarks.support.timing import Effort


@dataclass(frozen=True)
class Settings:
    """Sizes and efforts of all measurements."""

    quick: bool
    pair: Effort
    """For calls below a second."""
    slow: Effort
    """Where rounds take seconds, or there are many rows."""


FULL = Settings(quick=False, pair=Effort(0.7, 5), slow=Effort(0.5, 3))
QUICK = Settings(quick=True, pair=Effort(0.1, 1), slow=Effort(0.1, 1))
